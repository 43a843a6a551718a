// SPDX-License-Identifier: GPL-2.0

//! What the library shows of lines and CPUs, and what tracers are told.

use super::{
    policies::{
        crowded,
        crowded_disk,
        storm, //
    },
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

/// The line that the cases look at.
const LINE: &str = "/sys/kernel/debug/irqmod/nvme0q1";

/// The table of the CPUs.
const CPUS: &str = "/sys/kernel/debug/irqmod/cpus";

/// The tracepoints.
const EVENTS: &str = "/sys/kernel/tracing/events/irqmod";

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about = "a line that is watched says how much it completes, and why it does not act";
    let about_trace = "the tracepoints show a storm from the mask to the unmask, and a line's life";
    vec![
        Case::new("watch", &["PERF-01"], about, watch),
        Case::new("debug-trace", &[], about_trace, trace),
    ]
}

fn fail(step: &str, cause: impl Into<String>) -> Failure {
    Failure::new(step, cause.into())
}

fn plan(name: &str, policy: &'static str) -> Plan {
    let driver = Driver::Rust(policy);
    Plan::with_disks(name, driver, [crowded_disk()], None).vm(crowded)
}

/// Reads of one request at a time.
fn read_some(rig: &mut Rig, requests: u32) -> Result<()> {
    let load = super::load::Load::new("qd1", "randread")
        .set("bs", 4096)
        .set("ioengine", "io_uring")
        .set("iodepth", 1)
        .set("number_ios", requests);
    rig.sh(&load.command()).map(drop)
}

fn watch(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = plan("watch", "resched:budget=64").start(context)?;
    let requests = 500;
    read_some(&mut rig, requests)?;
    if hardirqs(&mut rig)? != 0 {
        return Err(fail("count while nobody watches", "something was counted"));
    }
    rig.sh(&format!("echo 1 > {LINE}/watch"))?;
    read_some(&mut rig, requests)?;
    let counted = hardirqs(&mut rig)?;
    if counted < u64::from(requests) / 2 {
        let cause = format!("{counted} of {requests} requests");
        return Err(fail("count one request at a time", cause));
    }
    let reasons = rig.sh(&format!("cat {LINE}/reasons"))?;
    let told = ["need_resched 0 of 1: ", "completions 1 of 64: "];
    if let Some(missing) = told.iter().find(|line| !reasons.contains(**line)) {
        return Err(fail(
            "say why nothing was deferred",
            format!("no '{missing}' in: {reasons}"),
        ));
    }
    storm(&mut rig, 128, context.count(2, 10))?;
    let acted = number(&mut rig, &format!("sed -n 's/^acted: //p' {LINE}/reasons"))?;
    let polled = number(
        &mut rig,
        &format!("awk '$1 == \"softirq\" {{ print $2 }}' {LINE}/batches"),
    )?;
    if acted == 0 || polled == 0 || polled > 64 {
        let cause = format!("{acted} deferrals, at most {polled} completions in a pass of 64");
        return Err(fail("watch a storm", cause));
    }
    check_cpus(&mut rig)?;
    refused(&mut rig)?;
    rig.sh(&format!("echo 0 > {LINE}/watch"))?;
    let before = hardirqs(&mut rig)?;
    read_some(&mut rig, requests)?;
    if hardirqs(&mut rig)? != before {
        return Err(fail("end to watch", "it is still counted"));
    }
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{counted} interrupts of {requests} requests; in the storm {acted} deferrals"
    )))
}

/// Interrupts of the line that completed a single request.
fn hardirqs(rig: &mut Rig) -> Result<u64> {
    let file = format!("{LINE}/batches");
    number(
        rig,
        &format!("awk '$1 == \"hardirq\" {{ print $4 }}' {file}"),
    )
}

fn number(rig: &mut Rig, command: &str) -> Result<u64> {
    let text = rig.sh(command)?;
    let cause = || format!("'{}'", text.trim());
    text.trim()
        .parse()
        .map_err(|_| fail(&format!("read a number: {command}"), cause()))
}

/// One row for each CPU, and something in that of the first.
fn check_cpus(rig: &mut Rig) -> Result<()> {
    let table = rig.sh(&format!("cat {CPUS}"))?;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let of = |column: &str| -> Option<u64> {
        let at = rows.first()?.iter().position(|name| *name == column)?;
        rows.get(1)?.get(at)?.parse().ok()
    };
    let width = rows.first().map_or(0, Vec::len);
    let square = rows.len() == 5 && rows.iter().all(|row| row.len() == width);
    let counted = ["completions", "cost_ns", "unbroken_us", "unswitched_us"];
    let positive = counted
        .iter()
        .all(|name| of(name).is_some_and(|value| value > 0));
    if square && positive && of("unbroken_us") <= of("unswitched_us") {
        return Ok(());
    }
    Err(fail("look at the CPUs", table))
}

/// What is not 0 or 1 is refused, and only root may write.
fn refused(rig: &mut Rig) -> Result<()> {
    for text in ["2", "x", "", "01"] {
        let said = "dmesg | tail -n 1 | grep -q 'nvme0q1: watch: .*allowed: 0..=1'";
        let command = format!("! echo '{text}' > {LINE}/watch && {said}");
        rig.guest.check(&command, LIMIT)?;
    }
    let state = rig.sh(&format!(
        "cat {LINE}/watch; stat -c %a {LINE}/watch {LINE}/reasons {LINE}/batches {CPUS}"
    ))?;
    if state
        .split_whitespace()
        .eq(["1", "600", "400", "400", "400"])
    {
        return Ok(());
    }
    Err(fail("look at the file watch", state))
}

