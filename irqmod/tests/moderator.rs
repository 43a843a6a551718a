// SPDX-License-Identifier: GPL-2.0

//! The moderator on a scripted platform. Tests that pin a field case carry its id.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    moderator::Unreachable,
    policy::{
        resched,
        Config, //
    },
    state::Snapshot,
    Budget,
    Handled, //
};
use std::{
    cell::RefCell,
    sync::atomic::Ordering::Relaxed, //
};

const OPEN: Snapshot = Snapshot::INIT;
const OWNED: Snapshot = Snapshot::INIT.union(Snapshot::POLL).union(Snapshot::MASKED);
const PAUSED: Snapshot = Snapshot::INIT
    .union(Snapshot::MASKED)
    .union(Snapshot::PAUSED);

/// What the spurious detector kills a line for, of 100,000 interrupts.
const SPURIOUS_LIMIT: usize = 99_900;
const SPURIOUS_WINDOW: usize = 100_000;

#[test]
fn hardirq_drains_and_asks_the_platform_nothing() {
    let rig = Rig::new(Config::HARDIRQ);
    rig.queue.post(1000);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::None);
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.queue.doorbells.load(Relaxed), 1);
    assert_eq!(rig.take_trace(), [""; 0]);
    assert_eq!(rig.queue.looks(), 0, "no look at the queue but the drain");
}

#[test]
fn resched_without_pressure_drains_in_the_handler() {
    let rig = Rig::resched(256);
    rig.need_resched.set(false);
    rig.queue.post(256);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.take_trace(), ["glance"]);
    assert_eq!(rig.moderator.snapshot(), OPEN);
}

#[test]
fn resched_under_pressure_masks_once_and_then_defers() {
    let rig = Rig::resched(256);
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.take_trace(), ["glance", "mask", "defer"]);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    assert_eq!(rig.queue.waiting(), 3, "left to the poller");
    assert_eq!(rig.poll(), 3);
    assert_eq!(rig.take_trace(), ["complete_poller", "unmask"]);
    assert_eq!(rig.moderator.snapshot(), OPEN | Snapshot::HANDOFF);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn resched_with_nothing_pending_is_not_deferred() {
    let rig = Rig::resched(256);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::None);
    assert_eq!(rig.take_trace(), ["glance"]);
}

#[test]
fn resched_in_a_forced_thread_is_deferred_as_well() {
    let rig = Rig::resched(4);
    rig.in_hardirq.set(false);
    rig.queue.post(100);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 100);
    assert_eq!(rig.depth.get(), 1);
    common::finish(&rig);
}

#[test]
fn resched_is_not_deferred_before_init_and_when_unreachable() {
    let rig = Rig::unrequested(Config::Resched(resched::Config::default()));
    rig.moderator.prepare();
    rig.queue.post(5);
    assert_eq!(rig.handler(), Handled::Handled);
    assert_eq!(rig.take_trace(), [""; 0]);

    let rig = Rig::resched(256);
    rig.queue.set_reachable(false);
    rig.queue.post(5);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
    let doorbells = &rig.queue.doorbells;
    assert_eq!(doorbells.load(Relaxed), 0);
}

#[test]
fn threaded_masks_and_wakes_and_the_thread_hands_back() {
    let rig = Rig::threaded();
    rig.queue.post(600);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::WakeThread);
    assert_eq!(rig.take_trace(), ["mask"]);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.relaxed.get(), 2, "between budgets of 256");
    assert_eq!(rig.moderator.snapshot(), OPEN | Snapshot::HANDOFF);
    rig.interrupt();
    rig.interrupt();
    let answers = rig.answers.take();
    assert_eq!(answers[1..], [Handled::Handled, Handled::None]);
}

#[test]
fn threaded_spurious_wake_up_touches_nothing() {
    let rig = Rig::threaded();
    rig.queue.post(1);
    rig.woken.set(true);
    rig.settle();
    assert_eq!(rig.queue.waiting(), 1);
    assert_eq!(rig.take_trace(), [""; 0]);
}

#[test]
fn spur_04_exactly_one_empty_interrupt_after_hand_back() {
    let rig = Rig::resched(256);
    rig.queue.post(1);
    rig.interrupt();
    // One more comes under the mask, is latched, and is drained by the poller.
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.answers.borrow().len(), 1, "latched, not delivered");
    assert_eq!(rig.poll(), 2);
    assert_eq!(rig.answers.take(), [Handled::Handled, Handled::Handled]);
    assert_eq!(rig.moderator.stats().read().forgiven, 1);
    rig.interrupt();
    assert_eq!(rig.answers.take(), [Handled::None], "the second one is not");
    rig.interrupt();
    assert_eq!(rig.answers.take(), [Handled::None]);
}

