// SPDX-License-Identifier: GPL-2.0

//! The block that nvme-core and the transport share.
//!
//! nvme-core counts references to a `struct nvme_ctrl` (by the `struct device` inside it) and tells
//! the transport when the last is gone, possibly long after the device was unbound, as open files
//! hold references too. That count is the only one there is: `ARef<Ctrl<T>>` is a handle on it and
//! [`Ctrl::free`] is the end.

use super::{
    admin::Deletion,
    ops,
    queues::Queues,
    restart,
    state::State,
    transport::Transport,
    vectors::Vectors, //
};
use kernel::{
    bindings,
    device,
    error::to_result,
    ffi::c_ulong,
    new_mutex,
    pci,
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        Mutex, //
    },
    types::Opaque, //
};

/// The most bytes that one command moves. PRP lists are sized to it.
pub(crate) const MAX_TRANSFER: usize = 2 << 20;

/// What nvme-core knows of a controller, and what we know.
///
/// # Invariants
///
/// After [`Ctrl::new`] has returned, `ctrl` was set up by `nvme_init_ctrl` and the block lies at
/// the start of a `KBox` that [`Ctrl::free`] takes back. The block does not move. It holds one
/// reference to the PCI device `ctrl.dev` is part of.
#[pin_data]
#[repr(C)]
pub(crate) struct Ctrl<T: Transport> {
    /// First, so that a pointer to it is one to the block.
    #[pin]
    ctrl: Opaque<bindings::nvme_ctrl>,
    #[pin]
    pub(super) admin_set: Opaque<bindings::blk_mq_tag_set>,
    #[pin]
    pub(super) io_set: Opaque<bindings::blk_mq_tag_set>,
    /// Around everything that enables or disables the controller. Never held while waiting for a
    /// command: the timeout handler takes it to end commands.
    #[pin]
    pub(super) shutdown_lock: Mutex<()>,
    #[pin]
    pub(super) deletion: Deletion,
    pub(super) queues: Queues<T::Queue>,
    pub(super) vectors: Vectors,
    #[pin]
    data: T,
}

// SAFETY: the C parts have their own locking and may be used and freed by any task; `T` is `Send`.
unsafe impl<T: Transport> Send for Ctrl<T> {}
// SAFETY: as above; `T` is `Sync`.
unsafe impl<T: Transport> Sync for Ctrl<T> {}

impl<T: Transport> Ctrl<T> {
    /// Allocates the block and makes it known to nvme-core. The returned reference is the
    /// transport's own.
    pub(super) fn new(
        dev: &pci::Device<device::Core<'_>>,
        quirks: usize,
        data: impl PinInit<T, Error>,
    ) -> Result<ARef<Self>> {
        let block = KBox::pin_init(
            try_pin_init!(Self {
                ctrl <- pin_init::init_zeroed(),
                admin_set <- pin_init::init_zeroed(),
                io_set <- pin_init::init_zeroed(),
                shutdown_lock <- new_mutex!((), "nvme_rust::shutdown_lock"),
                deletion <- Deletion::new(),
                queues: Queues::new(T::max_queues())?,
                vectors: Vectors::new(),
                data <- data,
            }),
            GFP_KERNEL,
        )?;
        let this: &Self = &block;
        // SAFETY: `ctrl` is zeroed memory of ours, and nothing uses it yet.
        unsafe { restart::init_work::<T>(this.as_raw()) };
        let parent = this.hold_parent(dev);
        // SAFETY: zeroed memory of the right type; the operations are static; `parent` is valid as
        // we have just taken a reference to it.
        let done = to_result(unsafe {
            bindings::nvme_init_ctrl(this.as_raw(), parent, ops::table::<T>(), quirks as c_ulong)
        });
        if let Err(e) = done {
            // SAFETY: the reference taken above is not used any more.
            unsafe { bindings::put_device(parent) };
            return Err(e);
        }
        // SAFETY: the block stays where it is until `free` takes it back.
        let raw = KBox::into_raw(unsafe { Pin::into_inner_unchecked(block) });
        // INVARIANT: as required. SAFETY: `nvme_init_ctrl` has left us one reference.
        Ok(unsafe { ARef::from_raw(core::ptr::NonNull::new_unchecked(raw)) })
    }

    fn hold_parent(&self, dev: &pci::Device<device::Core<'_>>) -> *mut bindings::device {
        let pdev = super::pci::as_raw(dev);
        // SAFETY: `pdev` is valid.
        unsafe { bindings::get_device(&raw mut (*pdev).dev) }
    }

