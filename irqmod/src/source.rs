// SPDX-License-Identifier: GPL-2.0

//! What a driver implements.

use crate::{
    Budget,
    Drain, //
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};

/// A source, with the proof that its holder is, now, the only one who drains it.
///
/// Dereferences to the source, and is the only way to drain one: whoever has the right to drain a
/// queue can't drain another one with it. Only the moderator makes one. It can neither be copied
/// nor leave the context it was made in.
///
/// # Invariants
///
/// While a value exists, no other value for the same source can be used.
pub struct DrainRight<'a, S>(&'a S, PhantomData<*mut ()>);

impl<'a, S> DrainRight<'a, S> {
    /// The caller owns `source` as described in [`crate::state`].
    #[inline(always)]
    pub(crate) fn new(source: &'a S) -> Self {
        // INVARIANT: only the moderator, and a line without an interrupt, call this, in a context
        // that owns the source.
        Self(source, PhantomData)
    }

    /// The same right, lent: for functions that take it in a register, and not by its address.
    #[inline(always)]
    pub fn reborrow(&mut self) -> DrainRight<'_, S> {
        // INVARIANT: `self` can't be used before the new value is gone.
        DrainRight(self.0, PhantomData)
    }

    /// The source, for longer than this is borrowed.
    #[inline(always)]
    pub fn source(&self) -> &'a S {
        self.0
    }
}

impl<S: Source> DrainRight<'_, S> {
    /// [`Source::drain`].
    #[inline(always)]
    pub fn drain(&mut self, budget: Budget) -> Drain {
        S::drain(self, budget)
    }
}

impl<S> Deref for DrainRight<'_, S> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        self.0
    }
}

/// A completion queue that raises an interrupt.
///
/// Implemented by a driver. None of the methods may sleep, and none may mask the interrupt.
pub trait Source: Send + Sync + Sized + 'static {
    /// Whether a completion is visible in the queue.
    ///
    /// Called in any context and concurrently with everything, without a [`DrainRight`]: the answer
    /// may be outdated at once. Reads memory only, never the device.
    fn pending(&self) -> bool;

    /// Takes at most `budget` completions of `queue`, tells the device the new head of the queue
    /// once if there were any and the device is [`reachable`](Self::reachable), and completes the
    /// requests.
    ///
    /// Hardirq without a lock, or softirq or task context under the source's queue lock. Must not
    /// call back into the moderator of this source.
    fn drain(queue: &mut DrainRight<'_, Self>, budget: Budget) -> Drain;

    /// Commands that the device has and has not completed; [`None`] if the driver does not know.
    ///
    /// Hardirq, or under the source's queue lock. An estimate, from memory: never reads the device.
    fn in_flight(&self) -> Option<u32> {
        None
    }

    /// Whether the device's registers may be touched (a PCI channel in its normal state).
    ///
    /// Called in any context. While this is false, a line that is masked stays masked, and nothing is
    /// deferred. A line that is open stays open: to mask may be to write to the device.
    fn reachable(&self) -> bool {
        true
    }
}
