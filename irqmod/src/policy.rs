// SPDX-License-Identifier: GPL-2.0

//! When to defer. One file per policy; pure decisions on plain values.

pub mod hardirq;
pub mod resched;
pub mod threaded;

use crate::{
    observation::Observation,
    verdict::Verdict,
    Budget, //
};
use core::fmt;

/// A policy: decides, never acts. No clock, no atomics, no pointers; can't fail and can't sleep.
pub trait Policy {
    /// Whether [`on_interrupt`](Self::on_interrupt) looks at its argument at all. The handler
    /// gathers nothing for a policy that does not.
    const OBSERVES: bool;

    /// Decides about one interrupt of a source that is neither owned nor paused.
    fn on_interrupt(&self, observation: &Observation) -> Verdict;

    /// Budget of one deferred drain.
    fn budget(&self) -> Budget;
}

/// The choice among all policies.
///
/// [`fmt::Display`] writes what [`crate::params::parse`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// Drain in the handler until empty.
    Hardirq,
    /// Defer to the softirq poller when the scheduler wants the CPU.
    Resched(resched::Config),
    /// Defer to the interrupt thread, always.
    Threaded(threaded::Config),
}

/// Calls one thing on the policy that a [`Config`] names: static dispatch, no table.
macro_rules! dispatch {
    ($config:expr, $policy:ident => $call:expr) => {
        match $config {
            Config::Hardirq => {
                let $policy = &hardirq::Config;
                $call
            }
            Config::Resched($policy) => $call,
            Config::Threaded($policy) => $call,
        }
    };
}

impl Config {
    /// Whether [`on_interrupt`](Self::on_interrupt) needs an observation.
    #[inline]
    pub(crate) fn observes(&self) -> bool {
        fn of<P: Policy>(_: &P) -> bool {
            P::OBSERVES
        }
        dispatch!(self, policy => of(policy))
    }

    /// See [`Policy::on_interrupt`].
    #[inline]
    pub fn on_interrupt(&self, observation: &Observation) -> Verdict {
        dispatch!(self, policy => policy.on_interrupt(observation))
    }

    /// Budget of one deferred drain, and the weight of the softirq poller. Unit: completions.
    pub fn budget(&self) -> Budget {
        dispatch!(self, policy => policy.budget())
    }

    /// Whether the line needs an interrupt thread.
    pub fn wants_thread(&self) -> bool {
        matches!(self, Self::Threaded(_))
    }

    /// One word that [`Config::unpack`] turns back: the policy above, its parameters below.
    pub(crate) fn pack(self) -> u32 {
        match self {
            Self::Hardirq => HARDIRQ,
            Self::Resched(config) => RESCHED | config.budget().get(),
            Self::Threaded(_) => THREADED,
        }
    }

    /// The inverse of [`Config::pack`]. Words that it never makes are the default policy.
    #[inline]
    pub(crate) fn unpack(word: u32) -> Self {
        match word & KIND {
            RESCHED => resched::Config::new(word & !KIND).map_or(Self::Hardirq, Self::Resched),
            THREADED => Self::Threaded(threaded::Config),
            _ => Self::Hardirq,
        }
    }
}

/// Bits of a packed word that name the policy.
const KIND: u32 = 0xff00_0000;
const HARDIRQ: u32 = 0x0000_0000;
const RESCHED: u32 = 0x0100_0000;
const THREADED: u32 = 0x0200_0000;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardirq => f.write_str(hardirq::NAME),
            Self::Resched(config) => {
                write!(f, "{}:budget={}", resched::NAME, config.budget().get())
            }
            Self::Threaded(_) => f.write_str(threaded::NAME),
        }
    }
}
