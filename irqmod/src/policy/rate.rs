// SPDX-License-Identifier: GPL-2.0

//! `rate`: poll in softirq, paced by a timer, while the completions of a queue come fast.
//!
//! The handler drains, and completions are counted in windows. A window in which they came
//! `interval_us` apart or less is followed by a *trial*: the line is masked, and the softirq poller
//! drains, rests `pace_us` when it saw the queue empty, and drains again. A window of polling pays if
//! its passes found at least [`WORTH`] completions each, on average; then the next one follows, up to
//! [`MAX_GOOD`]. After [`MAX_FAILED`] windows in a row that did not pay there is no trial for
//! [`BACK_OFF`] windows.
//!
//! # What differs from the proposal
//!
//! - Completing the poller and returning the whole budget, which corrupts the softirq's list, can't be
//!   said: the answer to the core is made by [`crate::PollPass`], either by staying or by completing.
//! - A drain in the handler is bounded; one that uses its budget up goes on in the poller.
//! - A trial ends as soon as it can't pay any more, whether or not anything completes: a device that
//!   falls silent is polled for half a window of passes at most.
//!
//! # What it does not see
//!
//! The signal is that of one queue, and it is kept as it was proposed. In the field 56 queues with a
//! completion each 11.2 us, just above the threshold, had their 14 CPUs locked up, and not one of them
//! was ever polled. No threshold is right: what starves is the CPU, at a rate of its queues that depends
//! on how many there are and on what a completion costs.

use super::{
    ranged,
    Conflict,
    Cpu,
    Key,
    Memory,
    Policy,
    Values,
    LINE_WORDS,
    POLL_CONFLICT, //
};
use crate::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{ratio, Condition, Reason, EMPTY},
    time::{
        Instant,
        Span, //
    },
    verdict::{
        After,
        Deferral,
        Next,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// Completions that a pass must find, on average, for polling to pay: with one it replaces an
/// interrupt by a timer interrupt and a softirq.
pub const WORTH: u32 = 2;

/// Windows of polling in a row that end an episode, to see whether it still takes polling: with the
/// defaults half a million completions.
pub const MAX_GOOD: u32 = 64;

/// Windows in a row that don't pay and end the trials for a while: one may be an accident.
pub const MAX_FAILED: u32 = 2;

/// Windows without a trial after that: with the defaults 524,288 completions.
pub const BACK_OFF: u32 = 64;

/// Smallest window: what two full passes of the softirq find is no measurement.
const MIN_WINDOW: u32 = 512;

/// Largest window: at the slowest rate that is polled by default 0.65 s.
const MAX_WINDOW: u32 = 65_536;

/// Longest interval and pace: a tenth of the longest tick.
const MAX_US: u32 = 1_000;

/// Completions since the window began.
const WINDOW: Condition = Condition::measured("completions in the window");

/// What a completion took, on average, in a window that is full; it takes no more than that.
const INTERVAL: Condition = Condition::measured("interval ns");

/// Windows since the trials ended for a while.
const RESTED: Condition = Condition::measured("windows rested");

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    interval_us: u32,
    pace_us: u32,
    window: u32,
    budget: Budget,
}

/// What the policy remembers of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// When the window began; zero before the first.
    began: Instant,
    /// Completions in it.
    found: u32,
    /// Passes of the poller in a window of polling.
    passes: u32,
    /// Whether this is one.
    polling: bool,
    /// Windows of polling in a row: those that paid, and those that did not.
    good: u32,
    failed: u32,
    /// Windows that are still to come without a trial.
    back_off: u32,
}

/// The small numbers of a [`Line`] share a word.
const BITS: u32 = 8;
const BYTE: u32 = (1 << BITS) - 1;

impl Memory for Line {
    const NONE: bool = false;

    fn from_words(words: [u32; LINE_WORDS]) -> Self {
        let [low, high, found, passes, small, _] = words;
        Self {
            began: Instant::from_nanos(u64::from(high) << 32 | u64::from(low)),
            found,
            passes,
            polling: small & BYTE != 0,
            good: small >> BITS & BYTE,
            failed: small >> (2 * BITS) & BYTE,
            back_off: small >> (3 * BITS) & BYTE,
        }
    }

    fn into_words(self) -> [u32; LINE_WORDS] {
        let nanos = self.began.as_nanos();
        let small = u32::from(self.polling)
            | (self.good & BYTE) << BITS
            | (self.failed & BYTE) << (2 * BITS)
            | (self.back_off & BYTE) << (3 * BITS);
        // CAST: The lower half, then the upper half.
        [
            nanos as u32,
            (nanos >> 32) as u32,
            self.found,
            self.passes,
            small,
            0,
        ]
    }
}

impl Line {
    /// Begins a window.
    fn restart(&mut self, now: Instant) {
        self.began = now;
        self.found = 0;
        self.passes = 0;
    }

    /// Counts what a drain found.
    fn count(&mut self, drain: Drain) {
        self.found = self.found.saturating_add(drain.found());
    }

    /// Ends an episode of polling.
    fn stop(&mut self, now: Instant) {
        self.polling = false;
        self.good = 0;
        self.restart(now);
    }

