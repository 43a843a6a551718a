// SPDX-License-Identifier: GPL-2.0

//! Words of `cargo lab run`.

use super::{
    plan::{
        COST_NS,
        GAP_NS, //
    },
    workload::Workload,
};
use crate::cli::From;
use clap::Args;
use std::path::PathBuf;

/// Words of `run`.
#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    /// Folder for results.json and the page [default: target/lab/run in the checkout].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// One repeat of each row and shorter loads: under six minutes from a warm cache.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only these workloads, with commas between them.
    #[arg(long, value_enum, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) workload: Vec<Workload>,
    /// Only these policies, with commas between them; each with keys if wanted, e.g.
    /// hardirq,resched:budget=64,mask=nowait
    #[arg(long, value_name = "POLICY,...", value_parser = policies)]
    pub(crate) policy: Vec<Policies>,
    /// Only rows whose "workload driver policy" contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) rows: Option<String>,
    /// Repeats of each row, in ABBA order [default: 2; with --quick 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = repeats)]
    pub(crate) repeats: Option<u32>,
    /// Length of each load in virtual seconds, e.g. 2.5 [default: 4 (qd1: 2); with --quick 2 (qd1: 1)].
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// Synthetic and hot24: what one completion costs CPU 0, in nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = COST_NS, allow_negative_numbers = true, value_parser = nanoseconds)]
    pub(crate) cost_ns: u64,
    /// Synthetic: time between two completions of one device, in nanoseconds; hot24: ten times it.
    #[arg(long, value_name = "NS", default_value_t = GAP_NS, allow_negative_numbers = true, value_parser = nanoseconds)]
    pub(crate) gap_ns: u64,
    /// Run each row twice and print how far the two are apart; nothing else is judged.
    #[arg(long, conflicts_with_all = ["repeats", "quick"])]
    pub(crate) aa: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

/// Some parameter strings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policies(Vec<String>);

impl RunArgs {
    /// The workloads that are named.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = Workload> + '_ {
        self.workload.iter().copied()
    }

    /// The policies that are named.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &str> {
        self.policy
            .iter()
            .flat_map(|Policies(list)| list.iter().map(String::as_str))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let range = "expected a number of seconds from 0.1 to 60";
    let value: f64 = text.parse().map_err(|_| range.to_owned())?;
    match (0.1..=60.0).contains(&value) {
        true => Ok(value),
        false => Err(range.to_owned()),
    }
}

fn repeats(text: &str) -> Result<u32, String> {
    let range = "expected a whole number from 1 to 20";
    let value = text.parse().ok().filter(|n| (1..=20).contains(n));
    value.ok_or_else(|| range.to_owned())
}

/// The range is that of the edu example's own parameters.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let range = "expected a whole number of nanoseconds from 0 to 1000000000";
    let value = text.parse().ok().filter(|n| *n <= 1_000_000_000);
    value.ok_or_else(|| range.to_owned())
}

/// Commas separate policies, and pairs within one: a pair has a `=`, and a policy's name has not.
///
/// The grammar is the library's own, so that a mistake is told now and not by a guest.
pub(crate) fn policies(text: &str) -> Result<Policies, String> {
    let mut list: Vec<String> = Vec::new();
    for word in text.trim_end().split(',') {
        let name = word.split(':').next().unwrap_or_default();
        match list.last_mut() {
            Some(policy) if name.contains('=') => {
                policy.push(',');
                policy.push_str(word);
            }
            _ => list.push(word.to_owned()),
        }
    }
    for policy in &list {
        irqmod::params::parse(policy.as_str()).map_err(|error| error.to_string())?;
    }
    Ok(Policies(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        run: RunArgs,
    }

    fn parse(words: &[&str]) -> Result<RunArgs, String> {
        Words::try_parse_from([&["run"], words].concat())
            .map(|words| words.run)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn defaults() {
        let args = parse(&[]).unwrap();
        assert_eq!((args.cost_ns, args.gap_ns), (14_000, 24_000));
        assert!(!args.quick && args.seconds.is_none() && args.policy.is_empty());
    }

    #[test]
    fn bad_values_are_named_with_their_range() {
        for (words, needles) in [
            (["--seconds", "0"], ["'0'", "0.1 to 60"]),
            (["--seconds", "soon"], ["'soon'", "0.1 to 60"]),
            (["--seconds", "NaN"], ["'NaN'", "0.1 to 60"]),
            (["--repeats", "0"], ["'0'", "1 to 20"]),
            (["--repeats", "-1"], ["'-1'", "1 to 20"]),
            (["--cost-ns", "-1"], ["'-1'", "0 to 1000000000"]),
            (
                ["--gap-ns", "1000000001"],
                ["'1000000001'", "0 to 1000000000"],
            ),
            (["--workload", "qd2"], ["'qd2'", "storm"]),
            (["--policy", "nice"], ["'nice'", "threaded"]),
            (["--policy", "resched:budget=0"], ["'0'", "1..=256"]),
            (["--policy", "resched:budget=1;rm"], ["'1;rm'", "1..=256"]),
        ] {
            let error = parse(&words).err().unwrap();
            for needle in needles {
                assert!(error.contains(needle), "{words:?}: {error}");
            }
        }
    }

    #[test]
    fn several_choices_are_taken() {
        let args = parse(&[
            "--workload=qd1",
            "--workload=storm",
            "--policy=resched:budget=64",
            "--seconds=2.5",
        ])
        .unwrap();
        assert_eq!(args.workload.len(), 2);
        assert_eq!(args.policies().collect::<Vec<_>>(), ["resched:budget=64"]);
        assert_eq!(args.seconds, Some(2.5));
    }

    #[test]
    fn commas_separate_policies_and_pairs() {
        for (text, list) in [
            ("hardirq", &["hardirq"] as &[_]),
            ("hardirq,resched", &["hardirq", "resched"]),
            (
                "resched:budget=64,mask=nowait,threaded:mask=nosync,hardirq",
                &[
                    "resched:budget=64,mask=nowait",
                    "threaded:mask=nosync",
                    "hardirq",
                ],
            ),
        ] {
            let args = parse(&["--policy", text, "--policy=hardirq"]).unwrap();
            let expected = [list, &["hardirq"]].concat();
            assert_eq!(args.policies().collect::<Vec<_>>(), expected);
        }
        for text in ["", ",", "hardirq,", "hardirq,,resched", "budget=1"] {
            let error = parse(&["--policy", text]).err().unwrap();
            assert!(error.contains("allowed: hardirq"), "{text}: {error}");
        }
        let args = parse(&["--workload=qd1,hot24"]).unwrap();
        let workloads: Vec<_> = args.workloads().collect();
        assert_eq!(workloads, [Workload::Qd1, Workload::Hot24]);
    }

    #[test]
    fn an_a_a_run_has_its_own_repeats() {
        assert!(parse(&["--aa", "--repeats=3"]).is_err());
        assert!(parse(&["--aa"]).unwrap().aa);
    }
}
