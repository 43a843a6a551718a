// SPDX-License-Identifier: GPL-2.0

//! `irqpoll`: the softirq poller drains, always.
//!
//! Each interrupt masks the line and schedules the poller. Kept as a point of reference: it costs
//! throughput and latency where there is no storm, and under one it is only as safe as the softirq,
//! which goes on in a thread of ordinary priority once it has used up its time.

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
    reason::{Condition, Reason, EMPTY},
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
    /// `budget`: completions of one poll, `1..=256`. [`None`] outside of the range.
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
    const NAME: &'static str = "irqpoll";
    const KEYS: &'static [Key] = &[POLL_BUDGET];
    const GLANCES: bool = false;
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        Self::new(values[0]).ok_or(POLL_CONFLICT)
    }

    fn values(&self) -> Values {
        [self.budget.get(), 0, 0, 0, 0, 0, 0]
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Defer(Deferral::Softirq))
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[EMPTY];

    fn why(&self, _: &Observation, _: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        say(Reason::held(0));
    }
}
