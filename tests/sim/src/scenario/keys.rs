// SPDX-License-Identifier: GPL-2.0

//! The keys of machines and loads, and their ranges.

use crate::{
    Machine,
    Workload, //
};
use serde_json::Value;

/// Smallest and largest value of a key. A key of `costs` that is not here has [`COST`].
const RANGES: &[(&str, u64, u64)] = &[
    ("cpus", 1, 4_096),
    ("controllers", 1, 256),
    ("queues", 1, 4_096),
    ("device.cap_iops", 0, 1_000_000_000),
    ("device.cap_cv", 0, 100),
    ("device.base_ns", 1, 1_000_000_000),
    ("device.base_cv", 0, 100),
    ("device.slow_permille", 0, 1_000),
    ("device.slow_ns", 0, 10_000_000_000),
    ("device.depth", 2, 65_536),
    ("device.message_ns", 0, 1_000_000),
    ("device.posted_ns", 0, 1_000_000),
    ("kernel.hz", 100, 1_000),
    ("kernel.slice_ns", 100_000, 100_000_000),
    ("kernel.watchdog_s", 1, 60),
    ("kernel.rcu_stall_s", 3, 300),
    ("kernel.wake_scan", 0, 4_096),
    ("kernel.balance_ms", 1, 10_000),
    ("kernel.slack_ns", 0, 1_000_000),
    ("load.jobs", 1, 65_536),
    ("load.depth", 1, 65_536),
    ("load.files", 0, 256),
    ("load.hogs", 0, 64),
    ("load.copy_bytes", 0, 1_048_576),
];

/// The range of what things cost. Unit: nanoseconds.
const COST: (u64, u64) = (0, 1_000_000);

/// What `kernel.mask` may be.
const MASKS: &[&str] = &["lazy", "sync", "nowait", "parent"];

/// What is wrong, and the key that it is about.
pub(super) type Problem = (String, String);

/// A machine and a load, key by key.
pub(super) struct Keys {
    all: Value,
}

impl Keys {
    pub(super) fn of(machine: &Machine, load: &Workload) -> Result<Self, String> {
        let json = |value: serde_json::Result<Value>| value.map_err(|error| error.to_string());
        let mut all = json(serde_json::to_value(machine))?;
        all["load"] = json(serde_json::to_value(load))?;
        Ok(Self { all })
    }

    /// Sets `key`, as in `kernel.hz`.
    pub(super) fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        let pointer = format!("/{}", key.replace('.', "/"));
        let names = names(&self.all, key.rsplit_once('.').map(|(section, _)| section));
        let place = match self.all.pointer_mut(&pointer) {
            Some(place) if key != "name" => place,
            _ => return Err(format!("{key}: no such key; {names}")),
        };
        check(key, place, &value)?;
        *place = value;
        Ok(())
    }

    /// The result, unless values that depend on each other don't fit.
    pub(super) fn finish(mut self) -> Result<(Machine, Workload), Problem> {
        let top = |key: &str| self.all[key].as_u64().unwrap_or(0);
        for (key, value, most) in [
            ("queues", top("queues"), top("cpus")),
            (
                "load.files",
                self.all["load"]["files"].as_u64().unwrap_or(0),
                top("controllers"),
            ),
        ] {
            let (least, _) = range(key).unwrap_or(COST);
            if value > most {
                return Err((
                    key.into(),
                    format!("{key}: {value} is not in {least}..={most}"),
                ));
            }
        }
        let load = self.all["load"].take();
        if let Some(all) = self.all.as_object_mut() {
            all.remove("load");
        }
        let bug = |error: serde_json::Error| (String::new(), error.to_string());
        Ok((
            serde_json::from_value(self.all).map_err(bug)?,
            serde_json::from_value(load).map_err(bug)?,
        ))
    }
}

/// A value as it stands on a command line: a number, true or false, or a word.
pub(super) fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn range(key: &str) -> Option<(u64, u64)> {
    let known = RANGES.iter().find(|(name, ..)| *name == key);
    known
        .map(|&(_, least, most)| (least, most))
        .or_else(|| key.starts_with("costs.").then_some(COST))
}

/// Whether `value` may take the place of `old`.
fn check(key: &str, old: &Value, value: &Value) -> Result<(), String> {
    match old {
        Value::Number(_) => {
            let (least, most) = range(key).unwrap_or((0, u64::MAX));
            match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                Some(_) => Err(format!("{key}: {value} is not in {least}..={most}")),
                None if value.is_i64() => Err(format!("{key}: {value} is not in {least}..={most}")),
                None => Err(format!(
                    "{key}: {value} is not a whole number in {least}..={most}"
                )),
            }
        }
        Value::Bool(_) if value.is_boolean() => Ok(()),
        Value::Bool(_) => Err(format!("{key}: {value} is not true or false")),
        Value::String(_) if value.as_str().is_some_and(|word| MASKS.contains(&word)) => Ok(()),
        Value::String(_) => Err(format!("{key}: {value} is not one of {}", MASKS.join(", "))),
        _ => Err(format!(
            "{key}: has keys of its own, as in {key}.{}",
            first(old)
        )),
    }
}

fn first(section: &Value) -> &str {
    let keys = section.as_object().and_then(|keys| keys.keys().next());
    keys.map_or("", String::as_str)
}

/// The keys that there are in `section`, for a message.
fn names(all: &Value, section: Option<&str>) -> String {
    let inside = section.and_then(|section| Some((section, all.get(section)?.as_object()?)));
    let (place, keys) = match inside {
        Some((section, keys)) => (format!("in {section} there are"), Some(keys)),
        None => ("there are".into(), all.as_object()),
    };
    let keys = keys.into_iter().flatten().filter(|(key, _)| *key != "name");
    let keys: Vec<String> = keys
        .map(|(key, value)| match value {
            Value::Object(_) => format!("{key}.*"),
            _ => key.clone(),
        })
        .collect();
    format!("{place} {}", keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &Value, under: &str, found: &mut Vec<String>) {
        for (key, value) in all.as_object().into_iter().flatten() {
            let key = format!("{under}{key}");
            match value {
                Value::Number(_) => found.push(key),
                _ => numbers(value, &format!("{key}."), found),
            }
        }
    }

    #[test]
    fn each_number_has_a_range_and_each_range_a_number() {
        let keys = Keys::of(&Machine::default(), &Workload::default()).expect("keys");
        let mut found = Vec::new();
        numbers(&keys.all, "", &mut found);
        for key in &found {
            assert!(range(key).is_some(), "{key} has no range");
        }
        for (key, ..) in RANGES {
            assert!(found.iter().any(|name| name == key), "{key} is no key");
        }
    }

    #[test]
    fn both_ends_of_each_range_are_allowed_and_no_more() {
        for &(key, least, most) in RANGES {
            let mut keys = Keys::of(&Machine::default(), &Workload::default()).expect("keys");
            for good in [least, most] {
                keys.set(key, good.into()).expect(key);
            }
            let bad = keys.set(key, (most + 1).into()).expect_err(key);
            assert_eq!(
                bad,
                format!("{key}: {} is not in {least}..={most}", most + 1)
            );
            if least > 0 {
                keys.set(key, (least - 1).into()).expect_err(key);
            }
        }
    }
}
