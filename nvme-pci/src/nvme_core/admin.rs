// SPDX-License-Identifier: GPL-2.0

//! Admin commands that the transport sends.

use super::{
    bound::Bound,
    ctrl::Ctrl,
    ffi,
    transport::Transport, //
};
use crate::{
    cid::CommandId,
    command::Command,
    queue::SQE_BYTES, //
};
use kernel::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

/// Where the end of a deletion command is awaited.
///
/// It is part of the controller's block, since a command that is not answered in time ends later,
/// when the caller has long gone.
#[pin_data]
pub(super) struct Deletion {
    #[pin]
    done: Opaque<bindings::completion>,
}

impl Deletion {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            done <- Opaque::ffi_init(|done| {
                // SAFETY: `done` is memory for a completion.
                unsafe { ffi::nvme_rust_init_completion(done) }
            }),
        })
    }
}

fn raw_command(command: &Command) -> bindings::nvme_command {
    const { assert!(size_of::<bindings::nvme_command>() == SQE_BYTES) };
    let mut raw: bindings::nvme_command = pin_init::zeroed();
    // SAFETY: both are 64 bytes of plain data.
    unsafe {
        (&raw mut raw)
            .cast::<[u8; SQE_BYTES]>()
            .write(command.to_bytes())
    };
    raw
}

impl<T: Transport> Ctrl<T> {
    fn admin_q(&self) -> *mut bindings::request_queue {
        // SAFETY: written only when the admin tag set is made.
        unsafe { (*self.as_raw()).admin_q }
    }

    /// Whether the admin queue exists and has not been removed.
    pub(super) fn has_admin_queue(&self) -> bool {
        let q = self.admin_q();
        // SAFETY: `q` is a queue that is released with the controller, if it is not NULL.
        !q.is_null() && !unsafe { ffi::nvme_rust_queue_dying(q) }
    }

    /// A request for `command` that the caller must execute, or an error if there is no free tag.
    fn alloc_nowait(&self, command: &Command) -> Result<*mut bindings::request> {
        let mut raw = raw_command(command);
        // SAFETY: the admin queue exists; the flags forbid sleeping.
        let rq = from_err_ptr(unsafe {
            bindings::blk_mq_alloc_request(
                self.admin_q(),
                bindings::req_op_REQ_OP_DRV_IN,
                bindings::BLK_MQ_REQ_NOWAIT,
            )
        })?;
        // SAFETY: `rq` is a new request of a queue of this transport; the command is copied.
        unsafe { bindings::nvme_init_request(rq, &mut raw) };
        Ok(rq)
    }
}

impl<'a, T: Transport> Bound<'a, T> {
    /// Sends `command`, without data, and waits for its end. Not under the shutdown lock.
    ///
    /// A positive NVMe status becomes `EIO`.
    pub(crate) fn submit_sync(self, command: &Command) -> Result {
        let mut raw = raw_command(command);
        // SAFETY: the admin queue exists while commands are sent; no buffer.
        let ret = unsafe {
            bindings::nvme_submit_sync_cmd(self.admin_q(), &mut raw, core::ptr::null_mut(), 0)
        };
        if ret > 0 {
            return Err(EIO);
        }
        to_result(ret)
    }

    /// Asks the controller for `wanted` I/O queues and returns how many it gives.
    pub(crate) fn set_queue_count(self, wanted: u16) -> Result<u16> {
        let mut count = i32::from(wanted);
        // SAFETY: the admin queue works.
        to_result(unsafe { bindings::nvme_set_queue_count(self.as_raw(), &mut count) })?;
        Ok(u16::try_from(count).unwrap_or(0).min(wanted))
    }

