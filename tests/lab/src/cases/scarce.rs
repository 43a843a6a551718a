// SPDX-License-Identifier: GPL-2.0

//! What can not be had: threads and memory, at each place where they are asked for.

use super::{
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
};

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about =
        "the completion threads of some CPUs can't be made: softirqs stand in, till they can";
    let about_probe = "each thread that a probe asks for can't be made, one after the other";
    let about_memory =
        "each piece of memory that a probe, a reset or a switch asks for can't be had, one after the other";
    vec![
        Case::new("fair-threadless", &[], about, threadless),
        Case::new("probe-threadless", &["RUST-05"], about_probe, probe),
        Case::new("debug-failslab", &["TEAR-13"], about_memory, memory),
    ]
}

fn fail(step: &str, cause: impl Into<String>) -> Failure {
    Failure::new(step, cause.into())
}

/// Leaves so many threads to be made in all of the system while a text is written to a file. Prints how
/// the write ended, and how many threads were made until `$TRIES` looks later: the shell's own
/// words only, as another process would be one thread more.
const SCARCE: &str = r#"
scarce() { # scarce LEFT TEXT FILE
    file=/proc/sys/kernel/threads-max
    most=$(cat $file)
    read -r _ _ _ tasks before < /proc/loadavg
    echo $((${tasks#*/} + $1)) > $file
    echo "$2" > $3
    code=$?
    looks=0
    while [ $looks -lt $TRIES ]; do
        looks=$((looks + 1))
        read -r _ _ _ _ after < /proc/loadavg
    done
    echo $most > $file
    echo $code $((after - before))
}
"#;

/// How a write under [`SCARCE`] ended, and threads that were made meanwhile.
fn scarce(rig: &mut Rig, left: u32, text: &str, file: &str, tries: u32) -> Result<(i32, i32)> {
    let said = rig.sh(&format!(
        "{SCARCE}\nTRIES={tries}; scarce {left} '{text}' {file} 2> /dev/null"
    ))?;
    let mut words = said.split_whitespace().rev().map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(made)), Some(Ok(code))) => Ok((code, made)),
        _ => Err(fail("write a text without threads", said)),
    }
}

const CPUS: u32 = 3;

const NO_THREADS: &str = "no completion threads, softirqs stand in: -11";

/// All lines of the disk.
const LINES: &str = "/sys/kernel/debug/irqmod/nvme0q[1-9]*";

fn choose(rig: &mut Rig, policy: &str) -> Result<()> {
    rig.sh(&format!(
        "for line in {LINES}; do echo {policy} > $line/policy || exit; done"
    ))
    .map(drop)
}

/// Completion threads that there are.
fn threads(rig: &mut Rig) -> Result<u32> {
    let count = rig.sh(r"ps -o comm | grep -c '^irqmod/[0-9]*$' || true")?;
    count.trim().parse().at("count the completion threads")
}

/// The disk serves, and what was written is read.
fn serves(rig: &mut Rig) -> Result<()> {
    let load = Load::verify("serves", "io_uring", 32, 1, 2).command();
    rig.sh(&format!("{load} && {}", Load::alone(5).command()))
        .map(drop)
}

const FAIR: &str = "fair:share_percent=10,window_us=500";

/// No thread for any CPU, for the first only, for all but the last: whoever has one must not be waited
/// for after it went.
fn threadless(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(1, 10);
    let plan = Plan::new("fair-threadless", Driver::Rust("hardirq"))?;
    let mut rig = plan.vm(|vm| vm.cpus(CPUS)).start(context)?;
    // Its own threads are there before threads are scarce.
    let job = rig.guest.spawn(&Load::read(32, 2, 600).command())?;
    rig.sh("sleep 1")?;
    let mut partly = 0;
    for left in (0..rounds).flat_map(|_| 0..CPUS) {
        partly += u32::from(without_threads(&mut rig, left)?);
    }
    if partly == 0 {
        return Err(fail("leave threads to some CPUs", "none had one"));
    }
    choose(&mut rig, FAIR)?;
    rig.sh("wait_for 10 sh -c '[ $(ps -o comm | grep -c \"^irqmod/[0-9]*$\") -eq 3 ]'")?;
    serves(&mut rig)?;
    rig.sh("killall fio")?;
    rig.guest.wait(job, LIMIT)?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{rounds} rounds (full: 10), {partly} times some CPUs had their threads at first"
    )))
}

