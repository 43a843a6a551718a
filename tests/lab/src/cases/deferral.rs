// SPDX-License-Identifier: GPL-2.0

//! Every context that drains in place of a handler, while its CPU or its device goes away.

use super::{
    load::Load,
    policies::counter,
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
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::Vm,
};

/// A policy for each context, so eager that it defers under any load.
const EAGER: &[(&str, &str)] = &[
    ("fair", "fair:share_percent=10,window_us=500"),
    ("timer", "timer:delay_us=200,push=1"),
    ("workqueue", "workqueue"),
    ("rate", "rate:interval_us=1000,window=512"),
    ("inflight", "inflight:high=4,low=2"),
    ("irqpoll", "irqpoll"),
];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for &(name, policy) in EAGER {
        let about = "CPUs go down and come up under load; every block is what was written";
        let body = move |context: &Context<'_>| hotplug(context, name, policy, Flavour::Base);
        all.push(Case::new(
            format!("hotplug-{name}"),
            &["HOT-01"],
            about,
            body,
        ));
        let about = "the same with all of the kernel's detectors on";
        let body = move |context: &Context<'_>| hotplug(context, name, policy, Flavour::Debug);
        let name = format!("debug-cpus-{name}");
        all.push(Case::new(name, &["ATOM-01", "HOT-01"], about, body));
    }
    for &(name, policy) in EAGER {
        let about = "resets while the source is deferred; every block is what was written";
        let body = move |context: &Context<'_>| reset(context, name, policy, Flavour::Base);
        all.push(Case::new(
            format!("deferred-reset-{name}"),
            &["TEAR-13"],
            about,
            body,
        ));
        let about = "the same with all of the kernel's detectors on";
        let body = move |context: &Context<'_>| reset(context, name, policy, Flavour::Debug);
        let name = format!("debug-deferred-{name}");
        all.push(Case::new(name, &["ATOM-01", "TEAR-13"], about, body));
    }
    all
}

/// A verified load from start to end, beside tasks that want all CPUs.
pub(crate) struct Busy {
    job: crate::guest::Job,
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

/// What a case with a deferring policy found, if anything was deferred at all.
fn outcome(mut rig: Rig, rounds: u32) -> Result<Outcome> {
    let deferrals = counter(&mut rig, "deferrals")?;
    rig.finish()?;
    if deferrals == 0 {
        return Err(Failure::new("defer anything", "nothing was"));
    }
    Ok(Outcome::pass(format!(
        "{rounds} rounds, {deferrals} deferrals"
    )))
}

fn plan(case: &str, name: &str, policy: &'static str, flavour: Flavour) -> Result<Plan> {
    let kind = match flavour {
        Flavour::Base => "base",
        Flavour::Debug => "debug",
    };
    let plan = Plan::new(&format!("{case}-{name}-{kind}"), Driver::Rust(policy))?;
    Ok(plan.flavour(flavour).vm(|vm: Vm| vm.cpus(4)))
}

fn hotplug(
    context: &Context<'_>,
    name: &str,
    policy: &'static str,
    flavour: Flavour,
) -> Result<Outcome> {
    let rounds = context.count(8, 50);
    let mut rig = plan("hotplug", name, policy, flavour)?.start(context)?;
    let busy = Busy::start(&mut rig, 32, 4)?;
    for round in 0..rounds {
        let cpu = 1 + round % 3;
        let online = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        rig.sh(&format!(
            "echo 0 > {online} && sleep 0.1 && echo 1 > {online}"
        ))?;
    }
    busy.finish(&mut rig)?;
    outcome(rig, rounds)
}

fn reset(
    context: &Context<'_>,
    name: &str,
    policy: &'static str,
    flavour: Flavour,
) -> Result<Outcome> {
    let rounds = context.count(6, 50);
    let mut rig = plan("deferred-reset", name, policy, flavour)?.start(context)?;
    let busy = Busy::start(&mut rig, 128, 4)?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live && sleep 0.1")?;
    }
    busy.finish(&mut rig)?;
    outcome(rig, rounds)
}
