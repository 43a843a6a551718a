// SPDX-License-Identifier: GPL-2.0

//! Reading a scenario from TOML.

use super::{
    keys::Keys,
    Scenario, //
};
use crate::{
    calibration,
    metric::{
        Kind,
        Metric, //
    },
    Machine,
    Workload, //
};
use serde::{
    Deserialize,
    Serialize, //
};
use serde_json::Value;
use toml::{
    de::{
        DeTable,
        DeValue, //
    },
    Spanned, //
};

/// A number that somebody published of such a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The policy under which it was measured.
    pub policy: String,
    /// The policy whose value it is relative to; none: it is the value itself.
    #[serde(default)]
    pub against: Option<String>,
    /// What was measured.
    pub metric: Metric,
    /// Its value; with `against`, in percent of the other one's.
    pub value: f64,
    /// Whether a key of the machine was chosen for it.
    pub kind: Kind,
}

/// The part of a file that is not keys of machine and load.
#[derive(Deserialize)]
struct Remarks {
    #[serde(default)]
    published: Vec<Published>,
}

/// What a machine can be like.
const LIKE: &[&str] = &["bare-metal", "field"];

/// The scenario of `text`, the contents of `path`.
pub(super) fn parse(name: &str, path: &str, text: &str) -> Result<Scenario, String> {
    let reader = Reader { path, text };
    let table = DeTable::parse(text).map_err(|error| reader.toml(&error))?;
    let remarks: Remarks = toml::from_str(text).map_err(|error| reader.toml(&error))?;
    let top = table.get_ref();
    let mut keys = Keys::of(&reader.base(name, top)?, &Workload::default())
        .map_err(|problem| reader.at(0, &problem))?;
    let about = reader.about(top)?;
    reader.assign(&mut keys, top, "")?;
    let (machine, load) = keys.finish().map_err(|(key, problem)| {
        let line = place(top, &key).unwrap_or(0);
        reader.at(line, &problem)
    })?;
    Ok(Scenario {
        about,
        machine,
        load,
        published: remarks.published,
    })
}

/// Where `key` has its value.
fn place(top: &DeTable<'_>, key: &str) -> Option<usize> {
    let mut parts = key.split('.');
    let mut value = top.get(parts.next()?)?;
    for part in parts {
        value = value.get_ref().as_table()?.get(part)?;
    }
    Some(value.span().start)
}

struct Reader<'a> {
    path: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    /// `problem`, with file and line.
    fn at(&self, offset: usize, problem: &str) -> String {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}: {problem}", self.path)
    }

    fn toml(&self, error: &toml::de::Error) -> String {
        let message = error.message().replace('\n', " ");
        self.at(error.span().map_or(0, |span| span.start), &message)
    }

    /// The machine that gives what the file leaves out.
    fn base(&self, name: &str, top: &DeTable<'_>) -> Result<Machine, String> {
        let like = top.get("like");
        let machine = match like.map(|like| like.get_ref().as_str()) {
            None | Some(Some("bare-metal")) => Machine::default(),
            Some(Some("field")) => calibration::field(),
            Some(_) => {
                let problem = format!("like: is not one of {}", LIKE.join(", "));
                return Err(self.at(like.map_or(0, |like| like.span().start), &problem));
            }
        };
        Ok(Machine {
            name: name.into(),
            ..machine
        })
    }

    fn about(&self, top: &DeTable<'_>) -> Result<String, String> {
        match top.get("about") {
            None => Ok(String::new()),
            Some(about) => match about.get_ref().as_str() {
                Some(text) => Ok(text.into()),
                None => Err(self.at(about.span().start, "about: is not a text")),
            },
        }
    }

    fn assign(&self, keys: &mut Keys, table: &DeTable<'_>, under: &str) -> Result<(), String> {
        for (key, value) in table {
            let name: &str = key.get_ref();
            if under.is_empty() && ["about", "like", "published"].contains(&name) {
                continue;
            }
            let name = format!("{under}{name}");
            let result = match value.get_ref() {
                DeValue::Table(inner) if under.is_empty() => {
                    let section = format!("{name}.");
                    self.assign(keys, inner, &section)?;
                    Ok(())
                }
                _ => json(value)
                    .ok_or_else(|| format!("{name}: is not a number, a word, true or false"))
                    .and_then(|value| keys.set(&name, value)),
            };
            result.map_err(|problem| self.at(key.span().start, &problem))?;
        }
        Ok(())
    }
}

