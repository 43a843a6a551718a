// SPDX-License-Identifier: GPL-2.0

//! The synthetic load: drives the producers of the edu example module through debugfs.
//!
//! One write to `run` *is* the run: the module produces in the writer's context, so the writer is
//! pinned to a CPU of its own first.

use crate::{
    gate::Gate,
    proc,
    report::{
        Edu,
        Latency, //
    },
    sys, //
};
use std::{
    collections::BTreeMap,
    fs,
    io,
    path::{
        Path,
        PathBuf, //
    },
    sync::Arc,
    thread::JoinHandle, //
};

/// Where debugfs is mounted.
pub const DEBUGFS: &str = "/sys/kernel/debug";

/// A producer at work; it ends with the numbers that the module reported.
pub type Producer = JoinHandle<io::Result<BTreeMap<String, u64>>>;

/// One device and the CPU of its producer.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The device's folder in debugfs.
    pub dir: PathBuf,
    /// The CPU that produces.
    pub cpu: usize,
}

/// The folders of all bound devices, sorted, with producers on `cpus` in turn.
pub fn find(root: &Path, cpus: &[usize]) -> io::Result<Vec<Target>> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(root)?
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("irqmod-edu-"))
        .map(|e| e.path())
        .collect();
    dirs.sort();
    if dirs.is_empty() {
        return Err(io::Error::other("no edu device is bound to irqmod_edu"));
    }
    if cpus.is_empty() {
        return Err(io::Error::other("no CPU to produce on"));
    }
    Ok(dirs
        .into_iter()
        .zip(cpus.iter().copied().cycle())
        .map(|(dir, cpu)| Target { dir, cpu })
        .collect())
}

/// What each producer does.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What collecting one completion costs.
    pub cost_ns: u64,
    /// Time between two completions.
    pub gap_ns: u64,
    /// Completions that may be outstanding; as many as the ring has, if it isn't said.
    pub depth: Option<u32>,
}

impl Shape {
    /// The line that the module takes.
    fn order(&self, ms: u64) -> String {
        let Self {
            cost_ns, gap_ns, ..
        } = self;
        let depth = self.depth.map(|depth| format!(" depth={depth}"));
        let depth = depth.unwrap_or_default();
        format!("ms={ms} gap_ns={gap_ns} cost_ns={cost_ns}{depth}\n")
    }
}

/// Starts a producer per device, pinned, that arrives at the gate and produces.
pub fn start(targets: &[Target], shape: Shape, gate: &Arc<Gate>) -> io::Result<Vec<Producer>> {
    targets
        .iter()
        .enumerate()
        .map(|(i, target)| {
            let (target, gate) = (target.clone(), gate.clone());
            std::thread::Builder::new()
                .name(format!("edu{i}"))
                .spawn(move || {
                    let pinned = sys::pin(target.cpu);
                    let window = gate.arrive();
                    pinned?;
                    let ms = (window.end - window.start) / 1_000_000;
                    produce(&target.dir, &shape.order(ms)).map_err(|e| {
                        io::Error::new(e.kind(), format!("{}: {e}", target.dir.display()))
                    })
                })
        })
        .collect()
}

fn produce(dir: &Path, order: &str) -> io::Result<BTreeMap<String, u64>> {
    fs::write(dir.join("run"), order)?;
    Ok(proc::counters(&fs::read_to_string(dir.join("result"))?))
}

/// Waits for the producers and sums up.
pub fn finish(producers: Vec<Producer>) -> io::Result<Edu> {
    let mut results = Vec::new();
    for producer in producers {
        let result = producer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        results.push(result);
    }
    Ok(summary(&results))
}

fn summary(results: &[BTreeMap<String, u64>]) -> Edu {
    let mut edu = Edu::default();
    for result in results {
        let consumed = result.get("consumed").copied().unwrap_or(0);
        edu.per_device.push(consumed);
        edu.completions += consumed;
        for (name, value) in result {
            let sum = edu.counters.entry(name.clone()).or_insert(0);
            // What is the worst of one device isn't a sum.
            *sum = match name.starts_with("lat_") || name.starts_with("max_") {
                true => (*sum).max(*value),
                false => *sum + value,
            };
        }
    }
    edu.latency = latency(results);
    edu
}

