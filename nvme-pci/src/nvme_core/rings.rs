// SPDX-License-Identifier: GPL-2.0

//! The memory that the device and the driver share: the two rings of a queue.
//!
//! The device writes completion entries at any time, so no reference to one is ever made: entries
//! are copied out by volatile reads, the phase first (see [`CompletionMemory::status`]).

use crate::queue::{
    Cqe,
    Entries,
    SqRing,
    CQE_BYTES,
    SQE_BYTES, //
};
use kernel::{
    device,
    dma::Coherent,
    pci,
    prelude::*,
    sync::barrier, //
};

/// A submission entry as it lies in the ring.
pub(crate) type Sqe = [u64; SQE_BYTES / 8];
type RawCqe = [u32; CQE_BYTES / 4];

/// Where the status and the phase bit are: the upper half of the last dword.
const STATUS_DWORD: usize = CQE_BYTES / 4 - 1;

/// The submission ring and its memory; lives inside the SQ lock.
pub(crate) struct Submission {
    ring: SqRing,
    memory: Coherent<[Sqe]>,
}

impl Submission {
    /// Allocates a ring.
    pub(crate) fn new(dev: &pci::Device<device::Bound>, entries: Entries) -> Result<Self> {
        let len = usize::from(entries.get());
        Ok(Self {
            ring: SqRing::new(entries),
            memory: Coherent::zeroed_slice(dev.as_ref(), len, GFP_KERNEL)?,
        })
    }

    /// The address to give to the device.
    pub(crate) fn dma_address(&self) -> u64 {
        self.memory.dma_address()
    }

    /// Empties the ring, for a new life of the queue.
    pub(crate) fn reset(&mut self) {
        self.ring.reset();
    }

    /// Copies `sqe` into the next slot.
    #[inline]
    pub(crate) fn push(&mut self, sqe: &Sqe) {
        let slot = usize::from(self.ring.slot());
        let first: *mut Sqe = self.memory.as_mut_ptr().cast();
        // SAFETY: `slot` is below the ring's entries, which is the length of `memory`, and
        // `&mut self` makes this the only writer. The device reads the slot only after the
        // doorbell has been rung.
        unsafe { first.add(slot).write_volatile(*sqe) };
        self.ring.push();
    }

    /// The value for the doorbell, if it must be rung now.
    #[inline]
    pub(crate) fn ring(&mut self, last: bool) -> Option<u16> {
        self.ring.ring(last)
    }
}

/// The memory of a completion ring.
pub(crate) struct CompletionMemory {
    memory: Coherent<[RawCqe]>,
}

impl CompletionMemory {
    /// Allocates the ring.
    pub(crate) fn new(dev: &pci::Device<device::Bound>, entries: Entries) -> Result<Self> {
        let len = usize::from(entries.get());
        Ok(Self {
            memory: Coherent::zeroed_slice(dev.as_ref(), len, GFP_KERNEL)?,
        })
    }

    /// The address to give to the device.
    pub(crate) fn dma_address(&self) -> u64 {
        self.memory.dma_address()
    }

    #[inline]
    fn dword(&self, head: u16, n: usize) -> u32 {
        let index = usize::from(head) * (CQE_BYTES / 4) + n;
        if index >= self.memory.len() * (CQE_BYTES / 4) {
            return 0;
        }
        let first: *const u32 = self.memory.as_ptr().cast();
        // SAFETY: `index` is within the ring, as just checked. The device may write at the same
        // time, hence volatile.
        let raw = unsafe { first.add(index).read_volatile() };
        u32::from_le(raw)
    }

    /// Status and phase of the entry at `head`. Nothing else of the entry may be read before the
    /// phase said that it is new.
    #[inline]
    pub(crate) fn status(&self, head: u16) -> u16 {
        (self.dword(head, STATUS_DWORD) >> 16) as u16
    }

    /// The whole entry at `head`, once its phase said that it is new.
    #[inline]
    pub(crate) fn read(&self, head: u16) -> Cqe {
        // The phase was read from the entry's last dword; order that before the rest.
        barrier::dma_mb(barrier::Read);
        Cqe::from_dwords([
            self.dword(head, 0),
            self.dword(head, 1),
            self.dword(head, 2),
            self.dword(head, 3),
        ])
    }

    /// Clears all phases, for a new life of the queue. The device does not own the ring now.
    pub(crate) fn reset(&self) {
        let first: *mut RawCqe = self.memory.as_mut_ptr().cast();
        for index in 0..self.memory.len() {
            // SAFETY: `index` is in range; any value is valid, and readers use volatile reads.
            unsafe { first.add(index).write_volatile([0; CQE_BYTES / 4]) };
        }
    }
}
