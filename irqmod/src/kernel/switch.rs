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
//! | unreachable from the pause on   | as before, refused; stays paused until it is recovered     |
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
    moderator::{
        Moderator,
        Unreachable, //
    },
    policy::Choice,
    source::Source, //
};

impl<S: Source> Line<S> {
    /// Chooses another policy, also for a line in use, and without losing a completion. May sleep.
    ///
    /// On a paused line it takes effect when the line is resumed.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a line that was requested plainly, `EAGAIN` if the device is, or becomes,
    /// unreachable, `ENOMEM` if the policy needs more than there is. The policy is as it was. A device
    /// that becomes unreachable leaves the line paused, until the driver resumes it or requests it anew.
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
        // SAFETY: Requested, and paused, which has joined them.
        let follow = |choice| unsafe { self.follow(choice) };
        self.moderator
            .switch(&self.source, &self.platform, choice, follow)
            .map_err(|Unreachable| EAGAIN)
    }

    /// Makes the platform follow the choice for a line that is paused.
    ///
    /// # Safety
    ///
    /// The line is requested, and its handler, thread and deferred contexts were joined.
    unsafe fn follow(&self, choice: Choice) {
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
