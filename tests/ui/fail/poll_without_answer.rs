// SPDX-License-Identifier: GPL-2.0

//! The poller core waits for an answer.

use irqmod::{Moderator, Platform, PollPass, Source};

pub fn poll<S: Source, P: Platform>(m: &Moderator, s: &S, p: &P, pass: PollPass) {
    m.on_poll(s, p, pass); //~ the poller core waits for an answer
}
