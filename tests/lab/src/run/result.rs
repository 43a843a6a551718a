// SPDX-License-Identifier: GPL-2.0

//! What was found out: one measurement, a row of several, and `results.json`.

use super::{
    plan::Key,
    workload::{
        Driver,
        Workload, //
    },
};
use guest_agent::report::{
    Report,
    Shares, //
};
use serde::{
    Deserialize,
    Serialize, //
};
use std::collections::BTreeMap;

/// How a measurement ended, from good to bad.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The CPU served everyone.
    Pass,
    /// An ordinary task waited for over 80 % of the load, or the kernel reports a stall.
    Stall,
    /// The kernel reports a soft lockup.
    SoftLockup,
    /// Something broke.
    Error,
}

impl Status {
    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Stall => "stall",
            Status::SoftLockup => "soft lockup",
            Status::Error => "error",
        }
    }
}

/// A task that waits for more than this share of the load is starved.
pub(crate) const STARVED: f64 = 0.8;

/// One point of the time line: milliseconds, then shares since the point before.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Point {
    /// End of the step.
    pub(crate) ms: f64,
    /// Shares of the CPU, summing up to one.
    pub(crate) shares: Shares,
}

/// A stretch of waiting: start and length in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Wait {
    /// Start.
    pub(crate) ms: f64,
    /// Length.
    pub(crate) len_ms: f64,
}

/// One measurement.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Repeat {
    /// How it ended; none is an error.
    pub(crate) status: Option<Status>,
    /// Why, if not well.
    pub(crate) reason: Option<String>,
    /// Completions per second.
    pub(crate) iops: Option<f64>,
    /// Latencies.
    pub(crate) lat_mean_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_p50_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_p99_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_p999_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_max_us: Option<f64>,
    /// Interrupts of the queues per completion.
    pub(crate) irqs_per_io: Option<f64>,
    /// How often irqmod took a vector out of hardirq.
    pub(crate) deferrals: u64,
    /// All counters of irqmod, summed over the vectors.
    pub(crate) irqmod: BTreeMap<String, u64>,
    /// Longest wait of the ordinary task on CPU 0.
    pub(crate) wait_max_ms: Option<f64>,
    /// Shares of CPU 0 over the load.
    pub(crate) cpu0: Option<Shares>,
    /// Context switches per completion, all CPUs.
    pub(crate) switches_per_io: Option<f64>,
    /// Soft interrupts of CPU 0 per completion.
    pub(crate) softirqs_per_io: Option<f64>,
    /// Completions of each disk or device.
    pub(crate) per_device: Vec<u64>,
    /// Shares of CPU 0 along the load.
    pub(crate) timeline: Vec<Point>,
    /// Waits of the ordinary task, the longer ones.
    pub(crate) waits: Vec<Wait>,
}

/// A row of the table: all repeats of one key.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Row {
    /// The load.
    pub(crate) workload: Workload,
    /// The driver.
    pub(crate) driver: Driver,
    /// The policy.
    pub(crate) policy: String,
    /// The worst of the repeats.
    pub(crate) status: Status,
    /// Mean of the repeats, like all latencies.
    pub(crate) iops: Option<f64>,
    /// Latencies.
    pub(crate) lat_mean_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_p99_us: Option<f64>,
    /// Latencies.
    pub(crate) lat_p999_us: Option<f64>,
    /// The worst of the repeats.
    pub(crate) lat_max_us: Option<f64>,
    /// Mean of the repeats.
    pub(crate) irqs_per_io: Option<f64>,
    /// Interrupts of the queues per 1,000 completions; mean of the repeats.
    pub(crate) irqs_per_kio: Option<f64>,
    /// Context switches per 1,000 completions, all CPUs; mean of the repeats.
    pub(crate) switches_per_kio: Option<f64>,
    /// Soft interrupts of CPU 0 per 1,000 completions; mean of the repeats.
    pub(crate) softirqs_per_kio: Option<f64>,
    /// Mean of the repeats.
    pub(crate) deferrals: u64,
    /// The worst of the repeats.
    pub(crate) wait_max_ms: Option<f64>,
    /// Length of the load.
    pub(crate) load_ms: u64,
    /// Mean of the repeats.
    pub(crate) cpu0: Option<Shares>,
    /// Distance of the repeats' IOPS from each other, in percent of their mean.
    pub(crate) spread_percent: Option<f64>,
    /// Each measurement.
    pub(crate) repeats: Vec<Repeat>,
}

