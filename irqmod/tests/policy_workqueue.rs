// SPDX-License-Identifier: GPL-2.0

//! `workqueue`: a bounded part in the handler, the rest in the line's work item.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::Glance,
    policy::{
        workqueue::Config,
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
use std::sync::atomic::Ordering::Relaxed;

fn config(direct: u32, budget: u32) -> Config {
    Config::from_values(&[direct, budget, 0, 0, 0, 0, 0]).unwrap()
}

#[test]
fn values_at_and_beyond_their_bounds() {
    let table = [
        (0, 1, true),
        (16, 256, true),
        (17, 256, false),
        (u32::MAX, 256, false),
        (1, 0, false),
        (1, 257, false),
    ];
    for (direct, budget, allowed) in table {
        let values = [direct, budget, 0, 0, 0, 0, 0];
        let config = Config::from_values(&values);
        assert_eq!(config.is_ok(), allowed, "{values:?}");
        if let Ok(config) = config {
            assert_eq!(config.values(), values);
            assert_eq!(config.budget().get(), budget);
        }
    }
}

#[test]
fn decisions() {
    let work = Verdict::Defer(Deferral::Work);
    let drain = |n| Verdict::Drain(Budget::new(n).unwrap());
    let table = [
        (0, Glance::HARDIRQ, work),
        (1, Glance::HARDIRQ, drain(1)),
        (16, Glance::HARDIRQ | Glance::RESCHED, drain(16)),
        (0, Glance::empty(), work),
        (1, Glance::empty(), drain(1)),
    ];
    for (direct, glance, verdict) in table {
        assert_eq!(config(direct, 256).on_interrupt(glance), Some(verdict));
    }
    let config = config(1, 256);
    for found in [0, 1, u32::MAX] {
        let open = config.on_drained(Glance::HARDIRQ, Drained(found));
        assert_eq!(open, Some(After::Open));
        let more = config.on_drained(Glance::HARDIRQ, More(found));
        assert_eq!(more, Some(After::Defer(Deferral::Work)));
    }
}

#[test]
fn perf_01_one_command_at_a_time_stays_in_the_handler() {
    let rig = Rig::parsed("workqueue");
    for _ in 0..1000 {
        rig.queue.post(1);
        rig.interrupt();
        assert_eq!(rig.last_answer(), Handled::Handled);
        assert_eq!(rig.queue.waiting(), 0);
    }
    assert!(!rig.take_trace().contains(&"mask"));
}

#[test]
fn work_item_drains_in_budgets_and_hands_back() {
    let rig = Rig::parsed("workqueue:direct=2,budget=10");
    rig.queue.post(27);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 25, "the first two");
    assert_eq!(rig.take_trace(), ["mask", "defer"]);
    assert!(rig.queued.get());
    rig.queue.post(1);
    assert_eq!(rig.handler(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 26, "in order: only the owner drains");
    rig.settle();
    assert_eq!(rig.relaxed.get(), 2);
    let longest = rig.queue.longest.load(Relaxed);
    assert_eq!(longest, 10);
    common::finish(&rig);
}

#[test]
fn no_work_item_is_made_in_the_handler() {
    // There is one, embedded in the line: queued once for each time the source is taken, whatever
    // the handler sees meanwhile. That there is nothing to allocate is in the types: a deferral
    // carries no data, and `Platform::defer()` can't fail.
    let rig = Rig::parsed("workqueue:direct=0");
    rig.queue.set_endless(true);
    for _ in 0..1000 {
        rig.interrupt();
        assert_eq!(rig.handler(), Handled::Handled);
    }
    let defers = rig.take_trace().iter().filter(|c| **c == "defer").count();
    assert_eq!(defers, 1);
    assert_eq!(size_of::<Deferral>(), 1);
    rig.queue.set_endless(false);
    common::finish(&rig);
}

#[test]
fn storm_03_work_item_lets_others_run_after_each_budget() {
    let rig = Rig::parsed("workqueue");
    rig.queue.set_endless(true);
    rig.interrupt();
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
fn completion_after_the_last_drain_with_a_lost_interrupt() {
    let rig = Rig::parsed("workqueue:direct=0");
    rig.latches.set(false);
    *rig.on_relax.borrow_mut() = Some(Box::new(|rig| rig.interrupt()));
    for _ in 0..10 {
        rig.queue.post(300);
        rig.interrupt();
        rig.settle();
        assert_eq!(rig.queue.waiting(), 0);
        assert_eq!(rig.depth.get(), 0);
    }
}

#[test]
fn pause_at_each_point() {
    for text in [
        "workqueue",
        "workqueue:direct=0",
        "workqueue:direct=16,budget=1",
    ] {
        common::pause_at_each_point(|| Rig::parsed(text));
    }
}
