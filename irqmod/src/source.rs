// SPDX-License-Identifier: GPL-2.0

//! What a driver implements.

use crate::{
    Budget,
    Drain, //
};
use core::marker::PhantomData;

/// Proof that its holder is, now, the only one who drains this source.
///
/// Only the moderator makes one. It can neither be copied nor leave the context it was made in.
///
/// # Invariants
///
/// While a value exists, no other value exists for the same source.
pub struct DrainRight<'a>(PhantomData<(&'a mut (), *mut ())>);

impl DrainRight<'_> {
    /// The caller owns the source as described in [`crate::state`].
    #[inline]
    pub(crate) fn new() -> Self {
        // INVARIANT: only the moderator calls this, in a context that owns the source.
        Self(PhantomData)
    }
}

/// A completion queue that raises an interrupt.
///
/// Implemented by a driver. None of the methods may sleep, and none may mask the interrupt.
pub trait Source: Send + Sync + 'static {
    /// Whether a completion is visible in the queue.
    ///
    /// Called in any context and concurrently with everything, without a [`DrainRight`]: the answer
    /// may be outdated at once. Reads memory only, never the device.
    fn pending(&self) -> bool;

    /// Takes at most `budget` completions, tells the device the new head of the queue once if there
    /// were any and the device is [`reachable`](Self::reachable), and completes the requests.
    ///
    /// Hardirq without a lock, or softirq or task context under the source's queue lock. Must not
    /// call back into the moderator of this source.
    fn drain(&self, right: &mut DrainRight<'_>, budget: Budget) -> Drain;

    /// Commands that the device has and has not completed; [`None`] if the driver does not know.
    ///
    /// Hardirq, or under the source's queue lock. An estimate, from memory: never reads the device.
    fn in_flight(&self) -> Option<u32> {
        None
    }

    /// Whether the device's registers may be touched (a PCI channel in its normal state).
    ///
    /// Called in any context. While this is false, lines stay masked and nothing is deferred.
    fn reachable(&self) -> bool {
        true
    }
}
