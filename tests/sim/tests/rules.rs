// SPDX-License-Identifier: GPL-2.0

//! Each rule catches the bug that is planted for it, and nothing else is caught.

use sim::{
    check::Rule,
    fault::Plant,
    fuzz::Plan,
    replay, //
};

/// Seeds that are tried until one finds a planted bug. One takes about 10 ms.
const SEEDS: std::ops::Range<u64> = 1..40;

fn breaks(plan: &Plan, rule: Rule) -> bool {
    let outcome = plan.run();
    outcome.violations.iter().any(|broken| broken.rule == rule)
}

fn finds(plant: Plant, rule: Rule) {
    let found = SEEDS
        .map(|seed| Plan::with_plant(seed, plant))
        .find(|plan| breaks(plan, rule));
    let Some(mut plan) = found else {
        panic!("{plant:?} is not found by {rule:?}");
    };
    plan.options.plant = None;
    assert!(!breaks(&plan, rule), "{plant:?} is not what {rule:?} finds");
}

/// A request of the same number, completed many times in between, is no forgotten one.
#[test]
fn request_that_comes_again_is_not_forgotten() {
    let outcome = Plan::new(14_380).run();
    assert!(
        outcome.violations.is_empty(),
        "{:?}",
        outcome.violations.first()
    );
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

/// What a failing fuzz run prints, and a replay prints again.
#[test]
fn failure_is_told_in_the_same_words() {
    let tell = || replay::tell(1, Some(Plant::KeepsList));
    let told = tell().expect("a broken rule");
    assert_eq!(Some(&told), tell().as_ref());
    assert!(told.contains("takes CPU 0 away"), "{told}");
    let last = "cargo sim replay 1 --plant KeepsList";
    assert!(told.ends_with(last), "{told}");
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

/// A CPU that goes away with what was deferred to it.
#[test]
fn list_that_goes_away_with_its_cpu_is_found() {
    finds(Plant::KeepsList, Rule::Liveness);
}

/// MISS-03: a completion whose message came while the line was not requested.
#[test]
fn request_without_a_look_is_found() {
    finds(Plant::NoLook, Rule::LostWakeUp);
}

#[test]
fn request_that_a_reset_forgets_is_found() {
    finds(Plant::ForgetsRequest, Rule::Liveness);
}

/// SPUR-03: what the kernel counts before it switches a line off.
#[test]
fn wanting_no_interrupt_is_found() {
    finds(Plant::WantsNothing, Rule::Stray);
}
