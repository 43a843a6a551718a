// SPDX-License-Identifier: GPL-2.0

//! The states of a request that the driver owns.

use super::{
    batch::Batch,
    dma::{
        self,
        DmaDevice, //
    },
    pdu::{
        self,
        Mapping, //
    },
    prp_lists::PrpLists, //
};
use crate::{
    cid::CommandId,
    nvme_core::{
        ffi,
        rings::Sqe, //
    }, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    prelude::*, //
};

pub(super) type Rq = NonNull<bindings::request>;

/// What `queue_rq` tells the block layer.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use = "the block layer must be told"]
pub(crate) struct Status(pub(super) bindings::blk_status_t);

impl Status {
    /// The request is taken.
    pub(crate) const OK: Self = Self(ffi::STS_OK);
    /// The driver has no support for such a request.
    pub(crate) const NOTSUPP: Self = Self(ffi::STS_NOTSUPP);
    /// The request must fail.
    pub(crate) const IOERR: Self = Self(ffi::STS_IOERR);
    /// The request may be tried again when another one has ended.
    pub(crate) const RESOURCE: Self = Self(ffi::STS_RESOURCE);

    fn check(self) -> Result<(), Self> {
        if self == Self::OK {
            return Ok(());
        }
        Err(self)
    }
}

/// A request as `queue_rq` gets it.
///
/// # Invariants
///
/// For this and the following types: the request is valid, of a tag set made with
/// [`pdu::CMD_SIZE`] and initialised by [`pdu::init`], and owned by the holder.
pub(crate) struct Fresh(Rq);

impl Fresh {
    /// # Safety
    ///
    /// The caller got the request from the block layer in `queue_rq`, and passes on what becomes
    /// of it.
    #[inline]
    pub(super) unsafe fn new(rq: Rq) -> Self {
        // INVARIANT: by the requirements.
        Self(rq)
    }

    /// Looks whether the request may go to the controller now. If not the status is final: the
    /// core may have ended the request already.
    #[inline]
    pub(super) fn admit(self, enabled: bool) -> Result<Ready, Status> {
        if !enabled {
            return Err(Status::IOERR);
        }
        if self.is_live() {
            return Ok(Ready(self.0));
        }
        self.admit_slow()
    }

    /// As [`Self::admit`], but the request stays as it is if it may not go.
    #[inline]
    pub(super) fn admit_live(self, enabled: bool) -> Option<Ready> {
        (enabled && self.is_live()).then_some(Ready(self.0))
    }

    #[inline]
    fn is_live(&self) -> bool {
        // SAFETY: by the invariants; the controller outlives its requests. The core changes the
        // state at any time, hence volatile.
        let state = unsafe { (&raw const (*self.ctrl()).state).read_volatile() };
        state == bindings::nvme_ctrl_state_NVME_CTRL_LIVE
    }

    #[inline]
    fn ctrl(&self) -> *mut bindings::nvme_ctrl {
        // SAFETY: by the invariants; `ctrl` was set by `init` and does not change.
        unsafe { (*pdu::req(self.0)).ctrl }
    }

    #[cold]
    fn admit_slow(self) -> Result<Ready, Status> {
        let (ctrl, rq) = (self.ctrl(), self.0.as_ptr());
        // SAFETY: both are valid. The core changes the state at any time, hence volatile.
        unsafe {
            let state = (&raw const (*ctrl).state).read_volatile();
            if bindings::__nvme_check_ready(ctrl, rq, true, state) {
                return Ok(Ready(self.0));
            }
            // The request is given up, we touch it no more.
            Err(Status(bindings::nvme_fail_nonready_command(ctrl, rq)))
        }
    }
}

/// A request that the controller is ready for.
pub(crate) struct Ready(Rq);

impl Ready {
    /// Makes the NVMe command.
    #[inline]
    pub(crate) fn setup(self) -> Result<Setup, Status> {
        let rq = self.0.as_ptr();
        // SAFETY: by the invariants; the queue's data is its namespace, NULL for the admin queue.
        let status = unsafe {
            bindings::nvme_setup_cmd((*(*rq).q).queuedata.cast::<bindings::nvme_ns>(), rq)
        };
        Status(status).check()?;
        Ok(Setup(self.0))
    }
}

/// A request with a command. Dropping it undoes the making of it.
pub(crate) struct Setup(Rq);

impl Setup {
    /// Maps the request's data for the device and puts its addresses into the command.
    #[inline]
    pub(crate) fn map(self, dev: &DmaDevice, lists: &PrpLists) -> Result<Mapped, Status> {
        // SAFETY: by the invariants the request is ours; nobody else looks at `aborted` before it
        // is started.
        unsafe {
            let tail = pdu::tail(self.0);
            (*tail).aborted.store(false);
            (*tail).mapping = Mapping::None;
        }
        // SAFETY: by the invariants.
        unsafe { dma::map(self.0, dev, lists) }?;
        let this = ManuallyDrop::new(self);
        Ok(Mapped {
            rq: this.0,
            dev: *dev,
        })
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: by the invariants, with a command that was set up.
        unsafe { bindings::nvme_cleanup_cmd(self.0.as_ptr()) };
    }
}

/// A request whose command is complete but for its being known to the block layer as started.
pub(crate) struct Mapped {
    rq: Rq,
    dev: DmaDevice,
}

impl Mapped {
    /// Starts the request's clock. From here on only a completion can end it.
    #[inline]
    pub(crate) fn start(self) -> InFlight {
        let this = ManuallyDrop::new(self);
        // SAFETY: by the invariants.
        unsafe { ffi::nvme_rust_start_request(this.rq.as_ptr()) };
        InFlight(this.rq)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: by the invariants; the device has not seen the command.
        unsafe { dma::unmap(self.rq, &self.dev) };
        drop(Setup(self.rq));
    }
}

/// A request that was started. It is given to the device by noting it in a
/// [`Pending`](super::Pending) table, and comes back from there when the device has answered.
///
/// There is no drop glue: a request that is forgotten here is ended by its timeout.
#[must_use = "only a completion ends a request that was started"]
pub(crate) struct InFlight(Rq);

impl InFlight {
    /// # Safety
    ///
    /// The request was started, and the caller owns it.
    #[inline]
    pub(super) unsafe fn from_raw(rq: Rq) -> Self {
        // INVARIANT: by the requirements.
        Self(rq)
    }

    #[inline]
    pub(super) fn as_raw(&self) -> Rq {
        self.0
    }

    /// The command, as it goes into the ring.
    #[inline]
    pub(crate) fn command(&self) -> &Sqe {
        // SAFETY: by the invariants; 64 bytes of suitable alignment (see `pdu`), which nobody
        // changes while the request is in flight.
        unsafe { &*pdu::cmd(self.0).cast::<Sqe>() }
    }

    /// The command's identifier.
    #[inline]
    pub(crate) fn cid(&self) -> CommandId {
        // SAFETY: by the invariants; any 16 bits are valid.
        CommandId::from_raw(unsafe { (*pdu::cmd(self.0)).__bindgen_anon_1.common.command_id })
    }

    /// Ends the request with the device's answer: in `batch` if it can wait for that, else now.
    #[inline]
    pub(crate) fn complete(self, status: u16, result: u64, batch: &mut Batch) {
        batch.add(self, status, result);
    }

    /// Ends a request that could not be given to the device.
    #[cold]
    pub(crate) fn fail(self) {
        // SAFETY: by the invariants.
        unsafe {
            (*pdu::req(self.0)).status = bindings::NVME_SC_HOST_PATH_ERROR as u16;
            bindings::blk_mq_complete_request(self.0.as_ptr());
        }
    }
}
