// SPDX-License-Identifier: GPL-2.0

//! A request whose time is up.

use super::{
    pdu,
    request::Rq, //
};
use crate::cid::CommandId;
use core::marker::PhantomData;
use kernel::{
    bindings, //
};

/// A request that the block layer shows to the timeout handler. It is borrowed: the device has it,
/// so it can be looked at and marked, but not ended.
///
/// # Invariants
///
/// The request is valid for `'a`, as the caller's iterator holds a reference to it.
pub(crate) struct TimedOut<'a>(Rq, PhantomData<&'a ()>);

impl TimedOut<'_> {
    /// # Safety
    ///
    /// The block layer passed the request to the timeout callback, which is running for `'a`.
    pub(super) unsafe fn new(rq: Rq) -> Self {
        // INVARIANT: by the requirements.
        Self(rq, PhantomData)
    }

    /// Its tag.
    pub(crate) fn tag(&self) -> i32 {
        // SAFETY: by the invariants.
        unsafe { (*self.0.as_ptr()).tag }
    }

    /// Whether it still is in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        // SAFETY: by the invariants. A completion changes it at any time, hence volatile.
        let state = unsafe { (&raw const (*self.0.as_ptr()).state).read_volatile() };
        state == bindings::mq_rq_state_MQ_RQ_IN_FLIGHT
    }

    /// Its opcode.
    pub(crate) fn opcode(&self) -> u8 {
        // SAFETY: by the invariants.
        unsafe { (*pdu::cmd(self.0)).__bindgen_anon_1.common.opcode }
    }

    /// Its identifier.
    pub(crate) fn cid(&self) -> CommandId {
        // SAFETY: by the invariants.
        CommandId::from_raw(unsafe { (*pdu::cmd(self.0)).__bindgen_anon_1.common.command_id })
    }

    /// Tells nvme-core that the request's end is not the device's answer.
    pub(crate) fn cancel(&self) {
        // SAFETY: by the invariants; the timeout handler is the one writer of this bit.
        unsafe { (*pdu::req(self.0)).flags |= bindings::NVME_REQ_CANCELLED as u8 };
    }

    /// Marks it as being aborted; whether it was before.
    pub(crate) fn set_aborted(&self) -> bool {
        // SAFETY: by the invariants. A request has one timeout at a time.
        unsafe {
            let aborted = &raw const (*pdu::tail(self.0)).aborted;
            let before = (*aborted).load();
            (*aborted).store(true);
            before
        }
    }

    /// Undoes [`Self::set_aborted`]: the abort could not be sent.
    pub(crate) fn clear_aborted(&self) {
        // SAFETY: by the invariants.
        unsafe { (*pdu::tail(self.0)).aborted.store(false) };
    }
}
