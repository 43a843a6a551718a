// SPDX-License-Identifier: GPL-2.0

//! `flood`: drain in a work item while this CPU is being starved.
//!
//! The handler drains, unless its CPU has not switched tasks for `window_us`, was not idle, and spent
//! `busy_percent` of that time or more in handlers. Then the line is masked and its work item drains,
//! on any CPU that is free; it rests `rest_us` when it saw the queue empty, and gives the source back
//! when it looked again and found nothing. The CPU has its first task switch meanwhile, which is the
//! end of the flood.
//!
//! # What differs from the proposal
//!
//! - A CPU with a single task has nothing to switch to, and is not starved by that. So the time of
//!   the handlers counts as well.
//! - A drain in the handler is bounded; one that uses its budget up goes on in the work item.
//! - The work item is part of the line: nothing is allocated in the handler.
//! - Submitters are throttled by the rest, not in the driver: while completions wait in the queue,
//!   their tags can't be used again.
//!
//! # What it guarantees
//!
//! A task waits for two windows and one drain, at most, until each next interrupt of the lines that
//! have this policy is deferred: a flood may begin so late in a window that it is not seen at its
//! end. Handlers of other lines and softirqs don't count. There is no share: when the CPU has
//! switched once, the handlers have another window.
//!
//! In forced interrupt threads switches are not looked at: handlers that had `busy_percent` of a window
//! are deferred until they have had less since it began.

use super::{
    ranged,
    Conflict,
    Key,
    Policy,
    Values,
    POLL_BUDGET,
    POLL_CONFLICT, //
};
use crate::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{micros, ratio, Condition, Reason, BUDGET, IDLE},
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

/// Window by default: the longest tick (100 Hz), so that the scheduler had a chance to switch.
const DEFAULT_WINDOW_US: u32 = 10_000;

/// Longest window: a twentieth of the shortest soft lockup report (`watchdog_thresh=1`, 2 s).
const MAX_WINDOW_US: u32 = 100_000;

/// Longest rest: a tenth of the longest tick.
const MAX_REST_US: u32 = 1_000;

/// How long the CPU has not switched tasks.
const UNSWITCHED: Condition = Condition::measured("unswitched us");

/// What handlers had of that time.
const BUSY: Condition = Condition::measured("busy percent");

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    window_us: u32,
    busy_percent: u32,
    rest_us: u32,
    budget: Budget,
}

/// What a CPU did since it last switched tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// The number of that switch.
    switches: u64,
    /// When an interrupt first saw it.
    since: Instant,
    /// Time spent in handlers since.
    busy: Span,
}

impl Cpu {
    /// A CPU that has seen no interrupt yet.
    pub const fn new() -> Self {
        Self {
            switches: 0,
            since: Instant::ZERO,
            busy: Span::ZERO,
        }
    }

    /// Whether it has switched tasks since.
    ///
    /// In a forced interrupt thread that says nothing: handlers are the tasks that it switches to.
    /// There a flood ends when the handlers' part has become less.
    fn has_switched(&self, seen: &Observation) -> bool {
        let tells = seen.glance.contains(Glance::HARDIRQ);
        (tells && self.switches != seen.switches) || self.since == Instant::ZERO
    }

    /// Begins anew.
    fn restart(&mut self, seen: &Observation) {
        *self = Self {
            switches: seen.switches,
            since: seen.now,
            busy: Span::ZERO,
        };
    }
}

impl Config {
    /// Whether the CPU is being starved.
    ///
    /// A window that is over without a flood is followed by a new one. Else a single task could run
    /// for minutes, and handlers for as long after that before they had their part of all that time.
    fn is_flooded(&self, seen: &Observation, cpu: &mut Cpu) -> bool {
        let since = seen.now.since(cpu.since);
        let over = since >= Span::from_micros(self.window_us);
        let busy = cpu.busy.times(100) >= since.times(self.busy_percent.into());
        let flooded = over && busy && !cpu.has_switched(seen);
        if cpu.has_switched(seen) || (over && !busy) {
            cpu.restart(seen);
        }
        flooded
    }
}

