// SPDX-License-Identifier: GPL-2.0

//! What happened, event by event, for those who want to know why.

use crate::{
    check::Violation,
    Ns, //
};
use serde::Serialize;
use std::{
    collections::VecDeque,
    fmt, //
};

/// A thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A message was sent, and was it lost?
    Sent {
        /// The line.
        line: u32,
        /// It was.
        lost: bool,
    },
    /// A message was due while the vector was masked.
    Kept {
        /// The line.
        line: u32,
        /// The device remembers it.
        latched: bool,
    },
    /// An interrupt came while the line was disabled or its handler ran.
    Absorbed {
        /// The line.
        line: u32,
    },
    /// The handler of a line began.
    Handler {
        /// The line.
        line: u32,
    },
    /// It returned.
    Answered {
        /// The line.
        line: u32,
        /// It did not say that the interrupt was somebody else's.
        wanted: bool,
    },
    /// A line was deferred.
    Deferred {
        /// The line.
        line: u32,
    },
    /// A drain ended.
    Drained {
        /// The line.
        line: u32,
        /// Completions.
        found: u32,
    },
    /// A line was disabled.
    Masked {
        /// The line.
        line: u32,
        /// Disables, with this one.
        depth: u32,
    },
    /// A line was enabled.
    Unmasked {
        /// The line.
        line: u32,
        /// Disables that are left.
        depth: u32,
    },
    /// A task began to do something to a line.
    Meddled {
        /// The line.
        line: u32,
        /// What it does.
        with: &'static str,
    },
    /// A task takes a CPU away, or brings it back.
    Plugged {
        /// The CPU.
        other: u32,
        /// It comes back.
        back: bool,
    },
    /// A task runs.
    Runs {
        /// What it is.
        task: &'static str,
        /// Its number.
        number: u32,
    },
    /// The CPU is idle.
    Idle,
    /// The watchdog of the CPU reported.
    Stuck {
        /// What it printed. Unit: its seconds.
        seconds: u64,
    },
}

impl What {
    /// The line that it is about; none: it is about the CPU.
    fn line(self) -> Option<u32> {
        match self {
            Self::Sent { line, .. }
            | Self::Kept { line, .. }
            | Self::Absorbed { line }
            | Self::Handler { line }
            | Self::Answered { line, .. }
            | Self::Deferred { line }
            | Self::Drained { line, .. }
            | Self::Masked { line, .. }
            | Self::Unmasked { line, .. }
            | Self::Meddled { line, .. } => Some(line),
            Self::Plugged { .. } | Self::Runs { .. } | Self::Idle | Self::Stuck { .. } => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { lost: true, .. } => f.write_str("message sent, and lost"),
            Self::Sent { .. } => f.write_str("message sent"),
            Self::Kept { latched: true, .. } => f.write_str("message latched at the device"),
            Self::Kept { .. } => f.write_str("message forgotten by the device"),
            Self::Absorbed { .. } => f.write_str("interrupt while disabled or in progress"),
            Self::Handler { .. } => f.write_str("handler begins"),
            Self::Answered { wanted: true, .. } => f.write_str("handler: handled"),
            Self::Answered { .. } => f.write_str("handler: none"),
            Self::Deferred { .. } => f.write_str("deferred"),
            Self::Drained { found, .. } => write!(f, "drained {found}"),
            Self::Masked { depth, .. } => write!(f, "disabled, depth {depth}"),
            Self::Unmasked { depth, .. } => write!(f, "enabled, depth {depth}"),
            Self::Meddled { with, .. } => f.write_str(with),
            Self::Plugged { other, back: true } => write!(f, "brings CPU {other} back"),
            Self::Plugged { other, .. } => write!(f, "takes CPU {other} away"),
            Self::Runs { task, number } => write!(f, "{task} {number} runs"),
            Self::Idle => f.write_str("idle"),
            Self::Stuck { seconds } => write!(f, "watchdog: stuck for {seconds}s"),
        }
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When.
    pub at: Ns,
    /// On which CPU of its world.
    pub cpu: u32,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, ns) = (self.at / 1_000_000, self.at % 1_000_000);
        let line = self.what.line();
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        write!(
            f,
            "{ms:>4}.{ns:06} ms  CPU {}  {line}{}",
            self.cpu, self.what
        )
    }
}

/// The newest entries.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    room: usize,
    entries: VecDeque<Entry>,
}

impl Trace {
    /// Keeps the newest `room` entries; 0: none.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            entries: VecDeque::new(),
        }
    }

    /// Notes an entry.
    pub(crate) fn note(&mut self, at: Ns, cpu: u32, what: What) {
        if self.room == 0 {
            return;
        }
        if self.entries.len() == self.room {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { at, cpu, what });
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The last `count` entries, oldest first, that led to `violation`. What happened several times
    /// in a row is there once, with how often it happened.
    pub fn before(&self, violation: &Violation, count: usize) -> Vec<(Entry, usize)> {
        let concerns = |entry: &&Entry| {
            let place = if violation.rule.is_about_cpu() {
                entry.cpu == violation.line
            } else {
                entry.what.line() == Some(violation.line)
            };
            let plugged = matches!(entry.what, What::Plugged { .. });
            entry.at <= violation.at && (place || plugged)
        };
        let mut last: VecDeque<(Entry, usize)> = VecDeque::new();
        for entry in self.entries().rev().filter(concerns) {
            let full = last.len() == count;
            match last.front_mut() {
                Some((first, times)) if first.what == entry.what => {
                    first.at = entry.at;
                    *times += 1;
                }
                _ if full => break,
                _ => last.push_front((*entry, 1)),
            }
        }
        last.into()
    }
}
