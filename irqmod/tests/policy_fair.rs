// SPDX-License-Identifier: GPL-2.0

//! `fair` and its ledger: decision tables and boundary values, and the policy in the moderator.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    ledger::{
        Ledger,
        Share, //
    },
    observation::{
        Glance,
        Observation, //
    },
    policy::{
        fair::Config,
        Cpu,
        Policy as _, //
    },
    state::Snapshot,
    time::{
        Instant,
        Span, //
    },
    verdict::{
        Next,
        Verdict, //
    },
    Budget,
    Deferral,
    Drain,
    Handled,
    Pass, //
};
use std::sync::atomic::Ordering::Relaxed;

const OWNED: Snapshot = Snapshot::INIT.union(Snapshot::POLL).union(Snapshot::MASKED);
const FIRST: u32 = Ledger::FIRST_PIECE;

fn budget(completions: u32) -> Budget {
    Budget::new(completions).unwrap()
}

fn at(micros: u32) -> Instant {
    Instant::ZERO.after(Span::from_micros(micros))
}

fn seen(began: u32, now: u32) -> Observation {
    Observation {
        began: at(began),
        now: at(now),
        ..Observation::default()
    }
}

/// This long after a start at zero and the work of the default share.
fn after_work(nanos: u64) -> Instant {
    let work = Instant::ZERO.after(Config::default().share().work());
    work.after(Span::from_nanos(nanos))
}

/// A CPU whose account just became full.
fn full(config: Config) -> Cpu {
    let mut cpu = Cpu::new();
    let work = config.share().work().as_nanos();
    let now = Instant::from_nanos(work + 1);
    let _ = cpu
        .ledger
        .on_handler_piece(Instant::ZERO, now, 1, config.share());
    cpu.ledger.end_handler();
    cpu
}

#[test]
fn shares() {
    // percent, window, work and rest in nanoseconds
    let table = [
        (95, 4_000, 3_800_000, 200_000),
        (90, 4_000, 3_600_000, 400_000),
        (10, 500, 50_000, 450_000),
        (99, 20_000, 19_800_000, 200_000),
        (99, 500, 495_000, 5_000),
        (1_000, 500, 495_000, 5_000),
        (0, 0, 0, 0),
    ];
    for (percent, window, work, rest) in table {
        let share = Share::new(percent, window);
        assert_eq!(share.work().as_nanos(), work, "{percent} {window}");
        assert_eq!(share.rest().as_nanos(), rest, "{percent} {window}");
    }
}

#[test]
fn a_glance_is_enough_on_an_idle_cpu() {
    let idle = Glance::HARDIRQ | Glance::IDLE;
    let table = [
        (idle, true),
        (Glance::IDLE, true),
        (Glance::HARDIRQ, false),
        (Glance::empty(), false),
        (idle | Glance::RESCHED, false),
        (idle | Glance::LAZY, false),
        (Glance::HARDIRQ | Glance::RESCHED, false),
        (Glance::HARDIRQ | Glance::DEFERRING, false),
        (idle | Glance::DEFERRING, false),
        (Glance::all(), false),
    ];
    for (glance, enough) in table {
        assert_eq!(glance.is_free(), enough, "{glance:?}");
    }
    assert_eq!(Config::LIGHT, Some(budget(FIRST)));
}

#[test]
fn a_deferring_cpu_defers_whatever_its_account_says() {
    let config = Config::default();
    let mut cpu = Cpu::new();
    for glance in [Glance::DEFERRING, Glance::all()] {
        let seen = Observation {
            glance,
            ..seen(0, 0)
        };
        let verdict = config.weigh_interrupt(&seen, &mut (), &mut cpu);
        assert_eq!(verdict, Verdict::Defer(Deferral::Cpu), "{glance:?}");
    }
}

#[test]
fn a_full_account_defers_and_a_rest_empties_it() {
    let config = Config::default();
    let mut cpu = full(config);
    let work = config.share().work().as_nanos();
    let now = Observation {
        now: Instant::from_nanos(work + 1),
        ..Observation::default()
    };
    let verdict = config.weigh_interrupt(&now, &mut (), &mut cpu);
    assert_eq!(verdict, Verdict::Defer(Deferral::Cpu));
    assert!(cpu.ledger.is_deferring());

    let mut cpu = full(config);
    let rest = config.share().rest();
    let rested = Observation {
        now: now.now.after(rest),
        ..now
    };
    let verdict = config.weigh_interrupt(&rested, &mut (), &mut cpu);
    assert_eq!(verdict, Verdict::Drain(budget(1)), "a piece of 3.8 ms: one");
    assert!(!cpu.ledger.is_deferring());
}

#[test]
fn the_thread_rests_only_if_somebody_waits() {
    let config = Config::default();
    for contended in [false, true] {
        let mut cpu = full(config);
        cpu.ledger.enter(config.share());
        let began = after_work(1);
        let now = began.after(Span::from_micros(10));
        let rest = cpu.ledger.on_piece(began, now, 1, contended);
        assert_eq!(rest, contended.then_some(config.share().rest()));
    }
}

