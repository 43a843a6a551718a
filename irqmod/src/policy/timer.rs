// SPDX-License-Identifier: GPL-2.0

//! `timer`: leave time between the handlers of a CPU.
//!
//! The handler drains. Then its line is masked and *held*: it joins the hold list of the CPU, whose
//! timer releases all lines there together. Handlers that come while the timer runs drain, too, and
//! join the list.
//!
//! # The delay
//!
//! *Fixed* with neither a target rate nor a percentage: `delay_us`, always. *Adaptive* otherwise: once
//! a period (`update_ms`) the CPU's delay grows by `steps / increase_divisor` of itself if its
//! interrupts or the time of its handlers exceed what is allowed, and shrinks at half of that pace if
//! not; `steps` is the number of periods that have passed. A line that was just given its parameters
//! resets the delay of the CPU it is on to the maximum, and lets it decay.
//!
//! At one command at a time there is nothing to collect, so nothing is gained by waiting: a period
//! below the target in which no drain saw more than one command ends the delay at once
//! ([`Period::is_alone`]).
//!
//! # Push, and what it guarantees
//!
//! Without `push` the timer paces how often handlers run, which bounds nothing: handlers that take as
//! long as the delay keep the CPU (STORM-02). With `push`, a timer that expires after lines joined its
//! list starts again, once more per line that joined, instead of releasing; so each line runs once
//! and then all are held. Then nothing runs for at least one delay, the CPU is free, and the list is
//! released.
//!
//! In the proposal nothing bounds how long a line is held that way. Here a list is released
//! [`MAX_HOLD`] after its timer was first started, whatever came meanwhile. That alone would bring the lockup
//! back where the handlers of one round take longer than that. So handlers stop to drain
//! [`QUIET`] before: they only mask and join the list. For any number of lines and any cost of a
//! completion
//!
//! - a line is held for at most `MAX_HOLD`, plus the one handler that the timer may have to wait for;
//! - in each round the CPU is busy with drains for at most `MAX_HOLD - QUIET` and one drain, and is
//!   then free for a delay (10 us or more), or, at the cap, for the rest of `QUIET` but for what it costs
//!   to mask each line once;
//! - a line that was held without a drain is drained by the softirq poller when it is released (the
//!   moderator looks at each line then), and does not depend on who comes first in the next round.
//!
//! # What else differs from the proposal
//!
//! - A drain in the handler is bounded ([`Budget::POLL_DEFAULT`]); what is left waits for the release.
//! - A delay of 0 is off. No timer is started for less than [`MIN_SLEEP`], and a handler never starts
//!   one that runs: nothing can make it expire again and again (HRT-01).
//! - The target rate is that of one CPU. The proposal compares with the sum over all CPUs first, which
//!   excuses a CPU in a flood while the others are idle, and is a line of cache that all CPUs write.
//! - The time of the handlers is measured, of the lines of this policy only. The kernel's own account
//!   (`IRQ_TIME_ACCOUNTING`) is mostly off.

use super::{
    ranged,
    Conflict,
    Key,
    Memory,
    Policy,
    Values,
    LINE_WORDS, //
};
use crate::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    reason::{
        micros,
        Condition,
        Reason,
        EMPTY,
        IN_TASK, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::{
        After,
        Deferral,
        Verdict, //
    },
    Budget,
    Drain, //
};

/// Shortest time that the hold timer is started for: below it, arming costs as much as it saves.
/// Shorter delays add up from one handler to the next until they reach it.
pub const MIN_SLEEP: Span = Span::from_micros(10);

/// Longest time from the first start of the hold timer to the release of the list.
///
/// Twice of it, for a line that is held again at once, is still one tick at 100 Hz (10 ms), and so is
/// the longest delay of a single read after a storm (HRT-03). It is ten of the longest delays, so that
/// with the few lines that usually meet on a CPU a push is never cut.
pub const MAX_HOLD: Span = Span::from_millis(5);

/// The end of [`MAX_HOLD`] in which handlers don't drain: a quarter, so that others get a quarter of
/// the CPU even where one round of drains takes longer than the cap.
pub const QUIET: Span = Span::from_micros(1_250);

/// When handlers stop to drain.
const BUSY: Span = MAX_HOLD.minus(QUIET);

/// Smallest delay that is not zero, and where growth begins. Unit: nanoseconds. At 500 ns one
/// handler in twenty is moderated.
const FLOOR_NS: u32 = 500;

