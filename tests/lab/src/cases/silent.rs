// SPDX-License-Identifier: GPL-2.0

//! Interrupts that do not come, and devices that do not answer.

use super::{
    load::Load,
    policies::counter,
    rig,
    rig::{
        Driver,
        Plan,
        Rig,
        POLICIES, //
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

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about = "the interrupt never comes: each request ends by its timeout, under each policy";
    let mut all = vec![Case::new("silent", &["MISS-02"], about, silent)];
    let about = "hardly anything completes: who polls gives up, and the CPU is free";
    all.push(Case::new("stalled", &["STORM-05"], about, stalled));
    all
}

/// What a missed completion makes the driver say.
const MISSED: &str = "timeout, completion polled";

/// The time of a request. Unit: milliseconds.
const TIMEOUT: u32 = 1000;

/// No request may take longer. Unit: seconds. The block layer looks once a second.
const LATEST: u32 = 4;

/// Opens the vector again; what the device kept is sent now, and finds nothing.
const OPEN: &str = "msix $device 1 open > /dev/null";

/// The vector of the only queue is masked in the device, which nobody in the kernel knows of.
fn silent(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(1, 5);
    let disk = Disk::null("d0", 1 << 30).ioqpairs(1).set("dbcs", "off");
    let plan = Plan::with_disks("silent", POLICIES[0], [disk], None);
    let mut rig = plan.allow(&[MISSED]).start(context)?;
    rig.sh(&format!(
        "echo {TIMEOUT} > /sys/block/nvme0n1/queue/io_timeout"
    ))?;
    let mut missed = 0;
    for policy in rig::acting() {
        choose(&mut rig, policy)?;
        for _ in 0..rounds {
            rig.sh(&format!(
                "device=/sys/bus/pci/devices/$(address); msix $device 1 mask > /dev/null && \
                 within {LATEST} dd if=$DISK of=/dev/null bs=4k count=1 iflag=direct 2> /dev/null \
                 && {OPEN}"
            ))?;
            missed += 1;
            let said = rig.guest.console()?.matches(MISSED).count();
            if said != missed {
                let cause = format!("{policy}: {said} were, {missed} should be");
                return Err(Failure::new("count missed completions", cause));
            }
        }
        rig.sh(&Load::alone(200).command())?;
    }
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{missed} completions missed, each found within {LATEST} s"
    )))
}

/// Switches the only queue for requests.
fn choose(rig: &mut Rig, policy: &str) -> Result<()> {
    rig.sh(&format!(
        "echo {policy} > /sys/kernel/debug/irqmod/nvme0q1/policy"
    ))
    .map(drop)
}

/// A policy that polls of its own accord while requests are outstanding, and how often at most for
/// a deferral: its `max_loops`.
const POLLER: (&str, u64) = ("inflight:high=4,low=2,interval_us=200,max_loops=16", 16);

fn stalled(context: &Context<'_>) -> Result<Outcome> {
    let seconds = context.count(3, 30);
    let (policy, loops) = POLLER;
    let disk = Disk::null("d0", 1 << 30).throttled(20).ioqpairs(1);
    let disks = [disk.set("dbcs", "off")];
    let plan = Plan::with_disks("stalled", Driver::Rust(policy), disks, None);
    let mut rig = plan.start(context)?;
    let before = counts(&mut rig)?;
    rig.sh(&Load::read(32, 1, seconds).command())?;
    let after = counts(&mut rig)?;
    rig.finish()?;
    let (deferrals, polls) = (after.0 - before.0, after.1 - before.1);
    let text = format!("{deferrals} deferrals, {polls} polls");
    if deferrals == 0 || polls <= deferrals || polls > deferrals * loops {
        return Err(Failure::new("poll, and give up", text));
    }
    Ok(Outcome::pass(text))
}

fn counts(rig: &mut Rig) -> Result<(u64, u64)> {
    Ok((counter(rig, "deferrals")?, counter(rig, "polls")?))
}
