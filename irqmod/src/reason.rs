// SPDX-License-Identifier: GPL-2.0

//! Why a policy left a source to its handler: what it measured, and against what.
//!
//! A policy names its [`Condition`]s, and is asked for the [`Reason`]s of a handler that drained and
//! left its line open, by [`Policy::why`](crate::policy::Policy::why): only while somebody watches.

/// Something that a policy looks at before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is, in a word or two, with the unit last if there is one.
    pub name: &'static str,
    /// Whether it is measured against a threshold; else it holds or does not.
    pub measured: bool,
}

impl Condition {
    /// One that is measured against a threshold.
    pub const fn measured(name: &'static str) -> Self {
        Self {
            name,
            measured: true,
        }
    }

    /// One that holds or does not, and rules out that the policy acts while it holds.
    pub const fn held(name: &'static str) -> Self {
        Self {
            name,
            measured: false,
        }
    }
}

/// The handler ran in a task: a forced interrupt thread, which may move to another CPU.
pub const IN_TASK: Condition = Condition::held("not in hardirq");

/// Nothing was there.
pub const EMPTY: Condition = Condition::held("nothing found");

/// The CPU was idle, and nobody wanted it.
pub const IDLE: Condition = Condition::held("idle");

/// The scheduler did not want the CPU.
pub const NEED_RESCHED: Condition = Condition::measured("need_resched");

/// Completions of this interrupt did not use up what the handler may drain.
pub const BUDGET: Condition = Condition::measured("completions");

/// A condition that was not met, and so left the source to its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which of the policy's conditions.
    pub condition: usize,
    /// What was measured.
    pub measured: u32,
    /// What it would have taken.
    pub threshold: u32,
}

impl Reason {
    /// `condition` measured `measured`, where it takes `threshold`.
    pub const fn new(condition: usize, measured: u32, threshold: u32) -> Self {
        Self {
            condition,
            measured,
            threshold,
        }
    }

    /// `condition`, which is not measured, held.
    pub const fn held(condition: usize) -> Self {
        Self::new(condition, 0, 0)
    }
}

/// A length as a number of whole microseconds, as far as 32 bits go. For what is shown: no division
/// of 64 bits, which a machine of 32 does not have in the kernel.
pub fn micros(span: crate::time::Span) -> u32 {
    ratio(span.as_nanos(), 1_000)
}

/// `numerator / denominator` as far as 32 bits go, rounded down, without a division of 64 bits; zero
/// if there is nothing to divide by.
pub fn ratio(numerator: u64, denominator: u32) -> u32 {
    if denominator == 0 {
        return 0;
    }
    let (mut rest, mut quotient) = (0u64, 0u64);
    for bit in (0..u64::BITS).rev() {
        rest = rest << 1 | (numerator >> bit & 1);
        quotient <<= 1;
        if rest >= u64::from(denominator) {
            rest -= u64::from(denominator);
            quotient |= 1;
        }
    }
    u32::try_from(quotient).unwrap_or(u32::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn ratios_are_rounded_down_and_saturate() {
        for (numerator, denominator, quotient) in [
            (0, 1, 0),
            (7, 2, 3),
            (999, 1_000, 0),
            (u64::from(u32::MAX), 1, u32::MAX),
            (u64::MAX, u32::MAX, u32::MAX),
            (u64::MAX, 1, u32::MAX),
            (1 << 40, 1 << 20, 1 << 20),
            (5, 0, 0),
        ] {
            assert_eq!(ratio(numerator, denominator), quotient);
        }
        assert_eq!(micros(Span::from_millis(3)), 3_000);
        assert_eq!(micros(Span::from_nanos(u64::MAX)), u32::MAX);
    }
}
