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
        After,
        Next,
        Verdict, //
    },
    Budget,
    Deferral,
    Drain,
    Handled,
    Pass, //
};

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
    let config = Config::default();
    for (glance, enough) in table {
        let light = enough.then_some(Verdict::Drain(budget(FIRST)));
        assert_eq!(config.on_interrupt(glance), light, "{glance:?}");
        let open = enough.then_some(After::Open);
        let drained = config.on_drained(glance, Drain::Drained(FIRST));
        assert_eq!(drained, open, "{glance:?}");
        let more = config.on_drained(glance, Drain::More(FIRST));
        assert_eq!(more, None, "{glance:?}");
    }
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
        let began = Instant::from_nanos(3_800_001);
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
    assert_eq!(rig.take_trace(), ["glance"]);
    assert_eq!(rig.queue.looks(), 0, "no look at the queue but the drain");
}

#[test]
fn a_full_account_defers_to_the_cpu() {
    let rig = Rig::new(Config::default());
    *rig.cpu.borrow_mut() = full(Config::default());
    rig.now.set(Instant::from_nanos(3_800_001));
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.take_trace(), ["glance", "now", "mask", "defer"]);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    assert!(rig.joined.get());
    assert_eq!(rig.serve(), Pass::Done);
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
}
