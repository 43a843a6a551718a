// SPDX-License-Identifier: GPL-2.0

//! A source and a platform that do what a test says, on one CPU, and count.

#![allow(dead_code, unreachable_pub)]

use irqmod::{
    event::Event,
    moderator::Unreachable,
    observation::Glance,
    policy::{
        hardirq,
        resched,
        threaded,
        timer::Expiry,
        Choice,
        Config,
        Cpu,
        Mask, //
    },
    state::Snapshot,
    time::{
        Instant,
        Span, //
    },
    Budget,
    Deferral,
    Drain,
    DrainRight,
    Handled,
    MaskToken,
    Moderator,
    Pass,
    Platform,
    PollEnd,
    PollPass,
    Source, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicU32,
        Ordering::Relaxed, //
    }, //
};

/// A completion queue that is a number, or one that never gets empty.
#[derive(Default)]
pub struct Queue {
    waiting: AtomicU32,
    endless: AtomicBool,
    unreachable: AtomicBool,
    draining: AtomicBool,
    looks: AtomicU32,
    /// What the driver says of commands in flight, if it does.
    knows: AtomicBool,
    in_flight: AtomicU32,
    /// Completions drained so far.
    pub drained: AtomicU32,
    /// Drains so far.
    drains: AtomicU32,
    /// Doorbell writes so far.
    pub doorbells: AtomicU32,
    /// Longest single drain.
    pub longest: AtomicU32,
}

impl Queue {
    pub fn post(&self, completions: u32) {
        self.waiting.fetch_add(completions, Relaxed);
    }

    pub fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    pub fn set_endless(&self, endless: bool) {
        self.endless.store(endless, Relaxed);
    }

    pub fn set_reachable(&self, reachable: bool) {
        self.unreachable.store(!reachable, Relaxed);
    }

    pub fn set_in_flight(&self, commands: Option<u32>) {
        self.knows.store(commands.is_some(), Relaxed);
        self.in_flight.store(commands.unwrap_or(0), Relaxed);
    }

    /// How often somebody looked whether a completion is pending.
    pub fn looks(&self) -> u32 {
        self.looks.load(Relaxed)
    }
}

impl Source for Queue {
    fn pending(&self) -> bool {
        self.looks.fetch_add(1, Relaxed);
        self.endless.load(Relaxed) || self.waiting() != 0
    }

    fn drain(queue: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        assert!(!queue.draining.swap(true, Relaxed), "a second drainer");
        let drains = queue.drains.fetch_add(1, Relaxed);
        assert!(drains < MOST_DRAINS, "drains an endless queue without end");
        let found = if queue.endless.load(Relaxed) {
            budget.get()
        } else {
            queue.waiting().min(budget.get())
        };
        let left = queue.waiting().saturating_sub(found);
        queue.waiting.store(left, Relaxed);
        queue.drained.fetch_add(found, Relaxed);
        queue.longest.fetch_max(found, Relaxed);
        if found != 0 && queue.reachable() {
            queue.doorbells.fetch_add(1, Relaxed);
        }
        queue.draining.store(false, Relaxed);
        if left != 0 || queue.endless.load(Relaxed) {
            Drain::More(found)
        } else {
            Drain::Drained(found)
        }
    }

    fn in_flight(&self) -> Option<u32> {
        let commands = self.in_flight.load(Relaxed);
        self.knows.load(Relaxed).then_some(commands)
    }

    fn reachable(&self) -> bool {
        !self.unreachable.load(Relaxed)
    }
}

/// More than any test needs.
const MOST_DRAINS: u32 = 1_000_000;

/// Something that happens in the middle of a call of the moderator.
type Hook = Box<dyn FnOnce(&Rig)>;
/// Something that happens again and again.
type RepeatedHook = Box<dyn Fn(&Rig)>;

