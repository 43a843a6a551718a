// SPDX-License-Identifier: GPL-2.0

//! What is measured: rows, their order and their parameters.

use super::args::RunArgs;
use clap::ValueEnum;
use serde::{
    Deserialize,
    Serialize, //
};
use std::fmt;

/// Names of the policies, in the order of the rows.
pub(crate) const POLICIES: [&str; 3] = ["hardirq", "resched", "threaded"];

/// A kind of load.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// One disk, one request at a time.
    Qd1,
    /// Four disks whose vectors all land on CPU 0, 128 requests each.
    Storm,
    /// Four edu devices, each below 100 % of CPU 0, their sum above.
    Synthetic,
}

/// Whose driver.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Driver {
    /// The kernel's own, in C.
    C,
    /// Ours, on irqmod.
    Rust,
    /// The edu example, on irqmod.
    Edu,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Workload::Qd1 => "qd1",
            Workload::Storm => "storm",
            Workload::Synthetic => "synthetic",
        })
    }
}

impl Workload {
    /// One sentence for a reader who sees the name for the first time.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Workload::Qd1 => {
                "One disk, 4 KiB random reads, one at a time: what a policy costs when nothing is wrong."
            }
            Workload::Storm => {
                "Four disks, 4 KiB random reads, 128 outstanding on each, submitted by CPUs 1-4; \
                 every completion interrupt lands on CPU 0 and every read is copied there (swiotlb)."
            }
            Workload::Synthetic => {
                "Four edu devices, each fed from a CPU of its own; any one of them leaves CPU 0 idle \
                 time, together they ask for more than it has."
            }
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Driver::C => "c",
            Driver::Rust => "rust",
            Driver::Edu => "edu",
        })
    }
}

/// What makes a row.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    /// The load.
    pub(crate) workload: Workload,
    /// The driver.
    pub(crate) driver: Driver,
    /// The policy, as the driver's parameter has it.
    pub(crate) policy: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.workload, self.driver, self.policy)
    }
}

/// Everything that is going to happen.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The rows, in the order of the table.
    pub(crate) rows: Vec<Key>,
    /// How often each is measured.
    pub(crate) repeats: u32,
    /// Repeats follow each other directly.
    pub(crate) aa: bool,
    /// Length of the load of `qd1`, in milliseconds of guest time.
    pub(crate) qd1_ms: u64,
    /// Length of the other loads.
    pub(crate) storm_ms: u64,
    /// Synthetic: cost of one completion.
    pub(crate) cost_ns: u64,
    /// Synthetic: time between completions of one device.
    pub(crate) gap_ns: u64,
}

impl Plan {
    /// What the words ask for.
    pub(crate) fn new(args: &RunArgs) -> Self {
        let (qd1, storm) = match args.quick {
            true => (1.0, 2.0),
            false => (2.0, 4.0),
        };
        let ms = |default: f64| (args.seconds.unwrap_or(default) * 1000.0).round() as u64;
        let repeats = match (args.aa, args.quick) {
            (true, _) | (_, false) => 2,
            (_, true) => 1,
        };
        Self {
            rows: rows(args),
            repeats: args.repeats.unwrap_or(repeats),
            aa: args.aa,
            qd1_ms: ms(qd1),
            storm_ms: ms(storm),
            cost_ns: args.cost_ns,
            gap_ns: args.gap_ns,
        }
    }

    /// Length of a load in milliseconds.
    pub(crate) fn ms(&self, workload: Workload) -> u64 {
        match workload {
            Workload::Qd1 => self.qd1_ms,
            Workload::Storm | Workload::Synthetic => self.storm_ms,
        }
    }

    /// The measurements in their order, as indices of rows and repeats: there and back again
    /// (ABBA), so that a drift of the host meets every row alike.
    pub(crate) fn order(&self) -> Vec<(usize, u32)> {
        let count = self.rows.len();
        if self.aa {
            let row = |i| (0..self.repeats).map(move |repeat| (i, repeat));
            return (0..count).flat_map(row).collect();
        }
        (0..self.repeats)
            .flat_map(|repeat| {
                (0..count).map(move |i| match repeat % 2 {
                    0 => (i, repeat),
                    _ => (count - 1 - i, repeat),
                })
            })
            .collect()
    }
}

