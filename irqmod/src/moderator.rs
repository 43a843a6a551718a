// SPDX-License-Identifier: GPL-2.0

//! The protocol: the only control flow.
//!
//! # The fast path
//!
//! With the policy `hardirq`, and with every policy that decides to drain in the handler, a normal
//! interrupt loads the state word and the policy once and drains: no lock, no atomic
//! read-modify-write, no clock. That is sound because nobody else can begin to drain in the meantime:
//!
//! - the handler itself is not reentrant for one line ([`Platform`] promises it);
//! - poller and thread drain only what a handler claimed, and the handler that would have to claim
//!   is the one that is draining;
//! - the look after an unmask takes the source only while no handler has begun since
//!   ([`crate::state`], rule 4);
//! - tasks ([`Moderator::exclusive`]) mask the line and wait for the handler first;
//! - a pause sets its bit and waits for the handler first.
//!
//! # The way out
//!
//! Poller and thread give a source back under the queue lock, in this order: complete the poller,
//! release the source, unmask, look once. A completion that came between the last drain and the
//! unmask has an interrupt kept for it, or is seen by that look. A look that takes the source again
//! does not mask; the handler does, if an interrupt comes. Because all of it is under the
//! lock, a pause that has joined the poller and then takes the lock has joined the whole way out,
//! also of a poller that was completed early.

use crate::{
    observation::Observation,
    platform::{
        MaskToken,
        Platform,
        PollEnd,
        PollPass, //
    },
    policy::Config,
    source::{
        DrainRight,
        Source, //
    },
    state::{
        Claim,
        Deposit,
        Disown,
        Entry,
        HandBack,
        Pause,
        Reclaim,
        Reopen,
        Reset,
        Resume,
        Snapshot,
        State,
        Stop,
        Withdraw, //
    },
    stats::Stats,
    sync::{
        Atomic,
        Full,
        Relaxed, //
    },
    verdict::Verdict,
    Budget,
    Deferral,
    Drain, //
};

/// The answer to an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the interrupt core waits for an answer"]
pub enum Handled {
    /// Not for us: nothing was found.
    None,
    /// Dealt with, or left to the owner of the source.
    Handled,
    /// Dealt with: the interrupt thread is to be woken.
    WakeThread,
}

/// What the handler does with an interrupt of a source that is not simply open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absorb {
    Yes,
    No,
    /// The source was given back in the meantime.
    LookAgain,
}

/// What the thread does after one drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadPass {
    Again,
    Done,
}

/// Decides who drains one source, and when.
///
/// What the handler does with every interrupt is `inline(always)`: left to the compiler, calls and
/// spills along the way cost 3 % of the instructions of one request at a time.
///
/// Owned by the line beside the source. Each method takes the same source and the same platform.
/// [`pause`](Self::pause), [`resume`](Self::resume), [`stop`](Self::stop),
/// [`prepare`](Self::prepare) and [`start`](Self::start) are called from task context and
/// serialised by the caller, with a lock that may be held while sleeping.
pub struct Moderator {
    state: State,
    config: Atomic<u32>,
    /// Tasks in [`exclusive`](Self::exclusive), waiting or draining.
    guests: Atomic<u32>,
    stats: Stats,
}

static_assertions::assert_impl_all!(Moderator: Send, Sync);

impl Moderator {
    /// A moderator for a line that is not requested yet.
    pub fn new(config: Config) -> Self {
        Self {
            state: State::new(Snapshot::empty()),
            config: Atomic::new(config.pack()),
            guests: Atomic::new(0),
            stats: Stats::new(),
        }
    }

    /// The policy. Any context.
    #[inline]
    pub fn config(&self) -> Config {
        Config::unpack(self.config.load(Relaxed))
    }

    /// Chooses another policy. The line must not be requested.
    pub fn set_config(&self, config: Config) {
        self.config.store(config.pack(), Relaxed);
    }

    /// The state word as it is now. Any context.
    pub fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// The counters. Any context.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The line is about to be requested: nothing that an earlier use left behind survives.
    ///
    /// From here to [`start`](Self::start), and for ever on a line that is not dedicated, the
    /// handler drains and nothing is deferred.
    pub fn prepare(&self) {
        match self.state.transition_to_reset() {
            Reset::Clean => (),
            // The line was freed while its device was unreachable. Its depth ended with it.
            Reset::Forfeited(token) => token.redeem(),
        }
    }

