// SPDX-License-Identifier: GPL-2.0

//! Every machine under every policy, and what is claimed of that.

use crate::{
    metric::{
        Kind,
        Metric,
        Row, //
    },
    promise,
    run::{
        run,
        Driver, //
    },
    Ns,
    Options,
    Report,
    Scenario, //
};
use serde::{
    Deserialize,
    Serialize, //
};
use std::sync::{
    atomic::{
        AtomicUsize,
        Ordering, //
    },
    Mutex, //
};

/// The policies of the table: all of irqmod's, with their defaults, and those of the field that
/// are no policy of irqmod.
pub const POLICIES: &[&str] = &[
    "hardirq",
    "resched",
    "threaded",
    "irqpoll",
    "overflow",
    "inflight",
    "timer:delay_us=100,push=1",
    "timer:delay_us=100,push=0",
    "workqueue",
    "rate",
    "flood",
    "fair",
    "stock-threaded",
    "stock-timer:delay_us=10,push=1",
];

/// The one of which something is claimed.
const CLAIMANT: &str = "fair";
/// It reaches this part of the best safe policy's IOPS on each machine.
pub const CLAIM: f64 = 0.97;
/// A task that waits for more than this share of the load is starved.
const STARVED: f64 = 0.8;
/// The watchdog's threshold in the table, in place of the usual 10 s. Unit: seconds.
const WATCHDOG_S: u32 = 1;
/// Long enough for it: it looks every 0.4 s and reports what is longer than two of its units.
const WATCHED: Ns = 4_200_000_000;
/// Time without load before that: it has looked at least once.
const IDLE: Ns = 600_000_000;

/// What became of the machine, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Tasks ran.
    Pass,
    /// A task waited for nearly all of the load, and no watchdog noticed.
    Stall,
    /// A watchdog reported.
    SoftLockup,
    /// A rule was broken: a bug, of the model or of irqmod.
    Broken,
}

impl Status {
    /// As in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Stall => "stall",
            Self::SoftLockup => "soft lockup",
            Self::Broken => "BROKEN",
        }
    }

    /// Of a run.
    pub fn of(report: &Report) -> Self {
        let starved = report.time_ns as f64 * STARVED;
        if !report.violations.is_empty() {
            Self::Broken
        } else if report.locked_cpus() != 0 {
            Self::SoftLockup
        } else if report.totals.wait_max_ns as f64 > starved {
            Self::Stall
        } else {
            Self::Pass
        }
    }
}

/// One machine under one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The machine.
    pub machine: String,
    /// The policy, as it was asked for.
    pub policy: String,
    /// What became of it.
    pub status: Status,
    /// The longest wait of a task that `fair` promises on the machine. Unit: nanoseconds.
    pub promised_ns: Option<Ns>,
    /// The run.
    pub report: Report,
}

impl Cell {
    /// Whether tasks ran, and none waited for longer than `fair` promises.
    pub fn is_safe(&self) -> bool {
        let waited = self.report.totals.wait_max_ns;
        self.status == Status::Pass && self.promised_ns.is_none_or(|most| waited <= most)
    }

    /// Its status as in tables.
    pub fn text(&self) -> &'static str {
        if self.status == Status::Pass && !self.is_safe() {
            "late"
        } else {
            self.status.text()
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of everything that is random.
    pub seed: u64,
    /// Time that is measured. Unit: nanoseconds.
    pub time_ns: Ns,
    /// Threads that simulate.
    pub threads: usize,
}

impl Plan {
    fn cell(&self, scenario: &Scenario, policy: &str) -> Result<Cell, String> {
        let options = Options {
            seed: self.seed,
            time_ns: self.time_ns,
            warm_ns: self.time_ns / 5,
            ..Options::new(Driver::parse(policy)?)
        };
        let mut report = run(&scenario.machine, &scenario.load, &options);
        if Status::of(&report) == Status::Stall {
            // Would a watchdog have noticed?
            let mut machine = scenario.machine.clone();
            machine.kernel.watchdog_s = WATCHDOG_S;
            let options = Options {
                time_ns: WATCHED.max(self.time_ns),
                idle_ns: IDLE,
                warm_ns: 0,
                ..options
            };
            report = run(&machine, &scenario.load, &options);
        }
        Ok(Cell {
            machine: scenario.machine.name.clone(),
            policy: policy.into(),
            status: Status::of(&report),
            promised_ns: promise::longest_wait(&scenario.machine, &scenario.load),
            report,
        })
    }

