// SPDX-License-Identifier: GPL-2.0

//! On the kernel with all detectors (KASAN, lockdep, sleeping in atomic context, DMA API): the
//! same drivers, and faults that are put in.

use super::{
    load::Load,
    rig::{
        Driver,
        Plan,
        ALL, //
        LIMIT,
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
        let body = move |context: &Context<'_>| teardown::reset(context, driver, Flavour::Debug);
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
    all
}

/// What timeouts make the driver say.
const PROVOKED: &[&str] = &["completion polled", "timeout, aborting", "timeout, reset"];

/// A request that is lost is found again after 4 s: longer than a reset takes on this kernel, since
/// a timeout in the middle of one is taken for a dead controller.
const FAIL: &str = "fail=/sys/kernel/debug/fail_io_timeout; echo 10 > $fail/probability; \
    echo -1 > $fail/times; echo 0 > $fail/verbose; \
    echo 4000 > /sys/block/nvme0n1/queue/io_timeout; \
    echo 1 > /sys/block/nvme0n1/io-timeout-fail";

fn timeouts(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(8, 50);
    let plan = Plan::new(&format!("debug-timeouts-{}", driver.name()), driver)?;
    let mut rig = plan
        .flavour(Flavour::Debug)
        .allow(PROVOKED)
        .start(context)?;
    rig.sh(FAIL)?;
    let job = rig.guest.spawn(&Load::read(32, 1, rounds).command())?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller; sleep 0.5; wait_live")?;
    }
    rig.sh("echo 0 > /sys/block/nvme0n1/io-timeout-fail")?;
    let output = rig.guest.wait(job, LIMIT)?;
    if output.code != 0 {
        let cause = format!("exit code {}:\n{}", output.code, output.text);
        return Err(Failure::new("load during timeouts", cause));
    }
    rig.sh(&Load::verify("after", "io_uring", 16, 1, 8).command())?;
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} resets (full: 50)")))
}
