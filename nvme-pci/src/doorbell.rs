// SPDX-License-Identifier: GPL-2.0

//! Where the doorbells are.
//!
//! From offset 1000h on, BAR 0 holds a pair of doorbells for each queue pair: first the submission
//! queue's tail, then the completion queue's head. CAP.DSTRD says how far apart they are. A doorbell
//! beyond the mapped part of the BAR has no offset here, so it can not be rung.

/// Offset of the first doorbell.
const BASE: usize = 0x1000;

/// Controller Capabilities, the register at offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(u64);

impl Cap {
    /// Takes the register's value.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// Maximum Queue Entries Supported, zero based: 1 means two entries.
    pub const fn mqes(self) -> u16 {
        self.0 as u16
    }

    /// Doorbell Stride: doorbells are `4 << dstrd` bytes apart.
    pub const fn dstrd(self) -> u8 {
        (self.0 >> 32) as u8 & 0xf
    }

    /// Memory Page Size Minimum: the smallest page is `4096 << mpsmin` bytes.
    pub const fn mpsmin(self) -> u8 {
        (self.0 >> 48) as u8 & 0xf
    }
}

/// The doorbells that the mapped part of BAR 0 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbells {
    stride: usize,
    pairs: u32,
}

impl Doorbells {
    /// The doorbells in a BAR of `bar_len` bytes, of which at least the admin queue's must fit.
    pub const fn new(cap: Cap, bar_len: usize) -> Option<Self> {
        let stride = stride(cap.dstrd());
        let fit = bar_len.saturating_sub(BASE) / (2 * stride);
        let pairs = if fit > MAX_PAIRS as usize {
            MAX_PAIRS
        } else {
            fit as u32
        };
        if pairs == 0 {
            return None;
        }
        Some(Self { stride, pairs })
    }

    /// How many bytes of BAR 0 must be mapped for `pairs` queue pairs, the admin queue's included.
    pub const fn bar_bytes(dstrd: u8, pairs: u32) -> usize {
        (2 * stride(dstrd & 0xf))
            .saturating_mul(pairs as usize)
            .saturating_add(BASE)
    }

    /// How many queue pairs have doorbells, the admin queue's included.
    pub const fn queues(&self) -> u32 {
        self.pairs
    }

    /// Offset of the tail doorbell of submission queue `qid`.
    pub fn sq(&self, qid: u16) -> Option<usize> {
        self.nth(qid, 0)
    }

    /// Offset of the head doorbell of completion queue `qid`.
    pub fn cq(&self, qid: u16) -> Option<usize> {
        self.nth(qid, 1)
    }

    fn nth(&self, qid: u16, of_pair: usize) -> Option<usize> {
        if u32::from(qid) >= self.pairs {
            return None;
        }
        let nth = usize::from(qid) * 2 + of_pair;
        nth.checked_mul(self.stride)?.checked_add(BASE)
    }
}

/// Queue identifiers have 16 bits.
const MAX_PAIRS: u32 = 1 << 16;

const fn stride(dstrd: u8) -> usize {
    4 << dstrd
}
