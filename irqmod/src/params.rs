// SPDX-License-Identifier: GPL-2.0

//! The parameter string of a policy, and of a driver.
//!
//! ```text
//! choices = choice *( ";" device "=" choice )
//! choice  = policy [ ":" pair *( "," pair ) ]
//! pair    = key "=" 1*digit / "mask=" ( "nosync" / "nowait" )
//! device  = 1*32( letter / digit / "." / ":" / "_" / "-" )
//! ```
//!
//! One newline at the end is tolerated, because `echo` writes it. Nothing else is: no spaces, no
//! signs, no empty or repeated keys, and no value that would have to be clamped.

use crate::policy::{
    Choice,
    Config,
    Conflict,
    Key,
    Kind,
    Mask,
    Values,
    MAX_KEYS, //
};
use core::fmt;

/// Why a parameter string was refused. [`fmt::Display`] writes one line that says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError<'a> {
    /// The string is not UTF-8.
    Encoding,
    /// No policy of this name.
    Policy(&'a str),
    /// The policy has no such key.
    Key {
        /// The name of the policy.
        policy: &'static str,
        /// The key as given; may be empty.
        key: &'a str,
        /// The keys that there are, beside the mask.
        keys: &'static [Key],
    },
    /// The key is given twice.
    Repeated {
        /// The name of the policy.
        policy: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The value is not a number.
    Value {
        /// The key.
        key: &'static Key,
        /// The value as given; may be empty.
        value: &'a str,
    },
    /// The value is a number out of the range.
    Range {
        /// The key.
        key: &'static Key,
        /// The value as given.
        value: &'a str,
    },
    /// No such way to mask.
    Mask(&'a str),
    /// Not the name of a device.
    Device(&'a str),
    /// The device is given twice.
    DeviceTwice(&'a str),
    /// More devices than there is room for.
    Devices,
    /// Each value is in its range, but they don't go together.
    Conflict {
        /// The name of the policy.
        policy: &'static str,
        /// What is asked of them.
        conflict: Conflict,
    },
}

impl ParamError<'_> {
    /// Whether the string is well formed but a value is out of its range: `-ERANGE` rather than
    /// `-EINVAL`.
    pub fn is_range(&self) -> bool {
        matches!(self, Self::Range { .. })
    }
}

impl fmt::Display for ParamError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding => write!(f, "policy is not text; allowed: {}", Names),
            Self::Policy(name) => {
                write!(f, "unknown policy '{}'; allowed: {}", Quoted(name), Names)
            }
            Self::Key { policy, key, keys } => {
                write!(f, "{policy}: unknown key '{}'; allowed: ", Quoted(key))?;
                keys.iter()
                    .try_for_each(|key| write!(f, "{}, ", key.name))?;
                f.write_str(Mask::KEY)
            }
            Self::Repeated { policy, key } => write!(f, "{policy}: key '{key}' given twice"),
            Self::Value { key, value } => {
                write!(f, "{}: '{}' is not a number; ", key.name, Quoted(value))?;
                write!(f, "allowed: {}..={}", key.min, key.max)
            }
            Self::Range { key, value } => {
                write!(f, "{}: '{}' is out of range; ", key.name, Quoted(value))?;
                write!(f, "allowed: {}..={}", key.min, key.max)
            }
            Self::Mask(word) => {
                write!(f, "{}: unknown word '{}'; ", Mask::KEY, Quoted(word))?;
                f.write_str("allowed: nosync, nowait")
            }
            Self::Device(name) => {
                write!(f, "'{}' is not the name of a device; ", Quoted(name))?;
                write!(f, "allowed: 1..={MAX_DEVICE} of A-Z a-z 0-9 . : _ -")
            }
            Self::DeviceTwice(name) => write!(f, "device '{}' given twice", Quoted(name)),
            Self::Devices => write!(f, "too many devices; allowed: 0..={MAX_DEVICES}"),
            Self::Conflict { policy, conflict } => write!(f, "{policy}: {}", conflict.0),
        }
    }
}

/// The names of all policies, as an error lists them.
struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in Config::NAMES.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{name}")?;
        }
        Ok(())
    }
}

/// User text in a log line: short, and without anything that could break the line.
struct Quoted<'a>(&'a str);

/// How much of a user's text an error repeats. Unit: characters; no valid word is this long.
const QUOTED_MAX: usize = 32;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(QUOTED_MAX) {
            write!(f, "{}", c.escape_default())?;
        }
        if self.0.chars().nth(QUOTED_MAX).is_some() {
            f.write_str("...")?;
        }
        Ok(())
    }
}

/// Parses a parameter string. Any context; changes nothing.
///
/// # Examples
///
/// ```
/// use irqmod::params::parse;
///
/// let choice = parse(b"resched:budget=64\n").unwrap();
/// assert_eq!(choice.to_string(), "resched:budget=64");
///
/// let error = parse(b"resched:budget=0").unwrap_err();
/// assert!(error.is_range());
/// assert_eq!(error.to_string(), "budget: '0' is out of range; allowed: 1..=256");
/// ```
pub fn parse<T: AsRef<[u8]> + ?Sized>(text: &T) -> Result<Choice, ParamError<'_>> {
    let text = core::str::from_utf8(text.as_ref()).map_err(|_| ParamError::Encoding)?;
    choice(text.strip_suffix('\n').unwrap_or(text))
}

/// Reads one choice.
fn choice(text: &str) -> Result<Choice, ParamError<'_>> {
    let (name, pairs) = match text.split_once(':') {
        Some((name, pairs)) => (name, Some(pairs)),
        None => (text, None),
    };
    let named = |kind: &&Kind| kind.name() == name;
    let Some(kind) = Kind::ALL.iter().find(named).copied() else {
        return Err(ParamError::Policy(name));
    };
    let mut given = Given::default();
    for pair in pairs.into_iter().flat_map(|pairs| pairs.split(',')) {
        // A missing `=` makes an empty value.
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        given.set(kind, key, value)?;
    }
    given.finish(kind)
}

