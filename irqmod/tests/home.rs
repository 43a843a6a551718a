// SPDX-License-Identifier: GPL-2.0

//! A source that the softirq poller got by a resume, or from a task that drained, gets to where its
//! policy drains.

#![cfg(not(loom))]

mod common;

use common::{
    finish,
    pause_at_each_point,
    Rig, //
};
use irqmod::{
    Deferral,
    Handled, //
};
use std::sync::atomic::Ordering::Relaxed;

/// Policies with the context that they drain in.
const HOMES: [(&str, Deferral); 6] = [
    ("threaded", Deferral::Thread),
    ("overflow:budget=1", Deferral::Thread),
    ("inflight", Deferral::Thread),
    ("workqueue", Deferral::Work),
    ("flood", Deferral::Work),
    ("fair", Deferral::Cpu),
];

fn is_home(rig: &Rig, home: Deferral) -> bool {
    let (thread, work, cpu) = (rig.woken.get(), rig.queued.get(), rig.joined.get());
    let expected = match home {
        Deferral::Thread => (true, false, false),
        Deferral::Work => (false, true, false),
        _ => (false, false, true),
    };
    (thread, work, cpu) == expected
}

/// A line under load that the poller has, because of `cause`, after one pass.
fn after_one_pass(text: &str, cause: fn(&Rig)) -> Rig {
    let rig = Rig::parsed(text);
    rig.queue.set_endless(true);
    cause(&rig);
    assert!(rig.listed.get(), "{text}: nobody looked");
    rig.poll();
    assert!(!rig.listed.get(), "{text}: still in softirq");
    rig
}

#[test]
fn a_storm_stays_in_softirq_for_one_pass() {
    let resumed = |rig: &Rig| {
        rig.pause();
        rig.resume();
    };
    let reaped = |rig: &Rig| {
        let _ = rig.exclusive();
    };
    for (text, home) in HOMES {
        for rig in [after_one_pass(text, resumed), after_one_pass(text, reaped)] {
            assert!(is_home(&rig, home), "{text}: not in {home:?}");
            rig.queue.set_endless(false);
            finish(&rig);
        }
    }
}

/// A policy that rests when it has seen the queue empty rests where it drains.
#[test]
fn a_rest_is_not_taken_in_softirq() {
    for (text, home) in [
        ("inflight:high=8,low=2", Deferral::Thread),
        ("flood:rest_us=30", Deferral::Work),
    ] {
        let rig = Rig::parsed(text);
        rig.queue.set_in_flight(Some(64));
        rig.queue.post(3);
        rig.pause();
        rig.resume();
        rig.poll();
        assert_eq!(rig.queue.waiting(), 0, "{text}");
        assert_eq!(rig.poll_timer.get(), None, "{text}: rests in softirq");
        assert!(is_home(&rig, home), "{text}: not in {home:?}");
        rig.queue.set_in_flight(Some(0));
        finish(&rig);
    }
}

/// There the only thread that can be woken is that of the handler.
#[test]
fn a_forced_handler_wakes_the_thread_for_the_poller() {
    for text in ["threaded", "overflow:budget=1", "inflight"] {
        let rig = Rig::parsed(text);
        rig.in_hardirq.set(false);
        rig.queue.set_endless(true);
        rig.pause();
        rig.resume();
        rig.poll();
        assert!(rig.forced.get(), "{text}: nobody was woken");
        let drained = rig.queue.drained.load(Relaxed);
        rig.step();
        assert_eq!(rig.last_answer(), Handled::WakeThread, "{text}");
        assert_eq!(
            rig.queue.drained.load(Relaxed),
            drained,
            "{text}: a second drainer"
        );
        assert!(rig.woken.get());
        rig.queue.set_endless(false);
        finish(&rig);
    }
}

/// The handler wakes nobody for a source that is in softirq.
#[test]
fn a_forced_handler_leaves_the_poller_alone() {
    let rig = Rig::parsed("irqpoll");
    rig.queue.post(1);
    rig.interrupt();
    rig.in_hardirq.set(false);
    assert_eq!(rig.handler(), Handled::Handled);
    assert!(!rig.woken.get());
    finish(&rig);
}

#[test]
fn a_pause_at_each_point_in_forced_threads() {
    for (text, _) in HOMES {
        pause_at_each_point(|| {
            let rig = Rig::parsed(text);
            rig.in_hardirq.set(false);
            rig
        });
    }
}
