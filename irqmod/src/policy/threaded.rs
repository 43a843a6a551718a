// SPDX-License-Identifier: GPL-2.0

//! `threaded`: the interrupt thread drains.
//!
//! The handler masks the line and wakes the thread, which drains a budget at a time and offers the
//! CPU to others in between. Safe under every load, at the price of a wake-up and a context switch
//! for each interrupt.

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
pub const NAME: &str = "threaded";

/// The policy; it has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config;

impl Policy for Config {
    const OBSERVES: bool = false;

    #[inline]
    fn on_interrupt(&self, _: &Observation) -> Verdict {
        Verdict::Defer(Deferral::Thread)
    }

    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }
}
