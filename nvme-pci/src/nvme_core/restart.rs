// SPDX-License-Identifier: GPL-2.0

//! The reset work: from "Resetting" to "Live", for the first time and every other.

use super::{
    bound::Bound,
    state::State,
    transport::Transport, //
};
use crate::blk;
use kernel::{
    bindings,
    error::to_result,
    prelude::*, //
};

/// Initialises the reset work of `ctrl`, which `nvme_init_ctrl` does not.
///
/// # Safety
///
/// `ctrl` points to the zeroed start of a `Ctrl<T>`.
pub(super) unsafe fn init_work<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: by the requirements; name and key are static.
    unsafe {
        bindings::init_work_with_key(
            &raw mut (*ctrl).reset_work,
            Some(reset_work::<T>),
            false,
            c"nvme_rust::reset_work".as_char_ptr(),
            kernel::static_lock_class!().as_ptr(),
        )
    };
}

/// The reset work.
///
/// # Safety
///
/// `work` is the `reset_work` of a controller of this transport.
unsafe extern "C" fn reset_work<T: Transport>(work: *mut bindings::work_struct) {
    // SAFETY: the work is the `reset_work` of a controller.
    let ctrl = unsafe { kernel::container_of!(work, bindings::nvme_ctrl, reset_work) };
    // SAFETY: the teardown flushes this work.
    let b = unsafe { Bound::<T>::from_raw(ctrl) };
    if let Err(e) = b.restart() {
        b.give_up(e);
    }
}

impl<'a, T: Transport> Bound<'a, T> {
    fn restart(self) -> Result {
        if self.state() != State::Resetting {
            return Err(ENODEV);
        }
        let config = self.config();
        if config & bindings::NVME_CC_ENABLE != 0 {
            self.disable(false);
        }
        // SAFETY: an added controller.
        unsafe { bindings::nvme_sync_queues(self.as_raw()) };
        self.enable()?;
        self.advance(State::Connecting, EBUSY)?;
        let was_suspended = config & bindings::NVME_CC_SHN_NORMAL != 0;
        // SAFETY: the admin queue works. The shutdown lock is not held.
        to_result(unsafe { bindings::nvme_init_ctrl_finish(self.as_raw(), was_suspended) })?;
        match T::setup_io(self)? {
            0 => self.lose_io_queues(),
            online => self.start_io(online)?,
        }
        self.advance(State::Live, ENODEV)?;
        // SAFETY: the controller is live.
        unsafe { bindings::nvme_start_ctrl(self.as_raw()) };
        Ok(())
    }

    fn config(self) -> u32 {
        // SAFETY: written by the calls of this transport only.
        unsafe { (*self.as_raw()).ctrl_config }
    }

    fn advance(self, to: State, refused: Error) -> Result {
        if self.change(to) {
            return Ok(());
        }
        Err(refused)
    }

    fn enable(self) -> Result {
        let _guard = self.shutdown_lock.lock();
        T::enable(self)?;
        // SAFETY: the admin queue exists; the first time it is not quiesced, which is no error.
        unsafe { bindings::nvme_unquiesce_admin_queue(self.as_raw()) };
        Ok(())
    }

    /// Runs `f`, which sets up interrupts or queues, if nobody is disabling the controller.
    ///
    /// Disabling waits for no one, so this must not wait for it.
    pub(crate) fn while_connecting<R>(self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let _guard = self.shutdown_lock.try_lock().ok_or(ENODEV)?;
        if self.state() != State::Connecting {
            return Err(ENODEV);
        }
        f()
    }

    /// Disables the controller's registers: CC.EN = 0, and waits for CSTS.RDY = 0.
    pub(crate) fn disable_registers(self) -> Result {
        // SAFETY: register access only.
        to_result(unsafe { bindings::nvme_disable_ctrl(self.as_raw(), false) })
    }

    /// Enables the controller's registers, and waits for CSTS.RDY.
    pub(crate) fn enable_registers(self) -> Result {
        // SAFETY: register access only; the admin rings were given to the controller.
        to_result(unsafe { bindings::nvme_enable_ctrl(self.as_raw()) })
    }

    fn start_io(self, online: u16) -> Result {
        let ctrl = self.as_raw();
        // SAFETY: the transport's field; see `start_io`'s callers: restarts exclude each other.
        unsafe { (*ctrl).queue_count = u32::from(online) + 1 };
        // SAFETY: as above; only restarts and `free` write it.
        if unsafe { (*ctrl).tagset.is_null() } {
            // Not beside a disabling, which takes the vectors that the maps are made from.
            self.while_connecting(|| {
                self.alloc_io_set();
                Ok(())
            })?;
            // SAFETY: an added controller. If a disabling has started a freeze, no queue took part
            // in it, but the core would make no namespace until it ends.
            unsafe { bindings::nvme_unfreeze(ctrl) };
            return Ok(());
        }
        // SAFETY: an added controller with an I/O tag set. Frozen queues must run, so that the
        // requests in them end and they are frozen for the change of the mapping.
        unsafe {
            bindings::nvme_unquiesce_io_queues(ctrl);
            bindings::nvme_wait_freeze(ctrl);
        }
        self.update_io_set(online)?;
        // SAFETY: disabling has started the freeze.
        unsafe { bindings::nvme_unfreeze(ctrl) };
        Ok(())
    }

    fn alloc_io_set(self) {
        // SAFETY: the set lives in the block, the operations are static, and the queues exist.
        let done = to_result(unsafe {
            bindings::nvme_alloc_io_tag_set(
                self.as_raw(),
                self.io_set.get(),
                blk::io_ops::<T>(),
                T::kinds(),
                blk::CMD_SIZE,
            )
        });
        if let Err(e) = done {
            dev_warn!(self.ctrl().device(), "no I/O queues: {e:?}\n");
        }
    }

    fn update_io_set(self, online: u16) -> Result {
        // Give up if the controller is being disabled; that has ended what we prepare here.
        let _guard = self.shutdown_lock.try_lock().ok_or(ENODEV)?;
        if self.state() != State::Connecting {
            return Err(ENODEV);
        }
        // SAFETY: the set was allocated, and all its queues are frozen.
        unsafe { bindings::blk_mq_update_nr_hw_queues(self.io_set.get(), online.into()) };
        Ok(())
    }

    /// The controller is kept, so that it can be looked at, but without namespaces.
    fn lose_io_queues(self) {
        dev_warn!(self.ctrl().device(), "no I/O queues\n");
        let ctrl = self.as_raw();
        // SAFETY: an added controller, no I/O queue of which is in use.
        unsafe {
            (*ctrl).queue_count = 1;
            bindings::nvme_mark_namespaces_dead(ctrl);
            bindings::nvme_unquiesce_io_queues(ctrl);
            bindings::nvme_remove_namespaces(ctrl);
        }
        let _guard = self.shutdown_lock.lock();
        self.drop_io_set();
    }

    /// The reset has failed: end everything that waits. The removal cleans up.
    fn give_up(self, e: Error) {
        dev_warn!(
            self.ctrl().device(),
            "disabled after a failed reset: {e:?}\n"
        );
        // Deleting now, as someone may wait for the reset with the device lock held.
        let _ = self.change(State::Deleting);
        self.disable(true);
        let ctrl = self.as_raw();
        // SAFETY: an added controller.
        unsafe {
            bindings::nvme_sync_queues(ctrl);
            bindings::nvme_mark_namespaces_dead(ctrl);
            bindings::nvme_unquiesce_io_queues(ctrl);
        }
        let _ = self.change(State::Dead);
    }
}