#[test]
fn spur_04_the_allowance_swallows_no_completion() {
    let rig = Rig::resched(256);
    rig.queue.post(1);
    rig.interrupt();
    rig.poll();
    rig.need_resched.set(false);
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.last_answer(), Handled::Handled);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::None, "used up by the full one");
}

#[test]
fn spur_04_completion_between_drain_and_unmask_is_processed() {
    let rig = Rig::resched(256);
    rig.queue.post(1);
    rig.interrupt();
    *rig.on_complete.borrow_mut() = Some(Box::new(|rig| {
        rig.queue.post(1);
        rig.interrupt();
    }));
    rig.need_resched.set(false);
    rig.poll();
    assert_eq!(rig.queue.waiting(), 0, "by the replay");
    assert_eq!(rig.depth.get(), 0);
    assert!(!rig.listed.get());
}

#[test]
fn spur_03_late_interrupts_of_a_nowait_mask_stay_under_the_limit() {
    const DEPTH: u32 = 1023;
    for late in [0, 1, 16, DEPTH - 1] {
        for lines in [1, 8] {
            let rigs: Vec<_> = (0..lines).map(|_| Rig::resched(256)).collect();
            spur_03_rounds(&rigs, late);
        }
    }
}

/// A full window of interrupts: every round is one deferral with `late` messages already under way
/// when the mask was written.
fn spur_03_rounds(rigs: &[Rig], late: u32) {
    while rigs[0].answers.borrow().len() < SPURIOUS_WINDOW {
        for rig in rigs {
            rig.queue.post(1 + late);
            rig.interrupt();
            let waiting = rig.queue.waiting();
            for _ in 0..late {
                assert_eq!(rig.handler(), Handled::Handled);
            }
            assert_eq!(rig.queue.waiting(), waiting, "drained while owned");
        }
        for rig in rigs {
            // One that stayed pending is replayed by the unmask.
            rig.interrupt();
            rig.settle();
            assert_eq!(rig.queue.waiting(), 0, "lost");
            assert_eq!(rig.depth.get(), 0);
        }
    }
    for rig in rigs {
        let answers = rig.answers.take();
        for window in answers.chunks(SPURIOUS_WINDOW) {
            let unhandled = window.iter().filter(|a| **a == Handled::None).count();
            assert!(unhandled < SPURIOUS_LIMIT);
            assert_eq!(unhandled, 0);
        }
    }
}

#[test]
fn spur_04_a_broken_device_is_still_seen() {
    // Interrupts without completions, between deferrals: the detector must get to see them.
    let rig = Rig::resched(256);
    rig.queue.post(1);
    rig.interrupt();
    rig.poll();
    rig.answers.take();
    for _ in 0..SPURIOUS_WINDOW {
        rig.interrupt();
    }
    let answers = rig.answers.take();
    let unhandled = answers.iter().filter(|a| **a == Handled::None).count();
    assert_eq!(unhandled, SPURIOUS_WINDOW - 1);
}

#[test]
fn miss_03_completion_after_the_last_drain_with_a_lost_edge() {
    for rig in [Rig::resched(256), Rig::threaded()] {
        rig.latches.set(false);
        rig.queue.post(1);
        rig.interrupt();
        // Lost: the line is still masked and keeps nothing.
        *rig.on_complete.borrow_mut() = Some(Box::new(|rig| {
            rig.queue.post(1);
            rig.interrupt();
        }));
        rig.settle();
        assert_eq!(rig.queue.waiting(), 0);
        assert_eq!(rig.depth.get(), 0);
        assert_eq!(rig.moderator.snapshot(), OPEN | Snapshot::HANDOFF);
    }
}