/// Most devices with a choice of their own in one string: with all keys of their policies they still
/// fit in a page.
pub const MAX_DEVICES: usize = 16;

/// Longest name of a device. Unit: bytes.
pub const MAX_DEVICE: usize = 32;

/// A choice for a driver's devices, and others for some of them. [`fmt::Display`] writes what
/// [`parse_choices`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices<'a> {
    common: Choice,
    /// What follows the first semicolon; checked.
    devices: Option<&'a str>,
}

impl From<Config> for Choices<'_> {
    fn from(policy: Config) -> Self {
        Self {
            common: policy.into(),
            devices: None,
        }
    }
}

impl<'a> Choices<'a> {
    /// For devices that are not named.
    pub fn common(&self) -> Choice {
        self.common
    }

    /// For this device.
    pub fn of(&self, device: &str) -> Choice {
        let mut own = self.devices().filter(|(name, _)| *name == device);
        own.next().map_or(self.common, |(_, choice)| choice)
    }

    /// The devices that are named, with their choices.
    pub fn devices(&self) -> impl Iterator<Item = (&'a str, Choice)> {
        let entries = self.devices.into_iter().flat_map(|text| text.split(';'));
        entries.filter_map(|entry| entry_of(entry).ok())
    }
}

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.common)?;
        self.devices()
            .try_for_each(|(name, choice)| write!(f, ";{name}={choice}"))
    }
}

/// Parses the string of a driver. Any context; changes nothing.
///
/// # Examples
///
/// ```
/// use irqmod::params::{parse, parse_choices};
///
/// let choices = parse_choices(b"fair;0000:01:00.0=resched:budget=64\n").unwrap();
/// assert_eq!(choices.common(), parse(b"fair").unwrap());
/// assert_eq!(choices.of("0000:01:00.0").to_string(), "resched:budget=64");
/// assert_eq!(choices.of("0000:02:00.0"), choices.common());
/// ```
pub fn parse_choices<T: AsRef<[u8]> + ?Sized>(text: &T) -> Result<Choices<'_>, ParamError<'_>> {
    let text = core::str::from_utf8(text.as_ref()).map_err(|_| ParamError::Encoding)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (common, devices) = match text.split_once(';') {
        Some((common, devices)) => (common, Some(devices)),
        None => (text, None),
    };
    let choices = Choices {
        common: choice(common)?,
        devices,
    };
    let entries = devices.into_iter().flat_map(|text| text.split(';'));
    for (i, entry) in entries.enumerate() {
        let (name, _) = entry_of(entry)?;
        if choices.devices().take(i).any(|(other, _)| other == name) {
            return Err(ParamError::DeviceTwice(name));
        }
        if i >= MAX_DEVICES {
            return Err(ParamError::Devices);
        }
    }
    Ok(choices)
}

/// One device with its choice.
fn entry_of(entry: &str) -> Result<(&str, Choice), ParamError<'_>> {
    let (name, text) = entry.split_once('=').unwrap_or((entry, ""));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".:_-".contains(&b);
    if name.is_empty() || name.len() > MAX_DEVICE || !name.bytes().all(plain) {
        return Err(ParamError::Device(name));
    }
    Ok((name, choice(text)?))
}

/// What the string has said so far.
#[derive(Default)]
struct Given {
    values: [Option<u32>; MAX_KEYS],
    mask: Option<Mask>,
}

impl Given {
    fn set<'a>(&mut self, kind: Kind, key: &'a str, value: &'a str) -> Result<(), ParamError<'a>> {
        if key == Mask::KEY {
            let mask = mask(value)?;
            return once(kind, Mask::KEY, &mut self.mask, mask);
        }
        let mut keys = kind.keys().iter().zip(&mut self.values);
        match keys.find(|(known, _)| known.name == key) {
            Some((known, slot)) => once(kind, known.name, slot, number(known, value)?),
            None => Err(ParamError::Key {
                policy: kind.name(),
                key,
                keys: kind.keys(),
            }),
        }
    }

    fn finish<'a>(self, kind: Kind) -> Result<Choice, ParamError<'a>> {
        let mut values = Values::default();
        for ((value, given), key) in values.iter_mut().zip(self.values).zip(kind.keys()) {
            *value = given.unwrap_or(key.default);
        }
        let policy =
            Config::from_values(kind, &values).map_err(|conflict| ParamError::Conflict {
                policy: kind.name(),
                conflict,
            })?;
        Ok(Choice {
            policy,
            mask: self.mask.unwrap_or_default(),
        })
    }
}

/// Fills a slot that must be empty.
fn once<'a, T>(
    kind: Kind,
    key: &'static str,
    slot: &mut Option<T>,
    value: T,
) -> Result<(), ParamError<'a>> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ParamError::Repeated {
            policy: kind.name(),
            key,
        }),
    }
}

fn mask(word: &str) -> Result<Mask, ParamError<'_>> {
    let named = |(name, _): &&(&str, Mask)| *name == word;
    match Mask::ALL.iter().find(named) {
        Some((_, mask)) => Ok(*mask),
        None => Err(ParamError::Mask(word)),
    }
}

/// A decimal number in the range of its key.
fn number<'a>(key: &'static Key, value: &'a str) -> Result<u32, ParamError<'a>> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParamError::Value { key, value });
    }
    // What fails to parse now is too large for a word, and so for every range.
    match value.parse() {
        Ok(number) if (key.min..=key.max).contains(&number) => Ok(number),
        _ => Err(ParamError::Range { key, value }),
    }
}
