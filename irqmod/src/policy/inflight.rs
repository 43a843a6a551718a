// SPDX-License-Identifier: GPL-2.0

//! `inflight`: poll in the interrupt thread while the device owes many completions.
//!
//! The handler drains. If the device then still has `high` commands or more, waiting for interrupts
//! is not worth it: the line is masked, and the thread drains, sleeps `interval_us` whenever it sees
//! the queue empty, and drains again. It gives the source back once the device has had fewer than
//! `low` commands in [`LOW_CHECKS`] looks in a row that found nothing, or after `max_loops` drains.
//!
//! # What differs from the proposal
//!
//! - A drain in the handler is bounded by a budget; one that uses it up goes on in the thread.
//! - The thread really sleeps each time the queue was seen empty, and not only while nothing
//!   completes: an interrupt thread is `SCHED_FIFO`, and a resched point alone never yields to an
//!   ordinary task from there.
//! - The loop ends at `max_loops` whether or not anything completes, at the first empty queue.
//! - `low` and `high` are not compared with the depth of the queue, which a parameter string does not
//!   know: on a queue that can't hold `high` commands the policy never engages, and the defaults are
//!   good for every queue.
//!
//! # What it does not see
//!
//! The signal is that of one queue. Many queues, each below `high`, keep a CPU in hard interrupts
//! without one of them ever being deferred.

use super::{
    ranged,
    Conflict,
    Cpu,
    Key,
    Memory,
    Policy,
    Values,
    LINE_WORDS,
    POLL_BUDGET,
    POLL_CONFLICT, //
};
use crate::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{Condition, Reason, BUDGET, EMPTY},
    time::Span,
    verdict::{
        After,
        Deferral,
        Next,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// Looks in a row, each finding nothing and few commands, that end the polling. One may fall into
/// the gap between a completion and the submission that follows it; three are 90 us by default,
/// longer than such a gap.
pub const LOW_CHECKS: u32 = 3;

/// Largest `high`, and one more than the largest `low`: the commands that the deepest NVMe queue
/// holds.
const MAX_IN_FLIGHT: u32 = 65_535;

/// Largest `max_loops`: with the longest interval 10 s, a third of the block layer's time-out of a
/// request. Until the loop ends, a lost completion has nobody but the time-out to find it.
const MAX_LOOPS: u32 = 10_000;

/// Longest `interval_us`: a tenth of the longest tick.
const MAX_INTERVAL_US: u32 = 1_000;

/// Commands that the device still has.
const IN_FLIGHT: Condition = Condition::measured("in flight");

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    high: u32,
    low: u32,
    max_loops: u32,
    interval_us: u32,
    budget: Budget,
}

/// What the thread remembers while it polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Drains since the source was taken.
    loops: u32,
    /// Those of them, the last in a row, that found nothing and few commands.
    low: u32,
}

impl Memory for Line {
    const NONE: bool = false;

    fn from_words(words: [u32; LINE_WORDS]) -> Self {
        Self {
            loops: words[0],
            low: words[1],
        }
    }

    fn into_words(self) -> [u32; LINE_WORDS] {
        [self.loops, self.low, 0, 0, 0, 0]
    }
}

impl Config {
    /// Whether the thread should stop polling.
    fn is_over(&self, line: &Line) -> bool {
        line.low >= LOW_CHECKS || line.loops >= self.max_loops
    }
}

impl Policy for Config {
    const NAME: &'static str = "inflight";
    const KEYS: &'static [Key] = &[
        Key {
            name: "high",
            min: 2,
            max: MAX_IN_FLIGHT,
            default: 32,
        },
        Key {
            name: "low",
            min: 1,
            max: MAX_IN_FLIGHT - 1,
            default: 3,
        },
        Key {
            name: "max_loops",
            min: 1,
            max: MAX_LOOPS,
            default: 1_000,
        },
        Key {
            name: "interval_us",
            min: 1,
            max: MAX_INTERVAL_US,
            default: 30,
        },
        POLL_BUDGET,
    ];
    const GLANCES: bool = false;
    const WEIGHS_PASSES: bool = true;
    const HOME: Option<Deferral> = Some(Deferral::Thread);
    type Line = Line;

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [high, low, max_loops, interval_us, budget, ..] = *values;
        if low >= high {
            return Err(Conflict("low must be less than high"));
        }
        Ok(Self {
            high,
            low,
            max_loops,
            interval_us,
            budget: Budget::polled(budget).ok_or(POLL_CONFLICT)?,
        })
    }

    fn values(&self) -> Values {
        [
            self.high,
            self.low,
            self.max_loops,
            self.interval_us,
            self.budget.get(),
            0,
            0,
        ]
    }

    fn looks(&self, _: &Line, _: Drain) -> Looks {
        Looks::IN_FLIGHT
    }

    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(Verdict::Drain(self.budget))
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
        // A pause may have ended the last loop where it was.
        *line = Line::default();
        match (drain, seen.in_flight) {
            (Drain::More(_), _) => After::Defer(Deferral::Thread),
            (_, Some(commands)) if commands >= self.high => After::Defer(Deferral::Thread),
            _ => After::Open,
        }
    }

    fn on_pass(&self, seen: &Observation, drain: Drain, line: &mut Line) -> Next {
        line.loops = line.loops.saturating_add(1);
        let few = seen.in_flight.is_none_or(|commands| commands < self.low);
        line.low = if few && drain.found() == 0 {
            line.low.saturating_add(1)
        } else {
            0
        };
        match drain {
            Drain::More(_) => Next::Again,
            Drain::Drained(_) if self.is_over(line) => {
                *line = Line::default();
                Next::HandBack
            }
            Drain::Drained(_) => Next::Rest(Span::from_micros(self.interval_us)),
        }
    }

    /// Of the handler and of the thread.
    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[EMPTY, IN_FLIGHT, BUDGET];

    fn why(
        &self,
        seen: &Observation,
        found: u32,
        _: &Self::Line,
        _: &Cpu,
        say: &mut dyn FnMut(Reason),
    ) {
        if found == 0 {
            return say(Reason::held(0));
        }
        say(Reason::new(1, seen.in_flight.unwrap_or(0), self.high));
        say(Reason::new(2, found, self.budget.get()));
    }
}