/// The mean over all completions; of the percentiles the worst device's.
fn latency(results: &[BTreeMap<String, u64>]) -> Option<Latency> {
    let total: u64 = results.iter().filter_map(|r| r.get("consumed")).sum();
    let worst = |name: &str| results.iter().filter_map(|r| r.get(name)).max().copied();
    let weighted: f64 = results
        .iter()
        .filter_map(|r| Some(*r.get("lat_mean_ns")? as f64 * *r.get("consumed")? as f64))
        .sum();
    let max_ns = worst("lat_max_ns")?;
    // The module reports upper bounds of buckets, which may lie above everything it has seen.
    let bound = |name: &str| Some(worst(name)?.min(max_ns));
    Some(Latency {
        count: total,
        mean_ns: weighted / total.max(1) as f64,
        p50_ns: bound("lat_p50_ns")?,
        p99_ns: bound("lat_p99_ns")?,
        p999_ns: bound("lat_p999_ns")?,
        max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(consumed: u64, lat: u64) -> BTreeMap<String, u64> {
        proc::counters(&format!(
            "consumed {consumed}\nlost 1\nmax_batch {lat}\nlat_mean_ns {lat}\nlat_p50_ns {lat}\n\
             lat_p99_ns {lat}\nlat_p999_ns {lat}\nlat_max_ns {lat}\n"
        ))
    }

    #[test]
    fn a_depth_is_only_said_if_there_is_one() {
        let mut shape = Shape {
            cost_ns: 1,
            gap_ns: 2,
            depth: None,
        };
        assert_eq!(shape.order(3), "ms=3 gap_ns=2 cost_ns=1\n");
        shape.depth = Some(4);
        assert_eq!(shape.order(3), "ms=3 gap_ns=2 cost_ns=1 depth=4\n");
    }

    #[test]
    fn devices_are_summed_and_the_worst_percentile_is_kept() {
        let edu = summary(&[result(100, 10), result(300, 50)]);
        assert_eq!(edu.completions, 400);
        assert_eq!(edu.per_device, [100, 300]);
        assert_eq!(edu.counters["lost"], 2);
        assert_eq!(edu.counters["max_batch"], 50);
        let latency = edu.latency.unwrap();
        assert_eq!(latency.mean_ns, 40.0);
        assert_eq!(latency.p99_ns, 50);
    }

    #[test]
    fn a_percentile_is_not_above_the_largest() {
        let text =
            "consumed 5\nlat_mean_ns 3\nlat_p50_ns 4\nlat_p99_ns 8\nlat_p999_ns 8\nlat_max_ns 7";
        let latency = summary(&[proc::counters(text)]).latency.unwrap();
        assert_eq!((latency.p50_ns, latency.p99_ns, latency.max_ns), (4, 7, 7));
    }

    #[test]
    fn no_latency_is_none_rather_than_zero() {
        assert!(summary(&[proc::counters("consumed 5")]).latency.is_none());
    }

    #[test]
    fn devices_are_found_in_order() {
        let root = std::env::temp_dir().join(format!("guest-agent-edu-{}", std::process::id()));
        assert!(find(&root, &[1]).is_err());
        for name in ["irqmod-edu-b", "irqmod-edu-a", "irqmod-edu-c", "else"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let found = find(&root, &[1, 2]);
        let nothing = find(&root, &[]);
        fs::remove_dir_all(&root).unwrap();
        let found = found.unwrap();
        assert!(nothing.is_err());
        assert!(found[0].dir.ends_with("irqmod-edu-a"));
        assert_eq!(found.iter().map(|t| t.cpu).collect::<Vec<_>>(), [1, 2, 1]);
    }
}
