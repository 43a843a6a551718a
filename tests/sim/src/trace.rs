// SPDX-License-Identifier: GPL-2.0

//! What happened, event by event, for those who want to know why.

use crate::Ns;
use serde::Serialize;

/// A thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The handler of a line began.
    Handler {
        /// The line.
        line: u32,
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
    /// The watchdog of the CPU reported.
    Stuck {
        /// What it printed. Unit: its seconds.
        seconds: u64,
    },
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

/// The newest entries.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    room: usize,
    entries: std::collections::VecDeque<Entry>,
}

impl Trace {
    /// Keeps the newest `room` entries; 0: none.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            entries: std::collections::VecDeque::new(),
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
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}
