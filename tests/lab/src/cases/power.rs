// SPDX-License-Identifier: GPL-2.0

//! Suspend: all CPUs go but one, and that one stops.

use super::{
    deferral::Busy,
    load::Load,
    rig,
    rig::{
        Plan,
        Rig,
        LIMIT,
        POLICIES, //
    },
};
use crate::{
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
use std::{
    thread,
    time::{
        Duration,
        Instant, //
    },
};
/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about = "suspend up to the last CPU's stop under load, with each policy; then all the way";
    vec![Case::new("suspend", &["MISS-01"], about, suspend)]
}

/// How far a suspend goes before it is turned back: each includes those before it. The last one
/// stops the boot CPU's interrupts when the others have gone.
const LEVELS: &[&str] = &["freezer", "devices", "platform", "processors", "core"];

fn suspend(context: &Context<'_>) -> Result<Outcome> {
    let start = || Plan::new("suspend", POLICIES[0])?.start(context);
    rig::with_patience(context, start, |rig| rounds(context, rig))
}

/// A vector table that came back wrong shows in the first request.
fn rounds(context: &Context<'_>, mut rig: Rig) -> Result<Outcome> {
    rig.sh("echo 1 > /sys/module/suspend/parameters/pm_test_delay")?;
    let busy = Busy::start(&mut rig, 32, 1)?;
    for level in LEVELS {
        turned_back(&mut rig, level)?;
    }
    let mut count = LEVELS.len();
    // Every third of them, or all.
    for policy in rig::acting().step_by(context.count(3, 1) as usize) {
        choose(&mut rig, policy)?;
        for _ in 0..context.count(1, 5) {
            turned_back(&mut rig, "core")?;
            count += 1;
        }
    }
    for _ in 0..context.count(1, 3) {
        all_the_way(&mut rig)?;
    }
    busy.finish(&mut rig)?;
    rig.sh(&Load::alone(200).command())?;
    rig.idle()?;
    // The emulator, which does not switch off any more once it has slept, ends with the guest.
    rig.check_logs()?;
    Ok(Outcome::pass(format!(
        "{count} turned back, then one to the end, beside checked writes"
    )))
}

fn choose(rig: &mut Rig, policy: &str) -> Result<()> {
    rig.sh(&format!(
        "for line in /sys/kernel/debug/irqmod/nvme0q[1-9]*; do echo {policy} > $line/policy; done"
    ))
    .map(drop)
}

fn turned_back(rig: &mut Rig, level: &str) -> Result<()> {
    rig.sh(&format!(
        "echo {level} > /sys/power/pm_test && echo mem > /sys/power/state && wait_live && \
         {} && sleep 0.3",
        Load::alone(20).command()
    ))
    .map(drop)
}

/// The machine is off but for its memory, until it is woken. Its serial port wakes with it: what is
/// said to it before is lost.
fn all_the_way(rig: &mut Rig) -> Result<()> {
    rig.sh("echo none > /sys/power/pm_test")?;
    let mark = rig.guest.mark()?;
    let job = rig.guest.spawn("echo mem > /sys/power/state")?;
    rig.guest.wait_event("SUSPEND", LIMIT)?;
    rig.guest.qmp("system_wakeup", json!({}))?;
    let end = Instant::now() + LIMIT;
    while !rig.guest.console()?[mark..].contains("PM: suspend exit") {
        if Instant::now() > end {
            let failure = Failure::new("wake up", "no sign of it on the console");
            return Err(failure.log(rig.guest.console_path()));
        }
        thread::sleep(Duration::from_millis(100));
    }
    let output = rig.guest.wait(job, LIMIT)?;
    match output.code {
        0 => rig.sh("wait_live").map(drop),
        _ => Err(Failure::new("suspend", output.text)),
    }
}
