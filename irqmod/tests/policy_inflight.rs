// SPDX-License-Identifier: GPL-2.0

//! `inflight`: what it decides, and that the thread always ends.

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
        inflight::{
            Config,
            Line,
            LOW_CHECKS, //
        },
        Cpu,
        Policy as _, //
    },
    time::Span,
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
use std::sync::atomic::Ordering::Relaxed;

/// `high`, `low`, `max_loops`, `interval_us`, `budget`.
fn config(values: [u32; 5]) -> Config {
    let [high, low, max_loops, interval_us, budget] = values;
    Config::from_values(&[high, low, max_loops, interval_us, budget, 0, 0]).unwrap()
}

fn default() -> Config {
    config([32, 3, 1000, 30, 256])
}

fn seen(in_flight: Option<u32>) -> Observation {
    Observation {
        in_flight,
        ..Observation::default()
    }
}

#[test]
fn values_go_together_or_are_refused() {
    let table = [
        ([32, 3, 1000, 30, 256], true),
        ([2, 1, 1, 1, 1], true),
        ([65_535, 65_534, 10_000, 1000, 256], true),
        ([3, 3, 1, 1, 1], false),
        ([3, 4, 1, 1, 1], false),
        ([1, 1, 1, 1, 1], false),
        ([2, 0, 1, 1, 1], false),
        ([2, 1, 0, 1, 1], false),
        ([2, 1, 1, 0, 1], false),
        ([2, 1, 1, 1, 0], false),
        ([65_536, 1, 1, 1, 1], false),
        ([2, 1, 10_001, 1, 1], false),
        ([2, 1, 1, 1_001, 1], false),
        ([2, 1, 1, 1, 257], false),
        ([u32::MAX; 5], false),
    ];
    for (values, allowed) in table {
        let [high, low, max_loops, interval_us, budget] = values;
        let values = [high, low, max_loops, interval_us, budget, 0, 0];
        let config = Config::from_values(&values);
        assert_eq!(config.is_ok(), allowed, "{values:?}");
        if let Ok(config) = config {
            assert_eq!(config.values(), values);
        }
    }
}

#[test]
fn hrt_04_a_low_that_is_not_below_high_is_a_conflict_in_both_orders() {
    for text in [
        "inflight:low=32",
        "inflight:high=9,low=9",
        "inflight:low=9,high=2",
    ] {
        let error = parse(text).unwrap_err();
        assert!(!error.is_range(), "{text}");
        assert_eq!(error.to_string(), "inflight: low must be less than high");
    }
    assert!(parse("inflight:low=31").is_ok());
    assert!(parse("inflight:low=40,high=41").is_ok());
}

#[test]
fn handler_drains_a_budget_also_in_a_forced_thread() {
    let config = config([32, 3, 1000, 30, 7]);
    let budget = Verdict::Drain(Budget::new(7).unwrap());
    assert_eq!(config.on_interrupt(Glance::HARDIRQ), Some(budget));
    assert_eq!(config.on_interrupt(Glance::empty()), Some(budget));
    let open = Some(After::Open);
    assert_eq!(config.on_drained(Glance::empty(), Drained(9)), None);
    assert_eq!(config.on_drained(Glance::HARDIRQ, Drained(0)), open);
    assert_eq!(config.on_drained(Glance::HARDIRQ, Drained(1)), None);
    assert_eq!(config.on_drained(Glance::HARDIRQ, More(7)), None);
}

#[test]
fn what_follows_a_drain_in_the_handler() {
    let thread = After::Defer(Deferral::Thread);
    let table = [
        (None, Drained(5), After::Open),
        (None, More(5), thread),
        (Some(0), Drained(5), After::Open),
        (Some(31), Drained(5), After::Open),
        (Some(32), Drained(5), thread),
        (Some(u32::MAX), Drained(5), thread),
        (Some(0), More(5), thread),
    ];
    for (in_flight, drain, after) in table {
        // Whatever a paused loop left behind.
        let mut line = Line::default();
        let _ = default().on_pass(&seen(Some(9)), Drained(0), &mut line);
        let got = default().weigh_drained(&seen(in_flight), drain, &mut line, &mut Cpu::new());
        assert_eq!(got, after, "{in_flight:?} {drain:?}");
        assert_eq!(line, Line::default());
    }
}

/// What a drain finds, and the commands in flight then.
type Found = (Drain, Option<u32>);

/// Feeds the thread with what each drain finds, and returns what it does after the last.
fn passes(config: Config, passes: &[Found]) -> Next {
    let mut line = Line::default();
    let mut next = Next::Again;
    for (drain, in_flight) in passes {
        assert_ne!(next, Next::HandBack, "handed back too early");
        next = config.on_pass(&seen(*in_flight), *drain, &mut line);
    }
    next
}

#[test]
fn what_follows_a_drain_in_the_thread() {
    let rest = Next::Rest(Span::from_micros(30));
    let (empty, few, many) = (Drained(0), Some(2), Some(3));
    let table: [(&[Found], Next); 9] = [
        (&[(empty, few)], rest),
        (&[(empty, few), (empty, few)], rest),
        (&[(empty, few); 3], Next::HandBack),
        (&[(empty, None); 3], Next::HandBack),
        // Something found, or many commands: the count begins anew.
        (
            &[(empty, few), (empty, few), (Drained(1), few), (empty, few)],
            rest,
        ),
        (
            &[
                (empty, few),
                (empty, few),
                (empty, many),
                (empty, few),
                (empty, few),
            ],
            rest,
        ),
        (&[(Drained(9), few)], rest),
        (&[(More(256), few)], Next::Again),
        (&[(empty, many); 999], rest),
    ];
    for (given, next) in table {
        assert_eq!(passes(default(), given), next, "{given:?}");
    }
    assert_eq!(LOW_CHECKS, 3);
}

