// SPDX-License-Identifier: GPL-2.0

//! The grammar of the parameter string.

#![cfg(not(loom))]

use irqmod::{
    params::{
        parse,
        parse_choices,
        ParamError,
        MAX_DEVICE,
        MAX_DEVICES, //
    },
    policy::{
        irqpoll,
        overflow,
        resched,
        threaded,
        Choice,
        Config,
        Key,
        Mask, //
    },
    Moderator, //
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
        ("threaded", choice(threaded::Config::default())),
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

/// Each policy at its defaults, with its name.
fn defaults() -> impl Iterator<Item = (&'static str, Choice)> {
    Config::NAMES
        .iter()
        .map(|name| (*name, parse(name).unwrap()))
}

#[test]
fn keys_are_well_formed() {
    for (name, choice) in defaults() {
        let keys = choice.policy.keys();
        for (i, key) in keys.iter().enumerate() {
            let allowed = key.min..=key.max;
            assert!(allowed.contains(&key.default), "{name}: {}", key.name);
            let twice = keys[..i].iter().any(|other| other.name == key.name);
            assert!(!twice && key.name != Mask::KEY, "{name}: {}", key.name);
            let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
            assert!(key.name.bytes().all(plain), "{name}: {}", key.name);
        }
    }
}

/// What a policy says of itself when `key` has this value; the other keys keep their defaults.
fn with(name: &str, key: &Key, value: u64) -> String {
    format!("{name}:{}={value}", key.name)
}

#[test]
fn hrt_04_every_key_at_its_bounds_and_beyond() {
    for (name, choice) in defaults() {
        for key in choice.policy.keys() {
            for value in [key.min, key.max, key.default] {
                let text = with(name, key, value.into());
                match parse(&text) {
                    Ok(choice) => assert_eq!(parse(&choice.to_string()), Ok(choice), "{text}"),
                    // In its range, but not with the defaults of the others.
                    Err(error) => assert!(!error.is_range(), "{text}: {error}"),
                }
            }
            let below = key.min.checked_sub(1).map(u64::from);
            let above = [u64::from(key.max) + 1, 1 << 32, u64::MAX];
            for value in below.into_iter().chain(above) {
                let error = out_of_range(name, key, value);
                let allowed = format!("allowed: {}..={}", key.min, key.max);
                let line = format!("{}: '{value}' is out of range; {allowed}", key.name);
                assert_eq!(error, line);
            }
        }
    }
}

fn out_of_range(name: &str, key: &Key, value: u64) -> String {
    let text = with(name, key, value);
    let error = parse(&text).expect_err(&text);
    assert!(error.is_range(), "{text}");
    error.to_string()
}

#[test]
fn hrt_04_every_key_with_what_is_no_number() {
    for (name, choice) in defaults() {
        for key in choice.policy.keys() {
            for value in [
                "", "-1", "+1", " 1", "1 ", "0x10", "1e3", "one", "1.0", "\u{663}",
            ] {
                let text = format!("{name}:{}={value}", key.name);
                let error = parse(&text).expect_err(&text);
                assert!(!error.is_range(), "{text}");
                let line = error.to_string();
                assert!(line.contains("is not a number"), "{line}");
                assert!(line.starts_with(key.name), "{line}");
            }
            let twice = format!("{name}:{0}={1},{0}={1}", key.name, key.default);
            let line = parse(&twice).unwrap_err().to_string();
            assert_eq!(line, format!("{name}: key '{}' given twice", key.name));
        }
    }
}

#[test]
fn hrt_04_a_newline_at_the_end_changes_nothing() {
    for (name, choice) in defaults() {
        for key in choice.policy.keys() {
            let text = with(name, key, key.default.into());
            assert_eq!(parse(&text), Ok(choice));
            assert_eq!(parse(&format!("{text}\n")), Ok(choice));
            assert!(parse(&format!("{text}\n\n")).is_err());
        }
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
            "threaded: unknown key 'budget'; allowed: spread, mask".into(),
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

/// A parameter string with any values in their ranges for some of the keys, in any order.
fn chosen(name: &str, picks: [u32; 8]) -> String {
    let choice = parse(name).unwrap();
    let keys = choice.policy.keys();
    let mut pairs: Vec<_> = keys
        .iter()
        .zip(picks)
        .filter(|(_, pick)| pick % 3 != 0)
        .map(|(key, pick)| format!("{}={}", key.name, in_range(key, pick)))
        .collect();
    match picks[7] % 3 {
        0 => pairs.push("mask=nosync".into()),
        1 => pairs.push("mask=nowait".into()),
        _ => (),
    }
    let turn = picks[7] as usize % pairs.len().max(1);
    pairs.rotate_left(turn);
    if pairs.is_empty() {
        name.into()
    } else {
        format!("{name}:{}", pairs.join(","))
    }
}

fn in_range(key: &Key, pick: u32) -> u32 {
    let span = u64::from(key.max - key.min) + 1;
    key.min + u32::try_from(u64::from(pick) % span).unwrap()
}

proptest! {
    #[test]
    fn any_choice_prints_and_parses_back(
        name in prop::sample::select(Config::NAMES),
        picks in any::<[u32; 8]>(),
    ) {
        let text = chosen(name, picks);
        match parse(&text) {
            Ok(choice) => {
                let printed = choice.to_string();
                prop_assert_eq!(parse(&printed), Ok(choice));
                // The words that a line keeps say the same.
                prop_assert_eq!(Moderator::new(choice).choice(), choice);
                // All keys are printed, so what was said is in there.
                for pair in text.split([':', ',']).filter(|pair| *pair != "mask=nosync") {
                    prop_assert!(printed.split([':', ',']).any(|said| said == pair), "{}", printed);
                }
            }
            Err(error) => prop_assert!(matches!(error, ParamError::Conflict { .. }), "{}", error),
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
    fn near_misses_never_panic(
        name in prop::sample::select(Config::NAMES),
        picks in any::<[u32; 8]>(),
        at in any::<prop::sample::Index>(),
        cut in 0usize..4,
        noise in ".{0,3}",
    ) {
        let text: Vec<_> = chosen(name, picks).chars().collect();
        let at = at.index(text.len());
        let rest = text.iter().skip(at + cut);
        let text: String = text[..at].iter().copied().chain(noise.chars()).chain(rest.copied()).collect();
        match parse(&text) {
            Ok(choice) => {
                let printed = choice.to_string();
                prop_assert_eq!(parse(&printed), Ok(choice));
            }
            Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control)),
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

#[test]
fn a_device_has_its_own_choice() {
    let text = "fair:window_us=500;0000:01:00.0=hardirq;a-b_c=resched:budget=7,mask=nowait\n";
    let choices = parse_choices(text).unwrap();
    assert_eq!(choices.common(), parse("fair:window_us=500").unwrap());
    assert_eq!(choices.of("0000:01:00.0"), choice(Config::HARDIRQ));
    let own = parse("resched:budget=7,mask=nowait").unwrap();
    assert_eq!(choices.of("a-b_c"), own);
    for other in ["", "0000:01:00.1", "a-b_", "fair"] {
        assert_eq!(choices.of(other), choices.common(), "{other}");
    }
    assert_eq!(choices.devices().count(), 2);
    let shown = choices.to_string();
    assert_eq!(parse_choices(&shown).unwrap().to_string(), shown);
}

#[test]
fn refused_choices_of_devices() {
    let long = "x".repeat(MAX_DEVICE + 1);
    let twice = "hardirq;a=fair;b=fair;a=hardirq";
    let name = format!("allowed: 1..={MAX_DEVICE} of A-Z a-z 0-9 . : _ -");
    let table = [
        (
            "hardirq;",
            format!("'' is not the name of a device; {name}"),
        ),
        (
            "hardirq;=fair",
            format!("'' is not the name of a device; {name}"),
        ),
        (
            "hardirq;a b=fair",
            format!("'a b' is not the name of a device; {name}"),
        ),
        (twice, "device 'a' given twice".into()),
        (
            "hardirq;a=resched:budget=0",
            "budget: '0' is out of range; allowed: 1..=256".into(),
        ),
        (
            "nonsense;a=fair",
            parse("nonsense").unwrap_err().to_string(),
        ),
        ("hardirq;a", parse("").unwrap_err().to_string()),
        (";a=fair", parse("").unwrap_err().to_string()),
        (
            "hardirq;a=fair\n\n",
            parse("fair\n\n").unwrap_err().to_string(),
        ),
    ];
    for (text, line) in table {
        assert_eq!(
            parse_choices(text).unwrap_err().to_string(),
            line,
            "{text:?}"
        );
    }
    let range = parse_choices("hardirq;a=resched:budget=0").unwrap_err();
    assert!(range.is_range());
    let text = format!("hardirq;{long}=fair");
    assert!(matches!(parse_choices(&text), Err(ParamError::Device(_))));
    assert!(parse_choices(&format!("hardirq;{}=fair", &long[1..])).is_ok());
}

/// So many devices with the longest names and policies: what is shown fits in a page.
#[test]
fn as_many_devices_as_there_is_room_for() {
    let mut text = String::from("timer:mask=nowait");
    for i in 0..MAX_DEVICES {
        text += &format!(";{i:0>MAX_DEVICE$}=timer:mask=nowait");
    }
    let choices = parse_choices(&text).unwrap();
    assert_eq!(choices.devices().count(), MAX_DEVICES);
    assert!(
        choices.to_string().len() < 4096,
        "{}",
        choices.to_string().len()
    );
    text += ";x=fair";
    let line = parse_choices(&text).unwrap_err().to_string();
    assert_eq!(line, "too many devices; allowed: 0..=16");
}

/// Pieces of choices and what separates them, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "fair",
        "hardirq",
        "resched",
        ":",
        "=",
        ",",
        ";",
        "budget",
        "64",
        "0",
        "a",
        "0000:01:00.0",
        "mask",
        "nowait",
        "\n",
        " ",
        "timer",
        "delay_us",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..14)
        .prop_map(|words| words.concat())
}

proptest! {
    /// What is accepted is shown as what is read as the same again, and each part is accepted alone.
    #[test]
    fn choices_of_any_text(text in prop_oneof![pieces(), any::<String>()]) {
        match parse_choices(&text) {
            Ok(choices) => {
                let shown = choices.to_string();
                let again = parse_choices(&shown).unwrap();
                prop_assert_eq!(again.common(), choices.common());
                for (name, own) in choices.devices() {
                    prop_assert_eq!(again.of(name), own);
                    let alone = own.to_string();
                    prop_assert_eq!(parse(&alone), Ok(own));
                }
                prop_assert_eq!(again.devices().count(), choices.devices().count());
            }
            Err(error) => {
                let line = error.to_string();
                prop_assert!(!line.is_empty() && line.chars().all(|c| !c.is_control()));
            }
        }
    }
}
