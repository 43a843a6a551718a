// SPDX-License-Identifier: GPL-2.0

//! The mask that nobody waits for: what it does to the device's vector table, what becomes of an
//! interrupt that is late, and that nothing is lost.

use super::{
    load::Load,
    policies::{
        counter,
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
        At,
        Failure,
        Result, //
    },
    host,
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::{
        Time,
        Vm, //
    },
};
use guest_agent::report::Report;
use std::{
    fs,
    thread,
    time::Duration, //
};

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about = "a mask is one write to the vector table and no read; a lazy one reads";
    let mut all = vec![Case::new("nowait-writes", &[], about, writes)];
    let about = "requests a second with each mask, in virtual time";
    all.push(Case::new("nowait-cost", &[], about, cost));
    let about = "an interrupt that is late is kept, costs no access, and is replayed; reset then";
    all.push(Case::new(
        "nowait-late",
        &["MISS-01", "SPUR-03", "SPUR-04"],
        about,
        late,
    ));
    for policy in [
        "irqpoll:mask=nowait",
        "resched:budget=16,mask=nowait",
        "threaded:mask=nowait",
    ] {
        let name = policy.split(':').next().unwrap_or_default();
        let about = "data is what was written, no completion is missed, no interrupt unhandled";
        let body = move |context: &Context<'_>| load(context, name, Driver::Rust(policy));
        all.push(Case::new(
            format!("nowait-load-{name}"),
            &["MISS-03", "SPUR-03"],
            about,
            body,
        ));
    }
    all
}

/// Accesses to the vector table, as the emulator saw them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Accesses {
    masks: u64,
    unmasks: u64,
    reads: u64,
    /// Where the last mask was written.
    place: String,
}

impl Accesses {
    /// Reads the emulator's trace.
    fn of(trace: &str) -> Self {
        let mut accesses = Self::default();
        for line in trace
            .lines()
            .filter(|line| line.ends_with("name 'msix-table'"))
        {
            accesses.add(line);
        }
        accesses
    }

    fn add(&mut self, line: &str) {
        let word = |key: &str| {
            let mut words = line.split(' ').skip_while(move |word| *word != key);
            words.nth(1).unwrap_or_default()
        };
        if line.starts_with("memory_region_ops_read") {
            self.reads += 1;
        } else if word("addr").ends_with('c') {
            // The last of the four words of an entry is the vector control.
            if word("value") == "0x1" {
                self.masks += 1;
                word("addr").clone_into(&mut self.place);
            } else {
                self.unmasks += 1;
            }
        }
    }
}

/// Runs a command in the guest and watches the vector table.
fn watched(rig: &mut Rig, command: &str) -> Result<Accesses> {
    rig.guest.trace(true)?;
    rig.sh(command)?;
    rig.guest.trace(false)?;
    let accesses = Accesses::of(&rig.guest.take_trace()?);
    Ok(accesses)
}

/// A sum over all lines of a value in the file `mask`.
fn masks(rig: &mut Rig, name: &str) -> Result<u64> {
    let text = rig.sh(&format!("mask_counter {name}"))?;
    text.trim().parse().at("read a line's masks")
}

fn expect(what: &str, is: bool, seen: impl std::fmt::Debug) -> Result<()> {
    if is {
        return Ok(());
    }
    Err(Failure::new(what, format!("{seen:?}")))
}

fn writes(context: &Context<'_>) -> Result<Outcome> {
    let driver = Driver::Rust("irqpoll:mask=nowait");
    let plan = Plan::with_disks("nowait-writes", driver, [crowded_disk()], None);
    let mut rig = plan.vm(crowded).start(context)?;
    let requests = context.count(500, 2_000);
    let command = Load::new("few", "randread")
        .set("bs", 4096)
        .set("ioengine", "io_uring")
        .set("iodepth", 16)
        .set("number_ios", requests)
        .set("cpus_allowed", "1-3")
        .command();

    rig.sh("grep -q '^path nowait$' /sys/kernel/debug/irqmod/nvme0q1/mask")?;
    rig.sh("grep -q '^nowait: *nowait$' $(core_file nvme0q1)")?;
    let before = masks(&mut rig, "mask_writes")?;
    let nowait = watched(&mut rig, &command)?;
    let counted = masks(&mut rig, "mask_writes")? - before;
    let right = nowait.masks > 0 && nowait.masks == counted && nowait.reads == 0;
    expect("count nowait masks", right, (&nowait, counted))?;
    expect("unmask", nowait.masks == nowait.unmasks, &nowait)?;

    let lazy_driver = Driver::Rust("irqpoll");
    rig.sh(&format!(
        "rmmod nvme_rust && {} && wait_disk",
        lazy_driver.insmod("")
    ))?;
    rig.sh("grep -q '^path lazy$' /sys/kernel/debug/irqmod/nvme0q1/mask")?;
    let lazy = watched(&mut rig, &command)?;
    let right = lazy.reads == lazy.masks && masks(&mut rig, "mask_writes")? == 0;
    expect("count lazy masks", right, &lazy)?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{requests} requests: nowait {} writes and {} reads, lazy {} and {}",
        nowait.masks, nowait.reads, lazy.masks, lazy.reads
    )))
}

