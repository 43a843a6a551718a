// SPDX-License-Identifier: GPL-2.0

//! The project's tests: those on the host, then those in the booted guest.

use crate::{
    cases,
    cli::{
        From,
        TestArgs, //
    },
    failure::{
        At,
        Failure,
        Result, //
    },
    hosttests,
    kernel::{
        self,
        Flavour,
        Kernel, //
    },
    lab::{
        replace_file,
        Lab, //
    },
    needs,
    setup,
    source, //
};
use serde::Serialize;
use std::{
    cell::OnceCell,
    env,
    path::PathBuf,
    process::ExitCode,
    time::Instant, //
};

/// What a case is run with.
pub(crate) struct Context<'a> {
    /// The lab.
    pub(crate) lab: &'a Lab,
    /// Full counts rather than short ones.
    pub(crate) long: bool,
    from: &'a From,
    base: OnceCell<Kernel>,
    debug: OnceCell<Kernel>,
}

impl<'a> Context<'a> {
    fn new(lab: &'a Lab, args: &'a TestArgs) -> Self {
        Self {
            lab,
            long: args.long,
            from: &args.from,
            base: OnceCell::new(),
            debug: OnceCell::new(),
        }
    }

    /// The short or the full count.
    pub(crate) fn count(&self, short: u32, full: u32) -> u32 {
        if self.long {
            full
        } else {
            short
        }
    }

    /// The kernel's source as it came.
    pub(crate) fn source(&self) -> Result<PathBuf> {
        Ok(source::get(self.lab, self.from.tree.as_deref())?.pristine())
    }

    /// The kernel of a flavour, built by the first case that wants it.
    pub(crate) fn kernel(&self, flavour: Flavour) -> Result<&Kernel> {
        let cell = match flavour {
            Flavour::Base => &self.base,
            Flavour::Debug => &self.debug,
        };
        if let Some(kernel) = cell.get() {
            return Ok(kernel);
        }
        let kernel = kernel::get(self.lab, flavour, self.from)?;
        Ok(cell.get_or_init(|| kernel))
    }
}

/// What a case has found.
pub(crate) struct Outcome {
    /// Number of tests in it that passed.
    pub(crate) passed: u32,
    /// Number of tests in it that failed.
    pub(crate) failed: u32,
    /// Number of tests in it that did not run.
    pub(crate) skipped: u32,
    /// What a reader should know.
    pub(crate) note: String,
}

impl Outcome {
    /// One test that passed.
    pub(crate) fn pass(note: impl Into<String>) -> Self {
        Self {
            passed: 1,
            failed: 0,
            skipped: 0,
            note: note.into(),
        }
    }

    /// One test that did not run, and why.
    pub(crate) fn skip(why: impl Into<String>) -> Self {
        Self {
            passed: 0,
            failed: 0,
            skipped: 1,
            note: why.into(),
        }
    }
}

type Body = Box<dyn Fn(&Context<'_>) -> Result<Outcome>>;

/// One case.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: String,
    /// The cases of the regression catalogue that it stands for.
    pub(crate) ids: &'static [&'static str],
    /// What it shows.
    pub(crate) about: String,
    /// Whether it may be skipped in CI.
    pub(crate) may_skip: bool,
    /// What it does.
    pub(crate) body: Body,
}

impl Case {
    /// A case that must not be skipped in CI.
    pub(crate) fn new(
        name: impl Into<String>,
        ids: &'static [&'static str],
        about: impl Into<String>,
        body: impl Fn(&Context<'_>) -> Result<Outcome> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            ids,
            about: about.into(),
            may_skip: false,
            body: Box::new(body),
        }
    }

    /// Whether it is run by `--long` or by its name only.
    fn is_extra(&self) -> bool {
        EXTRA.iter().any(|extra| self.name.starts_with(extra))
    }

    fn matches(&self, filters: &[String]) -> bool {
        let hit = |filter: &String| {
            self.name.contains(filter.as_str())
                || self.ids.iter().any(|id| id.eq_ignore_ascii_case(filter))
        };
        filters.is_empty() || filters.iter().any(hit)
    }
}

/// Cases that a run without filters leaves out: what takes the debugging kernel through every
/// deferral is worth an hour, and much of the rest is what shorter cases show, too. A plain run has
/// half an hour.
const EXTRA: &[&str] = &[
    "debug-cpus-",
    "debug-deferred-",
    "debug-failslab",
    "debug-level",
    "debug-trace",
    "debug-unload",
    "rebind-c",
    "replug-c",
    "link-c",
    "link-irqpoll",
    "link-resched",
    "verify-c-",
    "copies-resched",
    "hotplug-rate",
    "deferred-reset-flood",
    "deferred-reset-inflight",
    "deferred-reset-irqpoll",
    "deferred-reset-overflow",
    "threadirqs-flood",
    "threadirqs-inflight",
    "threadirqs-irqpoll",
    "threadirqs-overflow",
    "threadirqs-rate",
    "weight-resched-budget-64",
    "switch-late-",
    "many24",
    "probe-threadless",
    "debug-timeouts-resched",
    "replug-hardirq",
];

#[derive(Serialize)]
struct Row {
    name: String,
    ids: Vec<&'static str>,
    about: String,
    verdict: &'static str,
    passed: u32,
    failed: u32,
    skipped: u32,
    seconds: f64,
    note: String,
}