/// Circumstances.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Meta {
    /// When, in UTC.
    pub(crate) date: String,
    /// The words of the command line.
    pub(crate) command: String,
    /// State of the checkout.
    pub(crate) commit: String,
    /// The guest's kernel.
    pub(crate) kernel: String,
    /// QEMU.
    pub(crate) qemu: String,
    /// The host's CPU.
    pub(crate) host_cpu: String,
    /// What a second is.
    pub(crate) time: String,
    /// Where CPU shares come from.
    pub(crate) cpu_shares: String,
    /// Parameters of the loads.
    pub(crate) qd1_ms: u64,
    /// Parameters of the loads.
    pub(crate) storm_ms: u64,
    /// Parameters of the loads.
    pub(crate) cost_ns: u64,
    /// Parameters of the loads.
    pub(crate) gap_ns: u64,
    /// Repeats of each row.
    pub(crate) repeats: u32,
    /// What a reader must know.
    pub(crate) notes: Vec<String>,
    /// How long everything took on the host.
    pub(crate) wall_seconds: f64,
}

/// `results.json`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Results {
    /// Circumstances.
    pub(crate) meta: Meta,
    /// The table.
    pub(crate) rows: Vec<Row>,
    /// What was judged.
    pub(crate) checks: Vec<super::verdict::Check>,
}

impl Repeat {
    /// A measurement that could not be made.
    pub(crate) fn failed(reason: String) -> Self {
        Self {
            status: Some(Status::Error),
            reason: Some(reason),
            ..Self::default()
        }
    }

    /// Reads the agent's report; `faults` are the lines by which the kernel complained meanwhile.
    pub(crate) fn new(report: &Report, faults: &[String], exact_shares: bool) -> Self {
        let mut repeat = Self::default();
        let seconds = report.window_ns as f64 / 1e9;
        repeat.add_load(report, seconds);
        repeat.add_sample(report, exact_shares);
        repeat.add_canary(report);
        let (status, reason) = repeat.judge(report, faults);
        repeat.status = Some(status);
        repeat.reason = reason;
        repeat
    }

    fn add_load(&mut self, report: &Report, seconds: f64) {
        let (latency, completions) = match (&report.load, &report.edu) {
            (Some(load), _) => {
                self.per_device = load.per_disk.clone();
                (Some(&load.latency), load.completions)
            }
            (None, Some(edu)) => {
                self.per_device = edu.per_device.clone();
                (edu.latency.as_ref(), edu.completions)
            }
            (None, None) => return,
        };
        self.iops = Some(completions as f64 / seconds);
        if let Some(l) = latency {
            self.lat_mean_us = Some(l.mean_ns / 1e3);
            self.lat_p50_us = Some(l.p50_ns as f64 / 1e3);
            self.lat_p99_us = Some(l.p99_ns as f64 / 1e3);
            self.lat_p999_us = Some(l.p999_ns as f64 / 1e3);
            self.lat_max_us = Some(l.max_ns as f64 / 1e3);
        }
    }

    fn completions(&self) -> u64 {
        self.per_device.iter().sum()
    }

    fn add_sample(&mut self, report: &Report, exact_shares: bool) {
        let Some(sample) = &report.sample else { return };
        let irqs: u64 = sample
            .irqs
            .iter()
            .filter(|(name, _)| is_queue(name))
            .map(|(_, count)| count)
            .sum();
        let completions = self.completions();
        if completions > 0 {
            let per_io = |count: u64| Some(count as f64 / completions as f64);
            self.irqs_per_io = per_io(irqs);
            self.switches_per_io = per_io(sample.switches);
            self.softirqs_per_io = per_io(sample.softirqs.values().sum());
        }
        for (name, value) in sample.irqmod.values().flatten() {
            let sum = self.irqmod.entry(name.clone()).or_insert(0);
            *sum = match name.starts_with("max") {
                true => (*sum).max(*value),
                false => *sum + value,
            };
        }
        self.deferrals = self.irqmod.get("deferrals").copied().unwrap_or(0);
        if exact_shares {
            self.cpu0 = normal(sample.ticks);
            self.timeline = timeline(sample);
        }
    }

