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
    platform::{
        MaskToken,
        Platform,
        PollEnd,
        PollPass, //
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
    fn mask(&self) -> MaskToken {
        self.vector.mask()
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
            Deferral::Softirq => self.poller.schedule(),
            // The return value of the handler wakes the thread.
            Deferral::Thread => {}
        }
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        self.poller.complete();
        pass.completed()
    }

    fn join_poller(&self) {
        self.poller.disable();
    }

    fn enable_poller(&self) {
        self.poller.enable();
    }

    #[inline]
    fn need_resched(&self) -> bool {
        context::need_resched()
    }

    #[inline]
    fn in_hardirq(&self) -> bool {
        context::in_hardirq()
    }

    #[inline]
    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock.with(f)
    }

    fn relax(&self) {
        self.manners.yield_to_tasks();
    }
}
