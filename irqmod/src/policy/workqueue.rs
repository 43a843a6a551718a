// SPDX-License-Identifier: GPL-2.0

//! `workqueue`: a work item on an unbound workqueue drains.
//!
//! For devices whose completions cost a lot of CPU time each, as where unmapping copies through a
//! bounce buffer: the CPU that takes the interrupts only masks the line, and idle CPUs do the rest.
//!
//! The handler itself takes the first `direct` completions. One command at a time is thus as fast as
//! with [`super::hardirq`], and what one interrupt may copy with interrupts off is still bounded.
//!
//! # What differs from the proposal
//!
//! - The whole drain is deferred, not a batch that was collected. So there is nothing to allocate,
//!   and nothing that an allocation which fails could change: the work item is part of the line.
//! - The line is masked until its work item gives it back. Only the owner of the source drains, so
//!   completions stay in the order of the queue, and an item that is queued is not queued again.

use super::{
    ranged,
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
    reason::{Condition, Reason, BUDGET},
    verdict::{
        After,
        Deferral,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// Largest `direct`: with 64 KiB each, 1 MiB to copy with interrupts off, some 100 us.
const MAX_DIRECT: u32 = 16;

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    direct: Option<Budget>,
    budget: Budget,
}

impl Policy for Config {
    const NAME: &'static str = "workqueue";
    const KEYS: &'static [Key] = &[
        Key {
            name: "direct",
            min: 0,
            max: MAX_DIRECT,
            default: 1,
        },
        POLL_BUDGET,
    ];
    const WORK: bool = true;
    const GLANCES: bool = false;
    const HOME: Option<Deferral> = Some(Deferral::Work);
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [direct, budget, ..] = *values;
        Ok(Self {
            direct: Budget::new(direct),
            budget: Budget::polled(budget).ok_or(POLL_CONFLICT)?,
        })
    }

    fn values(&self) -> Values {
        let direct = self.direct.map_or(0, Budget::get);
        [direct, self.budget.get(), 0, 0, 0, 0, 0]
    }

    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(match self.direct {
            Some(direct) => Verdict::Drain(direct),
            None => Verdict::Defer(Deferral::Work),
        })
    }

    fn on_drained(&self, _: Glance, drain: Drain) -> Option<After> {
        Some(match drain {
            Drain::Drained(_) => After::Open,
            Drain::More(_) => After::Defer(Deferral::Work),
        })
    }

    /// Of the work item.
    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[BUDGET];

    fn why(&self, _: &Observation, found: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        say(Reason::new(0, found, self.direct.map_or(0, Budget::get)));
    }
}