/// A delay of zero.
const OFF: Condition = Condition::held("off");

/// What the timer would be started for.
const SLEEP: Condition = Condition::measured("sleep us");

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    delay_us: u32,
    target_intr_rate: u32,
    hardirq_percent: u32,
    update_ms: u32,
    scale_cpus: u32,
    increase_divisor: u32,
    push: bool,
}

/// What the policy remembers of a line: whether it has had an interrupt since it was given its
/// parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    known: bool,
}

impl Memory for Line {
    const NONE: bool = false;

    fn from_words(words: [u32; LINE_WORDS]) -> Self {
        Self {
            known: words[0] != 0,
        }
    }

    fn into_words(self) -> [u32; LINE_WORDS] {
        [u32::from(self.known), 0, 0, 0, 0, 0]
    }
}

/// What a CPU did since its delay was last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Period {
    began: Instant,
    interrupts: u32,
    /// Time spent in handlers.
    busy: Span,
    /// Most commands that a drain saw: those that it found, and those that were left in flight.
    crowd: u32,
}

impl Period {
    const fn new(began: Instant) -> Self {
        Self {
            began,
            interrupts: 0,
            busy: Span::ZERO,
            crowd: 0,
        }
    }

    fn note(&mut self, seen: &Observation, drain: Drain) {
        let left = seen.in_flight.unwrap_or(0);
        self.interrupts = self.interrupts.saturating_add(1);
        self.busy = self.busy.plus(seen.now.since(seen.began));
        self.crowd = self.crowd.max(drain.found().saturating_add(left));
    }

    /// Whether no queue had more than one command at a time: holding its line collects nothing, and
    /// delays the next command.
    fn is_alone(&self) -> bool {
        self.crowd <= 1
    }
}

/// What the hold timer does when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "held lines stay masked until they are released"]
pub enum Expiry {
    /// All lines on the hold list are released.
    Release,
    /// The timer starts again for this long.
    Push(Span),
}

/// The hold timer and the delay of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// When the timer was first started for the list that there is now.
    armed: Option<Instant>,
    /// Delay gathered for the next start of the timer; while it runs, what it was started for.
    sleep: Span,
    /// Lines that joined the list since the timer was last started.
    kicks: u32,
    /// The adaptive delay. Unit: nanoseconds.
    delay: u32,
    period: Period,
}

impl Cpu {
    /// A CPU whose timer does not run.
    pub const fn new() -> Self {
        Self {
            armed: None,
            sleep: Span::ZERO,
            kicks: 0,
            delay: 0,
            period: Period::new(Instant::ZERO),
        }
    }

    /// The hold timer of this CPU expired at `now`. Hardirq, on this CPU.
    pub fn on_expiry(&mut self, now: Instant) -> Expiry {
        let left = MAX_HOLD.minus(self.held(now));
        let push = self.sleep.times(self.kicks.into()).min(left);
        if push < MIN_SLEEP {
            self.on_release();
            return Expiry::Release;
        }
        self.kicks = 0;
        Expiry::Push(push)
    }

    /// The hold list of this CPU is empty and its timer does not run: after an expiry, or because
    /// the CPU goes away.
    pub fn on_release(&mut self) {
        self.armed = None;
        self.sleep = Span::ZERO;
        self.kicks = 0;
    }

    /// The adaptive delay of this CPU.
    pub fn delay(&self) -> Span {
        Span::from_nanos(self.delay.into())
    }

    /// A line joins the list while the timer runs.
    fn kick(&mut self) {
        self.kicks = self.kicks.saturating_add(1);
    }

    /// For how long the list has been held.
    fn held(&self, now: Instant) -> Span {
        self.armed.map_or(Span::ZERO, |since| now.since(since))
    }

    /// Whether drains have taken all that they may before the list is released.
    fn is_quiet(&self, now: Instant) -> bool {
        self.held(now) >= BUSY
    }

    /// What becomes of a line that was just drained, with this delay.
    fn hold(&mut self, now: Instant, delay: Span, push: bool) -> Option<After> {
        if self.armed.is_some() {
            if push {
                self.kick();
            }
            return Some(After::Defer(Deferral::Hold));
        }
        self.sleep = self.sleep.plus(delay);
        if self.sleep < MIN_SLEEP {
            return None;
        }
        self.armed = Some(now);
        Some(After::HoldFor(self.sleep))
    }
}

