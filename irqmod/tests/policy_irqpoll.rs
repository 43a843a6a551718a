// SPDX-License-Identifier: GPL-2.0

//! `irqpoll`: the softirq poller, always.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    observation::Glance,
    policy::{
        irqpoll::Config,
        Policy as _, //
    },
    verdict::Verdict,
    Deferral,
    Handled, //
};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn values_at_and_beyond_their_bounds() {
    for (budget, allowed) in [
        (0, false),
        (1, true),
        (256, true),
        (257, false),
        (u32::MAX, false),
    ] {
        assert_eq!(Config::new(budget).is_some(), allowed, "{budget}");
        let values = [budget, 0, 0, 0, 0, 0, 0];
        let config = Config::from_values(&values);
        assert_eq!(config.ok(), Config::new(budget));
    }
    assert_eq!(Config::default(), Config::new(256).unwrap());
}

#[test]
fn verdicts() {
    let config = Config::default();
    let softirq = Some(Verdict::Defer(Deferral::Softirq));
    for more in [Glance::empty(), Glance::RESCHED, Glance::IDLE] {
        assert_eq!(config.on_interrupt(Glance::HARDIRQ | more), softirq);
        assert_eq!(config.on_interrupt(more), softirq);
    }
}

#[test]
fn handler_drains_nothing_and_the_poller_a_budget_a_call() {
    let rig = Rig::parsed("irqpoll:budget=10");
    rig.queue.post(25);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 25);
    assert_eq!([rig.poll(), rig.poll(), rig.poll()], [10, 10, 5]);
    let longest = rig.queue.longest.load(Relaxed);
    assert_eq!(longest, 10);
    common::finish(&rig);
}

#[test]
fn pause_at_each_point() {
    common::pause_at_each_point(|| Rig::parsed("irqpoll:budget=7"));
}
