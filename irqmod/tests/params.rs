// SPDX-License-Identifier: GPL-2.0

//! The grammar of the parameter string.

#![cfg(not(loom))]

use irqmod::{
    params::parse,
    policy::{
        irqpoll,
        overflow,
        resched,
        threaded,
        Choice,
        Config,
        Mask, //
    }, //
};
use proptest::prelude::*;

fn choice(policy: impl Into<Config>) -> Choice {
    policy.into().into()
}

fn resched(budget: u32) -> Choice {
    choice(resched::Config::new(budget).unwrap())
}

#[test]
fn accepted() {
    let table = [
        ("hardirq", choice(Config::HARDIRQ)),
        ("hardirq\n", choice(Config::HARDIRQ)),
        ("resched", resched(256)),
        ("resched:budget=1", resched(1)),
        ("resched:budget=256", resched(256)),
        ("resched:budget=0064\n", resched(64)),
        ("threaded", choice(threaded::Config)),
        (
            "irqpoll:budget=64",
            choice(irqpoll::Config::new(64).unwrap()),
        ),
        ("overflow", choice(overflow::Config::new(64).unwrap())),
        (
            "overflow:budget=1024",
            choice(overflow::Config::new(1024).unwrap()),
        ),
    ];
    for (text, config) in table {
        assert_eq!(parse(text), Ok(config), "{text:?}");
    }
}

#[test]
fn every_policy_takes_the_mask() {
    for name in Config::NAMES {
        let plain = parse(name).unwrap();
        assert_eq!(parse(&format!("{name}:mask=nosync")), Ok(plain));
        let text = format!("{name}:mask=nowait");
        let choice = parse(&text).unwrap();
        assert_eq!(
            choice,
            Choice {
                mask: Mask::Nowait,
                ..plain
            }
        );
        assert_eq!(parse(&choice.to_string()), Ok(choice), "{choice}");
    }
}

#[test]
fn refused() {
    let all = format!("allowed: {}", Config::NAMES.join(", "));
    const BUDGET: &str = "allowed: 1..=256";
    let table = [
        ("", false, format!("unknown policy ''; {all}")),
        ("\n", false, format!("unknown policy ''; {all}")),
        ("none", false, format!("unknown policy 'none'; {all}")),
        ("Hardirq", false, format!("unknown policy 'Hardirq'; {all}")),
        (
            " hardirq",
            false,
            format!("unknown policy ' hardirq'; {all}"),
        ),
        (
            "hardirq\n\n",
            false,
            format!("unknown policy 'hardirq\\n'; {all}"),
        ),
        (
            "hardirq:",
            false,
            "hardirq: unknown key ''; allowed: mask".into(),
        ),
        (
            "hardirq:a=1",
            false,
            "hardirq: unknown key 'a'; allowed: mask".into(),
        ),
        (
            "threaded:budget=1",
            false,
            "threaded: unknown key 'budget'; allowed: mask".into(),
        ),
        (
            "resched:",
            false,
            "resched: unknown key ''; allowed: budget, mask".into(),
        ),
        (
            "resched:=1",
            false,
            "resched: unknown key ''; allowed: budget, mask".into(),
        ),
        (
            "resched:weight=1",
            false,
            "resched: unknown key 'weight'; allowed: budget, mask".into(),
        ),
        (
            "resched:budget=1,",
            false,
            "resched: unknown key ''; allowed: budget, mask".into(),
        ),
        (
            "resched:mask=lazy",
            false,
            "mask: unknown word 'lazy'; allowed: nosync, nowait".into(),
        ),
        (
            "resched:mask=nowait,mask=nowait",
            false,
            "resched: key 'mask' given twice".into(),
        ),
        (
            "resched:budget=1,budget=1",
            false,
            "resched: key 'budget' given twice".into(),
        ),
        (
            "resched:budget",
            false,
            format!("budget: '' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget=",
            false,
            format!("budget: '' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget=x",
            false,
            format!("budget: 'x' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget=-1",
            false,
            format!("budget: '-1' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget=+1",
            false,
            format!("budget: '+1' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget= 1",
            false,
            format!("budget: ' 1' is not a number; {BUDGET}"),
        ),
        (
            "resched:budget=0",
            true,
            format!("budget: '0' is out of range; {BUDGET}"),
        ),
        (
            "resched:budget=257",
            true,
            format!("budget: '257' is out of range; {BUDGET}"),
        ),
        (
            "resched:budget=4294967296",
            true,
            format!("budget: '4294967296' is out of range; {BUDGET}"),
        ),
    ];
    for (text, range, line) in table {
        let error = parse(text).expect_err(text);
        assert_eq!(error.is_range(), range, "{text:?}");
        assert_eq!(error.to_string(), line, "{text:?}");
    }
    assert_eq!(
        parse(b"\xff").unwrap_err().to_string(),
        format!("policy is not text; {all}")
    );
}

#[test]
fn long_words_are_cut() {
    let long = "x".repeat(10_000);
    let line = parse(&long).unwrap_err().to_string();
    assert!(line.len() < 200, "{line}");
    assert!(line.contains("xxx...'"), "{line}");
}

proptest! {
    #[test]
    fn display_is_parsed_back(budget in 1u32..=256) {
        for config in [choice(Config::HARDIRQ), resched(budget), choice(threaded::Config)] {
            let text = config.to_string();
            prop_assert_eq!(parse(&text), Ok(config));
        }
    }

    #[test]
    fn any_bytes_give_a_config_or_one_line(text in any::<Vec<u8>>()) {
        if let Err(error) = parse(&text) {
            let line = error.to_string();
            prop_assert!(!line.chars().any(char::is_control), "{}", line);
            prop_assert!(line.len() < 400);
        }
    }

    #[test]
    fn near_misses_never_panic(text in "(resched|hardirq|threaded|r)?:?(budget|b)?=?[0-9]{0,12}[,=\n]?.{0,3}") {
        if let Ok(config) = parse(&text) {
            let text = config.to_string();
            prop_assert_eq!(parse(&text), Ok(config));
        }
    }

    #[test]
    fn budgets_are_ranged_not_clamped(budget in any::<u64>()) {
        let text = format!("resched:budget={budget}");
        match parse(&text) {
            Ok(config) => prop_assert_eq!(u64::from(config.policy.budget().get()), budget),
            Err(error) => prop_assert!(error.is_range() && !(1..=256).contains(&budget)),
        }
    }
}
