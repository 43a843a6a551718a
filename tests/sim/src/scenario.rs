// SPDX-License-Identifier: GPL-2.0

//! Scenarios: a machine and its load, by name, from a TOML file, or drawn from a seed.
//!
//! A file has the keys of [`Machine`] at its top level and in `[device]`, `[kernel]` and `[costs]`,
//! those of [`Workload`] in `[load]`, and what was published of such a machine in `[[published]]`.
//! What it leaves out is as in the machine that `like` names. A key nobody knows, a value of the
//! wrong kind or out of its range is an error that names file, line, key and range.

mod file;
mod generated;
mod keys;

pub use file::Published;

use crate::{
    Machine,
    Workload, //
};
use serde::{
    Deserialize,
    Serialize, //
};

/// A machine and what loads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// One line that says what it is.
    pub about: String,
    /// The machine.
    pub machine: Machine,
    /// Its load.
    pub load: Workload,
    /// What is known of it.
    pub published: Vec<Published>,
}

/// The machines of the set: name and TOML.
const SET: &[(&str, &str)] = &[
    ("field", include_str!("../machines/field.toml")),
    ("field-qd1", include_str!("../machines/field-qd1.toml")),
    ("disks10", include_str!("../machines/disks10.toml")),
    ("copies4", include_str!("../machines/copies4.toml")),
    ("copies176", include_str!("../machines/copies176.toml")),
    ("copies176-2", include_str!("../machines/copies176-2.toml")),
    ("hot24", include_str!("../machines/hot24.toml")),
    ("big", include_str!("../machines/big.toml")),
    ("small", include_str!("../machines/small.toml")),
];

/// What a generated machine's name begins with; a seed follows.
const GENERATED: &str = "gen:";

