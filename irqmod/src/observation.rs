// SPDX-License-Identifier: GPL-2.0

//! What a policy gets to see.

use crate::time::Instant;
use bitflags::bitflags;

bitflags! {
    /// What can be seen at the entry of the handler without a clock: one look at this CPU.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Glance: u32 {
        /// A real hard interrupt; missing in a forced interrupt thread and in a software replay.
        const HARDIRQ = 1 << 0;
        /// The scheduler wants this CPU. A hint: transient, and it carries no elapsed time.
        const RESCHED = 1 << 1;
        /// The scheduler wants this CPU by the next tick (`PREEMPT_LAZY`).
        const LAZY = 1 << 4;
        /// The interrupt came while this CPU was idle: not on top of a softirq either, which runs on
        /// the idle task and is owed its share like a task.
        const IDLE = 1 << 2;
        /// This CPU serves its sources in its completion thread: all of them are to be deferred
        /// there ([`crate::Deferral::Cpu`]).
        const DEFERRING = 1 << 3;
    }
}

impl Glance {
    /// Whether nobody wants this CPU, and its handlers drain.
    #[inline]
    pub const fn is_free(self) -> bool {
        const WANTED: Glance = Glance::RESCHED.union(Glance::LAZY).union(Glance::DEFERRING);
        self.intersection(WANTED.union(Glance::IDLE)).bits() == Glance::IDLE.bits()
    }
}

bitflags! {
    /// What a policy looks at in the [`Observation`] of a handler, beside the glance: nothing else is
    /// gathered for it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Looks: u32 {
        /// [`Observation::began`] and [`Observation::now`].
        const CLOCK = 1 << 0;
        /// [`Observation::switches`].
        const SWITCHES = 1 << 1;
        /// [`Observation::in_flight`].
        const IN_FLIGHT = 1 << 2;
    }
}

/// A closer look, which costs a clock read and more: made only for a policy that asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The look at the entry of the handler; empty in a deferred drain.
    pub glance: Glance,
    /// When the drain that is being judged began; [`now`](Self::now) if nobody looked then.
    pub began: Instant,
    /// When this was seen.
    pub now: Instant,
    /// A number that changes whenever this CPU switches from one task to another.
    pub switches: u64,
    /// Commands that the device has and has not completed; [`None`] if the driver does not say.
    pub in_flight: Option<u32>,
}
