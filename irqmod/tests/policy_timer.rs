// SPDX-License-Identifier: GPL-2.0

//! `timer`: the delay, the hold timer, and what push guarantees on a CPU with many lines.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::{
        Glance,
        Observation, //
    },
    params::parse,
    policy::{
        self,
        timer::{
            Config,
            Cpu,
            Expiry,
            Line,
            MAX_HOLD,
            MIN_SLEEP,
            QUIET, //
        },
        Policy as _, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::{
        After,
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

const HOLD: After = After::Defer(Deferral::Hold);
const BUDGET: Verdict = Verdict::Drain(Budget::POLL_DEFAULT);

fn config(text: &str) -> Config {
    match parse(text).unwrap().policy {
        policy::Config::Timer(config) => config,
        other => panic!("{other}"),
    }
}

fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn span(micros: u32) -> Span {
    Span::from_micros(micros)
}

/// A CPU, and a line on it.
struct Bench {
    config: Config,
    line: Line,
    cpu: policy::Cpu,
}

impl Bench {
    fn new(text: &str) -> Self {
        Self {
            config: config(text),
            line: Line::default(),
            cpu: policy::Cpu::new(),
        }
    }

    /// A handler that began at one time and ended at another, in microseconds.
    fn drained(&mut self, began: u64, now: u64, drain: Drain, left: Option<u32>) -> After {
        let seen = Observation {
            began: micros(began),
            now: micros(now),
            in_flight: left,
            ..Observation::default()
        };
        self.config
            .weigh_drained(&seen, drain, &mut self.line, &mut self.cpu)
    }

    fn expire(&mut self, now: u64) -> Expiry {
        self.cpu.timer.on_expiry(micros(now))
    }
}

#[test]
fn values_at_and_beyond_their_bounds() {
    let low = [0, 0, 0, 1, 50, 8, 0];
    let high = [500, 50_000_000, 100, 100, 1_000, 128, 1];
    for values in [low, high] {
        assert_eq!(Config::from_values(&values).unwrap().values(), values);
    }
    for key in 0..7 {
        let mut values = high;
        values[key] += 1;
        assert!(Config::from_values(&values).is_err(), "{values:?}");
        values[key] = u32::MAX;
        assert!(Config::from_values(&values).is_err(), "{values:?}");
        if low[key] != 0 {
            let mut values = low;
            values[key] -= 1;
            assert!(Config::from_values(&values).is_err(), "{values:?}");
        }
    }
    assert_eq!(config("timer").values(), [30, 0, 0, 5, 150, 8, 1]);
}

#[test]
fn verdicts() {
    let table = [
        ("timer", Glance::empty(), Some(BUDGET)),
        ("timer:push=0", Glance::empty(), Some(BUDGET)),
        ("timer", Glance::HARDIRQ, None),
        ("timer:push=0", Glance::HARDIRQ, Some(BUDGET)),
        ("timer:push=0,hardirq_percent=1", Glance::HARDIRQ, None),
        (
            "timer:push=0,target_intr_rate=1",
            Glance::HARDIRQ,
            Some(BUDGET),
        ),
        ("timer:delay_us=0", Glance::HARDIRQ, Some(BUDGET)),
    ];
    for (text, glance, verdict) in table {
        assert_eq!(config(text).on_interrupt(glance), verdict, "{text}");
    }
}

#[test]
fn hrt_01_a_delay_of_zero_is_off_and_not_now() {
    for text in ["timer:delay_us=0", "timer:delay_us=0,target_intr_rate=1"] {
        let config = config(text);
        let after = config.on_drained(Glance::HARDIRQ, Drained(5));
        assert_eq!(after, Some(After::Open));
        let rig = Rig::parsed(text);
        for _ in 0..1000 {
            rig.queue.post(3);
            rig.interrupt();
        }
        assert!(!rig.take_trace().contains(&"arm_hold"));
        assert_eq!(rig.depth.get(), 0);
    }
}

#[test]
fn what_is_not_held() {
    let config = config("timer");
    let table = [
        (Glance::HARDIRQ, Drained(0), Some(After::Open)),
        (Glance::HARDIRQ, Drained(1), None),
        (Glance::HARDIRQ, More(256), None),
        (Glance::empty(), Drained(1), Some(After::Open)),
        (
            Glance::empty(),
            More(256),
            Some(After::Defer(Deferral::Softirq)),
        ),
    ];
    for (glance, drain, after) in table {
        assert_eq!(config.on_drained(glance, drain), after);
    }
}

#[test]
fn an_empty_interrupt_is_left_to_the_spurious_detector() {
    let rig = Rig::parsed("timer");
    for _ in 0..1000 {
        rig.interrupt();
        assert_eq!(rig.last_answer(), Handled::None);
    }
}

#[test]
fn short_delays_add_up_to_ten_microseconds() {
    for (delay, free) in [(1, 9), (3, 3), (5, 1), (9, 1), (10, 0), (500, 0)] {
        let mut bench = Bench::new(&format!("timer:delay_us={delay}"));
        for round in 0..3 {
            let now = round * 1000;
            for _ in 0..free {
                assert_eq!(bench.drained(now, now, Drained(1), None), After::Open);
            }
            let armed = After::HoldFor(span(delay * (free + 1)));
            assert_eq!(bench.drained(now, now, Drained(1), None), armed);
            let until = now + u64::from(delay * (free + 1));
            assert_eq!(bench.expire(until), Expiry::Release);
        }
    }
}

#[test]
fn what_is_left_and_not_held_is_polled() {
    let mut bench = Bench::new("timer:delay_us=1");
    let after = bench.drained(0, 0, More(256), None);
    assert_eq!(after, After::Defer(Deferral::Softirq));
}

#[test]
fn timer_that_runs_is_not_started_again() {
    let mut bench = Bench::new("timer:push=0");
    let armed = After::HoldFor(span(30));
    assert_eq!(bench.drained(0, 1, Drained(1), None), armed);
    for now in 1..30 {
        assert_eq!(bench.drained(now, now, Drained(1), None), HOLD);
        assert_eq!(bench.drained(now, now, More(256), None), HOLD);
    }
    assert_eq!(bench.expire(31), Expiry::Release, "plain: whoever joined");
    assert_eq!(bench.drained(40, 40, Drained(1), None), armed);
}

#[test]
fn push_goes_on_once_more_for_each_line_that_joined() {
    let mut bench = Bench::new("timer:delay_us=20");
    let _ = bench.drained(0, 0, Drained(1), None);
    for _ in 0..3 {
        assert_eq!(bench.drained(0, 0, Drained(1), None), HOLD);
    }
    assert_eq!(bench.expire(20), Expiry::Push(span(60)));
    assert_eq!(bench.drained(30, 30, Drained(1), None), HOLD);
    assert_eq!(bench.expire(80), Expiry::Push(span(20)));
    assert_eq!(bench.expire(100), Expiry::Release);
    assert_eq!(bench.expire(100), Expiry::Release, "nothing is held");
}

#[test]
fn hrt_03_push_is_cut_at_the_cap() {
    let mut bench = Bench::new("timer:delay_us=500");
    let _ = bench.drained(0, 0, Drained(1), None);
    for _ in 0..1_000_000 {
        let _ = bench.drained(0, 0, Drained(1), None);
    }
    assert_eq!(bench.expire(500), Expiry::Push(span(4_500)));
    let _ = bench.drained(600, 600, Drained(1), None);
    assert_eq!(bench.expire(5_000), Expiry::Release);

    // A rest that is too short to start a timer for.
    let _ = bench.drained(0, 0, Drained(1), None);
    let _ = bench.drained(0, 0, Drained(1), None);
    assert_eq!(bench.expire(4_990), Expiry::Push(MIN_SLEEP));
    let _ = bench.drained(0, 0, Drained(1), None);
    assert_eq!(bench.expire(4_991), Expiry::Release);
    let _ = bench.drained(0, 0, Drained(1), None);
    let _ = bench.drained(0, 0, Drained(1), None);
    assert_eq!(bench.expire(4_991), Expiry::Release);
}

#[test]
fn clock_that_steps_holds_nothing_for_ever() {
    let mut bench = Bench::new("timer:delay_us=500");
    let _ = bench.drained(1_000, 1_000, Drained(1), None);
    let _ = bench.drained(1_000, 1_000, Drained(1), None);
    assert_eq!(bench.expire(0), Expiry::Push(span(500)));
    let _ = bench.drained(1_000, 1_000, Drained(1), None);
    let late = Instant::from_nanos(u64::MAX);
    assert_eq!(bench.cpu.timer.on_expiry(late), Expiry::Release);
}

#[test]
fn a_cpu_that_goes_away_starts_anew() {
    let mut bench = Bench::new("timer");
    let _ = bench.drained(0, 0, Drained(1), None);
    bench.cpu.timer.on_release();
    let armed = After::HoldFor(span(30));
    assert_eq!(bench.drained(9, 9, Drained(1), None), armed);
}

#[test]
fn quiet_before_the_cap() {
    let mut bench = Bench::new("timer");
    let at = |nanos| Observation {
        now: Instant::from_nanos(nanos),
        ..Observation::default()
    };
    let ask = |bench: &mut Bench, nanos| {
        let Bench { config, line, cpu } = bench;
        config.weigh_interrupt(&at(nanos), line, cpu)
    };
    let busy = MAX_HOLD.minus(QUIET).as_nanos();
    assert_eq!(ask(&mut bench, u64::MAX), BUDGET, "the timer does not run");
    let _ = bench.drained(0, 0, Drained(1), None);
    assert_eq!(ask(&mut bench, busy - 1), BUDGET);
    for nanos in [busy, MAX_HOLD.as_nanos(), u64::MAX] {
        assert_eq!(ask(&mut bench, nanos), Verdict::Defer(Deferral::Hold));
    }
    assert_eq!(bench.expire(30), Expiry::Push(span(90)), "they count");
    assert_eq!(bench.expire(5_000), Expiry::Release);
    assert_eq!(ask(&mut bench, u64::MAX), BUDGET);

    let mut plain = Bench::new("timer:push=0,hardirq_percent=100");
    let _ = plain.drained(0, 0, Drained(1), None);
    assert_eq!(ask(&mut plain, busy), BUDGET, "as in the proposal");
}

/// The longest times seen on a CPU. Unit: nanoseconds.
#[derive(Debug, Default)]
struct Longest {
    hold: u64,
    busy: u64,
    /// Shortest time that the timer was started for.
    sleep: u64,
    free: u64,
    runs: Vec<u64>,
}

/// Lines that always have more completions than fit in a drain, and a CPU that does nothing else,
/// for a second. Interrupts come before the timer whenever both are due.
fn flood(text: &str, lines: usize, drain: u64, mask: u64) -> Longest {
    let config = config(text);
    let mut cpu = policy::Cpu::new();
    let mut held: Vec<Option<u64>> = vec![None; lines];
    let mut longest = Longest {
        sleep: u64::MAX,
        runs: vec![0; lines],
        ..Longest::default()
    };
    let (mut now, mut timer, mut busy_since, mut next) = (0, None::<u64>, 0, 0);
    while now < 1_000_000_000 {
        let open = (0..lines)
            .map(|i| (next + i) % lines)
            .find(|i| held[*i].is_none());
        if let Some(line) = open {
            next = line + 1;
            let seen = |began, now| Observation {
                glance: Glance::HARDIRQ,
                began: Instant::from_nanos(began),
                now: Instant::from_nanos(now),
                ..Observation::default()
            };
            let mut memory = Line::default();
            let verdict = match config.on_interrupt(Glance::HARDIRQ) {
                Some(verdict) => verdict,
                None => config.weigh_interrupt(&seen(now, now), &mut memory, &mut cpu),
            };
            if verdict != BUDGET {
                now += mask;
                held[line] = Some(now);
                continue;
            }
            let began = now;
            now += drain;
            longest.runs[line] += 1;
            longest.busy = longest.busy.max(now - busy_since);
            let full = More(Budget::POLL_DEFAULT.get());
            match config.weigh_drained(&seen(began, now), full, &mut memory, &mut cpu) {
                After::HoldFor(span) => {
                    assert!(timer.is_none(), "started twice");
                    longest.sleep = longest.sleep.min(span.as_nanos());
                    timer = Some(now + span.as_nanos());
                    held[line] = Some(now);
                }
                After::Defer(Deferral::Hold) => held[line] = Some(now),
                _ => (),
            }
        } else {
            now = now.max(timer.unwrap());
        }
        // The timer comes between two handlers, or when there is none.
        if timer.is_some_and(|at| at <= now) {
            let free = now - busy_since.max(last_end(&held));
            longest.free += free;
            match cpu.timer.on_expiry(Instant::from_nanos(now)) {
                Expiry::Push(span) => {
                    longest.sleep = longest.sleep.min(span.as_nanos());
                    timer = Some(now + span.as_nanos());
                }
                Expiry::Release => {
                    timer = None;
                    for since in held.iter_mut().filter_map(Option::take) {
                        longest.hold = longest.hold.max(now - since);
                    }
                }
            }
            if free != 0 {
                busy_since = now;
            }
        }
    }
    longest
}

/// When the last handler ended.
fn last_end(held: &[Option<u64>]) -> u64 {
    held.iter().flatten().max().copied().unwrap_or(0)
}

#[test]
fn hrt_03_hold_is_capped_for_any_number_of_lines() {
    for lines in [1, 2, 4, 24, 300] {
        for delay in [1, 10, 100, 500] {
            for drain in [1_000, 100_000, 2_000_000] {
                let text = format!("timer:delay_us={delay}");
                let longest = flood(&text, lines, drain, 500);
                let masks = lines as u64 * 500;
                let cap = MAX_HOLD.as_nanos() + drain + masks;
                assert!(longest.hold <= cap, "{text} {lines} {drain} {longest:?}");
                assert!(longest.sleep >= MIN_SLEEP.as_nanos(), "{text} {longest:?}");
            }
        }
    }
}

#[test]
fn storm_02_push_leaves_time_whatever_the_handlers_take() {
    for lines in [1, 2, 4, 24, 300] {
        for delay in [10, 100, 500] {
            for drain in [1_000, 100_000, 400_000] {
                let text = format!("timer:delay_us={delay}");
                let longest = flood(&text, lines, drain, 500);
                let masks = lines as u64 * 500;
                let cap = MAX_HOLD.minus(QUIET).as_nanos() + 2 * drain + masks;
                assert!(longest.busy <= cap, "{text} {lines} {drain} {longest:?}");
                if lines as u64 * drain <= MAX_HOLD.minus(QUIET).as_nanos() {
                    let fewest = longest.runs.iter().min().unwrap();
                    let most = longest.runs.iter().max().unwrap();
                    assert!(most - fewest <= 1, "{text} {lines} {drain} {longest:?}");
                }
            }
        }
    }
}

#[test]
fn storm_02_without_push_the_delay_bounds_nothing() {
    // As in the field: handlers that together outlast the delay never leave the CPU.
    let longest = flood("timer:delay_us=100,push=0", 4, 100_000, 500);
    assert_eq!(longest.free, 0);
    assert!(longest.busy > 900_000_000, "{longest:?}");
    let longest = flood("timer:delay_us=100", 4, 100_000, 500);
    assert!(longest.free > 100_000_000, "{longest:?}");
}

/// Feeds handlers at a fixed pace for some time, each with the same result, and returns the delay.
fn paced(bench: &mut Bench, from: u64, every: u64, until: u64, drain: Drain, busy: u64) -> Span {
    let mut now = from;
    while now < until {
        if let After::HoldFor(_) = bench.drained(now - busy, now, drain, Some(9)) {
            assert_eq!(bench.expire(now), Expiry::Release);
        }
        now += every;
    }
    bench.cpu.timer.delay()
}

#[test]
fn adaptive_delay_starts_at_the_maximum_and_decays() {
    let mut bench = Bench::new("timer:delay_us=100,target_intr_rate=1000000");
    assert_eq!(paced(&mut bench, 100, 10, 101, Drained(2), 0), span(100));
    // One sixteenth less each period of 5 ms.
    let mut expected = 100_000;
    for period in 1..=40 {
        let from = 110 + (period - 1) * 5_000;
        let delay = paced(&mut bench, from, 10, from + 5_000, Drained(2), 0);
        expected -= expected / 16;
        assert_eq!(delay.as_nanos(), expected, "period {period}");
    }
    let delay = paced(&mut bench, 300_000, 10, 1_000_000, Drained(2), 0);
    assert_eq!(delay, Span::ZERO, "below 500 ns is none");
}

#[test]
fn adaptive_delay_grows_above_the_rate_up_to_the_maximum() {
    // 100,000 per second, times 150 %.
    for (target, grows) in [(149_000, true), (151_000, false)] {
        let text = format!("timer:delay_us=100,target_intr_rate={target},push=0");
        let mut bench = Bench::new(&text);
        paced(&mut bench, 100, 10, 100_000, Drained(2), 0);
        // From nothing: by an eighth of 500 ns at first.
        bench.cpu.timer = Cpu::new();
        let first = paced(&mut bench, 100_000, 10, 105_010, Drained(2), 0);
        assert_eq!(first.as_nanos(), if grows { 562 } else { 0 });
        let last = paced(&mut bench, 105_010, 10, 1_000_000, Drained(2), 0);
        assert_eq!(last, if grows { span(100) } else { Span::ZERO });
    }
}

#[test]
fn adaptive_delay_grows_with_the_time_of_handlers() {
    for (busy, grows) in [(49, false), (51, true)] {
        let mut bench = Bench::new("timer:delay_us=100,hardirq_percent=50,push=0");
        paced(&mut bench, 100, 100, 1_000_000, Drained(2), 100);
        bench.cpu.timer = Cpu::new();
        let last = paced(&mut bench, 1_000_000, 100, 2_000_000, Drained(2), busy);
        assert_eq!(last, if grows { span(100) } else { Span::ZERO });
    }
}

#[test]
fn missed_periods_count_up_to_the_divisor() {
    // One handler a second, that found more than one command.
    let table = [
        (8, 100_000 - 100_000 * 7 / 16),
        (128, 100_000 - 100_000 * 127 / 256),
    ];
    for (divisor, left) in table {
        let text = format!("timer:delay_us=100,target_intr_rate=9,increase_divisor={divisor}");
        let mut bench = Bench::new(&text);
        let _ = bench.drained(0, 0, Drained(2), Some(9));
        let _ = bench.drained(1_000_000, 1_000_000, Drained(2), Some(9));
        assert_eq!(bench.cpu.timer.delay(), Span::from_nanos(left));
    }
}

#[test]
fn arithmetic_of_the_delay_holds_at_the_bounds() {
    for text in [
        "timer:delay_us=500,target_intr_rate=50000000,scale_cpus=1000,increase_divisor=128",
        "timer:delay_us=500,target_intr_rate=1,hardirq_percent=1,scale_cpus=50",
        "timer:delay_us=1,target_intr_rate=1,update_ms=100,increase_divisor=128",
    ] {
        let mut bench = Bench::new(text);
        for nanos in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX, 0, u64::MAX] {
            let seen = Observation {
                began: Instant::ZERO,
                now: Instant::from_nanos(nanos),
                in_flight: Some(u32::MAX),
                ..Observation::default()
            };
            let _ = bench.config.weigh_drained(
                &seen,
                Drained(u32::MAX),
                &mut bench.line,
                &mut bench.cpu,
            );
            let most = config(text).values()[0] * 1_000;
            assert!(bench.cpu.timer.delay().as_nanos() <= most.into());
            let _ = bench.cpu.timer.on_expiry(seen.now);
        }
    }
}

#[test]
fn delay_of_a_cpu_is_capped_by_each_line() {
    let mut bench = Bench::new("timer:delay_us=400,hardirq_percent=1");
    assert_eq!(
        bench.drained(0, 0, Drained(1), Some(9)),
        After::HoldFor(span(400))
    );
    assert_eq!(bench.expire(400), Expiry::Release);
    bench.config = config("timer:delay_us=20,hardirq_percent=1");
    assert_eq!(
        bench.drained(500, 500, Drained(1), Some(9)),
        After::HoldFor(span(20))
    );
}

#[test]
fn a_change_of_parameters_resets_the_delay_to_the_maximum() {
    let rig = Rig::parsed("timer:delay_us=100,hardirq_percent=90");
    rig.now.set(micros(1));
    let delay = |rig: &Rig| rig.cpu.borrow().timer.delay();
    let load = |rig: &Rig| {
        for _ in 0..100 {
            rig.queue.post(1);
            rig.interrupt();
            rig.settle();
            rig.pass_time(Span::from_millis(1));
        }
    };
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(delay(&rig), span(100));
    rig.settle();
    load(&rig);
    assert_eq!(delay(&rig), Span::ZERO);
    rig.pause();
    let choice = parse("timer:delay_us=50,hardirq_percent=90").unwrap();
    rig.moderator.set_choice(choice);
    rig.resume();
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(delay(&rig), span(50));
    rig.settle();
    load(&rig);
    assert_eq!(delay(&rig), Span::ZERO);
    common::finish(&rig);
}

/// One command at a time, which the device takes 40 us for, and how long after the start the last
/// one was held.
fn qd1(text: &str, in_flight: Option<u32>, seconds: u64) -> Span {
    let rig = Rig::parsed(text);
    rig.queue.set_in_flight(in_flight);
    let start = rig.now.get();
    let mut last = start;
    while rig.now.get().since(start) < Span::from_millis(1_000).times(seconds) {
        rig.pass_time(span(40));
        rig.queue.post(1);
        // One that comes while the line is held waits for the release.
        while rig.held.get() {
            rig.expire();
        }
        rig.settle();
        rig.interrupt();
        if rig.held.get() {
            last = rig.now.get();
        }
    }
    last.since(start)
}

#[test]
fn perf_01_one_command_at_a_time_is_soon_not_delayed() {
    for in_flight in [None, Some(0)] {
        for text in [
            "timer:delay_us=30,hardirq_percent=50",
            "timer:delay_us=500,hardirq_percent=99",
            "timer:delay_us=500,target_intr_rate=1000000",
            "timer:delay_us=500,target_intr_rate=1000000,increase_divisor=128",
            "timer:delay_us=500,target_intr_rate=1000000,update_ms=90",
        ] {
            let last = qd1(text, in_flight, 2);
            assert!(last < Span::from_millis(100), "{text}: {last:?}");
        }
    }
    let fixed = qd1("timer", Some(0), 2);
    assert!(fixed > Span::from_millis(1_900), "fixed is fixed");
}

#[test]
fn held_line_is_released_and_nothing_is_lost() {
    let rig = Rig::parsed("timer:delay_us=20");
    rig.queue.post(300);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 44, "a budget");
    assert_eq!(rig.hold.get(), Some(span(20)));
    rig.queue.post(7);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 51, "left while held");
    let trace = rig.take_trace();
    assert_eq!(trace, ["glance", "now", "now", "arm_hold", "mask", "defer"]);
    rig.expire();
    rig.settle();
    common::finish(&rig);
}

