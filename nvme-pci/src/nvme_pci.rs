// SPDX-License-Identifier: GPL-2.0

//! An NVMe driver for PCI, whose completions are moderated by [`irqmod`].
//!
//! It is a transport of the kernel's own NVMe core, beside the C driver (`pci.c`): namespaces,
//! character devices, passthrough, events and sysfs are the core's, and look the same. What is
//! here, from the inside out:
//!
//! - `prp cid doorbell queue plan command`: arithmetic, tested on the host;
//! - [`blk`] and [`nvme_core`]: the safe faces of the block layer and the NVMe core, and the only
//!   places with `unsafe`;
//! - [`io_queue`]: one hardware queue, which is an interrupt source of irqmod;
//! - [`controller`], [`reset`]: bringing a controller up and its queues down;
//! - [`pci`]: the driver.
//!
//! It takes no device unless told to, see [`pci`].

#![deny(unsafe_code)]

use kernel::{
    driver,
    prelude::*,
    InPlaceModule,
    ModuleMetadata,
    ThisModule, //
};

#[allow(unsafe_code)]
mod blk;
pub mod cid;
pub mod command;
mod controller;
pub mod doorbell;
mod io_queue;
#[allow(unsafe_code)]
mod nvme_core;
mod params;
mod pci;
pub mod plan;
pub mod prp;
pub mod queue;
mod quirks;
mod reset;
mod sync;

module! {
    type: Module,
    name: "nvme_rust",
    authors: ["The irqmod authors"],
    description: "NVMe PCI driver in Rust, with completion moderation",
    license: "GPL",
    params: {
        io_queue_depth: u32 {
            default: 1024,
            description: "Entries of an I/O queue, 2 to 4096",
        },
        write_queues: u32 {
            default: 0,
            description: "I/O queues for everything but reads, up to one per CPU; 0: all are for both",
        },
        poll_queues: u32 {
            default: 0,
            description: "I/O queues for polled I/O, which have no interrupt, up to one per CPU",
        },
        claim_all: bool {
            default: false,
            description: "Bind to every NVMe device that has no driver, without the C driver's quirks",
        },
    },
}

/// The loaded module.
#[pin_data]
pub(crate) struct Module {
    #[pin]
    _driver: driver::Registration<nvme_core::driver::Adapter<pci::Driver>>,
}

impl InPlaceModule for Module {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _: { params::check()? },
            _driver <- driver::Registration::new(<Self as ModuleMetadata>::NAME, module),
        })
    }
}
