// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading.

use super::rig::{
    Driver,
    Plan,
    ALL,
    LIMIT,
    POLICIES, //
};
use crate::{
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
    let about = "what is not allowed as a policy is refused, with a line that says what is";
    all.push(Case::new("params", &["HRT-04"], about, refused_parameters));
    for driver in [Driver::C, POLICIES[1]] {
        let name = format!("busy-module-{}", driver.name());
        let about = "the module of an open, mounted or swapped-to disk can't be unloaded";
        let body = move |context: &Context<'_>| busy_module(context, driver);
        all.push(Case::new(name, &["RUST-01"], about, body));
    }
    for driver in POLICIES {
        let name = format!("reload-{}", driver.name());
        let about = "the module is unloaded and loaded under load";
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

/// Value, the error that it has to meet.
const REFUSED: &[(&str, &str)] = &[
    ("nonsense", "Invalid argument"),
    ("resched:budget=0", "Numerical result out of range"),
    ("resched:budget=257", "Numerical result out of range"),
    ("resched:budget=x", "Invalid argument"),
    ("resched:budget=1,budget=2", "Invalid argument"),
    ("resched:colour=1", "Invalid argument"),
    ("hardirq:budget=1", "Invalid argument"),
];

fn refused_parameters(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = Plan::new("params", POLICIES[0])?.start(context)?;
    rig.sh("rmmod nvme_rust")?;
    for (value, error) in REFUSED {
        let load = Driver::Rust(value).insmod("");
        let mark = rig.guest.mark()?;
        let output = rig.guest.run(&load, LIMIT)?;
        let log = rig.guest.console()?.split_off(mark);
        let told = log
            .lines()
            .any(|line| line.contains("irq_policy") && !line.contains("lab: #"));
        if output.code == 0 || !told {
            let cause = format!(
                "exit code {}, log told: {told}, wanted: {error}",
                output.code
            );
            return Err(Failure::new(load, cause).log(rig.guest.console_path()));
        }
    }
    rig.sh(&format!(
        "{} && wait_disk",
        Driver::Rust("resched:budget=256").insmod("")
    ))?;
    rig.finish()?;
    Ok(Outcome::pass(format!("{} values", REFUSED.len())))
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
    rig.sh(&format!("sleep 0.5; rmmod {module}"))?;
    rig.finish()?;
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
