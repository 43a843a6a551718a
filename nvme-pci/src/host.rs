// SPDX-License-Identifier: GPL-2.0

//! The pure halves of the driver, for host tests.
//!
//! What is here decides: where a command's data lies, which identifier is whose, how far a ring is,
//! where a doorbell is. It does nothing: no device, no request, no memory of the kernel. So it is
//! the same on any host, and the tests in `nvme-pci/tests` run in seconds. In the kernel the same
//! files are modules of `nvme_pci.rs`.

#![no_std]

pub mod cid;
pub mod command;
pub mod doorbell;
pub mod plan;
pub mod prp;
pub mod queue;
mod sync;
