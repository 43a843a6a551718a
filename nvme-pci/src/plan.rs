// SPDX-License-Identifier: GPL-2.0

//! Which I/O queues there are, what each is for, and which vector it has.
//!
//! ```text
//!     qid      1 ..= default     ..= default + read     ..= default + read + poll
//!     for      writes, and all   reads                  polled requests
//!     vector   qid               qid                    none
//! ```
//!
//! Vector 0 is the admin queue's. If the platform gives no vector beside it, there is one I/O queue
//! with interrupts and it shares vector 0; that one is never moderated.

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Possible CPUs: one queue each.
    pub cpus: u16,
    /// Queues for writes alone, beside those.
    pub write_queues: u16,
    /// Queues without interrupt, beside those.
    pub poll_queues: u16,
}

impl Wanted {
    /// How many I/O queues to ask the controller for, given doorbells for `pairs` queue pairs.
    pub fn queues(&self, pairs: u32) -> u16 {
        let room = u16::try_from(pairs.saturating_sub(1)).unwrap_or(u16::MAX);
        self.cpus
            .saturating_add(self.write_queues)
            .saturating_add(self.poll_queues)
            .min(room)
    }

    /// How many vectors to ask the platform for, the admin queue's included, when the controller
    /// granted so many I/O queues.
    pub fn vectors(&self, granted: u16) -> u16 {
        granted
            .saturating_sub(self.polled(granted))
            .saturating_add(1)
    }

    /// How many of the queues are polled: at least one keeps its interrupt.
    fn polled(&self, granted: u16) -> u16 {
        self.poll_queues.min(granted.saturating_sub(1))
    }
}

/// Splits I/O vectors in those for writes (and everything else) and those for reads.
///
/// There is always one of the former, also if `io_vectors` is zero: it then shares the admin
/// queue's.
pub fn irq_sets(io_vectors: u16, write_queues: u16) -> (u16, u16) {
    let vectors = io_vectors.max(1);
    if vectors == 1 || write_queues == 0 {
        return (vectors, 0);
    }
    let writes = write_queues.min(vectors - 1);
    (writes, vectors - writes)
}

/// What a queue is for, in blk-mq's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything that no other queue is for.
    Default,
    /// Reads.
    Read,
    /// Polled requests.
    Poll,
}

/// The hardware queues of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// The first one's index; hardware queue `n` is queue `n + 1` of the controller.
    pub offset: u16,
    /// How many there are. A kind without queues is not mapped.
    pub count: u16,
}

/// The I/O queues of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    default: u16,
    read: u16,
    poll: u16,
    shared: bool,
}

impl Plan {
    /// Plans the queues, when the controller granted so many and the platform gave `vectors`, the
    /// admin queue's included.
    pub fn new(wanted: &Wanted, granted: u16, vectors: u16) -> Self {
        if granted == 0 {
            return Self {
                default: 0,
                read: 0,
                poll: 0,
                shared: false,
            };
        }
        let poll = wanted.polled(granted);
        let own = vectors.saturating_sub(1);
        let (default, read) = irq_sets(own.min(granted - poll), wanted.write_queues);
        Self {
            default,
            read,
            poll,
            shared: own == 0,
        }
    }

    /// How many I/O queues there are.
    pub fn total(&self) -> u16 {
        self.interrupting().saturating_add(self.poll)
    }

    /// How many of them have an interrupt.
    fn interrupting(&self) -> u16 {
        self.default.saturating_add(self.read)
    }

    /// Which hardware queues are of a kind.
    pub fn set(&self, kind: Kind) -> Set {
        let (offset, count) = match kind {
            Kind::Default => (0, self.default),
            Kind::Read => (self.default, self.read),
            Kind::Poll => (self.interrupting(), self.poll),
        };
        Set { offset, count }
    }

    /// What I/O queue `qid` is for.
    pub fn kind(&self, qid: u16) -> Option<Kind> {
        let index = qid.checked_sub(1)?;
        [Kind::Default, Kind::Read, Kind::Poll]
            .into_iter()
            .find(|kind| self.set(*kind).contains(index))
    }

    /// The vector of I/O queue `qid`: none if it is polled, or does not exist.
    pub fn vector(&self, qid: u16) -> Option<u16> {
        match self.kind(qid)? {
            Kind::Poll => None,
            Kind::Default | Kind::Read if self.shared => Some(0),
            Kind::Default | Kind::Read => Some(qid),
        }
    }

    /// Whether I/O queue `qid` has a vector of its own, which may be moderated.
    pub fn dedicated(&self, qid: u16) -> bool {
        self.vector(qid).is_some_and(|vector| vector != 0)
    }
}

impl Set {
    fn contains(self, index: u16) -> bool {
        index
            .checked_sub(self.offset)
            .is_some_and(|nth| nth < self.count)
    }
}