impl Config {
    /// Whether nothing is ever held.
    fn is_off(&self) -> bool {
        self.delay_us == 0
    }

    fn is_fixed(&self) -> bool {
        self.target_intr_rate == 0 && self.hardirq_percent == 0
    }

    /// Whether it matters when a handler began.
    fn is_timed(&self) -> bool {
        self.push || self.hardirq_percent != 0
    }

    /// The longest delay. Unit: nanoseconds; at most 500,000.
    fn max_delay(&self) -> u32 {
        self.delay_us.saturating_mul(1_000)
    }

    fn update(&self) -> Span {
        Span::from_millis(self.update_ms)
    }

    /// The delay of this CPU for this line.
    fn delay(&self, cpu: &Cpu) -> Span {
        if self.is_fixed() {
            Span::from_micros(self.delay_us)
        } else {
            cpu.delay().min(Span::from_micros(self.delay_us))
        }
    }

    /// Counts a handler, and adapts the delay once a period.
    fn adapt(&self, seen: &Observation, drain: Drain, line: &mut Line, cpu: &mut Cpu) {
        if !line.known {
            line.known = true;
            cpu.delay = self.max_delay();
            cpu.period = Period::new(seen.now);
            return;
        }
        cpu.period.note(seen, drain);
        let elapsed = seen.now.since(cpu.period.began);
        if elapsed < self.update() {
            return;
        }
        cpu.delay = self.next_delay(cpu.delay, elapsed, &cpu.period);
        cpu.period = Period::new(seen.now);
    }

    /// The delay that follows after a period. Divides 32 bits by 32, once a period.
    fn next_delay(&self, delay: u32, elapsed: Span, period: &Period) -> u32 {
        let steps = self.steps(elapsed);
        let divisor = self.increase_divisor;
        if self.is_above(elapsed, period) {
            let from = delay.max(FLOOR_NS);
            let more = from.saturating_mul(steps) / divisor;
            return from.saturating_add(more).min(self.max_delay());
        }
        let less = delay.saturating_mul(steps) / divisor.saturating_mul(2);
        let left = delay.saturating_sub(less);
        if left < FLOOR_NS || period.is_alone() {
            0
        } else {
            left
        }
    }

    /// The number of whole periods in `elapsed`, at least 1, and less than `increase_divisor`: so
    /// the delay at most doubles, and at most halves. Without a division of 64 bits.
    fn steps(&self, elapsed: Span) -> u32 {
        let mut steps = 1;
        let mut left = elapsed.minus(self.update());
        while left >= self.update() && steps < self.increase_divisor - 1 {
            left = left.minus(self.update());
            steps += 1;
        }
        steps
    }

    /// Whether this CPU had more interrupts, or spent more time in handlers, than it may. Products
    /// that don't fit in 64 bits belong to a CPU that had hardly an interrupt, and count as equal.
    fn is_above(&self, elapsed: Span, period: &Period) -> bool {
        let rate = u64::from(self.target_intr_rate);
        let percent = u64::from(self.hardirq_percent);
        // Interrupts per second times percent, both over `elapsed`.
        let had = u64::from(period.interrupts)
            .saturating_mul(self.scale_cpus.into())
            .saturating_mul(1_000_000_000 / 100);
        let too_many = rate != 0 && had > elapsed.times(rate).as_nanos();
        let too_long = percent != 0 && period.busy.times(100) > elapsed.times(percent);
        too_many || too_long
    }
}

