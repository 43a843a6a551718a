// SPDX-License-Identifier: GPL-2.0

//! The safe face of the kernel's NVMe core (`drivers/nvme/host/core.c`) for a PCI transport.
//!
//! nvme-core is a library that is called by, and calls, the transport in many orders; most wrong
//! orders hang or corrupt memory. So the order is not left to the transport: what is here runs the
//! lists of calls (probe, restart, disable, teardown, timeout) and makes all changes of state, and
//! a [`Transport`] fills in the steps that touch its device.
//!
//! Three lifetimes, three owners:
//!
//! 1. [`Ctrl`], the block shared with nvme-core: counted by nvme-core, may outlive the binding.
//! 2. the device's resources (BAR, rings, vectors, interrupts): only reachable with a [`Bound`].
//! 3. [`Registration`], the driver's data of the bound device: its teardown ends the second and
//!    lets go of the first.
//!
//! All FFI to nvme-core, PCI and the device is in this module, that to the block layer in
//! [`blk`](crate::blk).

pub(crate) mod admin;
pub(crate) mod bound;
pub(crate) mod ctrl;
mod disable;
pub(crate) mod driver;
mod events;
pub(crate) mod ffi;
mod ops;
pub(crate) mod pci;
mod queues;
pub(crate) mod registration;
pub(crate) mod regs;
mod restart;
pub(crate) mod rings;
pub(crate) mod state;
mod timeout;
pub(crate) mod transport;
pub(crate) mod vectors;
pub(crate) mod word;

pub(crate) use self::{
    bound::Bound,
    ctrl::MAX_TRANSFER,
    events::EventSink,
    registration::Registration,
    timeout::Overdue,
    transport::{
        HwQueue,
        Transport, //
    }, //
};
