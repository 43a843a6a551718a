// SPDX-License-Identifier: GPL-2.0

//! The rest of a handler that is not through with one drain.

use super::{
    Handled,
    Moderator, //
};
use crate::{
    observation::{
        Glance,
        Looks,
        Observation, //
    },
    platform::Platform,
    policy::{
        Cpu,
        Memory as _,
        Policy, //
    },
    source::Source,
    state::Claim,
    time::Instant,
    verdict::{
        After,
        Verdict, //
    },
    watch::Context,
    Budget,
    Deferral,
    Drain, //
};

/// One run of a handler that asks its policy.
pub(super) struct Handler<'a, C, S, P> {
    moderator: &'a Moderator,
    policy: C,
    source: &'a S,
    platform: &'a P,
    glance: Glance,
    /// When the policy last looked at the clock; zero if it has not.
    began: Instant,
    /// Completions so far.
    found: u32,
    /// Whether the source was deferred, and so may be someone else's by now.
    acted: bool,
}

impl<'a, C: Policy, S: Source, P: Platform> Handler<'a, C, S, P> {
    #[inline(always)]
    pub(super) fn new(
        moderator: &'a Moderator,
        policy: C,
        source: &'a S,
        platform: &'a P,
        glance: Glance,
    ) -> Self {
        Self {
            moderator,
            policy,
            source,
            platform,
            glance,
            began: Instant::ZERO,
            found: 0,
            acted: false,
        }
    }

    /// All of a handler, and counts.
    pub(super) fn run_watched(&mut self) -> Handled {
        let began = self.platform.now();
        let line = C::Line::from_words(self.moderator.memory.load());
        let cpu = self.platform.on_cpu(|cpu| *cpu);
        let handled = self.run();
        let context = if self.glance.contains(Glance::HARDIRQ) {
            Context::Hardirq
        } else {
            Context::Forced
        };
        self.moderator
            .on_invocation(self.platform, context, began, self.found, self.glance);
        if self.acted {
            self.moderator.watch.on_acted();
        } else {
            self.explain(began, &line, &cpu);
        }
        handled
    }

    /// As [`Moderator::handle`], which nobody wants to slow down.
    fn run(&mut self) -> Handled {
        let Some(budget) = C::LIGHT.filter(|_| self.glance.is_free()) else {
            return self.decide(self.policy.on_interrupt(self.glance));
        };
        let drain = self.drain(budget);
        let after = match drain {
            Drain::Drained(_) => Some(After::Open),
            Drain::More(_) => None,
        };
        self.finish(after, drain)
    }

    /// Counts why the line was left open.
    fn explain(&self, began: Instant, line: &C::Line, cpu: &Cpu) {
        let seen = self.observe(Looks::all(), began, self.platform.now());
        let watch = &self.moderator.watch;
        self.policy
            .why(&seen, self.found, line, cpu, &mut |reason| {
                watch.on_reason(reason);
            });
    }

    /// A closer look than the glance.
    #[inline(always)]
    fn observe(&self, looks: Looks, began: Instant, now: Instant) -> Observation {
        let mut seen = Observation {
            glance: self.glance,
            began,
            now,
            ..Observation::default()
        };
        if looks.contains(Looks::SWITCHES) {
            seen.switches = self.platform.switches();
        }
        if looks.contains(Looks::IN_FLIGHT) {
            seen.in_flight = self.source.in_flight();
        }
        seen
    }

    fn drain(&self, budget: Budget) -> Drain {
        self.moderator.drain(self.source, budget)
    }

    /// The policy did not say at once to drain.
    #[inline(never)]
    pub(super) fn decide(&mut self, verdict: Option<Verdict>) -> Handled {
        let verdict = verdict.unwrap_or_else(|| {
            self.weigh(Drain::Drained(0), |policy, seen, line, cpu| {
                policy.weigh_interrupt(seen, line, cpu)
            })
        });
        match verdict {
            Verdict::Drain(budget) => {
                let drain = self.drain(budget);
                let after = self.policy.on_drained(self.glance, drain);
                self.finish(after, drain)
            }
            Verdict::Defer(to) => self.defer(to),
        }
    }

