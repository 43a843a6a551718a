// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading.

use super::rig::{
    Driver,
    Plan,
    Rig,
    ALL,
    LIMIT,
    POLICIES, //
};
use crate::{
    disk::Disk,
    failure::{
        Failure,
        Result, //
    },
    test::{
        Case,
        Context,
        Outcome, //
    },
};
use irqmod::policy::Config;

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for driver in ALL {
        let name = format!("boot-{}", driver.name());
        let about = format!("the kernel boots and a disk works: {}", driver.name());
        all.push(Case::new(name.clone(), &[], about, move |context| {
            boot(context, &name, driver)
        }));
    }
    let about = "what a parameter does not allow is refused, with a line that says what is";
    all.push(Case::new("params", &["HRT-04"], about, refused_parameters));
    let about =
        "devices have policies of their own, by the same parameter; what is wrong changes nothing";
    all.push(Case::new("devices", &["HRT-04"], about, devices));
    for driver in [Driver::C, POLICIES[1]] {
        let name = format!("busy-module-{}", driver.name());
        let about = "the module of an open, mounted or swapped-to disk can't be unloaded";
        let body = move |context: &Context<'_>| busy_module(context, driver);
        all.push(Case::new(name, &["RUST-01"], about, body));
    }
    for driver in POLICIES {
        let name = format!("reload-{}", driver.name());
        let about = "the module is unloaded right after a load, and loaded again";
        let body = move |context: &Context<'_>| reload(context, driver);
        all.push(Case::new(name, &["TEAR-08"], about, body));
    }
    all
}

fn boot(context: &Context<'_>, name: &str, driver: Driver) -> Result<Outcome> {
    let mut rig = Plan::new(name, driver)?.start(context)?;
    rig.sh("dd if=/dev/zero of=$DISK bs=64k count=16 oflag=direct 2>/dev/null && sync")?;
    let bound = rig.sh("basename $(readlink /sys/class/nvme/nvme0/device/driver)")?;
    if bound.trim() != driver.module() {
        return Err(Failure::new(
            "look at the driver",
            format!("bound to {bound}"),
        ));
    }
    rig.finish()?;
    Ok(Outcome::pass(""))
}

/// What `insmod` says of `EINVAL`.
const INVALID: &str = "Invalid argument";

/// What it says of `ERANGE`.
const RANGE: &str = "Numerical result out of range";

/// Policy, the error that it has to meet, what the log has to say.
const REFUSED: &[(&str, &str, &str)] = &[
    ("resched:budget=0", RANGE, "allowed: 1..=256"),
    ("resched:budget=257", RANGE, "allowed: 1..=256"),
    ("resched:budget=x", INVALID, "allowed: 1..=256"),
    ("resched:budget=1,budget=2", INVALID, "'budget' given twice"),
    ("resched:colour=1", INVALID, "allowed: budget"),
    ("hardirq:budget=1", INVALID, "'budget'"),
];

/// Number, least and largest value on the guest's two CPUs.
const NUMBERS: &[(&str, u32, u32)] = &[
    ("io_queue_depth", 2, 4096),
    ("write_queues", 0, 2),
    ("poll_queues", 0, 2),
];

/// `insmod` asks twice, by either system call.
const TRIES: usize = 2;

fn refused_parameters(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = Plan::new("params", POLICIES[0])?.start(context)?;
    rig.sh("rmmod nvme_rust")?;
    let names = format!("allowed: {}", Config::NAMES.join(", "));
    let nonsense = Driver::Rust("nonsense").insmod("");
    refused(&mut rig, &nonsense, "irq_policy", INVALID, &names)?;
    for (value, error, told) in REFUSED {
        let load = Driver::Rust(value).insmod("");
        refused(&mut rig, &load, "irq_policy", error, told)?;
    }
    let numbers = refused_numbers(&mut rig)?;
    rig.sh(&format!(
        "{} && wait_disk",
        Driver::Rust("resched:budget=256").insmod("")
    ))?;
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{} values",
        1 + REFUSED.len() + numbers
    )))
}

/// Returns how many were refused. The outermost of those that are allowed work.
fn refused_numbers(rig: &mut Rig) -> Result<usize> {
    let mut count = 0;
    for (name, least, largest) in NUMBERS {
        let load = |value: u32| POLICIES[0].insmod(&format!("{name}={value}"));
        for value in (0..*least).chain([largest + 1, u32::MAX]) {
            let told = format!("'{value}' is out of range; allowed: {least}..={largest}");
            refused(rig, &load(value), name, RANGE, &told)?;
            count += 1;
        }
        for value in [*least, *largest] {
            rig.sh(&format!("{} && wait_disk && rmmod nvme_rust", load(value)))?;
        }
    }
    Ok(count)
}

/// One line each time, which says what is allowed.
fn refused(rig: &mut Rig, load: &str, parameter: &str, error: &str, told: &str) -> Result<()> {
    rig.sh("dmesg -c > /dev/null")?;
    let output = rig.guest.run(load, LIMIT)?;
    let log = rig.sh("dmesg")?;
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    let once = count(&format!("{parameter}: ")) == TRIES && count(told) == TRIES;
    if output.code != 0 && output.text.contains(error) && once {
        return Ok(());
    }
    let cause = format!(
        "wanted: {error}, {told}; exit code {}: {}\n{log}",
        output.code,
        output.text.trim()
    );
    Err(Failure::new(load, cause).log(rig.guest.console_path()))
}

