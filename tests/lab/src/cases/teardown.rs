// SPDX-License-Identifier: GPL-2.0

//! Reset, unbind and unplug under load: nobody touches what is gone, nothing is lost.

use super::{
    load::Load,
    rig,
    rig::{
        Driver,
        Plan,
        Rig,
        ALL,
        LIMIT, //
    },
};
use crate::{
    failure::{
        Failure,
        Result, //
    },
    guest::Job,
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
};
const IDS: &[&str] = &["TEAR-01", "TEAR-02", "TEAR-08", "POLL-02", "RUST-02"];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for driver in ALL {
        let name = driver.name();
        let about = "resets under load; every block is what was written";
        let body = move |context: &Context<'_>| reset(context, driver, Flavour::Base, 12);
        all.push(Case::new(format!("reset-{name}"), IDS, about, body));
        let about = "the driver is taken off the device and put back, under load";
        let body = move |context: &Context<'_>| rebind(context, driver);
        all.push(Case::new(
            format!("rebind-{name}"),
            &["TEAR-08"],
            about,
            body,
        ));
        let about = "the device is pulled out and plugged in, under load";
        let body = move |context: &Context<'_>| replug(context, driver);
        all.push(Case::new(
            format!("replug-{name}"),
            &["TEAR-08"],
            about,
            body,
        ));
    }
    let about = "resets while someone reads what a line does into memory that is on its disk";
    all.push(Case::new("reset-watched", &["TEAR-02"], about, watched));
    all
}

/// Resets while a file of a line is read into memory that first has to be read from the disk: a reset
/// that waited for the reader would wait for itself.
fn watched(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(5, 50);
    let mut rig = Plan::new("reset-watched", Driver::Rust("hardirq"))?.start(context)?;
    let file = "/sys/kernel/debug/irqmod/nvme0q1/stats";
    let command = format!("guest-agent reread {file} /dev/nvme0n1 /tmp/stop");
    let job = rig.guest.spawn(&command)?;
    for _ in 0..rounds {
        rig.sh("sleep 0.2; echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live")?;
    }
    rig.sh("touch /tmp/stop")?;
    let output = rig.guest.wait(job, LIMIT)?;
    let reads: u64 = output.text.trim().parse().unwrap_or(0);
    if output.code != 0 || reads <= rounds.into() {
        let cause = format!("exit code {}:\n{}", output.code, output.text);
        return Err(Failure::new(
            "read the counters into the disk's memory",
            cause,
        ));
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} resets, {reads} reads")))
}

/// Resets while checksummed blocks are written and read back.
pub(crate) fn reset(
    context: &Context<'_>,
    driver: Driver,
    flavour: Flavour,
    short: u32,
) -> Result<Outcome> {
    let rounds = context.count(short, 50);
    let kind = match flavour {
        Flavour::Base => "",
        Flavour::Debug => "debug-",
    };
    let plan = Plan::new(&format!("{kind}reset-{}", driver.name()), driver)?.flavour(flavour);
    let mut rig = plan.start(context)?;
    let load = Load::verify("reset", "io_uring", 32, 2, 64);
    let command = format!(
        "while [ ! -e /tmp/stop ]; do {} || exit 1; done",
        load.set("randseed", 1).command()
    );
    let job = rig.guest.spawn(&command)?;
    rig.sh("sleep 1")?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live && sleep 0.1")?;
    }
    rig.sh("touch /tmp/stop")?;
    let output = rig.guest.wait(job, LIMIT)?;
    if output.code != 0 {
        let cause = format!("exit code {}:\n{}", output.code, output.text);
        return Err(Failure::new("verify data during resets", cause));
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} rounds (full: 50)")))
}

fn write_pattern(rig: &mut Rig) -> Result<()> {
    rig.sh(&pattern().set("do_verify", 0).command()).map(drop)
}

fn read_pattern(rig: &mut Rig) -> Result<()> {
    rig.sh(&pattern().set("verify_only", 1).command()).map(drop)
}

fn pattern() -> Load {
    Load::new("pattern", "write")
        .set("bs", "64k")
        .set("size", "16m")
        .set("ioengine", "libaio")
        .set("iodepth", 16)
        .set("verify", "crc32c")
        .set("verify_fatal", 1)
        .set("verify_state_save", 0)
}

/// The load has begun and goes on: what follows happens under load.
pub(crate) fn still_loaded(rig: &mut Rig, job: &Job) -> Result<()> {
    rig.sh("sleep 0.5")?;
    match rig.guest.is_done(job)? {
        true => Err(Failure::new("keep a load", "it has ended already")),
        false => Ok(()),
    }
}

fn rebind(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(4, 50);
    let mut rig = Plan::new(&format!("rebind-{}", driver.name()), driver)?.start(context)?;
    write_pattern(&mut rig)?;
    let folder = format!("/sys/bus/pci/drivers/{}", driver.module());
    let address = rig.sh("address")?.trim().to_owned();
    for _ in 0..rounds {
        let job = rig.guest.spawn(&Load::read(32, 2, 5).command())?;
        still_loaded(&mut rig, &job)?;
        rig.sh(&format!("echo {address} > {folder}/unbind"))?;
        rig.guest.wait(job, LIMIT)?;
        rig.sh(&format!("echo {address} > {folder}/bind; wait_disk"))?;
    }
    read_pattern(&mut rig)?;
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} rounds (full: 50)")))
}

fn replug(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let start = || Plan::new(&format!("replug-{}", driver.name()), driver)?.start(context);
    rig::with_patience(context, start, |rig| replug_rounds(context, rig))
}

fn replug_rounds(context: &Context<'_>, mut rig: Rig) -> Result<Outcome> {
    let rounds = context.count(3, 20);
    write_pattern(&mut rig)?;
    for _ in 0..rounds {
        let job = rig.guest.spawn(&Load::read(32, 2, 5).command())?;
        still_loaded(&mut rig, &job)?;
        rig.guest.unplug("d0", LIMIT)?;
        rig.guest.wait(job, LIMIT)?;
        rig.sh("wait_for 30 [ ! -e /dev/nvme0 ]")?;
        rig.guest.plug("d0")?;
        rig.sh("wait_disk")?;
    }
    read_pattern(&mut rig)?;
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} rounds (full: 20)")))
}
