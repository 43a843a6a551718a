// SPDX-License-Identifier: GPL-2.0

//! The kernel as a [`Platform`]: ties the primitives of one line together.

use kernel::prelude::*;

use super::{
    context,
    irq_poll::Poller,
    lock::CqLock,
    mask::Vector,
    thread::Manners, //
};
use crate::{
    observation::Glance,
    platform::{
        MaskToken,
        Platform,
        PollEnd,
        PollPass, //
    },
    policy::{
        Cpu,
        Mask, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::Deferral, //
};

/// What one line has of the kernel.
#[pin_data]
pub(super) struct LinePlatform {
    pub(super) vector: Vector,
    pub(super) manners: Manners,
    #[pin]
    pub(super) poller: Poller,
    #[pin]
    lock: CqLock,
}

impl LinePlatform {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            vector: Vector::new(),
            manners: Manners::new(),
            poller <- Poller::new(),
            lock <- CqLock::new(),
        })
    }
}

impl Platform for LinePlatform {
    fn mask(&self, how: Mask) -> MaskToken {
        self.vector.mask(how)
    }

    fn mask_sync(&self) -> MaskToken {
        self.vector.mask_sync()
    }

    fn unmask(&self, token: MaskToken) {
        self.vector.unmask(token);
    }

    fn synchronize(&self) {
        self.vector.synchronize();
    }

    fn defer(&self, to: Deferral) {
        match to {
            // The return value of the handler wakes the thread.
            Deferral::Thread => {}
            _ => self.poller.schedule(),
        }
    }

    fn arm_hold(&self, _: Span) {}

    fn poll_after(&self, _: Span) {
        self.poller.schedule();
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        self.poller.complete();
        pass.completed()
    }

    fn join_deferred(&self) {
        self.poller.disable();
    }

    fn enable_deferred(&self) {
        self.poller.enable();
    }

    #[inline]
    fn glance(&self) -> Glance {
        context::glance()
    }

    fn now(&self) -> Instant {
        context::now()
    }

    fn switches(&self) -> u64 {
        context::switches()
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        f(&mut Cpu::new())
    }

    #[inline]
    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock.with(f)
    }

    fn relax(&self) {
        self.manners.yield_to_tasks();
    }

    fn sleep(&self, span: Span) {
        context::sleep(span);
    }
}