/// Chooses a policy that needs threads with so many left to be made, under load. Whether one was
/// made. Afterwards the disk works, also with another policy.
fn without_threads(rig: &mut Rig, left: u32) -> Result<bool> {
    choose(rig, "hardirq")?;
    rig.sh("dmesg -c > /dev/null")?;
    let before = super::policies::counter(rig, "deferrals")?;
    let file = "/sys/kernel/debug/irqmod/nvme0q1/policy";
    let (code, made) = scarce(rig, left, FAIR, file, 3000)?;
    let step = format!("choose fair with {left} threads left");
    if code != 0 {
        return Err(fail(&step, format!("exit code {code}")));
    }
    let said = rig.sh("dmesg")?;
    if !said.contains(NO_THREADS) || threads(rig)? != 0 {
        return Err(fail(&step, format!("threads were made: {made}; {said}")));
    }
    serves(rig)?;
    if super::policies::counter(rig, "deferrals")? == before {
        return Err(fail(&step, "nothing was deferred"));
    }
    choose(rig, "workqueue:direct=0")?;
    serves(rig)?;
    Ok(made > 0)
}

const DRIVER: &str = "/sys/bus/pci/drivers/nvme_rust";

/// Takes the driver off the disk's controller, if it is there.
fn unbind(rig: &mut Rig, address: &str) -> Result<()> {
    rig.sh(&format!(
        "[ ! -e {DRIVER}/{address} ] || echo {address} > {DRIVER}/unbind"
    ))
    .map(drop)
}

/// What the driver says of a controller that it keeps without its disk. No pattern matches itself: the
/// log has the guest's commands, too.
const NO_QUEUES: &str = "nvme0: no I/O queue[s]";

