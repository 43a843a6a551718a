// SPDX-License-Identifier: GPL-2.0

//! `threaded`: the interrupt thread drains.
//!
//! The handler masks the line and wakes the thread, which drains a budget at a time and offers the
//! CPU to others in between. Safe under every load, at the price of a wake-up and a context switch
//! for each interrupt.

use super::{
    Conflict,
    Key,
    Policy,
    Values, //
};
use crate::{
    observation::Glance,
    verdict::{
        Deferral,
        Verdict, //
    },
    Budget, //
};

/// The policy; it has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config;

impl Policy for Config {
    const NAME: &'static str = "threaded";
    const KEYS: &'static [Key] = &[];
    const GLANCES: bool = false;
    const HOME: Option<Deferral> = Some(Deferral::Thread);
    type Line = ();

    fn from_values(_: &Values) -> Result<Self, Conflict> {
        Ok(Self)
    }

    fn values(&self) -> Values {
        Values::default()
    }

    #[inline]
    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Defer(Deferral::Thread))
    }

    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }
}
