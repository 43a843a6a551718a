// SPDX-License-Identifier: GPL-2.0

//! `rate`: when it tries to poll, when that pays, and what it can't see.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    policy::{
        rate::{
            Config,
            Line,
            BACK_OFF,
            MAX_FAILED,
            MAX_GOOD,
            WORTH, //
        },
        Cpu,
        Memory as _,
        Policy as _, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::{
        After,
        Next,
        Verdict, //
    },
    Budget,
    Deferral,
    Drain::{
        self,
        Drained,
        More, //
    }, //
};

const SOFTIRQ: After = After::Defer(Deferral::Softirq);
const WINDOW: u32 = 8_192;

fn config(values: [u32; 4]) -> Config {
    let [interval_us, pace_us, window, budget] = values;
    Config::from_values(&[interval_us, pace_us, window, budget, 0, 0, 0]).unwrap()
}

fn default() -> Config {
    config([10, 10, WINDOW, 64])
}

/// A line that is asked about at points in time.
struct Bench {
    config: Config,
    line: Line,
    now: u64,
    /// What the last interrupt looked at.
    looks: Looks,
}

impl Bench {
    fn new(config: Config) -> Self {
        let mut bench = Self {
            config,
            line: Line::default(),
            now: 1,
            looks: Looks::empty(),
        };
        assert_eq!(
            bench.interrupt(Drained(1)),
            After::Open,
            "begins the window"
        );
        bench
    }

    fn seen(&self) -> Observation {
        let now = Instant::from_nanos(self.now);
        Observation {
            began: now,
            now,
            ..Observation::default()
        }
    }

    /// As the moderator: through plain words.
    fn with<R>(&mut self, f: impl FnOnce(&Config, &Observation, &mut Line) -> R) -> R {
        let mut line = Line::from_words(self.line.into_words());
        assert_eq!(line, self.line, "survives as words");
        let result = f(&self.config, &self.seen(), &mut line);
        self.line = line;
        result
    }

    /// As the moderator: only what the policy looks at is gathered.
    fn interrupt(&mut self, drain: Drain) -> After {
        self.looks = self.config.looks(&self.line, drain);
        let blind = Observation::default();
        let clock = self.looks.contains(Looks::CLOCK);
        self.with(|config, seen, line| {
            let seen = if clock { seen } else { &blind };
            config.weigh_drained(seen, drain, line, &mut Cpu::new())
        })
    }

    fn pass(&mut self, drain: Drain) -> Next {
        self.with(|config, seen, line| config.on_pass(seen, drain, line))
    }

    /// One window of interrupts with a completion each, `every` nanoseconds apart.
    fn window(&mut self, every: u64) -> After {
        for _ in 1..self.config.values()[2] {
            self.now += every;
            assert_eq!(self.interrupt(Drained(1)), After::Open);
        }
        self.now += every;
        self.interrupt(Drained(1))
    }

    /// Passes with this result until the source is given back; returns how many.
    fn poll(&mut self, drain: Drain) -> u32 {
        for passes in 1..1_000_000 {
            self.now += 10_000;
            if self.pass(drain) == Next::HandBack {
                return passes;
            }
        }
        panic!("polls for ever");
    }
}

#[test]
fn clock_is_read_where_a_window_begins_or_ends() {
    let mut bench = Bench::new(default());
    assert_eq!(bench.looks, Looks::CLOCK, "begins");
    let _ = bench.interrupt(Drained(WINDOW - 1));
    assert_eq!(bench.looks, Looks::empty(), "counts");
    let _ = bench.interrupt(Drained(1));
    assert_eq!(bench.looks, Looks::CLOCK, "ends");
}

#[test]
fn values_at_and_beyond_their_bounds() {
    let (low, high) = ([1, 1, 512, 1], [1_000, 1_000, 65_536, 256]);
    for values in [low, high, [10, 10, WINDOW, 64]] {
        let [a, b, c, d] = values;
        assert_eq!(config(values).values(), [a, b, c, d, 0, 0, 0]);
    }
    for key in 0..4 {
        for (mut values, value) in [
            (low, low[key] - 1),
            (high, high[key] + 1),
            (high, u32::MAX), //
        ] {
            values[key] = value;
            let [a, b, c, d] = values;
            assert!(Config::from_values(&[a, b, c, d, 0, 0, 0]).is_err());
        }
    }
}

#[test]
fn verdicts() {
    let config = default();
    let budget = Verdict::Drain(Budget::POLL_DEFAULT);
    assert_eq!(config.on_interrupt(Glance::HARDIRQ), Some(budget));
    assert_eq!(config.on_interrupt(Glance::empty()), Some(budget));
    let open = Some(After::Open);
    assert_eq!(config.on_drained(Glance::HARDIRQ, Drained(0)), open);
    assert_eq!(config.on_drained(Glance::empty(), Drained(9)), None);
    assert_eq!(config.on_drained(Glance::HARDIRQ, Drained(1)), None);
}

#[test]
fn trial_follows_a_window_at_the_threshold_and_not_above() {
    for (every, after) in [(1, SOFTIRQ), (10_000, SOFTIRQ), (10_001, After::Open)] {
        let mut bench = Bench::new(default());
        assert_eq!(bench.window(every), after, "{every} ns");
    }
    let slow = [(1_000, SOFTIRQ), (1_001, After::Open)];
    for (every, after) in slow {
        let mut bench = Bench::new(config([1, 10, 512, 64]));
        assert_eq!(bench.window(every), after, "{every} ns");
    }
}

