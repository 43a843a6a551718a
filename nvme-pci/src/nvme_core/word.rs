// SPDX-License-Identifier: GPL-2.0

//! Words that several contexts read and write, without read-modify-write.
//!
//! The kernel crate's `Atomic` is the same thing, but each of its loads and stores is a call of a
//! C helper. These are single instructions, which is what the data path can afford: a volatile
//! access of an aligned word is what `READ_ONCE` and `WRITE_ONCE` are in C.

use core::{
    cell::UnsafeCell,
    sync::atomic::{
        compiler_fence,
        Ordering, //
    }, //
};
use kernel::sync::atomic;

mod sealed {
    pub(crate) trait Value: Copy {}
    impl Value for bool {}
    impl Value for u32 {}
    impl<T> Value for *mut T {}
}

/// A word that can be read and written at once.
#[repr(transparent)]
pub(crate) struct Word<T: sealed::Value>(UnsafeCell<T>);

// SAFETY: all accesses through a shared reference are single, volatile and of a machine word.
unsafe impl<T: sealed::Value> Sync for Word<T> {}
// SAFETY: a plain value; what a pointer points to is the user's matter.
unsafe impl<T: sealed::Value> Send for Word<T> {}

impl<T: sealed::Value> Word<T> {
    /// A word with `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// `READ_ONCE`.
    #[inline(always)]
    pub(crate) fn load(&self) -> T {
        // SAFETY: valid and aligned; a value that is written as a whole is read as a whole.
        unsafe { self.0.get().read_volatile() }
    }

    /// `WRITE_ONCE`.
    #[inline(always)]
    pub(crate) fn store(&self, value: T) {
        // SAFETY: valid and aligned; see `load`.
        unsafe { self.0.get().write_volatile(value) }
    }
}

/// Where the hardware keeps loads in order, and stores in order (x86), a volatile access is also an
/// acquire or a release, once the compiler is kept from moving plain accesses across it.
impl Word<u32> {
    /// `smp_load_acquire`.
    #[inline(always)]
    pub(crate) fn load_acquire(&self) -> u32 {
        if cfg!(CONFIG_X86) {
            let value = self.load();
            compiler_fence(Ordering::Acquire);
            return value;
        }
        // SAFETY: valid and aligned, and all accesses are atomic.
        unsafe { atomic::atomic_load(self.0.get(), atomic::Acquire) }
    }

    /// `smp_store_release`.
    #[inline(always)]
    pub(crate) fn store_release(&self, value: u32) {
        if cfg!(CONFIG_X86) {
            compiler_fence(Ordering::Release);
            return self.store(value);
        }
        // SAFETY: valid and aligned, and all accesses are atomic.
        unsafe { atomic::atomic_store(self.0.get(), value, atomic::Release) }
    }
}
