// SPDX-License-Identifier: GPL-2.0

//! The interrupt core waits for an answer.

use irqmod::{Moderator, Platform, Source};

pub fn interrupt<S: Source, P: Platform>(m: &Moderator, s: &S, p: &P) {
    m.on_interrupt(s, p); //~ the interrupt core waits for an answer
}
