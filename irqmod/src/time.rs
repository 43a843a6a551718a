// SPDX-License-Identifier: GPL-2.0

//! Points in time and lengths of time, as plain values. Unit: nanoseconds.
//!
//! Nothing here reads a clock: `now` is always somebody's argument. All arithmetic saturates, so
//! that a clock which steps back makes a length of zero and never a huge one.

/// A point on the platform's monotonic clock. Only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// `nanos` after the start of the clock.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The distance from the start of the clock. Unit: nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is still to come.
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` later.
    #[inline]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length of `nanos` nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A length of `micros` microseconds, which always fits.
    #[inline]
    pub const fn from_micros(micros: u32) -> Self {
        // CAST: Widens.
        Self(micros as u64 * 1_000)
    }

    /// A length of `millis` milliseconds, which always fits.
    #[inline]
    pub const fn from_millis(millis: u32) -> Self {
        // CAST: Widens.
        Self(millis as u64 * 1_000_000)
    }

    /// The length. Unit: nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether there is no time in it.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both together.
    #[inline]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without `other`; zero if that is longer.
    #[inline]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `n` times as long.
    #[inline]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let late = Instant::from_nanos(u64::MAX);
        assert_eq!(Instant::ZERO.since(late), Span::ZERO);
        assert_eq!(late.after(Span::from_nanos(1)), late);
        assert_eq!(late.since(Instant::ZERO).as_nanos(), u64::MAX);
        assert_eq!(Span::from_nanos(u64::MAX).times(2).as_nanos(), u64::MAX);
        assert_eq!(Span::ZERO.minus(Span::from_nanos(1)), Span::ZERO);
        let all = Span::from_nanos(u64::MAX);
        assert_eq!(all.plus(all), all);
    }

    #[test]
    fn units() {
        assert_eq!(Span::from_micros(3).as_nanos(), 3_000);
        assert_eq!(Span::from_millis(3), Span::from_micros(3_000));
        assert_eq!(
            Span::from_millis(u32::MAX).as_nanos(),
            4_294_967_295_000_000
        );
    }
}