#[test]
fn handler_that_used_its_budget_up_goes_on_in_the_poller_without_a_trial() {
    let mut bench = Bench::new(default());
    bench.now = 1_000_000;
    assert_eq!(bench.interrupt(More(256)), SOFTIRQ);
    assert_eq!(bench.pass(More(64)), Next::Again);
    assert_eq!(bench.pass(Drained(64)), Next::HandBack);
}

#[test]
fn window_may_end_in_the_poller() {
    let mut bench = Bench::new(default());
    assert_eq!(bench.interrupt(More(256)), SOFTIRQ);
    for _ in 0..WINDOW / 64 {
        assert_eq!(bench.pass(More(64)), Next::Again);
    }
    let pace = Next::Rest(Span::from_micros(10));
    assert_eq!(bench.pass(Drained(1)), pace, "it polls now");
}

#[test]
fn polling_that_pays_goes_on_for_an_episode() {
    let mut bench = Bench::new(default());
    assert_eq!(bench.window(1_000), SOFTIRQ);
    let passes = bench.poll(Drained(8));
    assert_eq!(passes, MAX_GOOD * WINDOW / 8);
    // And then again, after the next fast window.
    assert_eq!(bench.window(1_000), SOFTIRQ);
    assert_eq!(bench.poll(Drained(WORTH)), MAX_GOOD * WINDOW / WORTH);
}

#[test]
fn two_windows_that_do_not_pay_end_the_trials_for_a_while() {
    let mut bench = Bench::new(default());
    for _ in 0..MAX_FAILED {
        assert_eq!(bench.window(1_000), SOFTIRQ);
        // As soon as it can't pay any more.
        assert_eq!(bench.poll(Drained(1)), WINDOW / WORTH + 1);
    }
    for _ in 0..BACK_OFF {
        assert_eq!(bench.window(1_000), After::Open);
    }
    assert_eq!(u64::from(BACK_OFF * WINDOW), 524_288);
    assert_eq!(bench.window(1_000), SOFTIRQ);
}

#[test]
fn a_window_that_pays_forgives_one_that_did_not() {
    let mut bench = Bench::new(default());
    for _ in 0..5 {
        assert_eq!(bench.window(1_000), SOFTIRQ);
        bench.poll(Drained(1));
        assert_eq!(bench.window(1_000), SOFTIRQ);
        for _ in 0..WINDOW / 64 {
            let _ = bench.pass(Drained(64));
        }
        bench.poll(Drained(1));
        // The second failure in a row follows.
        assert_eq!(bench.window(1_000), SOFTIRQ);
        bench.poll(Drained(64));
    }
}

#[test]
fn storm_05_polling_ends_when_nothing_completes() {
    let mut bench = Bench::new(default());
    assert_eq!(bench.window(1_000), SOFTIRQ);
    let passes = bench.poll(Drained(0));
    assert_eq!(passes, WINDOW / WORTH + 1, "41 ms with the defaults");
}

#[test]
fn arithmetic_holds_at_the_bounds() {
    let mut bench = Bench::new(config([1_000, 1_000, 65_536, 256]));
    for now in [0, u64::MAX, 0, 1 << 32, u64::MAX - 1] {
        bench.now = now;
        for drain in [Drained(u32::MAX), More(u32::MAX), Drained(0)] {
            let _ = bench.interrupt(drain);
            let _ = bench.pass(drain);
            let _ = bench.pass(drain);
        }
    }
}

#[test]
fn per_queue_signal_is_blind_to_the_sum_over_a_cpu() {
    // The field case: 56 queues, a completion each 11.2 us. Nobody is ever polled, at four queues a
    // CPU and 2.8 us for each completion of them.
    for _ in 0..56 {
        let mut bench = Bench::new(default());
        for _ in 0..20 {
            assert_eq!(bench.window(11_200), After::Open);
        }
    }
}

/// A line in a trial.
fn polled() -> Rig {
    let rig = Rig::parsed("rate:window=512");
    rig.now.set(Instant::from_nanos(1));
    while !rig.listed.get() {
        rig.queue.post(1);
        rig.interrupt();
    }
    rig
}

#[test]
fn poller_rests_between_passes_and_is_paced_by_the_timer_of_the_line() {
    let rig = polled();
    rig.take_trace();
    rig.queue.post(9);
    assert_eq!(rig.poll(), 9);
    assert_eq!(rig.take_trace(), ["now", "complete_poller", "poll_after"]);
    assert_eq!(rig.poll_timer.get(), Some(Span::from_micros(10)));
    assert_eq!(rig.depth.get(), 1, "masked meanwhile");
    common::finish(&rig);
}

#[test]
fn poll_01_whole_budget_and_completed_is_not_said() {
    // What corrupted the list: exactly the budget found, and resting or handing back after it.
    for completions in [63, 64, 65, 128] {
        let rig = polled();
        rig.queue.post(completions);
        while rig.listed.get() {
            // The poller asserts what the core relies on: see `Rig::poll_with`.
            let work = rig.poll();
            assert_eq!(work >= 64, rig.listed.get());
        }
        common::finish(&rig);
    }
}

#[test]
fn pause_while_the_poller_rests_ends_the_episode() {
    let rig = polled();
    rig.queue.post(9);
    rig.poll();
    rig.pause();
    assert!(rig.poll_timer.get().is_none());
    rig.resume();
    assert!(!rig.is_deferred());
    // More than a handler takes is polled without a rest: it is no trial.
    rig.queue.post(300);
    rig.interrupt();
    rig.take_trace();
    rig.settle();
    assert!(!rig.take_trace().contains(&"poll_after"));
    common::finish(&rig);
}

#[test]
fn pause_at_each_point() {
    common::pause_at_each_point(|| Rig::parsed("rate"));
    common::pause_at_each_point(polled);
}
