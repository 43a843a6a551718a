// SPDX-License-Identifier: GPL-2.0

//! How much may be drained, and how much was.

use core::num::NonZeroU32;

/// The largest number of completions that one drain may take. Unit: completions; never zero.
///
/// # Examples
///
/// ```
/// use irqmod::Budget;
///
/// assert!(Budget::new(0).is_none());
/// assert_eq!(Budget::new(256).map(Budget::get), Some(256));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget(NonZeroU32);

impl Budget {
    /// Drain until the queue is seen empty.
    pub const UNLIMITED: Self = Self(NonZeroU32::MAX);

    /// Budget of one softirq pass by default: what the irq_poll core grants all of its instances
    /// together in one pass, so that a single busy source can use a pass up but never exceed it.
    pub const POLL_DEFAULT: Self = match NonZeroU32::new(256) {
        Some(n) => Self(n),
        None => Self::UNLIMITED,
    };

    /// A budget of `completions`; [`None`] for zero.
    pub const fn new(completions: u32) -> Option<Self> {
        match NonZeroU32::new(completions) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// A budget of one softirq pass: `1..=256`; [`None`] outside of the range.
    ///
    /// The irq_poll core grants no more to all its instances together in one pass, and an instance
    /// with more would overrun that in a single call.
    pub const fn polled(completions: u32) -> Option<Self> {
        match Self::new(completions) {
            Some(budget) if completions <= Self::POLL_DEFAULT.get() => Some(budget),
            _ => None,
        }
    }

    /// The number of completions; 1 or more.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// What a drain found.
///
/// "Finished with exactly the budget" and "stopped by the budget" are different answers, which a
/// bare count cannot tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "More means that completions may be left in the queue"]
pub enum Drain {
    /// The queue was seen empty after this many completions, which may be the whole budget.
    Drained(u32),
    /// The budget was used up; this many completions were taken and more may be waiting.
    More(u32),
}

impl Drain {
    /// The number of completions taken.
    #[inline]
    pub const fn found(self) -> u32 {
        match self {
            Self::Drained(found) | Self::More(found) => found,
        }
    }
}
