// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, as the driver uses them.

use crate::{
    module_parameters,
    nvme_core::vectors::{
        possible_cpus,
        possible_queues, //
    },
    plan::Wanted,
    queue::{
        Entries,
        MAX_IO_ENTRIES, //
    }, //
};
use core::ops::RangeInclusive;
use irqmod::policy::Choice;
use kernel::prelude::*;

irqmod::policy_param!(irq_policy: "hardirq");

/// The policy for moderated interrupts of the device of this name; asked for whenever one is requested.
pub(crate) fn policy(device: &CStr) -> Choice {
    irq_policy.get(device)
}

/// Refuses numbers that are out of range, with one line in the log. Called when the module is
/// loaded, before it takes any device: the kernel writes these parameters at no other time.
///
/// # Errors
///
/// `ERANGE`.
pub(crate) fn check() -> Result {
    let entries = Entries::MIN.get().into()..=MAX_IO_ENTRIES.into();
    let queues = 0..=possible_cpus();
    in_range("io_queue_depth", depth(), entries)?;
    in_range(
        "write_queues",
        module_parameters::write_queues.value(),
        queues.clone(),
    )?;
    in_range(
        "poll_queues",
        module_parameters::poll_queues.value(),
        queues,
    )
}

fn in_range(name: &str, value: u32, allowed: RangeInclusive<u32>) -> Result {
    if allowed.contains(&value) {
        return Ok(());
    }
    pr_err!("{name}: '{value}' is out of range; allowed: {allowed:?}\n");
    Err(ERANGE)
}

/// Entries of an I/O queue, if the controller supports that many.
pub(crate) fn depth() -> u32 {
    module_parameters::io_queue_depth.value()
}

/// Whether to bind to every NVMe device that no driver has.
pub(crate) fn claim_all() -> bool {
    module_parameters::claim_all.value()
}

/// The queues to ask for.
pub(crate) fn wanted() -> Wanted {
    // Above 65535 there are neither CPUs nor queues.
    let count = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    Wanted {
        cpus: possible_queues(),
        write_queues: count(module_parameters::write_queues.value()),
        poll_queues: count(module_parameters::poll_queues.value()),
    }
}