#[test]
fn drains_until_nothing_is_worth_a_look() {
    let config = Config::default();
    let table = [
        (Drain::Drained(0), Next::HandBack),
        (Drain::Drained(7), Next::HandBack),
        (Drain::Drained(8), Next::Again),
        (Drain::More(1), Next::Again),
    ];
    for (drain, next) in table {
        assert_eq!(config.on_pass(&seen(0, 0), drain, &mut ()), next);
    }
}

#[test]
fn idle_cpu_asks_for_no_clock() {
    let rig = Rig::new(Config::default());
    rig.need_resched.set(false);
    rig.idle.set(true);
    rig.queue.post(FIRST);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.take_trace(), ["is_free"]);
    assert_eq!(rig.queue.looks(), 0, "no look at the queue but the drain");
}

#[test]
fn a_full_account_defers_to_the_cpu() {
    let rig = Rig::new(Config::default());
    *rig.cpu.borrow_mut() = full(Config::default());
    rig.now.set(after_work(1));
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(
        rig.take_trace(),
        ["is_free", "glance", "now", "mask", "defer"]
    );
    assert_eq!(rig.moderator.snapshot(), OWNED);
    assert!(rig.joined.get());
    assert_eq!(rig.serve(), Pass::Done);
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
}

/// A rig whose CPU defers, with `waiting` completions deferred.
fn deferred(waiting: u32) -> Rig {
    let rig = Rig::new(Config::default());
    rig.cpu.borrow_mut().ledger.enter(Config::default().share());
    rig.queue.post(waiting);
    rig.interrupt();
    assert!(rig.joined.get());
    let _ = rig.take_trace();
    rig
}

/// The CPU's completion thread, until its list is empty.
fn serve_all(rig: &Rig) {
    rig.settle();
    rig.cpu.borrow_mut().ledger.leave(rig.now.get());
}

#[test]
fn a_deferring_cpu_only_masks_and_joins() {
    let rig = Rig::new(Config::default());
    rig.idle.set(true);
    rig.cpu.borrow_mut().ledger.enter(Config::default().share());
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::None, "nothing pending");
    rig.queue.post(1_000);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 1_000);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    // A message that was under way.
    assert_eq!(rig.handler(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 1_000);
    assert_eq!(rig.depth.get(), 1);
}

#[test]
fn handlers_drain_again_when_the_list_is_empty() {
    let rig = deferred(1_000);
    serve_all(&rig);
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.queue.longest.load(Relaxed), FIRST);
    assert_eq!(rig.depth.get(), 0);
    rig.need_resched.set(false);
    rig.queue.post(5);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0);
    assert!(!rig.joined.get());
}

#[test]
fn a_completion_in_the_gap_is_seen() {
    for latches in [false, true] {
        let rig = deferred(7);
        rig.latches.set(latches);
        assert_eq!(rig.serve(), Pass::Done);
        rig.queue.post(1);
        rig.joined.set(false);
        rig.interrupt();
        serve_all(&rig);
        assert_eq!(rig.queue.waiting(), 0, "latches: {latches}");
        assert_eq!(rig.depth.get(), 0, "latches: {latches}");
    }
}

#[test]
fn a_clock_that_stands_still_keeps_no_handler() {
    for (idle, need_resched) in [(true, false), (false, true), (false, false)] {
        let rig = Rig::new(Config::default());
        rig.idle.set(idle);
        rig.need_resched.set(need_resched);
        rig.queue.set_endless(true);
        rig.interrupt();
        assert!(rig.joined.get());
        assert_eq!(rig.moderator.snapshot(), OWNED);
        let drained = rig.queue.drained.load(Relaxed);
        assert!(drained <= Ledger::HANDLER_PIECES * Ledger::MAX_PIECE);
        assert!(rig.cpu.borrow().ledger.is_deferring());
    }
}

#[test]
fn a_forced_thread_is_weighed_as_well() {
    let rig = Rig::new(Config::default());
    rig.in_hardirq.set(false);
    *rig.cpu.borrow_mut() = full(Config::default());
    rig.now.set(after_work(1));
    rig.queue.post(3);
    rig.interrupt();
    assert!(rig.joined.get());
    serve_all(&rig);
    assert_eq!((rig.queue.waiting(), rig.depth.get()), (0, 0));
}

