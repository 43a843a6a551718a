// SPDX-License-Identifier: GPL-2.0

//! `kill [--write] [--loom] [--first] [--resume] [--report] [FILTER]`: which check notices which bug, and how soon.
//!
//! Plants each bug in a copy of the crate, and runs on it: the tests of the file it is in, the random
//! sequences, the explorer, and the loom model that is for it. Each bug must be noticed by one of them at
//! least. Rows are kept in `kill/rows` in the target directory, as they are found: `--resume` goes on where the
//! last run stopped, `--report` runs nothing. `--first` stops at the first check that notices. `--write` writes `Documentation/kill-matrix.rst`.

mod mutants;

use std::{
    env,
    ffi::OsStr,
    fmt::Write as _,
    fs,
    io,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        ExitCode,
        Stdio, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    }, //
};

include!("../../model/bugs.rs");
include!("../../model/plant.rs");

/// A check that runs longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// States of each scenario that the explorer looks at.
const STATES: &str = "10000";

/// The seed of the random sequences: a matrix that depends on luck is none.
const SEED: &str = "1";

/// What a check said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It failed, after so long.
    Killed(Duration),
    /// It did not end.
    Hung,
    /// It passed.
    Survived,
    /// It is not for this bug.
    NotRun,
    /// The bug does not compile.
    Refused,
    /// There is a loom model that must notice, which was not run now.
    Modelled,
}

/// Texts of the outcomes that notice nothing.
const PASSES: &str = "passes";
const NOT_RUN: &str = "-";
/// What is said of a check that is still to be run.
const UNKNOWN: &str = "?";

fn kills(outcome: &str) -> bool {
    ![PASSES, NOT_RUN, UNKNOWN].contains(&outcome)
}

impl Outcome {
    fn text(self) -> String {
        match self {
            Self::Killed(time) => format!("{:.2} s", time.as_secs_f64()),
            Self::Hung => "hangs".into(),
            Self::Survived => PASSES.into(),
            Self::NotRun => NOT_RUN.into(),
            Self::Refused => "compiler".into(),
            Self::Modelled => "model".into(),
        }
    }
}

/// The checks, in the order of the columns.
const CHECKS: [&str; 4] = ["tests", "sequences", "explorer", "loom"];

struct Row {
    bug: &'static Bug,
    /// Texts of the outcomes.
    outcomes: [String; 4],
}

/// Where things are.
struct Place {
    /// The project.
    root: PathBuf,
    /// The copy that bugs are planted in.
    tree: PathBuf,
    /// A copy for the loom models, which plant bugs themselves.
    pristine: PathBuf,
    /// What is built there.
    target: PathBuf,
    /// Whether to run the loom models, which takes long to build.
    loom: bool,
    /// Whether to stop at the first check that notices.
    first: bool,
}

fn failed(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

fn write_if_new(path: &Path, text: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed(parent.display()))?;
    }
    fs::write(path, text).map_err(failed(path.display()))
}

