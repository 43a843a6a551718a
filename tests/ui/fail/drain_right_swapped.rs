// SPDX-License-Identifier: GPL-2.0

//! Nor can the rights to two sources change places.

use core::mem::swap;
use irqmod::{Moderator, Platform, Source};

pub fn swapped<S: Source, P: Platform>(moderator: &Moderator, a: &S, b: &S, platform: &P) {
    moderator.exclusive(a, platform, |a| {
        moderator.exclusive(b, platform, |b| swap(a, b)) //~ borrowed data escapes outside of closure
    })
}