impl Policy for Config {
    const NAME: &'static str = "flood";
    const KEYS: &'static [Key] = &[
        Key {
            name: "window_us",
            min: 100,
            max: MAX_WINDOW_US,
            default: DEFAULT_WINDOW_US,
        },
        Key {
            name: "busy_percent",
            min: 1,
            max: 100,
            default: 50,
        },
        Key {
            name: "rest_us",
            min: 0,
            max: MAX_REST_US,
            default: 30,
        },
        POLL_BUDGET,
    ];
    const WORK: bool = true;
    const HOME: Option<Deferral> = Some(Deferral::Work);
    const OF_CPU: bool = true;
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [window_us, busy_percent, rest_us, budget, ..] = *values;
        Ok(Self {
            window_us,
            busy_percent,
            rest_us,
            budget: Budget::polled(budget).ok_or(POLL_CONFLICT)?,
        })
    }

    fn values(&self) -> Values {
        [
            self.window_us,
            self.busy_percent,
            self.rest_us,
            self.budget.get(),
            0,
            0,
            0,
        ]
    }

    fn looks(&self, (): &(), _: Drain) -> Looks {
        Looks::CLOCK.union(Looks::SWITCHES)
    }

    /// An idle CPU is not starved, and looks at no clock: it has to switch tasks to be busy again.
    fn on_interrupt(&self, glance: Glance) -> Option<Verdict> {
        let idle = glance.contains(Glance::IDLE);
        idle.then_some(Verdict::Drain(self.budget))
    }

    fn weigh_interrupt(&self, seen: &Observation, _line: &mut (), cpu: &mut super::Cpu) -> Verdict {
        if self.is_flooded(seen, &mut cpu.flood) {
            Verdict::Defer(Deferral::Work)
        } else {
            Verdict::Drain(self.budget)
        }
    }

    fn on_drained(&self, glance: Glance, drain: Drain) -> Option<After> {
        glance.contains(Glance::IDLE).then(|| after(drain))
    }

    fn weigh_drained(
        &self,
        seen: &Observation,
        drain: Drain,
        _line: &mut (),
        cpu: &mut super::Cpu,
    ) -> After {
        cpu.flood.busy = cpu.flood.busy.plus(seen.now.since(seen.began));
        after(drain)
    }

    fn on_pass(&self, _: &Observation, drain: Drain, _line: &mut ()) -> Next {
        match drain {
            Drain::More(_) => Next::Again,
            Drain::Drained(found) if found != 0 && self.rest_us != 0 => {
                Next::Rest(Span::from_micros(self.rest_us))
            }
            Drain::Drained(_) => Next::HandBack,
        }
    }

    /// Of the handler and of the work item.
    fn budget(&self) -> Budget {
        self.budget
    }

    const CONDITIONS: &'static [Condition] = &[IDLE, UNSWITCHED, BUSY, BUDGET];

    fn why(
        &self,
        seen: &Observation,
        found: u32,
        (): &(),
        cpu: &super::Cpu,
        say: &mut dyn FnMut(Reason),
    ) {
        say(Reason::new(3, found, self.budget.get()));
        if seen.glance.contains(Glance::IDLE) {
            return say(Reason::held(0));
        }
        let cpu = &cpu.flood;
        let since = if cpu.has_switched(seen) {
            Span::ZERO
        } else {
            seen.began.since(cpu.since)
        };
        let (since, busy) = (micros(since), micros(cpu.busy.times(100)));
        if since < self.window_us {
            say(Reason::new(1, since, self.window_us));
        } else {
            say(Reason::new(2, ratio(busy.into(), since), self.busy_percent));
        }
    }
}

/// What becomes of a line that was drained in the handler.
fn after(drain: Drain) -> After {
    match drain {
        Drain::Drained(_) => After::Open,
        Drain::More(_) => After::Defer(Deferral::Work),
    }
}
