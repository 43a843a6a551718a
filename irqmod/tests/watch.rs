// SPDX-License-Identifier: GPL-2.0

//! What is counted of a line that somebody watches, and that watching changes nothing else.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    policy::{
        Config,
        Cpu, //
    },
    time::{
        Instant,
        Span, //
    },
    watch::{
        bucket,
        bucket_start,
        Context,
        Stretch,
        BUCKETS,
        MAX_CONDITIONS, //
    },
    Handled, //
};

/// A line that is watched, on a CPU that nobody wants.
fn watched(text: &str) -> Rig {
    let rig = Rig::parsed(text);
    rig.need_resched.set(false);
    rig.moderator.set_watched(true);
    rig
}

fn interrupt(rig: &Rig, completions: u32) {
    rig.queue.post(completions);
    rig.interrupt();
}

/// The lines of the file `reasons`, but for the first.
fn reasons(rig: &Rig) -> Vec<String> {
    let text = rig.moderator.reasons().to_string();
    text.lines().skip(1).map(str::to_owned).collect()
}

fn acted(rig: &Rig) -> usize {
    rig.moderator.reasons().acted
}

/// What a context has in the bucket of `found`.
fn invocations(rig: &Rig, context: Context, found: u32) -> usize {
    rig.moderator.batches().0[context as usize].buckets[bucket(found)]
}

#[test]
fn buckets_double() {
    let starts: Vec<u32> = (0..BUCKETS).map(bucket_start).collect();
    assert_eq!(starts[..5], [0, 1, 2, 4, 8]);
    assert_eq!(starts[BUCKETS - 1], 4096);
    for (i, start) in starts.iter().enumerate() {
        assert_eq!(bucket(*start), i);
        assert_eq!(bucket(start.saturating_sub(1)), i.saturating_sub(1));
    }
    assert_eq!(bucket(u32::MAX), BUCKETS - 1);
}

#[test]
fn every_policy_names_its_conditions() {
    for name in Config::NAMES {
        let conditions = irqmod::params::parse(name).unwrap().policy.conditions();
        assert!((1..=MAX_CONDITIONS).contains(&conditions.len()), "{name}");
        for (i, condition) in conditions.iter().enumerate() {
            let twice = conditions[..i].iter().any(|c| c.name == condition.name);
            assert!(!twice, "{name}: {}", condition.name);
        }
    }
}

/// A storm with pauses, large and small batches, and pressure now and then.
fn script(rig: &Rig) {
    for (i, completions) in [1, 0, 3, 300, 64, 65, 1, 256, 1000, 0, 2]
        .iter()
        .enumerate()
    {
        rig.need_resched.set(i % 3 == 0);
        rig.idle.set(i % 4 == 1);
        rig.in_hardirq.set(i % 5 != 4);
        rig.queue.set_in_flight(Some(*completions));
        interrupt(rig, *completions);
        rig.settle();
        rig.pass_time(Span::from_micros(7));
    }
    rig.pause();
    interrupt(rig, 9);
    rig.resume();
    common::finish(rig);
}

#[test]
fn watching_changes_nothing_else() {
    for name in Config::NAMES {
        let (plain, seen) = (Rig::parsed(name), Rig::parsed(name));
        seen.moderator.set_watched(true);
        for rig in [&plain, &seen] {
            script(rig);
        }
        let acts = |rig: &Rig| {
            let looks = ["glance", "is_free", "now"];
            let trace = rig.take_trace();
            let acts = trace.into_iter().filter(|name| !looks.contains(name));
            acts.collect::<Vec<_>>()
        };
        assert_eq!(acts(&seen), acts(&plain), "{name}");
        assert_eq!(seen.answers.take(), plain.answers.take(), "{name}");
        let stats = |rig: &Rig| rig.moderator.stats().read();
        assert_eq!(stats(&seen), stats(&plain), "{name}");
        let counted: u64 = seen.cpu.borrow().watch.totals().found;
        assert_eq!(counted, stats(&seen).completions as u64, "{name}");
        assert_eq!(plain.cpu.borrow().watch.totals().found, 0);
    }
}

