// SPDX-License-Identifier: GPL-2.0

//! What is measured: rows, their order and their parameters.

use super::{
    args::RunArgs,
    workload::{
        Driver,
        Workload, //
    },
};
use std::fmt;

/// What makes a row.
#[derive(Clone, Debug, Eq, PartialEq)]
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

/// What one completion of the synthetic load costs, if nothing else is said.
pub(crate) const COST_NS: u64 = 14_000;
/// Time between two completions of one of its devices, if nothing else is said.
pub(crate) const GAP_NS: u64 = 24_000;

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

    /// One load of `ms` milliseconds, once with each of some policies of ours.
    pub(crate) fn of(workload: Workload, policies: &[&str], ms: u64) -> Self {
        let key = |policy: &&str| Key {
            workload,
            driver: workload.ours(),
            policy: (*policy).to_owned(),
        };
        Self {
            rows: policies.iter().map(key).collect(),
            repeats: 1,
            aa: false,
            qd1_ms: ms,
            storm_ms: ms,
            cost_ns: COST_NS,
            gap_ns: GAP_NS,
        }
    }

    /// Length of a load in milliseconds.
    pub(crate) fn ms(&self, workload: Workload) -> u64 {
        match workload {
            Workload::Qd1 => self.qd1_ms,
            _ => self.storm_ms,
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
    let mut rows: Vec<Key> = Vec::new();
    for workload in Workload::ALL {
        let policies = policies(args, workload);
        for &driver in workload.drivers() {
            for policy in policies.iter().filter(|p| driver.offers(p)) {
                let key = Key {
                    workload,
                    driver,
                    policy: policy.clone(),
                };
                let wanted = args.rows.as_ref();
                if wanted.is_none_or(|t| key.to_string().contains(t)) && !rows.contains(&key) {
                    rows.push(key);
                }
            }
        }
    }
    rows
}

/// The policies of a load's rows; none if the load is not wanted.
fn policies(args: &RunArgs, workload: Workload) -> Vec<String> {
    let named = args.workloads().any(|w| w == workload);
    let open = args.workloads().next().is_none() && (!args.quick || workload.is_quick());
    if !named && !open {
        return Vec::new();
    }
    let chosen: Vec<String> = args.policies().map(str::to_owned).collect();
    match chosen.is_empty() {
        true => workload
            .policies(args.quick)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        false => chosen,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn args() -> RunArgs {
        RunArgs {
            out: None,
            quick: false,
            workload: Vec::new(),
            policy: Vec::new(),
            rows: None,
            repeats: None,
            seconds: None,
            cost_ns: COST_NS,
            gap_ns: GAP_NS,
            aa: false,
            from: crate::cli::From::default(),
        }
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.rows.iter().map(Key::to_string).collect()
    }

    fn only(words: &str) -> Vec<crate::run::args::Policies> {
        vec![crate::run::args::policies(words).unwrap()]
    }

    #[test]
    fn a_quick_run_compares_the_basic_policies() {
        let mut a = args();
        a.quick = true;
        let names = names(&Plan::new(&a));
        let basic = names.iter().filter(|name| !name.ends_with(" fair"));
        assert!(basic.eq([
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
        .iter()));
        // Nearly twenty seconds each.
        assert!(names.len() <= 16, "{names:?}");
    }

    #[test]
    fn a_full_run_has_all_loads_and_all_policies() {
        let plan = Plan::new(&args());
        assert_eq!((plan.repeats, plan.qd1_ms, plan.storm_ms), (2, 2000, 4000));
        let names = names(&plan);
        for workload in Workload::ALL {
            let start = format!("{workload} ");
            assert!(names.iter().any(|name| name.starts_with(&start)));
        }
        for policy in irqmod::policy::Config::NAMES {
            for workload in ["qd1", "storm"] {
                assert!(names.contains(&format!("{workload} rust {policy}")));
            }
        }
    }

    #[test]
    fn a_load_that_is_named_is_not_left_out_of_a_quick_run() {
        let mut a = args();
        a.quick = true;
        a.workload = vec![Workload::Hot24];
        assert!(names(&Plan::new(&a)).contains(&"hot24 edu hardirq".into()));
    }

    #[test]
    fn choices_narrow_it_down() {
        let mut a = args();
        a.workload = vec![Workload::Storm];
        a.policy = only("resched:budget=64,hardirq,hardirq");
        assert_eq!(
            names(&Plan::new(&a)),
            [
                "storm c hardirq",
                "storm rust resched:budget=64",
                "storm rust hardirq"
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
        a.workload = vec![Workload::Synthetic];
        a.policy = only("hardirq,resched,threaded");
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
