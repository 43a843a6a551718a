// SPDX-License-Identifier: GPL-2.0

//! Many runs of one machine, over a grid of keys and seeds, in any number of pieces.

mod axis;
mod merge;
mod shard;

pub use axis::Axis;
pub use merge::merge;
pub use shard::Shard;

use crate::{
    matrix::{
        spread,
        Status, //
    },
    run::{
        run,
        Driver, //
    },
    Metric,
    Ns,
    Options,
    Row,
    Scenario, //
};
use serde::{
    Deserialize,
    Serialize, //
};

/// Most points of a sweep.
const MOST: u64 = 10_000_000;

/// What is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The machine, as a whole: a shard from another version of its file is noticed.
    pub scenario: Scenario,
    /// The policy; `policy` and `policy.KEY` among the axes change it.
    pub policy: String,
    /// What is varied.
    pub axes: Vec<Axis>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds each combination runs with.
    pub seeds: u64,
    /// Time that is measured. Unit: nanoseconds.
    pub time_ns: Ns,
    /// Time before that.
    pub warm_ns: Ns,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its number in the plan.
    pub number: u64,
    /// What was varied, in the order of the axes.
    pub settings: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// What became of the machine.
    pub status: Status,
    /// The values of [`Metric::USUAL`].
    pub values: Vec<f64>,
}

/// A piece of a sweep, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// The whole plan.
    pub plan: Plan,
    /// Which piece of it.
    pub shard: Shard,
    /// Its points, by number.
    pub points: Vec<Point>,
}

/// A combination, with the parameters that it stands for.
struct Case {
    scenario: Scenario,
    driver: Driver,
}

impl Plan {
    /// Number of points.
    ///
    /// # Errors
    ///
    /// There are more than ten million, or none.
    pub fn count(&self) -> Result<u64, String> {
        let factors = self.axes.iter().map(|axis| axis.values.len() as u64);
        let all = factors.chain([self.seeds]);
        let count = all.fold(1_u64, u64::saturating_mul);
        if (1..=MOST).contains(&count) {
            Ok(count)
        } else {
            Err(format!("sweep: {count} points are not in 1..={MOST}"))
        }
    }

    /// The settings of a point, in the order of the axes, and its seed. The seeds of one
    /// combination are neighbours.
    fn settings(&self, number: u64) -> (Vec<String>, u64) {
        let seed = self.seed + number % self.seeds;
        let mut rest = number / self.seeds;
        let mut settings = Vec::new();
        for axis in self.axes.iter().rev() {
            let count = axis.values.len() as u64;
            settings.push(axis.values[(rest % count) as usize].clone());
            rest /= count;
        }
        settings.reverse();
        (settings, seed)
    }

    fn case(&self, settings: &[String]) -> Result<Case, String> {
        let mut policy = self.policy.clone();
        let mut pairs = Vec::new();
        for (axis, value) in self.axes.iter().zip(settings) {
            match axis.key.strip_prefix("policy") {
                Some("") => policy.clone_from(value),
                Some(key) if key.starts_with('.') => {
                    let mark = if policy.contains(':') { ',' } else { ':' };
                    policy.push_str(&format!("{mark}{}={value}", &key[1..]));
                }
                _ => pairs.push(format!("{}={value}", axis.key)),
            }
        }
        let driver = Driver::parse(&policy).map_err(|problem| format!("{policy}: {problem}"))?;
        Ok(Case {
            scenario: self.scenario.set_all(&pairs)?,
            driver,
        })
    }

    /// Looks at all combinations before any of them runs.
    ///
    /// # Errors
    ///
    /// What is wrong with the first one that makes no sense, or with the number of points.
    pub fn check(&self) -> Result<(), String> {
        for first in (0..self.count()?).step_by(self.seeds.max(1) as usize) {
            self.case(&self.settings(first).0)?;
        }
        Ok(())
    }

    fn point(&self, number: u64) -> Result<Point, String> {
        let (settings, seed) = self.settings(number);
        let case = self.case(&settings)?;
        let options = Options {
            seed,
            time_ns: self.time_ns,
            warm_ns: self.warm_ns,
            ..Options::new(case.driver)
        };
        let report = run(&case.scenario.machine, &case.scenario.load, &options);
        Ok(Point {
            number,
            settings,
            seed,
            status: Status::of(&report),
            values: Metric::USUAL
                .iter()
                .map(|metric| metric.of(&report))
                .collect(),
        })
    }

