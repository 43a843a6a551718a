// SPDX-License-Identifier: GPL-2.0

//! Each rule catches the bug that is planted for it, and nothing else is caught.

use sim::{
    check::Rule,
    fault::Plant,
    fuzz::Plan, //
};

/// Seeds that are tried until one finds a planted bug. One takes about 10 ms.
const SEEDS: std::ops::Range<u64> = 1..40;

fn finds(plant: Plant, rule: Rule) {
    let found = SEEDS
        .map(|seed| Plan::with_plant(seed, plant).run())
        .any(|outcome| outcome.violations.iter().any(|broken| broken.rule == rule));
    assert!(found, "{plant:?} is not found by {rule:?}");
}

#[test]
fn no_bug_is_found_where_there_is_none() {
    for seed in SEEDS {
        let plan = Plan::new(seed);
        let outcome = plan.run();
        let broken = outcome.violations.first();
        assert!(
            broken.is_none(),
            "seed {seed}: {broken:?}\n{}",
            plan.summary()
        );
        assert!(outcome.completed != 0, "seed {seed}: {}", plan.summary());
    }
}

#[test]
fn one_seed_is_one_run() {
    let run = || {
        let outcome = Plan::new(11).run();
        (outcome.completed, outcome.events)
    };
    assert_eq!(run(), run());
}

/// MISS-04: two contexts in one queue.
#[test]
fn unasked_drain_is_found() {
    finds(Plant::DrainsUnasked, Rule::SingleDrainer);
}

#[test]
fn second_unmask_is_found() {
    finds(Plant::UnmasksTwice, Rule::MaskBalance);
}

#[test]
fn kept_mask_is_found() {
    finds(Plant::KeepsMask, Rule::MaskBalance);
    finds(Plant::KeepsMask, Rule::Liveness);
}

/// POLL-01.
#[test]
fn second_completion_of_the_poller_is_found() {
    finds(Plant::CompletesPollerTwice, Rule::PollList);
}

#[test]
fn second_completion_of_a_request_is_found() {
    finds(Plant::CompletesTwice, Rule::ExactlyOnce);
}

/// SPUR-04: the allowance for an empty interrupt is for one.
#[test]
fn wanting_every_interrupt_is_found() {
    finds(Plant::WantsEverything, Rule::Verdict);
}

/// MISS-03: a source that is owned, and nobody who serves it.
#[test]
fn dropped_deferral_is_found() {
    finds(Plant::DropsDeferrals, Rule::LostWakeUp);
}

/// STORM-02, STORM-03.
#[test]
fn drain_without_budget_is_found() {
    finds(Plant::IgnoresBudget, Rule::BoundedDrain);
}

#[test]
fn completion_thread_without_rest_is_found() {
    finds(Plant::NeverRests, Rule::BoundedWait);
}

#[test]
fn rest_that_a_line_ends_is_found() {
    finds(Plant::RestsBriefly, Rule::FairShare);
}

/// SPUR-03: what the kernel counts before it switches a line off.
#[test]
fn wanting_no_interrupt_is_found() {
    finds(Plant::WantsNothing, Rule::Stray);
}
