// SPDX-License-Identifier: GPL-2.0

//! `flood`: what counts as a CPU that is being starved, and what happens then.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::{
        Glance,
        Observation, //
    },
    policy::{
        flood::Config,
        Cpu,
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
    },
    Handled, //
};

const WORK: Verdict = Verdict::Defer(Deferral::Work);
const BUDGET: Verdict = Verdict::Drain(Budget::POLL_DEFAULT);

fn config(values: [u32; 4]) -> Config {
    let [window_us, busy_percent, rest_us, budget] = values;
    Config::from_values(&[window_us, busy_percent, rest_us, budget, 0, 0, 0]).unwrap()
}

fn default() -> Config {
    config([10_000, 50, 30, 256])
}

/// A CPU whose handlers take as long as a test says.
struct Bench {
    config: Config,
    cpu: Cpu,
    glance: Glance,
    /// Unit: microseconds.
    now: u64,
    switches: u64,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self {
            config,
            cpu: Cpu::new(),
            glance: Glance::HARDIRQ,
            now: 1,
            switches: 1,
        }
    }

    fn seen(&self, began: u64) -> Observation {
        Observation {
            glance: self.glance,
            began: Instant::from_nanos(began * 1_000),
            now: Instant::from_nanos(self.now * 1_000),
            switches: self.switches,
            ..Observation::default()
        }
    }

    /// One interrupt whose drain takes `busy` microseconds.
    fn interrupt(&mut self, busy: u64) -> Verdict {
        let seen = self.seen(self.now);
        let verdict = self.config.weigh_interrupt(&seen, &mut (), &mut self.cpu);
        if verdict == BUDGET {
            let began = self.now;
            self.now += busy;
            let seen = self.seen(began);
            let after = self
                .config
                .weigh_drained(&seen, Drained(1), &mut (), &mut self.cpu);
            assert_eq!(after, After::Open);
        }
        verdict
    }

    /// Interrupts of `busy` and then `free` microseconds, until one is deferred or `until`.
    fn run(&mut self, busy: u64, free: u64, until: u64) -> bool {
        while self.now < until {
            if self.interrupt(busy) == WORK {
                return true;
            }
            self.now += free;
        }
        false
    }
}

#[test]
fn values_at_and_beyond_their_bounds() {
    let (low, high) = ([100, 1, 0, 1], [100_000, 100, 1_000, 256]);
    for values in [low, high, [10_000, 50, 30, 256]] {
        let [a, b, c, d] = values;
        assert_eq!(config(values).values(), [a, b, c, d, 0, 0, 0]);
    }
    for key in 0..4 {
        let mut beyond = vec![(high, high[key] + 1), (high, u32::MAX)];
        beyond.extend(low[key].checked_sub(1).map(|value| (low, value)));
        for (mut values, value) in beyond {
            values[key] = value;
            let [a, b, c, d] = values;
            assert!(Config::from_values(&[a, b, c, d, 0, 0, 0]).is_err());
        }
    }
}

#[test]
fn decisions_without_a_clock() {
    let config = default();
    let (irq, idle) = (Glance::HARDIRQ, Glance::HARDIRQ | Glance::IDLE);
    let table = [
        (Glance::empty(), None, None),
        (idle, Some(BUDGET), Some(After::Open)),
        (irq, None, None),
        (irq | Glance::RESCHED, None, None),
    ];
    for (glance, verdict, after) in table {
        assert_eq!(config.on_interrupt(glance), verdict, "{glance:?}");
        assert_eq!(config.on_drained(glance, Drained(1)), after, "{glance:?}");
    }
    let work = After::Defer(Deferral::Work);
    assert_eq!(config.on_drained(idle, More(256)), Some(work));
    let mut bench = Bench::new(config);
    let seen = bench.seen(0);
    let after = config.weigh_drained(&seen, More(256), &mut (), &mut bench.cpu);
    assert_eq!(after, work);
}

#[test]
fn what_follows_a_drain_in_the_work_item() {
    let rest = Next::Rest(Span::from_micros(30));
    let table: [([u32; 4], Drain, Next); 5] = [
        ([10_000, 50, 30, 256], More(256), Next::Again),
        ([10_000, 50, 30, 256], Drained(1), rest),
        ([10_000, 50, 30, 256], Drained(0), Next::HandBack),
        ([10_000, 50, 0, 256], Drained(1), Next::HandBack),
        ([10_000, 50, 0, 256], More(256), Next::Again),
    ];
    for (values, drain, next) in table {
        let got = config(values).on_pass(&Observation::default(), drain, &mut ());
        assert_eq!(got, next, "{values:?} {drain:?}");
    }
}

#[test]
fn flood_is_no_switch_for_a_window_with_handlers_all_the_time() {
    let mut bench = Bench::new(default());
    assert!(bench.run(100, 0, 1_000_000));
    assert_eq!(bench.now, 10_001, "as soon as the window is over");
    bench.now += 5_000;
    assert_eq!(bench.interrupt(100), WORK, "still");
    bench.switches += 1;
    assert_eq!(bench.interrupt(100), BUDGET, "over");
    assert!(bench.run(100, 0, 1_000_000));
    assert_eq!(bench.now, 25_001, "a window after the switch");
}

/// There every handler follows a switch: the flood is over when handlers have had less.
#[test]
fn flood_in_forced_threads_is_handlers_all_the_time() {
    let mut bench = Bench::new(default());
    bench.glance = Glance::empty();
    while bench.interrupt(100) == BUDGET {
        bench.switches += 1;
        assert!(bench.now < 1_000_000, "nothing was deferred");
    }
    assert_eq!(bench.now, 10_001, "as soon as the window is over");
    bench.now += 9_900;
    bench.switches += 1;
    assert_eq!(bench.interrupt(100), WORK, "still more than a half");
    bench.now += 200;
    assert_eq!(bench.interrupt(100), BUDGET, "less");
}

