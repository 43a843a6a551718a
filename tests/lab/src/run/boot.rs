// SPDX-License-Identifier: GPL-2.0

//! One measurement: boots a guest of its own, so that nothing is left over from the row before.

use super::{
    plan::{
        Key,
        Plan, //
    },
    result::Repeat,
    workload::{
        Driver,
        Workload, //
    },
};
use crate::{
    disk::Disk,
    failure::{
        At,
        Failure,
        Result, //
    },
    kernel::Kernel,
    lab::Lab,
    vm::{
        Time,
        Vm, //
    },
};
use guest_agent::report::Report;
use std::time::Duration;

/// Where the script is in the guest.
const SCRIPT: &str = "/etc/lab-run.sh";

/// How long a boot may take on the host; it takes five seconds on an idle one.
const BOOT: Duration = Duration::from_secs(120);

/// What one boot brought.
pub(crate) struct Measured {
    /// The figures.
    pub(crate) repeat: Repeat,
    /// Release of the guest's kernel.
    pub(crate) release: String,
    /// What the lab has to say about the boot.
    pub(crate) notes: Vec<String>,
}

/// Boots, loads, watches.
pub(crate) fn measure(
    lab: &Lab,
    kernel: &Kernel,
    plan: &Plan,
    key: &Key,
    exact_shares: bool,
) -> Result<Measured> {
    let vm = describe(plan, key, exact_shares).boot_timeout(BOOT);
    let mut guest = vm.boot(lab, kernel)?;
    let mark = guest.mark()?;
    // The load's time is the guest's; the host is slower by a factor that depends on the host.
    let limit = Duration::from_secs(300 + plan.ms(key.workload) / 10);
    let text = guest.check(&format!("sh {SCRIPT}"), limit)?;
    let report = read(&text).map_err(|f| f.log(guest.console_path()))?;
    let faults = guest.d1(mark)?;
    let measured = Measured {
        repeat: Repeat::new(&report, &faults, exact_shares && with_shares(key.workload)),
        release: report.kernel,
        notes: guest.notes().to_vec(),
    };
    // QEMU ends with `guest`: after a lockup the kernel need not be able to power off.
    drop(guest);
    Ok(measured)
}

fn read(text: &str) -> Result<Report> {
    let line = text.lines().rfind(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| Failure::new("read the agent's report", "there is none"))?;
    serde_json::from_str(line).at("read the agent's report")
}

/// The guest of a row.
fn describe(plan: &Plan, key: &Key, exact_shares: bool) -> Vm {
    let workload = key.workload;
    let mut vm = Vm::new(&name(key))
        .cpus(workload.cpus())
        .memory_mib(2048)
        .time(Time::Virtual)
        .arg("-cpu")
        .arg("max")
        .cmdline(&cmdline(workload, exact_shares))
        .file(SCRIPT, script(plan, key));
    for i in 0..workload.sources() {
        vm = match workload.has_disks() {
            // Two queues: one for reads, one for everything else. A controller with a single one
            // completes elsewhere. No shadow doorbells: the Rust driver has none, so that the C
            // driver's would not be a fair comparison.
            true => vm.disk(
                Disk::null(&format!("d{i}"), 1 << 30)
                    .ioqpairs(2)
                    .set("dbcs", "off"),
            ),
            false => vm.arg("-device").arg("edu"),
        };
    }
    vm
}

/// The folder of its logs.
pub(crate) fn name(key: &Key) -> String {
    crate::lab::slug(&format!("run {key}"))
}

/// All vectors on CPU 0: managed ones because the other CPUs are isolated from them.
pub(crate) fn cmdline(workload: Workload, exact_shares: bool) -> String {
    let isolated = match workload.cpus() - 1 {
        1 => "1".to_owned(),
        last => format!("1-{last}"),
    };
    let topology = match workload {
        Workload::Qd1 | Workload::Dense => format!("isolcpus=managed_irq,{isolated}"),
        Workload::Storm | Workload::Hog => {
            format!("isolcpus=managed_irq,{isolated} swiotlb=force")
        }
        Workload::Synthetic | Workload::Hot24 => "irqaffinity=0".to_owned(),
    };
    match exact_shares && !with_shares(workload) {
        true => format!("{topology} tsc=noirqtime"),
        false => topology,
    }
}

