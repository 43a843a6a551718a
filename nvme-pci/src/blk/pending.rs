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
    nvme_core::{
        rings::Sqe,
        word::Word, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*, //
};

/// The requests of one queue that the device has.
///
/// # Invariants
///
/// While a slot is taken by an identifier other than [`CommandId::AEN`]'s, the entry of its tag in
/// `requests` is the request that was put with it.
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

    /// Forgets everything, for a new life of the queue.
    pub(crate) fn clear(&self) {
        self.slots.clear();
    }

    /// Notes `rq` as given to the device, and calls `push` with its command to really do so. Gives
    /// it back if its tag can not be or is taken.
    #[inline]
    pub(crate) fn put(&self, rq: InFlight, push: impl FnOnce(&Sqe)) -> Result<(), InFlight> {
        let cid = rq.cid();
        let Some(entry) = self.requests.get(usize::from(cid.tag())) else {
            return Err(rq);
        };
        // INVARIANT: the entry is written before the slot is taken (release), and the tag is the
        // request's alone.
        entry.store(rq.as_raw().as_ptr());
        if !self.slots.put(cid) {
            return Err(rq);
        }
        push(rq.command());
        Ok(())
    }

    /// Takes back the request that the device names.
    #[inline]
    pub(crate) fn take(&self, cid: CommandId) -> Option<InFlight> {
        if !self.slots.take(cid) {
            return None;
        }
        let entry = self.requests.get(usize::from(cid.tag()))?;
        let rq = NonNull::new(entry.load())?;
        // SAFETY: by the invariants this request was put with `cid`, and taking the slot makes it
        // ours: a slot is taken once. Only the identifier of an event has no request, and that is
        // not looked for here, see `take_event`.
        Some(unsafe { InFlight::from_raw(rq) })
    }

    /// Notes that the event request was given to the device. `false`: it has it.
    pub(crate) fn put_event(&self) -> bool {
        self.slots.put(CommandId::AEN)
    }

    /// Takes the event request back.
    pub(crate) fn take_event(&self) -> bool {
        self.slots.take(CommandId::AEN)
    }
}
