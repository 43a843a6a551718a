// SPDX-License-Identifier: GPL-2.0

//! On the kernel with all detectors (KASAN, lockdep, sleeping in atomic context, DMA API): the
//! same drivers, and faults that are put in.

use super::{
    load::Load,
    policies,
    rig::{
        self,
        Driver,
        Plan,
        ALL,
        LIMIT, //
    },
    teardown,
};
use crate::{
    failure::{
        Failure,
        Result, //
    },
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
};

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for driver in ALL {
        let name = driver.name();
        let about = "resets under load with all of the kernel's detectors on";
        let body = move |context: &Context<'_>| teardown::reset(context, driver, Flavour::Debug, 6);
        all.push(Case::new(
            format!("debug-reset-{name}"),
            &["ATOM-01", "TEAR-01"],
            about,
            body,
        ));
        let about = "requests that seem to time out, while the controller is reset";
        let body = move |context: &Context<'_>| timeouts(context, driver);
        all.push(Case::new(
            format!("debug-timeouts-{name}"),
            &["BAL-01", "TEAR-02"],
            about,
            body,
        ));
    }
    let about = "polled queues, pollers, resets and lost completions take their locks alike";
    all.push(Case::new("debug-polled", &["POLL-03"], about, polled));
    let about =
        "lines that are shared are called as soon as they are requested, and when they are freed";
    let body =
        |context: &Context<'_>| policies::level(context, Driver::Rust("fair"), Flavour::Debug);
    all.push(Case::new(
        "debug-level",
        &["TEAR-10", "TEAR-11"],
        about,
        body,
    ));
    let about = "the module goes while requests are outstanding, under each policy in turn";
    all.push(Case::new("debug-unload", &["TEAR-10"], about, unload));
    all
}

/// Everything that takes the lock of a queue, in the sight of lockdep: task context by polling and by
/// timeouts, softirqs by the poller, resets by reaping.
fn polled(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(2, 20);
    let plan = Plan::new("debug-polled", Driver::Rust("irqpoll"))?;
    let mut rig = plan
        .flavour(Flavour::Debug)
        .parameters("poll_queues=1")
        .allow(PROVOKED)
        .start(context)?;
    rig.sh(PREPARE)?;
    let polling = Load::read(32, 1, 2).set("hipri", 1).command();
    for _ in 0..rounds {
        rig.sh(&format!("{polling} && {LOSE}"))?;
        rig.sh(&format!("{} && {RESET}", Load::read(32, 1, 1).command()))?;
        let job = rig.guest.spawn(&polling)?;
        rig.sh(&format!("sleep 0.5; {RESET}"))?;
        rig.guest.wait(job, LIMIT)?;
    }
    let polls = rig.sh("cat /sys/block/nvme0n1/queue/io_poll")?;
    rig.finish()?;
    match polls.trim() {
        "1" => Ok(Outcome::pass(format!("{rounds} rounds (full: 20)"))),
        other => Err(Failure::new("look for polled queues", other)),
    }
}

/// Each round takes the driver off the device under load, and its module out; the next one is
/// another policy's.
fn unload(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(1, 10);
    let plan = Plan::new("debug-unload", Driver::Rust("hardirq"))?;
    let mut rig = plan.flavour(Flavour::Debug).start(context)?;
    let address = rig.sh("address")?.trim().to_owned();
    let folder = "/sys/bus/pci/drivers/nvme_rust";
    let policies: Vec<Driver> = rig::acting().map(Driver::Rust).collect();
    for driver in policies.repeat(rounds as usize) {
        let insmod = driver.insmod("");
        rig.sh(&format!("rmmod nvme_rust && {insmod} && wait_disk"))?;
        let job = rig.guest.spawn(&Load::read(64, 2, 20).command())?;
        teardown::still_loaded(&mut rig, &job)?;
        rig.sh(&format!("echo {address} > {folder}/unbind"))?;
        rig.guest.wait(job, LIMIT)?;
    }
    rig.sh(&format!("echo {address} > {folder}/bind && wait_disk"))?;
    rig.sh(&Load::alone(50).command())?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{} policies, {rounds} times each (full: 10)",
        policies.len()
    )))
}

/// What timeouts make the driver say.
const PROVOKED: &[&str] = &["completion polled", "timeout, aborting", "timeout, reset"];

/// Completions get lost only when a round says how many. Each is missed after 3 s, longer than a
/// reset takes on this kernel: a timeout in the middle of one is taken for a dead controller.
const PREPARE: &str = "fail=/sys/kernel/debug/fail_io_timeout; echo 0 > $fail/times; \
    echo 0 > $fail/verbose; echo 100 > $fail/probability; \
    echo 3000 > /sys/block/nvme0n1/queue/io_timeout; \
    echo 1 > /sys/block/nvme0n1/io-timeout-fail";

const LOSE: &str = "echo 3 > /sys/kernel/debug/fail_io_timeout/times";

const RESET: &str = "wait_live; echo 1 > /sys/class/nvme/nvme0/reset_controller; wait_live";

/// Three completions a round are lost, so that the driver has to abort and reset by itself, and
/// then it is told to reset.
fn timeouts(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(2, 50);
    let plan = Plan::new(&format!("debug-timeouts-{}", driver.name()), driver)?;
    let mut rig = plan
        .flavour(Flavour::Debug)
        .allow(PROVOKED)
        .start(context)?;
    rig.sh(PREPARE)?;
    for _ in 0..rounds {
        rig.sh(&format!(
            "{LOSE}; {} && {RESET}",
            Load::read(32, 1, 1).command()
        ))?;
    }
    rig.sh(&Load::verify("after", "io_uring", 16, 1, 8).command())?;
    let log = rig.guest.console()?;
    if !PROVOKED.iter().any(|line| log.contains(line)) {
        return Err(Failure::new(
            "lose completions",
            "the driver has not missed one",
        ));
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} rounds (full: 50)")))
}