impl Policy for Config {
    const NAME: &'static str = "timer";
    const KEYS: &'static [Key] = &[
        Key {
            name: "delay_us",
            min: 0,
            max: 500,
            default: 30,
        },
        Key {
            name: "target_intr_rate",
            min: 0,
            max: 50_000_000,
            default: 0,
        },
        Key {
            name: "hardirq_percent",
            min: 0,
            max: 100,
            default: 0,
        },
        Key {
            name: "update_ms",
            min: 1,
            max: 100,
            default: 5,
        },
        Key {
            name: "scale_cpus",
            min: 50,
            max: 1_000,
            default: 150,
        },
        Key {
            name: "increase_divisor",
            min: 8,
            max: 128,
            default: 8,
        },
        Key {
            name: "push",
            min: 0,
            max: 1,
            default: 1,
        },
    ];
    const HOLDS: bool = true;
    const OF_CPU: bool = true;
    type Line = Line;

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        ranged(Self::KEYS, values)?;
        let [delay_us, target_intr_rate, hardirq_percent, update_ms, scale_cpus, increase_divisor, push] =
            *values;
        Ok(Self {
            delay_us,
            target_intr_rate,
            hardirq_percent,
            update_ms,
            scale_cpus,
            increase_divisor,
            push: push != 0,
        })
    }

    fn values(&self) -> Values {
        [
            self.delay_us,
            self.target_intr_rate,
            self.hardirq_percent,
            self.update_ms,
            self.scale_cpus,
            self.increase_divisor,
            self.push.into(),
        ]
    }

    fn looks(&self, _: &Line, _: Drain) -> Looks {
        Looks::CLOCK.union(Looks::IN_FLIGHT)
    }

    /// In a forced interrupt thread nothing is held, as it may be moved between the list of a CPU and
    /// its timer: it drains a budget, and what is left goes to the softirq poller.
    fn on_interrupt(&self, glance: Glance) -> Option<Verdict> {
        let holds = glance.contains(Glance::HARDIRQ) && !self.is_off();
        if !holds || !self.is_timed() {
            Some(Verdict::Drain(Budget::POLL_DEFAULT))
        } else {
            None
        }
    }

    fn weigh_interrupt(&self, seen: &Observation, _: &mut Line, cpu: &mut super::Cpu) -> Verdict {
        if self.push && cpu.timer.is_quiet(seen.now) {
            // Counted, too: masking many lines may outlast a push.
            cpu.timer.kick();
            Verdict::Defer(Deferral::Hold)
        } else {
            Verdict::Drain(Budget::POLL_DEFAULT)
        }
    }

    /// An interrupt that found nothing is not held: the core must get to count it.
    fn on_drained(&self, glance: Glance, drain: Drain) -> Option<After> {
        let moderated = glance.contains(Glance::HARDIRQ) && !self.is_off();
        if moderated && drain.found() != 0 {
            None
        } else {
            Some(unmoderated(drain))
        }
    }

    fn weigh_drained(
        &self,
        seen: &Observation,
        drain: Drain,
        line: &mut Line,
        cpu: &mut super::Cpu,
    ) -> After {
        let cpu = &mut cpu.timer;
        if !self.is_fixed() {
            self.adapt(seen, drain, line, cpu);
        }
        let delay = self.delay(cpu);
        if delay.is_zero() {
            return unmoderated(drain);
        }
        cpu.hold(seen.now, delay, self.push)
            .unwrap_or(unmoderated(drain))
    }

    /// Of the handler, and of the poller that looks after a release.
    fn budget(&self) -> Budget {
        Budget::POLL_DEFAULT
    }

    const CONDITIONS: &'static [Condition] = &[IN_TASK, OFF, EMPTY, SLEEP];

    fn why(
        &self,
        seen: &Observation,
        found: u32,
        _: &Self::Line,
        cpu: &super::Cpu,
        say: &mut dyn FnMut(Reason),
    ) {
        if !seen.glance.contains(Glance::HARDIRQ) {
            return say(Reason::held(0));
        }
        if self.is_off() {
            return say(Reason::held(1));
        }
        if found == 0 {
            return say(Reason::held(2));
        }
        let sleep = cpu.timer.sleep.plus(self.delay(&cpu.timer));
        say(Reason::new(3, micros(sleep), micros(MIN_SLEEP)));
    }
}

/// What becomes of a line that is not held.
fn unmoderated(drain: Drain) -> After {
    match drain {
        Drain::Drained(_) => After::Open,
        Drain::More(_) => After::Defer(Deferral::Softirq),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn hrt_03_counting_lines_and_multiplying_them_saturates() {
        let mut cpu = Cpu::new();
        let armed = cpu.hold(Instant::ZERO, Span::from_micros(500), true);
        assert_eq!(armed, Some(After::HoldFor(Span::from_micros(500))));
        cpu.kicks = u32::MAX - 1;
        for _ in 0..3 {
            cpu.kick();
            assert_eq!(cpu.kicks, u32::MAX);
        }
        cpu.sleep = Span::from_nanos(u64::MAX);
        assert_eq!(cpu.on_expiry(Instant::ZERO), Expiry::Push(MAX_HOLD));
        assert_eq!(cpu.kicks, 0);
    }
}
