// SPDX-License-Identifier: GPL-2.0

//! Stopping a controller.

use super::{
    bound::Bound,
    regs::{
        Reg,
        GONE, //
    },
    state::State,
    transport::{
        HwQueue,
        Transport, //
    }, //
};
use kernel::{
    bindings,
    prelude::*, //
};

impl<'a, T: Transport> Bound<'a, T> {
    /// Stops the controller and ends all its requests: those that it has answered as it said, the
    /// others as cancelled, to be tried again if a reset follows. Idempotent.
    ///
    /// `shutdown`: no reset follows. Let the controller finish what it has, and let nothing wait
    /// for it afterwards.
    pub(super) fn disable(self, shutdown: bool) {
        let state = self.state();
        let _guard = self.shutdown_lock.lock();
        let dead = self.is_dead();
        if matches!(state, State::Live | State::Resetting) {
            self.freeze(!dead && shutdown);
        }
        // SAFETY: an added controller. From here on no I/O request enters a queue.
        unsafe { bindings::nvme_quiesce_io_queues(self.as_raw()) };
        T::pause_io(self);
        if !dead {
            self.delete_io_queues(self.last_queue());
        }
        self.quiesce_admin();
        T::pause_admin(self);
        if !dead {
            // SAFETY: register access only.
            unsafe { bindings::nvme_disable_ctrl(self.as_raw(), shutdown) };
        }
        T::release(self);
        self.cancel();
        if shutdown {
            self.let_fail();
        }
    }

    /// Whether the controller can not be talked to.
    fn is_dead(self) -> bool {
        if !self.pci_is_enabled() || !self.pci_is_present() || !self.channel().is_normal() {
            return true;
        }
        let csts = self.csts();
        csts == GONE || csts & bindings::NVME_CSTS_CFS != 0 || csts & bindings::NVME_CSTS_RDY == 0
    }

    /// The status register, all ones if the controller is gone.
    pub(super) fn csts(self) -> u32 {
        match self.data().registers() {
            Ok(regs) => regs.read32(Reg::Csts),
            Err(_) => GONE,
        }
    }

    /// Lets no new request in, until the restart. Once per restart: the controller is enabled.
    fn freeze(self, wait: bool) {
        let ctrl = self.as_raw();
        // SAFETY: an added controller.
        unsafe {
            if self.pci_is_enabled() {
                bindings::nvme_start_freeze(ctrl);
            }
            if wait {
                bindings::nvme_wait_freeze_timeout(ctrl);
            }
        }
    }

    fn last_queue(self) -> u16 {
        self.io_queues()
            .filter(|(qid, _)| *qid <= self.data().plan().total())
            .map(|(qid, _)| qid)
            .next_back()
            .unwrap_or(0)
    }

    /// Lets no request into the admin queue, and waits for those that are on their way in.
    pub(crate) fn quiesce_admin(self) {
        if self.has_admin_queue() {
            // SAFETY: the queue exists.
            unsafe { bindings::nvme_quiesce_admin_queue(self.as_raw()) };
        }
    }

    /// The counterpart of [`Self::quiesce_admin`].
    pub(crate) fn unquiesce_admin(self) {
        if self.has_admin_queue() {
            // SAFETY: the queue exists.
            unsafe { bindings::nvme_unquiesce_admin_queue(self.as_raw()) };
        }
    }

    /// Collects what the controller had answered, and cancels the rest.
    fn cancel(self) {
        for qid in 0..=self.last_queue() {
            if let Some(queue) = self.queue(qid) {
                if queue.is_enabled() {
                    dev_err!(self.ctrl().device(), "queue {qid} was not stopped\n");
                    return;
                }
                queue.reap();
                queue.forget();
            }
        }
        // SAFETY: the controller is disabled, so it does not access the requests' memory; all
        // queues are stopped, so nobody else completes requests.
        unsafe {
            bindings::nvme_cancel_tagset(self.as_raw());
            bindings::nvme_cancel_admin_tagset(self.as_raw());
        }
    }

    fn let_fail(self) {
        // SAFETY: an added controller. Entered requests must end, or CPU hot-unplug would wait for
        // them; they fail, as the queues are not enabled.
        unsafe { bindings::nvme_unquiesce_io_queues(self.as_raw()) };
        self.unquiesce_admin();
    }
}
