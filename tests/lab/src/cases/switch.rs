// SPDX-License-Identifier: GPL-2.0

//! Another policy while requests are in flight, and while the line is taken away.

use super::{
    deferral,
    deferral::Busy,
    load::Load,
    rig,
    rig::{
        Driver,
        Plan,
        Rig,
        LIMIT, //
    },
};
use crate::{
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::Time,
};
use serde_json::Value;

const IDS: &[&str] = &["TEAR-07"];

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for depth in [1, 128] {
        for (look, about) in [
            (
                Look::Data,
                "another policy every 10 ms; every block is what was written",
            ),
            (
                Look::Time,
                "another policy every 10 ms, in virtual time: no request is late",
            ),
        ] {
            let body = move |context: &Context<'_>| switch(context, depth, look);
            all.push(Case::new(look.name(depth), IDS, about, body));
        }
    }
    let about = "another policy every 10 ms, while CPUs go down and come up";
    all.push(Case::new(
        "switch-cpus",
        &["TEAR-07", "HOT-01"],
        about,
        switch_and_unplug,
    ));
    let about = "another policy every 10 ms with all of the kernel's detectors on";
    let body = |context: &Context<'_>| switch(context, 32, Look::Kernel);
    let ids = &["ATOM-01", "TEAR-07"];
    all.push(Case::new("debug-switch", ids, about, body));
    let about = "another policy every 10 ms, while the controller is reset again and again";
    all.push(Case::new("switch-reset", IDS, about, switch_and_reset));
    let about = "what is written to the file policy is checked, and what is wrong changes nothing";
    all.push(Case::new("switch-parse", &["HRT-04"], about, parse));
    let about =
        "four tasks write what is right and what is wrong, under load; a queue of four entries";
    all.push(Case::new("switch-edges", &["HRT-04"], about, edges));
    all
}

/// Switches all lines of the disk through all policies until `/tmp/switched` exists; leaves in
/// `/tmp/switches` the number of switches, of those that failed, and of times through all.
const SWITCH: &str = r#"
    cd /sys/kernel/debug/irqmod; done=0; failed=0; rounds=0
    until [ -e /tmp/switched ]; do
        for choice in CHOICES; do
            for line in nvme0q[1-9]*; do
                if echo $choice > $line/policy; then done=$((done + 1)); else failed=$((failed + 1)); fi
            done 2> /dev/null
            usleep 10000
        done
        rounds=$((rounds + 1))
    done
    echo $done $failed $rounds > /tmp/switches
"#;

/// Stops the queue again and again, as a write to its depth does.
const FREEZE: &str = r#"
    cd /sys/block/nvme0n1/queue
    until [ -e /tmp/switched ]; do
        for depth in 512 1000; do
            echo $depth > nr_requests || exit
            usleep 50000
        done
    done
    touch /tmp/frozen
"#;

/// Starts to switch.
fn begin(rig: &mut Rig) -> Result<()> {
    let script = SWITCH.replace("CHOICES", &rig::choices().join(" "));
    in_background(rig, "switch", &script)
}

/// Runs a script until it ends by itself.
fn in_background(rig: &mut Rig, name: &str, script: &str) -> Result<()> {
    rig.sh(&format!(
        "cat > /tmp/{name}.sh << 'END'\n{script}\nEND\nsh /tmp/{name}.sh > /dev/null 2>&1 &"
    ))
    .map(drop)
}

/// What was switched.
struct Switches {
    done: u64,
    failed: u64,
    rounds: u64,
}

/// Ends it.
fn end(rig: &mut Rig) -> Result<Switches> {
    let text =
        rig.sh("touch /tmp/switched; wait_for 60 [ -s /tmp/switches ]; cat /tmp/switches")?;
    let numbers = text.split_whitespace().map(str::parse::<u64>);
    match numbers
        .collect::<std::result::Result<Vec<_>, _>>()
        .as_deref()
    {
        Ok(&[done, failed, rounds]) if rounds > 0 => Ok(Switches {
            done,
            failed,
            rounds,
        }),
        _ => Err(Failure::new(
            "switch through all policies",
            format!("'{}'", text.trim()),
        )),
    }
}

fn plan(name: &str) -> Result<Plan> {
    Plan::new(name, Driver::Rust("hardirq"))
}

/// What a case that switches looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Whether data is right, on a real file, which takes the host's time.
    Data,
    /// How late a request is, in virtual time, which a crowded host does not stretch.
    Time,
    /// What all of the kernel's detectors say, which makes it slow.
    Kernel,
}

impl Look {
    fn name(self, depth: u32) -> String {
        match self {
            Self::Data => format!("switch-qd{depth}"),
            Self::Time => format!("switch-late-qd{depth}"),
            Self::Kernel => "debug-switch".into(),
        }
    }

    /// No request may take longer. Unit: milliseconds.
    fn latest(self) -> u32 {
        match self {
            Self::Data => 5_000,
            Self::Time => 1_000,
            Self::Kernel => 10_000,
        }
    }

    fn plan(self, depth: u32) -> Result<Plan> {
        let name = self.name(depth);
        Ok(match self {
            Self::Data => plan(&name)?,
            Self::Time => {
                let disk = Disk::null("d0", 1 << 30).set("dbcs", "off");
                let plan = Plan::with_disks(&name, Driver::Rust("hardirq"), [disk], None);
                plan.vm(|vm| vm.time(Time::Virtual))
            }
            Self::Kernel => plan(&name)?.flavour(Flavour::Debug),
        })
    }

    fn load(self, depth: u32) -> Load {
        match self {
            Self::Time => Load::new("switch", "randrw")
                .set("ioengine", "io_uring")
                .set("iodepth", depth)
                .set("numjobs", 2),
            Self::Data | Self::Kernel => Load::verify("switch", "io_uring", depth, 2, 64),
        }
    }
}

