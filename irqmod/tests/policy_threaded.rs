// SPDX-License-Identifier: GPL-2.0

//! `threaded`: where the thread may run.

#![cfg(not(loom))]

use irqmod::{
    observation::Glance,
    params::parse,
    policy::{
        self,
        threaded::Config,
        Policy,
        Values, //
    },
    verdict::{
        Placement,
        Verdict, //
    },
    Deferral, //
};

#[test]
fn spread_is_a_switch() {
    for (text, written, placement) in [
        ("threaded", "threaded:spread=0", Placement::Follow),
        ("threaded:spread=0", "threaded:spread=0", Placement::Follow),
        ("threaded:spread=1", "threaded:spread=1", Placement::Spread),
        (
            "threaded:mask=nowait,spread=1",
            "threaded:spread=1,mask=nowait",
            Placement::Spread,
        ),
    ] {
        let choice = parse(text).unwrap();
        assert_eq!(choice.to_string(), written);
        assert_eq!(choice.policy.placement(), placement, "{text}");
    }
}

#[test]
fn other_values_are_refused() {
    for (text, said) in [
        (
            "threaded:spread=2",
            "spread: '2' is out of range; allowed: 0..=1",
        ),
        (
            "threaded:spread=4294967296",
            "spread: '4294967296' is out of range; allowed: 0..=1",
        ),
        (
            "threaded:spread=",
            "spread: '' is not a number; allowed: 0..=1",
        ),
        (
            "threaded:spread=on",
            "spread: 'on' is not a number; allowed: 0..=1",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), said);
    }
    let mut values = Values::default();
    values[0] = 2;
    assert!(Config::from_values(&values).is_err());
}

#[test]
fn values_are_kept() {
    for placement in [Placement::Follow, Placement::Spread] {
        let config = Config::new(placement);
        assert_eq!(Config::from_values(&config.values()), Ok(config));
    }
}

#[test]
fn it_drains_in_the_thread_wherever_that_runs() {
    for placement in [Placement::Follow, Placement::Spread] {
        let verdict = Config::new(placement).on_interrupt(Glance::empty());
        assert_eq!(verdict, Some(Verdict::Defer(Deferral::Thread)));
    }
}

#[test]
fn no_other_policy_spreads() {
    for name in policy::Config::NAMES {
        let policy = parse(*name).unwrap().policy;
        assert_eq!(policy.placement(), Placement::Follow, "{name}");
    }
}