#[test]
fn lost_interrupt_of_a_held_line_is_noticed_at_the_release() {
    let rig = Rig::parsed("timer");
    rig.latches.set(false);
    rig.queue.post(1);
    rig.interrupt();
    rig.queue.post(2);
    rig.interrupt();
    rig.expire();
    assert!(rig.listed.get(), "the look");
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn tear_08_held_line_of_a_removed_device_stays_masked() {
    let rig = Rig::parsed("timer");
    rig.queue.post(1);
    rig.interrupt();
    rig.interrupt();
    assert!(rig.held.get());
    rig.queue.set_reachable(false);
    rig.take_trace();
    rig.expire();
    assert!(!rig.take_trace().contains(&"unmask"));
    assert_eq!(rig.depth.get(), 1);
    rig.stop();
    rig.free();
}

#[test]
fn line_that_was_held_undrained_is_polled_at_the_release() {
    // Lines that come too late in a round are not left to who comes first in the next one.
    let rig = Rig::parsed("timer");
    rig.queue.post(1);
    rig.interrupt();
    rig.hold.set(None);
    rig.held.set(false);
    rig.moderator.on_hold_end(&rig.queue, &rig);
    rig.pass_time(MAX_HOLD.minus(QUIET));
    rig.queue.post(9);
    rig.interrupt();
    assert!(rig.held.get());
    assert_eq!(rig.queue.waiting(), 9);
    while rig.held.get() {
        rig.expire();
    }
    assert!(rig.listed.get());
    rig.poll();
    assert_eq!(rig.queue.waiting(), 0);
    common::finish(&rig);
}

#[test]
fn hrt_03_after_the_load_stops_one_delay_is_the_longest() {
    let rig = Rig::parsed("timer:delay_us=100");
    rig.queue.set_endless(true);
    rig.interrupt();
    for _ in 0..100 {
        rig.step();
    }
    rig.queue.set_endless(false);
    common::finish(&rig);
    rig.pass_time(span(1_000));
    let start = rig.now.get();
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0, "at once");
    rig.queue.post(1);
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0);
    assert!(rig.now.get().since(start) <= span(100));
}

#[test]
fn a_timer_with_nobody_on_its_list_is_over_when_it_expires() {
    // The claim is refused: a pause is about to join this handler.
    let rig = Rig::parsed("timer");
    rig.queue.post(1);
    rig.interrupt();
    rig.pause();
    assert!(!rig.held.get());
    rig.resume();
    rig.queue.post(1);
    rig.interrupt();
    assert!(rig.held.get(), "on the list of the timer that still runs");
    common::finish(&rig);
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.hold.get(), Some(span(30)));
    common::finish(&rig);
}

#[test]
fn pause_at_each_point() {
    for text in [
        "timer:delay_us=500",
        "timer:delay_us=3",
        "timer:delay_us=0",
        "timer:push=0",
        "timer:hardirq_percent=1,update_ms=1",
    ] {
        common::pause_at_each_point(|| Rig::parsed(text));
    }
}

#[test]
fn timer_brings_the_lists_of_the_cpus() {
    let wants = |text| irqmod::params::parse(text).unwrap().policy.wants_cpu();
    assert!(wants("timer"));
    assert!(wants("timer:delay_us=100,push=1"));
    assert!(wants("fair"));
    assert!(!wants("hardirq") && !wants("resched") && !wants("threaded"));
}
