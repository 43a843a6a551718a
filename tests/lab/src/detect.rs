// SPDX-License-Identifier: GPL-2.0

//! Detector D1: lines of the kernel's log that no healthy run has.

/// Texts that condemn a line.
const FAULTS: &[&str] = &[
    "BUG:",
    "WARNING:",
    "Oops",
    "soft lockup",
    "detected stall",
    "blocked for more than",
    "nobody cared",
    "Unbalanced",
    "list_add corruption",
    "list_del corruption",
    "KASAN",
    "ODEBUG",
    "DMA-API",
    "sleeping function",
    "scheduling while atomic",
    "completion polled",
    "timeout, aborting",
    "timeout, reset",
    "panicked at",
    "interrupt vectors are in use",
];

/// What debugging kernels say about themselves.
const HARMLESS: &[&str] = &[
    "DMA-API: preallocated",
    "DMA-API: debugging enabled",
    "ODEBUG: selftest passed",
    "lab: #",
];

/// Whether a line of the log condemns the run.
pub(crate) fn is_fault(line: &str) -> bool {
    let holds = |text: &&str| line.contains(text);
    FAULTS.iter().any(&holds) && !HARMLESS.iter().any(holds)
}

/// The condemning lines of a log, except those that `allowed` names.
pub(crate) fn faults(log: &str, allowed: &[&str]) -> Vec<String> {
    log.lines()
        .filter(|line| is_fault(line) && !allowed.iter().any(|text| line.contains(text)))
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line of each kind, as real kernels print them.
    const PLANTED: &[&str] = &[
        "[    9.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "[    9.1] WARNING: CPU: 0 PID: 1 at kernel/irq/manage.c:797 __enable_irq+0x3d/0x60",
        "[    9.1] Oops: 0002 [#1] SMP",
        "[   12.3] watchdog: BUG: soft lockup - CPU#0 stuck for 2s! [fio:77]",
        "[   12.3] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "[   12.3] rcu: INFO: rcu_sched self-detected stall on CPU",
        "[   12.3] INFO: task fio:88 blocked for more than 10 seconds.",
        "[    1.0] irq 24: nobody cared (try booting with the \"irqpoll\" option)",
        "[    1.0] Unbalanced enable for IRQ 25",
        "[    1.0] list_add corruption. next->prev should be prev",
        "[    1.0] list_del corruption, ffff8880 is LIST_POISON1",
        "[    1.0] KASAN: slab-use-after-free in nvme_irq",
        "[    1.0] ODEBUG: free active (active state 0) object: 0 object type: work_struct",
        "[    1.0] DMA-API: nvme 0000:00:02.0: device driver tries to free DMA memory",
        "[    1.0] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:1",
        "[    1.0] BUG: scheduling while atomic: fio/77/0x00010000",
        "[   31.0] nvme nvme0: I/O tag 3 (1003) QID 1 timeout, completion polled",
        "[   31.0] nvme nvme0: I/O tag 3 (1003) opcode 0x2 (I/O Cmd) QID 1 timeout, aborting req",
        "[   31.0] nvme nvme0: I/O tag 3 (1003) QID 1 timeout, reset controller",
        "[    1.0] rust_kernel: panicked at drivers/nvme/host/rust/queue.rs:1:1:",
        "[   40.1] nvme nvme0: interrupt vectors are in use",
    ];

    #[test]
    fn each_kind_of_fault_is_seen() {
        for line in PLANTED {
            assert!(is_fault(line), "{line}");
            let log = format!("[    0.1] fine\n{line}\n[   13.0] fine\n");
            assert_eq!(faults(&log, &[]), [*line]);
        }
    }

    #[test]
    fn each_entry_of_the_list_is_needed() {
        for fault in FAULTS {
            let seen = PLANTED.iter().any(|line| line.contains(fault));
            assert!(seen, "{fault:?} has no planted line");
        }
    }

    #[test]
    fn healthy_lines_pass() {
        for line in [
            "[    0.5] nvme nvme0: 4/0/0 default/read/poll queues",
            "[    0.1] kasan: KernelAddressSanitizer initialized (generic)",
            "[    0.1] DMA-API: preallocated 65536 debug entries",
            "[    0.1] lab: #3: dmesg | grep BUG:",
        ] {
            assert!(!is_fault(line), "{line}");
        }
    }

    #[test]
    fn a_case_may_allow_what_it_provokes() {
        let log = "[1] nvme nvme0: I/O tag 1 timeout, completion polled\n[2] BUG: x\n";
        assert_eq!(faults(log, &["completion polled"]), ["[2] BUG: x"]);
    }
}
