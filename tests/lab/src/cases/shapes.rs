// SPDX-License-Identifier: GPL-2.0

//! Controllers with fewer vectors than queues, and more queues than CPUs.

use super::{
    load::Load,
    rig::{
        Plan,
        Store,
        POLICIES, //
    },
};
use crate::{
    disk::Disk,
    failure::Result,
    test::{
        Case,
        Context,
        Outcome, //
    },
};

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let about = "more queues than CPUs, and vectors for one, two or all; a CPU goes and comes";
    vec![Case::new("vectors", &["HOT-03"], about, vectors)]
}

/// Vectors of each controller; with one the admin queue shares it.
const VECTORS: [u32; 3] = [1, 2, 9];

/// CPU 1 goes while the disk is loaded, and comes back.
const CYCLE: &str = "online=/sys/devices/system/cpu/cpu1/online; \
    sleep 0.3; within 5 write 0 $online; sleep 0.3; within 5 write 1 $online";

fn vectors(context: &Context<'_>) -> Result<Outcome> {
    let rounds = context.count(1, 10);
    let stores = VECTORS.map(|count| Store::new(&format!("vectors-{count}")));
    let stores = stores.into_iter().collect::<Result<Vec<_>>>()?;
    let disks = VECTORS.iter().zip(&stores).map(|(count, store)| {
        let disk = Disk::file(&format!("v{count}"), &store.path).ioqpairs(8);
        disk.set("msix_qsize", count).set("dbcs", "off")
    });
    let plan = Plan::with_disks("vectors", POLICIES[1], disks, None);
    // Two CPUs of eight that there may be.
    let mut rig = plan
        .vm(|vm| vm.arg("-smp").arg("maxcpus=8"))
        .start(context)?;
    for number in 0..VECTORS.len() {
        let disk = format!("/dev/nvme{number}n1");
        for cpu in [0, 1] {
            let load = Load::alone(200).set("cpus_allowed", cpu);
            let load = load.command();
            rig.sh(&format!("wait_disk {disk}; {load} --filename={disk}"))?;
        }
        for _ in 0..rounds {
            let load = Load::verify("vectors", "io_uring", 32, 2, 16).command();
            rig.sh(&format!("{load} --filename={disk} & {CYCLE} && wait $!"))?;
        }
    }
    rig.finish()?;
    Ok(Outcome::pass(format!("{VECTORS:?}")))
}
