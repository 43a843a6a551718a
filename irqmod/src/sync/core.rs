// SPDX-License-Identifier: GPL-2.0

//! The facade on Rust's own atomics, or on those of the model checker.
//!
//! A fully ordered operation is spelt fence, operation, fence. A failed `cmpxchg` is a relaxed load
//! and orders nothing.

#[cfg(loom)]
use super::loom as primitive;
#[cfg(not(loom))]
use ::core::sync::atomic as primitive;

use ::core::sync::atomic::AtomicUsize;
use primitive::{
    fence,
    AtomicU32,
    Ordering::{
        self as Rust,
        SeqCst, //
    }, //
};

/// No ordering.
pub(crate) struct Relaxed;
/// What follows stays behind the load.
pub(crate) struct Acquire;
/// Everything stays where it is.
pub(crate) struct Full;

/// An ordering that a load can have.
pub(crate) trait AcquireOrRelaxed {
    /// Rust's name for it.
    const LOAD: Rust;
}

impl AcquireOrRelaxed for Acquire {
    const LOAD: Rust = Rust::Acquire;
}

impl AcquireOrRelaxed for Relaxed {
    const LOAD: Rust = Rust::Relaxed;
}

/// A word of the protocol.
pub(crate) struct Atomic<T>(AtomicU32, ::core::marker::PhantomData<T>);

impl Atomic<u32> {
    /// A word with the value `v`.
    pub(crate) fn new(v: u32) -> Self {
        Self(AtomicU32::new(v), ::core::marker::PhantomData)
    }

    /// Reads.
    pub(crate) fn load<O: AcquireOrRelaxed>(&self, _: O) -> u32 {
        self.0.load(O::LOAD)
    }

    /// Writes `new` if the value is `old`, fully ordered; else reads, without any order.
    pub(crate) fn cmpxchg(&self, old: u32, new: u32, _: Full) -> Result<u32, u32> {
        let now = self.0.load(Rust::Relaxed);
        if now != old {
            return Err(now);
        }
        fence(SeqCst);
        let result = self
            .0
            .compare_exchange(old, new, Rust::Relaxed, Rust::Relaxed);
        if result.is_ok() {
            fence(SeqCst);
        }
        result
    }

    /// Adds, wrapping, and returns what there was; fully ordered.
    pub(crate) fn fetch_add(&self, v: u32, _: Full) -> u32 {
        fence(SeqCst);
        let old = self.0.fetch_add(v, Rust::Relaxed);
        fence(SeqCst);
        old
    }

    /// Subtracts, wrapping, and returns what there was; fully ordered.
    pub(crate) fn fetch_sub(&self, v: u32, _: Full) -> u32 {
        fence(SeqCst);
        let old = self.0.fetch_sub(v, Rust::Relaxed);
        fence(SeqCst);
        old
    }
}

/// A counter that takes no part in the protocol, and that no model looks into.
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    /// A counter with the value `v`.
    pub(crate) const fn new(v: usize) -> Self {
        Self(AtomicUsize::new(v))
    }

    /// Reads.
    pub(crate) fn load(&self, _: Relaxed) -> usize {
        self.0.load(::core::sync::atomic::Ordering::Relaxed)
    }

    /// Writes.
    pub(crate) fn store(&self, v: usize, _: Relaxed) {
        self.0.store(v, ::core::sync::atomic::Ordering::Relaxed);
    }
}
