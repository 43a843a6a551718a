// SPDX-License-Identifier: GPL-2.0

//! `threaded`: the interrupt thread drains.
//!
//! The handler masks the line and wakes the thread, which drains a budget at a time and offers the
//! CPU to others in between. Safe under every load, at the price of a wake-up and a context switch
//! for each interrupt.
//!
//! The thread runs where the interrupt comes in, so the threads of many devices share the CPU that
//! takes all their interrupts. `spread` lets each run on any CPU that its interrupt may be sent to.

use super::{
    ranged,
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
        Reason,
        EMPTY, //
    },
    verdict::{
        Deferral,
        Placement,
        Verdict, //
    },
    Budget, //
};

/// The policy with its parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    placement: Placement,
}

impl Config {
    /// The policy with a thread that may run there.
    pub const fn new(placement: Placement) -> Self {
        Self { placement }
    }
}

impl Policy for Config {
    const NAME: &'static str = "threaded";
    const KEYS: &'static [Key] = &[Key {
        name: "spread",
        min: 0,
        max: 1,
        default: 0,
    }];
    const GLANCES: bool = false;
    const HOME: Option<Deferral> = Some(Deferral::Thread);
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [spread, ..] = *values;
        Ok(Self::new(match spread {
            0 => Placement::Follow,
            _ => Placement::Spread,
        }))
    }

    fn values(&self) -> Values {
        let mut values = Values::default();
        values[0] = u32::from(self.placement == Placement::Spread);
        values
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Defer(Deferral::Thread))
    }

    fn placement(&self) -> Placement {
        self.placement
    }

    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }

    const CONDITIONS: &'static [Condition] = &[EMPTY];

    fn why(&self, _: &Observation, _: u32, (): &(), _: &Cpu, say: &mut dyn FnMut(Reason)) {
        say(Reason::held(0));
    }
}
