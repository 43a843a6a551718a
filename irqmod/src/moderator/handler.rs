// SPDX-License-Identifier: GPL-2.0

//! The rest of a handler that is not through with one drain.

use super::{
    Handled,
    Moderator, //
};
use crate::{
    observation::{
        Glance,
        Observation, //
    },
    platform::Platform,
    policy::{
        Cpu,
        Policy, //
    },
    source::{
        DrainRight,
        Source, //
    },
    state::Claim,
    time::Instant,
    verdict::{
        After,
        Verdict, //
    },
    Deferral,
    Drain, //
};

/// One run of a handler that asks its policy.
pub(super) struct Handler<'a, C, S, P> {
    pub(super) moderator: &'a Moderator,
    pub(super) policy: C,
    pub(super) source: &'a S,
    pub(super) platform: &'a P,
    pub(super) glance: Glance,
    /// When the policy last looked at the clock; zero if it has not.
    pub(super) began: Instant,
}

impl<C: Policy, S: Source, P: Platform> Handler<'_, C, S, P> {
    /// The policy did not say at once to drain.
    #[inline(never)]
    pub(super) fn decide(mut self, verdict: Option<Verdict>) -> Handled {
        let verdict = verdict.unwrap_or_else(|| {
            self.weigh(|policy, seen, line, cpu| policy.weigh_interrupt(seen, line, cpu))
        });
        match verdict {
            Verdict::Drain(budget) => {
                let right = &mut DrainRight::new();
                let drain = self.moderator.drain(self.source, right, budget);
                let after = self.policy.on_drained(self.glance, drain);
                self.finish(after, drain)
            }
            Verdict::Defer(to) => self.defer(to),
        }
    }

    /// The first drain is done.
    #[inline(never)]
    pub(super) fn finish(mut self, after: Option<After>, drain: Drain) -> Handled {
        match (self.weighed(after, drain), drain) {
            (After::Open, Drain::Drained(_)) => self.moderator.drained(drain),
            (after, _) => self.go_on(after, drain),
        }
    }

    fn weighed(&mut self, after: Option<After>, drain: Drain) -> After {
        after.unwrap_or_else(|| {
            self.weigh(|policy, seen, line, cpu| policy.weigh_drained(seen, drain, line, cpu))
        })
    }

    /// The handler is not finished with one drain that emptied the queue.
    #[cold]
    fn go_on(&mut self, mut after: After, first: Drain) -> Handled {
        let (mut drain, mut found) = (first, first.found());
        loop {
            let to = match (after, drain) {
                (After::Again(budget), _) => {
                    drain = self
                        .moderator
                        .drain(self.source, &mut DrainRight::new(), budget);
                    found = found.saturating_add(drain.found());
                    let said = self.policy.on_drained(self.glance, drain);
                    after = self.weighed(said, drain);
                    continue;
                }
                (After::Open, Drain::Drained(_)) => {
                    return self.moderator.drained(Drain::Drained(found));
                }
                (After::Open, Drain::More(_)) => Deferral::Softirq,
                (After::Defer(to), _) => to,
                (After::HoldFor(span), _) => {
                    self.platform.arm_hold(span);
                    Deferral::Hold
                }
            };
            return self.leave_to(to, found);
        }
    }

    /// Defers what may be left. Refused while a pause is about to join this handler: then it is
    /// looked at when the source is resumed, or reaped.
    fn leave_to(&self, to: Deferral, found: u32) -> Handled {
        match (self.moderator.claim(self.source, self.platform, to), to) {
            (Claim::Won, Deferral::Thread) => Handled::WakeThread,
            (Claim::Won, _) => Handled::Handled,
            (Claim::Owned | Claim::Refused, _) => self.moderator.drained(Drain::More(found)),
        }
    }

    /// Masks and defers if there is something to do; drains if the source can't be taken.
    #[inline]
    fn defer(&mut self, to: Deferral) -> Handled {
        if !self.source.pending() {
            self.moderator.stats.on_empty();
            return Handled::None;
        }
        match (self.moderator.claim(self.source, self.platform, to), to) {
            (Claim::Won, Deferral::Thread) => Handled::WakeThread,
            (Claim::Won, _) => Handled::Handled,
            (Claim::Owned, _) => {
                self.moderator.stats.on_absorbed();
                Handled::Handled
            }
            (Claim::Refused, _) => self.moderator.drained(self.moderator.drain(
                self.source,
                &mut DrainRight::new(),
                self.policy.budget(),
            )),
        }
    }

    /// Asks the policy with a closer look.
    fn weigh<R>(&mut self, ask: impl FnOnce(&C, &Observation, &mut C::Line, &mut Cpu) -> R) -> R {
        let now = self.platform.now();
        let began = if self.began == Instant::ZERO {
            now
        } else {
            self.began
        };
        self.began = now;
        let seen = Observation {
            glance: self.glance,
            began,
            now,
            switches: self.platform.switches(),
            in_flight: self.source.in_flight(),
        };
        let policy = &self.policy;
        self.moderator
            .with_memory::<C, _>(|line| self.platform.on_cpu(|cpu| ask(policy, &seen, line, cpu)))
    }
}
