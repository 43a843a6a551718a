// SPDX-License-Identifier: GPL-2.0

//! BAL-01, the half of it that needs no kernel: whatever happens to a source, in any order, at the
//! end no disable is left and no completion is lost.
//!
//! The seed is printed; `IRQMOD_SEED=N cargo test -p irqmod --test sequences` runs it again.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    params::parse,
    policy::{
        Choice,
        Config,
        Key, //
    },
    state::Snapshot,
    time::Span,
    Pass, //
};
use proptest::{
    prelude::*,
    test_runner::{
        RngAlgorithm,
        TestRng,
        TestRunner, //
    }, //
};
use std::{
    env,
    hash::{
        BuildHasher,
        Hasher,
        RandomState, //
    }, //
};

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    Post(u8),
    Interrupt,
    /// A message that was under way when the line was masked.
    Late,
    Poll,
    Thread,
    /// The timer that paces the poller, the hold timer of the CPU.
    PollTimer,
    Expire,
    /// A piece of the CPU's completion thread.
    Serve,
    /// Microseconds pass.
    Time(u32),
    /// The CPU switches tasks.
    Switch,
    Idle(bool),
    InFlight(Option<u8>),
    Pause,
    Resume,
    Stop,
    /// Stop, free and request again, perhaps with another policy.
    Request(Choice),
    /// Another policy without freeing the line.
    Switchover(Choice),
    Exclusive,
    Reachable(bool),
    Pressure(bool),
    Hardirq(bool),
    /// A completion comes after the poller's last drain; its interrupt as well, or not.
    InTheGap(bool),
}

/// Any policy, by its name.
fn choice() -> impl Strategy<Value = Choice> {
    (prop::sample::select(Config::NAMES), any::<[u16; 8]>())
        .prop_map(|(name, picks)| with_values(parse(name).unwrap(), picks))
}

/// The policy with other values: those at the ends of each range, and small ones, which change what
/// happens in a short sequence.
fn with_values(default: Choice, picks: [u16; 8]) -> Choice {
    let pairs: Vec<_> = default
        .policy
        .keys()
        .iter()
        .zip(picks)
        .map(|(key, pick)| format!("{}={}", key.name, value(key, pick)))
        .chain([format!(
            "mask={}",
            ["nosync", "nowait"][usize::from(picks[7] % 2)]
        )])
        .collect();
    let text = format!("{}:{}", default.policy.name(), pairs.join(","));
    // Some don't go together.
    parse(&text).unwrap_or(default)
}

/// Larger values make loops longer, and nothing else.
const LARGE: u32 = 1_000;

fn value(key: &Key, pick: u16) -> u32 {
    let small = key
        .min
        .saturating_add(u32::from(pick >> 3) % 8)
        .min(key.max);
    match pick % 8 {
        0 => key.min,
        1 => key.max.min(LARGE.max(key.min)),
        2 | 3 => key.default,
        _ => small,
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u8..9).prop_map(Event::Post),
        6 => Just(Event::Interrupt),
        2 => Just(Event::Late),
        4 => Just(Event::Poll),
        4 => Just(Event::Thread),
        2 => Just(Event::PollTimer),
        2 => Just(Event::Expire),
        2 => Just(Event::Serve),
        2 => (0u32..20_000).prop_map(Event::Time),
        1 => Just(Event::Switch),
        1 => any::<bool>().prop_map(Event::Idle),
        1 => prop::option::of(any::<u8>()).prop_map(Event::InFlight),
        1 => Just(Event::Pause),
        1 => Just(Event::Resume),
        1 => Just(Event::Stop),
        1 => choice().prop_map(Event::Request),
        1 => choice().prop_map(Event::Switchover),
        2 => Just(Event::Exclusive),
        1 => any::<bool>().prop_map(Event::Reachable),
        2 => any::<bool>().prop_map(Event::Pressure),
        1 => any::<bool>().prop_map(Event::Hardirq),
        2 => any::<bool>().prop_map(Event::InTheGap),
    ]
}

fn request(rig: &Rig, choice: Choice) {
    if rig.is_requested() {
        rig.stop();
        rig.free();
    }
    rig.moderator.set_choice(choice);
    rig.request();
}

