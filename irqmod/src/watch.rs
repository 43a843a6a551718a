// SPDX-License-Identifier: GPL-2.0

//! What is counted of a line while somebody watches it: how much each invocation completed, and why
//! the policy did not act.
//!
//! A line that is watched takes another way through the moderator from the word on that says which
//! policy it has ([`Choice`](crate::policy::Choice)): one that is not pays nothing, not even a test.

use crate::{
    reason::{
        Condition,
        Reason, //
    },
    sync::{
        bump,
        raise,
        widen,
        Counter,
        Relaxed, //
    },
    time::{
        Instant,
        Span, //
    },
};
use core::{
    array,
    fmt, //
};

/// Where completions are drained. Each has a single writer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The handler, in a hard interrupt.
    Hardirq,
    /// The handler in a forced interrupt thread, or a replay.
    Forced,
    /// The softirq poller.
    Softirq,
    /// The interrupt thread.
    Thread,
    /// The work item.
    Work,
    /// The completion thread of a CPU.
    Cpu,
}

impl Context {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Hardirq,
        Self::Forced,
        Self::Softirq,
        Self::Thread,
        Self::Work,
        Self::Cpu,
    ];

    /// Its name where it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardirq => "hardirq",
            Self::Forced => "forced",
            Self::Softirq => "softirq",
            Self::Thread => "thread",
            Self::Work => "work",
            Self::Cpu => "cpu",
        }
    }
}

/// Buckets of a histogram: nothing, 1, 2 to 3, 4 to 7, and so on; the last one has no end.
pub const BUCKETS: usize = 14;

/// The bucket of an invocation that completed as many.
pub fn bucket(found: u32) -> usize {
    // CAST: At most 32.
    let bits = (u32::BITS - found.leading_zeros()) as usize;
    bits.min(BUCKETS - 1)
}

/// The least that is counted in a bucket. Unit: completions.
pub fn bucket_start(bucket: usize) -> u32 {
    match bucket {
        0 => 0,
        _ => 1 << (bucket - 1).min(31),
    }
}

/// Most [`Condition`]s that a policy has.
pub const MAX_CONDITIONS: usize = 5;

/// The number in a counter that is never added to.
fn word(counter: &Counter) -> u32 {
    // CAST: Stored from 32 bits.
    counter.load(Relaxed) as u32
}

/// What the invocations of one context found.
struct Found {
    max: Counter,
    buckets: [Counter; BUCKETS],
}

/// How often a condition was not met.
struct Unmet {
    times: Counter,
    measured: Counter,
    most: Counter,
    threshold: Counter,
}

/// The counters of a line that is watched.
pub(crate) struct Watch {
    found: [Found; Context::ALL.len()],
    acted: Counter,
    unmet: [Unmet; MAX_CONDITIONS],
}

impl Watch {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        Self {
            found: array::from_fn(|_| Found {
                max: Counter::new(0),
                buckets: array::from_fn(|_| Counter::new(0)),
            }),
            acted: Counter::new(0),
            unmet: array::from_fn(|_| Unmet {
                times: Counter::new(0),
                measured: Counter::new(0),
                most: Counter::new(0),
                threshold: Counter::new(0),
            }),
        }
    }

    /// An invocation is over that completed as many. The one whose context it is.
    pub(crate) fn on_invocation(&self, context: Context, found: u32) {
        // CAST: The variant's number.
        if let Some(of) = self.found.get(context as usize) {
            raise(&of.max, found);
            if let Some(counter) = of.buckets.get(bucket(found)) {
                bump(counter, 1);
            }
        }
    }

    /// The handler deferred its source.
    pub(crate) fn on_acted(&self) {
        bump(&self.acted, 1);
    }

    /// The handler left its line open, also for this reason.
    pub(crate) fn on_reason(&self, reason: Reason) {
        let Some(unmet) = self.unmet.get(reason.condition) else {
            return;
        };
        bump(&unmet.times, 1);
        raise(&unmet.most, reason.measured);
        unmet.measured.store(widen(reason.measured), Relaxed);
        unmet.threshold.store(widen(reason.threshold), Relaxed);
    }

    /// Another policy, with other conditions. Nobody counts meanwhile.
    pub(crate) fn forget_reasons(&self) {
        self.acted.store(0, Relaxed);
        for unmet in &self.unmet {
            for counter in [&unmet.times, &unmet.measured, &unmet.most, &unmet.threshold] {
                counter.store(0, Relaxed);
            }
        }
    }

    /// What was found where. Any context.
    pub(crate) fn batches(&self) -> Batches {
        Batches(array::from_fn(|i| {
            self.found
                .get(i)
                .map_or_else(Batch::default, |found| Batch {
                    max: word(&found.max),
                    buckets: array::from_fn(|j| {
                        found.buckets.get(j).map_or(0, |count| count.load(Relaxed))
                    }),
                })
        }))
    }

    /// Why the policy, which has these conditions, did not act. Any context.
    pub(crate) fn reasons(&self, conditions: &'static [Condition]) -> Reasons {
        Reasons {
            acted: self.acted.load(Relaxed),
            conditions,
            unmet: array::from_fn(|i| {
                self.unmet
                    .get(i)
                    .map_or_else(Tally::default, |unmet| Tally {
                        times: unmet.times.load(Relaxed),
                        measured: word(&unmet.measured),
                        most: word(&unmet.most),
                        threshold: word(&unmet.threshold),
                    })
            }),
        }
    }
}