/// One line with everything around it.
pub struct Rig {
    pub queue: Queue,
    pub moderator: Moderator,
    /// Names of the platform's methods, as they are called.
    pub trace: RefCell<Vec<&'static str>>,
    /// What tracers were told.
    pub events: RefCell<Vec<Event>>,
    /// Answers of the handler.
    pub answers: RefCell<Vec<Handled>>,
    pub depth: Cell<u32>,
    /// An interrupt came while the line was masked.
    latched: Cell<bool>,
    /// Whether one that comes while the line is masked is kept.
    pub latches: Cell<bool>,
    pub in_hardirq: Cell<bool>,
    pub need_resched: Cell<bool>,
    requested: Cell<bool>,
    locked: Cell<bool>,
    /// The poller: on the softirq list, disabled, about to be disabled, inside its callback.
    pub listed: Cell<bool>,
    pub disabled: Cell<bool>,
    pub disabling: Cell<bool>,
    in_callback: Cell<bool>,
    in_poller: Cell<bool>,
    pub woken: Cell<bool>,
    /// The forced thread of the handler was woken by someone else than an interrupt.
    pub forced: Cell<bool>,
    /// The handler is to wake the thread for the poller.
    wake: Cell<bool>,
    /// The work item is queued; the line is on the hold list, on the CPU's list.
    pub queued: Cell<bool>,
    pub held: Cell<bool>,
    pub joined: Cell<bool>,
    /// The hold timer of the CPU, the poll timer of the line, the sleeping thread: for how long.
    pub hold: Cell<Option<Span>>,
    pub poll_timer: Cell<Option<Span>>,
    pub slept: Cell<Span>,
    pub now: Cell<Instant>,
    pub idle: Cell<bool>,
    pub switches: Cell<u64>,
    pub cpu: RefCell<Cpu>,
    pub relaxed: Cell<u32>,
    /// Runs when the poller is taken off the list: after the last drain, before the unmask.
    pub on_complete: RefCell<Option<Hook>>,
    /// Runs when a task has masked the line.
    pub on_mask: RefCell<Option<Hook>>,
    /// Runs when the thread lets others run, as often as it does.
    pub on_relax: RefCell<Option<RepeatedHook>>,
    /// Runs when the thread sleeps, as often as it does.
    pub on_sleep: RefCell<Option<RepeatedHook>>,
}

impl Rig {
    fn look(&self) -> Glance {
        let mut glance = Glance::empty();
        glance.set(Glance::HARDIRQ, self.in_hardirq.get());
        glance.set(Glance::RESCHED, self.need_resched.get());
        glance.set(Glance::IDLE, self.idle.get());
        let deferring = self.cpu.borrow().ledger.is_deferring();
        glance.set(Glance::DEFERRING, deferring);
        glance
    }

    /// A requested, moderated line.
    pub fn new(choice: impl Into<Config>) -> Self {
        let rig = Self::unrequested(choice);
        rig.request();
        rig
    }

    pub fn resched(budget: u32) -> Self {
        Self::new(resched::Config::new(budget).unwrap())
    }

    pub fn threaded() -> Self {
        Self::new(threaded::Config::default())
    }

    pub fn hardirq() -> Self {
        Self::new(hardirq::Config)
    }

    pub fn unrequested(choice: impl Into<Config>) -> Self {
        Self {
            queue: Queue::default(),
            moderator: Moderator::new(choice.into()),
            trace: RefCell::default(),
            events: RefCell::default(),
            answers: RefCell::default(),
            depth: Cell::new(0),
            latched: Cell::new(false),
            latches: Cell::new(true),
            in_hardirq: Cell::new(true),
            need_resched: Cell::new(true),
            requested: Cell::new(false),
            locked: Cell::new(false),
            listed: Cell::new(false),
            disabled: Cell::new(false),
            disabling: Cell::new(false),
            in_callback: Cell::new(false),
            in_poller: Cell::new(false),
            woken: Cell::new(false),
            forced: Cell::new(false),
            wake: Cell::new(false),
            queued: Cell::new(false),
            held: Cell::new(false),
            joined: Cell::new(false),
            hold: Cell::new(None),
            poll_timer: Cell::new(None),
            slept: Cell::new(Span::ZERO),
            now: Cell::new(Instant::ZERO),
            idle: Cell::new(false),
            switches: Cell::new(0),
            cpu: RefCell::default(),
            relaxed: Cell::new(0),
            on_complete: RefCell::default(),
            on_mask: RefCell::default(),
            on_relax: RefCell::default(),
            on_sleep: RefCell::default(),
        }
    }