#[test]
fn miss_03_the_look_after_the_unmask_defers_again() {
    let rig = Rig::resched(256);
    rig.latches.set(false);
    rig.queue.post(1);
    rig.interrupt();
    rig.take_trace();
    *rig.on_complete.borrow_mut() = Some(Box::new(|rig| rig.queue.post(1)));
    assert_eq!(rig.poll(), 1);
    assert_eq!(rig.take_trace(), ["complete_poller", "unmask", "defer"]);
    assert_eq!(rig.moderator.snapshot(), OPEN | Snapshot::POLL);
    assert!(rig.listed.get());
    // The first interrupt that comes masks the line, and touches nothing.
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.take_trace(), ["mask"]);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    assert_eq!(rig.poll(), 2);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn miss_02_a_task_finds_what_no_interrupt_told() {
    for name in Config::NAMES {
        let rig = Rig::parsed(name);
        // The interrupt comes before its completion, and nobody is left to find that.
        rig.interrupt();
        rig.settle();
        rig.queue.post(3);
        assert!(!rig.is_deferred(), "{name}");
        assert_eq!(rig.exclusive(), 3, "{name}");
        // It comes, but who was to drain is late.
        rig.queue.post(3);
        rig.interrupt();
        let left = rig.queue.waiting();
        assert_eq!(rig.exclusive(), left, "{name}");
        rig.settle();
        rig.queue.post(1);
        rig.interrupt();
        rig.settle();
        assert_eq!(rig.queue.waiting(), 0, "{name}: the queue goes on");
        common::finish(&rig);
    }
}

#[test]
fn miss_04_interrupt_while_owned_leaves_the_queue_alone() {
    for rig in [Rig::resched(1), Rig::threaded()] {
        rig.queue.post(3);
        rig.interrupt();
        rig.need_resched.set(false);
        assert_eq!(rig.handler(), Handled::Handled);
        assert_eq!(rig.queue.waiting(), 3);
        assert_eq!(rig.moderator.snapshot(), OWNED);
        assert_eq!(rig.depth.get(), 1);
        assert_eq!(rig.moderator.stats().read().absorbed, 1);
    }
}

#[test]
fn poll_01_whole_weight_means_still_scheduled() {
    for budget in [1, 2, 64, 256] {
        for completions in [0, budget - 1, budget, budget + 1, 2 * budget] {
            let rig = Rig::resched(budget);
            rig.queue.post(1);
            rig.interrupt();
            rig.queue.post(completions);
            // The poller asserts what the core relies on: see `Rig::poll_with`.
            let mut polls = 0;
            while rig.listed.get() {
                let work = rig.poll();
                assert_eq!(work >= budget, rig.listed.get());
                polls += 1;
            }
            assert_eq!(rig.queue.waiting(), 0);
            assert_eq!(polls, (1 + completions).div_ceil(budget));
            assert_eq!(rig.depth.get(), 0);
        }
    }
}

#[test]
fn poll_01_exactly_the_budget_completes_with_less() {
    let rig = Rig::resched(4);
    rig.queue.post(4);
    rig.interrupt();
    assert_eq!(rig.poll(), 3, "completed: never the whole weight");
    assert!(!rig.listed.get());
}

#[test]
fn poll_01_weight_of_the_core_wins_over_the_policy() {
    let rig = Rig::resched(256);
    rig.queue.post(10);
    rig.interrupt();
    assert_eq!(rig.poll_with(8), 8);
    assert_eq!(rig.poll_with(8), 2);
}

