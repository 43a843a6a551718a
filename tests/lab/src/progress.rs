// SPDX-License-Identifier: GPL-2.0

//! Progress of a long step: a bar on a terminal, a line a minute elsewhere.

use crate::lab::Lab;
use indicatif::ProgressBar;
use std::time::{
    Duration,
    Instant, //
};

const INTERVAL: Duration = Duration::from_secs(60);

/// Shows how far a step is.
pub(crate) struct Meter<'a> {
    lab: &'a Lab,
    bar: ProgressBar,
    what: String,
    expected: u64,
    start: Instant,
    said: Instant,
}

impl<'a> Meter<'a> {
    /// A step of about `expected` units.
    pub(crate) fn new(lab: &'a Lab, expected: u64, what: &str) -> Self {
        let now = Instant::now();
        Self {
            lab,
            bar: lab.bar(expected, what),
            what: what.to_owned(),
            expected,
            start: now,
            said: now,
        }
    }

    /// So much is done.
    pub(crate) fn advance(&mut self, done: u64) {
        self.bar.set_position(done.min(self.expected));
        if self.bar.is_hidden() && self.said.elapsed() > INTERVAL {
            self.said = Instant::now();
            let percent = 100 * done.min(self.expected) / self.expected.max(1);
            self.lab.say(&format!("{}: {percent} %", self.what));
        }
    }

    /// The step has ended well.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        self.lab.say(&format!(
            "{}: done in {} s",
            self.what,
            self.start.elapsed().as_secs()
        ));
    }
}