#[test]
fn what_is_not_watched_is_not_counted() {
    let rig = watched("resched");
    interrupt(&rig, 5);
    rig.moderator.set_watched(false);
    interrupt(&rig, 5);
    assert_eq!(invocations(&rig, Context::Hardirq, 5), 1);
    assert_eq!(reasons(&rig)[0], "need_resched 0 of 1: 1 (most 0)");
}

#[test]
fn another_policy_is_still_watched_and_has_its_own_reasons() {
    let rig = watched("overflow:budget=10");
    interrupt(&rig, 4);
    rig.pause();
    let choice = irqmod::params::parse("hardirq").unwrap();
    rig.moderator.set_choice(choice);
    rig.resume();
    assert_eq!(rig.moderator.choice(), choice);
    assert!(rig.moderator.is_watched());
    assert!(reasons(&rig).is_empty());
    interrupt(&rig, 1);
    assert_eq!(reasons(&rig), ["never acts: 1"]);
}

#[test]
fn each_context_has_its_histogram() {
    let cases = [
        ("hardirq", Context::Hardirq),
        ("irqpoll", Context::Softirq),
        ("threaded", Context::Thread),
        ("workqueue:direct=0", Context::Work),
    ];
    for (text, context) in cases {
        let rig = watched(text);
        for completions in [6, 1, 200] {
            interrupt(&rig, completions);
            rig.settle();
        }
        let batch = rig.moderator.batches().0[context as usize];
        assert_eq!(batch.max, 200, "{text}");
        for completions in [6, 1, 200] {
            assert_eq!(invocations(&rig, context, completions), 1, "{text}");
        }
    }
    let rig = watched("hardirq");
    rig.in_hardirq.set(false);
    interrupt(&rig, 3);
    assert_eq!(invocations(&rig, Context::Forced, 3), 1);
    let rig = watched("fair");
    rig.cpu.borrow_mut().ledger.enter(Default::default());
    interrupt(&rig, 3);
    rig.settle();
    assert_eq!(invocations(&rig, Context::Cpu, 3), 1);
    assert_eq!(acted(&rig), 1);
}

#[test]
fn a_handler_of_several_pieces_is_one_invocation() {
    let rig = watched("fair");
    interrupt(&rig, 200);
    assert_eq!(invocations(&rig, Context::Hardirq, 200), 1);
    assert_eq!(rig.moderator.batches().0[0].max, 200);
}

#[test]
fn the_table_of_batches() {
    let rig = watched("hardirq");
    for completions in [1, 1, 70, 0] {
        interrupt(&rig, completions);
    }
    let text = rig.moderator.batches().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "context max 0 1 2 4 8 16 32 64 128 256 512 1024 2048 4096"
    );
    assert_eq!(lines[1], "hardirq 70 1 2 0 0 0 0 0 1 0 0 0 0 0 0");
    assert_eq!(lines.len(), 1 + Context::ALL.len());
}

#[test]
fn why_resched_and_overflow_did_not_act() {
    let rig = watched("resched:budget=8");
    interrupt(&rig, 3);
    interrupt(&rig, 7);
    let expected = [
        "need_resched 0 of 1: 2 (most 0)",
        "completions 7 of 8: 2 (most 7)",
    ];
    assert_eq!(reasons(&rig), expected);
    // A forced thread is bounded as a hard interrupt is.
    rig.in_hardirq.set(false);
    interrupt(&rig, 9);
    assert_eq!(rig.last_answer(), Handled::Handled);
    assert_eq!((acted(&rig), reasons(&rig).len()), (1, 2));

    let rig = watched("overflow:budget=8");
    interrupt(&rig, 2);
    assert_eq!(reasons(&rig), ["completions 2 of 8: 1 (most 2)"]);
}

#[test]
fn why_inflight_did_not_act() {
    let rig = watched("inflight:high=32");
    for commands in [12, 31, 5] {
        rig.queue.set_in_flight(Some(commands));
        interrupt(&rig, 1);
    }
    interrupt(&rig, 0);
    let expected = [
        "nothing found: 1",
        "in flight 5 of 32: 3 (most 31)",
        "completions 1 of 256: 3 (most 1)",
    ];
    assert_eq!(reasons(&rig), expected);
    rig.queue.set_in_flight(Some(32));
    interrupt(&rig, 1);
    assert_eq!(acted(&rig), 1);
}

