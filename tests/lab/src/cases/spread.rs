// SPDX-License-Identifier: GPL-2.0

//! Interrupt threads that may run wherever their interrupt may be sent to.

use super::rig::{
    Driver,
    Plan,
    Rig,
    LIMIT, //
};
use crate::{
    disk::Disk,
    failure::{
        Failure,
        Result, //
    },
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::Time,
};
use std::collections::BTreeSet;

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    vec![Case::new(
        "spread",
        &[],
        "the threads of four disks run on several CPUs, and on one when that is switched off",
        spread,
    )]
}

/// The threads of the disks' queues, as folders in `/proc`, and what is known of them.
const THREADS: &str = r#"
threads() {
    for task in /proc/[0-9]*; do
        read -r name 2> /dev/null < $task/comm || continue
        case $name in irq/*-nvme[0-3]q[1-9]*) echo $task ;; esac
    done
}

# The vectors of the queues.
queues() { grep 'nvme[0-3]q[1-9]' /proc/interrupts | cut -d: -f1; }

choose() {
    for line in /sys/kernel/debug/irqmod/nvme[0-3]q[1-9]*; do echo $1 > $line/policy || return; done
}

# Where those may run that have run by now; the others don't know yet.
allowed() {
    for task in $(threads); do
        [ $(awk '{ print $14 + $15 }' $task/stat) -gt 0 ] || continue
        awk '/^Cpus_allowed_list/ { print $2 }' $task/status
    done | sort -u
}

# Where all the interrupts are sent.
sent() { for irq in $(queues); do cat /proc/irq/$irq/effective_affinity_list; done | sort -u; }

# The CPUs of those that have run by now; one line for a moment, until COUNT moments are over.
moments() {
    list=$(threads | sed 's/$/\/stat/')
    for i in $(seq $1); do
        awk '$14 + $15 > 0 { printf "%s ", $39 } END { print "" }' $list
        usleep 20000
    done
}
"#;

/// All interrupts are sent to this CPU while it is there.
const HOME: &str = "1";

/// Any of the guest's CPUs.
const ANY: &str = "0-4";

fn spread(context: &Context<'_>) -> Result<Outcome> {
    let disks = (0..4).map(|i| {
        let disk = Disk::null(&format!("d{i}"), 1 << 30);
        disk.ioqpairs(2).set("dbcs", "off")
    });
    let driver = Driver::Rust("threaded:spread=1");
    let mut rig = Plan::with_disks("spread", driver, disks, None)
        .parameters("write_queues=1")
        .vm(|vm| {
            vm.cpus(5)
                .time(Time::Virtual)
                .cmdline("isolcpus=managed_irq,0,2-4 swiotlb=force")
                .file("/etc/threads.sh", THREADS)
        })
        .start(context)?;
    rig.sh("for i in 1 2 3; do wait_disk /dev/nvme${i}n1; done")?;
    let apart = under_load(&mut rig, ANY)?;
    // At once, without an interrupt, also under a policy that has no use for the thread.
    for policy in [
        "threaded",
        "threaded:spread=1",
        "resched",
        "threaded:spread=1",
    ] {
        choose(&mut rig, policy)?;
        let place = if policy.contains("spread") { ANY } else { HOME };
        expect(
            &mut rig,
            &format!("{policy}, just chosen"),
            "allowed",
            place,
        )?;
    }
    moved(&mut rig)?;
    choose(&mut rig, "threaded")?;
    let together = under_load(&mut rig, HOME)?;
    rig.finish()?;
    if apart < 3 || together != 1 {
        let cause = format!("on {apart} CPUs at once, and on {together} after that");
        return Err(Failure::new("spread the threads of four disks", cause));
    }
    Ok(Outcome::pass(format!(
        "threads of four disks on {apart} CPUs at once; on {together} when switched off"
    )))
}

/// The interrupts are sent elsewhere while their CPU is away, and the threads stay spread.
fn moved(rig: &mut Rig) -> Result<()> {
    rig.sh("echo 0 > /sys/devices/system/cpu/cpu1/online")?;
    run(rig, "! sent | grep -x 1")?;
    under_load(rig, ANY)?;
    rig.sh("echo 1 > /sys/devices/system/cpu/cpu1/online")?;
    // They come back with the next of each.
    under_load(rig, ANY)?;
    run(rig, "sent | grep -x 1").map(drop)
}

fn run(rig: &mut Rig, command: &str) -> Result<String> {
    rig.sh(&format!(". /etc/threads.sh; {command}"))
}

fn choose(rig: &mut Rig, policy: &str) -> Result<()> {
    run(rig, &format!("choose {policy}")).map(drop)
}

fn expect(rig: &mut Rig, when: &str, what: &str, wanted: &str) -> Result<()> {
    let text = run(rig, what)?;
    if text.trim() == wanted {
        return Ok(());
    }
    let cause = format!("'{}' instead of '{wanted}'", text.trim());
    Err(Failure::new(format!("look where: {what} ({when})"), cause))
}

/// What is common to the reads from all disks.
const READ: &str = "fio --rw=randread --bs=4096 --direct=1 --thread=1 --ioengine=io_uring \
    --iodepth=128 --time_based=1 --runtime=1";

/// A job for each disk, on a CPU of its own.
fn each_disk() -> String {
    let job = |(i, cpu)| format!("--name=d{i} --filename=/dev/nvme{i}n1 --cpus_allowed={cpu}");
    let jobs: Vec<_> = [0, 2, 3, 4].iter().enumerate().map(job).collect();
    jobs.join(" ")
}

/// All four disks are read from; the threads must have been allowed to run in `place` then. Returns
/// the largest number of CPUs that those who had work were on at one moment.
fn under_load(rig: &mut Rig, place: &str) -> Result<usize> {
    let load = rig.guest.spawn(&format!("{READ} {}", each_disk()))?;
    // The first moments would be those of the last load.
    let text = run(rig, "sleep 0.3; moments 20")?;
    let output = rig.guest.wait(load, LIMIT)?;
    if output.code != 0 {
        return Err(Failure::new("read from four disks", output.text));
    }
    expect(rig, "after a load", "allowed", place)?;
    let together = |line: &str| line.split_whitespace().collect::<BTreeSet<_>>().len();
    Ok(text.lines().map(together).max().unwrap_or_default())
}
