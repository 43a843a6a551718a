// SPDX-License-Identifier: GPL-2.0

//! Counters of one source.
//!
//! Each has a single writer at a time, so that counting costs a load and a store and no atomic
//! read-modify-write: the handler (which is not reentrant), or the one who owns the source. They
//! wrap at the machine word, and are read without stopping anyone.

use crate::sync::{
    bump,
    raise,
    Counter,
    Relaxed, //
};
use core::fmt;

/// The counters.
pub struct Stats {
    interrupts: Counter,
    empty: Counter,
    absorbed: Counter,
    forgiven: Counter,
    deferrals: Counter,
    polls: Counter,
    completions: Counter,
    completions_max: Counter,
    pauses: Counter,
}

impl Stats {
    /// All zero.
    pub(crate) fn new() -> Self {
        Self {
            interrupts: Counter::new(0),
            empty: Counter::new(0),
            absorbed: Counter::new(0),
            forgiven: Counter::new(0),
            deferrals: Counter::new(0),
            polls: Counter::new(0),
            completions: Counter::new(0),
            completions_max: Counter::new(0),
            pauses: Counter::new(0),
        }
    }

    /// Handler only.
    #[inline]
    pub(crate) fn on_interrupt(&self) {
        bump(&self.interrupts, 1);
    }

    /// Handler only.
    #[inline]
    pub(crate) fn on_empty(&self) {
        bump(&self.empty, 1);
    }

    /// Handler only.
    pub(crate) fn on_absorbed(&self) {
        bump(&self.absorbed, 1);
    }

    /// Handler only.
    pub(crate) fn on_forgiven(&self) {
        bump(&self.forgiven, 1);
    }

    /// The one who just claimed the source, before it hands the source on.
    pub(crate) fn on_deferral(&self) {
        bump(&self.deferrals, 1);
    }

    /// Poller, thread: under the lock.
    pub(crate) fn on_poll(&self) {
        bump(&self.polls, 1);
    }

    /// The one who drained, before it gives the right to drain up.
    #[inline]
    pub(crate) fn on_drain(&self, found: u32) {
        bump(&self.completions, found);
        raise(&self.completions_max, found);
    }

    /// Life cycle only, which the caller serialises.
    pub(crate) fn on_pause(&self) {
        bump(&self.pauses, 1);
    }

    /// Reads all counters. Any context.
    pub fn read(&self) -> Counts {
        Counts {
            interrupts: self.interrupts.load(Relaxed),
            empty: self.empty.load(Relaxed),
            absorbed: self.absorbed.load(Relaxed),
            forgiven: self.forgiven.load(Relaxed),
            deferrals: self.deferrals.load(Relaxed),
            polls: self.polls.load(Relaxed),
            completions: self.completions.load(Relaxed),
            completions_max: self.completions_max.load(Relaxed),
            pauses: self.pauses.load(Relaxed),
        }
    }
}

/// What [`Stats::read`] saw. [`fmt::Display`] writes one `name value` line for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Invocations of the handler.
    pub interrupts: usize,
    /// Interrupts that were answered with "none": nothing found and nothing to forgive.
    pub empty: usize,
    /// Interrupts that came while the source was owned or paused, and were left to the owner.
    pub absorbed: usize,
    /// Empty interrupts that were forgiven because the line had just been unmasked.
    pub forgiven: usize,
    /// How often the source was taken from the handler and deferred.
    pub deferrals: usize,
    /// Deferred drains, of poller and thread.
    pub polls: usize,
    /// Completions drained by handler, poller and thread.
    pub completions: usize,
    /// The most completions of a single drain.
    pub completions_max: usize,
    /// How often the source was paused or stopped.
    pub pauses: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "interrupts {}", self.interrupts)?;
        writeln!(f, "empty {}", self.empty)?;
        writeln!(f, "absorbed {}", self.absorbed)?;
        writeln!(f, "forgiven {}", self.forgiven)?;
        writeln!(f, "deferrals {}", self.deferrals)?;
        writeln!(f, "polls {}", self.polls)?;
        writeln!(f, "completions {}", self.completions)?;
        writeln!(f, "completions_max {}", self.completions_max)?;
        writeln!(f, "pauses {}", self.pauses)
    }
}
