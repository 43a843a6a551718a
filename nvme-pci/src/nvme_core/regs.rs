// SPDX-License-Identifier: GPL-2.0

//! The controller's registers (BAR 0), and the doorbells that lie among them.

use crate::nvme_core::ffi;
use kernel::{
    bindings,
    device,
    pci,
    prelude::*,
    sync::Arc, //
};

/// Registers of the NVMe base specification that the transport itself reads or writes.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Reg {
    /// Controller capabilities, 64 bits.
    Cap = 0x00,
    /// Controller status.
    Csts = 0x1c,
    /// Sizes of the admin queues.
    Aqa = 0x24,
    /// Base of the admin submission queue, 64 bits.
    Asq = 0x28,
    /// Base of the admin completion queue, 64 bits.
    Acq = 0x30,
}

/// A controller that does not answer reads as all ones.
pub(crate) const GONE: u32 = !0;

/// No more than this of the BAR is mapped: room for thousands of queues, but not for a controller
/// memory buffer of gigabytes that may follow the doorbells.
const MAX_MAPPED: usize = 1 << 20;

/// BAR 0, requested and mapped.
///
/// # Invariants
///
/// `base` is a mapping of the first `len` bytes of BAR 0 of `pdev`, whose region is requested;
/// `len` is at least one page, and `pdev` outlives the mapping.
pub(crate) struct Registers {
    pdev: *mut bindings::pci_dev,
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping may be used and undone from any task; `pdev` is only passed to functions
// that are callable from any task.
unsafe impl Send for Registers {}
// SAFETY: all accesses through a shared reference are single MMIO reads and writes.
unsafe impl Sync for Registers {}

impl Registers {
    /// Requests and maps BAR 0.
    pub(crate) fn map(dev: &pci::Device<device::Bound>) -> Result<Arc<Self>> {
        let len = usize::try_from(dev.resource_len(0)?)?.min(MAX_MAPPED);
        if len < kernel::page::PAGE_SIZE {
            return Err(ENODEV);
        }
        let pdev = super::pci::as_raw(dev);
        // SAFETY: `pdev` is a valid, bound PCI device and the name is static.
        kernel::error::to_result(unsafe {
            bindings::pci_request_region(pdev, 0, c"nvme-rust".as_char_ptr())
        })?;
        // SAFETY: as above.
        let base = unsafe { bindings::pci_iomap(pdev, 0, len) };
        if base.is_null() {
            // SAFETY: the region was requested above.
            unsafe { bindings::pci_release_region(pdev, 0) };
            return Err(ENOMEM);
        }
        // INVARIANT: just mapped. The teardown drops every holder of the `Arc` while bound.
        let regs = Self {
            pdev,
            base: base.cast(),
            len,
        };
        Ok(Arc::new(regs, GFP_KERNEL)?)
    }

    /// How many bytes are mapped.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn at(&self, off: usize, size: usize) -> Result<*mut u8> {
        if off.checked_add(size).is_none_or(|end| end > self.len) || !off.is_multiple_of(size) {
            return Err(EINVAL);
        }
        // SAFETY: `off` is within the mapping.
        Ok(unsafe { self.base.add(off) })
    }

    /// Reads 32 bits at any offset; for nvme-core.
    pub(crate) fn read32_at(&self, off: u32) -> Result<u32> {
        let addr = self.at(off as usize, 4)?;
        // SAFETY: `addr` is a mapped, aligned register.
        Ok(unsafe { bindings::readl(addr.cast()) })
    }

    /// Writes 32 bits at any offset; for nvme-core.
    pub(crate) fn write32_at(&self, off: u32, value: u32) -> Result {
        let addr = self.at(off as usize, 4)?;
        // SAFETY: `addr` is a mapped, aligned register.
        unsafe { bindings::writel(value, addr.cast()) };
        Ok(())
    }

    /// Reads 64 bits at any offset, low half first, as some controllers demand.
    pub(crate) fn read64_at(&self, off: u32) -> Result<u64> {
        let addr = self.at(off as usize, 8)?;
        // SAFETY: `addr` is a mapped, aligned register.
        Ok(unsafe { ffi::nvme_rust_readq(addr) })
    }

    /// Reads a 32-bit register.
    pub(crate) fn read32(&self, reg: Reg) -> u32 {
        self.read32_at(reg as u32).unwrap_or(GONE)
    }

    /// Reads a 64-bit register.
    pub(crate) fn read64(&self, reg: Reg) -> u64 {
        self.read64_at(reg as u32).unwrap_or(!0)
    }

    /// Writes a 32-bit register.
    pub(crate) fn write32(&self, reg: Reg, value: u32) -> Result {
        self.write32_at(reg as u32, value)
    }

    /// Writes a 64-bit register, low half first.
    pub(crate) fn write64(&self, reg: Reg, value: u64) -> Result {
        let addr = self.at(reg as usize, 8)?;
        // SAFETY: `addr` is a mapped, aligned register.
        unsafe { ffi::nvme_rust_writeq(value, addr) };
        Ok(())
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: by the invariants `base` is what `pci_iomap` returned for `pdev`.
        unsafe { bindings::pci_iounmap(self.pdev, self.base.cast()) };
        // SAFETY: by the invariants the region is requested.
        unsafe { bindings::pci_release_region(self.pdev, 0) };
    }
}

/// One doorbell: the place to which a queue's tail or head is written.
///
/// # Invariants
///
/// `addr` is an aligned 32-bit register inside the mapping that `_regs` keeps alive.
pub(crate) struct Doorbell {
    addr: *mut u8,
    _regs: Arc<Registers>,
}

// SAFETY: a doorbell is one MMIO register of a mapping that is itself `Send`.
unsafe impl Send for Doorbell {}
// SAFETY: the only access is a single MMIO write.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// The doorbell at byte `off` of the BAR.
    pub(crate) fn new(regs: &Arc<Registers>, off: usize) -> Result<Self> {
        // INVARIANT: `at` checked range and alignment.
        Ok(Self {
            addr: regs.at(off, 4)?,
            _regs: regs.clone(),
        })
    }

    /// Rings it. Earlier writes to memory are visible to the device before this one.
    #[inline]
    pub(crate) fn ring(&self, value: u16) {
        // SAFETY: by the invariants `addr` is a mapped, aligned register.
        unsafe { bindings::writel(u32::from(value), self.addr.cast()) };
    }
}
