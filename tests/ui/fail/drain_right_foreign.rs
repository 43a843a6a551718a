// SPDX-License-Identifier: GPL-2.0

//! The right to drain one source drains no other.

use irqmod::{Budget, Drain, Moderator, Platform, Source};

pub fn foreign<S: Source, P: Platform>(moderator: &Moderator, a: &S, b: &S, platform: &P) -> Drain {
    moderator.exclusive(a, platform, |_| b.drain(Budget::UNLIMITED)) //~ no method named `drain` found
}
