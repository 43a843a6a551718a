// SPDX-License-Identifier: GPL-2.0

//! What can not be had: threads, at each place where they are asked for.

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
    vec![
        Case::new("fair-threadless", &[], about, threadless),
        Case::new("probe-threadless", &["RUST-05"], about_probe, probe),
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
        let text = [SCARCE, &settling("0000:01:00.0")].join("\n");
        let status = std::process::Command::new("sh")
            .args(["-n", "-c", &text])
            .status();
        assert!(status.unwrap().success());
    }
}