#[test]
fn poll_02_refused_schedule_is_taken_over_by_the_pause() {
    let rig = Rig::resched(1);
    rig.disabling.set(true);
    rig.queue.post(2);
    rig.interrupt();
    assert!(!rig.listed.get(), "refused");
    assert_eq!(rig.moderator.snapshot(), OWNED);
    rig.disabling.set(false);
    rig.pause();
    assert_eq!(rig.moderator.snapshot(), PAUSED);
    assert_eq!(rig.depth.get(), 1, "the handler's mask, not a second one");
    rig.resume();
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn poll_02_full_weight_while_the_disable_lands() {
    let rig = Rig::resched(4);
    rig.queue.set_endless(true);
    rig.interrupt();
    assert_eq!(rig.poll(), 4);
    // The core ends the instance without telling: the pause takes POLL and keeps the mask.
    rig.pause();
    assert_eq!(rig.moderator.snapshot(), PAUSED);
    assert_eq!(rig.depth.get(), 1);
    rig.queue.set_endless(false);
    rig.resume();
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn poll_02_everything_twice_and_in_every_order() {
    let steps: [fn(&Rig); 3] = [Rig::pause, Rig::resume, Rig::stop];
    for order in 0..3usize.pow(5) {
        let rig = Rig::resched(2);
        let (mut order, mut stopped) = (order, false);
        for _ in 0..5 {
            let step = order % 3;
            order /= 3;
            rig.queue.post(3);
            rig.interrupt();
            steps[step](&rig);
            stopped |= step == 2;
            assert!(rig.depth.get() <= 1);
        }
        if stopped {
            assert_eq!(rig.depth.get(), 0);
            assert!(rig.moderator.snapshot().contains(Snapshot::PAUSED));
            assert!(!rig.disabled.get(), "balanced for the next request");
        } else {
            rig.resume();
            rig.settle();
            assert_eq!(rig.depth.get(), 0);
            assert_eq!(rig.queue.waiting(), 0);
        }
    }
}

#[test]
fn storm_03_endless_queue_gives_exactly_the_budget_each_time() {
    let rig = Rig::resched(64);
    rig.queue.set_endless(true);
    rig.interrupt();
    for _ in 0..1000 {
        assert_eq!(rig.poll(), 64);
    }
    let longest = rig.queue.longest.load(Relaxed);
    assert_eq!(longest, 64);
    assert_eq!(rig.depth.get(), 1, "masked all the time");
}

#[test]
fn storm_03_handler_is_bounded_without_pressure_too() {
    let rig = Rig::resched(64);
    rig.need_resched.set(false);
    rig.queue.set_endless(true);
    rig.interrupt();
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!(rig.moderator.stats().read().completions, 64);
    assert_eq!(rig.moderator.snapshot(), OWNED, "the poller goes on");
    assert!(rig.listed.get());
}

#[test]
fn storm_03_thread_lets_others_run_after_each_budget() {
    let rig = Rig::threaded();
    rig.queue.set_endless(true);
    rig.interrupt();
    *rig.on_relax.borrow_mut() = Some(Box::new(|rig| {
        if rig.relaxed.get() == 1000 {
            rig.queue.set_endless(false);
        }
    }));
    rig.settle();
    assert_eq!(rig.relaxed.get(), 1000);
    let longest = rig.queue.longest.load(Relaxed);
    assert_eq!(longest, Budget::POLL_DEFAULT.get());
}

#[test]
fn tear_01_nobody_drains_once_paused_or_stopped() {
    for stop in [Rig::pause, Rig::stop] {
        for rig in [Rig::resched(1), Rig::threaded(), Rig::new(Config::HARDIRQ)] {
            rig.queue.post(3);
            rig.interrupt();
            stop(&rig);
            rig.queue.post(3);
            let waiting = rig.queue.waiting();
            rig.interrupt();
            assert_eq!(rig.handler(), Handled::Handled, "absorbed");
            assert_eq!(rig.queue.waiting(), waiting);
            assert!(!rig.listed.get());
            assert_eq!(rig.exclusive(), waiting, "left to the reaper");
        }
    }
}

#[test]
fn tear_01_the_mask_of_the_poller_is_given_back_by_stop() {
    let rig = Rig::resched(1);
    rig.queue.post(3);
    rig.interrupt();
    rig.take_trace();
    rig.stop();
    let trace = rig.take_trace();
    assert_eq!(
        trace,
        [
            "synchronize",
            "join_deferred",
            "complete_poller",
            "enable_deferred",
            "unmask",
            "synchronize"
        ]
    );
    assert_eq!(rig.depth.get(), 0);
    rig.free();
    rig.resume();
    assert_eq!(rig.depth.get(), 0, "a freed line is not enabled");
}

#[test]
fn tear_02_nothing_is_parked_after_a_pause() {
    let rig = Rig::resched(2);
    rig.queue.post(5);
    rig.interrupt();
    rig.poll();
    rig.pause();
    assert!(!rig.listed.get() && !rig.woken.get());
    assert!(!rig.moderator.snapshot().is_owned());
    assert_eq!(rig.exclusive(), 3);
}

#[test]
fn tear_08_no_mask_and_no_doorbell_while_unreachable() {
    let rig = Rig::resched(2);
    rig.queue.post(5);
    rig.interrupt();
    rig.poll();
    rig.queue.set_reachable(false);
    rig.take_trace();
    let doorbells = rig.queue.doorbells.load(Relaxed);
    let drained = rig.queue.drained.load(Relaxed);
    rig.poll();
    assert_eq!(rig.queue.drained.load(Relaxed), drained);
    rig.pause();
    rig.resume();
    rig.stop();
    rig.exclusive();
    let trace = rig.take_trace();
    assert!(!trace.contains(&"mask"));
    assert_eq!(trace.iter().filter(|c| **c == "mask_sync").count(), 1);
    assert_eq!(
        trace.iter().filter(|c| **c == "unmask").count(),
        1,
        "only the nested disable of exclusive: {trace:?}"
    );
    assert_eq!(rig.depth.get(), 1, "the mask is kept");
    let now = rig.queue.doorbells.load(Relaxed);
    assert_eq!(now, doorbells);
    rig.free();
    rig.queue.set_reachable(true);
    rig.request();
    assert_eq!(rig.moderator.snapshot(), OPEN);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn tear_08_line_of_a_device_that_goes_while_it_is_held_stays_masked() {
    let rig = Rig::parsed("timer:push=0");
    rig.queue.post(1);
    rig.interrupt();
    assert!(rig.held.get());
    rig.queue.set_reachable(false);
    rig.expire();
    assert_eq!(rig.depth.get(), 1, "of the hold");
}

#[test]
fn tear_08_line_of_a_device_that_goes_while_it_is_polled_stays_masked() {
    let rig = Rig::resched(256);
    rig.queue.post(1);
    rig.interrupt();
    *rig.on_complete.borrow_mut() = Some(Box::new(|rig| rig.queue.set_reachable(false)));
    rig.poll();
    assert_eq!(rig.depth.get(), 1, "of the deferral");
}

#[test]
fn tear_11_an_interrupt_at_every_step_of_a_request() {
    for config in [
        Config::HARDIRQ,
        Config::Resched(resched::Config::default()),
        Config::Threaded(Default::default()),
    ] {
        let rig = Rig::unrequested(config);
        let interrupt = |expected| {
            rig.queue.post(1);
            assert_eq!(rig.handler(), expected);
            rig.settle();
            assert_eq!(rig.queue.waiting(), 0);
            assert_eq!(rig.depth.get(), 0);
        };
        interrupt(Handled::Handled);
        rig.moderator.prepare();
        interrupt(Handled::Handled);
        rig.moderator.start();
        interrupt(match config {
            Config::Threaded(_) => Handled::WakeThread,
            _ => Handled::Handled,
        });
    }
}

#[test]
fn bal_03_request_after_a_free_with_the_mask_kept() {
    let rig = Rig::resched(1);
    rig.queue.post(2);
    rig.interrupt();
    rig.queue.set_reachable(false);
    rig.stop();
    assert_eq!(rig.depth.get(), 1);
    rig.free();
    rig.queue.set_reachable(true);
    rig.request();
    assert_eq!(rig.moderator.snapshot(), OPEN, "no bit survives");
    rig.interrupt();
    rig.settle();
    assert_eq!(rig.depth.get(), 0);
    assert_eq!(rig.queue.waiting(), 0);
}

#[test]
fn bal_03_unreachable_before_each_step() {
    let steps: [fn(&Rig); 6] = [
        |rig| rig.interrupt(),
        |rig| {
            if rig.listed.get() {
                rig.poll();
            }
        },
        Rig::pause,
        Rig::resume,
        |rig| {
            rig.exclusive();
        },
        |rig| rig.settle(),
    ];
    for at in 0..steps.len() {
        for back in at..=steps.len() {
            let rig = Rig::resched(2);
            rig.queue.post(7);
            for (n, step) in steps.iter().enumerate() {
                if n == at {
                    rig.queue.set_reachable(false);
                }
                if n == back {
                    rig.queue.set_reachable(true);
                }
                step(&rig);
            }
            // Recovery always pauses and resumes.
            rig.queue.set_reachable(false);
            rig.pause();
            rig.queue.set_reachable(true);
            rig.resume();
            rig.settle();
            assert_eq!(rig.depth.get(), 0, "{at} {back}");
            assert_eq!(rig.queue.waiting(), 0, "{at} {back}");
        }
    }
}

#[test]
fn pause_lets_an_unmasked_queue_drain() {
    let rig = Rig::resched(256);
    *rig.on_mask.borrow_mut() = Some(Box::new(|rig| {
        // The pause waits for this one.
        rig.queue.post(3);
        assert_eq!(rig.handler(), Handled::Handled);
        assert_eq!(rig.queue.waiting(), 0);
    }));
    rig.pause();
    assert_eq!(rig.moderator.snapshot(), PAUSED);
    assert_eq!(rig.depth.get(), 1);
}

#[test]
fn resume_looks_at_what_came_while_paused() {
    for config in [Config::HARDIRQ, Config::Resched(resched::Config::default())] {
        let rig = Rig::new(config);
        rig.latches.set(false);
        rig.pause();
        rig.queue.post(4);
        rig.interrupt();
        rig.resume();
        rig.settle();
        assert_eq!(rig.queue.waiting(), 0);
        assert_eq!(rig.depth.get(), 0);
    }
}

#[test]
fn resume_while_unreachable_changes_nothing() {
    let rig = Rig::resched(256);
    rig.pause();
    rig.queue.set_reachable(false);
    rig.take_trace();
    rig.resume();
    assert_eq!(rig.take_trace(), [""; 0]);
    assert_eq!(rig.moderator.snapshot(), PAUSED);
}

/// Recovery opens a line that a switch left paused, and all of it is served.
fn recovers(rig: &Rig) {
    rig.queue.set_reachable(true);
    rig.resume();
    rig.settle();
    assert_eq!(rig.moderator.snapshot() & !Snapshot::HANDOFF, OPEN);
    assert_eq!(rig.queue.waiting(), 0);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn switch_of_a_line_in_use_is_in_force_when_it_returns() {
    let rig = Rig::resched(2);
    rig.latches.set(false);
    *rig.on_mask.borrow_mut() = Some(Box::new(|rig| rig.queue.post(3)));
    assert_eq!(rig.switch(Config::HARDIRQ), Ok(()));
    assert_eq!(rig.moderator.choice().policy, Config::HARDIRQ);
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0, "found without an interrupt");
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn switch_of_a_paused_line_leaves_it_paused() {
    let rig = Rig::resched(2);
    rig.pause();
    rig.queue.set_reachable(false);
    assert_eq!(rig.switch(Config::HARDIRQ), Ok(()));
    assert_eq!(rig.moderator.snapshot(), PAUSED);
    assert_eq!(rig.moderator.choice().policy, Config::HARDIRQ);
    recovers(&rig);
}

#[test]
fn switch_while_unreachable_changes_nothing() {
    let rig = Rig::resched(2);
    rig.queue.set_reachable(false);
    let former = rig.moderator.choice();
    assert_eq!(rig.switch(Config::HARDIRQ), Err(Unreachable));
    assert_eq!(rig.moderator.choice(), former);
    assert_eq!(rig.moderator.snapshot(), OPEN);
    assert_eq!(rig.take_trace(), [""; 0]);
}

#[test]
fn switch_that_the_device_does_not_outlast_keeps_the_former_choice() {
    // At the mask of the pause, or already while the poller is joined.
    for owned in [false, true] {
        let rig = Rig::resched(2);
        let former = rig.moderator.choice();
        let goes: fn(&Rig) = |rig| {
            rig.queue.post(1);
            rig.queue.set_reachable(false);
        };
        if owned {
            rig.queue.post(1);
            rig.interrupt();
            *rig.on_complete.borrow_mut() = Some(Box::new(goes));
        } else {
            *rig.on_mask.borrow_mut() = Some(Box::new(goes));
        }
        assert_eq!(rig.switch(Config::HARDIRQ), Err(Unreachable));
        assert_eq!(rig.moderator.choice(), former, "not what is not in force");
        assert_eq!(rig.moderator.snapshot(), PAUSED);
        recovers(&rig);
    }
}

#[test]
fn switch_that_the_device_does_not_outlast_has_the_platform_follow_back() {
    let rig = Rig::resched(2);
    let (former, followed) = (rig.moderator.choice(), RefCell::new(Vec::new()));
    let switched = rig
        .moderator
        .switch(&rig.queue, &rig, Config::HARDIRQ.into(), |choice| {
            rig.queue.set_reachable(false);
            followed.borrow_mut().push(choice);
        });
    assert_eq!(switched, Err(Unreachable));
    assert_eq!(followed.take(), [Config::HARDIRQ.into(), former]);
    recovers(&rig);
}

#[test]
fn bal_03_pause_joins_the_handler_of_a_device_that_just_became_unreachable() {
    let rig = Rig::resched(256);
    rig.queue.set_reachable(false);
    rig.pause();
    let trace = rig.take_trace();
    let joins = ["synchronize", "join_deferred", "synchronize"];
    assert_eq!(trace, joins, "a handler may have seen it reachable");
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn bal_03_pause_of_a_device_that_is_reachable_again_masks() {
    let rig = Rig::resched(256);
    rig.queue.set_reachable(false);
    rig.pause();
    rig.queue.set_reachable(true);
    rig.pause();
    assert_eq!(rig.moderator.snapshot(), PAUSED);
    rig.queue.post(1);
    assert_eq!(rig.handler(), Handled::Handled);
    assert_eq!(rig.queue.waiting(), 1, "nobody drains after a pause");
    rig.pause();
    assert_eq!(rig.depth.get(), 1);
    rig.resume();
    rig.settle();
    assert_eq!(rig.depth.get(), 0);
    assert_eq!(rig.queue.waiting(), 0);
}

#[test]
fn bal_03_stop_after_a_pause_that_left_the_line_open_joins_the_handler() {
    let rig = Rig::resched(256);
    rig.queue.set_reachable(false);
    rig.pause();
    rig.queue.set_reachable(true);
    rig.take_trace();
    rig.stop();
    assert_eq!(rig.take_trace(), ["synchronize", "enable_deferred"]);
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn exclusive_needs_no_line() {
    let rig = Rig::unrequested(Config::HARDIRQ);
    rig.queue.post(3);
    assert_eq!(rig.exclusive(), 3);
    assert_eq!(rig.depth.get(), 0);
    assert_eq!(rig.moderator.snapshot(), Snapshot::empty());
}

#[test]
fn exclusive_nests_in_the_mask_of_the_poller() {
    let rig = Rig::resched(1);
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.exclusive(), 3);
    assert_eq!(rig.depth.get(), 1);
    assert_eq!(rig.moderator.snapshot(), OWNED);
    rig.settle();
    assert_eq!(rig.depth.get(), 0);
}

#[test]
fn exclusive_is_not_kept_waiting_by_a_thread_in_a_storm() {
    let rig = Rig::threaded();
    rig.queue.set_endless(true);
    rig.interrupt();
    // The task waits for the thread here.
    *rig.on_mask.borrow_mut() = Some(Box::new(|rig| rig.settle()));
    rig.exclusive();
    assert!(rig.listed.get(), "what is left goes to the poller");
    rig.queue.set_endless(false);
    rig.settle();
    assert_eq!(rig.depth.get(), 0);
    assert_eq!(rig.moderator.snapshot() - Snapshot::HANDOFF, OPEN);
}

#[test]
fn exclusive_leaves_one_empty_interrupt_to_forgive() {
    let rig = Rig::new(Config::HARDIRQ);
    *rig.on_mask.borrow_mut() = Some(Box::new(|rig| {
        rig.queue.post(1);
        rig.interrupt();
    }));
    assert_eq!(rig.exclusive(), 1);
    assert_eq!(rig.answers.take(), [Handled::Handled]);
    rig.interrupt();
    assert_eq!(rig.answers.take(), [Handled::None]);
}

#[test]
fn plain_line_is_joined_but_never_masked() {
    let rig = Rig::unrequested(Config::Resched(resched::Config::default()));
    rig.moderator.prepare();
    rig.pause();
    rig.stop();
    assert_eq!(rig.take_trace(), ["synchronize"]);
    rig.queue.post(1);
    assert_eq!(rig.handler(), Handled::Handled, "absorbed");
    assert_eq!(rig.queue.waiting(), 1);
}

#[test]
fn another_policy_takes_effect_at_the_next_request() {
    let rig = Rig::unrequested(Config::HARDIRQ);
    let config = Config::Resched(resched::Config::new(7).unwrap());
    rig.moderator.set_choice(config);
    assert_eq!(rig.moderator.choice(), config.into());
    rig.request();
    rig.queue.post(1);
    rig.interrupt();
    assert_eq!(rig.moderator.snapshot(), OWNED);
}

#[test]
fn counters_count() {
    let rig = Rig::resched(2);
    rig.queue.post(3);
    rig.interrupt();
    assert_eq!(rig.handler(), Handled::Handled);
    rig.settle();
    rig.interrupt();
    rig.interrupt();
    rig.pause();
    let counts = rig.moderator.stats().read();
    let text = "interrupts 4\nempty 1\nabsorbed 1\nforgiven 1\ndeferrals 1\npolls 2\n\
                completions 3\ncompletions_max 2\npauses 1\n";
    assert_eq!(counts.to_string(), text);
}