/// What of a line's storm comes one after the other.
const CYCLE: [&str; 5] = ["mask", "defer", "poll", "rearm", "unmask"];

fn trace(context: &Context<'_>) -> Result<Outcome> {
    let plan = plan("debug-trace", "resched:budget=64").flavour(Flavour::Debug);
    let mut rig = plan.start(context)?;
    rig.sh(&format!(
        "mount -t tracefs none /sys/kernel/tracing 2> /dev/null; echo 1 > {EVENTS}/enable"
    ))?;
    storm(&mut rig, 128, context.count(2, 10))?;
    rig.idle()?;
    let rounds = check_cycles(&take_trace(&mut rig)?)?;
    expect(
        &mut rig,
        "echo timer:delay_us=200 > $LINE/policy",
        &["policy", "pause", "resume"],
    )?;
    let load = super::load::Load::read(64, 2, 1)
        .set("cpus_allowed", "1-3")
        .command();
    expect(&mut rig, &load, &["timer_arm", "timer_expire", "unmask"])?;
    expect(
        &mut rig,
        "echo rate:interval_us=1000,window=512 > $LINE/policy",
        &["policy"],
    )?;
    expect(&mut rig, &load, &["defer", "poll_after", "rearm"])?;
    let reset = "echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live";
    expect(&mut rig, reset, &["pause", "stop"])?;
    rig.sh(&format!(
        "echo 0 > {EVENTS}/enable; echo > /sys/kernel/tracing/trace"
    ))?;
    read_some(&mut rig, 100)?;
    let left = take_trace(&mut rig)?;
    rig.finish()?;
    if !left.is_empty() {
        return Err(fail("end to trace", left.join("\n")));
    }
    Ok(Outcome::pass(format!("{rounds} rounds of a storm")))
}

/// The events so far, without time and CPU; there are none after that.
fn take_trace(rig: &mut Rig) -> Result<Vec<String>> {
    let text = rig.sh(
        "cd /sys/kernel/tracing; grep -o 'irqmod_[a-z_]*: .*' trace | head -n 4000; echo > trace",
    )?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Runs a command, which has to make these events.
fn expect(rig: &mut Rig, command: &str, events: &[&str]) -> Result<()> {
    rig.sh(&format!("LINE={LINE}; {command}"))?;
    let seen = take_trace(rig)?;
    let is_there = |event: &&&str| {
        seen.iter()
            .any(|line| line.starts_with(&format!("irqmod_{event}: ")))
    };
    match events.iter().find(|event| !is_there(event)) {
        None => Ok(()),
        Some(event) => Err(fail(
            &format!("trace: {command}"),
            format!(
                "no {event} among {}, the last are\n{}",
                seen.len(),
                last(&seen)
            ),
        )),
    }
}

/// The end of a trace, which may have thousands of lines.
fn last(trace: &[String]) -> String {
    trace[trace.len().saturating_sub(20)..].join("\n")
}

/// Each mask is followed by a deferral, polls, the hand-back and the unmask. Returns how often.
fn check_cycles(trace: &[String]) -> Result<usize> {
    let broken = |line: &str| fail("follow a storm", format!("{line} in\n{}", trace.join("\n")));
    let mut last: Option<&str> = None;
    let mut rounds = 0;
    for line in trace {
        let name = line.split(':').next().unwrap_or_default();
        let name = name.trim_start_matches("irqmod_");
        if name == "empty" {
            continue;
        }
        let follows = match last {
            None => name == "mask",
            Some("poll") => ["poll", "rearm"].contains(&name),
            Some("unmask") => ["mask", "defer"].contains(&name),
            Some(last) => CYCLE.windows(2).any(|pair| pair == [last, name]),
        };
        let fits = match name {
            "defer" => line.contains("policy=resched to=softirq found="),
            "poll" => line.contains("policy=resched context=softirq found="),
            _ => line.contains("irq="),
        };
        if !follows || !fits {
            return Err(broken(line));
        }
        rounds += usize::from(name == "unmask");
        last = Some(name);
    }
    if rounds == 0 {
        return Err(broken("no round"));
    }
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| format!("irqmod_{line}")).collect()
    }

    #[test]
    fn a_round_that_is_out_of_order_is_seen() {
        let mask = "mask: irq=24 how=nosync";
        let defer = "defer: irq=24 policy=resched to=softirq found=0";
        let poll = "poll: irq=24 policy=resched context=softirq found=64";
        let rearm = "rearm: irq=24 policy=resched";
        let unmask = "unmask: irq=24";
        let empty = "empty: irq=24 policy=resched forgiven=1";
        let round = [mask, defer, poll, poll, rearm, empty, unmask];
        assert_eq!(check_cycles(&lines(&round)).ok(), Some(1));
        assert!(check_cycles(&lines(&[mask, poll])).is_err());
        assert!(check_cycles(&lines(&[mask, defer, rearm])).is_err());
        assert!(check_cycles(&lines(&[defer, poll, rearm, unmask])).is_err());
        assert!(check_cycles(&[]).is_err());
    }
}