    /// The line was requested, is a dedicated vector, and its poller is set up: moderate it.
    pub fn start(&self) {
        self.state.transition_to_open();
    }

    /// An interrupt. Hardirq, or a forced interrupt thread, or a replay.
    #[inline(always)]
    pub fn on_interrupt<S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        self.stats.on_interrupt();
        let now = loop {
            let now = match self.state.transition_to_entered() {
                Entry::Plain(now) => now,
                Entry::AfterUnmask(_) if !source.pending() => {
                    self.stats.on_forgiven();
                    return Handled::Handled;
                }
                Entry::AfterUnmask(now) => now,
            };
            if now.is_normal() {
                break now;
            }
            match self.absorb(now, source, platform) {
                Absorb::Yes => {
                    self.stats.on_absorbed();
                    return Handled::Handled;
                }
                Absorb::No => break now,
                Absorb::LookAgain => (),
            }
        };
        if !now.contains(Snapshot::INIT) {
            return self.drain_in_handler(source, platform, Budget::UNLIMITED);
        }
        match self.verdict(platform) {
            Verdict::Drain(budget) => self.drain_in_handler(source, platform, budget),
            Verdict::Defer(to) => self.defer_from_handler(source, platform, to),
        }
    }

    /// Whether the interrupt is to be left alone: the source is someone else's, or shut.
    ///
    /// The look after an unmask takes a source without masking the line, because nobody but the
    /// handler can mask without waiting and be sure that no handler is about to begin. The first
    /// interrupt that comes masks it.
    #[cold]
    fn absorb<S: Source, P: Platform>(&self, now: Snapshot, source: &S, platform: &P) -> Absorb {
        if now.is_owned() && !now.contains(Snapshot::MASKED) {
            return match self.state.transition_to_masked_late(platform.mask()) {
                Deposit::Stored => Absorb::Yes,
                Deposit::Surplus(token) => {
                    platform.unmask(token);
                    Absorb::LookAgain
                }
            };
        }
        let unreachable = now.contains(Snapshot::PAUSED) && !source.reachable();
        if now.is_owned() || now.is_shut() || unreachable {
            Absorb::Yes
        } else {
            Absorb::No
        }
    }

    /// Asks the policy; gathers only what it wants to see.
    #[inline(always)]
    fn verdict<P: Platform>(&self, platform: &P) -> Verdict {
        let config = self.config();
        let observation = if config.observes() {
            Observation {
                in_hardirq: platform.in_hardirq(),
                need_resched: platform.need_resched(),
            }
        } else {
            Observation::default()
        };
        config.on_interrupt(&observation)
    }

    /// Drains as much as the budget allows; what is left goes to the poller.
    #[inline(always)]
    fn drain_in_handler<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        budget: Budget,
    ) -> Handled {
        match self.drain(source, &mut DrainRight::new(), budget) {
            Drain::Drained(0) => {
                self.stats.on_empty();
                Handled::None
            }
            Drain::Drained(_) => Handled::Handled,
            Drain::More(_) => {
                // Refused while a pause is about to join this handler: what is left is looked at
                // when the source is resumed, or reaped.
                let _ = self.claim(source, platform, Deferral::Softirq);
                Handled::Handled
            }
        }
    }

    /// Masks and defers if there is something to do; drains if the source can't be taken.
    fn defer_from_handler<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        to: Deferral,
    ) -> Handled {
        if !source.pending() {
            self.stats.on_empty();
            return Handled::None;
        }
        match (self.claim(source, platform, to), to) {
            (Claim::Won, Deferral::Softirq) => Handled::Handled,
            (Claim::Won, Deferral::Thread) => Handled::WakeThread,
            (Claim::Owned, _) => {
                self.stats.on_absorbed();
                Handled::Handled
            }
            (Claim::Refused, _) => self.drain_in_handler(source, platform, self.config().budget()),
        }
    }

    /// Takes the source away from the handler: owned, masked and scheduled, in this order.
    fn claim<S: Source, P: Platform>(&self, source: &S, platform: &P, to: Deferral) -> Claim {
        if !source.reachable() {
            return Claim::Refused;
        }
        let claim = self.state.transition_to_claimed();
        if claim == Claim::Won {
            self.keep(platform, platform.mask());
            self.schedule(platform, to);
        }
        claim
    }

    /// The source was just taken: schedules the one who drains.
    fn schedule<P: Platform>(&self, platform: &P, to: Deferral) {
        self.stats.on_deferral();
        if to == Deferral::Softirq {
            platform.defer(to);
        }
    }

    /// Deposits a token; one too many ends its disable, under the other one.
    fn keep<P: Platform>(&self, platform: &P, token: MaskToken) {
        match self.state.transition_to_masked(token) {
            Deposit::Stored => (),
            Deposit::Surplus(token) => platform.unmask(token),
        }
    }

    /// Drains and counts.
    #[inline(always)]
    fn drain<S: Source>(&self, source: &S, right: &mut DrainRight<'_>, budget: Budget) -> Drain {
        let drain = source.drain(right, budget);
        self.stats.on_drain(drain.found());
        drain
    }

    /// One call of the poller. Softirq.
    pub fn on_poll<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        pass: PollPass,
    ) -> PollEnd {
        platform.locked(|| {
            if !self.may_drain(source) {
                return platform.complete_poller(pass);
            }
            self.stats.on_poll();
            match self.drain(source, &mut DrainRight::new(), pass.budget()) {
                Drain::More(_) => pass.stay(),
                Drain::Drained(found) => {
                    let end = platform.complete_poller(pass.with_found(found));
                    let _ = self.hand_back(source, platform, Deferral::Softirq);
                    end
                }
            }
        })
    }

    /// The interrupt thread was woken. Thread.
    pub fn on_thread<S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        while platform.locked(|| self.thread_pass(source, platform)) == ThreadPass::Again {
            platform.relax();
        }
        Handled::Handled
    }

    /// One drain of the thread. Under the lock.
    fn thread_pass<S: Source, P: Platform>(&self, source: &S, platform: &P) -> ThreadPass {
        if !self.may_drain(source) {
            return ThreadPass::Done;
        }
        self.stats.on_poll();
        let drain = self.drain(source, &mut DrainRight::new(), self.config().budget());
        if self.guests.load(Relaxed) != 0 {
            // A task waits for this thread, which a storm may never let end by itself. What is left
            // the task will see when it looks at the end, which is still to come: it needs the lock
            // for that.
            self.release(source, platform);
            return ThreadPass::Done;
        }
        match drain {
            Drain::More(_) => ThreadPass::Again,
            Drain::Drained(_) => match self.hand_back(source, platform, Deferral::Thread) {
                Reclaim::Won => ThreadPass::Again,
                Reclaim::Lost => ThreadPass::Done,
            },
        }
    }

    /// Whether the owner of the source may go on. Under the lock, so a source that is owned stays
    /// owned.
    fn may_drain<S: Source>(&self, source: &S) -> bool {
        let now = self.state.snapshot();
        now.is_owned() && !now.contains(Snapshot::PAUSED) && source.reachable()
    }

    /// Gives the source back to the handler, and looks once. Under the lock.
    fn hand_back<S: Source, P: Platform>(&self, source: &S, platform: &P, to: Deferral) -> Reclaim {
        if self.release(source, platform) {
            self.look_again(source, platform, to)
        } else {
            Reclaim::Lost
        }
    }

    /// Releases the source and unmasks, in this order, unless the mask is to be kept. Under the
    /// lock.
    fn release<S: Source, P: Platform>(&self, source: &S, platform: &P) -> bool {
        if !source.reachable() {
            return false;
        }
        match self.state.transition_to_handed_back() {
            HandBack::Released(token) => {
                if let Some(token) = token {
                    platform.unmask(token);
                }
                true
            }
            HandBack::Refused => false,
        }
    }

    /// The look after an unmask: takes the source again if a completion waits and no handler has
    /// begun since. Under the lock.
    fn look_again<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        to: Deferral,
    ) -> Reclaim {
        if !source.pending() {
            return Reclaim::Lost;
        }
        let reclaim = self.state.transition_to_reclaimed();
        if reclaim == Reclaim::Won {
            self.schedule(platform, to);
        }
        reclaim
    }

    /// Joins handler, thread and poller, and masks the line. Idempotent. Task.
    ///
    /// Until [`resume`](Self::resume) nothing drains the source but [`exclusive`](Self::exclusive).
    /// A line that is not dedicated is only joined, and then takes no interrupts until it is
    /// requested again.
    pub fn pause<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        match self.state.transition_to_paused() {
            Pause::Already => (),
            Pause::Plain => self.join_handler(platform),
            Pause::Dedicated => self.quiesce(source, platform),
        }
    }

    /// Waits for the handler, and for a task that drains.
    fn join_handler<P: Platform>(&self, platform: &P) {
        self.stats.on_pause();
        platform.synchronize();
        platform.locked(|| ());
    }

    /// The common half of pause and stop of a dedicated line.
    fn quiesce<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        self.stats.on_pause();
        platform.synchronize();
        // If the callback keeps returning its weight, the core completes the instance here without
        // telling it: what it owned is taken over below.
        platform.join_poller();
        let disowned = platform.locked(|| self.state.transition_to_disowned());
        if disowned == Disown::Unmasked && source.reachable() {
            self.keep(platform, platform.mask_sync());
        }
    }

    /// Ends a pause. Idempotent; does nothing while the device is unreachable, or once stopped.
    /// Task.
    pub fn resume<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        if !source.reachable() {
            return;
        }
        let token = loop {
            match self.state.transition_to_resuming() {
                Resume::Unmask(token) => break token,
                Resume::NotMasked => self.keep(platform, platform.mask_sync()),
                Resume::Refused => return,
            }
        };
        platform.enable_poller();
        let left = self.state.transition_to_running();
        platform.locked(|| {
            if let Withdraw::Token(left) = left {
                platform.unmask(left);
            }
            platform.unmask(token);
            let _ = self.look_again(source, platform, Deferral::Softirq);
        });
    }

    /// Pauses for good and gives the mask back, before the line is freed. Idempotent. Task.
    ///
    /// While the device is unreachable the mask is kept: freeing the line ends it.
    pub fn stop<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        match self.state.transition_to_stopped() {
            Stop::Already => return,
            Stop::Plain => return self.join_handler(platform),
            Stop::Dedicated => self.quiesce(source, platform),
            Stop::DedicatedPaused => (),
        }
        platform.enable_poller();
        if !source.reachable() {
            return;
        }
        match self.state.transition_to_unmasked() {
            Withdraw::Token(token) => {
                // A replay is absorbed: the source is paused for good.
                platform.unmask(token);
                platform.synchronize();
            }
            Withdraw::Empty => (),
        }
    }

    /// Runs `f` as the only one who drains: the line is masked, handler and thread are joined, the
    /// queue lock is held. In every state, also on a line that is not requested. Task.
    pub fn exclusive<S: Source, P: Platform, R>(
        &self,
        source: &S,
        platform: &P,
        f: impl FnOnce(&S, &mut DrainRight<'_>) -> R,
    ) -> R {
        self.guests.fetch_add(1, Full);
        let token = platform.mask_sync();
        platform.locked(|| {
            let result = f(source, &mut DrainRight::new());
            self.end_exclusive(source, platform, token);
            self.guests.fetch_sub(1, Full);
            result
        })
    }

    /// Unmasks after [`exclusive`](Self::exclusive), unless the mask is to be kept. Under the lock.
    fn end_exclusive<S: Source, P: Platform>(&self, source: &S, platform: &P, token: MaskToken) {
        let token = if source.reachable() {
            token
        } else {
            match self.keep_unreachable(source, token) {
                Some(token) => token,
                None => return,
            }
        };
        let reopened = self.state.transition_to_reopened();
        platform.unmask(token);
        if reopened == Reopen::Done {
            let _ = self.look_again(source, platform, Deferral::Softirq);
        }
    }

    /// Leaves the mask to the resume that follows the recovery of the device. Returns a token if
    /// there is none to leave it to.
    fn keep_unreachable<S: Source>(&self, source: &S, token: MaskToken) -> Option<MaskToken> {
        match self.state.transition_to_kept(token) {
            Deposit::Surplus(token) => Some(token),
            // The device may have recovered, and been resumed, before the token was there.
            Deposit::Stored if source.reachable() => match self.state.transition_to_taken_back() {
                Withdraw::Token(token) => Some(token),
                Withdraw::Empty => None,
            },
            Deposit::Stored => None,
        }
    }
}