    /// A requested line with what this parameter string says.
    pub fn parsed(text: &str) -> Self {
        let choice = irqmod::params::parse(text).unwrap();
        let rig = Self::unrequested(choice.policy);
        rig.moderator.set_choice(choice);
        rig.request();
        rig
    }

    pub fn request(&self) {
        assert!(!self.requested.replace(true));
        self.depth.set(0);
        self.latched.set(false);
        self.moderator.prepare();
        self.moderator.start();
    }

    pub fn is_requested(&self) -> bool {
        self.requested.get()
    }

    /// The device sends an interrupt.
    pub fn interrupt(&self) {
        if !self.requested.get() {
            return;
        }
        if self.depth.get() != 0 {
            self.latched.set(self.latches.get());
            return;
        }
        let _ = self.handler();
    }

    /// The handler runs, also while the line is masked: the message was under way.
    pub fn handler(&self) -> Handled {
        let mut handled = self.moderator.on_interrupt(&self.queue, self);
        if self.wake.replace(false) {
            handled = Handled::WakeThread;
        }
        if handled == Handled::WakeThread {
            self.woken.set(true);
        }
        self.answers.borrow_mut().push(handled);
        handled
    }

    pub fn last_answer(&self) -> Handled {
        *self.answers.borrow().last().unwrap()
    }

    /// One call of the poller, with this weight. What the core does with the answer.
    pub fn poll_with(&self, weight: u32) -> u32 {
        assert!(self.listed.get(), "polled, but not scheduled");
        self.in_callback.set(true);
        self.in_poller.set(true);
        let pass = PollPass::new(Budget::new(weight).unwrap());
        let work = self.moderator.on_poll(&self.queue, self, pass).work();
        if work >= weight {
            assert!(self.in_callback.get(), "whole weight, but completed");
            assert!(self.listed.get(), "whole weight, but not on the list");
        }
        self.in_callback.set(false);
        self.in_poller.set(false);
        work
    }

    pub fn poll(&self) -> u32 {
        self.poll_with(self.moderator.choice().policy.budget().get())
    }

    /// Timers expire, softirqs and threads run, until there is nothing to do.
    pub fn settle(&self) {
        while self.step() {}
    }

    /// The next thing that a timer, a softirq or a thread does, if there is one.
    pub fn step(&self) -> bool {
        self.fire_poll_timer();
        if self.listed.get() {
            self.poll();
        } else if self.forced.replace(false) {
            let _ = self.handler();
        } else if self.woken.replace(false) || self.queued.replace(false) {
            let _ = self.moderator.on_thread(&self.queue, self);
        } else if self.joined.get() {
            self.joined.set(self.serve() != Pass::Done);
        } else if self.held.get() {
            self.expire();
        } else {
            return false;
        }
        true
    }

    /// The timer that paces the poller fires, if it runs.
    pub fn fire_poll_timer(&self) {
        if let Some(after) = self.poll_timer.take() {
            self.pass_time(after);
            self.list();
        }
    }

    pub fn pass_time(&self, span: Span) {
        self.now.set(self.now.get().after(span));
    }

    /// Whether somebody will drain or release the source without being asked again.
    pub fn is_deferred(&self) -> bool {
        let timer = self.poll_timer.get().is_some();
        let thread = self.woken.get() || self.forced.get() || self.queued.get();
        timer || thread || self.listed.get() || self.held.get() || self.joined.get()
    }

    /// One piece of the CPU's completion thread.
    pub fn serve(&self) -> Pass {
        let budget = self.moderator.choice().policy.budget();
        self.moderator.on_pass(&self.queue, self, budget)
    }

    /// The hold timer of the CPU expires.
    pub fn expire(&self) {
        self.pass_time(self.hold.take().unwrap_or_default());
        let expiry = self.cpu.borrow_mut().timer.on_expiry(self.now.get());
        match expiry {
            Expiry::Push(span) => self.hold.set(Some(span)),
            Expiry::Release if self.held.replace(false) => {
                self.moderator.on_hold_end(&self.queue, self);
            }
            Expiry::Release => (),
        }
    }

    fn list(&self) {
        if !self.disabled.get() && !self.disabling.get() {
            self.listed.set(true);
        }
    }

    pub fn pause(&self) {
        self.moderator.pause(&self.queue, self);
    }