    fn add_canary(&mut self, report: &Report) {
        let Some(canary) = &report.canary else { return };
        self.wait_max_ms = Some(canary.max.len_ns as f64 / 1e6);
        self.waits = canary
            .gaps
            .iter()
            .filter(|gap| gap.len_ns >= 2_000_000)
            .map(|gap| Wait {
                ms: gap.at_ns as f64 / 1e6,
                len_ms: gap.len_ns as f64 / 1e6,
            })
            .collect();
    }

    fn judge(&self, report: &Report, faults: &[String]) -> (Status, Option<String>) {
        let lockup = |l: &&String| l.contains("soft lockup");
        let stall = |l: &&String| l.contains("detected stall") || l.contains("blocked for more");
        let other = faults.iter().find(|l| !lockup(l) && !stall(l));
        let broken = other
            .map(|line| format!("kernel: {line}"))
            .or_else(|| self.broken(report));
        if let Some(reason) = broken {
            return (Status::Error, Some(reason));
        }
        if let Some(line) = faults.iter().find(lockup) {
            return (Status::SoftLockup, Some(line.clone()));
        }
        if let Some(line) = faults.iter().find(stall) {
            return (Status::Stall, Some(line.clone()));
        }
        let load_ms = report.window_ns as f64 / 1e6;
        match self.wait_max_ms {
            Some(wait) if wait > STARVED * load_ms => {
                let reason = format!("a task waited {wait:.0} ms of {load_ms:.0} ms");
                (Status::Stall, Some(reason))
            }
            _ => (Status::Pass, None),
        }
    }

    fn broken(&self, report: &Report) -> Option<String> {
        let (errors, lost) = match (&report.load, &report.edu) {
            (Some(load), _) => (load.errors, load.lost),
            (None, Some(edu)) => (0, edu.counters.get("lost").copied().unwrap_or(0)),
            (None, None) => return Some("the agent reports no load".into()),
        };
        match (errors, lost, self.completions()) {
            (0, 0, 0) => Some("nothing completed".into()),
            (0, 0, _) => silent(report).map(Into::into),
            _ => Some(format!("{errors} requests failed, {lost} were lost")),
        }
    }
}

/// Who did not report: without figures a bound on them holds.
fn silent(report: &Report) -> Option<&'static str> {
    let canary = report.canary.as_ref().filter(|canary| canary.stamps > 0);
    match (canary, &report.sample) {
        (None, _) => Some("the canary did not report"),
        (_, None) => Some("the sampler did not report"),
        _ => None,
    }
}

/// Whether an interrupt belongs to an I/O queue (not an admin queue) or an edu device.
fn is_queue(name: &str) -> bool {
    let nvme = name.starts_with("nvme")
        && name
            .rsplit_once('q')
            .is_some_and(|(_, n)| n.parse().is_ok_and(|n: u32| n > 0));
    nvme || name.starts_with("edu")
}

/// Scaled so that the sum is one.
fn normal(s: Shares) -> Option<Shares> {
    let sum = s.hardirq + s.softirq + s.task + s.idle;
    (sum > 0.0).then(|| Shares {
        hardirq: s.hardirq / sum,
        softirq: s.softirq / sum,
        task: s.task / sum,
        idle: s.idle / sum,
    })
}

fn timeline(sample: &guest_agent::report::Sample) -> Vec<Point> {
    sample
        .steps
        .windows(2)
        .filter_map(|pair| {
            let (a, b) = (pair[0].ticks, pair[1].ticks);
            let shares = normal(Shares {
                hardirq: (b.hardirq - a.hardirq).max(0.0),
                softirq: (b.softirq - a.softirq).max(0.0),
                task: (b.task - a.task).max(0.0),
                idle: (b.idle - a.idle).max(0.0),
            })?;
            Some(Point {
                ms: pair[1].at_ns as f64 / 1e6,
                shares,
            })
        })
        .collect()
}

