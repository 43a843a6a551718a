// SPDX-License-Identifier: GPL-2.0

//! The kernel as a [`Platform`]: ties the primitives of one line together.

use kernel::{
    bindings,
    container_of,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use super::{
    context,
    hold,
    irq_poll::Poller,
    lock::CqLock,
    mask::Vector,
    member::{
        Member,
        NotReady,
        Ops, //
    },
    percpu::{
        on_cpu,
        List, //
    },
    poll_timer::PollTimer,
    serve,
    thread::{
        Manners,
        Place, //
    },
    trace,
    work,
    work::Work, //
};
use crate::{
    event::Event,
    observation::Glance,
    platform::{
        MaskToken,
        Platform,
        PollEnd,
        PollPass, //
    },
    policy::{
        Cpu,
        Mask, //
    },
    time::{
        Instant,
        Span, //
    },
    verdict::{
        Deferral,
        Placement, //
    }, //
};

/// What one line has of the kernel.
///
/// As a [`Platform`] it is used while the line is requested, with its poller initialised: the line
/// lets only then a moderator act ([`Line`](super::line::Line)), under its lifecycle lock or in what
/// freeing the request joins. The proofs below say *requested* for that.
#[pin_data]
pub(super) struct LinePlatform {
    pub(super) vector: Vector,
    pub(super) manners: Manners,
    pub(super) place: Place,
    #[pin]
    pub(super) poller: Poller,
    #[pin]
    timer: PollTimer,
    #[pin]
    pub(super) work: Work,
    #[pin]
    pub(super) member: Member,
    #[pin]
    lock: CqLock,
    /// Whether the poller has left the source to the interrupt thread, and the handler is to wake it.
    wake: Atomic<bool>,
}

/// What depends on the type of the line.
pub(super) struct Callbacks {
    pub(super) work: work::Callback,
    pub(super) ops: Ops,
}

impl LinePlatform {
    pub(super) fn new(callbacks: &'static Callbacks) -> impl PinInit<Self> {
        pin_init!(Self {
            vector: Vector::new(),
            manners: Manners::new(),
            place: Place::new(),
            poller <- Poller::new(),
            timer <- PollTimer::new(on_timer),
            work <- Work::new(callbacks.work),
            member <- Member::new(&callbacks.ops),
            lock <- CqLock::new(),
            wake: Atomic::new(false),
        })
    }

    /// The platform whose poller `raw` is.
    ///
    /// # Safety
    ///
    /// There is one.
    pub(super) unsafe fn of_poller(raw: *mut bindings::irq_poll) -> *mut Self {
        let poller = Poller::from_raw(raw);
        // SAFETY: By the contract.
        unsafe { container_of!(poller, Self, poller) }
    }

    /// The platform whose work item `raw` is.
    ///
    /// # Safety
    ///
    /// There is one.
    pub(super) unsafe fn of_work(raw: *mut bindings::work_struct) -> *mut Self {
        // SAFETY: By the contract.
        let work = unsafe { Work::from_raw(raw) };
        // SAFETY: By the contract.
        unsafe { container_of!(work, Self, work) }
    }

    /// The platform that `member` belongs to; not to be changed through the result.
    ///
    /// # Safety
    ///
    /// There is one.
    pub(super) unsafe fn of_member(member: &Member) -> *mut Self {
        let member = core::ptr::from_ref(member).cast_mut();
        // SAFETY: By the contract.
        unsafe { container_of!(member, Self, member) }
    }

    /// Schedules the softirq poller. Task or softirq.
    ///
    /// # Safety
    ///
    /// `member` is that of a requested line.
    pub(super) unsafe fn poll(member: &Member) {
        // SAFETY: By the contract.
        let platform = unsafe { &*Self::of_member(member) };
        // SAFETY: By the contract; a line that is requested has its poller initialised.
        platform.locked(|| unsafe { platform.poller.schedule() });
    }

    /// Wakes the thread of the handler with this cookie, or the handler where that runs in a thread.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn wake_thread(&self, cookie: *mut c_void) {
        self.wake.store(true, Relaxed);
        // SAFETY: By the contract.
        unsafe { self.vector.wake_thread(cookie) };
    }

    /// Chooses where the interrupt thread may run; it is there when this returns. The thread does not
    /// run, and nobody wakes it; task context, may sleep.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn place_thread(&self, placement: Placement, cookie: *mut c_void) {
        if self.place.choose(placement) {
            // SAFETY: By the contract.
            unsafe { self.wake_thread(cookie) };
            // SAFETY: By the contract.
            unsafe { self.vector.synchronize() };
        }
    }

    /// Whether somebody waits for the handler to wake the interrupt thread; true once. A handler that
    /// runs in a thread.
    pub(super) fn takes_wake(&self) -> bool {
        self.wake.load(Relaxed) && self.wake.xchg(false, Relaxed)
    }

    /// Puts the line on a list of this CPU; the softirq poller stands in for one that is not ready.
    ///
    /// # Safety
    ///
    /// As [`Member::join`].
    unsafe fn join(&self, list: List) {
        // SAFETY: By the contract.
        let Err(NotReady) = (unsafe { self.member.join(list) }) else {
            return;
        };
        match list {
            List::Held => hold::forget(),
            List::Served => serve::forget(),
        }
        // SAFETY: Requested by the contract.
        unsafe { self.poller.schedule() };
    }
}

