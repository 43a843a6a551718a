// SPDX-License-Identifier: GPL-2.0

//! A whole platform, with every entry of the moderator: no path of it drops a token, in a crate
//! where that would not compile.

use irqmod::{
    observation::Glance,
    policy::{Cpu, Mask},
    time::{Instant, Span},
    Budget, Deferral, Drain, DrainRight, Handled, MaskToken, Moderator, Pass, Platform,
    PollEnd, PollPass, Source,
};

pub struct Queue;

impl Source for Queue {
    fn pending(&self) -> bool {
        true
    }

    fn drain(_: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        Drain::More(budget.get())
    }
}

pub struct Line;

impl Platform for Line {
    fn mask(&self, _: Mask) -> MaskToken {
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

    fn join_deferred(&self) {}

    fn enable_deferred(&self) {}

    fn arm_hold(&self, _: Span) {}

    fn poll_after(&self, _: Span) {}

    fn glance(&self) -> Glance {
        Glance::all()
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn switches(&self) -> u64 {
        0
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        f(&mut Cpu::new())
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn relax(&self) {}

    fn sleep(&self, _: Span) {}
}

pub fn everything(m: &Moderator, pass: PollPass) -> (Handled, u32) {
    m.prepare();
    m.start();
    let handled = m.on_interrupt(&Queue, &Line);
    let work = m.on_poll(&Queue, &Line, pass).work();
    let _ = m.on_thread(&Queue, &Line);
    let pass: Pass = m.on_pass(&Queue, &Line, Budget::UNLIMITED);
    assert!(pass != Pass::Done);
    m.on_hold_end(&Queue, &Line);
    m.pause(&Queue, &Line);
    m.resume(&Queue, &Line);
    m.stop(&Queue, &Line);
    m.exclusive(&Queue, &Line, |queue| {
        queue.drain(Budget::UNLIMITED).found()
    });
    (handled, work)
}
