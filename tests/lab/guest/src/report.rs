// SPDX-License-Identifier: GPL-2.0

//! The JSON document that the agent prints and the lab reads.

use serde::{
    Deserialize,
    Serialize, //
};
use std::collections::BTreeMap;

/// Everything one invocation found out. Parts that were not asked for are absent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Release of the running kernel.
    pub kernel: String,
    /// Length of the measured window in nanoseconds of guest time.
    pub window_ns: u64,
    /// The storage load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load: Option<Load>,
    /// The synthetic load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub edu: Option<Edu>,
    /// The ordinary task on the watched CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub canary: Option<Canary>,
    /// The watched CPU as its kernel accounts for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sample: Option<Sample>,
}

/// Latencies in nanoseconds, from an HDR histogram with three significant digits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Latency {
    /// How many were recorded.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// What the storage load did.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Load {
    /// Completions reaped inside the window, over all disks.
    pub completions: u64,
    /// Completions that carried an error.
    pub errors: u64,
    /// Requests still outstanding when the drain after the window gave up.
    pub lost: u64,
    /// Latency over all disks, of every request submitted inside the window.
    pub latency: Latency,
    /// Completions of each disk, in the order given.
    pub per_disk: Vec<u64>,
}

/// What the synthetic load did.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Edu {
    /// Completions collected inside the window, over all devices.
    pub completions: u64,
    /// Time from post to completion, where the module reports it.
    pub latency: Option<Latency>,
    /// Completions of each device.
    pub per_device: Vec<u64>,
    /// Every number that the module reported, by name, summed over the devices.
    pub counters: BTreeMap<String, u64>,
}

/// One stretch during which the canary did not run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Gap {
    /// Start, in nanoseconds after the start of the window (negative: before it).
    pub at_ns: i64,
    /// Length in nanoseconds.
    pub len_ns: u64,
}

/// What the canary saw.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Canary {
    /// The CPU it is pinned to.
    pub cpu: usize,
    /// How many stamps it made.
    pub stamps: u64,
    /// The longest gap that touches the window.
    pub max: Gap,
    /// All gaps above the threshold, oldest first.
    pub gaps: Vec<Gap>,
    /// Gaps above the threshold that did not fit into `gaps` (the shortest are left out).
    pub dropped: u64,
}

/// Time of one CPU by kind, in ticks of `USER_HZ` (10 ms), or in shares of one.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Shares {
    /// Hard interrupts.
    pub hardirq: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// User and kernel time of tasks.
    pub task: f64,
    /// Idle.
    pub idle: f64,
}

/// One step of the time line.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// End of the step, in nanoseconds after the start of the window.
    pub at_ns: i64,
    /// Ticks since boot.
    pub ticks: Shares,
}

/// What the sampler read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// The watched CPU.
    pub cpu: usize,
    /// Its ticks over the window.
    pub ticks: Shares,
    /// Cumulative ticks along the window.
    pub steps: Vec<Step>,
    /// Interrupts delivered in the window by name of the action, all CPUs.
    pub irqs: BTreeMap<String, u64>,
    /// The same, the watched CPU only.
    pub irqs_on_cpu: BTreeMap<String, u64>,
    /// Soft interrupts in the window on the watched CPU by name.
    pub softirqs: BTreeMap<String, u64>,
    /// Context switches of the whole machine in the window.
    pub switches: u64,
    /// Counters of irqmod (debugfs) over the window, by vector and counter.
    pub irqmod: BTreeMap<String, BTreeMap<String, u64>>,
}
