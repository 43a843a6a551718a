// SPDX-License-Identifier: GPL-2.0

//! Completed is completed.

use irqmod::{Platform, PollEnd, PollPass};

pub fn stays<P: Platform>(platform: &P, pass: PollPass) -> PollEnd {
    let _ = platform.complete_poller(pass);
    pass.stay() //~ use of moved value: `pass`
}