/// The timer of a line expires. Hardirq.
///
/// # Safety
///
/// `raw` is the timer of a line.
unsafe extern "C" fn on_timer(raw: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
    let timer = PollTimer::from_raw(raw);
    // SAFETY: By the contract the timer is a field of a platform, which joins it before it goes.
    let platform = unsafe { &*container_of!(timer, LinePlatform, timer) };
    // SAFETY: Requested: freeing the request joins the timer.
    unsafe { platform.poller.schedule() };
    bindings::hrtimer_restart::HRTIMER_NORESTART
}

impl Platform for LinePlatform {
    fn mask(&self, how: Mask) -> MaskToken {
        // SAFETY: Requested.
        unsafe { self.vector.mask(how) }
    }

    fn mask_sync(&self) -> MaskToken {
        // SAFETY: Requested.
        unsafe { self.vector.mask_sync() }
    }

    fn unmask(&self, token: MaskToken) {
        // SAFETY: Requested.
        unsafe { self.vector.unmask(token) };
    }

    fn synchronize(&self) {
        // SAFETY: Requested.
        unsafe { self.vector.synchronize() };
    }

    fn defer(&self, to: Deferral) {
        match to {
            // SAFETY: The member of a line that is requested.
            Deferral::Thread => unsafe { (self.member.ops().wake)(&self.member) },
            Deferral::Work if self.work.schedule() => {}
            // SAFETY: Requested.
            Deferral::Softirq | Deferral::Work => unsafe { self.poller.schedule() },
            // SAFETY: Requested, and the moderator defers for the owner, once until somebody goes on.
            Deferral::Hold => unsafe { self.join(List::Held) },
            // SAFETY: As above.
            Deferral::Cpu => unsafe { self.join(List::Served) },
        }
    }

    fn arm_hold(&self, after: Span) {
        hold::arm(after);
    }

    fn poll_after(&self, after: Span) {
        trace::poll_after(self.vector.irq(), after);
        self.timer.start(after);
    }

    fn complete_poller(&self, pass: PollPass) -> PollEnd {
        // SAFETY: There is one pass for each call of the callback, which is used up here.
        unsafe { self.poller.complete() };
        pass.completed()
    }

    fn join_deferred(&self) {
        // First those that may schedule the poller as the last thing they do. Nobody joins a list
        // or queues the work any more: only a handler does, which was joined, and a poller that
        // does not know yet that the line is paused, which has the lock.
        self.locked(|| ());
        // The poller may have woken the interrupt thread after that was joined.
        // SAFETY: Requested.
        unsafe { self.vector.synchronize() };
        self.wake.store(false, Relaxed);
        // SAFETY: As said above.
        unsafe { self.member.leave() };
        self.work.cancel();
        // SAFETY: Requested.
        unsafe { self.poller.disable() };
        // A poller that has completed may still be about to start the timer, under the lock.
        self.locked(|| ());
        self.timer.cancel();
    }

    fn enable_deferred(&self) {
        // SAFETY: The moderator enables what it has disabled by `join_deferred`.
        unsafe { self.poller.enable() };
    }

    #[inline]
    fn glance(&self) -> Glance {
        context::glance()
    }

    #[inline]
    fn is_free(&self) -> bool {
        context::is_free()
    }

    fn now(&self) -> Instant {
        context::now()
    }

    fn switches(&self) -> u64 {
        context::switches()
    }

    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        // SAFETY: The moderator passes what asks a policy, which knows no platform.
        unsafe { on_cpu(f) }
    }

    #[inline]
    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock.with(f)
    }

    #[inline(always)]
    fn trace(&self, policy: u32, event: Event) {
        trace::event(self.vector.irq(), policy, event);
    }

    fn relax(&self) {
        self.manners.yield_to_tasks();
    }

    fn sleep(&self, span: Span) {
        context::sleep(span);
    }
}
