// SPDX-License-Identifier: GPL-2.0

//! The right ends with the call it was given to.

use irqmod::{Budget, Drain, DrainRight, Moderator, Platform, Source};

pub fn keep<S: Source, P: Platform>(moderator: &Moderator, source: &S, platform: &P) -> Drain {
    let right = moderator.exclusive(source, platform, |right| right); //~ lifetime may not live long enough
    right.drain(Budget::UNLIMITED)
}