/// Runs the tests.
pub(crate) fn main(lab: &Lab, args: &TestArgs) -> Result<ExitCode> {
    let mut all = hosttests::all();
    all.extend(cases::all());
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|case| case.matches(&args.filter))
        .filter(|case| args.long || !args.filter.is_empty() || !case.is_extra())
        .collect();
    if chosen.is_empty() {
        return Err(Failure::new(
            "choose the tests",
            "none matches; see cargo lab test --list",
        ));
    }
    if args.list || lab.dry_run {
        chosen.iter().for_each(list);
        return Ok(ExitCode::SUCCESS);
    }
    setup::ensure(lab, &[needs::BUILD, needs::BOOT, needs::TEST])?;
    let context = Context::new(lab, args);
    let strict = env::var_os("CI").is_some_and(|value| value == "true");
    if !args.long && args.filter.is_empty() {
        lab.say("some cases are run by --long or by name only; see Documentation/testing.rst");
    }
    let rows: Vec<_> = chosen
        .iter()
        .map(|case| run(case, &context, strict))
        .collect();
    report(lab, &rows)
}

fn list(case: &Case) {
    println!("{:32} {:24} {}", case.name, case.ids.join(" "), case.about);
}

fn run(case: &Case, context: &Context<'_>, strict: bool) -> Row {
    let start = Instant::now();
    let result = (case.body)(context);
    let row = judge(case, result, strict, start.elapsed().as_secs_f64());
    context.lab.say(&line(&row));
    row
}

fn judge(case: &Case, result: Result<Outcome>, strict: bool, seconds: f64) -> Row {
    let mut outcome = result.unwrap_or_else(|failure| Outcome {
        passed: 0,
        failed: 1,
        skipped: 0,
        note: failure.to_string(),
    });
    if outcome.skipped > 0 && strict && !case.may_skip {
        outcome.failed += outcome.skipped;
        outcome.skipped = 0;
        outcome.note = format!("skipped, which CI does not allow: {}", outcome.note);
    }
    let verdict = match (outcome.failed, outcome.passed) {
        (0, 0) => "skip",
        (0, _) => "pass",
        _ => "FAIL",
    };
    Row {
        name: case.name.clone(),
        ids: case.ids.to_vec(),
        about: case.about.clone(),
        verdict,
        passed: outcome.passed,
        failed: outcome.failed,
        skipped: outcome.skipped,
        seconds,
        note: outcome.note,
    }
}

fn line(row: &Row) -> String {
    format!(
        "{}  {:32} {:6.1} s  {}",
        row.verdict, row.name, row.seconds, row.note
    )
}

fn report(lab: &Lab, rows: &[Row]) -> Result<ExitCode> {
    let results = lab.out.join("test/results.json");
    let text = serde_json::to_string_pretty(rows).at("write the results")?;
    // What can't be kept is shown nevertheless.
    let written = replace_file(&results, text.as_bytes());
    println!();
    for row in rows {
        println!(
            "{:4}  {:32} {:24} {:6.1} s",
            row.verdict,
            row.name,
            row.ids.join(" "),
            row.seconds
        );
    }
    let failures: Vec<_> = rows.iter().filter(|row| row.failed > 0).collect();
    for row in &failures {
        println!("\n{}: {}\n  {}", row.name, row.about, row.note);
        println!("  again:  cargo lab test {}", row.name);
    }
    println!("\nresults: {}\n{}", results.display(), closing(rows));
    written?;
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

/// The line that ends the output.
fn closing(rows: &[Row]) -> String {
    let sum = |part: fn(&Row) -> u32| rows.iter().map(part).sum::<u32>();
    let (passed, failed) = (sum(|row| row.passed), sum(|row| row.failed));
    format!(
        "{passed} passed, {failed} failed, {} skipped",
        sum(|row| row.skipped)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(may_skip: bool) -> Case {
        let mut case = Case::new("reset-resched", &["TEAR-01"], "", |_| Ok(Outcome::pass("")));
        case.may_skip = may_skip;
        case
    }

    #[test]
    fn filter_takes_names_and_ids() {
        let matches = |filter: &[&str]| {
            let filter: Vec<_> = filter.iter().map(|text| (*text).to_owned()).collect();
            case(false).matches(&filter)
        };
        assert!(matches(&[]) && matches(&["reset"]) && matches(&["tear-01"]));
        assert!(matches(&["nothing", "resched"]) && !matches(&["TEAR-02"]));
    }

    #[test]
    fn skipping_is_failing_in_ci_unless_allowed() {
        let row = |may_skip, strict| judge(&case(may_skip), Ok(Outcome::skip("why")), strict, 0.0);
        assert_eq!(row(false, false).verdict, "skip");
        assert_eq!(row(false, true).verdict, "FAIL");
        assert_eq!(row(true, true).verdict, "skip");
        assert!(row(false, true).note.contains("why"));
    }

    #[test]
    fn closing_line_counts() {
        let failed = judge(&case(false), Err(Failure::new("step", "cause")), false, 0.0);
        let passed = judge(&case(false), Ok(Outcome::pass("")), false, 0.0);
        let skipped = judge(&case(false), Ok(Outcome::skip("")), false, 0.0);
        assert!(failed.note.contains("cause"));
        assert_eq!(
            closing(&[failed, passed, skipped]),
            "1 passed, 1 failed, 1 skipped"
        );
    }

    #[test]
    fn names_are_unique_and_every_case_is_described() {
        let mut all = hosttests::all();
        all.extend(cases::all());
        for (index, case) in all.iter().enumerate() {
            assert!(!case.about.is_empty(), "{}", case.name);
            assert!(
                all[..index].iter().all(|other| other.name != case.name),
                "{}",
                case.name
            );
        }
    }
}