    /// Runs all of `scenarios` under all of `policies`; `progress` is called after each run.
    ///
    /// # Errors
    ///
    /// What is wrong with a policy's text.
    pub fn run(
        &self,
        scenarios: &[Scenario],
        policies: &[String],
        progress: impl Fn(&str) + Sync,
    ) -> Result<Vec<Cell>, String> {
        let pairs: Vec<(&Scenario, &str)> = scenarios
            .iter()
            .flat_map(|scenario| {
                policies
                    .iter()
                    .map(move |policy| (scenario, policy.as_str()))
            })
            .collect();
        spread(self.threads, pairs.len(), |place| {
            let (scenario, policy) = pairs[place];
            let cell = self.cell(scenario, policy);
            progress(&format!("{} {policy}", scenario.machine.name));
            cell
        })
        .into_iter()
        .collect()
    }
}

/// The policies of a list, with commas between them and between the parameters of each.
pub fn policies(list: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for part in list.split(',') {
        match policies.last_mut() {
            Some(last) if part.contains('=') && !part.contains(':') && last.contains(':') => {
                last.push(',');
                last.push_str(part);
            }
            _ => policies.push(part.into()),
        }
    }
    policies
}

/// `count` results of `make`, in order, made by `threads` threads that take the next one each.
pub fn spread<T: Send>(threads: usize, count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= count {
                    break;
                }
                let result = make(place);
                if let Ok(mut made) = made.lock() {
                    made.push((place, result));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, result)| result).collect()
}

/// What is claimed of one machine, and whether it is so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The machine.
    pub machine: String,
    /// IOPS of `fair` as a part of those of the best other policy that is safe; none: there is no other.
    pub part: Option<f64>,
    /// That policy.
    pub best: Option<String>,
    /// As `part`, among the policies that complete on the CPU of the interrupt.
    pub near_part: Option<f64>,
    /// The best of these.
    pub near: Option<String>,
    /// Whether `fair` is safe, and reaches [`CLAIM`].
    pub ok: bool,
}

/// The claims on all machines of which `fair` is in `cells`.
pub fn claims(cells: &[Cell]) -> Vec<Claim> {
    let claimants = cells.iter().filter(|cell| cell.policy == CLAIMANT);
    claimants.map(|cell| claim(cell, cells)).collect()
}

fn claim(fair: &Cell, cells: &[Cell]) -> Claim {
    let best = |allowed: fn(&str) -> bool| {
        let rivals = cells
            .iter()
            .filter(|cell| cell.machine == fair.machine && cell.policy != CLAIMANT)
            .filter(|cell| cell.is_safe() && allowed(&cell.policy));
        rivals.max_by_key(|cell| cell.report.iops)
    };
    let part = |best: &Cell| fair.report.iops as f64 / best.report.iops.max(1) as f64;
    let (all, near) = (best(|_| true), best(|policy| !is_elsewhere(policy)));
    Claim {
        machine: fair.machine.clone(),
        part: all.map(part),
        best: all.map(|best| best.policy.clone()),
        near_part: near.map(part),
        near: near.map(|best| best.policy.clone()),
        ok: fair.is_safe() && all.is_none_or(|best| part(best) >= CLAIM),
    }
}

/// Whether a policy completes on any CPU that is free.
fn is_elsewhere(policy: &str) -> bool {
    let name = policy.split(':').next().unwrap_or_default();
    ["workqueue", "flood"].contains(&name)
}

/// The rows of `cells`: what was published beside the model, what is claimed, and predictions.
pub fn rows(scenarios: &[Scenario], cells: &[Cell]) -> Vec<Row> {
    let mut rows = Vec::new();
    for cell in cells {
        let name = format!("{} {}", cell.machine, cell.policy);
        let known = scenarios
            .iter()
            .find(|scenario| scenario.machine.name == cell.machine);
        let predicted = Metric::USUAL.iter().filter(|metric| {
            known.is_none_or(|known| {
                known.published.iter().all(|published| {
                    (published.policy != cell.policy || published.against.is_some())
                        || published.metric != **metric
                })
            })
        });
        rows.extend(
            predicted
                .map(|metric| Row::prediction(&name, metric.name(), Some(metric.of(&cell.report)))),
        );
    }
    rows.extend(
        scenarios
            .iter()
            .flat_map(|scenario| compared(scenario, cells)),
    );
    rows.extend(claims(cells).iter().flat_map(claim_rows));
    rows
}

