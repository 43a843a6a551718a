// SPDX-License-Identifier: GPL-2.0

//! `overflow`: the handler drains first, the interrupt thread takes what is left.
//!
//! A drain in the handler is bounded by a budget. One that uses it up masks the line and wakes the
//! thread, which drains until the queue is empty. So light load costs no wake-up, and a queue that
//! never gets empty is drained where the scheduler is in control.
//!
//! What it does not bound is the sum: many queues, each emptied within its budget, keep the CPU in
//! hard interrupts without one of them ever overflowing.

use super::{
    Conflict,
    Cpu,
    Key,
    Policy,
    Values, //
};
use crate::{
    observation::{
        Glance,
        Observation, //
    },
    reason::{Condition, Reason, BUDGET},
    verdict::{
        After,
        Deferral,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    budget: Budget,
}

impl Config {
    /// Largest budget: at a few microseconds for each completion some milliseconds, about one tick.
    pub const MAX_BUDGET: u32 = 1024;
    /// Budget by default: a few hundred microseconds with interrupts off at most.
    pub const DEFAULT_BUDGET: u32 = 64;

    /// `budget`: completions of one drain in the handler, `1..=1024`. [`None`] outside of the range.
    pub const fn new(budget: u32) -> Option<Self> {
        match Budget::new(budget) {
            Some(budget) if budget.get() <= Self::MAX_BUDGET => Some(Self { budget }),
            _ => None,
        }
    }
}

impl Policy for Config {
    const NAME: &'static str = "overflow";
    const KEYS: &'static [Key] = &[Key {
        name: "budget",
        min: 1,
        max: Self::MAX_BUDGET,
        default: Self::DEFAULT_BUDGET,
    }];
    const GLANCES: bool = false;
    const HOME: Option<Deferral> = Some(Deferral::Thread);
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        Self::new(values[0]).ok_or(Conflict("budget must be in 1..=1024"))
    }

    fn values(&self) -> Values {
        [self.budget.get(), 0, 0, 0, 0, 0, 0]
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Drain(self.budget))
    }

    #[inline]
    fn on_drained(&self, _: Glance, drain: Drain) -> Option<After> {
        Some(match drain {
            Drain::Drained(_) => After::Open,
            Drain::More(_) => After::Defer(Deferral::Thread),
        })
    }

    /// The thread's drains; the poller is only used for the look after a resume.
    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }

    const CONDITIONS: &'static [Condition] = &[BUDGET];

    fn why(&self, _: &Observation, found: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        say(Reason::new(0, found, self.budget.get()));
    }
}
