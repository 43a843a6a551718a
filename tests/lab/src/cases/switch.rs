// SPDX-License-Identifier: GPL-2.0

//! Another policy while requests are in flight, and while the line is taken away.

use super::{
    deferral::Busy,
    load::Load,
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
};

const IDS: &[&str] = &["TEAR-07"];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for depth in [1, 128] {
        let about = "another policy every 10 ms; every block is what was written, none is late";
        let body = move |context: &Context<'_>| switch(context, depth, Flavour::Base);
        all.push(Case::new(format!("switch-qd{depth}"), IDS, about, body));
    }
    let about = "another policy every 10 ms with all of the kernel's detectors on";
    let body = |context: &Context<'_>| switch(context, 32, Flavour::Debug);
    let ids = &["ATOM-01", "TEAR-07"];
    all.push(Case::new("debug-switch", ids, about, body));
    let about = "another policy every 10 ms, while the controller is reset again and again";
    all.push(Case::new("switch-reset", IDS, about, switch_and_reset));
    let about = "what is written to the file policy is checked, and what is wrong changes nothing";
    all.push(Case::new("switch-parse", &["HRT-04"], about, parse));
    all
}

/// Switches all lines of the disk through all policies until `/tmp/switched` exists; leaves the number
/// of switches, and those that failed, in `/tmp/switches`.
const SWITCH: &str = r#"
    cd /sys/kernel/debug/irqmod; done=0; failed=0
    names=$(sed 's/[][]//g; s/:[^ ]*//g' nvme0q1/policy)
    until [ -e /tmp/switched ]; do
        for name in $names; do
            for line in nvme0q[1-9]*; do
                if echo $name > $line/policy; then done=$((done + 1)); else failed=$((failed + 1)); fi
            done 2> /dev/null
            usleep 10000
        done
    done
    echo $done $failed > /tmp/switches
"#;

/// Starts to switch.
fn begin(rig: &mut Rig) -> Result<()> {
    rig.sh(&format!(
        "cat > /tmp/switch.sh << 'END'\n{SWITCH}\nEND\nsh /tmp/switch.sh > /dev/null 2>&1 &"
    ))
    .map(drop)
}

/// Ends it; returns how many switches were made, and how many could not be.
fn end(rig: &mut Rig) -> Result<(u64, u64)> {
    let text =
        rig.sh("touch /tmp/switched; wait_for 60 [ -s /tmp/switches ]; cat /tmp/switches")?;
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(done)), Some(Ok(failed))) => Ok((done, failed)),
        _ => Err(Failure::new("count the switches", format!("'{text}'"))),
    }
}

fn plan(name: &str) -> Result<Plan> {
    Plan::new(name, Driver::Rust("hardirq"))
}

fn switch(context: &Context<'_>, depth: u32, flavour: Flavour) -> Result<Outcome> {
    let seconds = context.count(10, 60);
    let name = match flavour {
        Flavour::Base => format!("switch-qd{depth}"),
        Flavour::Debug => "debug-switch".into(),
    };
    let mut rig = plan(&name)?.flavour(flavour).start(context)?;
    begin(&mut rig)?;
    let load = Load::verify("switch", "io_uring", depth, 2, 64)
        .set("bsrange", "512-8k")
        .set("max_latency", "5s")
        .set("time_based", 1)
        .set("runtime", seconds);
    rig.sh(&load.command())?;
    let (done, failed) = end(&mut rig)?;
    rig.finish()?;
    if failed > 0 || done == 0 {
        let cause = format!("{failed} failed, {done} did not");
        return Err(Failure::new("switch policies", cause));
    }
    Ok(Outcome::pass(format!(
        "{done} switches in {seconds} s (full: 60 s), each request within 5 s"
    )))
}

/// Switches fail while there are no lines, or no way to reach the device.
fn switch_and_reset(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(6, 50);
    let mut rig = plan("switch-reset")?.start(context)?;
    begin(&mut rig)?;
    let busy = Busy::start(&mut rig, 64, 0)?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live && sleep 0.2")?;
    }
    let (done, failed) = end(&mut rig)?;
    busy.finish(&mut rig)?;
    rig.finish()?;
    if done == 0 {
        return Err(Failure::new("switch policies", format!("{failed} failed")));
    }
    Ok(Outcome::pass(format!(
        "{rounds} resets, {done} switches, {failed} came in between"
    )))
}

/// Texts that are refused, and what the log has to say.
const REFUSED: &[(&str, &str)] = &[
    ("nonsense", "nonsense"),
    ("resched:budget=257", "256"),
    ("resched:budget=0", "256"),
    ("resched:budget=1,budget=1", "budget"),
    ("resched:frob=1", "frob"),
];

fn parse(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = plan("switch-parse")?.start(context)?;
    let file = "/sys/kernel/debug/irqmod/nvme0q1/policy";
    let check = |rig: &mut Rig, wanted: &str| {
        let text = rig.sh(&format!("cat {file}"))?;
        if text.contains(&format!("[{wanted}]")) {
            return Ok(());
        }
        Err(Failure::new(format!("choose {wanted}"), text.trim()))
    };
    check(&mut rig, "hardirq")?;
    rig.sh(&format!("echo resched:budget=17 > {file}"))?;
    check(&mut rig, "resched:budget=17")?;
    for (text, said) in REFUSED {
        let command = format!("! echo {text} > {file} && dmesg | tail -n 1 | grep {said}");
        rig.guest.check(&command, LIMIT)?;
        check(&mut rig, "resched:budget=17")?;
    }
    let mode = rig.sh(&format!("stat -c %a {file}"))?;
    if mode.trim() != "600" {
        return Err(Failure::new("look at the mode of policy", mode.trim()));
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{} texts refused", REFUSED.len())))
}
