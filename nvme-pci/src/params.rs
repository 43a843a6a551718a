// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, as the driver uses them.

use crate::{
    module_parameters,
    nvme_core::vectors::possible_queues,
    plan::Wanted,
    queue::MAX_IO_ENTRIES, //
};
use irqmod::policy::Choice;

irqmod::policy_param!(irq_policy: "hardirq");

/// The policy for moderated interrupts; asked for whenever one is requested.
pub(crate) fn policy() -> Choice {
    irq_policy.get()
}

/// Entries of an I/O queue, if the controller supports that many.
pub(crate) fn depth() -> u32 {
    module_parameters::io_queue_depth
        .value()
        .clamp(2, MAX_IO_ENTRIES.into())
}

/// Whether to bind to every NVMe device that no driver has.
pub(crate) fn claim_all() -> bool {
    module_parameters::claim_all.value()
}

/// The queues to ask for.
pub(crate) fn wanted() -> Wanted {
    let cpus = possible_queues();
    let at_most_cpus = |count: u32| u16::try_from(count).unwrap_or(u16::MAX).min(cpus);
    Wanted {
        cpus,
        write_queues: at_most_cpus(module_parameters::write_queues.value()),
        poll_queues: at_most_cpus(module_parameters::poll_queues.value()),
    }
}
