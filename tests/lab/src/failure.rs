// SPDX-License-Identifier: GPL-2.0

//! What went wrong: always the step, and where known what it said, its log and the command that
//! repeats it.

use std::{
    fmt,
    path::PathBuf, //
};

/// Result of anything that the lab does.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Exit code of a failure that says no other.
const PLAIN: i32 = 1;

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failure(Box<Details>);

#[derive(Debug)]
struct Details {
    step: String,
    cause: String,
    said: Vec<String>,
    log: Option<PathBuf>,
    repeat: Option<String>,
    code: i32,
}

impl Failure {
    /// Names the step that failed and why.
    pub(crate) fn new(step: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self(Box::new(Details {
            step: step.into(),
            cause: cause.to_string(),
            said: Vec::new(),
            log: None,
            repeat: None,
            code: PLAIN,
        }))
    }

    /// Adds the last lines of the step's output.
    pub(crate) fn said(mut self, lines: Vec<String>) -> Self {
        self.0.said = lines;
        self
    }

    /// Adds the file that holds the step's output.
    pub(crate) fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.log = Some(path.into());
        self
    }

    /// Adds the command that repeats the step by hand.
    pub(crate) fn repeat(mut self, command: impl Into<String>) -> Self {
        self.0.repeat = Some(command.into());
        self
    }

    /// Adds the command that repeats everything, unless the step has one of its own.
    pub(crate) fn or_repeat(mut self, command: impl FnOnce() -> String) -> Self {
        self.0.repeat = self.0.repeat.or_else(|| Some(command()));
        self
    }

    /// Sets the exit code of the whole program, which is [`PLAIN`] otherwise.
    pub(crate) fn exit_code(mut self, code: i32) -> Self {
        self.0.code = code;
        self
    }

    /// The same where the step has set none.
    pub(crate) fn or_exit_code(self, code: i32) -> Self {
        match self.code() {
            PLAIN => self.exit_code(code),
            _ => self,
        }
    }

    /// The exit code that the program ends with.
    pub(crate) fn code(&self) -> i32 {
        self.0.code
    }

    /// The cause alone, for a table.
    pub(crate) fn cause(&self) -> &str {
        &self.0.cause
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.step, self.0.cause)?;
        for line in &self.0.said {
            write!(f, "\n  | {line}")?;
        }
        if let Some(log) = &self.0.log {
            write!(f, "\n  log:    {}", log.display())?;
        }
        if let Some(repeat) = &self.0.repeat {
            write!(f, "\n  repeat: {repeat}")?;
        }
        Ok(())
    }
}

/// Turns a library's error into a [`Failure`] of a named step.
pub(crate) trait At<T> {
    /// Names the step.
    fn at(self, step: impl Into<String>) -> Result<T>;
}

impl<T, E: fmt::Display> At<T> for std::result::Result<T, E> {
    fn at(self, step: impl Into<String>) -> Result<T> {
        self.map_err(|error| Failure::new(step, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_step_output_log_and_repeat() {
        let failure = Failure::new("build", "exit code 2")
            .said(vec!["first".into(), "second".into()])
            .log("/x/y.log")
            .repeat("make")
            .or_repeat(|| "all of it".into());
        let text = failure.to_string();
        assert_eq!(
            text,
            "build: exit code 2\n  | first\n  | second\n  log:    /x/y.log\n  repeat: make"
        );
        let failure = Failure::new("build", "exit code 2").or_repeat(|| "all of it".into());
        assert!(failure.to_string().ends_with("\n  repeat: all of it"));
    }

    #[test]
    fn exit_code_of_a_step_wins() {
        let failure = || Failure::new("build", "cause");
        assert_eq!(failure().code(), 1);
        assert_eq!(failure().or_exit_code(125).code(), 125);
        assert_eq!(failure().exit_code(2).or_exit_code(125).code(), 2);
    }
}