/// Wrong choices for a device `X`, and what the log has to say.
const WRONG: &[(&str, &str, &str)] = &[
    ("fair;X=nonsense", INVALID, "unknown policy 'nonsense'"),
    ("fair;X=resched:budget=257", RANGE, "allowed: 1..=256"),
    ("fair;X=fair;X=hardirq", INVALID, "given twice"),
    ("fair;=hardirq", INVALID, "'' is not the name of a device"),
    ("fair;X", INVALID, "unknown policy ''"),
    (";X=fair", INVALID, "unknown policy ''"),
];

/// Of two disks the second one has a policy of its own: when the module is loaded, and after a reset by
/// what was written meanwhile.
fn devices(context: &Context<'_>) -> Result<Outcome> {
    let disks = ["d0", "d1"].map(|id| Disk::null(id, 1 << 30).set("dbcs", "off"));
    let mut rig = Plan::with_disks("devices", POLICIES[0], disks, None).start(context)?;
    rig.sh("wait_disk /dev/nvme1n1")?;
    let own = rig.sh("address nvme1")?.trim().to_owned();
    rig.sh("rmmod nvme_rust")?;
    let parameter = "/sys/module/nvme_rust/parameters/irq_policy";
    let choices = format!("overflow:budget=9;{own}=resched:budget=17");
    // The device's number is by who was faster, its address is not.
    rig.sh(&format!(
        "insmod /lib/modules/nvme-rust.ko claim_all=1 'irq_policy={choices}' && wait_disk && wait_disk /dev/nvme1n1"
    ))?;
    have(&mut rig, &own, "overflow:budget=9", "resched:budget=17")?;
    for (text, error, told) in WRONG {
        let text = text.replace('X', &own);
        rig.sh("dmesg -c > /dev/null")?;
        let output = rig
            .guest
            .run(&format!("echo '{text}' > {parameter}"), LIMIT)?;
        let log = rig.sh("dmesg | grep '] irqmod: \\|] nvme_rust: \\|] irq_policy'")?;
        let kept = rig.sh(&format!("cat {parameter}"))?;
        let refused = output.code != 0 && output.text.contains(error) && log.contains(told);
        if !refused || kept.trim() != choices {
            let cause = format!("wanted: {error}, {told}; {} {log} {kept}", output.text);
            return Err(Failure::new(format!("write {text}"), cause));
        }
    }
    // A line keeps its policy until it is requested again.
    rig.sh(&format!(
        "echo 'irqpoll;{own}=fair;0000:ff:1f.7=rate' > {parameter}"
    ))?;
    have(&mut rig, &own, "overflow:budget=9", "resched:budget=17")?;
    rig.sh(
        "for one in /sys/class/nvme/nvme[01]; do echo 1 > $one/reset_controller || exit; done; \
         wait_for 30 grep -q live /sys/class/nvme/nvme0/state && \
         wait_for 30 grep -q live /sys/class/nvme/nvme1/state",
    )?;
    have(&mut rig, &own, "irqpoll", "fair")?;
    rig.finish()?;
    Ok(Outcome::pass(format!("{} texts refused", WRONG.len())))
}

/// Checks the policy of the device `own`, and that of the other, and that both work.
fn have(rig: &mut Rig, own: &str, common: &str, other: &str) -> Result<()> {
    let said = rig.sh(&format!(
        "for one in nvme0 nvme1; do \
             dd if=/dev/${{one}}n1 of=/dev/null bs=64k count=4 iflag=direct 2> /dev/null || exit; \
             [ $(address $one) = {own} ] && wanted='[{other}' || wanted='[{common}'; \
             for line in /sys/kernel/debug/irqmod/${{one}}q[1-9]*; do \
                 grep -qF \"$wanted\" $line/policy || echo $line: $wanted: $(cat $line/policy); \
             done; \
         done"
    ))?;
    match said.trim() {
        "" => Ok(()),
        wrong => Err(Failure::new("choose by device", wrong)),
    }
}

/// Ways to hold a disk, and to let go.
const HOLDERS: &[(&str, &str)] = &[
    (
        "(sleep 1000 < $DISK) & echo $! > /tmp/holder; sleep 0.2",
        "kill $(cat /tmp/holder)",
    ),
    (
        "mke2fs -q $DISK && mount -t ext2 $DISK /mnt",
        "cat /mnt/file > /dev/null; umount /mnt",
    ),
    ("mkswap $DISK > /dev/null && swapon $DISK", "swapoff $DISK"),
];

fn busy_module(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let mut rig = Plan::new(&format!("busy-module-{}", driver.name()), driver)?.start(context)?;
    let module = driver.module();
    for (hold, release) in HOLDERS {
        rig.sh(hold)?;
        let output = rig.guest.run(&format!("rmmod {module}"), LIMIT)?;
        if output.code == 0 {
            return Err(Failure::new(
                format!("rmmod {module}"),
                format!("went through: {hold}"),
            ));
        }
        rig.sh("dd if=$DISK of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null")?;
        rig.sh(release)?;
    }
    rig.idle()?;
    rig.sh(&format!("rmmod {module}"))?;
    rig.end()?;
    Ok(Outcome::pass("open, mounted, swap"))
}

fn reload(context: &Context<'_>, driver: Driver) -> Result<Outcome> {
    let rounds = context.count(5, 20);
    let mut rig = Plan::new(&format!("reload-{}", driver.name()), driver)?.start(context)?;
    let load = driver.insmod("");
    let read = super::load::Load::read(32, 1, 1)
        .set("runtime", "300ms")
        .command();
    for _ in 0..rounds {
        rig.sh(&format!(
            "{read} > /dev/null && rmmod {} && {load} && wait_disk",
            driver.module()
        ))?;
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{rounds} rounds (full: 20)")))
}
