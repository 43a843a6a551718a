// SPDX-License-Identifier: GPL-2.0

//! Data is what was written: detector D4 on a real file.

use super::{
    load::Load,
    rig::{
        self,
        Driver,
        Plan,
        Store,
        ALL,
        POLICIES, //
    },
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
    vm::Vm,
};

/// Words that make every transfer go through a copy.
const BOUNCE: &str = "swiotlb=65536,force";

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for driver in ALL {
        for bounce in [false, true] {
            all.push(verified(driver, bounce, SHORT));
        }
    }
    for driver in rig::more() {
        all.push(verified(driver, true, SHORTEST));
    }
    let about = "transfers that need exactly so many list entries, aligned and not";
    all.push(Case::new("lists", &["BLK-01", "BLK-02"], about, lists));
    let about = "controllers with queues of 2 to 2048 entries, more requests than entries";
    all.push(Case::new("depths", &["RING-05"], about, depths));
    all
}

fn verified(driver: Driver, bounce: bool, short: &'static [Pass]) -> Case {
    let kind = if bounce { "swiotlb" } else { "plain" };
    let name = format!("verify-{}-{kind}", driver.name());
    let ids: &[&str] = if bounce { &["SWI-02"] } else { &["BLK-01"] };
    let about = "checksums of blocks of 512 B to 1 MiB in misaligned buffers";
    let body = {
        let name = name.clone();
        move |context: &Context<'_>| {
            let passes = if context.long { LONG } else { short };
            verify(context, &name, driver, bounce, passes)
        }
    };
    Case::new(name, ids, about, body)
}

fn bounced(vm: Vm) -> Vm {
    vm.cmdline(BOUNCE)
}

/// One pass: engine, requests in flight, jobs, offset of the buffer in its page.
type Pass = (&'static str, u32, u32, u32);

const SHORT: &[Pass] = &[
    ("libaio", 32, 1, 4),
    ("io_uring", 256, 1, 512),
    ("io_uring", 1, 4, 1028),
];

const SHORTEST: &[Pass] = &[("io_uring", 64, 2, 512)];

const LONG: &[Pass] = &[
    ("libaio", 1, 1, 0),
    ("libaio", 32, 1, 4),
    ("libaio", 256, 4, 4092),
    ("io_uring", 1, 4, 1028),
    ("io_uring", 32, 2, 8),
    ("io_uring", 256, 1, 512),
    ("io_uring", 256, 4, 4),
];

fn verify(
    context: &Context<'_>,
    name: &str,
    driver: Driver,
    bounce: bool,
    passes: &[Pass],
) -> Result<Outcome> {
    let plan = Plan::new(name, driver)?;
    let mut rig = if bounce { plan.vm(bounced) } else { plan }.start(context)?;
    let mib = context.count(24, 96);
    for (number, (engine, depth, jobs, offset)) in passes.iter().enumerate() {
        let load = Load::verify(&format!("verify{number}"), engine, *depth, *jobs, mib)
            .set("iomem_align", offset)
            .set("randseed", number + 1);
        rig.sh(&load.command())?;
    }
    if bounce {
        let used = rig.sh(&format!(
            "rmmod {}; cat /sys/kernel/debug/swiotlb/io_tlb_used",
            driver.module()
        ))?;
        if used.trim() != "0" {
            return Err(Failure::new(
                "look for bounce buffers",
                format!("{} in use", used.trim()),
            ));
        }
    }
    rig.finish()?;
    let count = passes.len();
    Ok(Outcome::pass(format!(
        "{count} passes of {mib} MiB (full: {} of 96)",
        LONG.len()
    )))
}

/// Numbers of pages in a transfer around the ends of a list page, and small ones.
const PAGES: &[u32] = &[
    1, 2, 3, 4, 31, 127, 128, 129, 255, 256, 511, 512, 513, 1023, 1024,
];

fn lists(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = Plan::new("lists", POLICIES[0])?.start(context)?;
    for offset in [0, 512] {
        for pages in PAGES {
            let load = Load::new("list", "write")
                .set("bs", pages * 4096)
                .set("size", u64::from(*pages) * 4096 * 3)
                .set("ioengine", "io_uring")
                .set("iodepth", 2)
                .set("iomem_align", offset)
                .set("verify", "crc32c")
                .set("verify_fatal", 1)
                .set("verify_state_save", 0);
            rig.sh(&load.command())?;
        }
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{} sizes, 2 offsets", PAGES.len())))
}

/// What the controller says it can do (one less than the entries of its queues).
const MQES: [u32; 6] = [1, 2, 3, 7, 1023, 2047];

fn depths(context: &Context<'_>) -> Result<Outcome> {
    let stores = MQES
        .iter()
        .map(|mqes| Store::new(&format!("depths-{mqes}")));
    let stores = stores.collect::<Result<Vec<_>>>()?;
    let disks = MQES.iter().zip(&stores).map(|(mqes, store)| {
        let disk = Disk::file(&format!("d{mqes}"), &store.path);
        disk.set("mqes", mqes).set("dbcs", "off").ioqpairs(2)
    });
    let plan = Plan::with_disks("depths", POLICIES[1], disks, None);
    let mut rig = plan.parameters("io_queue_depth=4095").start(context)?;
    for number in 0..MQES.len() {
        let load = Load::verify("depth", "io_uring", 64, 2, 8);
        let disk = format!("/dev/nvme{number}n1");
        rig.sh(&format!(
            "wait_disk {disk}; {} --filename={disk}",
            load.command()
        ))?;
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{MQES:?}")))
}
