// SPDX-License-Identifier: GPL-2.0

//! The whole weight after completing corrupts the poller's list.

use irqmod::{Platform, PollEnd, PollPass};

pub fn forged<P: Platform>(platform: &P, pass: PollPass) -> PollEnd {
    let weight = pass.budget().get();
    let _ = platform.complete_poller(pass);
    PollEnd { work: weight } //~ field `work` of struct `PollEnd` is private
}