fn json(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Some(match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            Value::from(i64::from_str_radix(&digits, number.radix()).ok()?)
        }
        DeValue::Float(number) => Value::from(number.as_str().parse::<f64>().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Scenario, String> {
        parse("m", "m.toml", text)
    }

    #[test]
    fn what_is_left_out_is_as_in_like() {
        let scenario = read("like = \"field\"\ncpus = 64\n[load]\njobs = 64").expect("a scenario");
        assert_eq!((scenario.machine.cpus, scenario.load.jobs), (64, 64));
        assert_eq!(scenario.machine.costs, calibration::field_costs());
        let scenario = read("[kernel]\nlazy = true\nmask = \"sync\"").expect("a scenario");
        assert!(scenario.machine.kernel.lazy);
        assert_eq!(scenario.machine.costs, calibration::bare_metal());
        assert_eq!(scenario.machine.name, "m");
    }

    #[test]
    fn published_numbers_are_read() {
        let text = "[[published]]\npolicy = \"workqueue\"\nagainst = \"hardirq\"\n\
                    metric = \"kilo_iops\"\nvalue = 193.3\nkind = \"fit\"";
        let scenario = read(text).expect("a scenario");
        assert_eq!(scenario.published[0].value, 193.3);
        assert_eq!(scenario.published[0].against.as_deref(), Some("hardirq"));
    }

    #[test]
    fn errors_name_file_line_key_and_range() {
        for (text, message) in [
            (
                "cpus = 4\n\n[kernel]\nhz = 5000",
                "m.toml:4: kernel.hz: 5000 is not in 100..=1000",
            ),
            ("cpus = 0x2000", "m.toml:1: cpus: 8192 is not in 1..=4096"),
            ("cpus = -1", "m.toml:1: cpus: -1 is not in 1..=4096"),
            (
                "cpus = 4.5",
                "m.toml:1: cpus: 4.5 is not a whole number in 1..=4096",
            ),
            (
                "cpus = [1]",
                "m.toml:1: cpus: is not a number, a word, true or false",
            ),
            (
                "# few\nqueues = 9\ncpus = 8",
                "m.toml:2: queues: 9 is not in 1..=8",
            ),
            (
                "[load]\njobs = 1\nfiles = 7",
                "m.toml:3: load.files: 7 is not in 0..=2",
            ),
            (
                "[kernel]\nlazy = 1",
                "m.toml:2: kernel.lazy: 1 is not true or false",
            ),
            (
                "[kernel]\nmask = \"none\"",
                "m.toml:2: kernel.mask: \"none\" is not one of lazy, sync, nowait, parent",
            ),
            (
                "\nlike = \"laptop\"",
                "m.toml:2: like: is not one of bare-metal, field",
            ),
            ("about = 1", "m.toml:1: about: is not a text"),
        ] {
            assert_eq!(read(text).expect_err(text), message);
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        for (text, begin) in [
            ("cpu = 4", "m.toml:1: cpu: no such key; there are "),
            (
                "[device]\nspeed = 1",
                "m.toml:2: device.speed: no such key; in device there are ",
            ),
            ("name = \"x\"", "m.toml:1: name: no such key; "),
            ("\n[disk]\nspeed = 1", "m.toml:3: disk.speed: no such key; "),
            ("[kernel.x]\ny = 1", "m.toml:1: kernel.x: is not a number"),
            (
                "[[published]]\npolicy = \"fair\"\nmetric = \"p99\"\nvalue = 1.0\nkind = \"fit\"\nby = 1",
                "m.toml:6: unknown field `by`",
            ),
            (
                "[[published]]\npolicy = \"fair\"\nmetric = \"speed\"\nvalue = 1.0\nkind = \"fit\"",
                "m.toml:3: unknown variant `speed`",
            ),
            ("cpus = ", "m.toml:1: "),
            ("cpus = 1\ncpus = 2", "m.toml:2: "),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
