// SPDX-License-Identifier: GPL-2.0

//! From probe to removal.

use super::{
    bound::Bound,
    ctrl::{
        Ctrl,
        MAX_TRANSFER, //
    },
    ffi,
    pci::as_raw,
    state::State,
    transport::Transport, //
};
use crate::{
    blk,
    prp::CTRL_PAGE, //
};
use kernel::{
    bindings,
    device,
    dma::{
        Device as _,
        DmaMask, //
    },
    error::to_result,
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full, //
        }, //
    }, //
};

/// A controller that is known to the system, for as long as its device is bound.
///
/// This is the driver's data of the device. When it goes, or [`Self::teardown`] is called, all work
/// for the controller has ended and its resources are free; open files may keep the [`Ctrl`].
pub(crate) struct Registration<T: Transport> {
    ctrl: ARef<Ctrl<T>>,
    added: Atomic<bool>,
    down: Atomic<bool>,
}

impl<T: Transport> Registration<T> {
    /// Makes the controller of `dev` known, and returns when it is live and its namespaces were
    /// looked for.
    ///
    /// All initialisation is done by a reset, on the one path that does it later, too. So a reset
    /// that user space asks for meanwhile does not meet a second initialisation.
    pub(crate) fn new(
        dev: &pci::Device<device::Core<'_>>,
        quirks: usize,
        data: impl PinInit<T, Error>,
    ) -> Result<Self> {
        let this = Self {
            ctrl: Ctrl::new(dev, quirks, data)?,
            added: Atomic::new(false),
            down: Atomic::new(false),
        };
        // On errors the teardown undoes what was done.
        this.limit_dma(dev)?;
        T::attach(this.bound())?;
        this.add()?;
        this.first_reset()?;
        Ok(this)
    }