/// What was published of a machine; rows of policies that were not run are left out.
fn compared(scenario: &Scenario, cells: &[Cell]) -> Vec<Row> {
    let value = |policy: &str, metric: Metric| {
        let cell = cells
            .iter()
            .find(|cell| cell.machine == scenario.machine.name && cell.policy == policy)?;
        Some(metric.of(&cell.report))
    };
    let row = |published: &crate::scenario::Published| {
        let (metric, name) = (published.metric, scenario.machine.name.as_str());
        let model = value(&published.policy, metric)?;
        let (row, label, model) = match &published.against {
            None => (
                format!("{name} {}", published.policy),
                metric.name().to_string(),
                model,
            ),
            Some(against) => (
                format!("{name} {}", published.policy),
                format!("{}, % of {against}'s", metric.name()),
                100.0 * model / value(against, metric)?,
            ),
        };
        let (value, kind) = (published.value, published.kind);
        Some(Row::compared(&row, &label, value, Some(model), kind, None))
    };
    scenario.published.iter().filter_map(row).collect()
}

fn claim_rows(claim: &Claim) -> [Row; 2] {
    let name = format!("{} {CLAIMANT}", claim.machine);
    let near = "IOPS, part of the best other safe policy's that stays on the CPU";
    [
        Row {
            ok: Some(claim.ok),
            ..Row::prediction(
                &name,
                "IOPS, part of the best other safe policy's",
                claim.part,
            )
        },
        Row::prediction(&name, near, claim.near_part),
    ]
}

impl Kind {
    /// As in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::HeldOut => "held out",
            Self::Prediction => "prediction",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(policies: &[&str]) -> Vec<Cell> {
        let plan = Plan {
            seed: 1,
            time_ns: 20_000_000,
            threads: 2,
        };
        let policies: Vec<String> = policies.iter().map(|policy| (*policy).into()).collect();
        let small = Scenario::find("small").expect("small");
        plan.run(&[small], &policies, |_| ()).expect("policies")
    }

    #[test]
    fn claim_is_about_the_best_safe_policy() {
        let mut cells = cells(&["hardirq", "threaded", "fair"]);
        assert_eq!(cells[0].status, Status::Pass);
        cells[0].report.iops = 1_000;
        cells[1].report.iops = 900;
        for (iops, ok) in [(969, false), (970, true), (2_000, true)] {
            cells[2].report.iops = iops;
            let claims = claims(&cells);
            assert_eq!(claims[0].ok, ok, "{iops}");
            assert_eq!(claims[0].best.as_deref(), Some("hardirq"));
        }
        // Who works on other CPUs is one, but is told apart.
        cells[1].policy = "workqueue".into();
        cells[1].report.iops = 4_000;
        let claim = claims(&cells).remove(0);
        assert!(!claim.ok);
        assert_eq!((claim.part, claim.near_part), (Some(0.5), Some(2.0)));
        assert_eq!(claim.near.as_deref(), Some("hardirq"));
        cells[1].report.iops = 900;
        // Who locks up is no rival, whatever the throughput.
        cells[0].status = Status::SoftLockup;
        cells[2].report.iops = 890;
        assert!(claims(&cells)[0].ok);
        // And who starves its tasks has no claim.
        cells[2].status = Status::Stall;
        assert!(!claims(&cells)[0].ok);
        cells[2].status = Status::Pass;
        // Nor is who lets them wait for longer than is promised.
        cells[1].report.iops = 4_000;
        assert!(!claims(&cells)[0].ok);
        let promised = cells[1].promised_ns.expect("a promise");
        assert_eq!(cells[1].text(), "pass");
        cells[1].report.totals.wait_max_ns = promised + 1;
        assert_eq!((cells[1].text(), claims(&cells)[0].ok), ("late", true));
        cells[2].report.totals.wait_max_ns = promised + 1;
        assert!(!claims(&cells)[0].ok);
    }

    #[test]
    fn parameters_stay_with_their_policy() {
        assert_eq!(policies("fair"), ["fair"]);
        assert_eq!(
            policies("timer:delay_us=10,push=1,fair,resched:budget=8,hardirq"),
            [
                "timer:delay_us=10,push=1",
                "fair",
                "resched:budget=8",
                "hardirq"
            ]
        );
    }

    #[test]
    fn order_does_not_depend_on_threads() {
        let doubled = spread(3, 100, |place| place * 2);
        assert_eq!(doubled, (0..100).map(|place| place * 2).collect::<Vec<_>>());
        assert!(spread(3, 0, |place| place).is_empty());
    }

    #[test]
    fn published_numbers_are_compared_and_the_rest_predicted() {
        let field = Scenario::find("field").expect("field");
        let mut cells = cells(&["resched"]);
        cells[0].machine = "field".into();
        let rows = rows(std::slice::from_ref(&field), &cells);
        let of = |kind| rows.iter().filter(|row| row.kind == kind).count();
        assert_eq!((of(Kind::Fit), of(Kind::HeldOut)), (1, 1));
        assert_eq!(of(Kind::Prediction), Metric::USUAL.len() - 2);
    }
}
