// SPDX-License-Identifier: GPL-2.0

//! `hardirq`: drain in the handler until the queue is empty.
//!
//! The baseline, and the fastest policy while the CPU keeps up. It never defers: nothing bounds
//! what one interrupt may cost, and a queue that never gets empty keeps the CPU for ever.

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
    reason::{
        Condition,
        Reason, //
    },
    verdict::Verdict,
    Budget, //
};

/// The policy; it has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config;

impl Policy for Config {
    const NAME: &'static str = "hardirq";
    const KEYS: &'static [Key] = &[];
    const GLANCES: bool = false;
    type Line = ();

    fn from_values(_: &Values) -> Result<Self, Conflict> {
        Ok(Self)
    }

    fn values(&self) -> Values {
        Values::default()
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Drain(Budget::UNLIMITED))
    }

    /// Only the look after a resume or a timeout is ever deferred.
    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }

    const CONDITIONS: &'static [Condition] = &[Condition::held("never acts")];

    fn why(&self, _: &Observation, _: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        say(Reason::held(0));
    }
}
