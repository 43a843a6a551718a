// SPDX-License-Identifier: GPL-2.0

//! What policies cost while nothing is wrong, and what they are worth when much is.

use super::rig::{
    Driver,
    Plan,
    Rig, //
};
use crate::{
    disk::Disk,
    failure::{
        At,
        Result, //
    },
    kernel::Flavour,
    run::{
        self,
        Workload, //
    },
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::Time,
};
use guest_agent::report::Report;
use irqmod::policy::Config;

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    vec![
        Case::new(
            "cost",
            &["PERF-01", "PERF-03"],
            "a single request under each policy: latency, switches, interrupts",
            cost,
        ),
        Case::new(
            "hot24",
            &["STORM-01"],
            "24 sources on CPU 0, none of them much: it does not starve",
            |context| loaded(context, Workload::Hot24, &["hardirq", "resched", "fair"], 1000),
        ),
        Case::new(
            "many24",
            &["STORM-01"],
            "the same: a policy that looks at one source starves CPU 0, threads and the timer do not",
            // Threads may keep tasks waiting for most of a second.
            |context| loaded(context, Workload::Hot24, SEPARATE, 2000),
        ),
        Case::new(
            "push",
            &["STORM-02"],
            "the timer with push, short and long: CPU 0 does not starve",
            |context| loaded(context, Workload::Storm, PUSHES, 1000),
        ),
    ]
}

/// All in one boot, since only the policies are to differ. The baseline is measured at both ends.
fn cost(context: &Context<'_>) -> Result<Outcome> {
    let base = Driver::Rust("hardirq");
    let disk = Disk::null("d0", 1 << 30).ioqpairs(2).set("dbcs", "off");
    let mut rig = Plan::with_disks("cost", base, [disk], None)
        .parameters(QUEUES)
        .vm(|vm| {
            vm.time(Time::Virtual)
                .cmdline("isolcpus=managed_irq,1 tsc=noirqtime")
        })
        .start(context)?;
    let ms = context.count(300, 2000);
    let policies = Config::NAMES.iter().copied().chain(["hardirq"]);
    let reports = policies
        .map(|policy| Ok((policy, alone(&mut rig, policy, ms)?)))
        .collect::<Result<Vec<_>>>()?;
    rig.finish()?;
    let note = run::test_alone(&reports)?;
    Ok(Outcome::pass(format!(
        "{} policies: {note}",
        Config::NAMES.len()
    )))
}

/// One queue for reads, one for everything else: completions stay in the handler.
const QUEUES: &str = "write_queues=1";

fn alone(rig: &mut Rig, policy: &'static str, ms: u32) -> Result<Report> {
    let load = Driver::Rust(policy).insmod(QUEUES);
    // The last load's rings go, and let go of the disk, a moment after it has ended.
    rig.sh(&format!(
        "wait_for 30 rmmod nvme_rust && {load} && wait_disk"
    ))?;
    let agent = format!("guest-agent load --ms {ms} --depth 1 --nap-us 5000 $DISK@1");
    let text = rig.sh(&format!("sleep 0.5; {agent}"))?;
    serde_json::from_str(&text).at("read the agent's report")
}

const SEPARATE: &[&str] = &["threaded", "timer:push=0", "timer", "rate"];

const PUSHES: &[&str] = &["timer:delay_us=10", "timer:delay_us=500"];

/// All that is claimed of these policies under a load holds.
fn loaded(
    context: &Context<'_>,
    workload: Workload,
    policies: &[&str],
    short_ms: u32,
) -> Result<Outcome> {
    let kernel = context.kernel(Flavour::Base)?;
    let ms = context.count(short_ms, 4000).into();
    run::test(context.lab, kernel, workload, policies, ms).map(Outcome::pass)
}
