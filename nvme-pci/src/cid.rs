// SPDX-License-Identifier: GPL-2.0

//! Command identifiers, and which of them the controller may use now.
//!
//! A completion names its command by 16 bits that the controller sends back. They are data from
//! outside: a faulty controller may name a tag that does not exist, one that is idle, or a command
//! of the past whose tag is in use again. So an identifier is a tag and a generation:
//!
//! ```text
//!      15        12 11                       0
//!     | generation |           tag            |
//! ```
//!
//! and [`Slots`] remembers, for each tag, the identifier that was given to the controller. A
//! completion counts if it takes exactly this out:
//!
//! ```text
//!                 put (submitter owns the idle tag)
//!        Idle ------------------------------------> Given(cid)
//!         ^                                            |
//!         +--------------------------------------------+
//!                 take(cid) (drainer; once)
//! ```

use core::ops::Deref;

use crate::sync::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// Bits of the tag.
const TAG_BITS: u32 = 12;

/// How many tags there can be: tags are below this.
pub const MAX_TAGS: u16 = 1 << TAG_BITS;

/// How a command is called between driver and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandId(u16);

impl CommandId {
    /// The asynchronous event request: the admin queue's tag beyond those of the block layer.
    pub const AEN: Self = Self(31);

    /// Names the command with a tag in the generation given, of which the low four bits count.
    ///
    /// There is no name for a tag of more than 12 bits.
    pub const fn new(tag: u16, generation: u8) -> Option<Self> {
        if tag >= MAX_TAGS {
            return None;
        }
        Some(Self(((generation as u16) << TAG_BITS) | tag))
    }

    /// Takes what the controller sent, or what nvme-core chose.
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// What is put in the command.
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// The tag.
    pub const fn tag(self) -> u16 {
        self.0 & (MAX_TAGS - 1)
    }

    /// The generation: below 16.
    pub const fn generation(self) -> u8 {
        (self.0 >> TAG_BITS) as u8
    }
}

/// What is known of one tag: zero if idle, else [`GIVEN`] and the identifier.
pub struct Slot(Atomic<u32>);

/// The controller has the command.
const GIVEN: u32 = 1 << 16;

impl Slot {
    /// An idle tag.
    pub fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// A tag in use.
    const fn given(cid: CommandId) -> u32 {
        GIVEN | cid.0 as u32
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// The commands of one queue that the controller has; as many as `S` has slots.
pub struct Slots<S: Deref<Target = [Slot]>> {
    slots: S,
}

impl<S: Deref<Target = [Slot]>> Slots<S> {
    /// Starts to keep books.
    pub const fn new(slots: S) -> Self {
        Self { slots }
    }

    /// Forgets all commands, when the queue is made anew: nobody submits or drains.
    pub fn clear(&self) {
        for slot in self.slots.iter() {
            slot.0.store(0, Relaxed);
        }
    }

    /// Notes that a command is about to be given to the controller.
    ///
    /// This comes before its copy into the ring. The tag is the submitter's, so nobody else writes
    /// the slot; release makes what the submitter did before visible to who takes the identifier.
    /// If the tag is out of range or the controller has it already, the answer is `false` and the
    /// command must not be submitted.
    #[must_use = "a command that is not noted must not be submitted"]
    #[inline]
    pub fn put(&self, cid: CommandId) -> bool {
        self.put_after(cid, || ())
    }

    /// As [`Self::put`], and calls `note` before, if it is going to succeed: what `note` writes is
    /// visible to who takes the identifier.
    #[must_use = "a command that is not noted must not be submitted"]
    #[inline]
    pub fn put_after(&self, cid: CommandId, note: impl FnOnce()) -> bool {
        let Some(slot) = self.slot(cid) else {
            return false;
        };
        if slot.0.load(Relaxed) != 0 {
            return false;
        }
        note();
        slot.0.store(Slot::given(cid), Release);
        true
    }

    /// Takes back what a completion names: `true` exactly once after each [`Self::put`] of the same
    /// identifier. Any other leaves the command that has the tag as it is.
    ///
    /// A queue has one drainer at a time, so between the look and the store nobody else takes; and
    /// nobody puts, as the tag is the command's until it has been taken. Hence no read-modify-write.
    #[must_use = "a completion that names nothing must be dropped"]
    #[inline]
    pub fn take(&self, cid: CommandId) -> bool {
        let Some(slot) = self.slot(cid) else {
            return false;
        };
        if slot.0.load(Acquire) != Slot::given(cid) {
            return false;
        }
        slot.0.store(0, Relaxed);
        true
    }

    /// How many commands the controller has: for tests and debugging, it looks at every tag.
    pub fn busy(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.0.load(Relaxed) != 0)
            .count()
    }

    fn slot(&self, cid: CommandId) -> Option<&Slot> {
        self.slots.get(usize::from(cid.tag()))
    }
}
