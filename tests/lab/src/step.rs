// SPDX-License-Identifier: GPL-2.0

//! One external command: its output goes to a log, its failure names the log and the command.

use crate::{
    failure::{
        Failure,
        Result, //
    },
    lab::{
        make_dir,
        Lab, //
    },
};
use std::{
    collections::VecDeque,
    env,
    ffi::{
        OsStr,
        OsString, //
    },
    fs::File,
    io::{
        self,
        BufRead,
        BufReader,
        Write, //
    },
    os::unix::process::CommandExt,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        ExitStatus,
        Stdio, //
    },
};

/// So many of the last lines of a command's output are part of its failure.
const SAID: usize = 12;

/// A command to be run for a named purpose.
pub(crate) struct Step<'a> {
    lab: &'a Lab,
    name: String,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
}

impl<'a> Step<'a> {
    /// A step called `name` which runs `program` in the checkout.
    pub(crate) fn new(lab: &'a Lab, name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Self {
            lab,
            name: name.into(),
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            dir: lab.root.clone(),
        }
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the command's environment.
    pub(crate) fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the folder to run in.
    pub(crate) fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Runs the command and discards its output, but for the log.
    pub(crate) fn run(self) -> Result<()> {
        self.run_with(|_| {})
    }

    /// Runs the command and hands each line of its output to `on_line`; a dry run only tells.
    pub(crate) fn run_with(self, on_line: impl FnMut(&str)) -> Result<()> {
        if self.lab.dry_run {
            self.lab.would(&format!("{}: {}", self.name, self.repeat()));
            return Ok(());
        }
        self.execute(on_line)
    }

    /// Runs the command, even in a dry run (it must change nothing), and returns its output.
    pub(crate) fn output(self) -> Result<String> {
        let mut text = String::new();
        self.execute(|line| {
            text.push_str(line);
            text.push('\n');
        })?;
        Ok(text)
    }

    /// Runs the command to its end; whatever goes wrong, the failure says how to look at it.
    fn execute(&self, mut on_line: impl FnMut(&str)) -> Result<()> {
        let log = self.lab.log_path(&self.name);
        make_dir(log.parent().unwrap_or(Path::new(".")))?;
        let mut last = VecDeque::new();
        let ended = self.follow(&log, |line| {
            last.truncate(SAID - 1);
            last.push_front(line.to_owned());
            on_line(line);
        });
        let cause = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Failure::new(&self.name, cause)
            .said(last.into_iter().rev().collect())
            .log(log)
            .repeat(self.repeat()))
    }

    fn follow(&self, log: &Path, mut on_line: impl FnMut(&str)) -> io::Result<ExitStatus> {
        let mut log = File::create(log)?;
        writeln!(log, "$ {}", self.repeat())?;
        let (reader, writer) = io::pipe()?;
        // The command holds the writing end until it is dropped.
        let mut child = {
            let mut command = self.command();
            command.stdout(writer.try_clone()?).stderr(writer);
            command.spawn()?
        };
        let copy = || {
            for line in BufReader::new(reader).split(b'\n') {
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                writeln!(log, "{line}")?;
                on_line(&line);
            }
            Ok(())
        };
        // Where the log can't be written (the disk is full), nobody reads any more, which ends the
        // command like a closed terminal does: it may have to tidy up.
        let copied: io::Result<()> = copy();
        let status = child.wait()?;
        copied.map(|()| status)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        end_with_us(&mut command);
        command
    }

    /// The shell words that repeat this step.
    pub(crate) fn repeat(&self) -> String {
        let mut words = vec![format!("cd {} &&", quote(self.dir.as_os_str()))];
        for (key, value) in &self.env {
            words.push(format!("{}={}", key.to_string_lossy(), quote(value)));
        }
        words.push(quote(&self.program));
        words.extend(self.args.iter().map(|arg| quote(arg)));
        words.join(" ")
    }
}

/// Has the kernel end the child when the lab ends, however that happens.
pub(crate) fn end_with_us(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: Between fork and exec the closure only makes async-signal-safe system calls.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid().unsigned_abs() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        })
    };
}

/// The shell words that repeat everything that this process does.
pub(crate) fn repeat_all() -> String {
    let words = env::args_os().skip(1);
    let words: Vec<_> = words.map(|word| quote(&word)).collect();
    format!("cargo lab {}", words.join(" "))
}

/// Quotes one word for a shell.
pub(crate) fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_a_shell_would_split() {
        assert_eq!(quote(OsStr::new("a-b=/c")), "a-b=/c");
        assert_eq!(quote(OsStr::new("")), "''");
        assert_eq!(quote(OsStr::new("a b'c")), r"'a b'\''c'");
    }

    #[test]
    fn failure_names_log_and_command() {
        let lab = Lab::new(false).unwrap();
        let step = Step::new(&lab, "unit test false", "sh").args(["-c", "echo out; exit 3"]);
        let text = step.run().unwrap_err().to_string();
        assert!(text.contains("unit test false: exit status: 3"), "{text}");
        assert!(text.contains("logs/unit-test-false.log"), "{text}");
        assert!(text.contains("sh -c 'echo out; exit 3'"), "{text}");
        assert!(text.contains("\n  | out\n"), "{text}");
    }

    #[test]
    fn only_the_last_lines_are_told() {
        let lab = Lab::new(false).unwrap();
        let step = Step::new(&lab, "unit test lines", "sh").args(["-c", "seq 100; exit 1"]);
        let text = step.run().unwrap_err().to_string();
        let told: Vec<_> = text.lines().filter(|l| l.starts_with("  | ")).collect();
        assert_eq!((told.len(), told[0], told[11]), (12, "  | 89", "  | 100"));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_like_any_failure() {
        let lab = Lab::new(false).unwrap();
        let step = Step::new(&lab, "unit test nowhere", "/nonexistent/program");
        let text = step.output().unwrap_err().to_string();
        assert!(text.contains("unit test nowhere: No such file"), "{text}");
        assert!(text.contains("log:") && text.contains("repeat:"), "{text}");
    }
}
