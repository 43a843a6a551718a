// SPDX-License-Identifier: GPL-2.0

//! A whole platform, with every entry of the moderator: no path of it drops a token, in a crate
//! where that would not compile.

use irqmod::{
    Budget, Deferral, Drain, DrainRight, Handled, MaskToken, Moderator, Platform, PollEnd,
    PollPass, Source,
};

pub struct Queue;

impl Source for Queue {
    fn pending(&self) -> bool {
        true
    }

    fn drain(&self, _: &mut DrainRight<'_>, budget: Budget) -> Drain {
        Drain::More(budget.get())
    }
}

pub struct Line;

impl Platform for Line {
    fn mask(&self) -> MaskToken {
        MaskToken::mint()
    }

    fn mask_sync(&self) -> MaskToken {
        MaskToken::mint()
    }

    fn unmask(&self, token: MaskToken) {
        token.redeem();
    }

    fn synchronize(&self) {}

    fn defer(&self, _: Deferral) {}

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        pass.completed()
    }

    fn join_poller(&self) {}

    fn enable_poller(&self) {}

    fn need_resched(&self) -> bool {
        true
    }

    fn in_hardirq(&self) -> bool {
        true
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn relax(&self) {}
}

pub fn everything(m: &Moderator, pass: PollPass) -> (Handled, u32) {
    m.prepare();
    m.start();
    let handled = m.on_interrupt(&Queue, &Line);
    let work = m.on_poll(&Queue, &Line, pass).work();
    let _ = m.on_thread(&Queue, &Line);
    m.pause(&Queue, &Line);
    m.resume(&Queue, &Line);
    m.stop(&Queue, &Line);
    m.exclusive(&Queue, &Line, |queue, right| {
        queue.drain(right, Budget::UNLIMITED).found()
    });
    (handled, work)
}