/// What the masks cost on the instruction path, where every interrupt makes one. An emulated bus
/// answers at once: what a read costs on a real one does not show.
fn cost(context: &Context<'_>) -> Result<Outcome> {
    let mut notes = Vec::new();
    for policy in ["irqpoll", "irqpoll:mask=nowait"] {
        let driver = Driver::Rust(policy);
        let plan = Plan::with_disks("nowait-cost", driver, [crowded_disk()], None);
        let virtual_time = |vm: Vm| crowded(vm).time(Time::Virtual);
        let mut rig = plan.vm(virtual_time).start(context)?;
        let ms = context.count(1_000, 4_000);
        let text = rig.sh(&format!(
            "guest-agent load --ms {ms} --depth 32 $DISK@1 $DISK@2 $DISK@3"
        ))?;
        let report: Report = serde_json::from_str(&text).at("read the agent's report")?;
        let done = report.load.map_or(0, |load| load.completions);
        expect("do requests", done > 0, done)?;
        let (made, writes) = (masks(&mut rig, "masks")?, masks(&mut rig, "mask_writes")?);
        rig.finish()?;
        let rate = done * 1000 / u64::from(ms);
        notes.push(format!("{policy} {rate}/s, {made} masks, {writes} written"));
    }
    Ok(Outcome::pass(notes.join("; ")))
}

/// A task that lets no other task run on CPU 0, not even the interrupt's thread.
pub(crate) const HOG: &str = "chrt -f 99 taskset 1 sh -c 'while :; do :; done' > /dev/null 2>&1 & \
    echo $! > /tmp/hog; wait_for 10 grep -q '^Cpus_allowed_list:.0$' /proc/$!/status";

/// One request, and then the line is masked until the hog ends.
pub(crate) const ASK: &str = "taskset 2 dd if=$DISK of=/tmp/block bs=4k count=1 iflag=direct \
    > /dev/null 2>&1 & echo $! > /tmp/dd; \
    wait_for 10 grep -q MASKED /sys/kernel/debug/irqmod/nvme0q1/state";

/// The hog ends, and then the request.
pub(crate) const FREE: &str =
    "kill $(cat /tmp/hog); wait_for 30 sh -c '! kill -0 $(cat /tmp/dd) 2> /dev/null'";

/// The program that makes a hog of a task; busybox has none.
pub(crate) fn chrt() -> Result<Vec<u8>> {
    let chrt = host::which("chrt").ok_or_else(|| Failure::new("find chrt", "it is missing"))?;
    fs::read(&chrt).at("read chrt")
}

fn late(context: &Context<'_>) -> Result<Outcome> {
    let chrt = chrt()?;
    let driver = Driver::Rust("threaded:mask=nowait");
    let plan = Plan::with_disks("nowait-late", driver, [crowded_disk()], None);
    let mut rig = plan
        .vm(crowded)
        .vm(|vm| vm.file("/bin/chrt", chrt))
        .start(context)?;

    let masked = watched(&mut rig, &format!("{HOG}; {ASK}"))?;
    expect("mask once", masked.masks == 1 && masked.reads == 0, &masked)?;
    let control = vector_control(&mut rig, &masked.place)?;
    expect("mask in the table", control == 1, control)?;
    rig.sh("core_says nvme0q1 'ddepth: *1$' IRQD_IRQ_MASKED IRQD_IRQ_DISABLED")?;

    // What the core resends arrives as what the device sent too late.
    let before = stats(&mut rig)?;
    let late = watched(
        &mut rig,
        "echo trigger > $(core_file nvme0q1); wait_for 10 core_says nvme0q1 IRQS_PENDING",
    )?;
    expect("touch no device", late == Accesses::default(), &late)?;
    let kept = stats(&mut rig)?;
    expect("keep it from the handler", kept == before, (before, kept))?;

    let open = "wait_for 10 core_says nvme0q1 'ddepth: *0$'";
    let freed = watched(&mut rig, &format!("{FREE}; {open}"))?;
    expect("unmask once", freed.unmasks == 1, &freed)?;
    let control = vector_control(&mut rig, &masked.place)?;
    expect("unmask in the table", control == 0, control)?;
    let replayed = stats(&mut rig)?;
    let once = (before.0 + 1, before.1 + 1);
    expect("replay it once", replayed == once, (before, replayed))?;
    rig.sh("! core_says nvme0q1 IRQS_PENDING")?;

    reset_while_masked(&mut rig, &masked.place)?;
    rig.finish()?;
    Ok(Outcome::pass(
        "kept and replayed; masked, reset, and open again",
    ))
}

