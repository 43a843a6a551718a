// SPDX-License-Identifier: GPL-2.0

//! What things cost on the machines of the tables, and where each number comes from.
//!
//! A number is *fit* if it was chosen so that a row of the field report comes out; the row is named
//! and is no evidence for the model. Everything else is a guess of the usual size, which no row
//! depends on by more than its own tolerance.

use crate::{
    machine::{
        Costs,
        Device,
        Kernel, //
    },
    Machine,
    Workload, //
};

/// Costs of a machine that is not virtual.
pub fn bare_metal() -> Costs {
    Costs {
        collect: 60,
        complete: 600,
        complete_hard: 700,
        doorbell: 150,
        interrupt: 500,
        tick: 1_000,
        softirq: 200,
        switch: 1_000,
        idle_exit: 1_500,
        thread_wake: 1_000,
        arm: 200,
        mask_lazy: 50,
        mask_sync: 1_833,
        mask_posted: 51,
        mask_parent: 1_000,
        replay: 500,
        prepare: 500,
        submit: 2_000,
        reap: 500,
        reap_each: 300,
        copy_kib: 100,
    }
}

/// Costs of the field machine.
pub fn field_costs() -> Costs {
    Costs {
        // Of the 2.5 us that a completion takes: reading the entry, as on bare metal.
        collect: 100,
        // Fit, storm under the C driver's `threaded`: 3.165M IOPS are 4.42 us for one completion
        // and about one interrupt; 2.0 of them are `interrupt`.
        complete: 2_300,
        // Fit, storm under `timer` with push: 1.962M IOPS are 7.1 us for each completion.
        complete_hard: 6_900,
        doorbell: 300,
        // Fit, QD1 under `timer` 10 us, which costs one more interrupt and arming a timer.
        interrupt: 2_000,
        tick: 2_000,
        softirq: 300,
        switch: 1_500,
        // A halted virtual CPU.
        idle_exit: 4_000,
        // Fit, QD1 under the C driver's `threaded`.
        thread_wake: 6_600,
        // Fit together with `interrupt`.
        arm: 1_900,
        mask_lazy: 50,
        mask_sync: 1_833,
        mask_posted: 51,
        mask_parent: 1_000,
        replay: 2_000,
        // Fit, QD1 under the default: what the time from one request to the next is longer than the
        // latency.
        prepare: 2_000,
        submit: 6_000,
        reap: 1_000,
        reap_each: 500,
        copy_kib: 100,
    }
}

/// The ARM64 virtual machine of the field report: 128 CPUs, 4 controllers with 14 queues each.
pub fn field() -> Machine {
    Machine {
        name: "field".into(),
        cpus: 128,
        controllers: 4,
        queues: 14,
        device: Device {
            // Fit, storm under `resched`: 4.986M IOPS repeat within 0.04 %, which is the devices.
            cap_iops: 1_248_000,
            cap_cv: 20,
            // Fit, QD1 under the default: mean and p99.
            base_ns: 17_500,
            base_cv: 4,
            slow_permille: 12,
            slow_ns: 70_400,
            depth: 1024,
            message_ns: 0,
            latches: true,
            posted_ns: 500,
        },
        kernel: Kernel::default(),
        costs: field_costs(),
    }
}

/// The storm of the field report: 128 jobs with 256 requests each.
pub fn storm() -> Workload {
    Workload {
        jobs: 128,
        depth: 256,
        ..Workload::default()
    }
}

/// One request at a time, on one controller.
pub fn qd1() -> Workload {
    Workload {
        files: 1,
        ..Workload::default()
    }
}
