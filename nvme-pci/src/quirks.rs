// SPDX-License-Identifier: GPL-2.0

//! What is known to be wrong with devices, in the terms of nvme-core.
//!
//! Only devices that this driver was run with are here. The C driver knows many more; a disk that
//! needs one of its workarounds is better left to it.

use kernel::bindings;

/// Red Hat, Inc.; QEMU's NVMe controller. Its namespace identifiers may be those of another one.
const QEMU: (u16, u16) = (0x1b36, 0x0010);

/// The quirks of a device.
pub(crate) fn of_device(vendor: u16, device: u16) -> usize {
    match (vendor, device) {
        QEMU => bindings::nvme_quirks_NVME_QUIRK_BOGUS_NID as usize,
        _ => 0,
    }
}