fn apply(rig: &Rig, event: Event) {
    match event {
        Event::Post(n) => rig.queue.post(n.into()),
        Event::Interrupt => rig.interrupt(),
        Event::Late if rig.moderator.snapshot().is_owned() => drop(rig.handler()),
        Event::Late => (),
        Event::Poll if rig.listed.get() => drop(rig.poll()),
        Event::Poll => (),
        Event::Thread => rig.settle(),
        Event::PollTimer => rig.fire_poll_timer(),
        Event::Expire => rig.expire(),
        Event::Serve if rig.joined.get() => rig.joined.set(rig.serve() != Pass::Done),
        Event::Serve => (),
        Event::Time(micros) => rig.pass_time(Span::from_micros(micros)),
        Event::Switch => rig.switches.set(rig.switches.get() + 1),
        Event::Idle(idle) => rig.idle.set(idle),
        Event::InFlight(commands) => rig.queue.set_in_flight(commands.map(u32::from)),
        Event::Pause => rig.pause(),
        Event::Resume => rig.resume(),
        Event::Stop => rig.stop(),
        Event::Request(choice) => request(rig, choice),
        Event::Switchover(choice) => drop(rig.switch(choice)),
        Event::Exclusive => drop(rig.exclusive()),
        Event::Reachable(reachable) => rig.queue.set_reachable(reachable),
        Event::Pressure(pressure) => rig.need_resched.set(pressure),
        Event::Hardirq(hardirq) => rig.in_hardirq.set(hardirq),
        Event::InTheGap(interrupt) => {
            *rig.on_complete.borrow_mut() = Some(Box::new(move |rig| {
                rig.queue.post(1);
                if interrupt {
                    rig.interrupt();
                }
            }));
        }
    }
}

/// What holds between any two events.
fn check(rig: &Rig) -> Result<(), TestCaseError> {
    let state = rig.moderator.snapshot();
    let held = u32::from(state.contains(Snapshot::MASKED));
    prop_assert_eq!(
        rig.depth.get(),
        held,
        "depth and MASKED differ: {:?}",
        state
    );
    prop_assert!(
        !state.contains(Snapshot::POLL | Snapshot::HANDOFF),
        "owned, and handed back: {:?}",
        state
    );
    Ok(())
}

fn run(choice: Choice, latches: bool, events: &[Event]) -> Result<(), TestCaseError> {
    let rig = Rig::parsed(&choice.to_string());
    rig.latches.set(latches);
    for event in events {
        apply(&rig, *event);
        check(&rig)?;
    }
    // Recovery: pauses, resumes; or requests again what was stopped.
    rig.on_complete.take();
    rig.queue.set_reachable(false);
    rig.pause();
    rig.queue.set_reachable(true);
    rig.resume();
    if !rig.moderator.snapshot().contains(Snapshot::INIT) {
        request(&rig, choice);
    }
    rig.settle();
    // The device tells about what it posted without telling.
    rig.interrupt();
    rig.settle();
    let state = rig.moderator.snapshot();
    prop_assert_eq!(rig.depth.get(), 0, "masked at the end: {:?}", state);
    prop_assert_eq!(rig.queue.waiting(), 0, "lost: {:?}", state);
    prop_assert_eq!(state - Snapshot::HANDOFF, Snapshot::INIT);
    prop_assert!(!rig.disabled.get());
    Ok(())
}

/// Sequences tried in one run of the test.
const CASES: u32 = 1000;

#[test]
fn bal_01_depth_is_zero_after_every_sequence() {
    let seed = match env::var("IRQMOD_SEED") {
        Ok(seed) => seed.parse().expect("IRQMOD_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    };
    println!("IRQMOD_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config_of_runner = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config_of_runner, rng);
    let strategy = (
        choice(),
        any::<bool>(),
        prop::collection::vec(event(), 0..60),
    );
    let result = runner.run(&strategy, |(choice, latches, events)| {
        run(choice, latches, &events)
    });
    if let Err(error) = result {
        panic!("IRQMOD_SEED={seed}\n{error}");
    }
}