#[test]
fn why_flood_did_not_act() {
    let rig = watched("flood:window_us=1000,busy_percent=50");
    rig.now.set(Instant::from_nanos(1));
    interrupt(&rig, 1);
    rig.pass_time(Span::from_micros(400));
    interrupt(&rig, 1);
    rig.pass_time(Span::from_micros(800));
    interrupt(&rig, 1);
    rig.idle.set(true);
    interrupt(&rig, 1);
    let expected = [
        "idle: 1",
        "unswitched us 400 of 1000: 2 (most 400)",
        "busy percent 0 of 50: 1 (most 0)",
        "completions 1 of 256: 4 (most 1)",
    ];
    assert_eq!(reasons(&rig), expected);
}

#[test]
fn why_rate_did_not_act() {
    let rig = watched("rate:window=512,interval_us=10");
    rig.now.set(Instant::from_nanos(1));
    for _ in 0..5 {
        interrupt(&rig, 128);
        rig.pass_time(Span::from_micros(2_000));
    }
    let expected = [
        "completions in the window 384 of 512: 4 (most 384)",
        "interval ns 15625 of 10000: 1 (most 15625)",
    ];
    assert_eq!(reasons(&rig), expected);
    interrupt(&rig, 0);
    assert_eq!(reasons(&rig)[0], "nothing found: 1");
}

#[test]
fn why_timer_did_not_act() {
    let rig = watched("timer:delay_us=6");
    rig.now.set(Instant::from_nanos(1));
    interrupt(&rig, 1);
    assert_eq!(reasons(&rig), ["sleep us 6 of 10: 1 (most 6)"]);
    interrupt(&rig, 1);
    assert_eq!(acted(&rig), 1);
    let rig = watched("timer:delay_us=0");
    interrupt(&rig, 1);
    assert_eq!(reasons(&rig), ["off: 1"]);
}

#[test]
fn why_fair_did_not_act() {
    let rig = watched("fair");
    rig.idle.set(true);
    interrupt(&rig, 1);
    rig.idle.set(false);
    interrupt(&rig, 1);
    let expected = [
        "idle: 1",
        "account percent 0 of 100: 1 (most 0)",
        "handler us 0 of 1000: 1 (most 0)",
    ];
    assert_eq!(reasons(&rig), expected);
}

#[test]
fn why_those_that_always_act_did_not() {
    for (text, expected) in [
        ("irqpoll", "nothing found: 1"),
        ("threaded", "nothing found: 1"),
        ("workqueue:direct=2", "completions 0 of 2: 1 (most 0)"),
    ] {
        let rig = watched(text);
        interrupt(&rig, 0);
        assert_eq!(reasons(&rig), [expected], "{text}");
    }
}

/// A drain of `cpu`, from and to these microseconds.
fn drain(cpu: &mut Cpu, from: u64, to: u64, switches: u64, idle: bool) {
    let at = |micros: u64| Instant::from_nanos(1 + micros * 1_000);
    cpu.watch.on_drain(Stretch {
        began: at(from),
        ended: at(to),
        switches,
        idle,
        found: 2,
    });
}

#[test]
fn the_longest_run_of_a_cpu() {
    let mut cpu = Cpu::new();
    let longest = |cpu: &Cpu| {
        let totals = cpu.watch.totals();
        [totals.unswitched, totals.unbroken].map(|span| span.as_nanos() / 1_000)
    };
    drain(&mut cpu, 0, 10, 7, false);
    assert_eq!(longest(&cpu), [10, 10]);
    drain(&mut cpu, 13, 20, 7, false);
    assert_eq!(longest(&cpu), [20, 20], "a break of 3 us is none");
    drain(&mut cpu, 24, 30, 7, false);
    assert_eq!(longest(&cpu), [30, 20], "a break, but no switch");
    drain(&mut cpu, 31, 52, 8, false);
    assert_eq!(longest(&cpu), [30, 21], "a switch");
    drain(&mut cpu, 53, 83, 8, true);
    assert_eq!(longest(&cpu), [30, 52], "idle, but without a break");
    let totals = cpu.watch.totals();
    assert_eq!(totals.found, 10);
    assert_eq!(totals.work, Span::from_micros(10 + 7 + 6 + 21 + 30));
    assert_eq!(totals.cost(), 7_400);
}