    pub fn resume(&self) {
        self.moderator.resume(&self.queue, self);
    }

    /// Chooses anew for a line in use; its thread and poller are not there while it does.
    pub fn switch(&self, choice: impl Into<Choice>) -> Result<(), Unreachable> {
        self.moderator
            .switch(&self.queue, self, choice.into(), |choice| {
                assert!(!self.is_deferred(), "not joined");
                assert_eq!(self.moderator.choice(), choice);
            })
    }

    pub fn stop(&self) {
        self.moderator.stop(&self.queue, self);
    }

    /// The line is gone, with its depth.
    pub fn free(&self) {
        assert!(self.requested.replace(false));
        let kept = self.moderator.snapshot().contains(Snapshot::MASKED);
        assert_eq!(self.depth.get(), u32::from(kept), "more than what was kept");
        self.depth.set(0);
        self.latched.set(false);
    }

    pub fn exclusive(&self) -> u32 {
        self.moderator.exclusive(&self.queue, self, |queue| {
            queue.drain(Budget::UNLIMITED).found()
        })
    }

    fn note(&self, what: &'static str) {
        self.trace.borrow_mut().push(what);
    }

    pub fn take_trace(&self) -> Vec<&'static str> {
        self.trace.take()
    }
}

impl Platform for Rig {
    fn mask(&self, how: Mask) -> MaskToken {
        self.note(match how {
            Mask::Nosync => "mask",
            Mask::Nowait => "mask_nowait",
        });
        self.depth.set(self.depth.get() + 1);
        MaskToken::mint()
    }

    fn mask_sync(&self) -> MaskToken {
        assert!(!self.locked.get(), "sleeps under the lock");
        self.note("mask_sync");
        self.depth.set(self.depth.get() + 1);
        let hook = self.on_mask.take();
        if let Some(hook) = hook {
            hook(self);
        }
        MaskToken::mint()
    }

    fn unmask(&self, token: MaskToken) {
        self.note("unmask");
        token.redeem();
        let depth = self.depth.get().checked_sub(1);
        self.depth.set(depth.expect("unbalanced enable"));
        if self.depth.get() == 0 && self.latched.replace(false) && self.requested.get() {
            let _ = self.handler();
        }
    }

    fn synchronize(&self) {
        assert!(!self.locked.get(), "sleeps under the lock");
        self.note("synchronize");
        // The thread is joined as well.
        if self.forced.replace(false) {
            let _ = self.handler();
        }
        if self.woken.replace(false) {
            let _ = self.moderator.on_thread(&self.queue, self);
        }
    }

    fn defer(&self, to: Deferral) {
        self.note("defer");
        if self.disabled.get() || self.disabling.get() {
            return;
        }
        match to {
            Deferral::Softirq => self.list(),
            Deferral::Thread => {
                assert!(
                    self.in_poller.get(),
                    "the handler's answer wakes the thread"
                );
                let forced = !self.in_hardirq.get();
                self.wake.set(forced);
                self.forced.set(forced);
                self.woken.set(!forced);
            }
            Deferral::Work => self.queued.set(true),
            Deferral::Hold => self.held.set(true),
            Deferral::Cpu => self.joined.set(true),
        }
    }

    fn arm_hold(&self, after: Span) {
        self.note("arm_hold");
        assert!(self.hold.replace(Some(after)).is_none(), "armed twice");
    }

    fn poll_after(&self, after: Span) {
        self.note("poll_after");
        assert!(
            self.poll_timer.replace(Some(after)).is_none(),
            "armed twice"
        );
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        assert!(self.in_callback.replace(false), "completed twice");
        assert!(self.listed.replace(false), "completed, but not on the list");
        self.note("complete_poller");
        let hook = self.on_complete.take();
        if let Some(hook) = hook {
            hook(self);
        }
        pass.completed()
    }

    fn join_deferred(&self) {
        assert!(!self.locked.get(), "sleeps under the lock");
        self.note("join_deferred");
        self.disabling.set(true);
        self.poll_timer.set(None);
        self.held.set(false);
        self.joined.set(false);
        if self.queued.replace(false) {
            let _ = self.moderator.on_thread(&self.queue, self);
        }
        while self.listed.get() {
            let weight = self.moderator.choice().policy.budget().get();
            if self.poll_with(weight) >= weight {
                // The core completes the instance without telling it.
                self.listed.set(false);
            }
        }
        self.disabling.set(false);
        assert!(!self.disabled.replace(true), "disabled twice");
    }

