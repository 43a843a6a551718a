// SPDX-License-Identifier: GPL-2.0

//! The kernel's atomics, everywhere.
//!
//! In the kernel these are `kernel::sync::atomic`. Elsewhere they offer the same operations with
//! the same orderings and nothing stronger: what is proved on the host must hold in the kernel.

#[cfg(not(CONFIG_RUST_IRQMOD))]
mod core;
#[cfg(CONFIG_RUST_IRQMOD)]
#[allow(unsafe_code)]
mod kernel;
#[cfg(all(loom, not(CONFIG_RUST_IRQMOD)))]
mod loom;

/// Words of one writer at a time, who is ordered with the readers by other means.
pub(crate) struct Words<const N: usize>([Counter; N]);

impl<const N: usize> Words<N> {
    /// Words with these values.
    pub(crate) fn new(words: [u32; N]) -> Self {
        Self(words.map(|word| Counter::new(widen(word))))
    }

    /// Reads one; zero beyond the last.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u32 {
        // CAST: Stored from 32 bits.
        self.0
            .get(i)
            .map_or(0, |counter| counter.load(Relaxed) as u32)
    }

    /// Writes one; nothing beyond the last.
    pub(crate) fn set(&self, i: usize, word: u32) {
        if let Some(counter) = self.0.get(i) {
            counter.store(widen(word), Relaxed);
        }
    }

    /// Reads all.
    #[inline]
    pub(crate) fn load(&self) -> [u32; N] {
        ::core::array::from_fn(|i| self.word(i))
    }

    /// Writes all.
    #[inline]
    pub(crate) fn store(&self, words: [u32; N]) {
        for (counter, word) in self.0.iter().zip(words) {
            counter.store(widen(word), Relaxed);
        }
    }
}

/// Adds to a counter whose only writer is the caller.
#[inline]
pub(crate) fn bump(counter: &Counter, by: u32) {
    counter.store(counter.load(Relaxed).wrapping_add(widen(by)), Relaxed);
}

/// Makes a counter at least `value`; its only writer is the caller.
#[inline]
pub(crate) fn raise(counter: &Counter, value: u32) {
    if widen(value) > counter.load(Relaxed) {
        counter.store(widen(value), Relaxed);
    }
}

/// A word of 32 bits in a machine word, which has at least that many wherever the kernel runs.
#[inline(always)]
pub(crate) const fn widen(word: u32) -> usize {
    // CAST: See above.
    word as usize
}

#[cfg(not(CONFIG_RUST_IRQMOD))]
pub(crate) use self::core::*;
#[cfg(CONFIG_RUST_IRQMOD)]
pub(crate) use self::kernel::*;