/// Reading the clock at each interrupt is what exact shares cost. Where one interrupt per request
/// is the whole load that would be a part of what is measured.
fn with_shares(workload: Workload) -> bool {
    workload != Workload::Qd1
}

/// What the guest's shell does, in one go: from its first line on everything is repeatable.
pub(crate) fn script(plan: &Plan, key: &Key) -> String {
    let settle = "sleep 1";
    let load = load(plan, key.workload);
    [&prologue(key), &wait(key.workload), settle, &load, ""].join("\n")
}

/// The words for the agent.
fn load(plan: &Plan, workload: Workload) -> String {
    let ms = plan.ms(workload);
    let disks = disks(workload);
    let edu = |gap_ns| {
        let cpus: Vec<String> = (1..workload.cpus()).map(|cpu| cpu.to_string()).collect();
        let (cost_ns, cpus) = (plan.cost_ns, cpus.join(","));
        format!(
            "guest-agent edu --ms {ms} --nap-us {NAP_US} --cost-ns {cost_ns} --gap-ns {gap_ns} --cpus {cpus}"
        )
    };
    match workload {
        Workload::Qd1 => {
            format!("guest-agent load --ms {ms} --depth 1 --nap-us 5000 --sampler 1 {disks}")
        }
        Workload::Storm => {
            format!("guest-agent load --ms {ms} --nap-us {NAP_US} --depth 128 {disks}")
        }
        Workload::Hog => format!("guest-agent load --ms {ms} --depth 128 --hog {disks}"),
        // A queue of 1024 entries has 1023 tags for its two submitters.
        Workload::Dense => {
            format!("guest-agent load --ms {ms} --nap-us {NAP_US} --depth 496 --block 512 {disks}")
        }
        Workload::Synthetic => edu(plan.gap_ns),
        Workload::Hot24 => format!("{} --depth {MANY_DEPTH}", edu(plan.gap_ns * MANY_GAP)),
    }
}

/// The ordinary task sleeps this long at a time, as cyclictest does by default.
const NAP_US: u32 = 1000;

/// How much farther apart the completions of one device are when there are many.
const MANY_GAP: u64 = 10;

/// Completions that one of many devices has outstanding: no drain of one device is a long one.
const MANY_DEPTH: u32 = 64;

/// Each disk with each CPU that submits to it.
fn disks(workload: Workload) -> String {
    let feeders = workload.cpus() - 1;
    let each = feeders.div_ceil(workload.sources());
    let targets: Vec<String> = (0..feeders)
        .map(|i| format!("/dev/nvme{}n1@{}", i / each, i + 1))
        .collect();
    targets.join(" ")
}

fn prologue(key: &Key) -> String {
    let policy = &key.policy;
    // A report of RCU resets the soft lockup detector, which would hide the plainer symptom.
    let stall = "echo 21 > /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout";
    let start = format!("set -e\n{stall}");
    match key.driver {
        Driver::C => {
            let threaded = u32::from(policy == "threaded");
            format!(
                "{start}\ninsmod /lib/modules/nvme-core.ko\n\
                 insmod /lib/modules/nvme.ko write_queues=1 use_threaded_interrupts={threaded}"
            )
        }
        Driver::Rust => format!(
            "{start}\n\
             for d in /sys/bus/pci/devices/*; do\n\
             \tcase $(cat $d/class) in 0x010802) echo nvme_rust > $d/driver_override ;; esac\n\
             done\n\
             insmod /lib/modules/nvme-core.ko\n\
             insmod /lib/modules/nvme-rust.ko write_queues=1 irq_policy={policy}"
        ),
        Driver::Edu => {
            format!("{start}\ninsmod /lib/modules/irqmod_edu.ko irq_policy={policy}")
        }
    }
}