    /// A window of polling paid.
    fn succeed(&mut self, now: Instant) {
        self.failed = 0;
        self.good += 1;
        if self.good >= MAX_GOOD {
            self.stop(now);
        } else {
            self.restart(now);
        }
    }

    /// A window of polling did not pay.
    fn fail(&mut self, now: Instant) {
        self.failed += 1;
        if self.failed >= MAX_FAILED {
            self.failed = 0;
            self.back_off = BACK_OFF;
        }
        self.stop(now);
    }
}

impl Config {
    /// Whether the completions of a whole window came fast: without a division.
    fn is_fast(&self, line: &Line, now: Instant) -> bool {
        let allowed = Span::from_micros(self.interval_us).times(line.found.into());
        now.since(line.began) <= allowed
    }

    /// Ends a window of interrupts if it is full; returns whether to try polling.
    fn is_trial(&self, line: &mut Line, now: Instant) -> bool {
        if line.began == Instant::ZERO {
            line.restart(now);
        }
        if line.found < self.window {
            return false;
        }
        let fast = self.is_fast(line, now);
        let rested = line.back_off == 0;
        line.back_off = line.back_off.saturating_sub(1);
        line.restart(now);
        line.polling = fast && rested;
        line.polling
    }

    /// Judges a window of polling when it is full, or can't pay any more.
    fn judge(&self, line: &mut Line, now: Instant) {
        let worth = line.passes.saturating_mul(WORTH);
        if line.found >= self.window && line.found >= worth {
            line.succeed(now);
        } else if worth > line.found.max(self.window) {
            line.fail(now);
        }
    }
}

impl Policy for Config {
    const NAME: &'static str = "rate";
    const KEYS: &'static [Key] = &[
        Key {
            name: "interval_us",
            min: 1,
            max: MAX_US,
            default: 10,
        },
        Key {
            name: "pace_us",
            min: 1,
            max: MAX_US,
            default: 10,
        },
        Key {
            name: "window",
            min: MIN_WINDOW,
            max: MAX_WINDOW,
            default: 8_192,
        },
        Key {
            name: "budget",
            min: 1,
            max: Budget::POLL_DEFAULT.get(),
            default: 64,
        },
    ];
    const GLANCES: bool = false;
    const WEIGHS_PASSES: bool = true;
    type Line = Line;

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [interval_us, pace_us, window, budget, ..] = *values;
        Ok(Self {
            interval_us,
            pace_us,
            window,
            budget: Budget::polled(budget).ok_or(POLL_CONFLICT)?,
        })
    }

    fn values(&self) -> Values {
        [
            self.interval_us,
            self.pace_us,
            self.window,
            self.budget.get(),
            0,
            0,
            0,
        ]
    }

    /// Within a window it only counts.
    fn looks(&self, line: &Line, drain: Drain) -> Looks {
        let found = line.found.saturating_add(drain.found());
        if found < self.window && line.began != Instant::ZERO && !line.polling {
            Looks::empty()
        } else {
            Looks::CLOCK
        }
    }

    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Drain(Budget::POLL_DEFAULT))
    }

    fn on_drained(&self, _: Glance, drain: Drain) -> Option<After> {
        (drain.found() == 0).then_some(After::Open)
    }

    fn weigh_drained(
        &self,
        seen: &Observation,
        drain: Drain,
        line: &mut Line,
        _: &mut Cpu,
    ) -> After {
        if line.polling {
            // A pause ended the episode where it was.
            line.stop(seen.now);
        }
        line.count(drain);
        match (self.is_trial(line, seen.now), drain) {
            (false, Drain::Drained(_)) => After::Open,
            _ => After::Defer(Deferral::Softirq),
        }
    }

    fn on_pass(&self, seen: &Observation, drain: Drain, line: &mut Line) -> Next {
        line.count(drain);
        if line.polling {
            line.passes = line.passes.saturating_add(1);
            self.judge(line, seen.now);
        } else {
            let _ = self.is_trial(line, seen.now);
        }
        match drain {
            Drain::More(_) => Next::Again,
            Drain::Drained(_) if line.polling => Next::Rest(Span::from_micros(self.pace_us)),
            Drain::Drained(_) => Next::HandBack,
        }
    }

    /// Of the poller.
    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[EMPTY, WINDOW, INTERVAL, RESTED];

    fn why(
        &self,
        seen: &Observation,
        found: u32,
        line: &Self::Line,
        _: &Cpu,
        say: &mut dyn FnMut(Reason),
    ) {
        if found == 0 {
            return say(Reason::held(0));
        }
        let total = line.found.saturating_add(found);
        if total < self.window {
            return say(Reason::new(1, total, self.window));
        }
        let took = seen.now.since(line.began).as_nanos();
        let allowed = self.interval_us.saturating_mul(1_000);
        say(Reason::new(2, ratio(took, total), allowed));
        if line.back_off != 0 {
            say(Reason::new(
                3,
                BACK_OFF - line.back_off.min(BACK_OFF),
                BACK_OFF,
            ));
        }
    }
}
