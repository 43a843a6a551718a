// SPDX-License-Identifier: GPL-2.0

//! Ending requests, many at a time.

use super::{
    dma,
    pdu,
    request::{
        InFlight,
        Rq, //
    }, //
};
use crate::nvme_core::ffi;
use core::ptr::NonNull;
use kernel::{
    bindings, //
};

/// Requests that end together. Dropping it ends them.
#[repr(transparent)]
pub(crate) struct Batch {
    iob: bindings::io_comp_batch,
}

impl Batch {
    /// An empty batch.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            iob: pin_init::zeroed(),
        }
    }

    /// Takes a batch that the block layer has made, for the time of `f`.
    ///
    /// # Safety
    ///
    /// `iob` is NULL or valid for that time.
    pub(super) unsafe fn borrow<R>(
        iob: *mut bindings::io_comp_batch,
        f: impl FnOnce(&mut Batch) -> R,
    ) -> R {
        if iob.is_null() {
            return f(&mut Batch::new());
        }
        // SAFETY: valid by the requirements; `Batch` is transparent.
        let batch = unsafe { &mut *iob.cast::<Batch>() };
        // A reference does not drop the batch: its maker ends the requests.
        f(batch)
    }

    /// Notes the answer to `rq`, and ends it, now or with the batch.
    #[inline]
    pub(super) fn add(&mut self, rq: InFlight, status: u16, result: u64) {
        let rq = rq.as_raw();
        // SAFETY: `rq` was in flight and is ours. If this is true it ends on another CPU, by
        // `complete_rq`, and is not ours any more.
        if unsafe { ffi::nvme_rust_try_complete_req(rq.as_ptr(), status, result) } {
            return;
        }
        // SAFETY: `rq` is still ours; its status was written just now.
        let failed = unsafe { (*pdu::req(rq)).status != bindings::NVME_SC_SUCCESS as u16 };
        // SAFETY: as above. The batch holds it from here if this is true.
        let taken = unsafe {
            ffi::nvme_rust_add_to_batch(rq.as_ptr(), &raw mut self.iob, failed, complete_batch)
        };
        if !taken {
            // SAFETY: `rq` is still ours.
            unsafe { complete(rq) };
        }
    }
}

impl Drop for Batch {
    #[inline]
    fn drop(&mut self) {
        if !self.iob.req_list.head.is_null() {
            // SAFETY: the batch's requests were added by `add`.
            unsafe { complete_batch(&raw mut self.iob) };
        }
    }
}

/// Ends one request.
///
/// # Safety
///
/// `rq` was answered and is the caller's; it is given up.
#[inline]
unsafe fn complete(rq: Rq) {
    // SAFETY: by the requirements.
    unsafe {
        dma::unmap_for_completion(rq);
        bindings::nvme_complete_rq(rq.as_ptr());
    }
}

/// `blk_mq_ops.complete`: the request ends on this CPU.
///
/// # Safety
///
/// Called by the block layer for a request of ours that was answered or cancelled.
pub(super) unsafe extern "C" fn complete_rq(rq: *mut bindings::request) {
    let Some(rq) = NonNull::new(rq) else {
        return;
    };
    // SAFETY: the block layer hands us a request that was answered or cancelled.
    unsafe { complete(rq) };
}

/// Ends the requests of a batch.
///
/// # Safety
///
/// `iob` is a batch whose requests were added by [`Batch::add`].
unsafe extern "C" fn complete_batch(iob: *mut bindings::io_comp_batch) {
    // SAFETY: the batch is valid; it is not changed while it is walked.
    let mut next = unsafe { (*iob).req_list.head };
    while let Some(rq) = NonNull::new(next) {
        // SAFETY: the requests of a batch are valid until `blk_mq_end_request_batch`. Bounce
        // buffers must be copied back before the requests end.
        unsafe {
            next = (*rq.as_ptr()).__bindgen_anon_1.rq_next;
            dma::unmap_for_completion(rq);
            bindings::nvme_complete_batch_req(rq.as_ptr());
        }
    }
    // SAFETY: as above.
    unsafe { bindings::blk_mq_end_request_batch(iob) };
}
