// SPDX-License-Identifier: GPL-2.0

//! The registration of the PCI driver, with what the `kernel` crate's has no words for: shutdown,
//! power management, error recovery, and the claim of every NVMe device.

use super::{
    registration::Registration,
    transport::Transport, //
};
use kernel::{
    bindings,
    driver,
    error::{
        from_result,
        to_result, //
    },
    ffi::c_int,
    pci,
    prelude::*,
    types::Opaque,
    ThisModule, //
};

/// A PCI driver whose data of a bound device is a [`Registration`], and nothing else.
pub(crate) trait NvmeDriver:
    for<'b> pci::Driver<Data<'b> = Registration<Self::Transport>> + 'static
{
    /// The transport it registers.
    type Transport: Transport;

    /// Whether to bind to every NVMe device that no driver has, and not only when told.
    fn claims_all() -> bool;
}

/// The driver adapter.
pub(crate) struct Adapter<D: NvmeDriver>(D);

// SAFETY: forwarded to `pci::Adapter`, which says the same.
unsafe impl<D: NvmeDriver> driver::DriverLayout for Adapter<D> {
    type DriverType = bindings::pci_driver;
    type DriverData<'bound> = Registration<D::Transport>;
    const DEVICE_DRIVER_OFFSET: usize =
        <pci::Adapter<D> as driver::DriverLayout>::DEVICE_DRIVER_OFFSET;
}

struct Handlers(bindings::pci_error_handlers);

// SAFETY: the table is only read.
unsafe impl Sync for Handlers {}

struct PmOps(bindings::dev_pm_ops);

// SAFETY: the table is only read.
unsafe impl Sync for PmOps {}

impl<D: NvmeDriver> Adapter<D> {
    const HANDLERS: Handlers = Handlers(bindings::pci_error_handlers {
        error_detected: Some(error_detected::<D>),
        slot_reset: Some(slot_reset::<D>),
        reset_prepare: Some(reset_prepare::<D>),
        reset_done: Some(reset_done::<D>),
        resume: Some(error_resume::<D>),
        ..pin_init::zeroed()
    });
    const HANDLERS_REF: &'static Handlers = &Self::HANDLERS;
    const PM: PmOps = PmOps(bindings::dev_pm_ops {
        suspend: Some(suspend::<D>),
        resume: Some(resume::<D>),
        freeze: Some(suspend::<D>),
        thaw: Some(resume::<D>),
        poweroff: Some(suspend::<D>),
        restore: Some(resume::<D>),
        ..pin_init::zeroed()
    });
    const PM_REF: &'static PmOps = &Self::PM;
}

// SAFETY: `register` is that of `pci::Adapter` plus fields that it does not set.
unsafe impl<D: NvmeDriver> driver::RegistrationOps for Adapter<D> {
    unsafe fn register(
        pdrv: &Opaque<bindings::pci_driver>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        let raw = pdrv.get();
        // SAFETY: the driver is not registered yet, so its fields are ours; the tables are static.
        unsafe {
            (*raw).shutdown = Some(shutdown::<D>);
            (*raw).err_handler = &raw const Self::HANDLERS_REF.0;
            (*raw).driver.pm = &raw const Self::PM_REF.0;
            (*raw).driver.probe_type = bindings::probe_type_PROBE_PREFER_ASYNCHRONOUS;
        }
        // SAFETY: the requirements are the same.
        unsafe { <pci::Adapter<D> as driver::RegistrationOps>::register(pdrv, name, module) }?;
        if D::claims_all() {
            // SAFETY: the driver was registered just now.
            unsafe { claim_all(raw) }.inspect_err(|_| {
                // SAFETY: as above, and the error makes the caller forget the driver.
                unsafe { <Self as driver::RegistrationOps>::unregister(pdrv) }
            })?;
        }
        Ok(())
    }

    unsafe fn unregister(pdrv: &Opaque<bindings::pci_driver>) {
        // SAFETY: the requirements are the same.
        unsafe { <pci::Adapter<D> as driver::RegistrationOps>::unregister(pdrv) };
        // Work of the core for our controllers may still be on its way out.
        // SAFETY: the work queue exists as long as nvme-core, which this module depends on.
        unsafe { bindings::__flush_workqueue(bindings::nvme_wq) };
    }
}

