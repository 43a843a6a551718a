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

    /// Where the entry at `head` is. A cursor of this queue is always in range; another one is not
    /// trusted to be.
    #[inline]
    fn entry(&self, head: u16) -> Option<*const u32> {
        let index = usize::from(head);
        if index >= self.memory.len() {
            return None;
        }
        let first: *const RawCqe = self.memory.as_ptr().cast();
        // SAFETY: `index` is within the ring.
        Some(unsafe { first.add(index).cast() })
    }

    /// Status and phase of the entry at `head`. Nothing else of the entry may be read before the
    /// phase said that it is new.
    #[inline]
    pub(crate) fn status(&self, head: u16) -> u16 {
        let Some(entry) = self.entry(head) else {
            return 0;
        };
        // SAFETY: the entry's last dword. The device may write at the same time, hence volatile.
        let raw = unsafe { entry.add(STATUS_DWORD).read_volatile() };
        (u32::from_le(raw) >> 16) as u16
    }

    /// The whole entry at `head`, once its phase said that it is new.
    #[inline]
    pub(crate) fn read(&self, head: u16) -> Option<Cqe> {
        let entry = self.entry(head)?;
        // The phase was read from the entry's last dword; order that before the rest. Where loads
        // are in order (x86) volatile ones are.
        if !cfg!(CONFIG_X86) {
            barrier::dma_mb(barrier::Read);
        }
        // SAFETY: the entry's dwords. The device has given it to us, but may not keep to that, so
        // volatile.
        let dwords = [0, 1, 2, 3].map(|n| unsafe { entry.add(n).read_volatile() });
        Some(Cqe::from_dwords(dwords.map(u32::from_le)))
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
