// SPDX-License-Identifier: GPL-2.0

//! What the figures must say for the library to be worth having.
//!
//! Each row that was measured is judged by what is claimed of its policy under its load; nothing is
//! said of rows that were not.

use super::{
    result::{
        Row,
        Status, //
    },
    workload::{
        Driver,
        Workload, //
    },
};
use serde::{
    Deserialize,
    Serialize, //
};

/// Longest wait of an ordinary task under `resched`, in milliseconds.
pub(crate) const RESCHED_WAIT_MS: f64 = 500.0;
/// The same under `fair`, which bounds it.
pub(crate) const FAIR_WAIT_MS: f64 = 15.0;
/// The slowest request under `fair` where the number of requests is limited, in milliseconds.
const FAIR_SLOWEST_MS: f64 = 50.0;
/// Least share of the throughput that is compared with, in percent.
const KEEPS: f64 = 97.0;
/// Most of the latency of a single request under `hardirq`, as a multiple.
const ALONE: f64 = 1.05;
/// The same where each completion leaves the handler by design: a softirq, or a switch to a task.
const ALONE_LEAVING: &[(&str, f64)] = &[("irqpoll", 1.3), ("threaded", 1.8)];
/// Most of the slowest requests' latency under `hardirq`, as a multiple.
const TAIL: f64 = 1.1;
/// More interrupts, softirqs and context switches than `hardirq` has, as a multiple.
const QUIET: f64 = 1.01;
/// Claims that are not reached yet, by words of theirs. One that fails is shown and does not end the
/// run with an error; every other claim of the same row does. The pages of these policies in
/// Documentation/policy-guide have the figures.
const OPEN: &[(Workload, &str, &str)] = &[
    (Workload::Qd1, "rate", "the mean latency"),
    (Workload::Dense, "fair", "no request takes"),
];
/// Two runs in virtual time may differ by this much.
const AGREE_PERCENT: f64 = 1.0;

/// How a check ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It does not, and that is known: see [`OPEN`].
    Open,
}

/// One statement and whether it holds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Check {
    /// The statement.
    pub(crate) what: String,
    /// Whether it holds.
    pub(crate) outcome: Outcome,
    /// The figures.
    pub(crate) figures: String,
}

impl Check {
    fn new(what: String, holds: bool, figures: String) -> Self {
        let outcome = match holds {
            true => Outcome::Pass,
            false => Outcome::Fail,
        };
        Self {
            what,
            outcome,
            figures,
        }
    }

    fn open(&mut self, words: &str) {
        if self.outcome == Outcome::Fail && self.what.contains(words) {
            self.outcome = Outcome::Open;
        }
    }
}

/// All checks of a run.
pub(crate) fn judge(rows: &[Row]) -> Vec<Check> {
    let mut checks: Vec<Check> = rows.iter().flat_map(|row| claims(rows, row)).collect();
    checks.extend(judge_aa(rows));
    checks
}

/// The checks of an A/A run.
pub(crate) fn judge_aa(rows: &[Row]) -> Vec<Check> {
    agree(rows).into_iter().chain([complete(rows)]).collect()
}

/// What is claimed of a row.
fn claims(rows: &[Row], row: &Row) -> Vec<Check> {
    let mut claims = all_claims(rows, row);
    for (workload, policy, words) in OPEN {
        if (row.workload, row.policy_name()) == (*workload, *policy) {
            claims.iter_mut().for_each(|claim| claim.open(words));
        }
    }
    claims
}

fn all_claims(rows: &[Row], row: &Row) -> Vec<Check> {
    match row.workload {
        Workload::Qd1 => alone(rows, row),
        Workload::Storm | Workload::Hog | Workload::Synthetic => crowded(rows, row),
        Workload::Dense => dense(rows, row),
        Workload::Hot24 => many(row),
    }
}

/// Our `hardirq` under the same load as `row`.
fn hardirq<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    rows.iter()
        .find(|r| r.workload == row.workload && r.driver != Driver::C && r.policy == "hardirq")
}

