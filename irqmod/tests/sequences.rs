// SPDX-License-Identifier: GPL-2.0

//! BAL-01, the half of it that needs no kernel: whatever happens to a source, in any order, at the
//! end no disable is left and no completion is lost.
//!
//! The seed is printed; `IRQMOD_SEED=N cargo test -p irqmod --test sequences` runs it again.

#![cfg(not(loom))]

mod common;

use common::Rig;
use irqmod::{
    policy::{
        resched,
        threaded,
        Config, //
    },
    state::Snapshot, //
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
    Pause,
    Resume,
    Stop,
    /// Stop, free and request again, perhaps with another policy.
    Request(Config),
    Exclusive,
    Reachable(bool),
    Pressure(bool),
    Hardirq(bool),
    /// A completion comes after the poller's last drain; its interrupt as well, or not.
    InTheGap(bool),
}

fn config() -> impl Strategy<Value = Config> {
    prop_oneof![
        Just(Config::HARDIRQ),
        (1u32..6)
            .prop_map(|budget| Config::Resched(resched::Config::new(budget).unwrap_or_default())),
        Just(threaded::Config.into()),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u8..9).prop_map(Event::Post),
        6 => Just(Event::Interrupt),
        2 => Just(Event::Late),
        4 => Just(Event::Poll),
        4 => Just(Event::Thread),
        1 => Just(Event::Pause),
        1 => Just(Event::Resume),
        1 => Just(Event::Stop),
        1 => config().prop_map(Event::Request),
        2 => Just(Event::Exclusive),
        1 => any::<bool>().prop_map(Event::Reachable),
        2 => any::<bool>().prop_map(Event::Pressure),
        1 => any::<bool>().prop_map(Event::Hardirq),
        2 => any::<bool>().prop_map(Event::InTheGap),
    ]
}

fn request(rig: &Rig, config: Config) {
    if rig.is_requested() {
        rig.stop();
        rig.free();
    }
    rig.moderator.set_choice(config);
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
        Event::Pause => rig.pause(),
        Event::Resume => rig.resume(),
        Event::Stop => rig.stop(),
        Event::Request(config) => request(rig, config),
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

fn run(config: Config, latches: bool, events: &[Event]) -> Result<(), TestCaseError> {
    let rig = Rig::new(config);
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
        request(&rig, config);
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
        config(),
        any::<bool>(),
        prop::collection::vec(event(), 0..60),
    );
    let result = runner.run(&strategy, |(config, latches, events)| {
        run(config, latches, &events)
    });
    if let Err(error) = result {
        panic!("IRQMOD_SEED={seed}\n{error}");
    }
}
