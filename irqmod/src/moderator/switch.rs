// SPDX-License-Identifier: GPL-2.0

//! Another choice for a line that is requested.

use super::Moderator;
use crate::{
    platform::Platform,
    policy::Choice,
    source::Source,
    state::Snapshot, //
};

/// The device can't be reached, so nothing may be unmasked: the choice is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable;

impl Moderator {
    /// Chooses anew for a moderated line that is requested. Task, serialised as a pause is.
    ///
    /// `apply` makes the platform follow a choice; it runs while the line is paused. A line that was
    /// paused before stays so, and the choice is in force when it is resumed.
    ///
    /// # Errors
    ///
    /// [`Unreachable`]: the former choice is kept, so that nobody takes for done what is not in force.
    /// If the device went in the middle, the line stays paused: what recovers the device opens it.
    pub fn switch<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        choice: Choice,
        apply: impl Fn(Choice),
    ) -> Result<(), Unreachable> {
        let choose = |choice| {
            self.set_choice(choice);
            apply(choice);
        };
        if self.is_paused() {
            choose(choice);
            return Ok(());
        }
        if !source.reachable() {
            return Err(Unreachable);
        }
        let former = self.choice();
        self.pause(source, platform);
        choose(choice);
        self.resume(source, platform);
        if self.is_paused() {
            choose(former);
            return Err(Unreachable);
        }
        Ok(())
    }

    fn is_paused(&self) -> bool {
        self.snapshot().contains(Snapshot::PAUSED)
    }
}
