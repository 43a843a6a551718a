// SPDX-License-Identifier: GPL-2.0

//! The tests that need no guest, as cases.

use crate::{
    failure::{
        Failure,
        Result, //
    },
    step::Step,
    test::{
        Case,
        Context,
        Outcome, //
    },
};

/// Cases in the order in which they run: the quick ones first.
pub(crate) fn all() -> Vec<Case> {
    vec![
        Case::new(
            "host-format",
            &[],
            "sources are formatted like the kernel's",
            |context| cargo(context, "host-format", &["fmt", "--check"]),
        ),
        Case::new(
            "host-clippy",
            &[],
            "no compiler or clippy warning",
            |context| {
                let words = [
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ];
                cargo(context, "host-clippy", &words)
            },
        ),
        Case::new("host-tests", &[], "unit tests of all crates", |context| {
            let step = Step::new(context.lab, "host-tests", "cargo");
            counted(step.args(["test", "--workspace", "--no-fail-fast"]))
        }),
        Case::new(
            "host-model",
            MODEL_IDS,
            "all interleavings, with planted bugs",
            |context| {
                let step = Step::new(context.lab, "host-model", "cargo")
                    .args(["test", "--package", "model", "--release"])
                    .env("RUSTFLAGS", "--cfg loom")
                    .env("CARGO_TARGET_DIR", context.lab.root.join("target/loom"));
                counted(step)
            },
        ),
        integrate(),
    ]
}

/// One of its tests compares with patch, which nothing else needs.
fn integrate() -> Case {
    let about = "kbuild/integrate and its undoing";
    let mut case = Case::new("host-integrate", &[], about, |context| {
        let step = Step::new(context.lab, "host-integrate", "kbuild/test-integrate");
        counted(step.args([context.source()?]))
    });
    case.may_skip = true;
    case
}

const MODEL_IDS: &[&str] = &["MISS-03", "POLL-02", "SPUR-03", "TEAR-01", "TEAR-02"];

fn cargo(context: &Context<'_>, name: &str, words: &[&str]) -> Result<Outcome> {
    Step::new(context.lab, name, "cargo")
        .args(words)
        .run()
        .map(|()| Outcome::pass(""))
}

/// Runs cargo's tests and takes over its counts.
fn counted(step: Step<'_>) -> Result<Outcome> {
    let mut counts = Counts::default();
    let result = step.run_with(|line| counts.line(line));
    if counts.failed == 0 {
        result?;
    }
    counts.outcome()
}

/// Counts in the output of cargo's and Python's test programs.
#[derive(Default)]
struct Counts {
    passed: u32,
    failed: u32,
    skipped: u32,
    names: Vec<String>,
}

impl Counts {
    /// No test at all is no success: then nobody has looked.
    fn outcome(self) -> Result<Outcome> {
        if self.passed + self.failed == 0 {
            return Err(Failure::new("count the tests", "none was run"));
        }
        let skipped = match self.skipped {
            0 => String::new(),
            count => format!(", {count} skipped"),
        };
        let note = match self.names.as_slice() {
            [] => format!("{} tests{skipped}", self.passed),
            names => format!("failed: {}", names.join(" ")),
        };
        Ok(Outcome {
            passed: self.passed,
            failed: self.failed,
            skipped: self.skipped,
            note,
        })
    }

    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            self.passed += number_before(rest, " passed");
            self.failed += number_before(rest, " failed");
        }
        if let Some(rest) = line.strip_prefix("test ") {
            self.names
                .extend(rest.strip_suffix(" ... FAILED").map(str::to_owned));
        }
        self.python(line);
    }

    /// `Ran 3 tests in 1.0s` comes after a line for each of those that failed, and counts all.
    fn python(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            self.failed += 1;
            self.names.push(name.to_owned());
        }
        if let Some(rest) = line.strip_prefix("Ran ") {
            self.passed += number_before(rest, " test").saturating_sub(self.failed);
        }
        // `OK (skipped=2)`, or `FAILED (failures=1, skipped=2)`.
        let is_sum = line.starts_with("OK (") || line.starts_with("FAILED (");
        if let Some((_, rest)) = line.split_once("skipped=").filter(|_| is_sum) {
            self.skipped += number_before(rest, ")");
            self.passed = self.passed.saturating_sub(self.skipped);
        }
    }
}

fn number_before(text: &str, word: &str) -> u32 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_programs() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            "test result: ok. 36 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            counts.line(line);
        }
        assert_eq!((counts.passed, counts.failed), (38, 1));
        assert_eq!(counts.names, ["a::c"]);
    }

    #[test]
    fn python_counts_too() {
        let mut counts = Counts::default();
        for line in [
            "..F.",
            "FAIL: test_b (test.B)",
            "Ran 4 tests in 1.2s",
            "FAILED (failures=1)",
        ] {
            counts.line(line);
        }
        assert_eq!((counts.passed, counts.failed), (3, 1));
        assert_eq!(counts.names, ["test_b (test.B)"]);
        assert_eq!(counts.outcome().unwrap().note, "failed: test_b (test.B)");
    }

    #[test]
    fn tests_that_were_skipped_are_not_passed() {
        let mut counts = Counts::default();
        for line in ["..s.", "Ran 4 tests in 1.2s", "OK (skipped=1)"] {
            counts.line(line);
        }
        let outcome = counts.outcome().unwrap();
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped), (3, 0, 1));
        assert_eq!(outcome.note, "3 tests, 1 skipped");
    }

    #[test]
    fn no_test_is_no_success() {
        let mut counts = Counts::default();
        for line in ["running 0 tests", "test result: ok. 0 passed; 0 failed"] {
            counts.line(line);
        }
        assert!(counts.outcome().is_err());
    }
}