/// Completions of the invocations of one context: what was drained between two points at which others
/// may run. A run of the handler, a pass of the poller, or a piece of a thread or of a work item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The most of a single invocation.
    pub max: u32,
    /// Invocations by [`bucket`] of what they found.
    pub buckets: [usize; BUCKETS],
}

/// A [`Batch`] for each [`Context`]. [`fmt::Display`] writes a table: the columns are the least of
/// their buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches(pub [Batch; Context::ALL.len()]);

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("context max")?;
        for i in 0..BUCKETS {
            write!(f, " {}", bucket_start(i))?;
        }
        f.write_str("\n")?;
        for (context, batch) in Context::ALL.iter().zip(&self.0) {
            write!(f, "{} {}", context.name(), batch.max)?;
            for count in batch.buckets {
                write!(f, " {count}")?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// How often a condition was not met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often.
    pub times: usize,
    /// What was measured last.
    pub measured: u32,
    /// The most that was measured.
    pub most: u32,
    /// What it would have taken last.
    pub threshold: u32,
}

/// Why a policy did not act, and how often it did. [`fmt::Display`] writes one line for each condition
/// that was ever not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// Handlers that deferred their source.
    pub acted: usize,
    conditions: &'static [Condition],
    unmet: [Tally; MAX_CONDITIONS],
}

impl Reasons {
    /// The policy's conditions, each with what was counted of it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Condition, &Tally)> {
        self.conditions.iter().zip(&self.unmet)
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "acted: {}", self.acted)?;
        for (condition, tally) in self.iter().filter(|(_, tally)| tally.times != 0) {
            let name = condition.name;
            if condition.measured {
                let (measured, threshold) = (tally.measured, tally.threshold);
                write!(f, "{name} {measured} of {threshold}: ")?;
                writeln!(f, "{} (most {})", tally.times, tally.most)?;
            } else {
                writeln!(f, "{name}: {}", tally.times)?;
            }
        }
        Ok(())
    }
}

/// What drains of lines that are watched took of a CPU, part of [`crate::policy::Cpu`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The task that ran on the CPU, by [`Observation::switches`](crate::observation::Observation).
    switches: u64,
    /// When the first drain since it runs began, and when the first since the last break did.
    since_switch: Instant,
    since_break: Instant,
    /// When the last drain ended; zero if there was none.
    ended: Instant,
    totals: Totals,
}

/// The longest runs, and sums, of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Longest time from the begin of a drain to the end of a drain without a switch of tasks between
    /// them, while the CPU was not idle. A single task that wants the CPU alone makes it long.
    pub unswitched: Span,
    /// Longest time likewise in which, in addition, the next drain always began before
    /// [`Ledger::BREAK`](crate::ledger::Ledger::BREAK) had passed, idle or not: no task can have run.
    pub unbroken: Span,
    /// Time of all drains.
    pub work: Span,
    /// Completions of all drains.
    pub found: u64,
}

impl Totals {
    /// What a completion took, on average. Unit: nanoseconds.
    pub fn cost(&self) -> u32 {
        let (mut work, mut found) = (self.work.as_nanos(), self.found);
        while found > u64::from(u32::MAX) {
            found >>= 1;
            work >>= 1;
        }
        // CAST: Fits by the loop above.
        crate::reason::ratio(work, found as u32)
    }
}

/// A drain on this CPU, as [`Cpu::on_drain`] gets it.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// See [`Observation::switches`](crate::observation::Observation).
    pub switches: u64,
    /// It interrupted the idle task.
    pub idle: bool,
    /// Completions.
    pub found: u32,
}

impl Cpu {
    /// A CPU without a drain.
    pub const fn new() -> Self {
        Self {
            switches: 0,
            since_switch: Instant::ZERO,
            since_break: Instant::ZERO,
            ended: Instant::ZERO,
            totals: Totals {
                unswitched: Span::ZERO,
                unbroken: Span::ZERO,
                work: Span::ZERO,
                found: 0,
            },
        }
    }

    /// A drain of a line that is watched is over. On this CPU, interrupts off.
    pub fn on_drain(&mut self, drain: Stretch) {
        let first = self.ended == Instant::ZERO || self.switches != drain.switches;
        if first || drain.idle {
            self.since_switch = drain.began;
        }
        if first || drain.began.since(self.ended) >= crate::ledger::Ledger::BREAK {
            self.since_break = drain.began;
        }
        self.switches = drain.switches;
        self.ended = drain.ended;
        let totals = &mut self.totals;
        totals.unswitched = totals.unswitched.max(drain.ended.since(self.since_switch));
        totals.unbroken = totals.unbroken.max(drain.ended.since(self.since_break));
        totals.work = totals.work.plus(drain.ended.since(drain.began));
        totals.found = totals.found.saturating_add(drain.found.into());
    }

    /// What there was so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}