fn switch(context: &Context<'_>, depth: u32, look: Look) -> Result<Outcome> {
    let seconds = context.count(5, 60);
    let mut rig = look.plan(depth)?.start(context)?;
    begin(&mut rig)?;
    in_background(&mut rig, "freeze", FREEZE)?;
    let load = look.load(depth);
    let load = load
        .set("bsrange", "512-8k")
        .set("time_based", 1)
        .set("runtime", seconds)
        .set("output-format", "json");
    let report = rig.sh(&load.command())?;
    let worst = worst_ms(&report)?;
    let switches = end(&mut rig)?;
    rig.sh("wait_for 10 [ -e /tmp/frozen ]")?;
    rig.finish()?;
    let text = format!(
        "{} switches in {seconds} s (full: 60 s), {} times all; slowest request {worst} ms",
        switches.done, switches.rounds
    );
    if switches.failed > 0 || worst > look.latest() {
        let latest = look.latest();
        let cause = format!("{text}; {} failed; allowed: {latest} ms", switches.failed);
        return Err(Failure::new("switch policies", cause));
    }
    Ok(Outcome::pass(text))
}

/// The slowest request of a load. Unit: milliseconds.
fn worst_ms(report: &str) -> Result<u32> {
    let start = report.find('{').unwrap_or_default();
    let report: Value = serde_json::from_str(&report[start..]).at("read the load's report")?;
    let worst = |kind: &str| report["jobs"][0][kind]["lat_ns"]["max"].as_u64();
    match (worst("read"), worst("write")) {
        (Some(read), Some(write)) if read.min(write) > 0 => {
            let ms = read.max(write).div_ceil(1_000_000);
            u32::try_from(ms).at("read the load's report")
        }
        _ => Err(Failure::new("read the load's report", "no latency in it")),
    }
}

/// Switches fail while there are no lines, or no way to reach the device.
fn switch_and_reset(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(6, 100);
    let mut rig = plan("switch-reset")?.start(context)?;
    begin(&mut rig)?;
    let busy = Busy::start(&mut rig, 64, 0)?;
    for _ in 0..rounds {
        rig.sh("echo 1 > /sys/class/nvme/nvme0/reset_controller && wait_live && sleep 0.2")?;
    }
    let switches = end(&mut rig)?;
    busy.finish(&mut rig)?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{rounds} resets (full: 100), {} switches, {} came in between",
        switches.done, switches.failed
    )))
}

/// Each CPU but the first goes down and comes up, within five seconds each.
fn switch_and_unplug(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(8, 150);
    let mut rig = plan("switch-cpus")?.vm(|vm| vm.cpus(4)).start(context)?;
    begin(&mut rig)?;
    let busy = Busy::start(&mut rig, 64, 0)?;
    for round in 0..rounds {
        deferral::cycle(&mut rig, 1 + round % 3, 5)?;
    }
    let switches = end(&mut rig)?;
    busy.finish(&mut rig)?;
    rig.finish()?;
    if switches.failed > 0 {
        let cause = format!("{} failed", switches.failed);
        return Err(Failure::new("switch policies", cause));
    }
    Ok(Outcome::pass(format!(
        "{rounds} CPUs (full: 150), {} switches, {} times all",
        switches.done, switches.rounds
    )))
}

/// Each line takes the defaults, and what is wrong changes nothing, whoever writes meanwhile: in the
/// end each line has the last of the right texts. The queue is smaller than the defaults.
const EDGES: &str = r#"
    cd /sys/kernel/debug/irqmod
    for round in $(seq ROUNDS); do
        for choice in CHOICES; do
            for line in nvme0q[1-9]*; do echo $choice > $line/policy || exit; done
        done
        for wrong in nonsense timer:delay_us=-1 timer:delay_us=4294967296 \
            resched:budget=18446744073709551616 rate:window= inflight:low=9,high=9; do
            for line in nvme0q[1-9]*; do
                if echo $wrong > $line/policy; then exit 1; fi
            done
        done
    done 2> /dev/null
"#;

fn edges(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(2, 30);
    let disk = Disk::null("d0", 1 << 30).set("mqes", 3).set("dbcs", "off");
    let driver = Driver::Rust("inflight");
    let mut rig = Plan::with_disks("switch-edges", driver, [disk], None).start(context)?;
    let choices = rig::choices().join(" ");
    let script = EDGES
        .replace("CHOICES", &choices)
        .replace("ROUNDS", &rounds.to_string());
    let load = rig.guest.spawn(
        "until [ -e /tmp/stop ]; do fio --name=edges --rw=randread --filename=/dev/nvme0n1 \
         --direct=1 --thread=1 --ioengine=io_uring --iodepth=8 --time_based=1 --runtime=1 \
         --max_latency=20s || exit; done",
    )?;
    let writers = [0; 4].map(|_| rig.guest.spawn(&script));
    for writer in writers {
        let output = rig.guest.wait(writer?, LIMIT)?;
        if output.code != 0 {
            return Err(Failure::new("write policies", output.text));
        }
    }
    rig.sh("touch /tmp/stop")?;
    let output = rig.guest.wait(load, LIMIT)?;
    if output.code != 0 {
        return Err(Failure::new("keep a load", output.text));
    }
    let last = rig::choices().pop().unwrap_or_default();
    rig.sh(&format!(
        "for line in /sys/kernel/debug/irqmod/nvme0q[1-9]*; do \
         grep -qF '[{last}' $line/policy || {{ cat $line/policy; exit 1; }}; done"
    ))?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{rounds} rounds of four tasks (full: 30)"
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
