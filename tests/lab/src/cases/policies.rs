// SPDX-License-Identifier: GPL-2.0

//! What policies do when they have to act.

use super::{
    load::Load,
    rig::{
        self,
        Driver,
        Plan,
        Rig,
        POLICIES, //
    },
};
use crate::{
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::{
        Time,
        Vm, //
    },
};
use guest_agent::report::Report;
use irqmod::policy::Config;
use std::time::Duration;

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for budget in [
        "resched:budget=1",
        "resched:budget=2",
        "resched:budget=64",
        "resched:budget=256",
    ] {
        let driver = Driver::Rust(budget);
        let about = "as many requests as the budget: the poller is handed back right";
        let body = move |context: &Context<'_>| weight(context, driver);
        all.push(Case::new(
            format!("weight-{}", driver.name()),
            &["POLL-01"],
            about,
            body,
        ));
    }
    for driver in POLICIES.into_iter().chain(rig::more()) {
        let about = "one request at a time: no completion is missed at the hand-back";
        let body = move |context: &Context<'_>| missed(context, driver);
        all.push(Case::new(
            format!("missed-{}", driver.name()),
            &["MISS-03"],
            about,
            body,
        ));
    }
    let about = "after a storm the kernel counts next to no unhandled interrupts";
    all.push(Case::new("spurious", &["SPUR-04"], about, spurious));
    for driver in with_defaults(&["resched", "threaded", "fair"]) {
        let about = "three CPUs feed one queue, the fourth does not starve";
        let body = move |context: &Context<'_>| single_queue(context, driver);
        all.push(Case::new(
            format!("single-queue-{}", driver.name()),
            &["STORM-03"],
            about,
            body,
        ));
    }
    for driver in with_defaults(&["resched", "workqueue", "fair"]) {
        let about = "large reads are copied out of bounce buffers, CPU 0 does not starve";
        let body = move |context: &Context<'_>| copies(context, driver);
        all.push(Case::new(
            format!("copies-{}", driver.name()),
            &["SWI-01"],
            about,
            body,
        ));
    }
    for driver in with_defaults(&["threaded", "fair"]) {
        let about = "without MSI a line is level triggered and shared: the plain handler, whatever is asked for";
        let body = move |context: &Context<'_>| level(context, driver, Flavour::Base);
        all.push(Case::new(
            format!("level-{}", driver.name()),
            &["SPUR-01"],
            about,
            body,
        ));
    }
    all
}

/// Ours with those of these policies that the library has.
fn with_defaults(names: &[&'static str]) -> Vec<Driver> {
    let known = |name: &&&str| Config::NAMES.contains(*name);
    names
        .iter()
        .filter(known)
        .map(|n| Driver::Rust(n))
        .collect()
}

/// Completions on CPU 0, where an ordinary task wants to run too.
pub(crate) fn crowded(vm: Vm) -> Vm {
    vm.cpus(4)
        .cmdline("isolcpus=managed_irq,1-3 swiotlb=65536,force")
}

/// The disk for that: one queue.
pub(crate) fn crowded_disk() -> Disk {
    Disk::null("d0", 1 << 30).ioqpairs(1).set("dbcs", "off")
}

/// Loads the disk from the other CPUs while a task keeps CPU 0 busy.
pub(crate) fn storm(rig: &mut Rig, depth: u32, seconds: u32) -> Result<()> {
    rig.sh("taskset 1 sh -c 'while :; do :; done' > /dev/null 2>&1 & echo $! > /tmp/busy")?;
    let load = Load::read(depth, 3, seconds).set("cpus_allowed", "1-3");
    rig.sh(&load.command())?;
    rig.sh("kill $(cat /tmp/busy)").map(drop)
}

fn weight(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let Driver::Rust(policy) = driver else {
        return Ok(Outcome::skip("the kernel's driver has no budget"));
    };
    let budget: u32 = policy
        .rsplit('=')
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(256);
    let plan = Plan::with_disks(&format!("weight-{budget}"), driver, [crowded_disk()], None);
    let mut rig = plan.vm(crowded).start(context)?;
    storm(&mut rig, budget.div_ceil(3).max(1), context.count(3, 20))?;
    // All is handed back, so that each deferral has had its last poll.
    rig.idle()?;
    let deferrals = counter(&mut rig, "deferrals")?;
    let polls = counter(&mut rig, "polls")?;
    rig.finish()?;
    let text = format!("{deferrals} deferrals, {polls} polls");
    if deferrals == 0 || polls < deferrals {
        return Err(Failure::new("hand the poller back", text));
    }
    Ok(Outcome::pass(text))
}

/// A counter of irqmod, summed over all lines.
pub(crate) fn counter(rig: &mut Rig, name: &str) -> Result<u64> {
    let text = rig.sh(&format!("counter {name}"))?;
    let failure = || {
        Failure::new(
            format!("read the counter {name}"),
            format!("'{}'", text.trim()),
        )
    };
    text.trim().parse().map_err(|_| failure())
}

fn missed(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let name = format!("missed-{}", driver.name());
    let disk = Disk::null("d0", 1 << 30).set("dbcs", "off");
    let mut rig = Plan::with_disks(&name, driver, [disk], None).start(context)?;
    let requests = context.count(10_000, 100_000);
    rig.sh(&Load::alone(requests).command())?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{requests} requests (full: 100000), each within 5 s"
    )))
}