#[test]
fn max_loops_counts_every_drain_and_ends_at_an_empty_queue() {
    let config = config([32, 3, 3, 30, 256]);
    let many = Some(40);
    assert_eq!(passes(config, &[(Drained(1), many); 3]), Next::HandBack);
    assert_eq!(passes(config, &[(Drained(0), many); 3]), Next::HandBack);
    let full = [(More(256), many); 9];
    assert_eq!(passes(config, &full), Next::Again, "not seen empty");
    let mut then_empty = full.to_vec();
    then_empty.push((Drained(255), many));
    assert_eq!(passes(config, &then_empty), Next::HandBack);
}

#[test]
fn counters_of_the_thread_saturate() {
    let config = default();
    let mut line = Line::default();
    for _ in 0..2_000 {
        let next = config.on_pass(&seen(Some(40)), More(256), &mut line);
        assert_eq!(next, Next::Again);
    }
    let next = config.on_pass(&seen(Some(40)), Drained(0), &mut line);
    assert_eq!(next, Next::HandBack);
    assert_eq!(line, Line::default());
}

#[test]
fn storm_05_loop_ends_at_max_loops_when_nothing_completes() {
    let rig = Rig::parsed("inflight:max_loops=50,interval_us=20");
    rig.queue.set_in_flight(Some(40));
    *rig.on_sleep.borrow_mut() = Some(Box::new(|rig| {
        assert!(rig.slept.get() < Span::from_millis(100), "polls for ever");
    }));
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::WakeThread);
    rig.settle();
    let counts = rig.moderator.stats().read();
    assert_eq!(counts.polls, 50);
    assert_eq!(
        rig.slept.get(),
        Span::from_micros(49 * 20),
        "on the empty path too"
    );
    assert_eq!(rig.depth.get(), 0, "back to interrupts");
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::WakeThread, "and taken again");
    common::finish(&rig);
}

#[test]
fn storm_05_loop_ends_in_a_storm_as_well() {
    let rig = Rig::parsed("inflight:max_loops=50");
    rig.queue.set_in_flight(Some(40));
    *rig.on_sleep.borrow_mut() = Some(Box::new(|rig| {
        assert!(rig.slept.get() < Span::from_millis(100), "polls for ever");
        rig.queue.post(100);
    }));
    rig.queue.post(100);
    rig.interrupt();
    rig.settle();
    assert_eq!(rig.moderator.stats().read().polls, 50);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn defaults_are_accepted_on_a_queue_that_is_smaller() {
    // Three commands at most: never deferred, and drained in the handler all the same.
    let rig = Rig::parsed("inflight");
    for in_flight in [3, 2, 1, 0] {
        rig.queue.set_in_flight(Some(in_flight));
        rig.queue.post(1);
        rig.interrupt();
        assert_eq!(rig.last_answer(), Handled::Handled);
        assert!(!rig.is_deferred());
    }
    common::finish(&rig);

    // Taken after a resume, with as many commands as the queue holds: ends by itself.
    let rig = Rig::parsed("inflight");
    rig.queue.set_in_flight(Some(3));
    rig.pause();
    rig.queue.post(1);
    rig.resume();
    assert!(rig.listed.get());
    common::finish(&rig);
}

#[test]
fn thread_gives_the_cpu_away_after_each_budget_and_each_empty_queue() {
    let rig = Rig::parsed("inflight:budget=10,max_loops=7");
    rig.queue.set_in_flight(Some(40));
    rig.queue.post(35);
    rig.interrupt();
    rig.settle();
    assert_eq!(rig.relaxed.get(), 2, "after 10 and 20 of 25");
    assert_eq!(rig.slept.get(), Span::from_micros(4 * 30));
    let longest = rig.queue.longest.load(Relaxed);
    assert_eq!(longest, 10);
    common::finish(&rig);
}

#[test]
fn interrupt_while_the_thread_polls_touches_nothing() {
    let rig = Rig::parsed("inflight");
    rig.queue.set_in_flight(Some(40));
    rig.queue.post(1);
    rig.interrupt();
    rig.queue.post(5);
    assert_eq!(rig.handler(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 5);
    rig.queue.set_in_flight(Some(0));
    common::finish(&rig);
}

#[test]
fn per_queue_signal_is_blind_to_the_sum_over_a_cpu() {
    // What the documentation warns of: 24 queues, each just below, and no one is ever deferred.
    let rigs: Vec<_> = (0..24).map(|_| Rig::parsed("inflight")).collect();
    for _ in 0..1000 {
        for rig in &rigs {
            rig.queue.set_in_flight(Some(31));
            rig.queue.post(31);
            rig.interrupt();
            assert!(!rig.is_deferred());
        }
    }
}

#[test]
fn pause_at_each_point() {
    for in_flight in [None, Some(0), Some(3), Some(40)] {
        common::pause_at_each_point(|| {
            let rig = Rig::parsed("inflight:max_loops=10");
            rig.queue.set_in_flight(in_flight);
            rig
        });
    }
}
