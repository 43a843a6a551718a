// SPDX-License-Identifier: GPL-2.0

//! `hardirq`: drain in the handler until the queue is empty.
//!
//! The baseline, and the fastest policy while the CPU keeps up. It never defers: nothing bounds
//! what one interrupt may cost, and a queue that never gets empty keeps the CPU for ever.

use super::Policy;
use crate::{
    observation::Observation,
    verdict::Verdict,
    Budget, //
};

/// Name in a parameter string.
pub const NAME: &str = "hardirq";

/// The policy; it has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config;

impl Policy for Config {
    const OBSERVES: bool = false;

    #[inline]
    fn on_interrupt(&self, _: &Observation) -> Verdict {
        Verdict::Drain(Budget::UNLIMITED)
    }

    /// Only the look after a resume or a timeout is ever deferred.
    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }
}
