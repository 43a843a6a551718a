// SPDX-License-Identifier: GPL-2.0

//! What takes the place of the crate's atomics: numbers of words that live in the state being
//! explored. Each access to a word of the protocol is a step.

use crate::engine::{
    self,
    Op, //
};
use std::marker::PhantomData;

/// No ordering: of the exploration's accesses all are ordered.
pub(crate) struct Relaxed;
/// As [`Relaxed`].
pub(crate) struct Acquire;
/// As [`Relaxed`].
pub(crate) struct Full;

/// An ordering that a load can have.
pub(crate) trait AcquireOrRelaxed {
    /// Whether it may begin a change, which is one step together with it.
    const BEGINS: bool;
}

impl AcquireOrRelaxed for Acquire {
    const BEGINS: bool = false;
}

impl AcquireOrRelaxed for Relaxed {
    const BEGINS: bool = true;
}

/// A word of the protocol.
pub(crate) struct Atomic<T>(u32, PhantomData<T>);

/// A failed `cmpxchg`, in what [`engine::step`] returns.
pub(crate) const FAILED: u64 = 1 << 32;

impl Atomic<u32> {
    pub(crate) fn new(v: u32) -> Self {
        Self(engine::new_atomic(v), PhantomData)
    }

    pub(crate) fn load<O: AcquireOrRelaxed>(&self, _: O) -> u32 {
        engine::step(Op::Load {
            word: self.0,
            begins: O::BEGINS,
        }) as u32
    }

    pub(crate) fn cmpxchg(&self, old: u32, new: u32, _: Full) -> Result<u32, u32> {
        let result = engine::step(Op::Change {
            word: self.0,
            old,
            new,
        });
        match result & FAILED {
            0 => Ok(result as u32),
            _ => Err(result as u32),
        }
    }

    pub(crate) fn fetch_add(&self, v: u32, _: Full) -> u32 {
        engine::step(Op::Add { word: self.0, v }) as u32
    }

    pub(crate) fn fetch_sub(&self, v: u32, _: Full) -> u32 {
        engine::step(Op::Add {
            word: self.0,
            v: v.wrapping_neg(),
        }) as u32
    }
}

/// A word that only the one who drains accesses, which is no step; or a count, which is nothing.
pub(crate) struct Counter(u32);

impl Counter {
    pub(crate) fn new(v: usize) -> Self {
        Self(engine::new_counter(v))
    }

    pub(crate) fn load(&self, _: Relaxed) -> usize {
        engine::load_counter(self.0)
    }

    pub(crate) fn store(&self, v: usize, _: Relaxed) {
        engine::store_counter(self.0, v);
    }
}

/// One of `n` branches.
pub(crate) fn choose(n: u32) -> u32 {
    engine::step(Op::Choose(n)) as u32
}