    fn enable_deferred(&self) {
        self.note("enable_deferred");
        assert!(self.disabled.replace(false), "enabled, but not disabled");
        let paused = self.moderator.snapshot().contains(Snapshot::PAUSED);
        assert!(paused, "a handler could have deferred to what was disabled");
    }

    fn is_free(&self) -> bool {
        self.note("is_free");
        self.look().is_free()
    }

    fn glance(&self) -> Glance {
        self.note("glance");
        self.look()
    }

    fn now(&self) -> Instant {
        self.note("now");
        self.now.get()
    }

    fn switches(&self) -> u64 {
        self.switches.get()
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        f(&mut self.cpu.borrow_mut())
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        assert!(!self.locked.replace(true), "locked twice");
        let result = f();
        self.locked.set(false);
        result
    }

    fn trace(&self, policy: u32, event: Event) {
        assert_eq!(policy, self.moderator.choice().policy.number());
        self.events.borrow_mut().push(event);
    }

    fn relax(&self) {
        assert!(!self.locked.get(), "relaxes under the lock");
        self.relaxed.set(self.relaxed.get() + 1);
        if let Some(hook) = &*self.on_relax.borrow() {
            hook(self);
        }
    }

    fn sleep(&self, span: Span) {
        assert!(!self.locked.get(), "sleeps under the lock");
        self.slept.set(self.slept.get().plus(span));
        self.pass_time(span);
        if let Some(hook) = &*self.on_sleep.borrow() {
            hook(self);
        }
    }
}

/// Pauses and resumes a busy line at each point of a script, and in the middle of its thread: no
/// completion is lost, and no disable is left.
pub fn pause_at_each_point(new: impl Fn() -> Rig) {
    let at_end = (0..).find(|at| !pause_at(&new(), *at));
    assert_ne!(at_end, Some(0), "there is no such point");
    for at in 0..20 {
        pause_in_thread(new(), at);
    }
}

/// Returns whether the script has a point of this number.
fn pause_at(rig: &Rig, at: usize) -> bool {
    let mut points = 0;
    let mut point = |rig: &Rig| {
        if points == at {
            pause_and_resume(rig);
        }
        points += 1;
    };
    for completions in [1, 300, 2, 40, 1] {
        rig.queue.post(completions);
        rig.interrupt();
        point(rig);
        while rig.step() {
            point(rig);
        }
        rig.pass_time(Span::from_micros(20));
    }
    finish(rig);
    points > at
}

fn pause_in_thread(rig: Rig, at: u32) {
    let gaps = std::rc::Rc::new(Cell::new(0));
    let hook = || {
        let gaps = gaps.clone();
        let hook: RepeatedHook = Box::new(move |rig: &Rig| {
            if gaps.replace(gaps.get() + 1) == at {
                pause_and_resume(rig);
            }
        });
        hook
    };
    *rig.on_relax.borrow_mut() = Some(hook());
    *rig.on_sleep.borrow_mut() = Some(hook());
    rig.queue.post(1000);
    rig.interrupt();
    rig.settle();
    finish(&rig);
}

fn pause_and_resume(rig: &Rig) {
    rig.pause();
    assert!(!rig.is_deferred(), "deferred while paused");
    assert_eq!(rig.depth.get(), 1);
    rig.queue.post(3);
    let waiting = rig.queue.waiting();
    rig.interrupt();
    assert_eq!(rig.queue.waiting(), waiting, "drained while paused");
    rig.resume();
}

/// Everything settles, with one more interrupt, and nothing is left.
pub fn finish(rig: &Rig) {
    rig.settle();
    rig.interrupt();
    rig.settle();
    assert_eq!(rig.queue.waiting(), 0, "lost");
    assert_eq!(rig.depth.get(), 0, "masked at the end");
    assert!(!rig.disabled.get());
    let state = rig.moderator.snapshot() - Snapshot::HANDOFF;
    assert_eq!(state, Snapshot::INIT);
}