/// Copies what differs, so that only that is built anew.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        let text = fs::read(from).map_err(failed(from.display()))?;
        return write_if_new(to, &text);
    }
    for entry in fs::read_dir(from).map_err(failed(from.display()))? {
        let name = entry.map_err(failed(from.display()))?.file_name();
        if name != "kernel" {
            copy(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

impl Place {
    fn new(args: &Args) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().map_err(failed("the project"))?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => root.join("target"),
        };
        Ok(Self {
            tree: target.join("kill/tree"),
            pristine: target.join("kill/pristine"),
            target: target.join("kill/target"),
            root,
            loom: args.loom,
            first: args.first,
        })
    }

    /// Makes the copies, without a bug.
    fn refresh(&self) -> Result<(), String> {
        let crates = ["irqmod", "tests/explore"];
        let names = ["tests/explore", "Documentation/state-table.rst"];
        self.copy_to(&self.tree, crates, &names)?;
        let crates = ["irqmod", "tests/model"];
        self.copy_to(&self.pristine, crates, &["tests/model"])
    }

    /// Makes one copy: irqmod, `names`, and a workspace of these crates.
    fn copy_to(&self, to: &Path, crates: [&str; 2], names: &[&str]) -> Result<(), String> {
        let always = [
            "irqmod/Cargo.toml",
            "irqmod/src",
            "irqmod/tests",
            "Cargo.lock",
        ];
        for name in always.iter().chain(names) {
            copy(&self.root.join(name), &to.join(name))?;
        }
        let path = self.root.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(failed(path.display()))?;
        let members = format!("members = {crates:?}");
        let mut manifest = String::new();
        for line in text.lines() {
            let line = match line.split(' ').next() {
                Some("members") => &members,
                Some("default-members") => "",
                Some(profile) if profile.starts_with("[profile.") => break,
                _ => line,
            };
            manifest += line;
            manifest.push('\n');
        }
        manifest += "[profile.dev]\ndebug = 0\n";
        if crates.contains(&"tests/explore") {
            manifest += "[profile.dev.package.explore]\nopt-level = 1\n";
        }
        write_if_new(&to.join("Cargo.toml"), manifest.as_bytes())
    }

    fn cargo<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo
            .args(args)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUST_BACKTRACE", "0")
            .env_remove("RUSTFLAGS");
        cargo
    }

    /// Builds, and says where the programs are; nothing if it does not compile.
    fn build(&self, args: &[String]) -> Result<Option<Vec<PathBuf>>, String> {
        let output = self
            .cargo(args)
            .arg("--message-format=json")
            .stderr(Stdio::null())
            .output()
            .map_err(failed("cargo"))?;
        if !output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let program = |line: &str| {
            let (_, rest) = line.split_once("\"executable\":\"")?;
            let (path, _) = rest.split_once('"')?;
            Some(PathBuf::from(path))
        };
        Ok(Some(text.lines().filter_map(program).collect()))
    }

    /// Builds programs and runs them until one of them fails.
    fn check(&self, build: &[String], args: &[&str]) -> Result<Outcome, String> {
        let Some(programs) = self.build(build)? else {
            return Ok(Outcome::Refused);
        };
        let began = Instant::now();
        for program in programs {
            let mut command = Command::new(&program);
            command
                .args(args)
                .current_dir(self.tree.join("irqmod"))
                .env("IRQMOD_SEED", SEED)
                .env("RUST_BACKTRACE", "0");
            match run(&mut command)? {
                Some(true) => (),
                Some(false) => return Ok(Outcome::Killed(began.elapsed())),
                None => return Ok(Outcome::Hung),
            }
        }
        Ok(Outcome::Survived)
    }

    fn outcomes(&self, bug: &Bug) -> Result<[Outcome; 4], String> {
        let mut outcomes = [Outcome::NotRun; 4];
        // Those that take least time to build come first.
        for i in [2, 0, 1, 3] {
            outcomes[i] = self.outcome(bug, i)?;
            if self.first && kills(&outcomes[i].text()) {
                break;
            }
        }
        Ok(outcomes)
    }

    /// What one of [`CHECKS`] says.
    fn outcome(&self, bug: &Bug, check: usize) -> Result<Outcome, String> {
        let mut tests = strings(&["test", "-p", "irqmod", "--no-run"]);
        match check {
            0 if bug.file != "sync/core.rs" => {
                for test in self.tests_of(bug.file) {
                    tests.extend(["--test".into(), test]);
                }
                self.check(&tests, &[])
            }
            1 if is_protocol(bug.file) => {
                tests.extend(strings(&["--test", "sequences"]));
                self.check(&tests, &[])
            }
            2 if is_protocol(bug.file) => {
                let explorer = strings(&["build", "-p", "explore"]);
                self.check(&explorer, &["--most", STATES])
            }
            3 if !bug.caught_by.is_empty() && self.loom => self.model(bug),
            3 if !bug.caught_by.is_empty() => Ok(Outcome::Modelled),
            _ => Ok(Outcome::NotRun),
        }
    }

    /// The files of tests that are for a source file.
    fn tests_of(&self, file: &str) -> Vec<String> {
        let name = Path::new(file).file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        let names: &[&str] = match &*name {
            "ledger" | "fair" => &["policy_fair", "fair_bound"],
            "params" => &["params"],
            "state" => &["state", "moderator"],
            _ => &["moderator"],
        };
        let own = format!("policy_{name}");
        let path = format!("irqmod/tests/{own}.rs");
        if self.tree.join(path).exists() && file != "ledger.rs" {
            return vec![own];
        }
        strings(names)
    }

    /// The models of planted bugs, with these arguments of the test program.
    fn models(&self, args: &[&str]) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo
            .args("test -q -p model --release --test planted_bugs".split(' '))
            .args(args)
            .current_dir(&self.pristine)
            .env("CARGO_TARGET_DIR", self.target.with_file_name("loom"))
            .env("RUSTFLAGS", "--cfg loom");
        cargo
    }

    /// The loom model that is for the bug. It plants the bug itself, and passes if it notices.
    fn model(&self, bug: &Bug) -> Result<Outcome, String> {
        let mut build = self.models(&["--no-run"]);
        let built = build.output().map_err(failed("cargo"))?;
        if !built.status.success() {
            let text = String::from_utf8_lossy(&built.stderr);
            return Err(format!("the loom models do not build:\n{text}"));
        }
        let began = Instant::now();
        let mut model = self.models(&["--", "--exact", bug.name]);
        Ok(match run(&mut model)? {
            Some(true) => Outcome::Killed(began.elapsed()),
            Some(false) => Outcome::Survived,
            None => Outcome::Hung,
        })
    }

    fn row(&self, bug: &'static Bug) -> Result<Row, String> {
        let path = self.tree.join("irqmod/src").join(bug.file);
        let text = fs::read_to_string(&path).map_err(failed(path.display()))?;
        let planted = with_bug(text.clone(), bug)?;
        write_if_new(&path, planted.as_bytes())?;
        let outcomes = self.outcomes(bug);
        write_if_new(&path, text.as_bytes())?;
        Ok(Row {
            bug,
            outcomes: outcomes?.map(Outcome::text),
        })
    }

    /// Where rows are kept.
    fn kept(&self) -> PathBuf {
        self.target.with_file_name("rows")
    }

    /// The row of `bug`, if it was kept.
    fn resume(&self, bug: &'static Bug) -> Option<Row> {
        let text = fs::read_to_string(self.kept()).ok()?;
        let mut fields = text
            .lines()
            .map(|line| line.split('\t'))
            .find_map(|mut fields| (fields.next() == Some(bug.name)).then_some(fields))?;
        let mut next = || fields.next().map(String::from);
        let outcomes = [next()?, next()?, next()?, next()?];
        Some(Row { bug, outcomes })
    }

    /// Keeps all rows.
    fn keep(&self, rows: &[Row]) -> Result<(), String> {
        let lines: String = rows
            .iter()
            .map(|row| format!("{}\t{}\n", row.bug.name, row.outcomes.join("\t")))
            .collect();
        write_if_new(&self.kept(), lines.as_bytes())
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).into()).collect()
}