#[test]
fn pause_and_resume_lose_nothing_at_any_point() {
    type Point = (&'static str, fn(&Rig));
    let points: [Point; 5] = [
        ("open", |_| ()),
        ("deferred", |rig| {
            rig.queue.post(500);
            rig.interrupt();
        }),
        ("between two pieces", |rig| {
            rig.queue.post(500);
            rig.interrupt();
            assert_eq!(rig.serve(), Pass::Again);
        }),
        ("handed back", |rig| {
            rig.queue.post(5);
            rig.interrupt();
            rig.settle();
        }),
        ("deferred again", |rig| {
            rig.queue.post(5);
            rig.interrupt();
            rig.settle();
            rig.queue.post(5);
            rig.interrupt();
        }),
    ];
    for (name, reach) in points {
        let rig = Rig::new(Config::default());
        rig.cpu.borrow_mut().ledger.enter(Config::default().share());
        reach(&rig);
        let before = rig.queue.drained.load(Relaxed);
        rig.pause();
        // The list was left: the completion thread has it no more.
        rig.joined.set(false);
        rig.queue.post(3);
        rig.interrupt();
        assert_eq!(rig.serve(), Pass::Done, "{name}");
        assert_eq!(rig.queue.drained.load(Relaxed), before, "{name}");
        rig.resume();
        rig.interrupt();
        serve_all(&rig);
        assert_eq!(rig.queue.waiting(), 0, "{name}");
        assert_eq!(rig.depth.get(), 0, "{name}");
        rig.stop();
        rig.free();
    }
}

#[test]
fn pieces_fit_their_time() {
    // What a piece took, in microseconds, and what the next one may drain.
    let table = [
        (1, 128),
        (500, 128),
        (501, 64),
        (1_000, 64),
        (1_001, 32),
        (2_000, 32),
        (2_001, 16),
        (64_000, 1),
        (u32::MAX, 1),
    ];
    for (took, next) in table {
        let mut ledger = Ledger::new();
        ledger.enter(Config::default().share());
        assert_eq!(ledger.piece(), budget(FIRST));
        let _ = ledger.on_piece(at(0), at(took), FIRST, false);
        assert_eq!(ledger.piece(), budget(next), "{took} us");
    }
}

#[test]
fn the_next_turn_begins_with_a_small_piece() {
    let mut ledger = Ledger::new();
    ledger.enter(Config::default().share());
    let mut now = 0;
    let mut piece = |ledger: &mut Ledger, found: u32, took: u32| {
        let began = at(now);
        now += took;
        let _ = ledger.on_piece(began, at(now), found, false);
        ledger.turn_is_over()
    };
    assert!(!piece(&mut ledger, FIRST, 10));
    assert!(!piece(&mut ledger, 2 * FIRST, 10));
    assert_eq!(ledger.piece(), budget(Ledger::MAX_PIECE));
    assert!(!piece(&mut ledger, Ledger::MAX_PIECE, 10));
    assert_eq!(ledger.piece(), budget(Ledger::MAX_PIECE), "no larger");
    assert!(piece(&mut ledger, Ledger::MAX_PIECE - 1, 10), "was empty");
    assert_eq!(ledger.piece(), budget(FIRST));

    let slices = (0..100).position(|_| piece(&mut ledger, Ledger::MAX_PIECE, 250));
    let turn = Ledger::TURN.as_nanos() / 250_000;
    assert_eq!(slices.map(|n| n as u64 + 1), Some(turn), "time is up");
}

#[test]
fn a_break_counts_from_its_length_on() {
    let share = Config::default().share();
    for (nanos, is_break) in [(3_999, false), (4_000, true)] {
        let mut ledger = Ledger::new();
        let busy = Instant::from_nanos(share.work().as_nanos() - 1);
        let _ = ledger.on_handler_piece(Instant::ZERO, busy, 1, share);
        let next = busy.after(Span::from_nanos(nanos));
        assert_eq!(ledger.on_handler(next, share), !is_break, "{nanos} ns");
    }
}

#[test]
fn what_was_taken_carries_over() {
    let share = Config::default().share();
    let mut ledger = full(Config::default()).ledger;
    ledger.enter(share);
    ledger.leave(after_work(1));
    assert!(!ledger.is_deferring());
    let soon = after_work(2);
    assert!(ledger.on_handler(soon, share), "no second window");
}

#[test]
fn clocks_that_jump_break_nothing() {
    let share = Config::default().share();
    let late = Instant::from_nanos(u64::MAX);
    let mut ledger = Ledger::new();
    for (began, now) in [(late, Instant::ZERO), (Instant::ZERO, late), (late, late)] {
        let _ = ledger.on_handler(began, share);
        let _ = ledger.on_handler_piece(began, now, u32::MAX, share);
        let _ = ledger.on_piece(began, now, u32::MAX, true);
        ledger.leave(now);
    }
    assert!(ledger.piece() >= budget(1));
}

#[test]
fn the_poller_gives_way_to_the_completion_thread() {
    let rig = Rig::new(Config::default());
    rig.pause();
    rig.queue.post(500);
    rig.resume();
    assert!(rig.listed.get(), "the look after a resume");
    rig.poll();
    assert!(!rig.listed.get());
    assert!(rig.joined.get());
    assert_eq!(rig.queue.waiting(), 500 - FIRST);
    serve_all(&rig);
    assert_eq!((rig.queue.waiting(), rig.depth.get()), (0, 0));
}
