// SPDX-License-Identifier: GPL-2.0

//! The admin commands that a transport itself sends. All others come from nvme-core.

use crate::{
    cid::CommandId,
    queue::{
        Entries,
        SQE_BYTES, //
    },
};

/// Number of dwords in a command.
const DWORDS: usize = SQE_BYTES / size_of::<u32>();

/// A submission queue entry, by dwords in the CPU's byte order.
///
/// ```text
///     dword 0     CID 31:16, PSDT 15:14, FUSE 9:8, OPC 7:0
///     dword 6-7   PRP1
///     dword 10-   what the command says
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command([u32; DWORDS]);

/// OPC of the commands here.
mod opcode {
    pub(super) const DELETE_SQ: u32 = 0x00;
    pub(super) const CREATE_SQ: u32 = 0x01;
    pub(super) const DELETE_CQ: u32 = 0x04;
    pub(super) const CREATE_CQ: u32 = 0x05;
    pub(super) const ABORT: u32 = 0x08;
    pub(super) const ASYNC_EVENT: u32 = 0x0c;
}

/// PC of Create Queue: the ring is one piece of memory.
const CONTIGUOUS: u32 = 1 << 0;

/// IEN of Create CQ: completions raise interrupts.
const INTERRUPTS: u32 = 1 << 1;

/// QPRIO of Create SQ, which counts if the user turned weighted round robin on: medium.
const PRIORITY_MEDIUM: u32 = 2 << 1;

impl Command {
    /// Create I/O Completion Queue `qid` in the memory at `ring`; without a vector it is polled.
    pub const fn create_cq(qid: u16, entries: Entries, ring: u64, vector: Option<u16>) -> Self {
        let interrupt = match vector {
            Some(vector) => high(vector) | INTERRUPTS,
            None => 0,
        };
        Self::new(
            opcode::CREATE_CQ,
            ring,
            high(entries.zero_based()) | qid as u32,
            interrupt | CONTIGUOUS,
        )
    }

    /// Create I/O Submission Queue `qid` in the memory at `ring`, to complete in queue `cqid`.
    pub const fn create_sq(qid: u16, entries: Entries, ring: u64, cqid: u16) -> Self {
        Self::new(
            opcode::CREATE_SQ,
            ring,
            high(entries.zero_based()) | qid as u32,
            high(cqid) | PRIORITY_MEDIUM | CONTIGUOUS,
        )
    }

    /// Delete I/O Completion Queue; its submission queue must be gone.
    pub const fn delete_cq(qid: u16) -> Self {
        Self::new(opcode::DELETE_CQ, 0, qid as u32, 0)
    }

    /// Delete I/O Submission Queue.
    pub const fn delete_sq(qid: u16) -> Self {
        Self::new(opcode::DELETE_SQ, 0, qid as u32, 0)
    }

    /// Abort the command `cid` of submission queue `sqid`.
    pub const fn abort(sqid: u16, cid: CommandId) -> Self {
        Self::new(opcode::ABORT, 0, high(cid.raw()) | sqid as u32, 0)
    }

    /// Asynchronous Event Request: completes when the controller has something to tell.
    pub const fn async_event() -> Self {
        Self::new(opcode::ASYNC_EVENT, 0, 0, 0).with_cid(CommandId::AEN)
    }

    /// The same command with an identifier; nvme-core chooses its own.
    pub const fn with_cid(mut self, cid: CommandId) -> Self {
        self.0[0] = self.0[0] & 0xffff | high(cid.raw());
        self
    }

    /// The entry as it lies in the ring.
    pub fn to_bytes(&self) -> [u8; SQE_BYTES] {
        let mut bytes = [0; SQE_BYTES];
        let little_endian = self.0.iter().flat_map(|dword| dword.to_le_bytes());
        for (to, from) in bytes.iter_mut().zip(little_endian) {
            *to = from;
        }
        bytes
    }

    const fn new(opcode: u32, prp1: u64, dword10: u32, dword11: u32) -> Self {
        let mut dwords = [0; DWORDS];
        dwords[0] = opcode;
        dwords[6] = prp1 as u32;
        dwords[7] = (prp1 >> 32) as u32;
        dwords[10] = dword10;
        dwords[11] = dword11;
        Self(dwords)
    }
}

/// Puts a word in bits 31:16.
const fn high(word: u16) -> u32 {
    (word as u32) << 16
}
