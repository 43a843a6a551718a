// SPDX-License-Identifier: GPL-2.0

//! A ledger as it is shown.

use super::Ledger;
use crate::reason::ratio;

/// What a CPU's [`Ledger`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether all sources of the CPU are deferred to its completion thread.
    pub deferring: bool,
    /// What completions may take of the CPU while others want it, as the last line has it; zero before
    /// the first.
    pub share_percent: u32,
    /// In windows of this length. Unit: microseconds.
    pub window_us: u32,
    /// The account, when it was last looked at: full at 100, and up to twice of it.
    pub account_percent: u32,
    /// Completions of the next piece.
    pub piece: u32,
}

impl Ledger {
    /// What there is to show. Divides: not for a handler that nobody watches.
    pub fn view(&self) -> View {
        View {
            deferring: self.deferring,
            share_percent: self.share.percent,
            window_us: self.share.window_us,
            account_percent: self.account_percent(),
            piece: self.piece,
        }
    }

    fn account_percent(&self) -> u32 {
        let (mut level, mut limit) = (self.level.saturating_mul(100), self.share.limit());
        while limit > u64::from(u32::MAX) {
            level >>= 1;
            limit >>= 1;
        }
        // CAST: Fits by the loop above.
        ratio(level, limit as u32)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        ledger::Share,
        time::{
            Instant,
            Span, //
        }, //
    };

    #[test]
    fn the_account_is_a_part_of_what_fits() {
        let mut ledger = Ledger::new();
        assert_eq!(ledger.view().account_percent, 0);
        let share = Share::new(50, 20_000);
        let at = |micros| Instant::ZERO.after(Span::from_micros(micros));
        let _ = ledger.on_handler(at(1_000_000), share);
        let stop = ledger.on_handler_piece(at(1_000_000), at(1_005_000), 1, share);
        assert!(stop, "a handler has a millisecond");
        let view = ledger.view();
        assert_eq!((view.share_percent, view.window_us), (50, 20_000));
        assert_eq!(view.account_percent, 50, "5 of 10 ms");
    }
}
