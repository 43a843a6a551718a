// SPDX-License-Identifier: GPL-2.0

//! `resched`: fall back to softirq polling when the scheduler wants the CPU.
//!
//! The handler drains like [`super::hardirq`] unless it sees a pending reschedule: then the line is
//! masked and a softirq poller drains, a budget at a time, until the queue is empty.
//!
//! need_resched() is a hint, not a bound in time, and a handler that is already draining never
//! looks again (with interrupts off the tick can't set it either). So a drain in the handler is
//! bounded as well: one that uses the budget up goes on in the poller, pressure or not. Without it
//! one queue that is fed as fast as it is drained keeps the CPU for ever.
//!
//! A forced interrupt thread is bounded likewise: it has interrupts off, and precedes all ordinary
//! tasks.

use super::{
    Conflict,
    Cpu,
    Key,
    Policy,
    Values,
    POLL_BUDGET,
    POLL_CONFLICT, //
};
use crate::{
    observation::{
        Glance,
        Observation, //
    },
    reason::{
        Condition,
        Reason,
        BUDGET,
        NEED_RESCHED, //
    },
    verdict::{
        Deferral,
        Verdict, //
    },
    Budget, //
};

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    budget: Budget,
}

impl Config {
    /// `budget`: completions of one drain, `1..=256`. [`None`] outside of the range.
    pub const fn new(budget: u32) -> Option<Self> {
        match Budget::polled(budget) {
            Some(budget) => Some(Self { budget }),
            None => None,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            budget: Budget::POLL_DEFAULT,
        }
    }
}

impl Policy for Config {
    const NAME: &'static str = "resched";
    const KEYS: &'static [Key] = &[POLL_BUDGET];
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        Self::new(values[0]).ok_or(POLL_CONFLICT)
    }

    fn values(&self) -> Values {
        [self.budget.get(), 0, 0, 0, 0, 0, 0]
    }

    #[inline]
    fn on_interrupt(&self, glance: Glance) -> Option<Verdict> {
        Some(if glance.contains(Glance::RESCHED) {
            Verdict::Defer(Deferral::Softirq)
        } else {
            Verdict::Drain(self.budget)
        })
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[NEED_RESCHED, BUDGET];

    fn why(&self, seen: &Observation, found: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        let wanted = seen.glance.contains(Glance::RESCHED);
        say(Reason::new(0, wanted.into(), 1));
        say(Reason::new(1, found, self.budget.get()));
    }
}