fn alone(rows: &[Row], row: &Row) -> Vec<Check> {
    if row.driver == Driver::C {
        return Vec::new();
    }
    let c = rows
        .iter()
        .find(|r| r.workload == row.workload && r.driver == Driver::C && r.policy == "hardirq");
    let base = hardirq(rows, row);
    // A second row of the baseline shows that nothing has drifted meanwhile.
    let other = base.filter(|base| !std::ptr::eq(*base, row));
    let near = other.map(|base| near(row, base));
    let quiet = || base.map(|base| quiet(row, base));
    let as_fast = |base: Option<&Row>, percent| base.map(|base| keeps(row, base, percent));
    let claims = match row.policy_name() {
        "hardirq" => vec![as_fast(c, KEEPS), near],
        "resched" => vec![as_fast(c, KEEPS), near, quiet()],
        "fair" => vec![as_fast(base, 99.5), near, quiet()],
        "timer" => vec![near, held(row)],
        _ => vec![near],
    };
    claims.into_iter().flatten().collect()
}

fn crowded(rows: &[Row], row: &Row) -> Vec<Check> {
    let base = || hardirq(rows, row);
    let as_fast = |percent| base().map(|base| keeps(row, base, percent));
    let claims = match (row.workload, row.policy_name()) {
        (Workload::Storm | Workload::Synthetic, "hardirq") => vec![Some(starves(row))],
        (Workload::Storm, "resched") => {
            vec![Some(serves(row, Some(RESCHED_WAIT_MS))), as_fast(KEEPS)]
        }
        (_, "resched") => vec![Some(serves(row, Some(RESCHED_WAIT_MS)))],
        (_, "threaded") => vec![Some(serves(row, None))],
        (Workload::Storm, "timer") if key(row, "push") == Some(1) => {
            vec![Some(serves(row, None))]
        }
        // The requests of `synthetic` wait in rings of thousands, whoever collects them.
        (Workload::Synthetic, "fair") => {
            vec![Some(serves(row, Some(FAIR_WAIT_MS))), as_fast(98.5)]
        }
        (workload, "fair") => {
            let percent = if workload == Workload::Hog {
                95.0
            } else {
                98.5
            };
            vec![
                Some(serves(row, Some(FAIR_WAIT_MS))),
                as_fast(percent),
                Some(prompt(row)),
            ]
        }
        _ => Vec::new(),
    };
    claims.into_iter().flatten().collect()
}

