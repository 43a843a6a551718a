// SPDX-License-Identifier: GPL-2.0

//! Every context that drains in place of a handler, while its CPU or its device goes away.

use super::{
    load::Load,
    policies::counter,
    rig,
    rig::{
        Driver,
        Plan,
        Rig,
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
    vm::Vm,
};

/// Policies whose contexts belong to a CPU, or care for it: completion thread, hold list, work item,
/// and the poller with a timer.
const OF_CPUS: &[&str] = &["fair", "timer", "workqueue", "rate"];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for driver in rig::more() {
        let about = "resets beside busy tasks; every block is what was written";
        all.push(resets(driver, Flavour::Base, about, &["TEAR-13"]));
    }
    let is_of_cpus = |driver: &Driver| OF_CPUS.contains(&driver.name().as_str());
    for driver in rig::more().into_iter().filter(is_of_cpus) {
        let about = "CPUs go down and come up under load; every block is what was written";
        all.push(hotplugs(driver, Flavour::Base, about, &["HOT-01"]));
        let about = "the same with all of the kernel's detectors on";
        all.push(hotplugs(
            driver,
            Flavour::Debug,
            about,
            &["ATOM-01", "HOT-01"],
        ));
        let about = "resets beside busy tasks with all of the kernel's detectors on";
        all.push(resets(
            driver,
            Flavour::Debug,
            about,
            &["ATOM-01", "TEAR-13"],
        ));
    }
    for driver in rig::POLICIES.into_iter().chain(rig::more()) {
        let about = "all handlers are threads, and resets; every block is what was written";
        let body = move |context: &Context<'_>| threadirqs(context, driver);
        let name = format!("threadirqs-{}", driver.name());
        all.push(Case::new(name, &["STORM-03"], about, body));
    }
    all
}

type Ids = &'static [&'static str];

fn hotplugs(driver: Driver, flavour: Flavour, about: &'static str, ids: Ids) -> Case {
    let name = match flavour {
        Flavour::Base => format!("hotplug-{}", driver.name()),
        Flavour::Debug => format!("debug-cpus-{}", driver.name()),
    };
    let body = move |context: &Context<'_>| hotplug(context, driver, flavour);
    Case::new(name, ids, about, body)
}

fn resets(driver: Driver, flavour: Flavour, about: &'static str, ids: Ids) -> Case {
    let name = match flavour {
        Flavour::Base => format!("deferred-reset-{}", driver.name()),
        Flavour::Debug => format!("debug-deferred-{}", driver.name()),
    };
    let body = move |context: &Context<'_>| reset(context, driver, flavour);
    Case::new(name, ids, about, body)
}

/// A verified load from start to end, beside tasks that want all CPUs.
pub(crate) struct Busy {
    job: Job,
}

impl Busy {
    /// Starts it.
    pub(crate) fn start(rig: &mut Rig, depth: u32, cpus: u32) -> Result<Self> {
        rig.sh(&format!(
            "for i in $(seq {cpus}); do sh -c 'until [ -e /tmp/stop ]; do :; done' > /dev/null 2>&1 & done"
        ))?;
        let load = Load::verify("busy", "io_uring", depth, 2, 32)
            .set("bsrange", "512-8k")
            .set("max_latency", "20s");
        let command = format!(
            "while [ ! -e /tmp/stop ]; do {} || exit 1; done",
            load.set("randseed", 1).command()
        );
        let job = rig.guest.spawn(&command)?;
        rig.sh("sleep 1")?;
        Ok(Self { job })
    }

    /// Ends it; no block may be wrong.
    pub(crate) fn finish(self, rig: &mut Rig) -> Result<()> {
        rig.sh("touch /tmp/stop")?;
        let output = rig.guest.wait(self.job, LIMIT)?;
        if output.code == 0 {
            return Ok(());
        }
        let cause = format!("exit code {}:\n{}", output.code, output.text);
        Err(Failure::new("verify data", cause))
    }
}

/// Policies that need a rate which a busy host does not always reach.
const SELDOM: &[&str] = &["rate", "flood"];

/// What a case with a deferring policy found; not much if nothing was deferred at all.
fn outcome(mut rig: Rig, driver: Driver, rounds: u32) -> Result<Outcome> {
    let deferrals = counter(&mut rig, "deferrals")?;
    rig.finish()?;
    if deferrals == 0 && !SELDOM.contains(&driver.name().as_str()) {
        return Err(Failure::new("defer anything", "nothing was"));
    }
    Ok(Outcome::pass(format!(
        "{rounds} rounds, {deferrals} deferrals"
    )))
}

fn plan(case: &str, driver: Driver, flavour: Flavour) -> Result<Plan> {
    let kind = match flavour {
        Flavour::Base => "base",
        Flavour::Debug => "debug",
    };
    let plan = Plan::new(&format!("{case}-{}-{kind}", driver.name()), driver)?;
    Ok(plan.flavour(flavour).vm(|vm: Vm| vm.cpus(4)))
}

fn hotplug(context: &Context<'_>, driver: Driver, flavour: Flavour) -> Result<Outcome> {
    let rounds = context.count(8, 50);
    let limit = match flavour {
        Flavour::Base => 5,
        Flavour::Debug => 60,
    };
    let mut rig = plan("hotplug", driver, flavour)?.start(context)?;
    let busy = Busy::start(&mut rig, 32, 4)?;
    for round in 0..rounds {
        cycle(&mut rig, 1 + round % 3, limit)?;
    }
    busy.finish(&mut rig)?;
    outcome(rig, driver, rounds)
}

/// A CPU goes down and comes up, within so many seconds each.
pub(crate) fn cycle(rig: &mut Rig, cpu: u32, seconds: u32) -> Result<()> {
    rig.sh(&format!(
        "online=/sys/devices/system/cpu/cpu{cpu}/online; \
         within {seconds} write 0 $online && sleep 0.1 && within {seconds} write 1 $online"
    ))
    .map(drop)
}

fn threadirqs(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(5, 30);
    let plan = plan("threadirqs", driver, Flavour::Base)?;
    let mut rig = plan.vm(|vm| vm.cmdline("threadirqs")).start(context)?;
    let busy = Busy::start(&mut rig, 64, 4)?;
    for _ in 0..rounds {
        rig.sh(
            "sleep 0.5; echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live; sleep 0.5",
        )?;
    }
    busy.finish(&mut rig)?;
    if ["hardirq", "resched", "timer"].contains(&driver.name().as_str()) {
        // They have no cause to defer there.
        rig.finish()?;
        return Ok(Outcome::pass(format!("{rounds} rounds")));
    }
    outcome(rig, driver, rounds)
}

fn reset(context: &Context<'_>, driver: Driver, flavour: Flavour) -> Result<Outcome> {
    let rounds = context.count(6, 50);
    let mut rig = plan("deferred-reset", driver, flavour)?.start(context)?;
    let busy = Busy::start(&mut rig, 128, 4)?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live && sleep 0.1")?;
    }
    busy.finish(&mut rig)?;
    outcome(rig, driver, rounds)
}
