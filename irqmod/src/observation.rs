// SPDX-License-Identifier: GPL-2.0

//! What a policy gets to see.

/// The CPU at the entry of the handler. A snapshot: plain values, read before the queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// A real hard interrupt; false in a forced interrupt thread and in a software replay.
    pub in_hardirq: bool,
    /// The scheduler wants this CPU. A hint: transient, and it carries no elapsed time.
    pub need_resched: bool,
}