    /// The first drain is done.
    #[inline(never)]
    pub(super) fn finish(&mut self, after: Option<After>, drain: Drain) -> Handled {
        self.found = drain.found();
        match (self.weighed(after, drain), drain) {
            (After::Open, Drain::Drained(_)) => self.moderator.drained(self.platform, drain),
            (after, _) => self.go_on(after, drain),
        }
    }

    fn weighed(&mut self, after: Option<After>, drain: Drain) -> After {
        after.unwrap_or_else(|| {
            self.weigh(drain, |policy, seen, line, cpu| {
                policy.weigh_drained(seen, drain, line, cpu)
            })
        })
    }

    /// The handler is not finished with one drain that emptied the queue.
    #[cold]
    fn go_on(&mut self, mut after: After, first: Drain) -> Handled {
        let mut drain = first;
        loop {
            let to = match (after, drain) {
                (After::Again(budget), _) => {
                    drain = self.drain(budget);
                    self.found = self.found.saturating_add(drain.found());
                    let said = self.policy.on_drained(self.glance, drain);
                    after = self.weighed(said, drain);
                    continue;
                }
                (After::Open, Drain::Drained(_)) => {
                    return self
                        .moderator
                        .drained(self.platform, Drain::Drained(self.found));
                }
                (After::Open, Drain::More(_)) => Deferral::Softirq,
                (After::Defer(to), _) => to,
                (After::HoldFor(span), _) => {
                    self.platform.arm_hold(span);
                    Deferral::Hold
                }
            };
            return self.leave_to(to);
        }
    }

    /// Defers what may be left. Refused while a pause is about to join this handler: then it is
    /// looked at when the source is resumed, or reaped.
    fn leave_to(&mut self, to: Deferral) -> Handled {
        match self.claim(to) {
            Claim::Won => handled(to),
            Claim::Owned | Claim::Refused => self
                .moderator
                .drained(self.platform, Drain::More(self.found)),
        }
    }

    fn claim(&mut self, to: Deferral) -> Claim {
        let (source, platform) = (self.source, self.platform);
        let claim = self.moderator.claim(source, platform, to, self.found);
        self.acted = claim == Claim::Won;
        claim
    }

    /// Masks and defers if there is something to do; drains if the source can't be taken.
    #[inline]
    fn defer(&mut self, to: Deferral) -> Handled {
        if !self.source.pending() {
            return self.moderator.empty(self.platform);
        }
        match self.claim(to) {
            Claim::Won => handled(to),
            Claim::Owned => {
                self.moderator.stats.on_absorbed();
                Handled::Handled
            }
            Claim::Refused => {
                let drain = self.drain(self.policy.budget());
                self.found = drain.found();
                self.moderator.drained(self.platform, drain)
            }
        }
    }

    /// Asks the policy with a closer look, after this drain.
    fn weigh<R>(
        &mut self,
        drain: Drain,
        ask: impl FnOnce(&C, &Observation, &mut C::Line, &mut Cpu) -> R,
    ) -> R {
        self.moderator.with_memory::<C, _>(|line| {
            let looks = self.policy.looks(line, drain);
            let mut now = Instant::ZERO;
            if looks.contains(Looks::CLOCK) {
                now = self.platform.now();
            }
            let began = if self.began == Instant::ZERO {
                now
            } else {
                self.began
            };
            self.began = now;
            let seen = self.observe(looks, began, now);
            if C::OF_CPU {
                self.platform
                    .on_cpu(|cpu| ask(&self.policy, &seen, line, cpu))
            } else {
                ask(&self.policy, &seen, line, &mut Cpu::new())
            }
        })
    }
}

/// The answer for a source that was deferred.
fn handled(to: Deferral) -> Handled {
    match to {
        Deferral::Thread => Handled::WakeThread,
        _ => Handled::Handled,
    }
}