/// Waits until everything that is to be loaded is there.
fn wait(workload: Workload) -> String {
    let (files, what) = match workload.has_disks() {
        true => ("/dev/nvme*n1", "disks"),
        false => ("/sys/kernel/debug/irqmod-edu-*", "edu devices"),
    };
    let count = workload.sources();
    let test = format!("$(ls -d {files} 2>/dev/null | wc -l) -lt {count}");
    format!(
        "n=0\n\
         while [ {test} ]; do\n\
         \tsleep 0.1\n\
         \tn=$((n + 1))\n\
         \t[ $n -lt 200 ] || {{ echo 'the {what} do not appear' >&2; exit 1; }}\n\
         done"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan::tests::args;

    fn key(workload: Workload, driver: Driver, policy: &str) -> Key {
        Key {
            workload,
            driver,
            policy: policy.into(),
        }
    }

    fn text(workload: Workload, driver: Driver, policy: &str) -> String {
        script(&Plan::new(&args()), &key(workload, driver, policy))
    }

    #[test]
    fn each_driver_gets_its_parameters() {
        let c = text(Workload::Storm, Driver::C, "threaded");
        assert!(c.contains("nvme.ko write_queues=1 use_threaded_interrupts=1"));
        assert!(text(Workload::Qd1, Driver::C, "hardirq").contains("interrupts=0"));
        let rust = text(Workload::Storm, Driver::Rust, "resched:budget=64");
        assert!(rust.contains("irq_policy=resched:budget=64"));
        assert!(rust.contains("echo nvme_rust > $d/driver_override"));
        assert!(rust.contains("/dev/nvme0n1@1 /dev/nvme1n1@2 /dev/nvme2n1@3 /dev/nvme3n1@4"));
        let edu = text(Workload::Synthetic, Driver::Edu, "hardirq");
        assert!(edu.contains("irqmod_edu.ko irq_policy=hardirq"));
        assert!(edu.contains("--ms 4000 --nap-us 1000 --cost-ns 14000 --gap-ns 24000"));
    }

    #[test]
    fn scripts_are_valid_shell() {
        let all = Workload::ALL.map(|w| w.drivers().iter().map(move |d| (w, *d)));
        for (workload, driver) in all.into_iter().flatten() {
            let script = text(workload, driver, "hardirq");
            let status = std::process::Command::new("sh")
                .args(["-n", "-c", &script])
                .status();
            assert!(status.unwrap().success(), "{script}");
        }
    }

    #[test]
    fn loads_are_as_described() {
        let dense = text(Workload::Dense, Driver::Rust, "hardirq");
        assert!(dense.contains("--depth 496 --block 512 /dev/nvme0n1@1 /dev/nvme0n1@2 "));
        assert!(dense.contains("/dev/nvme3n1@8\n"));
        let many = text(Workload::Hot24, Driver::Edu, "hardirq");
        assert!(
            many.contains("--gap-ns 240000 --cpus 1,2,") && many.contains(",11,12 --depth 64\n")
        );
        let hog = text(Workload::Hog, Driver::Rust, "hardirq");
        assert_eq!(
            hog.replace("--depth 128 --hog", "--nap-us 1000 --depth 128"),
            text(Workload::Storm, Driver::Rust, "hardirq")
        );
    }

    #[test]
    fn all_vectors_land_on_cpu_0() {
        assert_eq!(
            cmdline(Workload::Storm, false),
            "isolcpus=managed_irq,1-4 swiotlb=force"
        );
        assert_eq!(
            cmdline(Workload::Qd1, true),
            "isolcpus=managed_irq,1 tsc=noirqtime"
        );
        assert_eq!(cmdline(Workload::Synthetic, true), "irqaffinity=0");
    }

    #[test]
    fn the_report_is_the_last_document() {
        let report = Report::default();
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(read(&format!("noise\n{json}\n")).unwrap(), report);
        assert!(read("noise").is_err());
        assert!(read("{}").is_err());
    }

    #[test]
    fn names_are_folders() {
        let key = key(Workload::Storm, Driver::Rust, "resched:budget=64");
        assert_eq!(name(&key), "run-storm-rust-resched-budget-64");
    }
}