/// Waits for the end of a probe or a reset, however it ends. Says "there", or "bare" of a controller that
/// stays for its administrator without I/O queues, or that it is "gone"; and what it leaves then.
const SETTLE: &str = r#"
read_some() { dd if=$DISK of=/dev/null bs=64k count=4 iflag=direct 2> /dev/null; }
settled() { [ ! -e $DRIVER/$ADDRESS ] || grep -q 'live\|dead' /sys/class/nvme/*/state; }
settle() {
    wait_for 60 settled || return
    if [ ! -e $DRIVER/$ADDRESS ]; then
        echo gone $(ls /sys/kernel/debug/irqmod) $(grep nvme /proc/interrupts)
    elif dmesg | grep -q "$NO_QUEUES"; then
        echo bare
    else
        wait_disk && read_some && echo there
    fi
}
"#;

fn settling(address: &str) -> String {
    format!("DRIVER={DRIVER}; ADDRESS={address}; NO_QUEUES='{NO_QUEUES}'\n{SETTLE}")
}

/// Whether the disk is there, by what [`SETTLE`] says.
fn is_there(said: &str) -> Result<bool> {
    match said.trim() {
        "there" => Ok(true),
        "bare" | "gone cpus" => Ok(false),
        said => Err(fail("leave nothing of what failed", said)),
    }
}

/// A probe with so many threads left to be made, from none on, until it has all that it asks for.
fn probe(context: &Context<'_>) -> Result<Outcome> {
    let most = context.count(8, 20);
    let plan = Plan::new("probe-threadless", Driver::Rust("workqueue:direct=0"))?;
    let mut rig = plan.start(context)?;
    let address = rig.sh("address")?.trim().to_owned();
    let mut refused = 0;
    for left in 0..most {
        unbind(&mut rig, &address)?;
        rig.sh("dmesg -c > /dev/null")?;
        scarce(&mut rig, left, &address, &format!("{DRIVER}/bind"), 5_000)?;
        if is_there(&rig.sh(&format!("{}\nsettle", settling(&address)))?)? {
            serves(&mut rig)?;
        } else {
            refused += 1;
        }
    }
    unbind(&mut rig, &address)?;
    rig.sh(&format!("echo {address} > {DRIVER}/bind && wait_disk"))?;
    serves(&mut rig)?;
    rig.finish()?;
    if refused == 0 || refused == most {
        return Err(fail("refuse some probes", format!("{refused} of {most}")));
    }
    Ok(Outcome::pass(format!(
        "{refused} of {most} probes failed (full: of 20)"
    )))
}

/// Fails allocations that the driver makes, or that others make for it: those with its code on the
/// stack, in whatever task. Not those of the interpreter of ACPI, which uses objects that it has freed when it
/// has no memory for another one (found by this case).
const FAULTS: &str = r#"
slab=/sys/kernel/debug/failslab
page=/sys/kernel/debug/fail_page_alloc
prepare() {
    text=$(cat /sys/module/nvme_rust/sections/.text)
    size=$(awk '$1 == "nvme_rust" { print $2 }' /proc/modules)
    acpi=$(grep -E ' [tT] acpi_(ds|ev|ex|ns|ps|ut)_' /proc/kallsyms | cut -d' ' -f1 | sort)
    [ -n "$acpi" ] || return
    for kind in $slab $page; do
        echo 0 > $kind/probability && echo 0 > $kind/verbose && echo N > $kind/ignore-gfp-wait &&
            echo 0x$(echo "$acpi" | head -n 1) > $kind/reject-start &&
            echo 0x$(echo "$acpi" | tail -n 1) > $kind/reject-end &&
            echo $text > $kind/require-start && printf '0x%x' $((text + size)) > $kind/require-end || return
    done
    echo 0 > $page/min-order
}
arm() { # arm KIND SPACE: the first one fails that finds so many bytes allocated
    echo $2 > $1/space && echo 1 > $1/times && echo 100 > $1/probability
}
disarm() { # says how many bytes are left of the space, and how many are yet to fail
    echo 0 > $1/probability && echo $(cat $1/space $1/times)
}
nth() { # nth N TEXT FILE: the n-th allocation of the write fails; says how it ended, and whether one did
    echo $1 > /proc/self/fail-nth
    echo $2 > $3
    code=$?
    read -r left < /proc/self/fail-nth
    echo 0 > /proc/self/fail-nth
    echo $code $left
}
"#;

/// A part of the driver's life.
#[derive(Clone, Copy)]
enum Step {
    Probe,
    Reset,
}

impl Step {
    /// What makes it possible, and the step.
    fn commands(self) -> (&'static str, &'static str) {
        match self {
            Self::Probe => (
                "[ ! -e $DRIVER/$ADDRESS ] || echo $ADDRESS > $DRIVER/unbind",
                "echo $ADDRESS > $DRIVER/bind",
            ),
            Self::Reset => (
                "[ -e $DRIVER/$ADDRESS ] || echo $ADDRESS > $DRIVER/bind; wait_disk",
                "echo 1 > /sys/class/nvme/nvme0/reset_controller",
            ),
        }
    }
}

/// More than any probe allocates. Unit: bytes.
const PLENTY: u32 = 1 << 30;

/// How a step went in which an allocation was to fail.
struct Attempt {
    /// Bytes that it allocated before.
    bytes: u32,
    /// Whether one failed.
    failed: bool,
    /// Whether the disk is there.
    there: bool,
}

fn attempt(rig: &mut Rig, step: Step, kind: &str, space: u32, address: &str) -> Result<Attempt> {
    let (before, step) = step.commands();
    let said = rig.sh(&format!(
        "{FAULTS}\n{}\n{before}; dmesg -c > /dev/null; arm ${kind} {space} && \
         {{ {step} 2> /dev/null || true; }} && how=$(settle) && disarm ${kind} && echo $how",
        settling(address)
    ))?;
    let mut lines = said.lines();
    match numbers(lines.next().unwrap_or_default()).as_slice() {
        &[left, times] => Ok(Attempt {
            bytes: space.saturating_sub(left),
            failed: times == 0,
            there: is_there(lines.next().unwrap_or_default())?,
        }),
        _ => Err(fail("read what has failed", said)),
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().flat_map(str::parse).collect()
}

/// Attempts in which an allocation failed, and those of them that left no disk.
#[derive(Default)]
struct Failures {
    all: u32,
    gone: u32,
}

/// Goes through all that a step allocates, in so many strides.
fn sweep(rig: &mut Rig, step: Step, strides: u32, address: &str) -> Result<Failures> {
    let mut failures = Failures::default();
    for kind in ["slab", "page"] {
        let all = attempt(rig, step, kind, PLENTY, address)?;
        if all.failed || !all.there || all.bytes == 0 {
            let cause = format!("{} bytes of {kind}", all.bytes);
            return Err(fail("count what is allocated", cause));
        }
        for stride in 0..strides {
            let space = u64::from(all.bytes) * u64::from(stride) / u64::from(strides);
            let space = u32::try_from(space).at("share the bytes")?;
            let attempt = attempt(rig, step, kind, space, address)?;
            failures.all += u32::from(attempt.failed);
            failures.gone += u32::from(!attempt.there);
        }
    }
    Ok(failures)
}

/// Switches new lines to a policy that has to allocate, with each of its allocations failing in turn. How
/// many there are. What was allocated stays with its line.
fn switch(rig: &mut Rig, policy: &str, address: &str) -> Result<u32> {
    let file = "/sys/kernel/debug/irqmod/nvme0q1/policy";
    let mut failed = 0;
    loop {
        unbind(rig, address)?;
        rig.sh(&format!("echo {address} > {DRIVER}/bind && wait_disk"))?;
        let said = rig.sh(&format!(
            "{FAULTS}\n{SETTLE}\nnth {} {policy} {file} 2> /dev/null; read_some && cat {file}",
            failed + 1
        ))?;
        let (how, policies) = said.split_once('\n').unwrap_or_default();
        let chosen = policies.contains(&format!("[{policy}"));
        match (numbers(how).as_slice(), chosen) {
            (&[0, left], true) if left > 0 => return Ok(failed),
            (&[0, 0], true) | (&[1, 0], false) => failed += 1,
            _ => return Err(fail("switch without memory", said)),
        }
    }
}

/// A controller that can not have its messages is enabled with INTx, and gets them when its queues are
/// planned. The emulated one sends none for its admin queue then until the next reset, as it seems (the line
/// is open and counts none, and the driver finds each command completed at its time-out). So that this
/// does not take minutes:
const ADMIN_SECONDS: u32 = 5;

fn memory(context: &Context<'_>) -> Result<Outcome> {
    let strides = context.count(5, 60);
    let plan = Plan::new("debug-failslab", Driver::Rust("workqueue:direct=0"))?;
    let mut rig = plan
        .flavour(Flavour::Debug)
        .vm(|vm| vm.cmdline("kmemleak=on"))
        .allow(&[
            "cacheline tracking ENOMEM, dma-debug disabled",
            "QID 0 timeout, completion polled",
        ])
        .start(context)?;
    let address = rig.sh("address")?.trim().to_owned();
    rig.sh(&format!(
        "{FAULTS}\nprepare && echo clear > /sys/kernel/debug/kmemleak && \
         echo {ADMIN_SECONDS} > /sys/module/nvme_core/parameters/admin_timeout && \
         echo {address} > {DRIVER}/unbind && echo {address} > {DRIVER}/bind && wait_disk"
    ))?;
    let probes = sweep(&mut rig, Step::Probe, strides, &address)?;
    let resets = sweep(&mut rig, Step::Reset, strides, &address)?;
    rig.sh("echo hardirq > /sys/module/nvme_rust/parameters/irq_policy")?;
    let switches = switch(&mut rig, "workqueue", &address)?;
    // Half of all allocations, under load, with work items.
    choose(&mut rig, "workqueue:direct=0")?;
    let load = Load::verify("half", "io_uring", 32, 2, 8).command();
    rig.sh(&format!(
        "{FAULTS}\narm $slab 0 && echo -1 > $slab/times && echo 50 > $slab/probability && \
         {{ {load}; code=$?; disarm $slab; [ $code -eq 0 ]; }}"
    ))?;
    no_leaks(&mut rig)?;
    rig.finish()?;
    let refused = |failures: &Failures| failures.all == 0 || failures.gone == 0;
    if refused(&probes) || switches == 0 {
        return Err(fail("fail allocations", "none that mattered did"));
    }
    Ok(Outcome::pass(format!(
        "memory failed in {} probes ({} left no disk), {} resets ({}), {switches} switches; full: 60 strides",
        probes.all, probes.gone, resets.all, resets.gone
    )))
}

/// Memory that is not pointed to any more. It has to be five seconds old, and is told when it is found
/// twice.
fn no_leaks(rig: &mut Rig) -> Result<()> {
    let file = "/sys/kernel/debug/kmemleak";
    let found = rig.sh(&format!(
        "sleep 6; echo scan > {file} && echo scan > {file} && cat {file}"
    ))?;
    match found.contains("nvme") || found.contains("irqmod") {
        true => Err(fail("look for leaks", found)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_probe_leaves_is_found() {
        assert!(is_there("there\n").is_ok_and(|there| there));
        assert!(is_there("gone cpus").is_ok_and(|there| !there));
        for left in [
            "gone cpus nvme0q1",
            "gone cpus 25: 0 0 PCI-MSIX nvme0q0",
            "",
        ] {
            assert!(is_there(left).is_err(), "{left}");
        }
    }

    #[test]
    fn scripts_are_valid_shell() {
        let text = [SCARCE, FAULTS, &settling("0000:01:00.0")].join("\n");
        let status = std::process::Command::new("sh")
            .args(["-n", "-c", &text])
            .status();
        assert!(status.unwrap().success());
    }
}