/// Adds the class of all NVMe controllers to what the driver binds to.
///
/// # Safety
///
/// `pdrv` is registered.
unsafe fn claim_all(pdrv: *mut bindings::pci_driver) -> Result {
    const ANY: u32 = !0;
    // SAFETY: by the requirements.
    to_result(unsafe {
        bindings::pci_add_dynid(
            pdrv,
            ANY,
            ANY,
            ANY,
            ANY,
            bindings::PCI_CLASS_STORAGE_EXPRESS,
            0xff_ffff,
            0,
        )
    })
}

/// The registration of a bound device.
///
/// # Safety
///
/// `pdev` is bound to a driver `D`, and its device lock is held, so that it stays so.
unsafe fn registration<'a, D: NvmeDriver>(
    pdev: *mut bindings::pci_dev,
) -> Option<&'a Registration<D::Transport>> {
    // SAFETY: the driver's data is a box of a `Registration`, or NULL when it is not there (yet).
    unsafe {
        bindings::dev_get_drvdata(&raw mut (*pdev).dev)
            .cast::<Registration<D::Transport>>()
            .as_ref()
    }
}

/// The system goes down.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn shutdown<D: NvmeDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: the PCI core calls this for bound devices, with the device lock held.
    if let Some(reg) = unsafe { registration::<D>(pdev) } {
        reg.shutdown();
    }
}

/// # Safety
///
/// As [`registration`], with `dev` part of a PCI device.
unsafe fn of_device<'a, D: NvmeDriver>(
    dev: *mut bindings::device,
) -> Result<&'a Registration<D::Transport>> {
    // SAFETY: `dev` is part of a PCI device.
    let pdev = unsafe { kernel::container_of!(dev, bindings::pci_dev, dev) };
    // SAFETY: forwarded.
    unsafe { registration::<D>(pdev) }.ok_or(ENODEV)
}

/// The system goes to sleep.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn suspend<D: NvmeDriver>(dev: *mut bindings::device) -> c_int {
    from_result(|| {
        // SAFETY: the PM core calls this for bound devices, with the device lock held.
        unsafe { of_device::<D>(dev) }?.suspend(true)?;
        Ok(0)
    })
}

/// The system has woken up.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn resume<D: NvmeDriver>(dev: *mut bindings::device) -> c_int {
    from_result(|| {
        // SAFETY: the PM core calls this for bound devices, with the device lock held.
        unsafe { of_device::<D>(dev) }?.resume()?;
        Ok(0)
    })
}

/// PCI error recovery has found an error.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn error_detected<D: NvmeDriver>(
    pdev: *mut bindings::pci_dev,
    state: bindings::pci_channel_state_t,
) -> bindings::pci_ers_result_t {
    if state == bindings::pci_channel_io_normal {
        return bindings::pci_ers_result_PCI_ERS_RESULT_CAN_RECOVER;
    }
    // SAFETY: error recovery holds the device lock of bound devices.
    let Some(reg) = (unsafe { registration::<D>(pdev) }) else {
        return bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT;
    };
    if state == bindings::pci_channel_io_frozen && reg.frozen() {
        return bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET;
    }
    bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT
}

/// PCI error recovery has reset the function.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn slot_reset<D: NvmeDriver>(
    pdev: *mut bindings::pci_dev,
) -> bindings::pci_ers_result_t {
    // SAFETY: error recovery holds the device lock of bound devices.
    let Some(reg) = (unsafe { registration::<D>(pdev) }) else {
        return bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT;
    };
    reg.restore();
    reg.resume_or_fail();
    // Also if there is no restart: that is this controller's matter, not the port's.
    bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED
}

/// PCI error recovery is over.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn error_resume<D: NvmeDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: error recovery holds the device lock of bound devices.
    if let Some(reg) = unsafe { registration::<D>(pdev) } {
        reg.flush_reset();
    }
}

/// The function is going to be reset.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn reset_prepare<D: NvmeDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: the PCI core holds the device lock of the bound device.
    if let Some(reg) = unsafe { registration::<D>(pdev) } {
        // Refused only on the way out, and then there is nothing to prepare.
        let _ = reg.suspend(false);
        reg.sync_queues();
    }
}

/// The function was reset.
///
/// # Safety
///
/// Called by the PCI or PM core for a device of this driver, with the device lock held.
unsafe extern "C" fn reset_done<D: NvmeDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: the PCI core holds the device lock of the bound device.
    if let Some(reg) = unsafe { registration::<D>(pdev) } {
        if reg.resume().is_ok() {
            reg.flush_reset();
        }
    }
}
