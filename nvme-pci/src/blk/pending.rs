// SPDX-License-Identifier: GPL-2.0

//! The requests that a device has.
//!
//! A device names a request by its command identifier, and it may name any. The table knows which
//! were given to it, so a made-up, repeated or late identifier finds nothing; a tag set alone would
//! find a request that is idle. It is also what a completion that comes too early meets: before
//! there is a tag set, nothing was given.

use super::request::InFlight;
use crate::{
    cid::{
        CommandId,
        Slot,
        Slots, //
    },
    io_queue::IoQueue,
    nvme_core::{
        rings::Sqe,
        word::Word, //
    }, //
};
use core::ptr::NonNull;
use irqmod::DrainRight;
use kernel::{
    bindings,
    prelude::*, //
};

/// The requests of one queue that the device has.
///
/// Anybody with a request may put it. What takes names the queue by the right to drain it, not the
/// table: so it can't be the table of another queue, and nobody else takes from it now.
///
/// # Invariants
///
/// - While a slot is taken, the entry of its tag in `requests` is the request that was put with it;
///   null if it was the event.
/// - Only a holder of the right to drain the queue whose `pending` this is empties slots.
pub(crate) struct Pending {
    slots: Slots<KVVec<Slot>>,
    requests: KVVec<Word<*mut bindings::request>>,
}

// SAFETY: the table hands requests over between CPUs, which is what requests are for.
unsafe impl Send for Pending {}
// SAFETY: as above; each entry is used by the owner of its slot only.
unsafe impl Sync for Pending {}

impl Pending {
    /// A table for tags below `tags`.
    pub(crate) fn new(tags: usize) -> Result<Self> {
        let mut slots = KVVec::with_capacity(tags, GFP_KERNEL)?;
        let mut requests = KVVec::with_capacity(tags, GFP_KERNEL)?;
        for _ in 0..tags {
            slots.push(Slot::new(), GFP_KERNEL)?;
            requests.push(Word::new(core::ptr::null_mut()), GFP_KERNEL)?;
        }
        Ok(Self {
            slots: Slots::new(slots),
            requests,
        })
    }

    /// Forgets everything, for a new life of `queue`.
    pub(crate) fn clear(queue: &mut DrainRight<'_, IoQueue>) {
        queue.pending.slots.clear();
    }

    /// Notes `rq` as given to the device, and calls `push` with its command to really do so. Gives
    /// it back if its tag can not be or is taken.
    #[inline]
    pub(crate) fn put(&self, rq: InFlight, push: impl FnOnce(&Sqe)) -> Result<(), InFlight> {
        let cid = rq.cid();
        let Some(entry) = self.requests.get(usize::from(cid.tag())) else {
            return Err(rq);
        };
        // INVARIANT: the entry is written while the slot is idle, before it is taken (release), and
        // the tag is the request's alone.
        let note = || entry.store(rq.as_raw().as_ptr());
        if !self.slots.put_after(cid, note) {
            return Err(rq);
        }
        push(rq.command());
        Ok(())
    }

    /// Takes back the request of `queue` that the device names.
    #[inline]
    pub(crate) fn take(queue: &mut DrainRight<'_, IoQueue>, cid: CommandId) -> Option<InFlight> {
        let this = &queue.pending;
        if !this.slots.take(cid) {
            return None;
        }
        let entry = this.requests.get(usize::from(cid.tag()))?;
        let rq = NonNull::new(entry.load())?;
        // SAFETY: by the invariants this request was put with `cid`, and taking the slot makes it
        // ours: nobody else empties slots of this table while we have the right to drain its queue.
        Some(unsafe { InFlight::from_raw(rq) })
    }

    /// Notes that the event request was given to the device. `false`: it has it.
    pub(crate) fn put_event(&self) -> bool {
        let Some(entry) = self.requests.get(usize::from(CommandId::AEN.tag())) else {
            return false;
        };
        // INVARIANT: as in `put`; a tag that a request has is not idle.
        let note = || entry.store(core::ptr::null_mut());
        self.slots.put_after(CommandId::AEN, note)
    }

    /// Takes the event request of `queue` back.
    #[inline]
    pub(crate) fn take_event(queue: &mut DrainRight<'_, IoQueue>) -> bool {
        queue.pending.slots.take(CommandId::AEN)
    }
}