/// The controller is reset while the framework has its vector masked.
fn reset_while_masked(rig: &mut Rig, place: &str) -> Result<()> {
    let before = vector_control(rig, place)?;
    rig.sh(&format!("{HOG}; {ASK}"))?;
    let reset = rig
        .guest
        .spawn("taskset e sh -c 'echo 1 > /sys/class/nvme/nvme0/reset_controller'")?;
    thread::sleep(Duration::from_millis(500));
    rig.sh(FREE)?;
    rig.guest.wait(reset, LIMIT)?;
    rig.sh("wait_live")?;
    let after = vector_control(rig, place)?;
    expect("restore the table", before == after, (before, after))?;
    let load = Load::read(1, 1, 1).set("max_latency", "1s");
    rig.sh(&load.command()).map(drop)
}

/// How often the handler ran, and how often it was forgiven to find nothing.
fn stats(rig: &mut Rig) -> Result<(u64, u64)> {
    Ok((counter(rig, "interrupts")?, counter(rig, "forgiven")?))
}

/// What the device has at this address of its vector table.
fn vector_control(rig: &mut Rig, place: &str) -> Result<u32> {
    let words = serde_json::json!({"command-line": format!("xp /1xw {place}")});
    let answer = rig.guest.qmp("human-monitor-command", words)?;
    let text = answer.as_str().unwrap_or_default();
    let value = text.rsplit("0x").next().unwrap_or_default().trim();
    u32::from_str_radix(value, 16).at("read the vector table")
}

fn load(context: &Context<'_>, name: &str, driver: Driver) -> Result<Outcome> {
    let name = format!("nowait-load-{name}");
    let mut rig = Plan::new(&name, driver)?.vm(crowded).start(context)?;
    let verify = Load::verify("verify", "io_uring", 64, 3, context.count(24, 96));
    rig.sh(&verify.set("cpus_allowed", "1-3").command())?;
    storm(&mut rig, 64, context.count(2, 20))?;
    let requests = context.count(3_000, 100_000);
    rig.sh(&Load::alone(requests).command())?;
    let masks = masks(&mut rig, "masks")?;
    expect("mask at all", masks > 0, masks)?;
    let unhandled = rig.sh(
        "for irq in $(vectors); do grep ^unhandled /proc/irq/$irq/spurious; done \
         | awk '$2 > most { most = $2 } END { print most + 0 }'",
    )?;
    let unhandled: u64 = unhandled.trim().parse().at("read unhandled interrupts")?;
    expect("count unhandled interrupts", unhandled <= 100, unhandled)?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{masks} masks, {unhandled} unhandled interrupts"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_is_read() {
        let trace = "\
memory_region_ops_write cpu 0 mr 0x55 addr 0xfebd201c value 0x1 size 4 name 'msix-table'
memory_region_ops_read cpu 0 mr 0x55 addr 0xfebd2000 value 0xfee0 size 4 name 'msix-table'
memory_region_ops_write cpu 0 mr 0x55 addr 0xfebd2010 value 0x1 size 4 name 'msix-table'
memory_region_ops_write cpu 0 mr 0x66 addr 0xfebd000c value 0x1 size 4 name 'nvme'
memory_region_ops_write cpu 1 mr 0x55 addr 0xfebd201c value 0x0 size 4 name 'msix-table'
";
        let accesses = Accesses {
            masks: 1,
            unmasks: 1,
            reads: 1,
            place: "0xfebd201c".into(),
        };
        assert_eq!(Accesses::of(trace), accesses);
    }
}