impl Row {
    /// Puts the repeats of one key together.
    pub(crate) fn new(key: &Key, load_ms: u64, repeats: Vec<Repeat>) -> Self {
        let mean = |of: fn(&Repeat) -> Option<f64>| mean(repeats.iter().filter_map(of));
        let per_kio = |of: fn(&Repeat) -> Option<f64>| Some(mean(of)? * 1000.0);
        let largest =
            |of: fn(&Repeat) -> Option<f64>| repeats.iter().filter_map(of).max_by(f64::total_cmp);
        let worst = repeats
            .iter()
            .map(|r| r.status.unwrap_or(Status::Error))
            .max();
        let deferrals = repeats.iter().map(|r| r.deferrals as f64);
        Self {
            workload: key.workload,
            driver: key.driver,
            policy: key.policy.clone(),
            status: worst.unwrap_or(Status::Error),
            iops: mean(|r| r.iops),
            lat_mean_us: mean(|r| r.lat_mean_us),
            lat_p99_us: mean(|r| r.lat_p99_us),
            lat_p999_us: mean(|r| r.lat_p999_us),
            lat_max_us: largest(|r| r.lat_max_us),
            irqs_per_io: mean(|r| r.irqs_per_io),
            irqs_per_kio: per_kio(|r| r.irqs_per_io),
            switches_per_kio: per_kio(|r| r.switches_per_io),
            softirqs_per_kio: per_kio(|r| r.softirqs_per_io),
            deferrals: self::mean(deferrals).unwrap_or(0.0).round() as u64,
            wait_max_ms: largest(|r| r.wait_max_ms),
            load_ms,
            cpu0: shares(&repeats),
            spread_percent: spread(repeats.iter().filter_map(|r| r.iops)),
            repeats,
        }
    }

    /// Its key in words.
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.workload, self.driver, self.policy)
    }

    /// The policy's name without its keys.
    pub(crate) fn policy_name(&self) -> &str {
        self.policy.split(':').next().unwrap_or_default()
    }

    /// Whether an ordinary task got nothing: the kernel said so, or the task itself did.
    pub(crate) fn starved(&self) -> bool {
        let waited = self
            .wait_max_ms
            .is_some_and(|wait| wait > STARVED * self.load_ms as f64);
        self.status != Status::Error && (self.status == Status::SoftLockup || waited)
    }

    /// Why its status isn't good.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.repeats
            .iter()
            .filter(|r| r.status == Some(self.status))
            .find_map(|r| r.reason.as_deref())
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u32, 0.0), |(n, s), v| (n + 1, s + v));
    (count > 0).then(|| sum / f64::from(count))
}

/// Largest minus smallest, in percent of the mean; needs two values.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let mean = mean(values.iter().copied()).filter(|m| *m > 0.0)?;
    let max = values.iter().copied().max_by(f64::total_cmp)?;
    let min = values.iter().copied().min_by(f64::total_cmp)?;
    (values.len() > 1).then(|| (max - min) / mean * 100.0)
}