fn dense(rows: &[Row], row: &Row) -> Vec<Check> {
    if row.policy_name() != "fair" {
        return Vec::new();
    }
    let base = || hardirq(rows, row);
    let as_fast = base().map(|base| keeps(row, base, KEEPS));
    let as_prompt = base().map(|base| as_prompt(row, base));
    [
        Some(serves(row, None)),
        as_fast,
        as_prompt,
        Some(prompt(row)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// As in the field: whatever looks at one source only does not see it. A timer without push would fail,
/// too, if what waits at its end were left to the handlers, as it was in the field; here softirqs have it.
fn many(row: &Row) -> Vec<Check> {
    match row.policy_name() {
        "hardirq" | "rate" => vec![starves(row)],
        "resched" | "threaded" | "fair" | "timer" => vec![serves(row, None)],
        _ => Vec::new(),
    }
}

/// The value of a key of the row's policy, given or by default.
fn key(row: &Row, name: &str) -> Option<u32> {
    let whole = irqmod::params::parse(row.policy.as_str()).ok()?.to_string();
    let (_, pairs) = whole.split_once(':')?;
    pairs
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.parse().ok())
}

fn wait(row: &Row) -> String {
    match row.wait_max_ms {
        Some(wait) => format!(
            "{}, longest wait {} ms of {} ms",
            row.status.text(),
            if wait < 100.0 {
                format!("{wait:.1}")
            } else {
                format!("{wait:.0}")
            },
            row.load_ms
        ),
        None => row.status.text().to_owned(),
    }
}

fn starves(row: &Row) -> Check {
    let what = format!("{} starves CPU 0", row.name());
    Check::new(what, row.starved(), wait(row))
}

fn serves(row: &Row, limit: Option<f64>) -> Check {
    let waited = row.wait_max_ms.unwrap_or(f64::INFINITY);
    let in_time = limit.is_none_or(|limit| waited < limit);
    let limit = limit
        .map(|ms| format!(", no task waits {ms:.0} ms"))
        .unwrap_or_default();
    let what = format!("{} serves CPU 0{limit}", row.name());
    Check::new(what, row.status == Status::Pass && in_time, wait(row))
}

fn keeps(row: &Row, base: &Row, percent: f64) -> Check {
    let of = |r: &Row| r.iops.unwrap_or(0.0);
    let ratio = match of(base) > 0.0 {
        true => of(row) / of(base) * 100.0,
        false => 0.0,
    };
    let what = format!(
        "{} has at least {percent} % of the IOPS of {}",
        row.name(),
        base.name()
    );
    let figures = format!("{ratio:.2} % ({:.0} of {:.0} IOPS)", of(row), of(base));
    Check::new(what, ratio >= percent, figures)
}

/// A single request: no later than under `hardirq`, but for a delay that was asked for.
fn near(row: &Row, base: &Row) -> Check {
    let leaving = ALONE_LEAVING.iter().find(|(p, _)| *p == row.policy_name());
    let factor = leaving.map_or(ALONE, |(_, factor)| *factor);
    let delay = fixed_delay_us(row);
    let mean = row.lat_mean_us.unwrap_or(f64::INFINITY);
    let base_mean = base.lat_mean_us.unwrap_or(0.0);
    let plus = match delay > 0.0 {
        true => format!(" and {delay:.0} us"),
        false => String::new(),
    };
    let what = format!(
        "{} has at most {factor} times the mean latency of {}{plus}",
        row.name(),
        base.name()
    );
    let figures = format!("{mean:.2} us, {base_mean:.2} us");
    Check::new(what, mean <= base_mean * factor + delay, figures)
}

/// The delay of a timer that does not adapt.
fn fixed_delay_us(row: &Row) -> f64 {
    let adapts = ["target_intr_rate", "hardirq_percent"]
        .iter()
        .any(|name| key(row, name).is_some_and(|value| value > 0));
    match (row.policy_name(), adapts) {
        ("timer", false) => f64::from(key(row, "delay_us").unwrap_or(0)),
        _ => 0.0,
    }
}

/// Its handler runs once for each delay, and the poller once at the end of each: two requests that come
/// one by one. A timer that never holds a line is as fast as none, and passes for one everywhere else.
fn held(row: &Row) -> Option<Check> {
    let delay = Some(fixed_delay_us(row)).filter(|delay| *delay > 0.0)?;
    let every = row.iops.map_or(0.0, |iops| 1e6 / iops);
    let what = format!("{} has at most two requests in {delay:.0} us", row.name());
    let figures = format!("one every {every:.2} us");
    Some(Check::new(what, 2.0 * every >= delay, figures))
}

/// Below saturation a policy that waits for pressure does nothing.
fn quiet(row: &Row, base: &Row) -> Check {
    let sum = |r: &Row| {
        let parts = [r.irqs_per_kio, r.softirqs_per_kio, r.switches_per_kio];
        parts.into_iter().sum::<Option<f64>>()
    };
    let what = format!(
        "{} has no more interrupts, softirqs and context switches than {} (1 %)",
        row.name(),
        base.name()
    );
    let holds = sum(row)
        .zip(sum(base))
        .is_some_and(|(row, base)| row <= base * QUIET);
    let text = |r: &Row| sum(r).map_or("-".into(), |v| format!("{v:.0}"));
    let figures = format!("{} and {} per 1,000 requests", text(row), text(base));
    Check::new(what, holds, figures)
}

fn prompt(row: &Row) -> Check {
    let slowest = row.lat_max_us.map_or(f64::INFINITY, |us| us / 1000.0);
    let what = format!("{}: no request takes {FAIR_SLOWEST_MS:.0} ms", row.name());
    let figures = format!("slowest {slowest:.1} ms");
    Check::new(what, slowest < FAIR_SLOWEST_MS, figures)
}

/// What makes the slowest requests slow is not the policy.
fn as_prompt(row: &Row, base: &Row) -> Check {
    let tail = |r: &Row| r.lat_p999_us.unwrap_or(f64::INFINITY) / 1000.0;
    let what = format!(
        "{} has at most {TAIL} times the p99.9 latency of {}",
        row.name(),
        base.name()
    );
    let (this, base) = (tail(row), tail(base));
    let figures = format!("{this:.1} ms, {base:.1} ms");
    Check::new(what, this <= base * TAIL && this.is_finite(), figures)
}

fn agree(rows: &[Row]) -> Option<Check> {
    let (spread, row) = rows
        .iter()
        .filter_map(|row| Some((row.spread_percent?, row)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let what = format!("repeats of a row agree within {AGREE_PERCENT:.0} % of their IOPS");
    let figures = format!("largest distance {spread:.2} % ({})", row.name());
    Some(Check::new(what, spread <= AGREE_PERCENT, figures))
}

fn complete(rows: &[Row]) -> Check {
    let broken: Vec<String> = rows
        .iter()
        .filter(|row| row.status == Status::Error)
        .map(|row| format!("{}: {}", row.name(), row.reason().unwrap_or("unknown")))
        .collect();
    let figures = match broken.is_empty() {
        true => format!("{} rows", rows.len()),
        false => broken.join("; "),
    };
    let what = "every row was measured, nothing failed or got lost".into();
    Check::new(what, broken.is_empty() && !rows.is_empty(), figures)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::run::{
        plan::Key,
        result::Repeat, //
    };

    /// How many claims there are of [`good`].
    pub(crate) const CLAIMS: usize = 40;

    /// Results as they should be, from which each test takes something away.
    pub(crate) fn good() -> Vec<Row> {
        use {
            Driver::*,
            Status::*,
            Workload::*, //
        };
        [
            (Qd1, C, "hardirq", Pass, 100_000.0, 0.1),
            (Qd1, C, "threaded", Pass, 68_000.0, 0.1),
            (Qd1, Rust, "hardirq", Pass, 99_000.0, 0.1),
            (Qd1, Rust, "resched", Pass, 98_500.0, 0.1),
            (Qd1, Rust, "threaded", Pass, 67_000.0, 0.1),
            (Qd1, Rust, "fair", Pass, 98_600.0, 0.1),
            (Qd1, Rust, "timer", Pass, 26_000.0, 0.1),
            (Storm, C, "hardirq", SoftLockup, 42_800.0, 4000.0),
            (Storm, C, "threaded", Pass, 42_100.0, 950.0),
            (Storm, Rust, "hardirq", Stall, 42_700.0, 4000.0),
            (Storm, Rust, "resched", Pass, 42_700.0, 370.0),
            (Storm, Rust, "threaded", Pass, 42_000.0, 950.0),
            (Storm, Rust, "fair", Pass, 42_300.0, 8.0),
            (Storm, Rust, "timer", Pass, 39_000.0, 90.0),
            (Hog, Rust, "hardirq", Stall, 42_700.0, 4000.0),
            (Hog, Rust, "fair", Pass, 41_000.0, 9.0),
            (Dense, Rust, "hardirq", Pass, 100_000.0, 48.0),
            (Dense, Rust, "fair", Pass, 97_600.0, 9.0),
            (Synthetic, Edu, "hardirq", SoftLockup, 69_800.0, 4000.0),
            (Synthetic, Edu, "resched", Pass, 69_600.0, 10.0),
            (Synthetic, Edu, "threaded", Pass, 69_000.0, 950.0),
            (Synthetic, Edu, "fair", Pass, 69_200.0, 3.0),
            (Hot24, Edu, "hardirq", Stall, 70_000.0, 4000.0),
            (Hot24, Edu, "resched", Pass, 70_000.0, 400.0),
            (Hot24, Edu, "threaded", Pass, 69_000.0, 950.0),
            (Hot24, Edu, "fair", Pass, 69_000.0, 14.0),
            (Hot24, Edu, "timer:push=0", Pass, 63_000.0, 37.0),
            (Hot24, Edu, "rate", Stall, 70_000.0, 4000.0),
        ]
        .map(row)
        .to_vec()
    }

    fn row(
        (workload, driver, policy, status, iops, wait): (Workload, Driver, &str, Status, f64, f64),
    ) -> Row {
        let key = Key {
            workload,
            driver,
            policy: policy.into(),
        };
        let repeat = |iops| Repeat {
            status: Some(status),
            iops: Some(iops),
            lat_mean_us: Some(1e6 / iops),
            lat_p999_us: Some(15_000.0),
            lat_max_us: Some(20_000.0),
            irqs_per_io: Some(1.0),
            switches_per_io: Some(2.0),
            softirqs_per_io: Some(0.5),
            wait_max_ms: Some(wait),
            ..Repeat::default()
        };
        let repeats = vec![repeat(iops * 0.9995), repeat(iops * 1.0005)];
        Row::new(&key, 4000, repeats)
    }

    fn failed(rows: &[Row]) -> Vec<String> {
        judge(rows)
            .into_iter()
            .filter(|c| c.outcome != Outcome::Pass)
            .map(|c| c.what)
            .collect()
    }

    /// The checks that fail when `edit` changes the row of this name.
    fn planted(name: &str, edit: fn(&mut Row)) -> Vec<String> {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == name);
        edit(row.expect("the row exists"));
        let failed = failed(&rows);
        assert!(!failed.is_empty(), "{name}");
        failed
    }

    /// The one check that fails.
    fn planted_one(name: &str, edit: fn(&mut Row)) -> String {
        let failed = planted(name, edit);
        assert_eq!(failed.len(), 1, "{name}: {failed:?}");
        failed[0].clone()
    }

    #[test]
    fn good_results_pass_every_check() {
        let checks = judge(&good());
        assert!(
            checks.iter().all(|c| c.outcome == Outcome::Pass),
            "{checks:?}"
        );
        assert_eq!(checks.len(), CLAIMS);
    }

    #[test]
    fn what_is_open_is_open_only_where_it_fails() {
        let outcomes = |times: f64| {
            let mut rows = good();
            let row = rows.iter_mut().find(|r| r.name() == "dense rust fair");
            let row = row.expect("the row exists");
            row.lat_max_us = row.lat_max_us.map(|measured| measured * times);
            let judged: Vec<_> = judge(&rows).into_iter().map(|c| c.outcome).collect();
            let count = |outcome| judged.iter().filter(|o| **o == outcome).count();
            (count(Outcome::Open), count(Outcome::Fail))
        };
        assert_eq!(outcomes(1.0), (0, 0));
        assert_eq!(outcomes(3.0), (1, 0));
    }

    #[test]
    fn a_fair_that_starves_is_not_merely_open() {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == "storm rust fair");
        row.expect("the row exists").status = Status::Stall;
        let judged = judge(&rows);
        assert!(judged.iter().any(|c| c.outcome == Outcome::Fail));
    }

    #[test]
    fn a_baseline_that_is_not_starved_is_found() {
        for name in [
            "storm c hardirq",
            "storm rust hardirq",
            "synthetic edu hardirq",
            "hot24 edu hardirq",
            "hot24 edu rate",
        ] {
            let what = planted_one(name, |r| {
                r.status = Status::Pass;
                r.wait_max_ms = Some(3100.0);
            });
            assert_eq!(what, format!("{name} starves CPU 0"));
        }
    }

    #[test]
    fn either_sign_of_starvation_is_enough() {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == "storm c hardirq");
        let row = row.unwrap();
        row.wait_max_ms = Some(2000.0);
        assert_eq!(failed(&rows), [""; 0]);
    }

    #[test]
    fn a_slow_fallback_is_found() {
        for name in ["storm rust resched", "synthetic edu resched"] {
            let what = planted_one(name, |r| r.wait_max_ms = Some(501.0));
            assert!(what.starts_with(name) && what.contains("500 ms"), "{what}");
            planted_one(name, |r| r.wait_max_ms = None);
        }
        for name in [
            "storm rust fair",
            "hog rust fair",
            "synthetic edu fair", //
        ] {
            let what = planted_one(name, |r| r.wait_max_ms = Some(15.0));
            assert!(what.starts_with(name) && what.contains("15 ms"), "{what}");
        }
    }

    #[test]
    fn a_starved_fallback_or_thread_is_found() {
        for name in [
            "storm rust resched",
            "storm rust threaded",
            "storm c threaded",
            "storm rust fair",
            "storm rust timer",
            "hog rust fair",
            "dense rust fair",
            "synthetic edu resched",
            "synthetic edu threaded",
            "hot24 edu resched",
            "hot24 edu threaded",
            "hot24 edu fair",
            "hot24 edu timer:push=0",
        ] {
            let what = planted_one(name, |r| r.status = Status::SoftLockup);
            assert!(what.starts_with(name), "{what}");
        }
    }

    #[test]
    fn lost_throughput_is_found() {
        for (name, limit) in [
            ("qd1 rust hardirq", "97 %"),
            ("qd1 rust resched", "97 %"),
            ("qd1 rust fair", "99.5 %"),
            ("storm rust resched", "97 %"),
            ("storm rust fair", "98.5 %"),
            ("hog rust fair", "95 %"),
            ("dense rust fair", "97 %"),
            ("synthetic edu fair", "98.5 %"),
        ] {
            let what = planted_one(name, |r| r.iops = r.iops.map(|i| i * 0.95));
            assert!(what.starts_with(name) && what.contains(limit), "{what}");
        }
        assert!(planted("storm rust fair", |r| r.iops = None)[0].contains("98.5 %"));
    }

    #[test]
    fn a_late_request_is_found() {
        for name in ["storm rust fair", "hog rust fair", "dense rust fair"] {
            let what = planted_one(name, |r| r.lat_max_us = Some(50_000.0));
            assert!(what.starts_with(name) && what.contains("50 ms"), "{what}");
            planted_one(name, |r| r.lat_max_us = None);
        }
        let what = planted_one("dense rust fair", |r| r.lat_p999_us = Some(17_000.0));
        assert!(what.contains("p99.9"), "{what}");
        planted_one("dense rust fair", |r| r.lat_p999_us = None);
        for name in ["qd1 rust resched", "qd1 rust fair", "qd1 rust threaded"] {
            let what = planted_one(name, |r| r.lat_mean_us = r.lat_mean_us.map(|us| us * 1.3));
            assert!(what.contains("mean latency"), "{what}");
        }
    }

    #[test]
    fn a_timer_that_holds_nothing_is_found() {
        for iops in [Some(90_000.0), None] {
            let mut rows = good();
            let row = rows.iter_mut().find(|r| r.name() == "qd1 rust timer");
            row.expect("the row exists").iops = iops;
            assert_eq!(
                failed(&rows),
                ["qd1 rust timer has at most two requests in 30 us"]
            );
        }
    }

    #[test]
    fn a_policy_that_acts_unasked_is_found() {
        for name in ["qd1 rust resched", "qd1 rust fair"] {
            let what = planted_one(name, |r| r.switches_per_kio = Some(2040.0));
            assert!(what.contains("context switches"), "{what}");
            planted_one(name, |r| r.softirqs_per_kio = None);
        }
    }

    #[test]
    fn repeats_that_disagree_are_found() {
        let what = planted_one("qd1 c threaded", |r| r.spread_percent = Some(1.2));
        assert!(what.contains("agree"));
    }

    #[test]
    fn a_broken_row_is_found() {
        let failed = planted("qd1 rust threaded", |r| {
            r.status = Status::Error;
            r.lat_mean_us = None;
            r.repeats[0] = Repeat::failed("the disk is gone".into());
        });
        assert!(failed[1].starts_with("every row"));
        assert!(judge(&[]).iter().any(|c| c.outcome == Outcome::Fail));
    }

    #[test]
    fn nothing_is_said_of_rows_that_were_not_asked_for() {
        let rows: Vec<Row> = good()
            .into_iter()
            .filter(|r| r.workload == Workload::Qd1)
            .collect();
        let checks = judge(&rows);
        assert!(checks.iter().all(|c| !c.what.contains("storm")));
        assert_eq!(checks.len(), 12);
        // Without what it is compared with, a row only stands for itself.
        assert_eq!(judge(&rows[3..4]).len(), 2);
    }

    #[test]
    fn keys_of_a_policy_do_not_hide_its_row() {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == "storm rust resched");
        row.unwrap().policy = "resched:budget=64".into();
        let checks = judge(&rows);
        assert!(checks.iter().all(|c| c.outcome == Outcome::Pass));
        let named = |c: &&Check| c.what.starts_with("storm rust resched:budget=64 ");
        assert_eq!(checks.iter().filter(named).count(), 2);
    }

    #[test]
    fn keys_are_found_given_or_not() {
        let with = |policy| {
            row((
                Workload::Storm,
                Driver::Rust,
                policy,
                Status::Pass,
                1.0,
                1.0,
            ))
        };
        assert_eq!(key(&with("resched:budget=64"), "budget"), Some(64));
        assert_eq!(key(&with("resched"), "budget"), Some(256));
        assert_eq!(key(&with("resched"), "delay_us"), None);
        assert_eq!(key(&with("hardirq"), "budget"), None);
        assert_eq!(fixed_delay_us(&with("resched")), 0.0);
        assert_eq!(fixed_delay_us(&with("timer:delay_us=50")), 50.0);
        assert_eq!(fixed_delay_us(&with("timer:hardirq_percent=5")), 0.0);
        assert_eq!(key(&with("timer:delay_us=50"), "push"), Some(1));
    }

    #[test]
    fn an_a_a_run_judges_agreement_only() {
        let rows = &good()[5..6];
        let checks = judge_aa(rows);
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|c| c.outcome == Outcome::Pass));
    }
}
