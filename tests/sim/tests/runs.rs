// SPDX-License-Identifier: GPL-2.0

//! Whole runs.

use sim::{
    calibration,
    explain::Explanation,
    run::Driver,
    Machine,
    Options,
    Report,
    Scenario,
    Workload, //
};

const MS: u64 = 1_000_000;

fn options(policy: &str, ms: u64) -> Options {
    Options {
        time_ns: ms * MS,
        warm_ns: 50 * MS,
        threads: 2,
        ..Options::new(Driver::parse(policy).expect("a policy"))
    }
}

fn storm(policy: &str, ms: u64) -> Report {
    sim::run(
        &calibration::field(),
        &calibration::storm(),
        &options(policy, ms),
    )
}

fn qd1(policy: &str) -> Report {
    sim::run(
        &calibration::field(),
        &calibration::qd1(),
        &options(policy, 200),
    )
}

#[test]
fn one_seed_prints_the_same_bytes() {
    let print = |seed| {
        let options = Options {
            seed,
            ..options("resched", 20)
        };
        let report = sim::run(&calibration::field(), &calibration::storm(), &options);
        serde_json::to_string(&report).expect("a report")
    };
    assert_eq!(print(7), print(7));
    assert_ne!(print(7), print(8));
}

#[test]
fn number_of_threads_changes_nothing() {
    let run = |threads| {
        let options = Options {
            threads,
            ..options("threaded", 20)
        };
        sim::run(&calibration::field(), &calibration::storm(), &options)
    };
    assert_eq!(run(1), run(2));
}

/// PERF-01: one request at a time is what a policy must not touch.
#[test]
fn resched_costs_nothing_at_depth_1() {
    let (plain, resched) = (qd1("hardirq"), qd1("resched"));
    assert_eq!(plain.latency, resched.latency);
    assert_eq!(resched.totals.deferrals, 0);
}

/// What a piece found is counted from before it, also where the measuring begins in between.
#[test]
fn measuring_may_begin_in_the_middle_of_a_piece() {
    let hot24 = Scenario::find("hot24").expect("hot24");
    for warm_ms in 30..40 {
        let options = Options {
            warm_ns: warm_ms * MS,
            ..options("fair", 2)
        };
        let report = sim::run(&hot24.machine, &hot24.load, &options);
        assert!(report.violations.is_empty(), "{warm_ms} ms");
    }
}

#[test]
fn latency_is_outstanding_by_throughput() {
    let report = storm("resched", 300);
    let expected = 128 * 256 * 1_000_000_000 / report.iops;
    let off = report.latency.mean.abs_diff(expected) * 100 / expected;
    assert!(off < 4, "{} and {expected}", report.latency.mean);
}

/// STORM-01: hard interrupts take all of the interrupt CPUs and leave the others alone.
#[test]
fn plain_storm_starves_the_interrupt_cpus() {
    let report = storm("hardirq", 300);
    for cpu in report.worlds.iter().flat_map(|world| &world.cpus) {
        let starved = cpu.wait.length >= 299 * MS;
        assert_eq!(starved, cpu.takes_interrupts, "CPU {}", cpu.cpu);
    }
}

#[test]
fn fallback_lets_tasks_run() {
    let report = storm("resched", 300);
    assert!(report.totals.wait_max_ns < 200 * MS);
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

/// PERF-03: below saturation the fallback neither costs throughput nor switches.
#[test]
fn light_load_is_left_alone() {
    let machine = Machine::default();
    let load = Workload {
        jobs: 3,
        depth: 2,
        ..Workload::default()
    };
    let plain = sim::run(&machine, &load, &options("hardirq", 100));
    let resched = sim::run(&machine, &load, &options("resched", 100));
    assert!(plain.totals.completed > 10_000);
    assert!(resched.totals.completed * 100 > plain.totals.completed * 95);
    assert!(resched.totals.switches * 100 <= plain.totals.switches * 103);
}

/// Who starved, by whom, and why nothing was done.
#[test]
fn storm_is_explained() {
    let explain = |policy| {
        let driver = Driver::parse(policy).expect("a policy");
        Explanation::new(&calibration::field(), driver, &storm(policy, 100)).expect("a wait")
    };
    let plain = explain("hardirq");
    assert_eq!((plain.cpu, plain.wait.length), (0, 100 * MS));
    let hard: u64 = plain.wait.lines.iter().map(|line| line.hard).sum();
    assert!(hard > 95 * MS && hard <= 100 * MS, "{hard}");
    assert!(plain.wait.lines.iter().all(|line| line.deferrals == 0));

    let rate = explain("stock-rate");
    let reason = rate.reasons.first().expect("a reason");
    assert_eq!(reason.threshold, "10.0 us");
    assert!(reason.so.contains("no queue is fast enough"), "{reason}");
}
