// SPDX-License-Identifier: GPL-2.0

//! The kinds of load: what each is made of, and which rows it has when nobody chooses.

use clap::ValueEnum;
use irqmod::policy::Config;
use serde::{
    Deserialize,
    Serialize, //
};
use std::fmt;

/// A kind of load.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// One disk, one request at a time.
    Qd1,
    /// Four disks whose vectors all land on CPU 0, 128 requests each.
    Storm,
    /// The storm, and a task on CPU 0 that takes all the time it is given.
    Hog,
    /// Small requests, twice the submitters and nearly all tags in use, no copies.
    Dense,
    /// Four edu devices, each below 100 % of CPU 0, their sum above.
    Synthetic,
    /// 24 edu devices on CPU 0, none of which is much.
    Hot24,
}

/// Whose driver.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Driver {
    /// The kernel's own, in C.
    C,
    /// Ours, on irqmod.
    Rust,
    /// The edu example, on irqmod.
    Edu,
}

/// What is compared in every run.
const CORE: &[&str] = &["hardirq", "resched", "threaded", "fair"];

/// Where single sources are small: those that look at a CPU or leave it in time, and those that do neither.
const MANY: &[&str] = &[
    "hardirq",
    "resched",
    "threaded",
    "fair",
    "timer:push=0",
    "rate",
];

impl Workload {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 6] = [
        Self::Qd1,
        Self::Storm,
        Self::Hog,
        Self::Dense,
        Self::Synthetic,
        Self::Hot24,
    ];

    /// Its heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Qd1 => "One request at a time",
            Self::Storm => "Completion storm on four NVMe disks",
            Self::Hog => "The same with a task that takes all of CPU 0",
            Self::Dense => "Small requests, nearly all tags in use",
            Self::Synthetic => "Four overcommitted devices",
            Self::Hot24 => "24 small sources on one CPU",
        }
    }

    /// One sentence for a reader who sees the name for the first time.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Qd1 => {
                "One disk, 4 KiB random reads, one at a time: what a policy costs when nothing is wrong."
            }
            Self::Storm => {
                "Four disks, 4 KiB random reads, 128 outstanding on each, submitted by CPUs 1-4; \
                 every completion interrupt lands on CPU 0 and every read is copied there (swiotlb)."
            }
            Self::Hog => {
                "The storm, and the ordinary task on CPU 0 never lets go by itself: a policy that \
                 leaves completions to such tasks' equals loses throughput to it. The wait is the \
                 longest gap of this task."
            }
            Self::Dense => {
                "Four disks, 512 B random reads, 992 outstanding on each of 1023 possible, submitted \
                 by CPUs 1-8; no copies. Small batches and waits for free tags cost throughput here."
            }
            Self::Synthetic => {
                "Four edu devices, each fed from a CPU of its own; any one of them leaves CPU 0 idle \
                 time, together they ask for more than it has."
            }
            Self::Hot24 => {
                "24 edu devices, fed from CPUs 1-12, each with a completion only every 240 us and at most \
                 64 outstanding, so that no limit on a single source is ever met; together they ask for 1.4 times what CPU 0 has."
            }
        }
    }

    /// Whose drivers have rows; ours is one of them.
    pub(crate) fn drivers(self) -> &'static [Driver] {
        match self {
            Self::Qd1 | Self::Storm => &[Driver::C, Driver::Rust],
            Self::Hog | Self::Dense => &[Driver::Rust],
            Self::Synthetic | Self::Hot24 => &[Driver::Edu],
        }
    }

    /// Our driver.
    pub(crate) fn ours(self) -> Driver {
        match self.has_disks() {
            true => Driver::Rust,
            false => Driver::Edu,
        }
    }

    /// Disks or devices.
    pub(crate) fn sources(self) -> u32 {
        match self {
            Self::Qd1 => 1,
            Self::Storm | Self::Hog | Self::Dense | Self::Synthetic => 4,
            Self::Hot24 => 24,
        }
    }

    /// CPUs of the guest: those that feed, and the one that takes the interrupts.
    pub(crate) fn cpus(self) -> u32 {
        1 + match self {
            Self::Qd1 => 1,
            Self::Storm | Self::Hog | Self::Synthetic => 4,
            Self::Dense => 8,
            // Two a CPU: each more costs its start and its ticks.
            Self::Hot24 => 12,
        }
    }

    /// Whether the sources are disks.
    pub(crate) fn has_disks(self) -> bool {
        !self.drivers().contains(&Driver::Edu)
    }

    /// Whether it belongs to a quick run if nobody names it.
    pub(crate) fn is_quick(self) -> bool {
        matches!(self, Self::Qd1 | Self::Storm | Self::Synthetic)
    }

    /// The policies that have a row if nobody names any: of those that the library has.
    pub(crate) fn policies(self, quick: bool) -> Vec<&'static str> {
        let wanted: &[&str] = match self {
            Self::Qd1 | Self::Storm if !quick => Config::NAMES,
            Self::Hot24 => MANY,
            _ => CORE,
        };
        let known = |policy: &&&str| irqmod::params::parse(**policy).is_ok();
        wanted.iter().filter(known).copied().collect()
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Qd1 => "qd1",
            Self::Storm => "storm",
            Self::Hog => "hog",
            Self::Dense => "dense",
            Self::Synthetic => "synthetic",
            Self::Hot24 => "hot24",
        })
    }
}

impl Driver {
    /// The C driver has its handler and its IRQ thread, nothing else.
    pub(crate) fn offers(self, policy: &str) -> bool {
        self != Self::C || policy == "hardirq" || policy == "threaded"
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "c",
            Self::Rust => "rust",
            Self::Edu => "edu",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_but_the_first_feeds() {
        for workload in Workload::ALL {
            let (feeders, sources) = (workload.cpus() - 1, workload.sources());
            assert!(feeders.is_multiple_of(sources) || sources.is_multiple_of(feeders));
            // CONFIG_NR_CPUS of kbuild/kernel.config.
            assert!(workload.cpus() <= 16);
        }
    }

    #[test]
    fn the_full_run_has_every_policy_on_qd1_and_storm() {
        for workload in [Workload::Qd1, Workload::Storm] {
            assert_eq!(workload.policies(false), Config::NAMES);
            assert!(workload.policies(true).len() <= CORE.len());
        }
    }

    #[test]
    fn every_default_is_a_policy() {
        for workload in Workload::ALL {
            for policy in workload.policies(false) {
                assert!(irqmod::params::parse(policy).is_ok(), "{policy}");
            }
        }
    }

    #[test]
    fn ours_has_rows() {
        for workload in Workload::ALL {
            assert!(workload.drivers().contains(&workload.ours()));
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for workload in Workload::ALL {
            let value = workload.to_possible_value().unwrap();
            assert_eq!(value.get_name(), workload.to_string());
        }
    }
}
