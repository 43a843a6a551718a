// SPDX-License-Identifier: GPL-2.0

//! Another policy for a line that is in use.
//!
//! | the line is                     | what happens                                               |
//! |---------------------------------|------------------------------------------------------------|
//! | not requested                   | the next request uses it                                   |
//! | running                         | pause, choose, resume                                      |
//! | running, needs (no) thread now  | stop, free, choose, request, look                          |
//! | paused                          | choose; resume makes use of it                             |
//! | paused, needs (no) thread then  | resume does the above; [`Line::request`] forgets it        |
//! | requested plainly               | refused: there is no policy                                |
//! | unreachable                     | refused: nothing may be unmasked                           |
//!
//! A completion that is posted in between has no interrupt of its own: pause and resume keep it, or
//! look; and after a request somebody looks as well.

use kernel::{
    bindings,
    prelude::*, //
};

use super::{
    debugfs::{
        Shown,
        Watched, //
    },
    line::{
        Line,
        Request, //
    },
    mask::Vector, //
};
use crate::{
    moderator::Moderator,
    policy::{
        Choice,
        Config, //
    },
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
    /// unreachable. What a request may fail with, if the interrupt has to be requested anew: the
    /// line has its old policy then, or [`Config::HARDIRQ`] if that fails too.
    pub fn set_policy(&self, choice: impl Into<Choice>) -> Result {
        let choice = choice.into();
        self.provide_for(&choice)?;
        let mut lifecycle = self.lifecycle.lock();
        let Some(request) = &mut *lifecycle else {
            self.moderator.set_choice(choice);
            return Ok(());
        };
        if !request.is_moderated() {
            return Err(EOPNOTSUPP);
        }
        if self.is_paused() {
            self.choose_paused(request, choice);
            return Ok(());
        }
        if !self.source.reachable() {
            return Err(EAGAIN);
        }
        self.switch(request, choice)
    }

    fn is_paused(&self) -> bool {
        self.moderator.snapshot().contains(Snapshot::PAUSED)
    }

    /// Whether the line, as it was requested, has the thread that `choice` needs, or none.
    fn has_thread_for(&self, choice: &Choice) -> bool {
        self.moderator.choice().policy.wants_thread() == choice.policy.wants_thread()
    }

    /// Everything was joined, but the line can't be freed behind the back of who paused it.
    fn choose_paused(&self, request: &mut Request, choice: Choice) {
        if self.has_thread_for(&choice) {
            request.next = None;
            self.choose(choice);
        } else {
            request.next = Some(choice);
        }
    }

    /// Chooses for a line whose handler, thread and deferred contexts were joined.
    fn choose(&self, choice: Choice) {
        self.moderator.set_choice(choice);
        // SAFETY: The poller was joined.
        unsafe { self.platform.poller.set_weight(choice.policy.budget()) };
    }

    /// A line was resumed: makes up for a choice that had to wait.
    pub(super) fn catch_up(&self, request: &mut Request) {
        if request.next.is_none() || self.is_paused() {
            return;
        }
        let Some(choice) = request.next.take() else {
            return;
        };
        if let Err(error) = self.switch(request, choice) {
            pr_err!(
                "{}: {} failed: {:?}\n",
                &*request.name,
                Shown(&choice),
                error
            );
        }
    }

    /// Switches a line that is running.
    fn switch(&self, request: &mut Request, choice: Choice) -> Result {
        if !self.has_thread_for(&choice) {
            return self.request_again(request, choice);
        }
        self.moderator.pause(&self.source, &self.platform);
        self.choose(choice);
        self.moderator.resume(&self.source, &self.platform);
        Ok(())
    }

    /// Frees the interrupt and requests it with another policy, or else with the old one, or else
    /// with the one that needs nothing.
    fn request_again(&self, request: &mut Request, choice: Choice) -> Result {
        let old = self.moderator.choice();
        self.moderator.stop(&self.source, &self.platform);
        // SAFETY: The handler is registered for this number and cookie, as the line is moderated.
        unsafe { bindings::free_irq(request.irq, self.as_cookie()) };
        request.registered = false;
        let result = self.register_moderated(request, choice);
        if result.is_err() {
            let spare = [old, Config::HARDIRQ.into()];
            let is_back = |choice| self.register_moderated(request, choice).is_ok();
            if !spare.into_iter().any(is_back) {
                pr_err!("{}: lost its interrupt: {:?}\n", &*request.name, result);
            }
        }
        result
    }

    /// Requests the interrupt of `request`, which is free, and looks at the queue.
    fn register_moderated(&self, request: &mut Request, choice: Choice) -> Result {
        self.moderator.set_choice(choice);
        self.prepare(request.irq);
        // SAFETY: The line was requested with this number and name, which both last until it is
        // freed.
        unsafe { self.register(request.irq, 0, &request.name, true) }?;
        // INVARIANT: Just registered.
        request.registered = true;
        self.moderator.start();
        // Ends with a look.
        self.moderator
            .exclusive(&self.source, &self.platform, |_, _| ());
        Ok(())
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
}
