// SPDX-License-Identifier: GPL-2.0

//! The hardware queues of a controller.
//!
//! A queue is made when it is first needed and kept over resets. All go at the end of the teardown,
//! because their rings are memory of the bound device, which the controller's block may outlive.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full, //
    }, //
};

/// A table of queues by queue identifier; 0 is the admin queue.
///
/// # Invariants
///
/// Each pointer is NULL or came from `KBox::into_raw` of a pinned box and is owned by the table.
pub(super) struct Queues<Q> {
    slots: KVVec<Atomic<*mut Q>>,
}

// SAFETY: the table owns its queues.
unsafe impl<Q: Send> Send for Queues<Q> {}
// SAFETY: through a shared table one gets shared queues.
unsafe impl<Q: Send + Sync> Sync for Queues<Q> {}

impl<Q> Queues<Q> {
    /// A table with room for `capacity` queues.
    pub(super) fn new(capacity: usize) -> Result<Self> {
        let mut slots = KVVec::with_capacity(capacity, GFP_KERNEL)?;
        for _ in 0..capacity {
            slots.push(Atomic::new(core::ptr::null_mut()), GFP_KERNEL)?;
        }
        Ok(Self { slots })
    }

    /// The queue `qid`.
    ///
    /// # Safety
    ///
    /// [`Self::clear`] is not called during `'a`.
    pub(super) unsafe fn get<'a>(&self, qid: u16) -> Option<Pin<&'a Q>> {
        let queue = self.slots.get(usize::from(qid))?.load(Acquire);
        // SAFETY: owned by the table by its invariants, and not freed for `'a`; never moved.
        unsafe { queue.as_ref().map(|queue| Pin::new_unchecked(queue)) }
    }

    /// Adds the queue `qid`, which is not there yet.
    pub(super) fn add(&self, qid: u16, queue: Pin<KBox<Q>>) -> Result {
        let slot = self.slots.get(usize::from(qid)).ok_or(EINVAL)?;
        // SAFETY: the queue is not moved before it is dropped.
        let raw = KBox::into_raw(unsafe { Pin::into_inner_unchecked(queue) });
        // INVARIANT: `raw` is such a pointer.
        if slot.cmpxchg(core::ptr::null_mut(), raw, Full).is_err() {
            // SAFETY: `raw` came from `into_raw` just now and was not given away.
            drop(unsafe { KBox::from_raw(raw) });
            return Err(EEXIST);
        }
        Ok(())
    }

    /// How many queues fit.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Frees all queues.
    ///
    /// # Safety
    ///
    /// No reference from [`Self::get`] is in use, nor any that was derived from one.
    pub(super) unsafe fn clear(&self) {
        for slot in &self.slots {
            let raw = slot.xchg(core::ptr::null_mut(), Full);
            if !raw.is_null() {
                // SAFETY: by the invariants, and as nobody else has a reference.
                drop(unsafe { KBox::from_raw(raw) });
            }
        }
    }
}

impl<Q> Drop for Queues<Q> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no reference is left.
        unsafe { self.clear() };
    }
}