    fn bound(&self) -> Bound<'_, T> {
        // SAFETY: this type exists only while the device is bound: it is made in probe, and goes
        // with the driver's data. `teardown` frees the queues as its last use of a `Bound`.
        unsafe { Bound::new(&self.ctrl) }
    }

    fn limit_dma(&self, dev: &pci::Device<device::Core<'_>>) -> Result {
        // SAFETY: no DMA is done by this device yet.
        unsafe { dev.dma_set_mask_and_coherent(DmaMask::new::<64>()) }?;
        // SAFETY: as above.
        unsafe { dev.dma_set_max_seg_size(u32::MAX) };
        let raw = as_raw(dev);
        let ctrl = self.ctrl.as_raw();
        // SAFETY: `raw` is a bound device; bounce buffers must keep the offset in a page, as PRPs
        // express nothing else. The limits are the transport's to set before the first reset.
        unsafe {
            let dev = &raw mut (*raw).dev;
            ffi::nvme_rust_set_min_align_mask(dev, CTRL_PAGE as u32 - 1);
            let optimal = bindings::dma_opt_mapping_size(dev).max(CTRL_PAGE);
            (*ctrl).max_hw_sectors = (MAX_TRANSFER.min(optimal) / 512) as u32;
            (*ctrl).max_segments = blk::MAX_SEGMENTS as u32;
            (*ctrl).max_integrity_segments = 1;
            (*ctrl).queue_count = 1;
            (*ctrl).numa_node = ffi::nvme_rust_dev_to_node(dev);
        }
        Ok(())
    }

    fn add(&self) -> Result {
        let ctrl = &self.ctrl;
        // SAFETY: the set is zeroed and lives in the block; the operations are static, and the
        // admin queue of `attach` is there for `init_hctx`.
        to_result(unsafe {
            bindings::nvme_alloc_admin_tag_set(
                ctrl.as_raw(),
                ctrl.admin_set.get(),
                blk::admin_ops::<T>(),
                blk::CMD_SIZE,
            )
        })?;
        // SAFETY: initialised; the teardown calls `nvme_uninit_ctrl` if this succeeds.
        to_result(unsafe { bindings::nvme_add_ctrl(ctrl.as_raw()) })?;
        self.added.store(true, kernel::sync::atomic::Relaxed);
        Ok(())
    }

    fn first_reset(&self) -> Result {
        let ctrl = self.ctrl.as_raw();
        // SAFETY: the work was initialised in `Ctrl::new`, and everything it needs is there. A
        // reset that user space was quick enough to ask for serves as well.
        unsafe {
            bindings::nvme_reset_ctrl(ctrl);
            bindings::flush_work(&raw mut (*ctrl).reset_work);
        }
        if self.ctrl.state().is_terminal() {
            return Err(ENODEV);
        }
        // SAFETY: the work is initialised.
        unsafe { bindings::flush_work(&raw mut (*ctrl).scan_work) };
        Ok(())
    }

    /// Ends everything that [`Self::new`] started. Idempotent.
    pub(crate) fn teardown(&self) {
        if self.down.xchg(true, Full) {
            return;
        }
        let b = self.bound();
        if self.added.load(kernel::sync::atomic::Relaxed) {
            self.stop(b);
        }
        if b.has_admin_queue() {
            // SAFETY: the queue exists and is not dying. Requests of users may wait on a queue that
            // a reset during removal has stopped, so let them fail first.
            unsafe {
                bindings::nvme_unquiesce_admin_queue(b.as_raw());
                bindings::nvme_remove_admin_tag_set(b.as_raw());
            }
        }
        // SAFETY: no work, no request, no timeout and no interrupt is left, see `Bound`.
        unsafe { b.queues.clear() };
        T::detach(b);
        if self.added.load(kernel::sync::atomic::Relaxed) {
            // SAFETY: the counterpart of `nvme_add_ctrl`.
            unsafe { bindings::nvme_uninit_ctrl(b.as_raw()) };
        }
    }

    /// No command will be waited for, no work is left, and the namespaces are gone.
    fn stop(&self, b: Bound<'_, T>) {
        let _ = b.change(State::Deleting);
        if !b.pci_is_present() {
            let _ = b.change(State::Dead);
            b.disable(true);
        }
        let ctrl = b.as_raw();
        // SAFETY: a controller that was added; the calls are in nvme-core's order for removal.
        unsafe {
            bindings::flush_work(&raw mut (*ctrl).reset_work);
            bindings::nvme_stop_ctrl(ctrl);
            bindings::nvme_remove_namespaces(ctrl);
        }
        b.disable(true);
    }

    /// Shuts the controller down for reboot or power-off.
    pub(super) fn shutdown(&self) {
        let b = self.bound();
        // SAFETY: the controller is added. Whoever holds the state keeps the device until the
        // caller has let go of the device lock, so the result does not matter.
        if unsafe { bindings::nvme_wait_reset(b.as_raw()) } {
            b.disable(true);
        }
    }

    /// Stops the controller before a reset of the function; [`Self::resume`] follows.
    pub(super) fn suspend(&self, shutdown: bool) -> Result {
        let b = self.bound();
        // SAFETY: the controller is added.
        if !unsafe { bindings::nvme_wait_reset(b.as_raw()) } {
            return Err(EBUSY);
        }
        b.disable(shutdown);
        Ok(())
    }

    /// Starts the controller again after [`Self::suspend`].
    pub(super) fn resume(&self) -> Result {
        // SAFETY: the controller is added.
        to_result(unsafe { bindings::nvme_try_sched_reset(self.ctrl.as_raw()) })
    }

    /// As [`Self::resume`], but if there is no restart the requests that wait for it fail.
    pub(super) fn resume_or_fail(&self) {
        if self.resume().is_err() {
            // SAFETY: the controller is added.
            unsafe { bindings::nvme_unquiesce_io_queues(self.ctrl.as_raw()) };
        }
    }

    /// Waits for the start that [`Self::resume`] has scheduled.
    pub(super) fn flush_reset(&self) {
        // SAFETY: the work is initialised.
        unsafe { bindings::flush_work(&raw mut (*self.ctrl.as_raw()).reset_work) };
    }

    /// PCI error recovery has cut the function off.
    pub(super) fn frozen(&self) -> bool {
        let b = self.bound();
        if !b.change(State::Resetting) {
            // A restart is under way and waits for commands that can not be answered any more, and
            // their timeouts wait for the channel: end them here.
            b.disable(true);
            return false;
        }
        b.disable(false);
        true
    }

    /// Waits until no request is being processed by the queues' work.
    pub(super) fn sync_queues(&self) {
        // SAFETY: the controller is added.
        unsafe { bindings::nvme_sync_queues(self.ctrl.as_raw()) };
    }

    /// Restores the configuration of the function after its slot was reset.
    pub(super) fn restore(&self) {
        self.bound().pci_restore_state();
    }
}

impl<T: Transport> Drop for Registration<T> {
    fn drop(&mut self) {
        self.teardown();
    }
}