fn rows(args: &RunArgs) -> Vec<Key> {
    let policies = match args.policy.is_empty() {
        true => POLICIES.map(str::to_owned).to_vec(),
        false => args.policy.clone(),
    };
    let mut rows = Vec::new();
    for workload in [Workload::Qd1, Workload::Storm, Workload::Synthetic] {
        if !args.workload.is_empty() && !args.workload.contains(&workload) {
            continue;
        }
        let drivers: &[Driver] = match workload {
            Workload::Synthetic => &[Driver::Edu],
            Workload::Qd1 | Workload::Storm => &[Driver::C, Driver::Rust],
        };
        for &driver in drivers {
            for policy in policies.iter().filter(|p| offers(driver, p)) {
                rows.push(Key {
                    workload,
                    driver,
                    policy: policy.clone(),
                });
            }
        }
    }
    let wanted = |key: &Key| {
        args.rows
            .as_ref()
            .is_none_or(|t| key.to_string().contains(t))
    };
    rows.retain(wanted);
    rows.sort();
    rows.dedup();
    rows
}

/// The C driver has its handler and its IRQ thread, nothing else.
fn offers(driver: Driver, policy: &str) -> bool {
    driver != Driver::C || policy == "hardirq" || policy == "threaded"
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn args() -> RunArgs {
        RunArgs {
            out: "out".into(),
            quick: false,
            workload: Vec::new(),
            policy: Vec::new(),
            rows: None,
            repeats: None,
            seconds: None,
            cost_ns: 14_000,
            gap_ns: 24_000,
            aa: false,
            from: crate::cli::From::default(),
        }
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.rows.iter().map(Key::to_string).collect()
    }

    #[test]
    fn all_rows() {
        let plan = Plan::new(&args());
        assert_eq!(
            names(&plan),
            [
                "qd1 c hardirq",
                "qd1 c threaded",
                "qd1 rust hardirq",
                "qd1 rust resched",
                "qd1 rust threaded",
                "storm c hardirq",
                "storm c threaded",
                "storm rust hardirq",
                "storm rust resched",
                "storm rust threaded",
                "synthetic edu hardirq",
                "synthetic edu resched",
                "synthetic edu threaded",
            ]
        );
        assert_eq!((plan.repeats, plan.qd1_ms, plan.storm_ms), (2, 2000, 4000));
    }

    #[test]
    fn choices_narrow_it_down() {
        let mut a = args();
        a.workload = vec![Workload::Storm];
        a.policy = vec!["resched:budget=64".into(), "hardirq".into()];
        assert_eq!(
            names(&Plan::new(&a)),
            [
                "storm c hardirq",
                "storm rust hardirq",
                "storm rust resched:budget=64"
            ]
        );
        a.rows = Some("rust res".into());
        assert_eq!(Plan::new(&a).rows.len(), 1);
        a.rows = Some("nothing".into());
        assert!(Plan::new(&a).rows.is_empty());
    }

    #[test]
    fn order_is_there_and_back_again() {
        let mut a = args();
        a.rows = Some("synthetic".into());
        let order = Plan::new(&a).order();
        assert_eq!(order, [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1)]);
        a.aa = true;
        let order = Plan::new(&a).order();
        assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    }

    #[test]
    fn quick_is_one_repeat_and_seconds_win() {
        let mut a = args();
        a.quick = true;
        assert_eq!(Plan::new(&a).repeats, 1);
        assert_eq!(Plan::new(&a).ms(Workload::Qd1), 1000);
        a.seconds = Some(0.25);
        assert_eq!(Plan::new(&a).ms(Workload::Qd1), 250);
        assert_eq!(Plan::new(&a).ms(Workload::Synthetic), 250);
        a.repeats = Some(3);
        assert_eq!(Plan::new(&a).repeats, 3);
    }
}
