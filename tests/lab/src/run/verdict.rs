// SPDX-License-Identifier: GPL-2.0

//! What the figures must say for the library to be worth having.

use super::{
    plan::{
        Driver,
        Workload, //
    },
    result::{
        Row,
        Status, //
    }, //
};
use serde::{
    Deserialize,
    Serialize, //
};

/// Longest wait of an ordinary task under `resched`, in milliseconds.
pub(crate) const RESCHED_WAIT_MS: f64 = 500.0;
/// Least share of the throughput that is compared with.
const KEEPS: f64 = 0.97;
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
    /// Its rows were not measured.
    Skip,
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

/// All checks of a full run.
pub(crate) fn judge(rows: &[Row]) -> Vec<Check> {
    let mut checks = Vec::new();
    for workload in [Workload::Storm, Workload::Synthetic] {
        for &driver in drivers(workload) {
            checks.push(starves(rows, workload, driver));
        }
        checks.push(serves(
            rows,
            workload,
            ours(workload),
            "resched",
            Some(RESCHED_WAIT_MS),
        ));
        for &driver in drivers(workload) {
            checks.push(serves(rows, workload, driver, "threaded", None));
        }
    }
    let c = (Workload::Qd1, Driver::C, "hardirq");
    for policy in ["hardirq", "resched"] {
        checks.push(keeps(rows, (Workload::Qd1, Driver::Rust, policy), c));
    }
    checks.push(keeps(
        rows,
        (Workload::Storm, Driver::Rust, "resched"),
        (Workload::Storm, Driver::Rust, "hardirq"),
    ));
    checks.push(agree(rows));
    checks.push(complete(rows));
    checks
}

/// The checks of an A/A run.
pub(crate) fn judge_aa(rows: &[Row]) -> Vec<Check> {
    vec![agree(rows), complete(rows)]
}

fn drivers(workload: Workload) -> &'static [Driver] {
    match workload {
        Workload::Synthetic => &[Driver::Edu],
        Workload::Qd1 | Workload::Storm => &[Driver::C, Driver::Rust],
    }
}

fn ours(workload: Workload) -> Driver {
    match workload {
        Workload::Synthetic => Driver::Edu,
        Workload::Qd1 | Workload::Storm => Driver::Rust,
    }
}

type Name<'a> = (Workload, Driver, &'a str);

fn find<'a>(rows: &'a [Row], (workload, driver, policy): Name<'_>) -> Option<&'a Row> {
    rows.iter()
        .find(|r| r.workload == workload && r.driver == driver && r.policy_name() == policy)
}

fn words((workload, driver, policy): Name<'_>) -> String {
    format!("{workload} {driver} {policy}")
}

fn check(what: String, verdict: Option<(bool, String)>) -> Check {
    let (outcome, figures) = match verdict {
        Some((true, figures)) => (Outcome::Pass, figures),
        Some((false, figures)) => (Outcome::Fail, figures),
        None => (Outcome::Skip, "not measured".into()),
    };
    Check {
        what,
        outcome,
        figures,
    }
}

fn wait(row: &Row) -> String {
    match row.wait_max_ms {
        Some(wait) => format!(
            "{}, longest wait {wait:.0} ms of {} ms",
            row.status.text(),
            row.load_ms
        ),
        None => row.status.text().to_owned(),
    }
}

fn starves(rows: &[Row], workload: Workload, driver: Driver) -> Check {
    let name = (workload, driver, "hardirq");
    let verdict = find(rows, name).map(|row| (row.starved(), wait(row)));
    check(format!("{} starves CPU 0", words(name)), verdict)
}

fn serves(
    rows: &[Row],
    workload: Workload,
    driver: Driver,
    policy: &str,
    limit: Option<f64>,
) -> Check {
    let name = (workload, driver, policy);
    let verdict = find(rows, name).map(|row| {
        let waited = row.wait_max_ms.unwrap_or(f64::INFINITY);
        let in_time = limit.is_none_or(|limit| waited < limit);
        (row.status == Status::Pass && in_time, wait(row))
    });
    let limit = limit
        .map(|ms| format!(", no task waits {ms:.0} ms"))
        .unwrap_or_default();
    check(format!("{} serves CPU 0{limit}", words(name)), verdict)
}

fn keeps(rows: &[Row], name: Name<'_>, base: Name<'_>) -> Check {
    let verdict = find(rows, name).zip(find(rows, base)).map(|(row, base)| {
        let ratio = match (row.iops, base.iops) {
            (Some(a), Some(b)) if b > 0.0 => a / b,
            _ => 0.0,
        };
        let of = |r: &Row| r.iops.unwrap_or(0.0);
        let figures = format!(
            "{:.1} % ({:.0} of {:.0} IOPS)",
            ratio * 100.0,
            of(row),
            of(base)
        );
        (ratio >= KEEPS, figures)
    });
    let what = format!(
        "{} has at least {:.0} % of the IOPS of {}",
        words(name),
        KEEPS * 100.0,
        words(base)
    );
    check(what, verdict)
}

