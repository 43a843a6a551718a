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
    /// Mean time between two moves of a line to another CPU; 0: none.
    pub move_ns: Ns,
    /// How many of 1,000 unmasks reach the device late, by [`late_ns`](Self::late_ns) at most.
    pub races: u32,
    /// Mean time between two changes of a line's policy; 0: none.
    pub switch_ns: Ns,
    /// Mean time between two storms of resets of a controller; 0: none.
    pub storm_ns: Ns,
    /// Mean time between two times that a CPU goes away for a while; 0: none.
    pub unplug_ns: Ns,
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("lost", u64::from(self.lost)),
            ("duplicated", u64::from(self.duplicated)),
            ("late", u64::from(self.late)),
            (
                "late_ns",
                self.late_ns * u64::from((self.late | self.races) != 0),
            ),
            ("forgets", u64::from(self.forgets)),
            ("flapping", u64::from(self.flapping)),
            ("late_timer", self.late_timer),
            ("reset_ns", self.reset_ns),
            ("freeze_ns", self.freeze_ns),
            ("peek_ns", self.peek_ns),
            ("move_ns", self.move_ns),
            ("races", u64::from(self.races)),
            ("switch_ns", self.switch_ns),
            ("storm_ns", self.storm_ns),
            ("unplug_ns", self.unplug_ns),
        ];
        let mut some = parts.iter().filter(|(_, value)| *value != 0).peekable();
        if some.peek().is_none() {
            return f.write_str("none");
        }
        for (place, (name, value)) in some.enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
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
    /// A CPU that goes away keeps the lines of its completion thread.
    KeepsList,
    /// Nobody looks at a line that is requested again.
    NoLook,
    /// A reset forgets a request.
    ForgetsRequest,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 14] = [
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
        Self::KeepsList,
        Self::NoLook,
        Self::ForgetsRequest,
    ];

    /// The one whose name is `name`.
    ///
    /// # Errors
    ///
    /// One line that says which there are.
    pub fn find(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|plant| format!("{plant:?}"));
        let place = names().position(|known| known.eq_ignore_ascii_case(name));
        place.map(|place| Self::ALL[place]).ok_or_else(|| {
            let names: Vec<String> = names().collect();
            format!("no planted bug '{name}'; there are: {}", names.join(", "))
        })
    }
}