fn spurious(context: &Context<'_>) -> Result<Outcome> {
    let plan = Plan::with_disks("spurious", POLICIES[1], [crowded_disk()], None);
    let mut rig = plan.vm(crowded).start(context)?;
    storm(&mut rig, 128, context.count(3, 20))?;
    let text = rig.sh("for irq in $(vectors); do grep ^unhandled /proc/irq/$irq/spurious; done")?;
    let numbers = text
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let vectors = rig.sh("vectors")?.split_whitespace().count();
    let worst = numbers.iter().copied().max().unwrap_or(u64::MAX);
    let forgiven = counter(&mut rig, "forgiven")?;
    let deferrals = counter(&mut rig, "deferrals")?;
    rig.finish()?;
    if worst > 100 || numbers.len() != vectors || deferrals == 0 {
        let cause = format!("{numbers:?} of {vectors} lines, {deferrals} deferrals");
        return Err(Failure::new("count unhandled interrupts", cause));
    }
    Ok(Outcome::pass(format!(
        "{worst} unhandled, {forgiven} forgiven"
    )))
}

/// The longest that an ordinary task may wait for a storm.
const BOUND: Duration = Duration::from_millis(500);

/// In virtual time, so that the bound holds on a busy host too.
fn single_queue(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let name = format!("single-queue-{}", driver.name());
    let plan = Plan::with_disks(&name, driver, [crowded_disk()], None);
    let mut rig = plan
        .vm(crowded)
        .vm(|vm| vm.time(Time::Virtual))
        .start(context)?;
    let ms = context.count(2000, 10_000);
    let load = format!("--ms {ms} --depth 128 $DISK@1 $DISK@2 $DISK@3");
    let note = watched(&mut rig, &load)?;
    rig.finish()?;
    Ok(Outcome::pass(note))
}

/// Two controllers on interrupt pins, which may well be one line.
pub(crate) fn level(context: &Context<'_>, driver: Driver, flavour: Flavour) -> Result<Outcome> {
    let name = match flavour {
        Flavour::Base => format!("level-{}", driver.name()),
        Flavour::Debug => "debug-level".into(),
    };
    let disks = ["d0", "d1"].map(|id| Disk::null(id, 1 << 30).set("dbcs", "off"));
    let mut rig = Plan::with_disks(&name, driver, disks, None)
        .flavour(flavour)
        .vm(|vm| vm.cmdline("pci=nomsi"))
        .start(context)?;
    rig.sh("wait_disk /dev/nvme1n1")?;
    let requests = context.count(1_500, 30_000);
    let before = level_interrupts(&mut rig)?;
    for (disk, depth) in [("/dev/nvme0n1", 1), ("/dev/nvme1n1", 32)] {
        let load = Load::new("level", "randread")
            .set("filename", disk)
            .set("bs", 4096)
            .set("ioengine", "io_uring")
            .set("iodepth", depth)
            .set("number_ios", requests)
            .set("max_latency", "5s");
        rig.sh(&load.command())?;
    }
    let interrupts = level_interrupts(&mut rig)? - before;
    // While the other controller has the line, or could have it.
    rig.sh(
        "cd /sys/bus/pci/drivers/nvme_rust; device=$(address); for round in 1 2 3; do \
         echo $device > unbind && echo $device > bind && wait_disk || exit; done",
    )?;
    rig.finish()?;
    if interrupts == 0 || interrupts > 10 * 2 * u64::from(requests) {
        let cause = format!("{interrupts} for {} requests", 2 * requests);
        return Err(Failure::new("count interrupts", cause));
    }
    Ok(Outcome::pass(format!(
        "{interrupts} interrupts for {} requests",
        2 * requests
    )))
}

/// Interrupts of the disks since boot; there must be no message among them.
fn level_interrupts(rig: &mut Rig) -> Result<u64> {
    let text = rig.sh("grep nvme /proc/interrupts")?;
    if text.contains("MSI") || !text.contains("fasteoi") {
        return Err(Failure::new("look for interrupt pins", text));
    }
    let counts = text
        .lines()
        .flat_map(|line| line.split_ascii_whitespace().skip(1).take(2));
    Ok(counts.filter_map(|word| word.parse::<u64>().ok()).sum())
}

/// 128 KiB that are copied cost what a hundred small requests do: a budget of entries is no bound.
fn copies(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let name = format!("copies-{}", driver.name());
    let disk = Disk::null("d0", 1 << 30).ioqpairs(2).set("dbcs", "off");
    let mut rig = Plan::with_disks(&name, driver, [disk], None)
        .parameters("write_queues=1")
        .vm(|vm| {
            vm.cpus(5)
                .time(Time::Virtual)
                .cmdline("isolcpus=managed_irq,1-4 swiotlb=65536,force")
        })
        .start(context)?;
    let ms = context.count(2000, 10_000);
    let targets = "$DISK@1 $DISK@2 $DISK@3 $DISK@4";
    let load = format!("--ms {ms} --depth 64 --block 131072 --sequential {targets}");
    let note = watched(&mut rig, &load)?;
    rig.finish()?;
    Ok(Outcome::pass(note))
}

/// Runs the agent's load; an ordinary task on CPU 0 has to run in time meanwhile.
fn watched(rig: &mut Rig, load: &str) -> Result<String> {
    let text = rig.sh(&format!("guest-agent load {load}"))?;
    let report: Report = serde_json::from_str(&text).at("read the agent's report")?;
    let wait = report.canary.map_or(Duration::MAX, |canary| {
        Duration::from_nanos(canary.max.len_ns)
    });
    let (done, bad) = report
        .load
        .map_or((0, 1), |load| (load.completions, load.errors + load.lost));
    if wait > BOUND || bad > 0 || done == 0 {
        let cause = format!("a task waited {wait:?}; {done} requests, {bad} of them bad");
        return Err(Failure::new("watch CPU 0 under load", cause).log(rig.guest.console_path()));
    }
    Ok(format!("{done} requests, longest wait of a task {wait:?}"))
}
