// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync::atomic`, as much of it as is used here, without its calls of C helpers.

use crate::nvme_core::word::Word;

/// An ordering is a type.
pub(crate) struct Acquire;
pub(crate) struct Relaxed;
pub(crate) struct Release;

/// An ordering of a load.
pub(crate) trait Load {
    fn load(word: &Word<u32>) -> u32;
}

/// An ordering of a store.
pub(crate) trait Store {
    fn store(word: &Word<u32>, value: u32);
}

impl Load for Relaxed {
    #[inline(always)]
    fn load(word: &Word<u32>) -> u32 {
        word.load()
    }
}

impl Load for Acquire {
    #[inline(always)]
    fn load(word: &Word<u32>) -> u32 {
        word.load_acquire()
    }
}

impl Store for Relaxed {
    #[inline(always)]
    fn store(word: &Word<u32>, value: u32) {
        word.store(value);
    }
}

impl Store for Release {
    #[inline(always)]
    fn store(word: &Word<u32>, value: u32) {
        word.store_release(value);
    }
}

/// What has an atomic form.
pub(crate) trait Value {
    type Repr;
}

impl Value for u32 {
    type Repr = Word<u32>;
}

pub(crate) struct Atomic<T: Value>(T::Repr);

impl Atomic<u32> {
    pub(crate) const fn new(value: u32) -> Self {
        Self(Word::new(value))
    }

    #[inline(always)]
    pub(crate) fn load<O: Load>(&self, _: O) -> u32 {
        O::load(&self.0)
    }

    #[inline(always)]
    pub(crate) fn store<O: Store>(&self, value: u32, _: O) {
        O::store(&self.0, value);
    }
}
