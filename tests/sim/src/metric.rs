// SPDX-License-Identifier: GPL-2.0

//! Numbers of a report, by name, and rows that compare them.

use crate::{
    Ns,
    Report, //
};
use serde::{
    Deserialize,
    Serialize, //
};

/// A number of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPUs whose watchdog reported.
    Locked,
    /// The longest time of which a watchdog spoke. Unit: its seconds.
    Stuck,
    /// Requests completed. Unit: thousands a second.
    KiloIops,
    /// Mean latency. Unit: microseconds.
    Mean,
    /// What 99 % of the latencies are below. Unit: microseconds.
    P99,
    /// What 99.9 % of the latencies are below. Unit: microseconds.
    P999,
    /// The longest time that ordinary tasks wanted a CPU and none got on. Unit: milliseconds.
    Wait,
    /// Lines deferred. Unit: 1 a second.
    Deferrals,
    /// Interrupts of controllers for each request.
    Interrupts,
}

impl Metric {
    /// What tables and sweeps of whole runs show.
    pub const USUAL: [Self; 7] = [
        Self::Locked,
        Self::KiloIops,
        Self::Mean,
        Self::P99,
        Self::P999,
        Self::Wait,
        Self::Interrupts,
    ];

    /// Its name, with the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "CPUs locked up",
            Self::Stuck => "stuck for, s",
            Self::KiloIops => "IOPS, thousands",
            Self::Mean => "mean, us",
            Self::P99 => "p99, us",
            Self::P999 => "p99.9, us",
            Self::Wait => "longest wait of a task, ms",
            Self::Deferrals => "deferrals a second",
            Self::Interrupts => "interrupts a request",
        }
    }

    /// Its value in `report`.
    pub fn of(self, report: &Report) -> f64 {
        let micros = |time: Ns| time as f64 / 1e3;
        match self {
            Self::Locked => f64::from(report.locked_cpus()),
            Self::Stuck => {
                let stuck = report.lockups.iter().map(|lockup| lockup.stuck_s);
                stuck.max().unwrap_or(0) as f64
            }
            Self::KiloIops => report.iops as f64 / 1e3,
            Self::Mean => micros(report.latency.mean),
            Self::P99 => micros(report.latency.p99),
            Self::P999 => micros(report.latency.p999),
            Self::Wait => micros(report.totals.wait_max_ns) / 1e3,
            Self::Deferrals => report.totals.deferrals as f64 * 1e9 / report.time_ns.max(1) as f64,
            Self::Interrupts => {
                let interrupts = report.totals.handler_runs + report.totals.absorbed;
                interrupts as f64 / report.totals.completed.max(1) as f64
            }
        }
    }
}

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The model was made to match.
    Fit,
    /// The model was not.
    HeldOut,
    /// Nobody has measured it.
    Prediction,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which run.
    pub row: String,
    /// Which number, with its unit.
    pub metric: String,
    /// What the field report says.
    pub field: Option<f64>,
    /// What the model says; none: this build has no such policy.
    pub model: Option<f64>,
    /// The difference. Unit: percent of the field's.
    pub diff_pct: Option<f64>,
    /// What it stands for.
    pub kind: Kind,
    /// Whether the difference is within the tolerance; none: there is nothing to compare, or no
    /// tolerance was promised.
    pub ok: Option<bool>,
}

impl Row {
    /// What nobody has measured.
    pub fn prediction(row: &str, metric: &str, model: Option<f64>) -> Self {
        Self {
            row: row.into(),
            metric: metric.into(),
            field: None,
            model,
            diff_pct: None,
            kind: Kind::Prediction,
            ok: None,
        }
    }

    /// What somebody has, and how far off the model may be. Unit of `within`: percent.
    pub fn compared(
        row: &str,
        metric: &str,
        field: f64,
        model: Option<f64>,
        kind: Kind,
        within: Option<f64>,
    ) -> Self {
        let off = model.map(|model| off_by(field, model));
        Self {
            field: Some(field),
            diff_pct: off,
            kind,
            ok: off.zip(within).map(|(off, within)| is_within(off, within)),
            ..Self::prediction(row, metric, model)
        }
    }
}

/// Whether a difference is tolerated. Half is as far off as the double.
fn is_within(off: f64, within: f64) -> bool {
    off <= within && off >= -100.0 * within / (100.0 + within)
}

/// The difference in percent; of a field value of zero any difference is all of it.
fn off_by(field: f64, model: f64) -> f64 {
    if field == model {
        0.0
    } else if field == 0.0 {
        100.0
    } else {
        (model / field - 1.0) * 100.0
    }
}
