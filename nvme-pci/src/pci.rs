// SPDX-License-Identifier: GPL-2.0

//! The PCI driver: which devices it takes, and what it assembles for one.

use crate::{
    controller::NvmePci,
    nvme_core::{
        driver::NvmeDriver,
        Registration, //
    },
    params,
    quirks, //
};
use kernel::{
    device::Core,
    pci,
    prelude::*, //
};

/// The driver.
pub(crate) struct Driver;

/// A device identifier has 16 bits, so this one is nobody's.
const NOBODY: u32 = 1 << 16;

// The table matches no device, so that no disk is taken unasked: binding is by `driver_override`,
// by `new_id`, or by `claim_all`. It is not empty, as `new_id` only takes identifiers whose driver
// data is that of an entry.
kernel::pci_device_table!(
    PCI_TABLE,
    @none,
    [pci::DeviceId::from_id(pci::Vendor::REDHAT, NOBODY)]
);

impl pci::Driver for Driver {
    type IdInfo = ();
    type Data<'bound> = Registration<NvmePci>;
    const ID_TABLE: pci::IdTable<()> = &PCI_TABLE;

    fn probe<'bound>(
        dev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound ()>,
    ) -> impl PinInit<Registration<NvmePci>, Error> + 'bound {
        let quirks = quirks::of_device(dev.vendor_id().as_raw(), dev.device_id());
        Registration::new(dev, quirks, NvmePci::new())
    }

    fn unbind<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        registration: Pin<&Registration<NvmePci>>,
    ) {
        registration.teardown();
    }
}

impl NvmeDriver for Driver {
    type Transport = NvmePci;

    fn claims_all() -> bool {
        params::claim_all()
    }
}
