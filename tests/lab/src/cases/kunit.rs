// SPDX-License-Identifier: GPL-2.0

//! The tests inside the kernel, with lockdep, and with raw locks told from others as PREEMPT_RT
//! does.

use crate::{
    failure::{
        Failure,
        Result, //
    },
    kernel::Flavour,
    test::{
        Case,
        Context,
        Outcome, //
    },
    vm::Vm,
};

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for suite in [NOWAIT, LINE] {
        let body = move |context: &Context<'_>| run(context, &suite);
        all.push(Case::new(suite.name, suite.ids, suite.about, body));
    }
    all
}

/// Some tests of KUnit.
#[derive(Clone, Copy)]
struct Suite {
    name: &'static str,
    ids: &'static [&'static str],
    about: &'static str,
    /// What chooses them.
    filter: &'static str,
    /// How many there are.
    count: usize,
}

const NOWAIT: Suite = Suite {
    name: "nowait-kunit",
    ids: &[],
    about: "KUnit: the interrupt core's tests of the mask that nobody waits for",
    filter: "irq_test_cases.irq_[mn]*",
    count: 5,
};

const LINE: Suite = Suite {
    name: "line-kunit",
    ids: &["MISS-02", "RUST-05", "TEAR-11"],
    about: "KUnit: lines without a device live and die under each policy",
    filter: "rust_irqmod_line.*",
    count: 7,
};

fn run(context: &Context<'_>, suite: &Suite) -> Result<Outcome> {
    let words = format!(
        "kunit.enable=1 kunit.autorun=1 kunit.filter_glob={}",
        suite.filter
    );
    let vm = Vm::new(suite.name).cmdline(&words);
    let guest = vm.boot(context.lab, context.kernel(Flavour::Debug)?)?;
    let log = guest.console()?;
    let results = Results::of(&log);
    if !results.failed.is_empty() || results.passed != suite.count {
        let cause = format!(
            "{} passed of {}, failed: {:?}",
            results.passed, suite.count, results.failed
        );
        return Err(Failure::new("pass KUnit", cause).log(guest.console_path()));
    }
    let faults = guest.d1(0)?;
    if !faults.is_empty() {
        let cause = faults.join("\n    ");
        return Err(Failure::new("kernel log (D1)", cause).log(guest.console_path()));
    }
    guest.power_off()?;
    Ok(Outcome::pass(format!("{} tests", results.passed)))
}

/// What the log says of tests; a suite's own line is at the margin.
#[derive(Debug, Default, PartialEq, Eq)]
struct Results {
    passed: usize,
    failed: Vec<String>,
}

impl Results {
    fn of(log: &str) -> Self {
        let mut results = Self::default();
        for line in log.lines() {
            let text = line.split_once("] ").map_or(line, |(_, text)| text);
            if text.contains("not ok ") {
                results.failed.push(text.trim().to_owned());
            } else if text.starts_with("    ok ") && !text.contains("# SKIP") {
                results.passed += 1;
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_the_log() {
        let log = "\
[    1.0]     KTAP version 1
[    1.0]     # Subtest: rust_irqmod_line
[    1.1]     ok 1 every_policy_lives_by_default
[    1.2]     not ok 2 tear_11_early
[    1.2]     ok 3 later # SKIP no clock
[    1.2] not ok 1 rust_irqmod_line
";
        let results = Results::of(log);
        assert_eq!(results.passed, 1);
        assert_eq!(
            results.failed,
            ["not ok 2 tear_11_early", "not ok 1 rust_irqmod_line"]
        );
    }
}
