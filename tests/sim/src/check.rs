// SPDX-License-Identifier: GPL-2.0

//! Rules that hold in every run, whatever the faults.

use crate::Ns;
use serde::Serialize;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Rule {
    /// One context at a time drains a queue.
    SingleDrainer,
    /// A line is enabled as often as it was disabled.
    MaskBalance,
    /// The softirq poller's list is intact.
    PollList,
    /// Every request is completed once.
    ExactlyOnce,
    /// The kernel does not switch a line off because nobody wanted its interrupts.
    Stray,
    /// A completion is not left in a queue that is open and that nobody will look at.
    LostWakeUp,
    /// One run of a handler is bounded.
    BoundedDrain,
    /// An ordinary task does not wait longer than promised.
    BoundedWait,
    /// After an empty interrupt that was forgiven the next one is not.
    Verdict,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// When.
    pub at: Ns,
    /// Which.
    pub rule: Rule,
    /// On which line.
    pub line: u32,
    /// How.
    pub what: String,
}
