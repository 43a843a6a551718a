// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync::atomic`, as much of it as is used here.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

/// An ordering is a type in the kernel.
pub(crate) trait Order {
    const ORDER: Ordering;
}

pub(crate) struct Acquire;
pub(crate) struct Relaxed;
pub(crate) struct Release;

impl Order for Acquire {
    const ORDER: Ordering = Ordering::Acquire;
}

impl Order for Relaxed {
    const ORDER: Ordering = Ordering::Relaxed;
}

impl Order for Release {
    const ORDER: Ordering = Ordering::Release;
}

/// What has an atomic form.
pub(crate) trait Word {
    type Repr;
}

impl Word for u32 {
    type Repr = AtomicU32;
}

pub(crate) struct Atomic<T: Word>(T::Repr);

impl Atomic<u32> {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    pub(crate) fn load<O: Order>(&self, _: O) -> u32 {
        self.0.load(O::ORDER)
    }

    pub(crate) fn store<O: Order>(&self, value: u32, _: O) {
        self.0.store(value, O::ORDER);
    }
}
