// SPDX-License-Identifier: GPL-2.0

//! The arithmetic of a queue pair: two rings of the same number of entries.
//!
//! # Words
//!
//! - *tail*: the submission queue's next free entry. *head*: the completion queue's next entry to
//!   read. A ring is empty when both are equal, so one entry is never used: a ring of `n` entries
//!   holds `n - 1` commands.
//! - *phase*: a bit the controller inverts on each lap through the completion queue. It tells a new
//!   entry from one of the lap before, without a look at the device.
//! - *to ring*: to write tail or head to its doorbell.
//!
//! # Who writes what
//!
//! ```text
//!     SqRing     behind the submission lock; `&mut`
//!     CqRing     the drainer alone writes; others look ("is something pending?", "how many in flight?")
//!     InFlight   who rings the submission doorbell writes; others look
//! ```
//!
//! What others look at is one relaxed atomic each. Head and phase share one, so nobody sees the head
//! of one lap with the phase of another, and every value that is ever stored is in range: the head is
//! never, not even for a moment, the number of entries.

use crate::{
    cid::{
        CommandId,
        MAX_TAGS, //
    },
    doorbell::Cap,
    sync::{
        Atomic,
        Relaxed, //
    },
};

/// Bytes of a submission queue entry: CC.IOSQES = 6.
pub const SQE_BYTES: usize = 64;

/// Bytes of a completion queue entry: CC.IOCQES = 4.
pub const CQE_BYTES: usize = 16;

/// The largest ring of ours: its commands just have tags. See [`CommandId`].
pub const MAX_IO_ENTRIES: u16 = MAX_TAGS;

/// How many entries a ring has: two at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entries(u16);

impl Entries {
    /// The smallest ring.
    pub const MIN: Self = Self(2);

    /// A ring of `count` entries, if that can be one.
    pub const fn new(count: u16) -> Option<Self> {
        if count < Self::MIN.0 {
            return None;
        }
        Some(Self(count))
    }

    /// The ring nearest to what the user asked for that controller and tags allow.
    pub fn negotiate(requested: u32, cap: Cap) -> Self {
        let supported = u32::from(cap.mqes()) + 1;
        let count = requested.min(supported).min(u32::from(MAX_IO_ENTRIES));
        Self::MIN.max(Self(count as u16))
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// How many commands fit, which is how many tags the queue has.
    pub const fn usable(self) -> u16 {
        self.0.saturating_sub(1)
    }

    /// The number as the controller wants it.
    pub const fn zero_based(self) -> u16 {
        self.usable()
    }

    /// Bytes of the submission queue.
    pub const fn sq_bytes(self) -> usize {
        self.0 as usize * SQE_BYTES
    }

    /// Bytes of the completion queue.
    pub const fn cq_bytes(self) -> usize {
        self.0 as usize * CQE_BYTES
    }

    /// The entry after `index`.
    pub const fn next(self, index: u16) -> u16 {
        let next = index.wrapping_add(1);
        if next >= self.0 {
            return 0;
        }
        next
    }

    /// How many steps lead from `head` to `tail`, both in range.
    pub const fn distance(self, head: u16, tail: u16) -> u16 {
        let steps = tail.wrapping_sub(head);
        if tail >= head {
            return steps;
        }
        // `steps` is negative, modulo 2^16; with the entries added it is in range again.
        steps.wrapping_add(self.0)
    }
}

/// The submission queue's side of the driver, behind the submission lock.
#[derive(Debug)]
pub struct SqRing {
    entries: Entries,
    tail: u16,
    /// The last value given to the doorbell.
    rung: u16,
}

impl SqRing {
    /// An empty ring.
    pub const fn new(entries: Entries) -> Self {
        Self {
            entries,
            tail: 0,
            rung: 0,
        }
    }

    /// Starts anew, as the controller does when the queue is created again.
    pub fn reset(&mut self) {
        self.tail = 0;
        self.rung = 0;
    }

    /// Number of entries.
    pub const fn entries(&self) -> Entries {
        self.entries
    }

    /// Where the next command is copied to.
    pub const fn slot(&self) -> u16 {
        self.tail
    }

    /// Counts the command that was copied to [`Self::slot`].
    pub fn push(&mut self) {
        self.tail = self.entries.next(self.tail);
    }

