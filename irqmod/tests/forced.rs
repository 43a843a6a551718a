// SPDX-License-Identifier: GPL-2.0

//! Handlers that the core forces into threads (`threadirqs`): they keep interrupts off and precede
//! ordinary tasks, so each policy bounds them as it bounds a hard interrupt.

#![cfg(not(loom))]

mod common;

use common::{
    finish,
    Rig, //
};
use irqmod::Deferral;
use std::sync::atomic::Ordering::Relaxed;

/// Policies, how many completions their handler takes from a queue that does not get empty, and who
/// gets the rest.
const BOUNDS: [(&str, u32, Deferral); 10] = [
    ("resched:budget=7", 7, Deferral::Softirq),
    ("threaded", 0, Deferral::Thread),
    ("irqpoll:budget=7", 0, Deferral::Softirq),
    ("overflow:budget=7", 7, Deferral::Thread),
    ("inflight:budget=7", 7, Deferral::Thread),
    ("timer", 256, Deferral::Softirq),
    ("timer:delay_us=0", 256, Deferral::Softirq),
    ("rate:budget=7", 256, Deferral::Softirq),
    ("workqueue:direct=7", 7, Deferral::Work),
    ("flood:budget=7", 7, Deferral::Work),
];

fn forced(text: &str) -> Rig {
    let rig = Rig::parsed(text);
    rig.in_hardirq.set(false);
    rig.need_resched.set(false);
    rig
}

fn is_deferred_to(rig: &Rig, to: Deferral) -> bool {
    match to {
        Deferral::Softirq => rig.listed.get(),
        Deferral::Thread => rig.woken.get(),
        Deferral::Work => rig.queued.get(),
        Deferral::Hold => rig.held.get(),
        Deferral::Cpu => rig.joined.get(),
    }
}

#[test]
fn storm_03_a_forced_handler_is_bounded() {
    for (text, most, to) in BOUNDS {
        let rig = forced(text);
        rig.queue.set_endless(true);
        rig.interrupt();
        assert_eq!(rig.queue.drained.load(Relaxed), most, "{text}");
        assert!(is_deferred_to(&rig, to), "{text}: not left to {to:?}");
        assert_eq!(rig.depth.get(), 1, "{text}: not masked");
        rig.queue.set_endless(false);
        finish(&rig);
    }
}

#[test]
fn resched_defers_a_forced_handler_when_somebody_waits() {
    let rig = forced("resched");
    rig.need_resched.set(true);
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 3);
    assert!(rig.listed.get());
    finish(&rig);
}

/// In a forced thread a hold would be that of another CPU, as likely as not.
#[test]
fn timer_holds_nothing_in_a_forced_handler() {
    let rig = forced("timer");
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0);
    assert!(!rig.held.get());
    assert_eq!(rig.hold.get(), None);
    assert_eq!(rig.depth.get(), 0);
    finish(&rig);
}
