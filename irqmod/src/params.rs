// SPDX-License-Identifier: GPL-2.0

//! The parameter string of a policy.
//!
//! ```text
//! policy = name [ ":" key "=" value *( "," key "=" value ) ]
//! value  = 1*digit
//! ```
//!
//! One newline at the end is tolerated, because `echo` writes it. Nothing else is: no spaces, no
//! signs, no empty or repeated keys, and no value that would have to be clamped.

use crate::policy::{
    hardirq,
    resched,
    threaded,
    Config, //
};
use core::fmt;

/// The names of all policies, as an error lists them.
const NAMES: &str = "hardirq, resched, threaded";

/// Why a parameter string was refused. [`fmt::Display`] writes one line that says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError<'a> {
    /// The string is not UTF-8.
    Encoding,
    /// No policy of this name.
    Policy(&'a str),
    /// The policy has no such key, or no keys at all.
    Key {
        /// The name of the policy.
        policy: &'static str,
        /// The key as given; may be empty.
        key: &'a str,
        /// The keys that there are, separated by commas; may be empty.
        allowed: &'static str,
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
        key: &'static str,
        /// The value as given; may be empty.
        value: &'a str,
        /// The smallest and the largest value allowed.
        range: (u32, u32),
    },
    /// The value is a number out of the range.
    Range {
        /// The key.
        key: &'static str,
        /// The value as given.
        value: &'a str,
        /// The smallest and the largest value allowed.
        range: (u32, u32),
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
            Self::Encoding => write!(f, "policy is not text; allowed: {NAMES}"),
            Self::Policy(name) => {
                write!(f, "unknown policy '{}'; allowed: {NAMES}", Quoted(name))
            }
            Self::Key {
                policy,
                key,
                allowed: "",
            } => write!(f, "{policy}: '{}' given; it has no keys", Quoted(key)),
            Self::Key {
                policy,
                key,
                allowed,
            } => write!(
                f,
                "{policy}: unknown key '{}'; allowed: {allowed}",
                Quoted(key)
            ),
            Self::Repeated { policy, key } => write!(f, "{policy}: key '{key}' given twice"),
            Self::Value { key, value, range } => write!(
                f,
                "{key}: '{}' is not a number; allowed: {}..={}",
                Quoted(value),
                range.0,
                range.1
            ),
            Self::Range { key, value, range } => write!(
                f,
                "{key}: '{}' is out of range; allowed: {}..={}",
                Quoted(value),
                range.0,
                range.1
            ),
        }
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
/// let config = parse(b"resched:budget=64\n").unwrap();
/// assert_eq!(config.to_string(), "resched:budget=64");
///
/// let error = parse(b"resched:budget=0").unwrap_err();
/// assert!(error.is_range());
/// assert_eq!(error.to_string(), "budget: '0' is out of range; allowed: 1..=256");
/// ```
pub fn parse<T: AsRef<[u8]> + ?Sized>(text: &T) -> Result<Config, ParamError<'_>> {
    let text = core::str::from_utf8(text.as_ref()).map_err(|_| ParamError::Encoding)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (name, pairs) = match text.split_once(':') {
        Some((name, pairs)) => (name, Some(pairs)),
        None => (text, None),
    };
    match name {
        hardirq::NAME => no_keys(hardirq::NAME, pairs).map(|()| Config::Hardirq),
        resched::NAME => resched(pairs).map(Config::Resched),
        threaded::NAME => {
            no_keys(threaded::NAME, pairs).map(|()| Config::Threaded(threaded::Config))
        }
        _ => Err(ParamError::Policy(name)),
    }
}

/// Splits `key=value,key=value`; a missing `=` makes an empty value.
fn pairs(text: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    text.into_iter()
        .flat_map(|text| text.split(','))
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// A policy without keys.
fn no_keys<'a>(policy: &'static str, text: Option<&'a str>) -> Result<(), ParamError<'a>> {
    match pairs(text).next() {
        None => Ok(()),
        Some((key, _)) => Err(ParamError::Key {
            policy,
            key,
            allowed: "",
        }),
    }
}

/// The keys of `resched`.
fn resched(text: Option<&str>) -> Result<resched::Config, ParamError<'_>> {
    const BUDGET: &str = "budget";
    const RANGE: (u32, u32) = (1, resched::Config::MAX_BUDGET);

    let mut config = None;
    for (key, value) in pairs(text) {
        if key != BUDGET {
            return Err(ParamError::Key {
                policy: resched::NAME,
                key,
                allowed: BUDGET,
            });
        }
        if config.is_some() {
            return Err(ParamError::Repeated {
                policy: resched::NAME,
                key: BUDGET,
            });
        }
        config = Some(number(BUDGET, value, RANGE, resched::Config::new)?);
    }
    Ok(config.unwrap_or_default())
}

/// A decimal number that `make` accepts, which is one in `range`.
fn number<'a, T>(
    key: &'static str,
    value: &'a str,
    range: (u32, u32),
    make: impl FnOnce(u32) -> Option<T>,
) -> Result<T, ParamError<'a>> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParamError::Value { key, value, range });
    }
    // What fails to parse now is too large for a word, and so for every range.
    value
        .parse()
        .ok()
        .and_then(make)
        .ok_or(ParamError::Range { key, value, range })
}
