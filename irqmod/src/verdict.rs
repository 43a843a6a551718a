// SPDX-License-Identifier: GPL-2.0

//! What a policy answers.

use crate::{
    time::Span,
    Budget, //
};

/// The context that drains a source in place of its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// The softirq poller.
    Softirq,
    /// The interrupt thread.
    Thread,
    /// A work item on an unbound workqueue, which runs on any CPU.
    Work,
    /// Nobody: the source stays masked until the hold timer of this CPU expires, and then its
    /// handler goes on.
    Hold,
    /// The completion thread of this CPU.
    Cpu,
}

/// The CPUs on which the interrupt thread of a line may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The one that the interrupt is sent to.
    #[default]
    Follow,
    /// All that the interrupt may be sent to.
    Spread,
}

/// What the handler should do with an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a verdict does nothing until the moderator carries it out"]
pub enum Verdict {
    /// Drain in the handler; then the policy is asked again.
    Drain(Budget),
    /// If a completion is pending and the source can be taken: mask the line and defer.
    Defer(Deferral),
}

/// What the handler should do after a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a verdict does nothing until the moderator carries it out"]
pub enum After {
    /// Return and leave the line open. Only for a queue that was seen empty: the moderator defers
    /// one that was not to the softirq poller.
    Open,
    /// Drain once more, at most this much.
    Again(Budget),
    /// Mask the line and defer.
    Defer(Deferral),
    /// As [`After::Defer`] with [`Deferral::Hold`], and start the hold timer of this CPU.
    HoldFor(Span),
}

/// What the one to whom a source was deferred should do after a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a verdict does nothing until the moderator carries it out"]
pub enum Next {
    /// Drain again, now.
    Again,
    /// Drain again after a while.
    Rest(Span),
    /// Give the source back to its handler, and unmask. Only for a queue that was seen empty: the
    /// moderator drains one that was not again.
    HandBack,
}
