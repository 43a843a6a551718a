// SPDX-License-Identifier: GPL-2.0

//! What the transport needs of the PCI core beyond the `kernel` crate: it enables, disables and
//! resets the function again and again during one binding, from a work item.

use super::{
    bound::Bound,
    ffi,
    transport::Transport, //
};
use kernel::{
    bindings,
    device,
    error::to_result,
    pci,
    prelude::*, //
};

/// The C side of a PCI device.
pub(super) fn as_raw<C: device::DeviceContext>(dev: &pci::Device<C>) -> *mut bindings::pci_dev {
    // CAST: `pci::Device` is a transparent wrapper of an `Opaque<pci_dev>`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

/// The function as found from a hot path: whether its channel is usable.
///
/// # Invariants
///
/// `0` is a valid PCI device for as long as this value exists.
#[derive(Clone, Copy)]
pub(crate) struct Channel(*mut bindings::pci_dev);

// SAFETY: only a field is read, which may be done anywhere.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// Whether PCI error recovery has taken the function away.
    #[inline]
    pub(crate) fn is_normal(self) -> bool {
        // SAFETY: by the invariants the device is valid. The recovery code writes the field at the
        // same time, hence volatile.
        let state = unsafe { (&raw const (*self.0).error_state).read_volatile() };
        state == bindings::pci_channel_io_normal
    }
}

impl<'a, T: Transport> Bound<'a, T> {
    fn pdev(self) -> *mut bindings::pci_dev {
        as_raw(self.device())
    }

    /// A handle for the hot path. It must be dropped with the queue that holds it, while bound.
    pub(crate) fn channel(self) -> Channel {
        // INVARIANT: the block holds a reference to the device and outlives its queues.
        Channel(self.pdev())
    }

    /// Enables memory accesses and bus mastering.
    pub(crate) fn pci_enable(self) -> Result {
        // SAFETY: `pdev` is a valid, bound device.
        to_result(unsafe { bindings::pci_enable_device_mem(self.pdev()) })?;
        // SAFETY: as above.
        unsafe { bindings::pci_set_master(self.pdev()) };
        Ok(())
    }

    /// Undoes [`Self::pci_enable`], if it is in effect.
    pub(crate) fn pci_disable(self) {
        if self.pci_is_enabled() {
            // SAFETY: `pdev` is a valid, bound and enabled device.
            unsafe { bindings::pci_disable_device(self.pdev()) };
        }
    }

    /// Whether the function is enabled.
    pub(crate) fn pci_is_enabled(self) -> bool {
        // SAFETY: `pdev` is a valid device.
        unsafe { ffi::nvme_rust_pci_is_enabled(self.pdev()) }
    }

    /// Whether the function still answers configuration reads.
    pub(crate) fn pci_is_present(self) -> bool {
        // SAFETY: `pdev` is a valid device.
        unsafe { bindings::pci_device_is_present(self.pdev()) }
    }

    /// Whether PCI error recovery is at work.
    pub(crate) fn pci_is_offline(self) -> bool {
        // SAFETY: `pdev` is a valid device.
        unsafe { ffi::nvme_rust_pci_channel_offline(self.pdev()) }
    }

    /// Whether the function was removed for good.
    pub(crate) fn pci_is_disconnected(self) -> bool {
        // SAFETY: `pdev` is a valid device.
        unsafe { ffi::nvme_rust_pci_dev_is_disconnected(self.pdev()) }
    }

    /// Saves the configuration space, for [`Self::pci_reset`] and error recovery.
    pub(crate) fn pci_save_state(self) {
        // SAFETY: `pdev` is a valid, bound device.
        unsafe { bindings::pci_save_state(self.pdev()) };
    }

    /// Restores what [`Self::pci_save_state`] saved.
    pub(crate) fn pci_restore_state(self) {
        // SAFETY: `pdev` is a valid, bound device.
        unsafe { bindings::pci_restore_state(self.pdev()) };
    }

    /// Resets the function (FLR) and restores its configuration.
    pub(crate) fn pci_reset(self) -> Result {
        // SAFETY: `pdev` is a valid, bound device.
        to_result(unsafe { bindings::pcie_reset_flr(self.pdev(), false) })?;
        self.pci_restore_state();
        Ok(())
    }
}
