// SPDX-License-Identifier: GPL-2.0

//! The tests that need no guest, as cases.

use crate::{
    failure::Result,
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
        Case::new(
            "host-integrate",
            &[],
            "kbuild/integrate and its undoing",
            |context| {
                let step = Step::new(context.lab, "host-integrate", "kbuild/test-integrate");
                counted(step.args([context.source()?]))
            },
        ),
    ]
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
    let note = match counts.names.as_slice() {
        [] => format!("{} tests", counts.passed),
        names => format!("failed: {}", names.join(" ")),
    };
    Ok(Outcome {
        passed: counts.passed,
        failed: counts.failed,
        skipped: 0,
        note,
    })
}

/// Counts in the output of cargo's and Python's test programs.
#[derive(Default)]
struct Counts {
    passed: u32,
    failed: u32,
    names: Vec<String>,
}

impl Counts {
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

    /// `Ran 3 tests in 1.0s` comes after a line for each of those that failed.
    fn python(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            self.failed += 1;
            self.names.push(name.to_owned());
        }
        if let Some(rest) = line.strip_prefix("Ran ") {
            self.passed += number_before(rest, " test").saturating_sub(self.failed);
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
    }
}
