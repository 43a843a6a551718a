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

mod handler;
mod switch;

pub use switch::Unreachable;

use self::handler::Handler;
use crate::{
    event::Event,
    observation::{
        Glance,
        Observation, //
    },
    platform::{
        MaskToken,
        Platform,
        PollEnd,
        PollPass, //
    },
    policy::{
        fair,
        hardirq,
        resched,
        threaded,
        with_policy,
        Choice,
        Kind,
        Memory as _,
        Policy,
        Values,
        LINE_WORDS, //
    },
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
        Relaxed,
        Words, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::{
        After,
        Next,
        Verdict, //
    },
    watch::{
        Batches,
        Context,
        Reasons,
        Stretch,
        Watch, //
    },
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

/// What a thread does after one drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a source that is not done is not drained unless someone goes on"]
pub enum Pass {
    /// Drain again.
    Again,
    /// Drain again after a while.
    Rest(Span),
    /// The source was given back, or is someone else's.
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
///
/// In this order: what every interrupt looks at is together, and what it does not is behind it.
#[repr(C)]
pub struct Moderator {
    state: State,
    /// The [`Choice`], packed. Changed only while nobody decides: the line is not requested, or
    /// handler, thread and deferred contexts were joined.
    choice: Words<{ Choice::WORDS }>,
    /// Tasks in [`exclusive`](Self::exclusive), waiting or draining.
    guests: Atomic<u32>,
    stats: Stats,
    /// What the policy remembers of the line: accessed by the one who drains, only.
    memory: Words<LINE_WORDS>,
    /// Last: what nobody looks at while nobody watches.
    watch: Watch,
}

static_assertions::assert_impl_all!(Moderator: Send, Sync);

impl Moderator {
    /// A moderator for a line that is not requested yet.
    #[cfg(not(CONFIG_RUST_IRQMOD))]
    pub fn new(choice: impl Into<Choice>) -> Self {
        Self::of_line(choice)
    }

    /// As `new`. In the kernel only a line makes one: a second moderator of the same source would
    /// let its maker drain beside the first.
    pub(crate) fn of_line(choice: impl Into<Choice>) -> Self {
        Self {
            state: State::new(Snapshot::empty()),
            choice: Words::new(choice.into().pack()),
            guests: Atomic::new(0),
            stats: Stats::new(),
            memory: Words::new([0; LINE_WORDS]),
            watch: Watch::new(),
        }
    }

    /// The policy and the way to mask. Any context, not beside [`set_choice`](Self::set_choice).
    pub fn choice(&self) -> Choice {
        Choice::unpack(self.choice.load())
    }

    /// Chooses anew. The line must not be requested, or it must be paused.
    pub fn set_choice(&self, choice: impl Into<Choice>) {
        let mut words = choice.into().pack();
        words[0] = Choice::with_watched(words[0], self.is_watched());
        self.choice.store(words);
        self.memory.store([0; LINE_WORDS]);
        self.watch.forget_reasons();
    }

    /// Whether [`batches`](Self::batches), [`reasons`](Self::reasons) and the CPUs'
    /// [`Totals`](crate::watch::Totals) are counted for this line. Any context.
    pub fn is_watched(&self) -> bool {
        Choice::is_watched(self.chosen())
    }

    /// Begins or ends to count them. Any time, also while the line is in use; the caller serialises it
    /// with itself and with [`set_choice`](Self::set_choice).
    pub fn set_watched(&self, watched: bool) {
        let first = Choice::with_watched(self.chosen(), watched);
        self.choice.set(0, first);
    }

    /// How much the invocations of each context completed while the line was watched. Any context.
    pub fn batches(&self) -> Batches {
        self.watch.batches()
    }

    /// Why the policy left the source to its handler while the line was watched, since it was chosen.
    /// Any context.
    pub fn reasons(&self) -> Reasons {
        self.watch.reasons(self.choice().policy.conditions())
    }

    /// The first word of the packed choice.
    #[inline(always)]
    fn chosen(&self) -> u32 {
        self.choice.word(0)
    }

    /// The policy, which the caller knows to be `C`.
    #[inline(always)]
    fn policy<C: Policy>(&self) -> Result<C, crate::policy::Conflict> {
        let mut values = Values::default();
        for (i, value) in values.iter_mut().enumerate().take(C::KEYS.len()) {
            *value = self.choice.word(1 + i);
        }
        C::from_values(&values)
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
                    self.trace(platform, Event::Empty { forgiven: true });
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
            return self.drain_plainly(source, platform);
        }
        match Choice::dispatch_of(self.chosen()) {
            Kind::HARDIRQ => self.handle::<hardirq::Config, S, P>(source, platform),
            Kind::RESCHED => self.handle::<resched::Config, S, P>(source, platform),
            Kind::THREADED => self.handle::<threaded::Config, S, P>(source, platform),
            Kind::FAIR => self.handle::<fair::Config, S, P>(source, platform),
            _ => self.handle_other(source, platform),
        }
    }

    /// As [`handle`](Self::handle), for policies that don't compete for the last instruction, and for
    /// lines that somebody watches.
    #[inline(never)]
    fn handle_other<S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        let first = self.chosen();
        let kind = Choice::kind_of(first);
        if Choice::is_watched(first) {
            return with_policy!(kind, C => self.handle_watched::<C, S, P>(source, platform));
        }
        with_policy!(kind, C => self.handle::<C, S, P>(source, platform))
    }

    /// As [`handle`](Self::handle), and counts.
    #[inline(never)]
    fn handle_watched<C: Policy, S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
    ) -> Handled {
        let Ok(policy) = self.policy::<C>() else {
            return self.drain_plainly(source, platform);
        };
        Handler::new(self, policy, source, platform, platform.glance()).run_watched()
    }

    /// Whether the interrupt is to be left alone: the source is someone else's, or shut.
    ///
    /// The look after an unmask takes a source without masking the line, because nobody but the
    /// handler can mask without waiting and be sure that no handler is about to begin. The first
    /// interrupt that comes masks it.
    #[cold]
    fn absorb<S: Source, P: Platform>(&self, now: Snapshot, source: &S, platform: &P) -> Absorb {
        if now.is_owned() && !now.contains(Snapshot::MASKED) {
            let how = Choice::mask_of(self.chosen());
            return match self.state.transition_to_masked_late(platform.mask(how)) {
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

    /// See [`Policy::HOME`].
    fn home(&self) -> Option<Deferral> {
        with_policy!(Choice::kind_of(self.chosen()), C => C::HOME)
    }

    /// Asks the policy and does what it says.
    #[inline(always)]
    fn handle<C: Policy, S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        if let Some(budget) = C::LIGHT.filter(|_| platform.is_free()) {
            let drain = self.drain(source, budget);
            return match drain {
                Drain::Drained(_) => self.drained(platform, drain),
                Drain::More(_) => self.not_light::<C, S, P>(source, platform, drain),
            };
        }
        let Ok(policy) = self.policy::<C>() else {
            return self.drain_plainly(source, platform);
        };
        let glance = if C::GLANCES {
            platform.glance()
        } else {
            Glance::empty()
        };
        // The handler's state is made up where it is needed, and not spilled where it is not.
        let handler = || Handler::new(self, policy, source, platform, glance);
        let verdict = policy.on_interrupt(glance);
        let Some(Verdict::Drain(budget)) = verdict else {
            return handler().decide(verdict);
        };
        let drain = self.drain(source, budget);
        let after = policy.on_drained(glance, drain);
        if let (Some(After::Open), Drain::Drained(_)) = (after, drain) {
            return self.drained(platform, drain);
        }
        handler().finish(after, drain)
    }

    /// The queue of a free CPU was not emptied by [`Policy::LIGHT`].
    #[cold]
    fn not_light<C: Policy, S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        drain: Drain,
    ) -> Handled {
        let Ok(policy) = self.policy::<C>() else {
            return self.drain_plainly(source, platform);
        };
        Handler::new(self, policy, source, platform, platform.glance()).finish(None, drain)
    }

    /// Drains until the queue is empty, whatever the policy says.
    #[inline(always)]
    fn drain_plainly<S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        let drain = self.drain(source, Budget::UNLIMITED);
        self.drained(platform, drain)
    }

    /// The answer for a queue that was seen empty.
    #[inline(always)]
    fn drained<P: Platform>(&self, platform: &P, drain: Drain) -> Handled {
        if drain.found() == 0 {
            return self.empty(platform);
        }
        Handled::Handled
    }

    /// The answer if nothing was there.
    #[cold]
    fn empty<P: Platform>(&self, platform: &P) -> Handled {
        self.stats.on_empty();
        self.trace(platform, Event::Empty { forgiven: false });
        Handled::None
    }

    /// Tells tracers of something that is not part of every interrupt.
    #[inline]
    fn trace<P: Platform>(&self, platform: &P, event: Event) {
        platform.trace(Choice::number_of(self.chosen()), event);
    }

    /// Runs `f` with what the policy remembers of the line. The caller drains.
    #[inline]
    fn with_memory<C: Policy, R>(&self, f: impl FnOnce(&mut C::Line) -> R) -> R {
        if C::Line::NONE {
            return f(&mut C::Line::from_words([0; LINE_WORDS]));
        }
        let mut line = C::Line::from_words(self.memory.load());
        let result = f(&mut line);
        self.memory.store(line.into_words());
        result
    }

    /// Takes the source away from the handler: owned, masked and scheduled, in this order.
    fn claim<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        to: Deferral,
        found: u32,
    ) -> Claim {
        if !source.reachable() {
            return Claim::Refused;
        }
        let claim = self.state.transition_to_claimed();
        if claim == Claim::Won {
            let how = Choice::mask_of(self.chosen());
            self.keep(platform, platform.mask(how));
            self.schedule(platform, to, found);
        }
        claim
    }

    /// The source was just taken: schedules the one who drains.
    fn schedule<P: Platform>(&self, platform: &P, to: Deferral, found: u32) {
        self.stats.on_deferral();
        self.trace(platform, Event::Defer { to, found });
        if to != Deferral::Thread {
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

    /// Drains and counts. The handler that drains, or the owner of the source.
    #[inline(always)]
    fn drain<S: Source>(&self, source: &S, budget: Budget) -> Drain {
        let drain = DrainRight::new(source).drain(budget);
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
            let (drain, next) =
                self.deferred_drain(source, platform, pass.budget(), Context::Softirq);
            let pass = pass.with_found(drain.found());
            if let (Drain::Drained(_), Next::HandBack) = (drain, next) {
                let end = platform.complete_poller(pass);
                let _ = self.hand_back(source, platform, Deferral::Softirq);
                return end;
            }
            self.go_on_polling(platform, pass, drain, next)
        })
    }

    /// The poller is not finished: it moves the source to where it belongs, or goes on. Under the
    /// lock.
    fn go_on_polling<P: Platform>(
        &self,
        platform: &P,
        pass: PollPass,
        drain: Drain,
        next: Next,
    ) -> PollEnd {
        match (self.home(), drain, next) {
            (Some(to), ..) => {
                let end = platform.complete_poller(pass);
                platform.defer(to);
                end
            }
            (None, Drain::Drained(_), Next::Rest(span)) => {
                let end = platform.complete_poller(pass);
                platform.poll_after(span);
                end
            }
            (None, ..) => pass.stay(),
        }
    }

    /// The interrupt thread was woken, or the work item runs. Thread.
    pub fn on_thread<S: Source, P: Platform>(&self, source: &S, platform: &P) -> Handled {
        let context = thread_of(Choice::kind_of(self.chosen()));
        loop {
            let budget = self.choice().policy.budget();
            match self.piece(source, platform, budget, context).0 {
                Pass::Again => platform.relax(),
                Pass::Rest(span) => platform.sleep(span),
                Pass::Done => return Handled::Handled,
            }
        }
    }

    /// One drain of the CPU's completion thread: task context, without the lock. Nothing happens to a
    /// source that was not deferred.
    pub fn on_pass<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        budget: Budget,
    ) -> Pass {
        self.on_piece(source, platform, budget).0
    }

    /// As [`on_pass`](Self::on_pass), and says how many completions were found.
    pub fn on_piece<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        budget: Budget,
    ) -> (Pass, u32) {
        self.piece(source, platform, budget, Context::Cpu)
    }

    /// One drain of a thread or a work item.
    fn piece<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        budget: Budget,
        context: Context,
    ) -> (Pass, u32) {
        platform.locked(|| {
            if !self.may_drain(source) {
                return (Pass::Done, 0);
            }
            let (drain, next) = self.deferred_drain(source, platform, budget, context);
            (self.pass(source, platform, drain, next), drain.found())
        })
    }

    /// What follows a drain of [`on_pass`](Self::on_pass). Under the lock.
    fn pass<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        drain: Drain,
        next: Next,
    ) -> Pass {
        if self.guests.load(Relaxed) != 0 {
            // A task waits for this thread, which a storm may never let end by itself. What is left
            // the task will see when it looks at the end, which is still to come: it needs the lock
            // for that.
            self.release(source, platform);
            return Pass::Done;
        }
        match (drain, next) {
            (Drain::More(_), _) | (_, Next::Again) => Pass::Again,
            (Drain::Drained(_), Next::Rest(span)) => Pass::Rest(span),
            (Drain::Drained(_), Next::HandBack) => {
                match self.hand_back(source, platform, Deferral::Thread) {
                    Reclaim::Won => Pass::Again,
                    Reclaim::Lost => Pass::Done,
                }
            }
        }
    }

    /// Drains as the owner, and asks the policy how to go on. Under the lock.
    fn deferred_drain<S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        budget: Budget,
        context: Context,
    ) -> (Drain, Next) {
        self.stats.on_poll();
        let began = self.is_watched().then(|| platform.now());
        let drain = self.drain(source, budget);
        if let Some(began) = began {
            self.on_invocation(platform, context, began, drain.found(), Glance::empty());
        }
        let found = drain.found();
        self.trace(platform, Event::Poll { context, found });
        let kind = Choice::kind_of(self.chosen());
        let next = with_policy!(kind, C => self.next::<C, S, P>(source, platform, drain));
        (drain, next)
    }

    /// Counts an invocation of a line that is watched, on the CPU it was on.
    #[cold]
    fn on_invocation<P: Platform>(
        &self,
        platform: &P,
        context: Context,
        began: Instant,
        found: u32,
        glance: Glance,
    ) {
        self.watch.on_invocation(context, found);
        let stretch = Stretch {
            began,
            ended: platform.now(),
            switches: platform.switches(),
            idle: glance.contains(Glance::IDLE),
            found,
        };
        platform.on_cpu(|cpu| cpu.watch.on_drain(stretch));
    }

    /// Asks the policy after a deferred drain. Under the lock.
    fn next<C: Policy, S: Source, P: Platform>(
        &self,
        source: &S,
        platform: &P,
        drain: Drain,
    ) -> Next {
        let Ok(policy) = self.policy::<C>() else {
            return Next::HandBack;
        };
        let seen = if C::WEIGHS_PASSES {
            let now = platform.now();
            Observation {
                began: now,
                now,
                in_flight: source.in_flight(),
                ..Observation::default()
            }
        } else {
            Observation::default()
        };
        self.with_memory::<C, _>(|line| policy.on_pass(&seen, drain, line))
    }

    /// The hold timer of the CPU expired: the handler may go on. Hardirq, without the lock.
    ///
    /// Without the lock this is sound because the timer owns the source and drains nothing: a pause
    /// joins the timer, and a task that drains ([`exclusive`](Self::exclusive)) holds a mask of its own.
    pub fn on_hold_end<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        let _ = self.hand_back(source, platform, Deferral::Softirq);
    }

    /// Whether the owner of the source may go on. Under the lock, so a source that is owned stays
    /// owned.
    fn may_drain<S: Source>(&self, source: &S) -> bool {
        let now = self.state.snapshot();
        now.is_owned() && !now.contains(Snapshot::PAUSED) && source.reachable()
    }

    /// Gives the source back to the handler, and looks once. Under the lock, or as the hold timer.
    fn hand_back<S: Source, P: Platform>(&self, source: &S, platform: &P, to: Deferral) -> Reclaim {
        if self.release(source, platform) {
            self.look_again(source, platform, to)
        } else {
            Reclaim::Lost
        }
    }

    /// Releases the source and unmasks, in this order, unless the mask is to be kept. Under the
    /// lock, or as the hold timer.
    fn release<S: Source, P: Platform>(&self, source: &S, platform: &P) -> bool {
        if !source.reachable() {
            return false;
        }
        match self.state.transition_to_handed_back() {
            HandBack::Released(token) => {
                self.trace(platform, Event::Rearm);
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
            self.schedule(platform, to, 0);
        }
        reclaim
    }

    /// Joins handler, thread and poller, and masks the line. Idempotent. Task.
    ///
    /// Until [`resume`](Self::resume) nothing drains the source but [`exclusive`](Self::exclusive).
    /// A line that is not dedicated is only joined, and then takes no interrupts until it is
    /// requested again.
    pub fn pause<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        self.trace(platform, Event::Pause);
        match self.state.transition_to_paused() {
            // By a pause that found the device unreachable, and so left the line open?
            Pause::Already if !self.state.snapshot().is_shut() => {
                self.exclude_handler(source, platform);
            }
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
        platform.join_deferred();
        let disowned = platform.locked(|| self.state.transition_to_disowned());
        if disowned == Disown::Unmasked {
            self.exclude_handler(source, platform);
        }
    }

    /// Masks the line of a paused source. While the device is unreachable the handler leaves the
    /// source alone as it is, and only one that saw it reachable is waited for.
    fn exclude_handler<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        if source.reachable() {
            self.keep(platform, platform.mask_sync());
        } else {
            platform.synchronize();
        }
    }

    /// Ends a pause. Idempotent; does nothing while the device is unreachable, or once stopped.
    /// Task.
    pub fn resume<S: Source, P: Platform>(&self, source: &S, platform: &P) {
        if !source.reachable() {
            return;
        }
        self.trace(platform, Event::Resume);
        let token = loop {
            match self.state.transition_to_resuming() {
                Resume::Unmask(token) => break token,
                Resume::NotMasked => self.keep(platform, platform.mask_sync()),
                Resume::Refused => return,
            }
        };
        platform.enable_deferred();
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
        self.trace(platform, Event::Stop);
        match self.state.transition_to_stopped() {
            Stop::Already => return,
            Stop::Plain => return self.join_handler(platform),
            Stop::Dedicated => self.quiesce(source, platform),
            // The pause may have left the line open, of a device that is reachable again.
            Stop::DedicatedPaused => platform.synchronize(),
        }
        platform.enable_deferred();
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
        f: impl FnOnce(&mut DrainRight<'_, S>) -> R,
    ) -> R {
        self.guests.fetch_add(1, Full);
        let token = platform.mask_sync();
        platform.locked(|| {
            let result = f(&mut DrainRight::new(source));
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

    /// Leaves the mask in the state word, for the recovery of the device to end: by a pause and its
    /// resume (without a pause, a resume does nothing), or with the request. Returns a token if one is
    /// to be used up now: there is a mask already, or the device was recovered meanwhile.
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

/// The context of who was deferred to as a thread: no policy has both.
fn thread_of(kind: Kind) -> Context {
    if with_policy!(kind, C => C::WORK) {
        Context::Work
    } else {
        Context::Thread
    }
}
