// SPDX-License-Identifier: GPL-2.0

//! What the kernel says about the watched CPU: shares, interrupts, counters of irqmod.

use crate::{
    gate::{
        Gate,
        Window, //
    },
    proc,
    report::{
        Sample,
        Shares,
        Step, //
    },
    sys, //
};
use std::{
    collections::BTreeMap,
    fs,
    io,
    path::Path,
    sync::Arc,
    thread::JoinHandle, //
};

/// Where irqmod publishes its counters.
const IRQMOD: &str = "/sys/kernel/debug/irqmod";

type ByCpu = BTreeMap<String, Vec<u64>>;

/// One reading of everything.
#[derive(Default)]
struct Reading {
    ticks: Shares,
    switches: u64,
    irqs: ByCpu,
    softirqs: ByCpu,
    irqmod: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Reading {
    fn take(cpu: usize) -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        Ok(Self {
            ticks: ticks(&stat, cpu)?,
            switches: proc::context_switches(&stat).unwrap_or(0),
            irqs: proc::interrupts(&fs::read_to_string("/proc/interrupts")?),
            softirqs: proc::softirqs(&fs::read_to_string("/proc/softirqs")?),
            irqmod: irqmod(Path::new(IRQMOD)),
        })
    }
}

fn ticks(stat: &str, cpu: usize) -> io::Result<Shares> {
    proc::cpu_ticks(stat, cpu)
        .ok_or_else(|| io::Error::other(format!("CPU {cpu} isn't in /proc/stat")))
}

/// The counters of each vector; empty where irqmod isn't in use.
fn irqmod(root: &Path) -> BTreeMap<String, BTreeMap<String, u64>> {
    let Ok(dir) = fs::read_dir(root) else {
        return BTreeMap::new();
    };
    dir.flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("stats")).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, proc::counters(&text)))
        })
        .collect()
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn by_name(before: &ByCpu, after: &ByCpu, of: impl Fn(&[u64]) -> u64) -> BTreeMap<String, u64> {
    let flat = |t: &ByCpu| t.iter().map(|(k, v)| (k.clone(), of(v))).collect();
    let mut out = proc::delta(&flat(before), &flat(after));
    out.retain(|_, v| *v > 0);
    out
}

fn difference(cpu: usize, before: &Reading, after: &Reading, steps: Vec<Step>) -> Sample {
    let here = |v: &[u64]| v.get(cpu).copied().unwrap_or(0);
    let none = BTreeMap::new();
    Sample {
        cpu,
        ticks: Shares {
            hardirq: after.ticks.hardirq - before.ticks.hardirq,
            softirq: after.ticks.softirq - before.ticks.softirq,
            task: after.ticks.task - before.ticks.task,
            idle: after.ticks.idle - before.ticks.idle,
        },
        steps,
        irqs: by_name(&before.irqs, &after.irqs, sum),
        irqs_on_cpu: by_name(&before.irqs, &after.irqs, here),
        softirqs: by_name(&before.softirqs, &after.softirqs, here),
        switches: after.switches.saturating_sub(before.switches),
        irqmod: after
            .irqmod
            .iter()
            .map(|(vector, counters)| {
                let old = before.irqmod.get(vector).unwrap_or(&none);
                (vector.clone(), proc::delta(old, counters))
            })
            .collect(),
    }
}

/// Samples `cpu` from `on`, another CPU, each `period_ns` of the window.
pub fn start(
    cpu: usize,
    on: usize,
    period_ns: u64,
    gate: &Arc<Gate>,
) -> io::Result<JoinHandle<io::Result<Sample>>> {
    let gate = gate.clone();
    std::thread::Builder::new()
        .name("sample".into())
        .spawn(move || {
            let pinned = sys::pin(on);
            let window = gate.arrive();
            pinned?;
            follow(cpu, period_ns, window)
        })
}

fn follow(cpu: usize, period_ns: u64, window: Window) -> io::Result<Sample> {
    let before = Reading::take(cpu)?;
    let mut steps = vec![Step {
        at_ns: 0,
        ticks: before.ticks,
    }];
    let mut next = window.start + period_ns;
    while next < window.end {
        sys::sleep_until(next);
        steps.push(step(cpu, window.start)?);
        next += period_ns;
    }
    sys::sleep_until(window.end);
    let after = Reading::take(cpu)?;
    steps.push(step(cpu, window.start)?);
    Ok(difference(cpu, &before, &after, steps))
}

fn step(cpu: usize, start: u64) -> io::Result<Step> {
    let ticks = ticks(&fs::read_to_string("/proc/stat")?, cpu)?;
    Ok(Step {
        at_ns: sys::now() as i64 - start as i64,
        ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(irqs: u64, deferrals: u64, irq_ticks: f64) -> Reading {
        Reading {
            ticks: Shares {
                hardirq: irq_ticks,
                ..Shares::default()
            },
            switches: irqs,
            irqs: [("nvme0q1".to_owned(), vec![irqs, 3])].into(),
            softirqs: [("IRQ_POLL".to_owned(), vec![irqs, 9])].into(),
            irqmod: [(
                "nvme0q1".to_owned(),
                [("deferrals".to_owned(), deferrals)].into(),
            )]
            .into(),
        }
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let s = difference(0, &reading(10, 1, 5.0), &reading(40, 7, 9.0), Vec::new());
        assert_eq!(s.irqs["nvme0q1"], 30);
        assert_eq!(s.irqs_on_cpu["nvme0q1"], 30);
        assert_eq!(s.softirqs["IRQ_POLL"], 30);
        assert_eq!(s.switches, 30);
        assert_eq!(s.ticks.hardirq, 4.0);
        assert_eq!(s.irqmod["nvme0q1"]["deferrals"], 6);
    }

    #[test]
    fn counters_are_read_from_a_tree_and_a_missing_one_is_empty() {
        let root = std::env::temp_dir().join(format!("guest-agent-{}", std::process::id()));
        let vector = root.join("nvme0q1");
        fs::create_dir_all(&vector).unwrap();
        fs::write(vector.join("stats"), "polls 4\ndeferrals 2\n").unwrap();
        let read = irqmod(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(read["nvme0q1"]["polls"], 4);
        assert!(irqmod(&root).is_empty());
    }

    #[test]
    fn a_missing_cpu_is_named() {
        assert!(ticks("cpu0 1 2 3 4 5 6 7", 9)
            .unwrap_err()
            .to_string()
            .contains("CPU 9"));
    }
}
