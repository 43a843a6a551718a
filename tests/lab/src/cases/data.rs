// SPDX-License-Identifier: GPL-2.0

//! Data is what was written: detector D4 on a real file.

use super::{
    load::Load,
    rig::{
        self,
        Driver,
        Plan,
        Rig,
        Store,
        ALL,
        POLICIES, //
    },
};
use crate::{
    disk::Disk,
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
    let about =
        "transfers of exactly so many pages, aligned and not, in one request where they fit";
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
    rig.idle()?;
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
    rig.end()?;
    let count = passes.len();
    Ok(Outcome::pass(format!(
        "{count} passes of {mib} MiB (full: {} of 96)",
        LONG.len()
    )))
}

/// Numbers of pages in a transfer: small, around what a request may have of them, and large ones,
/// which become several requests. A list of more than a page would take requests of larger
/// segments than a page, and this kernel has no huge pages to make them of.
const PAGES: &[u32] = &[
    1, 2, 3, 4, 31, 62, 63, 64, 65, 127, 128, 129, 255, 256, 511, 512, 513, 1023, 1024,
];

/// Blocks of each size: as many requests, or lists would have fewer entries than is meant.
const BLOCKS: u32 = 3;

fn lists(context: &Context<'_>) -> Result<Outcome> {
    let mut rig = Plan::new("lists", POLICIES[0])?.start(context)?;
    rig.sh("echo 2 > /sys/block/nvme0n1/queue/nomerges")?;
    let limit = number(&mut rig, "cat /sys/block/nvme0n1/queue/max_segments")?;
    let mut whole = 0;
    for offset in [0, 512] {
        for pages in PAGES {
            let load = Load::new("list", "write")
                .set("bs", pages * 4096)
                .set("size", u64::from(*pages) * 4096 * u64::from(BLOCKS))
                .set("ioengine", "io_uring")
                .set("iodepth", 2)
                .set("iomem_align", offset)
                .set("verify", "crc32c")
                .set("verify_fatal", 1)
                .set("verify_state_save", 0);
            let before = number(&mut rig, WRITES)?;
            rig.sh(&load.command())?;
            let made = number(&mut rig, WRITES)? - before;
            let touched = pages + u32::from(offset > 0);
            whole += u32::from(made == BLOCKS);
            if made != BLOCKS && touched <= limit {
                let cause = format!("{made} for {BLOCKS} blocks of {pages} pages at {offset}");
                return Err(Failure::new("count requests", cause));
            }
        }
    }
    rig.finish()?;
    Ok(Outcome::pass(format!(
        "{} sizes, 2 offsets; {whole} of them in one request, of up to {limit} pages",
        PAGES.len()
    )))
}

/// Prints how many write requests the disk has completed.
const WRITES: &str = "awk '{ print $5 }' /sys/block/nvme0n1/stat";

/// The number that a command prints.
fn number(rig: &mut Rig, command: &str) -> Result<u32> {
    rig.sh(command)?.trim().parse().at("count requests")
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
