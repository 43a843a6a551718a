// SPDX-License-Identifier: GPL-2.0

//! A short exploration of every scenario; `cargo run -p explore --release -- --long` is the long one.

use explore::{
    scenario,
    search, //
};

/// States of each scenario: those that are nearest to the first one.
const MOST: u64 = 8_000;

#[test]
fn every_scenario_near_its_beginning() {
    let mut states = 0;
    for scenario in scenario::all(false) {
        let report = search::explore(&scenario, MOST);
        if let Some(failure) = report.failure {
            panic!(
                "{}: {}\n{}again: explore --replay {:?}",
                report.name, failure.what, failure.trace, failure.path
            );
        }
        states += report.states;
    }
    assert!(states > 100_000, "{states} states");
}

#[test]
fn planted_fault_is_found_and_replayed() {
    let scenario = scenario::faulty();
    let failure = search::explore(&scenario, MOST).failure.unwrap();
    assert_eq!(failure.what, "drained too much in the handler");
    let replayed = search::replay(&scenario, &failure.path);
    assert_eq!(replayed, failure.trace);
    assert!(replayed.contains("Handler: DrainNext"), "{replayed}");
}