#[test]
fn flood_needs_its_part_of_the_time() {
    for (busy, free, flooded) in [(50, 50, true), (49, 51, false), (1, 99, false)] {
        let mut bench = Bench::new(default());
        assert_eq!(bench.run(busy, free, 1_000_000), flooded, "{busy} {free}");
    }
    for (percent, flooded) in [(1, true), (9, true), (11, false), (100, false)] {
        let mut bench = Bench::new(config([10_000, percent, 30, 256]));
        assert_eq!(bench.run(10, 90, 1_000_000), flooded, "{percent}");
    }
}

#[test]
fn a_switch_now_and_then_is_no_flood() {
    let mut bench = Bench::new(default());
    for _ in 0..1_000 {
        let until = bench.now + 9_900;
        assert!(!bench.run(100, 0, until));
        bench.switches += 1;
    }
}

#[test]
fn a_single_task_is_not_starved_by_having_nothing_to_switch_to() {
    let mut bench = Bench::new(default());
    assert!(!bench.run(5, 95, 10_000_000));
}

#[test]
fn flood_after_minutes_of_a_single_task_is_seen_within_two_windows() {
    let mut bench = Bench::new(default());
    assert!(!bench.run(5, 95, 100_000_000));
    let began = bench.now;
    assert!(bench.run(100, 0, began + 1_000_000));
    assert!(bench.now - began <= 20_000, "{}", bench.now - began);
}

#[test]
fn flood_ends_by_itself_when_handlers_had_less_than_their_part() {
    // A task that is alone, and runs while the work item drains: no switch ends it.
    let mut bench = Bench::new(default());
    assert!(bench.run(100, 0, 1_000_000));
    bench.now += 10_001;
    assert_eq!(bench.interrupt(100), BUDGET);
}

#[test]
fn the_first_interrupt_of_a_cpu_is_no_flood() {
    let mut bench = Bench::new(config([100, 1, 0, 1]));
    bench.now = u64::MAX / 2_000;
    bench.switches = 0;
    let seen = bench.seen(0);
    let verdict = bench.config.weigh_interrupt(&seen, &mut (), &mut bench.cpu);
    assert_eq!(verdict, Verdict::Drain(Budget::new(1).unwrap()));
}

#[test]
fn arithmetic_holds_at_the_bounds() {
    let config = config([100_000, 100, 1_000, 256]);
    let mut cpu = Cpu::new();
    for nanos in [1, u64::MAX, 0, u64::MAX, u64::MAX - 1, 1] {
        let seen = Observation {
            began: Instant::ZERO,
            now: Instant::from_nanos(nanos),
            ..Observation::default()
        };
        let _ = config.weigh_interrupt(&seen, &mut (), &mut cpu);
        let _ = config.weigh_drained(&seen, Drained(u32::MAX), &mut (), &mut cpu);
    }
}

#[test]
fn perf_01_an_idle_cpu_looks_at_no_clock() {
    let rig = Rig::parsed("flood");
    rig.idle.set(true);
    for _ in 0..100 {
        rig.queue.post(1);
        rig.interrupt();
        assert_eq!(rig.last_answer(), Handled::Handled);
    }
    assert!(rig.take_trace().iter().all(|call| *call == "glance"));
}

/// A CPU in a flood.
fn flooded() -> Rig {
    let rig = Rig::parsed("flood:window_us=100,busy_percent=1");
    // Drains take no time on this platform; the clock moves when the handler looks at it again.
    rig.now.set(Instant::from_nanos(1));
    rig.queue.post(1);
    rig.interrupt();
    let seen = Observation {
        began: Instant::from_nanos(1),
        now: Instant::from_nanos(100_001),
        ..Observation::default()
    };
    let config = config([100, 1, 30, 256]);
    let _ = config.weigh_drained(&seen, Drained(1), &mut (), &mut rig.cpu.borrow_mut());
    rig.pass_time(Span::from_micros(100));
    rig
}

#[test]
fn flooded_cpu_only_masks_and_the_work_item_drains() {
    let rig = flooded();
    rig.take_trace();
    rig.queue.post(300);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 300);
    assert_eq!(rig.take_trace(), ["glance", "now", "mask", "defer"]);
    assert!(rig.queued.get());
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.relaxed.get(), 1, "between budgets");
    assert_eq!(rig.slept.get(), Span::from_micros(30), "throttled");
    rig.switches.set(1);
    common::finish(&rig);
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0, "in the handler again");
}

#[test]
fn work_item_keeps_a_queue_that_is_fed_while_it_rests() {
    let rig = flooded();
    rig.queue.post(1);
    rig.interrupt();
    let feeds = std::rc::Rc::new(std::cell::Cell::new(0));
    let fed = feeds.clone();
    *rig.on_sleep.borrow_mut() = Some(Box::new(move |rig| {
        if fed.replace(fed.get() + 1) < 9 {
            rig.queue.post(1);
            rig.interrupt();
        }
    }));
    rig.settle();
    assert_eq!(feeds.get(), 10);
    assert_eq!(rig.moderator.stats().read().deferrals, 1);
    common::finish(&rig);
}

#[test]
fn pause_at_each_point() {
    common::pause_at_each_point(|| Rig::parsed("flood"));
    common::pause_at_each_point(flooded);
}
