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
//! In a forced interrupt thread nothing is deferred: the scheduler is in control there already.

use super::Policy;
use crate::{
    observation::Observation,
    verdict::{
        Deferral,
        Verdict, //
    },
    Budget, //
};

/// Name in a parameter string.
pub const NAME: &str = "resched";

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    budget: Budget,
}

impl Config {
    /// Largest budget: the irq_poll core grants this much to all its instances together in one
    /// pass, and an instance with more would overrun it in a single call.
    pub const MAX_BUDGET: u32 = Budget::POLL_DEFAULT.get();

    /// `budget`: completions of one drain, `1..=256`. [`None`] outside of the range.
    pub const fn new(budget: u32) -> Option<Self> {
        match Budget::new(budget) {
            Some(budget) if budget.get() <= Self::MAX_BUDGET => Some(Self { budget }),
            _ => None,
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
    const OBSERVES: bool = true;

    #[inline]
    fn on_interrupt(&self, observation: &Observation) -> Verdict {
        if !observation.in_hardirq {
            Verdict::Drain(Budget::UNLIMITED)
        } else if observation.need_resched {
            Verdict::Defer(Deferral::Softirq)
        } else {
            Verdict::Drain(self.budget)
        }
    }

    fn budget(&self) -> Budget {
        self.budget
    }
}