impl Scenario {
    /// The names of the set.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SET.iter().map(|(name, _)| *name)
    }

    /// The scenario that `what` stands for: a name of the set, `gen:SEED`, or the path of a file.
    ///
    /// # Errors
    ///
    /// One line that names file, line, key and range, or says which names there are.
    pub fn find(what: &str) -> Result<Self, String> {
        if let Some(seed) = what.strip_prefix(GENERATED) {
            let seed = seed
                .parse()
                .map_err(|_| format!("{what}: the seed is not in 0..={}", u64::MAX))?;
            return Ok(generated::draw(seed));
        }
        if let Some((name, text)) = SET.iter().find(|(name, _)| *name == what) {
            return file::parse(name, &format!("machines/{name}.toml"), text);
        }
        if !what.contains('/') && !what.ends_with(".toml") {
            let names: Vec<_> = Self::names().collect();
            return Err(format!(
                "no machine '{what}'; there are {}, {GENERATED}SEED, and paths of TOML files",
                names.join(", ")
            ));
        }
        let text = std::fs::read_to_string(what).map_err(|error| format!("{what}: {error}"))?;
        let name = std::path::Path::new(what).file_stem();
        let name = name.map_or_else(|| what.into(), |name| name.to_string_lossy());
        file::parse(&name, what, &text)
    }

    /// This scenario with another value for one key, as in `kernel.hz=1000` or `load.depth=8`.
    ///
    /// What was published does not hold for it any more, and is dropped.
    ///
    /// # Errors
    ///
    /// One line that names key and range.
    pub fn set(&self, pair: &str) -> Result<Self, String> {
        self.set_all(&[pair])
    }

    /// As [`set`](Self::set), for any number of pairs of which the ranges may depend on each other.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_all(&self, pairs: &[impl AsRef<str>]) -> Result<Self, String> {
        let mut keys = keys::Keys::of(&self.machine, &self.load)?;
        for pair in pairs {
            let pair = pair.as_ref();
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair}: not KEY=VALUE"))?;
            keys.set(key, keys::value_of(value))?;
        }
        let (machine, load) = keys.finish().map_err(|(_, problem)| problem)?;
        let kept = machine == self.machine && load == self.load;
        Ok(Self {
            about: self.about.clone(),
            published: if kept {
                self.published.clone()
            } else {
                Vec::new()
            },
            machine,
            load,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration;

    #[test]
    fn every_machine_of_the_set_is_one() {
        for name in Scenario::names() {
            let scenario = Scenario::find(name).expect(name);
            assert_eq!(scenario.machine.name, name);
            assert!(!scenario.about.is_empty(), "{name}");
            assert!(!scenario.machine.split(&scenario.load).is_empty(), "{name}");
        }
    }

    #[test]
    fn field_is_the_machine_that_was_fitted() {
        let scenario = Scenario::find("field").expect("field");
        assert_eq!(scenario.machine, calibration::field());
        assert_eq!(scenario.load, calibration::storm());
        let scenario = Scenario::find("field-qd1").expect("field-qd1");
        assert_eq!(scenario.load, calibration::qd1());
        assert_eq!(scenario.machine.costs, calibration::field().costs);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let error = Scenario::find("fild").expect_err("no such machine");
        assert!(error.contains("'fild'") && error.contains("field, field-qd1"));
        let error = Scenario::find("/nowhere/m.toml").expect_err("no such file");
        assert!(error.starts_with("/nowhere/m.toml: "));
        let error = Scenario::find("gen:x").expect_err("no number");
        assert!(error.starts_with("gen:x: the seed is not in 0..="));
    }

    #[test]
    fn set_changes_one_key() {
        let small = Scenario::find("small").expect("small");
        let other = small.set("kernel.hz=1000").expect("a key");
        assert_eq!(other.machine.kernel.hz, 1000);
        let other = small.set("kernel.mask=sync").expect("a key");
        assert_eq!(other.machine.kernel.mask, crate::machine::Mask::Sync);
        let other = small.set_all(&["queues=7", "cpus=9"]).expect("keys");
        assert_eq!((other.machine.cpus, other.machine.queues), (9, 7));
    }

    #[test]
    fn set_refuses_what_makes_no_sense() {
        let small = Scenario::find("small").expect("small");
        for (pair, message) in [
            ("kernel.hz=5000", "kernel.hz: 5000 is not in 100..=1000"),
            ("kernel.hz=-1", "kernel.hz: -1 is not in 100..=1000"),
            (
                "kernel.hz=x",
                "kernel.hz: \"x\" is not a whole number in 100..=1000",
            ),
            ("kernel.lazy=1", "kernel.lazy: 1 is not true or false"),
            (
                "kernel.mask=late",
                "kernel.mask: \"late\" is not one of lazy, sync, nowait, parent",
            ),
            ("queues=9", "queues: 9 is not in 1..=4"),
            ("load.files=3", "load.files: 3 is not in 0..=2"),
            ("kernel.hz", "kernel.hz: not KEY=VALUE"),
        ] {
            assert_eq!(small.set(pair).expect_err(pair), message);
        }
        let error = small.set("kernel.tick=1").expect_err("no such key");
        assert!(error.starts_with("kernel.tick: no such key; in kernel there are "));
        let error = small.set("load=1").expect_err("no value");
        assert_eq!(error, "load: has keys of its own, as in load.copy_bytes");
        let error = small.set("what=1").expect_err("no such key");
        assert!(
            error.contains("cpus") && error.contains("kernel.*"),
            "{error}"
        );
    }

    #[test]
    fn one_seed_is_one_machine_and_all_are_valid() {
        for seed in 0..200 {
            let scenario = Scenario::find(&format!("gen:{seed}")).expect("drawn");
            assert_eq!(Scenario::find(&format!("gen:{seed}")), Ok(scenario.clone()));
            // Every range is looked at again.
            let same = scenario.set_all(&[] as &[&str]).expect("in range");
            assert_eq!(same, scenario, "seed {seed}");
        }
    }
}
