// SPDX-License-Identifier: GPL-2.0

//! The PRP lists of a queue: one for each tag, allocated with the queue.
//!
//! So `queue_rq` never allocates. A list is one chunk that holds the PRPs of the largest transfer:
//! 1 KiB for up to 512 KiB, else a page for up to 2 MiB; lists are never chained.

use crate::prp::{
    self,
    PrpList, //
};
use kernel::{
    bindings,
    device,
    dma::Coherent,
    pci,
    prelude::*, //
};

/// Lists are allocated in blocks of this size, as big contiguous memory is hard to get.
const BLOCK: usize = 64 << 10;

/// The lists of a queue.
pub(crate) struct PrpLists {
    blocks: KVec<Coherent<[u64]>>,
    tags: usize,
    /// PRPs of a list.
    entries: usize,
}

impl PrpLists {
    /// Lists for `tags` requests of up to `max_transfer` bytes.
    pub(crate) fn new(
        dev: &pci::Device<device::Bound>,
        tags: usize,
        max_transfer: usize,
    ) -> Result<Self> {
        let size = if max_transfer <= prp::SMALL_MAX_BYTES {
            prp::SMALL_LIST
        } else {
            prp::CTRL_PAGE
        };
        let count = tags.div_ceil(BLOCK / size);
        let mut blocks = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            let block = Coherent::zeroed_slice(dev.as_ref(), BLOCK / size_of::<u64>(), GFP_KERNEL)?;
            blocks.push(block, GFP_KERNEL)?;
        }
        Ok(Self {
            blocks,
            tags,
            entries: size / size_of::<u64>(),
        })
    }

    /// The list of the request with `tag`.
    ///
    /// # Safety
    ///
    /// The caller owns the request, and the device does not use its list.
    #[inline]
    pub(super) unsafe fn of_tag(&self, tag: i32) -> Option<List> {
        let tag = usize::try_from(tag).ok().filter(|tag| *tag < self.tags)?;
        let per_block = BLOCK / size_of::<u64>() / self.entries;
        let block = self.blocks.get(tag / per_block)?;
        let first = tag % per_block * self.entries;
        let base: *mut u64 = block.as_mut_ptr().cast();
        Some(List {
            // SAFETY: `first` and the list behind it are within the block.
            base: unsafe { base.add(first) },
            dma: block.dma_address() + (first * size_of::<u64>()) as bindings::dma_addr_t,
            entries: self.entries,
        })
    }
}

/// One list.
///
/// # Invariants
///
/// `base` is the start of `entries` PRPs that only the holder writes, and `dma` their address.
pub(super) struct List {
    base: *mut u64,
    dma: u64,
    entries: usize,
}

impl PrpList for List {
    fn pages(&self) -> usize {
        1
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn page_dma(&self, _page: usize) -> u64 {
        self.dma
    }

    #[inline]
    fn set(&mut self, _page: usize, index: usize, value: u64) {
        if index < self.entries {
            // SAFETY: in range, by the invariants.
            unsafe { self.base.add(index).write_volatile(value.to_le()) };
        }
    }
}