    /// Runs the points of one shard; `progress` is called after each.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn run(
        &self,
        shard: Shard,
        threads: usize,
        progress: impl Fn(&str) + Sync,
    ) -> Result<Piece, String> {
        self.check()?;
        let numbers: Vec<u64> = shard.of_points(self.count()?).collect();
        let points = spread(threads, numbers.len(), |place| {
            let point = self.point(numbers[place]);
            progress(&format!("point {}", numbers[place]));
            point
        });
        Ok(Piece {
            plan: self.clone(),
            shard,
            points: points.into_iter().collect::<Result<_, _>>()?,
        })
    }

    /// What a point stands for.
    pub fn name(&self, point: &Point) -> String {
        let settings = self.axes.iter().zip(&point.settings);
        let settings = settings.map(|(axis, value)| format!("{}={value}", axis.key));
        let all: Vec<String> = std::iter::once(self.scenario.machine.name.clone())
            .chain(settings)
            .chain([format!("seed={}", point.seed)])
            .collect();
        all.join(" ")
    }

    /// The numbers of `points`, as predictions.
    pub fn rows(&self, points: &[Point]) -> Vec<Row> {
        let rows = |point: &Point| {
            let name = self.name(point);
            let values = point.values.clone();
            let row = move |(metric, value): (&Metric, f64)| {
                Row::prediction(&name, metric.name(), Some(value))
            };
            Metric::USUAL.iter().zip(values).map(row)
        };
        points.iter().flat_map(rows).collect()
    }
}

/// The points of one combination, over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What was varied.
    pub settings: Vec<String>,
    /// The worst of them.
    pub status: Status,
    /// Mean of each of [`Metric::USUAL`].
    pub mean: Vec<f64>,
    /// Half of the distance between the least and the largest. Unit: percent of the mean.
    pub apart: Vec<f64>,
}

/// Joins the seeds of each combination. `points` are by number.
pub fn groups(points: &[Point]) -> Vec<Group> {
    let same = |a: &Point, b: &Point| a.settings == b.settings;
    points.chunk_by(same).map(group).collect()
}

fn group(points: &[Point]) -> Group {
    let values = |place: usize| points.iter().map(move |point| point.values[place]);
    let places = 0..Metric::USUAL.len();
    let mean = |place: usize| values(place).sum::<f64>() / points.len().max(1) as f64;
    let apart = |place: usize| {
        let most = values(place).fold(f64::NEG_INFINITY, f64::max);
        let least = values(place).fold(f64::INFINITY, f64::min);
        match mean(place) {
            0.0 => 0.0,
            mean => (most - least) / 2.0 / mean * 100.0,
        }
    };
    Group {
        settings: points[0].settings.clone(),
        status: points
            .iter()
            .map(|point| point.status)
            .max()
            .unwrap_or(Status::Pass),
        mean: places.clone().map(mean).collect(),
        apart: places.map(apart).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> Plan {
        Plan {
            scenario: Scenario::find("small").expect("small"),
            policy: "resched".into(),
            axes: vec![
                Axis::parse("load.depth=1,4").expect("an axis"),
                Axis::parse("policy.budget=16..64*2").expect("an axis"),
            ],
            seed: 5,
            seeds: 2,
            time_ns: 2_000_000,
            warm_ns: 0,
        }
    }

    #[test]
    fn points_are_all_combinations() {
        let plan = plan();
        assert_eq!(plan.count(), Ok(12));
        let all: Vec<_> = (0..12).map(|number| plan.settings(number)).collect();
        assert_eq!(all[0], (vec!["1".into(), "16".into()], 5));
        assert_eq!(all[1], (vec!["1".into(), "16".into()], 6));
        assert_eq!(all[11], (vec!["4".into(), "64".into()], 6));
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 12);
    }

    #[test]
    fn policy_and_its_keys_are_axes() {
        let case = plan().case(&["4".into(), "32".into()]).expect("a case");
        assert_eq!(case.scenario.load.depth, 4);
        assert_eq!(
            case.driver.to_string(),
            Driver::parse("resched:budget=32")
                .expect("a policy")
                .to_string()
        );
        let plan = Plan {
            axes: vec![Axis::parse("policy=fair,timer:delay_us=10,push=0").expect("an axis")],
            ..plan()
        };
        assert_eq!(plan.axes[0].values, ["fair", "timer:delay_us=10,push=0"]);
    }

    #[test]
    fn nonsense_is_found_before_anything_runs() {
        for (axis, begin) in [
            ("kernel.hz=100,5000", "kernel.hz: 5000 is not in 100..=1000"),
            ("policy.budget=1,999", "resched:budget=999: "),
            ("policy.burst=1", "resched:burst=1: "),
            ("speed=1", "speed: no such key"),
        ] {
            let plan = Plan {
                axes: vec![Axis::parse(axis).expect(axis)],
                ..plan()
            };
            let error = plan.check().expect_err(axis);
            assert!(error.starts_with(begin), "{error}");
        }
        let plan = Plan { seeds: 0, ..plan() };
        assert_eq!(
            plan.check().expect_err("none"),
            "sweep: 0 points are not in 1..=10000000"
        );
    }

    #[test]
    fn seeds_of_a_combination_are_joined() {
        let point = |number, value: f64, status| Point {
            number,
            settings: vec![(number / 2).to_string()],
            seed: number % 2,
            status,
            values: vec![value; Metric::USUAL.len()],
        };
        let points = [
            point(0, 9.0, Status::Pass),
            point(1, 11.0, Status::Stall),
            point(2, 5.0, Status::Pass),
        ];
        let groups = groups(&points);
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].mean[0], groups[0].status), (10.0, Status::Stall));
        assert!((groups[0].apart[0] - 10.0).abs() < 1e-9);
    }
}
