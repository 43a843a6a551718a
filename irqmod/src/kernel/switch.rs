// SPDX-License-Identifier: GPL-2.0

//! Another policy for a line that is in use.
//!
//! | the line is                     | what happens                                               |
//! |---------------------------------|------------------------------------------------------------|
//! | not requested                   | the next request uses it                                   |
//! | running                         | pause, choose, resume                                      |
//! | paused                          | choose; resume makes use of it                             |
//! | requested plainly               | refused: there is no policy                                |
//! | unreachable                     | refused: nothing may be unmasked                           |
//!
//! A completion that is posted in between has no interrupt of its own: pause and resume keep it, or
//! look.
//!
//! Nothing is allocated while a line is paused, nor with its lock held: memory may have to be written
//! to the line's own device first, and the time-out that would notice takes the lock.

use kernel::prelude::*;

use super::{
    debugfs::Watched,
    line::Line,
    mask::Vector,
    trace, //
};
use crate::{
    moderator::Moderator,
    policy::Choice,
    source::Source,
    state::Snapshot, //
};

impl<S: Source> Line<S> {
    /// Chooses another policy, also for a line in use, and without losing a completion. May sleep.
    ///
    /// On a paused line it takes effect when the line is resumed.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a line that was requested plainly, `EAGAIN` while the device is
    /// unreachable, `ENOMEM` if the policy needs more than there is.
    pub fn set_policy(&self, choice: impl Into<Choice>) -> Result {
        let choice = choice.into();
        self.provide_for(&choice)?;
        let lifecycle = self.lifecycle.lock();
        let Some(request) = &*lifecycle else {
            self.moderator.set_choice(choice);
            return Ok(());
        };
        if !request.moderated {
            return Err(EOPNOTSUPP);
        }
        if self.is_paused() {
            // SAFETY: Requested, and whoever paused the line has joined them.
            unsafe { self.choose(choice) };
            return Ok(());
        }
        if !self.source.reachable() {
            return Err(EAGAIN);
        }
        self.moderator.pause(&self.source, &self.platform);
        // SAFETY: Requested, and joined by the pause.
        unsafe { self.choose(choice) };
        self.moderator.resume(&self.source, &self.platform);
        Ok(())
    }

    fn is_paused(&self) -> bool {
        self.moderator.snapshot().contains(Snapshot::PAUSED)
    }

    /// Chooses for a line that is paused.
    ///
    /// # Safety
    ///
    /// The line is requested, and its handler, thread and deferred contexts were joined.
    unsafe fn choose(&self, choice: Choice) {
        self.moderator.set_choice(choice);
        trace::policy(self.platform.vector.irq(), choice.policy.number());
        // SAFETY: By the contract.
        unsafe { self.platform.poller.set_weight(choice.policy.budget()) };
        let placement = choice.policy.placement();
        // SAFETY: Requested, by the contract.
        unsafe { self.platform.place_thread(placement, self.as_cookie()) };
    }
}

impl<S: Source> Watched for Line<S> {
    fn moderator(&self) -> &Moderator {
        &self.moderator
    }

    fn vector(&self) -> &Vector {
        &self.platform.vector
    }

    fn switch_to(&self, choice: Choice) -> Result {
        self.set_policy(choice)
    }

    fn watch(&self, watched: bool) {
        let _lifecycle = self.lifecycle.lock();
        self.moderator.set_watched(watched);
    }
}