fn shares(repeats: &[Repeat]) -> Option<Shares> {
    let all = || repeats.iter().filter_map(|r| r.cpu0);
    Some(Shares {
        hardirq: mean(all().map(|s| s.hardirq))?,
        softirq: mean(all().map(|s| s.softirq))?,
        task: mean(all().map(|s| s.task))?,
        idle: mean(all().map(|s| s.idle))?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use guest_agent::report::{
        Canary,
        Edu,
        Gap,
        Latency,
        Load,
        Sample,
        Step, //
    };

    /// A healthy storm of one second: 1000 completions, 500 interrupts, a wait of 10 ms.
    fn report() -> Report {
        let ticks = Shares {
            hardirq: 40.0,
            softirq: 10.0,
            task: 50.0,
            idle: 0.0,
        };
        Report {
            kernel: "7.3.4".into(),
            window_ns: 1_000_000_000,
            load: Some(Load {
                completions: 1000,
                per_disk: vec![600, 400],
                latency: Latency {
                    count: 1100,
                    mean_ns: 5000.0,
                    p50_ns: 4000,
                    p99_ns: 9000,
                    p999_ns: 9900,
                    max_ns: 10_000,
                },
                ..Load::default()
            }),
            canary: Some(Canary {
                stamps: 90,
                max: Gap {
                    at_ns: 0,
                    len_ns: 10_000_000,
                },
                gaps: vec![
                    Gap {
                        at_ns: 0,
                        len_ns: 10_000_000,
                    },
                    Gap {
                        at_ns: 1,
                        len_ns: 1_000_000,
                    },
                ],
                ..Canary::default()
            }),
            sample: Some(Sample {
                ticks,
                steps: vec![
                    Step::default(),
                    Step {
                        at_ns: 500_000_000,
                        ticks,
                    },
                ],
                irqs: [
                    ("nvme0q0".to_owned(), 99),
                    ("nvme0q1".to_owned(), 200),
                    ("nvme1q2".to_owned(), 300),
                    ("timer".to_owned(), 77),
                ]
                .into(),
                irqmod: [
                    (
                        "nvme0q1".to_owned(),
                        [("deferrals".to_owned(), 3), ("max_batch".to_owned(), 9)].into(),
                    ),
                    (
                        "nvme1q2".to_owned(),
                        [("deferrals".to_owned(), 4), ("max_batch".to_owned(), 7)].into(),
                    ),
                ]
                .into(),
                softirqs: [("TIMER".to_owned(), 30), ("IRQ_POLL".to_owned(), 20)].into(),
                switches: 2000,
                ..Sample::default()
            }),
            edu: None,
        }
    }

    #[test]
    fn a_report_becomes_columns() {
        let r = Repeat::new(&report(), &[], true);
        assert_eq!(r.status, Some(Status::Pass));
        assert_eq!(r.iops, Some(1000.0));
        assert_eq!((r.lat_mean_us, r.lat_p99_us), (Some(5.0), Some(9.0)));
        assert_eq!(r.lat_p999_us, Some(9.9));
        assert_eq!(r.irqs_per_io, Some(0.5));
        assert_eq!(r.deferrals, 7);
        assert_eq!(r.irqmod["max_batch"], 9);
        assert_eq!(r.wait_max_ms, Some(10.0));
        assert_eq!(r.cpu0.unwrap().hardirq, 0.4);
        assert_eq!(r.timeline.len(), 1);
        assert_eq!(r.timeline[0].shares.task, 0.5);
        assert_eq!(r.waits.len(), 1);
        let row = Row::new(&key(), 1000, vec![r]);
        assert_eq!(row.irqs_per_kio, Some(500.0));
        assert_eq!(row.switches_per_kio, Some(2000.0));
        assert_eq!(row.softirqs_per_kio, Some(50.0));
        assert_eq!(row.lat_max_us, Some(10.0));
    }

    #[test]
    fn shares_that_ticks_can_not_see_are_left_out() {
        let r = Repeat::new(&report(), &[], false);
        assert!(r.cpu0.is_none() && r.timeline.is_empty());
        assert!(Row::new(&key(), 1000, vec![r]).cpu0.is_none());
    }

    #[test]
    fn status_follows_log_wait_and_errors() {
        let lines = |l: &str| vec![l.to_owned()];
        let status = |report: &Report, faults: &[String]| Repeat::new(report, faults, true).status;
        let lockup = lines("watchdog: BUG: soft lockup - CPU#0 stuck for 2s!");
        assert_eq!(status(&report(), &lockup), Some(Status::SoftLockup));
        let stall = lines("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:");
        assert_eq!(status(&report(), &stall), Some(Status::Stall));
        let both = [stall, lockup].concat();
        assert_eq!(status(&report(), &both), Some(Status::SoftLockup));
        let oops = [both, lines("BUG: kernel NULL pointer dereference")].concat();
        assert_eq!(status(&report(), &oops), Some(Status::Error));

        let mut waits = report();
        waits.canary.as_mut().unwrap().max.len_ns = 801_000_000;
        assert_eq!(status(&waits, &[]), Some(Status::Stall));
        waits.canary.as_mut().unwrap().max.len_ns = 799_000_000;
        assert_eq!(status(&waits, &[]), Some(Status::Pass));
    }

    #[test]
    fn failed_lost_or_missing_requests_are_errors() {
        let edit = |f: fn(&mut Load)| {
            let mut r = report();
            f(r.load.as_mut().unwrap());
            Repeat::new(&r, &[], true)
        };
        let failed = edit(|l| l.errors = 1);
        assert_eq!(failed.status, Some(Status::Error));
        assert!(failed.reason.unwrap().contains("1 requests failed"));
        assert_eq!(edit(|l| l.lost = 1).status, Some(Status::Error));
        assert_eq!(edit(|l| l.per_disk.clear()).status, Some(Status::Error));
        let mut none = report();
        none.load = None;
        assert_eq!(Repeat::new(&none, &[], true).status, Some(Status::Error));
    }

    #[test]
    fn figures_that_are_missing_are_errors() {
        let reason = |edit: fn(&mut Report)| {
            let mut r = report();
            edit(&mut r);
            let repeat = Repeat::new(&r, &[], true);
            assert_eq!(repeat.status, Some(Status::Error));
            repeat.reason.unwrap()
        };
        let canary = "the canary did not report";
        assert_eq!(reason(|r| r.canary = None), canary);
        assert_eq!(reason(|r| r.canary.as_mut().unwrap().stamps = 0), canary);
        assert_eq!(reason(|r| r.sample = None), "the sampler did not report");
    }

    #[test]
    fn the_synthetic_load_has_the_same_columns() {
        let mut r = report();
        let load = r.load.take().unwrap();
        r.edu = Some(Edu {
            completions: 500,
            latency: Some(load.latency),
            per_device: vec![250, 250],
            counters: [("lost".to_owned(), 0)].into(),
        });
        r.sample.as_mut().unwrap().irqs = [("edu-0000:00:04.0".to_owned(), 100)].into();
        let repeat = Repeat::new(&r, &[], true);
        assert_eq!(repeat.status, Some(Status::Pass));
        assert_eq!((repeat.iops, repeat.irqs_per_io), (Some(500.0), Some(0.2)));
        r.edu.as_mut().unwrap().counters.insert("lost".into(), 2);
        assert_eq!(Repeat::new(&r, &[], true).status, Some(Status::Error));
    }

    #[test]
    fn queues_are_told_from_admin_queues() {
        for (name, yes) in [
            ("nvme0q1", true),
            ("nvme12q10", true),
            ("nvme0q0", false),
            ("edu-0000:00:04.0", true),
            ("timer", false),
            ("nvmeq", false),
        ] {
            assert_eq!(is_queue(name), yes, "{name}");
        }
    }

    pub(crate) fn key() -> Key {
        Key {
            workload: Workload::Storm,
            driver: Driver::Rust,
            policy: "resched:budget=64".into(),
        }
    }

    #[test]
    fn a_row_is_the_mean_with_the_worst_wait_and_status() {
        let repeat = |iops, wait, status| Repeat {
            status: Some(status),
            reason: Some(format!("{wait}")),
            iops: Some(iops),
            wait_max_ms: Some(wait),
            lat_max_us: Some(wait * 10.0),
            deferrals: 3,
            ..Repeat::default()
        };
        let repeats = vec![
            repeat(99.0, 5.0, Status::Pass),
            repeat(101.0, 900.0, Status::Stall),
        ];
        let row = Row::new(&key(), 1000, repeats);
        assert_eq!(row.iops, Some(100.0));
        assert_eq!(row.status, Status::Stall);
        assert_eq!(row.reason(), Some("900"));
        assert_eq!(row.wait_max_ms, Some(900.0));
        assert_eq!(row.lat_max_us, Some(9000.0));
        assert_eq!(row.spread_percent, Some(2.0));
        assert!(row.starved());
        assert_eq!(row.deferrals, 3);
        assert_eq!(row.policy_name(), "resched");
    }

    #[test]
    fn spread_needs_two_values() {
        assert_eq!(spread([5.0].into_iter()), None);
        assert_eq!(spread([].into_iter()), None);
        assert_eq!(spread([0.0, 0.0].into_iter()), None);
        assert_eq!(spread([90.0, 110.0].into_iter()), Some(20.0));
    }

    #[test]
    fn json_has_the_agreed_keys() {
        let results = Results {
            rows: vec![Row::new(&key(), 1000, vec![Repeat::failed("x".into())])],
            ..Results::default()
        };
        let json = serde_json::to_value(&results).unwrap();
        let row = &json["rows"][0];
        for name in [
            "workload",
            "driver",
            "policy",
            "status",
            "iops",
            "lat_mean_us",
            "lat_p99_us",
            "lat_p999_us",
            "lat_max_us",
            "irqs_per_io",
            "deferrals",
            "wait_max_ms",
        ] {
            assert!(row.get(name).is_some(), "{name}");
        }
        assert_eq!(row["workload"], "storm");
        assert_eq!(row["driver"], "rust");
        assert_eq!(row["status"], "error");
        assert_eq!(
            serde_json::to_value(Status::SoftLockup).unwrap(),
            "soft_lockup"
        );
        assert!(json["meta"].is_object());
        let back: Results = serde_json::from_value(json).unwrap();
        assert_eq!(back, results);
    }
}