/// The files of the protocol, beside the policies.
const PROTOCOL: &[&str] = &[
    "moderator.rs",
    "moderator/handler.rs",
    "state.rs",
    "platform.rs",
];

/// Whether the sequences and the explorer go through this file.
fn is_protocol(file: &str) -> bool {
    let policies = ["resched", "threaded", "irqpoll", "overflow", "hardirq"];
    match file.strip_prefix("policy/") {
        Some(name) => policies.iter().any(|policy| name.starts_with(policy)),
        None => PROTOCOL.contains(&file),
    }
}

/// Runs a program; nothing if it does not end.
fn run(command: &mut Command) -> Result<Option<bool>, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed("a check"))?;
    let patience = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(failed("a check"))? {
            return Ok(Some(status.success()));
        }
        if Instant::now() > patience {
            child.kill().map_err(failed("a check"))?;
            child.wait().map_err(failed("a check"))?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

const HEAD: &str = "\
.. SPDX-License-Identifier: GPL-2.0

===========
Kill matrix
===========

Written by ``cargo run -p kill --release -- --write``. Each row is a bug of one place, planted in a copy of the crate: what
has gone wrong in the field, or what a mechanism warns of. A column is a check, with the time after which it failed, on two
loaded cores.

- *tests*: the tests of the file the bug is in (``irqmod/tests``).
- *sequences*: 1000 random sequences, with a fixed seed.
- *explorer*: the 10000 nearest states of each scenario (``tests/explore``).
- *loom*: the model that is for this bug (``tests/model/bugs.rs``).

``passes``: the check ran, and noticed nothing. ``-``: it was not run, because it does not go through that code (or with
``--first``, because another one had noticed). ``?``: it is still to be run. ``model``: the tests of
``tests/model`` demand that a loom model notices, and were not timed here (``--loom`` does that).

";

fn page(rows: &[Row]) -> String {
    let mut page = String::from(HEAD);
    let killed = |check: usize| {
        let by = rows.iter().filter(|row| kills(&row.outcomes[check]));
        format!("{} by {}", by.count(), CHECKS[check])
    };
    let counts: Vec<_> = (0..CHECKS.len()).map(killed).collect();
    let dead = rows.iter().filter(|row| row.is_dead()).count();
    let _ = writeln!(
        page,
        "{dead} of {} are noticed, {} are still to be run: {}.\n",
        rows.len(),
        rows.iter().filter(|row| row.is_unknown()).count(),
        counts.join(", ")
    );
    page += ".. list-table::\n   :widths: 30 34 9 9 9 9\n   :header-rows: 1\n\n";
    let _ = writeln!(page, "   * - Bug\n     - What it breaks");
    for check in CHECKS {
        let _ = writeln!(page, "     - {check}");
    }
    for row in rows {
        let _ = writeln!(
            page,
            "   * - ``{}``\n     - {}",
            row.bug.name, row.bug.invariant
        );
        for outcome in &row.outcomes {
            // A dash alone would begin a list.
            let outcome = outcome.replace(NOT_RUN, "\\-");
            let _ = writeln!(page, "     - {outcome}");
        }
    }
    page
}

impl Row {
    /// The row of a bug that no check was run on.
    fn unknown(bug: &'static Bug) -> Self {
        let mut outcomes = [UNKNOWN; 4].map(String::from);
        outcomes[3] = match bug.caught_by.is_empty() {
            true => Outcome::NotRun.text(),
            false => Outcome::Modelled.text(),
        };
        Self { bug, outcomes }
    }

    /// Nobody has noticed, but not all were asked.
    fn is_unknown(&self) -> bool {
        !self.is_dead() && self.outcomes.iter().any(|outcome| outcome == UNKNOWN)
    }

    fn is_dead(&self) -> bool {
        self.outcomes.iter().any(|outcome| kills(outcome))
    }
}

/// What is asked for.
#[derive(Default)]
struct Args {
    write: bool,
    loom: bool,
    first: bool,
    resume: bool,
    report: bool,
    filter: String,
}

fn parse() -> Args {
    let mut args = Args::default();
    for arg in env::args().skip(1) {
        match arg.as_str() {
            "--write" => args.write = true,
            "--loom" => args.loom = true,
            "--report" => args.report = true,
            "--first" => args.first = true,
            "--resume" => args.resume = true,
            _ => args.filter = arg,
        }
    }
    args
}

/// Without a bug nothing may fail.
fn check_soundness(place: &Place) -> Result<(), String> {
    let outcomes = place.outcomes(&mutants::NONE)?.map(Outcome::text);
    match outcomes.iter().any(|outcome| kills(outcome)) {
        true => Err(format!("without a bug: {outcomes:?}")),
        false => Ok(()),
    }
}

fn matrix() -> Result<bool, String> {
    let args = parse();
    let place = Place::new(&args)?;
    place.refresh()?;
    if !(args.resume || args.report) {
        check_soundness(&place)?;
    }
    let mut rows = Vec::new();
    for bug in mutants::MORE.iter().chain(BUGS) {
        if !bug.name.contains(&args.filter) {
            continue;
        }
        let kept = place.resume(bug).filter(|_| args.resume || args.report);
        let row = match kept {
            Some(row) => row,
            None if args.report => Row::unknown(bug),
            None => place.row(bug)?,
        };
        let fate = match row.is_dead() || row.is_unknown() {
            true => "",
            false => "  SURVIVES",
        };
        let [tests, sequences, explorer, loom] = &row.outcomes;
        println!(
            "{:<42} {tests:>9} {sequences:>9} {explorer:>9} {loom:>9}{fate}",
            bug.name
        );
        rows.push(row);
        if args.filter.is_empty() && !args.report {
            place.keep(&rows)?;
        }
    }
    if args.write && args.filter.is_empty() {
        let path = place.root.join("Documentation/kill-matrix.rst");
        write_if_new(&path, page(&rows).as_bytes())?;
    }
    let unknown = rows.iter().filter(|row| row.is_unknown()).count();
    let alive = rows.iter().filter(|row| !row.is_dead()).count() - unknown;
    println!(
        "{} bugs, {alive} survive, {unknown} are still to be run",
        rows.len()
    );
    Ok(alive + unknown == 0)
}

fn main() -> ExitCode {
    match matrix() {
        Ok(all_dead) => ExitCode::from(u8::from(!all_dead)),
        Err(error) => {
            eprintln!("kill: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bug whose place has moved is one that nobody looks for.
    #[test]
    fn planted_faults_have_their_places() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../irqmod/src");
        for bug in BUGS.iter().chain(mutants::MORE) {
            let text = fs::read_to_string(src.join(bug.file)).unwrap();
            with_bug(text, bug).unwrap();
        }
    }

    #[test]
    fn planted_faults_have_names_of_their_own() {
        let mut names: Vec<_> = BUGS.iter().chain(mutants::MORE).map(|b| b.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
