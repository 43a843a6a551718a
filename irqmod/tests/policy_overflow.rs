// SPDX-License-Identifier: GPL-2.0

//! `overflow`: a budget in the handler, the rest in the thread.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::Glance,
    policy::{
        overflow::Config,
        Policy as _, //
    },
    verdict::{
        After,
        Verdict, //
    },
    Budget,
    Deferral,
    Drain::{
        Drained,
        More, //
    },
    Handled, //
};

#[test]
fn values_at_and_beyond_their_bounds() {
    for (budget, allowed) in [
        (0, false),
        (1, true),
        (1024, true),
        (1025, false),
        (u32::MAX, false),
    ] {
        assert_eq!(Config::new(budget).is_some(), allowed, "{budget}");
        let values = [budget, 0, 0, 0, 0, 0, 0];
        let config = Config::from_values(&values);
        assert_eq!(config.ok(), Config::new(budget));
    }
}

#[test]
fn decisions() {
    let config = Config::new(64).unwrap();
    let budget = Some(Verdict::Drain(Budget::new(64).unwrap()));
    for more in [Glance::empty(), Glance::RESCHED, Glance::IDLE] {
        assert_eq!(config.on_interrupt(Glance::HARDIRQ | more), budget);
        assert_eq!(config.on_interrupt(more), budget);
    }
    for found in [0, 64, u32::MAX] {
        let open = config.on_drained(Glance::HARDIRQ, Drained(found));
        assert_eq!(open, Some(After::Open));
        let more = config.on_drained(Glance::HARDIRQ, More(found));
        assert_eq!(more, Some(After::Defer(Deferral::Thread)));
    }
}

#[test]
fn exactly_the_budget_does_not_overflow() {
    for (completions, answer) in [
        (63, Handled::Handled),
        (64, Handled::Handled),
        (65, Handled::WakeThread),
    ] {
        let rig = Rig::parsed("overflow");
        rig.queue.post(completions);
        rig.interrupt();
        assert_eq!(rig.last_answer(), answer, "{completions}");
        common::finish(&rig);
    }
}

#[test]
fn storm_03_thread_lets_others_run_after_each_budget() {
    let rig = Rig::parsed("overflow");
    rig.queue.set_endless(true);
    rig.interrupt();
    assert_eq!(rig.moderator.stats().read().completions, 64);
    *rig.on_relax.borrow_mut() = Some(Box::new(|rig| {
        if rig.relaxed.get() == 1000 {
            rig.queue.set_endless(false);
        }
    }));
    rig.settle();
    assert_eq!(rig.relaxed.get(), 1000);
    common::finish(&rig);
}

#[test]
fn sum_of_queues_that_stay_below_the_budget_is_not_seen() {
    // What the documentation warns of.
    let rigs: Vec<_> = (0..24).map(|_| Rig::parsed("overflow")).collect();
    for rig in rigs.iter().cycle().take(24_000) {
        rig.queue.post(64);
        rig.interrupt();
        assert!(!rig.is_deferred());
    }
}

#[test]
fn pause_at_each_point() {
    common::pause_at_each_point(|| Rig::parsed("overflow:budget=7"));
}
