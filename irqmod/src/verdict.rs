// SPDX-License-Identifier: GPL-2.0

//! What a policy answers.

use crate::Budget;

/// The context that drains a source in place of its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// The softirq poller.
    Softirq,
    /// The interrupt thread.
    Thread,
}

/// What the handler should do with an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a verdict does nothing until the moderator carries it out"]
pub enum Verdict {
    /// Drain in the handler. A drain that uses the budget up goes on in the softirq poller.
    Drain(Budget),
    /// If a completion is pending and the source can be taken: mask the line and defer.
    Defer(Deferral),
}