fn agree(rows: &[Row]) -> Check {
    let worst = rows
        .iter()
        .filter_map(|row| Some((row.spread_percent?, row)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let verdict = worst.map(|(spread, row)| {
        let figures = format!("largest distance {spread:.2} % ({})", row.name());
        (spread <= AGREE_PERCENT, figures)
    });
    check(
        format!("repeats of a row agree within {AGREE_PERCENT:.0} % of their IOPS"),
        verdict,
    )
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
    check(
        "every row was measured, nothing failed or got lost".into(),
        Some((broken.is_empty() && !rows.is_empty(), figures)),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::run::{
        plan::Key,
        result::Repeat, //
    };

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
            (Storm, C, "hardirq", SoftLockup, 42_800.0, 4000.0),
            (Storm, C, "threaded", Pass, 42_100.0, 950.0),
            (Storm, Rust, "hardirq", Stall, 42_700.0, 4000.0),
            (Storm, Rust, "resched", Pass, 42_700.0, 370.0),
            (Storm, Rust, "threaded", Pass, 42_000.0, 950.0),
            (Synthetic, Edu, "hardirq", SoftLockup, 69_800.0, 4000.0),
            (Synthetic, Edu, "resched", Pass, 69_600.0, 10.0),
            (Synthetic, Edu, "threaded", Pass, 69_000.0, 950.0),
        ]
        .map(|(workload, driver, policy, status, iops, wait)| {
            let key = Key {
                workload,
                driver,
                policy: policy.into(),
            };
            let repeat = |iops| Repeat {
                status: Some(status),
                iops: Some(iops),
                wait_max_ms: Some(wait),
                ..Repeat::default()
            };
            let repeats = vec![repeat(iops * 0.9995), repeat(iops * 1.0005)];
            Row::new(&key, 4000, repeats)
        })
        .to_vec()
    }

    fn failed(rows: &[Row]) -> Vec<String> {
        judge(rows)
            .into_iter()
            .filter(|c| c.outcome == Outcome::Fail)
            .map(|c| c.what)
            .collect()
    }

    /// The one check that fails when `edit` changes the row of this name.
    fn planted(name: &str, edit: fn(&mut Row)) -> String {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == name);
        edit(row.expect("the row exists"));
        let failed = failed(&rows);
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
        assert_eq!(checks.len(), 13);
    }

    #[test]
    fn a_baseline_that_is_not_starved_is_found() {
        for name in [
            "storm c hardirq",
            "storm rust hardirq",
            "synthetic edu hardirq",
        ] {
            let what = planted(name, |r| {
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
            let what = planted(name, |r| r.wait_max_ms = Some(501.0));
            assert!(what.starts_with(name) && what.contains("500 ms"), "{what}");
            planted(name, |r| r.wait_max_ms = None);
        }
    }

    #[test]
    fn a_starved_fallback_or_thread_is_found() {
        for name in [
            "storm rust resched",
            "storm rust threaded",
            "storm c threaded",
            "synthetic edu resched",
            "synthetic edu threaded",
        ] {
            let what = planted(name, |r| r.status = Status::SoftLockup);
            assert!(what.starts_with(name), "{what}");
        }
    }

    #[test]
    fn lost_throughput_is_found() {
        for name in [
            "qd1 rust hardirq",
            "qd1 rust resched",
            "storm rust resched", //
        ] {
            let what = planted(name, |r| r.iops = r.iops.map(|i| i * 0.95));
            assert!(what.starts_with(name) && what.contains("97 %"), "{what}");
            planted(name, |r| r.iops = None);
        }
    }

    #[test]
    fn repeats_that_disagree_are_found() {
        let what = planted("qd1 c threaded", |r| r.spread_percent = Some(1.2));
        assert!(what.contains("agree"));
    }

    #[test]
    fn a_broken_row_is_found() {
        let what = planted("qd1 rust threaded", |r| {
            r.status = Status::Error;
            r.repeats[0] = Repeat::failed("the disk is gone".into());
        });
        assert!(what.starts_with("every row"));
        assert!(judge(&[]).iter().any(|c| c.outcome == Outcome::Fail));
    }

    #[test]
    fn rows_that_were_not_asked_for_are_skipped() {
        let rows: Vec<Row> = good()
            .into_iter()
            .filter(|r| r.workload == Workload::Qd1)
            .collect();
        let checks = judge(&rows);
        let count = |o| checks.iter().filter(|c| c.outcome == o).count();
        assert_eq!(count(Outcome::Fail), 0);
        assert_eq!(count(Outcome::Pass), 4);
        assert_eq!(count(Outcome::Skip), 9);
    }

    #[test]
    fn keys_of_a_policy_do_not_hide_its_row() {
        let mut rows = good();
        let row = rows.iter_mut().find(|r| r.name() == "storm rust resched");
        row.unwrap().policy = "resched:budget=64".into();
        assert!(judge(&rows).iter().all(|c| c.outcome == Outcome::Pass));
    }

    #[test]
    fn an_a_a_run_judges_agreement_only() {
        let rows = &good()[5..6];
        let checks = judge_aa(rows);
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|c| c.outcome == Outcome::Pass));
    }
}
