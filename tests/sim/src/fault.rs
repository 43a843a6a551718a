// SPDX-License-Identifier: GPL-2.0

//! What goes wrong in a run.

use crate::Ns;
use serde::{
    Deserialize,
    Serialize, //
};

/// What the world does wrong, and how often. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// How many of 1,000 messages are lost.
    pub lost: u32,
    /// How many of 1,000 messages come twice.
    pub duplicated: u32,
    /// How many of 1,000 messages are late.
    pub late: u32,
    /// By how much at most.
    pub late_ns: Ns,
    /// Devices forget a message that is due while the vector is masked.
    pub forgets: bool,
    /// How many of 1,000 looks at need_resched are wrong.
    pub flapping: u32,
    /// How much later than asked a timer expires at most.
    pub late_timer: Ns,
    /// Mean time between two pauses of a line, which is resumed after a while; 0: none.
    pub reset_ns: Ns,
    /// Mean time between two times that a device is out of reach, until it is paused and resumed; 0:
    /// none.
    pub freeze_ns: Ns,
    /// Mean time between two tasks that drain a queue; 0: none.
    pub peek_ns: Ns,
    /// Mean time between two moves of a line to another CPU, as when its CPU goes away; 0: none.
    pub move_ns: Ns,
}

/// A bug that is planted, so that a rule can be seen to catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Plant {
    /// A task drains without asking anyone.
    DrainsUnasked,
    /// Some unmasks are done twice.
    UnmasksTwice,
    /// The poller is completed twice.
    CompletesPollerTwice,
    /// Some requests are completed twice.
    CompletesTwice,
    /// Every answer is "none".
    WantsNothing,
    /// Every answer is "handled".
    WantsEverything,
    /// Some deferrals are dropped.
    DropsDeferrals,
    /// Drains know no budget.
    IgnoresBudget,
    /// The completion thread does not rest.
    NeverRests,
    /// A line that joins the list of a completion thread ends its rest.
    RestsBriefly,
    /// A mask is kept.
    KeepsMask,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::DrainsUnasked,
        Self::UnmasksTwice,
        Self::CompletesPollerTwice,
        Self::CompletesTwice,
        Self::WantsNothing,
        Self::WantsEverything,
        Self::DropsDeferrals,
        Self::IgnoresBudget,
        Self::NeverRests,
        Self::RestsBriefly,
        Self::KeepsMask,
    ];
}