    /// What to write to the doorbell now, if anything.
    ///
    /// Commands that are not the `last` of a batch wait for it, except that the tail must not come
    /// round to the value last rung: the controller would take the full ring for an empty one.
    #[must_use = "a value that is not written to the doorbell is lost"]
    pub fn ring(&mut self, last: bool) -> Option<u16> {
        let full = self.entries.next(self.tail) == self.rung;
        if self.tail == self.rung || !(last || full) {
            return None;
        }
        self.rung = self.tail;
        Some(self.tail)
    }
}

/// A place in the completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    head: u16,
    phase: bool,
}

impl Cursor {
    /// Where the controller begins: at entry 0, with phase 1 in memory that was zeroed.
    const START: Self = Self {
        head: 0,
        phase: true,
    };

    /// The phase's place in the word that readers see.
    const PHASE: u32 = 1 << 16;

    /// The entry.
    pub const fn head(self) -> u16 {
        self.head
    }

    /// Whether an entry with this status (bits 31:16 of its dword 3) is new here.
    pub const fn is_new(self, status: u16) -> bool {
        (status & 1 != 0) == self.phase
    }

    const fn pack(self) -> u32 {
        self.head as u32 | if self.phase { Self::PHASE } else { 0 }
    }

    const fn unpack(word: u32) -> Self {
        Self {
            head: word as u16,
            phase: word & Self::PHASE != 0,
        }
    }
}

/// The completion queue's side of the driver.
pub struct CqRing {
    entries: Entries,
    cursor: Atomic<u32>,
}

impl CqRing {
    /// A ring in which nothing has arrived.
    pub fn new(entries: Entries) -> Self {
        Self {
            entries,
            cursor: Atomic::new(Cursor::START.pack()),
        }
    }

    /// Starts anew, as the controller does when the queue is created again; its memory is zero.
    pub fn reset(&self) {
        self.publish(Cursor::START);
    }

    /// Number of entries.
    pub const fn entries(&self) -> Entries {
        self.entries
    }

    /// Where the drainer is. Anybody may ask; to anybody else it may be old.
    pub fn cursor(&self) -> Cursor {
        Cursor::unpack(self.cursor.load(Relaxed))
    }

    /// The place after `at`.
    pub const fn next(&self, at: Cursor) -> Cursor {
        let head = self.entries.next(at.head);
        Cursor {
            head,
            phase: at.phase ^ (head == 0),
        }
    }

    /// Says where the drainer is now; the drainer alone may.
    pub fn publish(&self, at: Cursor) {
        self.cursor.store(at.pack(), Relaxed);
    }
}

/// The tail that the controller knows, for those who ask how much it has to do.
pub struct InFlight {
    tail: Atomic<u32>,
}

impl InFlight {
    /// Nothing is in flight.
    pub fn new() -> Self {
        Self {
            tail: Atomic::new(0),
        }
    }

    /// Says what the submission doorbell was given; who holds the submission lock may.
    pub fn publish(&self, tail: u16) {
        self.tail.store(u32::from(tail), Relaxed);
    }

    /// How many commands were given to the controller and not yet seen completed.
    ///
    /// Both ends move while one looks: the answer was never far from the truth, and it is always
    /// below the number of entries.
    pub fn estimate(&self, cq: &CqRing) -> u16 {
        let head = cq.cursor().head();
        cq.entries().distance(head, self.tail.load(Relaxed) as u16)
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self::new()
    }
}

/// A completion queue entry, in the CPU's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    /// Dwords 0 and 1: what the command answers.
    pub result: u64,
    /// SQHD: how far the controller has read the submission queue.
    pub sq_head: u16,
    /// SQID: the submission queue.
    pub sq_id: u16,
    /// CID: the command, if it is one; see [`crate::cid::Slots::take`].
    pub cid: CommandId,
    /// Status and, in bit 0, the phase.
    pub status: u16,
}

impl Cqe {
    /// Splits the dwords of an entry. Its last must have been read before the others.
    pub const fn from_dwords([low, high, queue, command]: [u32; 4]) -> Self {
        Self {
            result: low as u64 | (high as u64) << 32,
            sq_head: queue as u16,
            sq_id: (queue >> 16) as u16,
            cid: CommandId::from_raw(command as u16),
            status: (command >> 16) as u16,
        }
    }
}