    /// The end of the block: `free_ctrl` of nvme-core.
    ///
    /// # Safety
    ///
    /// The last reference to the `Ctrl<T>` at `ctrl` is gone.
    pub(super) unsafe fn free(ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: by the invariants this is the start of the box made in `new`, which nobody else
        // uses any more.
        let block = unsafe { KBox::from_raw(ctrl.cast::<Self>()) };
        block.free_io_set();
        // SAFETY: `dev` is set at init and valid, as we hold a reference, put below.
        let parent = unsafe { (*ctrl).dev };
        drop(block);
        // SAFETY: the counterpart of `hold_parent`.
        unsafe { bindings::put_device(parent) };
    }

    /// The block that contains `ctrl`.
    ///
    /// # Safety
    ///
    /// `ctrl` is part of a live `Ctrl<T>`, and stays so for `'a`.
    pub(super) unsafe fn from_raw<'a>(ctrl: *mut bindings::nvme_ctrl) -> &'a Self {
        // SAFETY: `ctrl` is the first field of a `repr(C)` block; live by the requirements.
        unsafe { &*ctrl.cast::<Self>() }
    }

    /// The C side.
    pub(super) fn as_raw(&self) -> *mut bindings::nvme_ctrl {
        self.ctrl.get()
    }

    /// What the transport keeps with the controller.
    pub(crate) fn data(&self) -> &T {
        &self.data
    }

    /// The state at this moment.
    #[inline]
    pub(crate) fn state(&self) -> State {
        // SAFETY: `ctrl` is valid. The core changes the state at any time, hence volatile.
        State::from_raw(unsafe { (&raw const (*self.as_raw()).state).read_volatile() })
    }

    /// Asks for another state. `false`: the way there is not allowed, someone else was first.
    #[must_use = "a refused change means that someone else has taken the controller over"]
    pub(super) fn change(&self, to: State) -> bool {
        // SAFETY: `ctrl` is initialised.
        unsafe { bindings::nvme_change_ctrl_state(self.as_raw(), to.as_raw()) }
    }

    /// The number in `nvme0`.
    pub(crate) fn instance(&self) -> i32 {
        // SAFETY: set once, at init.
        unsafe { (*self.as_raw()).instance }
    }

    /// The controller's own device, for messages.
    pub(crate) fn device(&self) -> &device::Device {
        // SAFETY: `ctrl_device` was initialised by `nvme_init_ctrl` and lives as long as the block.
        unsafe { device::Device::from_raw((*self.as_raw()).device) }
    }

    /// The device that does the DMA.
    pub(crate) fn parent(&self) -> *mut bindings::device {
        // SAFETY: set once, at init.
        unsafe { (*self.as_raw()).dev }
    }

    /// The limit of a command in bytes, as negotiated with the controller.
    pub(crate) fn max_transfer(&self) -> usize {
        // SAFETY: written by this transport and by its calls into the core only.
        let sectors = unsafe { (*self.as_raw()).max_hw_sectors } as usize;
        sectors.saturating_mul(512).min(MAX_TRANSFER)
    }

    /// Tells the core what the controller can do: its capabilities and the depth of its queues.
    pub(crate) fn set_capabilities(&self, cap: u64, sqsize: u16) {
        let ctrl = self.as_raw();
        // SAFETY: these fields are the transport's to write, and only restarts write them, which
        // exclude each other.
        unsafe {
            (*ctrl).cap = cap;
            (*ctrl).sqsize = sqsize;
        }
    }

    fn free_io_set(&self) {
        let ctrl = self.as_raw();
        // SAFETY: the tag set is the transport's; `tagset` is not NULL iff it was allocated.
        unsafe {
            if !(*ctrl).tagset.is_null() {
                bindings::nvme_remove_io_tag_set(ctrl);
                (*ctrl).tagset = core::ptr::null_mut();
            }
        }
    }

    /// Frees the I/O tag set of a controller that has lost its queues.
    pub(super) fn drop_io_set(&self) {
        self.free_io_set();
    }
}

// SAFETY: the count is that of `ctrl.device`, and the block is freed by its release.
unsafe impl<T: Transport> AlwaysRefCounted for Ctrl<T> {
    fn inc_ref(&self) {
        // SAFETY: `device` is initialised, and its count is not zero as `self` exists.
        unsafe { bindings::get_device((*self.as_raw()).device) };
    }

    unsafe fn dec_ref(obj: core::ptr::NonNull<Self>) {
        // SAFETY: the caller gives a reference back.
        unsafe { bindings::put_device((*obj.as_ref().as_raw()).device) };
    }
}
