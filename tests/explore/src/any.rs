// SPDX-License-Identifier: GPL-2.0

//! `any`: whatever a policy may decide, each in a branch of its own. What the protocol guarantees
//! with it, it guarantees with every policy, also with one that is not written yet.
//!
//! Copied beside the policies of the crate by the build script; once more, as `at_home`, with the
//! interrupt thread as the place where the poller leaves its source.

use super::{
    Conflict,
    Cpu,
    Key,
    Policy,
    Values, //
};
use crate::{
    facade::choose,
    irqmod::{
        observation::{
            Glance,
            Observation, //
        },
        reason::{
            Condition,
            Reason, //
        },
        time::Span,
        verdict::{
            After,
            Deferral,
            Next,
            Verdict, //
        },
        Budget,
        Drain, //
    },
};

/// The policy. Its value is the set of contexts that it defers to, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits of [`ALL`].
    pub to: u32,
}

/// Where to defer to, in the order of the bits of [`Config::to`].
pub const ALL: [Deferral; 5] = [
    Deferral::Softirq,
    Deferral::Thread,
    Deferral::Work,
    Deferral::Hold,
    Deferral::Cpu,
];

impl Config {
    /// One of the contexts, or a number beyond them that is less than `more`.
    fn pick(&self, more: u32) -> Result<Deferral, u32> {
        let set = || (0..).zip(ALL).filter(|(i, _)| self.to & (1 << i) != 0);
        let n = set().count() as u32;
        let choice = choose(n + more);
        match set().nth(choice as usize) {
            Some((_, to)) => Ok(to),
            None => Err(choice - n),
        }
    }
}

/// A budget that is soon used up.
const ONE: Budget = match Budget::new(1) {
    Some(budget) => budget,
    None => Budget::UNLIMITED,
};

impl Policy for Config {
    const NAME: &'static str = "any";
    const KEYS: &'static [Key] = &[Key {
        name: "to",
        min: 0,
        max: 31,
        default: 31,
    }];
    const GLANCES: bool = false;
    const HOME: Option<Deferral> = None;
    type Line = ();

    fn from_values(values: &Values) -> Result<Self, Conflict> {
        Ok(Self { to: values[0] })
    }

    fn values(&self) -> Values {
        let mut values = Values::default();
        values[0] = self.to;
        values
    }

    fn on_interrupt(&self, _: Glance) -> Option<Verdict> {
        Some(match self.pick(2) {
            Ok(to) => Verdict::Defer(to),
            Err(0) => Verdict::Drain(ONE),
            Err(_) => Verdict::Drain(Budget::UNLIMITED),
        })
    }

    fn on_drained(&self, _: Glance, drain: Drain) -> Option<After> {
        Some(match self.pick(2) {
            Ok(Deferral::Hold) if drain.found() == 0 => After::Open,
            Ok(Deferral::Hold) => After::HoldFor(Span::from_nanos(1)),
            Ok(to) => After::Defer(to),
            // Without end on an empty queue: no policy does that.
            Err(1) if drain.found() != 0 => After::Again(ONE),
            Err(_) => After::Open,
        })
    }

    fn on_pass(&self, _: &Observation, drain: Drain, (): &mut ()) -> Next {
        let whims = if drain.found() == 0 { 1 } else { 3 };
        match choose(whims) {
            0 => Next::HandBack,
            1 => Next::Rest(Span::from_nanos(1)),
            _ => Next::Again,
        }
    }

    fn budget(&self) -> Budget {
        ONE
    }

    const CONDITIONS: &'static [Condition] = &[];

    fn why(&self, _: &Observation, _: u32, (): &(), _: &Cpu, _: &mut dyn FnMut(Reason)) {}
}