    /// Deletes the I/O queues `1..=last`, for no longer than the admin timeout.
    ///
    /// Not [`Self::submit_sync`]: while a controller is being disabled, the timeout handler waits
    /// for that to end, so a command without a limit of its own would wait for ever.
    pub(super) fn delete_io_queues(self, last: u16) {
        // SAFETY: set at init.
        let mut left = c_ulong_from(unsafe { (*self.as_raw()).admin_timeout });
        for make in [Command::delete_sq, Command::delete_cq] {
            for qid in (1..=last).rev() {
                left = self.delete_one(&make(qid), left);
                if left == 0 {
                    return;
                }
            }
        }
    }

    /// Returns what is left of the time, 0 if the command did not end.
    fn delete_one(self, command: &Command, left: usize) -> usize {
        let Ok(rq) = self.alloc_nowait(command) else {
            return 0;
        };
        let done = self.deletion.done.get();
        // SAFETY: nobody waits, and no earlier command is outstanding: one that did not answer in
        // time was cancelled by the disabling that followed.
        unsafe { ffi::nvme_rust_init_completion(done) };
        // SAFETY: `rq` is ours until it is executed; `done` lives as long as the controller.
        unsafe {
            (*rq).end_io = Some(deletion_ended);
            (*rq).end_io_data = done.cast();
            bindings::blk_execute_rq_nowait(rq, false);
        }
        // SAFETY: `done` is initialised.
        unsafe { bindings::wait_for_completion_io_timeout(done, left) }
    }

    /// Sends an Abort for a command, if the controller takes one more. `false`: not now.
    pub(super) fn abort(self, qid: u16, cid: CommandId) -> bool {
        let limit = self.abort_limit();
        // SAFETY: `limit` is an atomic of the controller.
        if unsafe { bindings::atomic_dec_return(limit) } >= 0 {
            if let Ok(rq) = self.alloc_nowait(&Command::abort(qid, cid)) {
                // SAFETY: `rq` is ours until it is executed.
                unsafe {
                    (*rq).end_io = Some(abort_ended);
                    bindings::blk_execute_rq_nowait(rq, false);
                }
                return true;
            }
        }
        // SAFETY: as above.
        unsafe { bindings::atomic_inc(limit) };
        false
    }

    fn abort_limit(self) -> *mut bindings::atomic_t {
        // SAFETY: `ctrl` is valid; only the address is taken.
        unsafe { &raw mut (*self.as_raw()).abort_limit }
    }
}

const fn c_ulong_from(jiffies: u32) -> usize {
    jiffies as usize
}

/// A deletion command has ended.
///
/// # Safety
///
/// Called for a request made by `delete_one`.
unsafe extern "C" fn deletion_ended(
    rq: *mut bindings::request,
    _error: bindings::blk_status_t,
    _iob: *const bindings::io_comp_batch,
) -> bindings::rq_end_io_ret {
    // SAFETY: set together with this function, in `delete_one`.
    let done = unsafe { (*rq).end_io_data }.cast::<bindings::completion>();
    // SAFETY: the request has ended and is ours.
    unsafe { bindings::blk_mq_free_request(rq) };
    // SAFETY: the completion is part of the controller, whose queue this request was on.
    unsafe { bindings::complete(done) };
    bindings::rq_end_io_ret_RQ_END_IO_NONE
}

/// An abort command has ended, whatever came of it.
///
/// # Safety
///
/// Called for a request made by `abort`.
unsafe extern "C" fn abort_ended(
    rq: *mut bindings::request,
    _error: bindings::blk_status_t,
    _iob: *const bindings::io_comp_batch,
) -> bindings::rq_end_io_ret {
    // SAFETY: the private data of our requests starts with a `struct nvme_request`, whose `ctrl`
    // was set when the request was made.
    unsafe {
        let req = bindings::blk_mq_rq_to_pdu(rq).cast::<bindings::nvme_request>();
        bindings::atomic_inc(&raw mut (*(*req).ctrl).abort_limit);
        bindings::blk_mq_free_request(rq);
    }
    bindings::rq_end_io_ret_RQ_END_IO_NONE
}
