// SPDX-License-Identifier: GPL-2.0

//! One external command: its output goes to a log, its failure names the log and the command.

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    lab::{
        make_dir,
        Lab, //
    },
};
use std::{
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
        let (status, log) = self.execute(on_line)?;
        if status.success() {
            return Ok(());
        }
        Err(self.failure(status, &log))
    }

    /// Runs the command, even in a dry run (it must change nothing), and returns its output.
    pub(crate) fn output(self) -> Result<String> {
        let mut text = String::new();
        let (status, log) = self.execute(|line| {
            text.push_str(line);
            text.push('\n');
        })?;
        if status.success() {
            return Ok(text);
        }
        Err(self.failure(status, &log))
    }

    fn failure(&self, status: ExitStatus, log: &Path) -> Failure {
        Failure::new(self.name.clone(), status)
            .log(log)
            .repeat(self.repeat())
    }

    fn execute(&self, mut on_line: impl FnMut(&str)) -> Result<(ExitStatus, PathBuf)> {
        let log_path = self.lab.log_path(&self.name);
        make_dir(log_path.parent().unwrap_or(Path::new(".")))?;
        let mut log = File::create(&log_path).at(&self.name)?;
        writeln!(log, "$ {}", self.repeat()).at(&self.name)?;
        let (reader, writer) = io::pipe().at(&self.name)?;
        let mut child = {
            let mut command = self.command();
            command
                .stdout(writer.try_clone().at(&self.name)?)
                .stderr(writer);
            command.spawn().map_err(|error| {
                Failure::new(&self.name, error)
                    .log(&log_path)
                    .repeat(self.repeat())
            })?
        };
        for line in BufReader::new(reader).split(b'\n') {
            let line = line.at(&self.name)?;
            let line = String::from_utf8_lossy(&line);
            writeln!(log, "{line}").at(&self.name)?;
            on_line(&line);
        }
        Ok((child.wait().at(&self.name)?, log_path))
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
    }
}
