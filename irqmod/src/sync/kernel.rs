// SPDX-License-Identifier: GPL-2.0

//! The kernel's own atomics.

use ::core::cell::UnsafeCell;

pub(crate) use ::kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed, //
};

/// A counter that takes no part in the protocol.
///
/// Each access is one instruction, the `READ_ONCE` and `WRITE_ONCE` of C: an [`Atomic`] calls a C
/// helper for each, and an interrupt counts in several places.
pub(crate) struct Counter(UnsafeCell<usize>);

// SAFETY: All accesses are single, volatile and of an aligned machine word.
unsafe impl Sync for Counter {}

impl Counter {
    pub(crate) const fn new(value: usize) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn load(&self, _: Relaxed) -> usize {
        // SAFETY: Valid and aligned; see above.
        unsafe { self.0.get().read_volatile() }
    }

    #[inline(always)]
    pub(crate) fn store(&self, value: usize, _: Relaxed) {
        // SAFETY: Valid and aligned; see above.
        unsafe { self.0.get().write_volatile(value) }
    }
}
