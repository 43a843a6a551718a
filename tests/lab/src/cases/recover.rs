// SPDX-License-Identifier: GPL-2.0

//! A link error that the kernel recovers from: the port and the controller behind it are reset, and
//! the lines are requested anew.

use super::{
    deferral::Busy,
    load::Load,
    nowait::{
        chrt,
        ASK,
        FREE,
        HOG, //
    },
    policies::{
        counter,
        crowded,
        crowded_disk, //
    },
    rig::{
        Driver,
        Plan,
        Rig, //
    },
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
};
use serde_json::json;

const IDS: &[&str] = &["BAL-03", "TEAR-08"];

/// The kernel's own first. The others are likely to own a line when the error is found, but for
/// `hardirq`.
const DRIVERS: &[Driver] = &[
    Driver::C,
    Driver::Rust("hardirq"),
    Driver::Rust("fair:share_percent=10,window_us=500"),
    Driver::Rust("irqpoll"),
    Driver::Rust("resched:budget=1"),
    Driver::Rust("threaded"),
];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for &driver in DRIVERS {
        let about = "errors of the link under load; every block is what was written";
        all.push(case(driver, about));
    }
    let about = "an error of the link while we own the mask of a vector that has fired";
    all.push(Case::new("link-owned", IDS, about, owned));
    all
}

fn case(driver: Driver, about: &'static str) -> Case {
    let name = format!("link-{}", driver.name());
    let plan = name.clone();
    let body = move |context: &Context<'_>| {
        let plan = Plan::with_disk(&plan, driver, Disk::soldered)?;
        let rig = plan.vm(|vm| vm.cmdline(NATIVE)).start(context)?;
        link_errors(context, rig, driver)
    };
    Case::new(name, IDS, about, body)
}

/// Without power management of links the kernel does not ask the firmware for their errors. This does not
/// ask for hotplug, either.
const NATIVE: &str = "pcie_ports=native";

/// What has to be true after so many errors of the link.
fn recovered(rig: &mut Rig, errors: u32) -> Result<()> {
    rig.sh(&format!(
        "recovered() {{ [ $(dmesg | grep -c 'device [r]ecovery successful') -eq {errors} ]; }}; \
         wait_for 60 recovered && wait_live"
    ))
    .map(drop)
}

fn link_errors(context: &Context<'_>, mut rig: Rig, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(4, 40);
    let busy = Busy::start(&mut rig, 64, 1)?;
    let ours = driver != Driver::C;
    let deferrals = |rig: &mut Rig| match ours {
        true => counter(rig, "deferrals"),
        false => Ok(0),
    };
    let mut deferred = 0;
    for round in 1..=rounds {
        deferred += deferrals(&mut rig)?;
        inject(&mut rig)?;
        recovered(&mut rig, round)?;
        rig.sh("sleep 0.3")?;
    }
    busy.finish(&mut rig)?;
    if ours {
        left_over(&mut rig)?;
    }
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{rounds} recoveries (full: 40), {deferred} deferrals between them"
    )))
}

/// A fatal error on the link between the port and the controller.
fn inject(rig: &mut Rig) -> Result<()> {
    let words = json!({"command-line": "pcie_aer_inject_error d0-port DLP"});
    let answer = rig.guest.qmp("human-monitor-command", words)?;
    match answer.as_str() {
        Some(text) if text.starts_with("OK") => Ok(()),
        _ => Err(Failure::new("inject a link error", answer.to_string())),
    }
}

/// No bit of the state but those of an open line is left, of any line.
fn left_over(rig: &mut Rig) -> Result<()> {
    let state = "cat /sys/kernel/debug/irqmod/nvme0q[1-9]*/state | sed 's/ HANDOFF//' | sort -u";
    let text = rig.sh(state)?;
    match text.trim() {
        "INIT" => Ok(()),
        text => Err(Failure::new("look at the state words", text)),
    }
}

/// The interrupt thread can not run, so a line that has fired stays masked, and recovery finds it so.
/// The error itself is handled on another CPU.
fn owned(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(3, 30);
    let disk = crowded_disk().soldered();
    let plan = Plan::with_disks("link-owned", Driver::Rust("threaded"), [disk], None);
    let chrt = chrt()?;
    let mut rig = plan
        .vm(crowded)
        .vm(|vm| vm.file("/bin/chrt", chrt).cmdline(NATIVE))
        .start(context)?;
    // An interrupt moves when it comes: with the first error, which is there for that.
    rig.sh(
        "echo 2 > /proc/irq/$(grep aerdrv /proc/interrupts | cut -d: -f1 | tr -d ' ')/smp_affinity",
    )?;
    inject(&mut rig)?;
    recovered(&mut rig, 1)?;
    for round in 1..=rounds {
        rig.sh(&format!("{HOG}; {ASK}; core_says nvme0q1 'ddepth: *1$'"))?;
        inject(&mut rig)?;
        rig.sh("wait_for 10 grep -q 'POLL MASKED PAUSED' /sys/kernel/debug/irqmod/nvme0q1/state")?;
        rig.sh(FREE)?;
        recovered(&mut rig, 1 + round)?;
        rig.sh("wait_for 10 core_says nvme0q1 'ddepth: *0$'")?;
        left_over(&mut rig)?;
        rig.sh(&Load::alone(1_000).command())?;
    }
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{rounds} recoveries (full: 30) that found the line masked"
    )))
}
