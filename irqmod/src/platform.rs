// SPDX-License-Identifier: GPL-2.0

//! What the kernel, the simulator and the models implement.
//!
//! # What an implementation promises
//!
//! - The handler is not reentrant for one line, also not on different CPUs, and an invocation
//!   sees everything that the one before it did (genirq: both hold the descriptor's lock at some
//!   point).
//! - An interrupt that arrives while a [`MaskToken`] is out is either kept, and replayed once by
//!   the last [`Platform::unmask`], or lost. The moderator copes with both.
//! - While a token is out the handler is not started. (genirq holds to this because
//!   [`Platform::mask`] is called by the handler only, and [`Platform::mask_sync`] waits.) A message
//!   that was sent before a mask and starts the handler all the same is absorbed; a platform on
//!   which that happens must not also lose interrupts: one absorbed late, and another one lost, add
//!   up to a completion that nobody sees.
//! - [`Platform::mask`] does not wait: it may be called by the handler that it would wait for.
//!
//! # What an implementation need not handle
//!
//! - Unbalanced calls: each token that it gets back is one that it made.
//! - [`Platform::unmask`] on a line that was freed, [`Platform::enable_poller`] without
//!   [`Platform::join_poller`], or two of either in a row.
//! - A refused [`Platform::defer`]: it may be dropped while the poller is being joined, because the
//!   one who joins takes over what the refused caller had claimed.

use crate::{
    event::Event,
    observation::Glance,
    policy::{
        Cpu,
        Mask, //
    },
    time::{
        Instant,
        Span, //
    },
    Budget,
    Deferral, //
};
use core::{
    marker::PhantomData,
    mem, //
};

/// Makes [`MaskToken`] generic, so that its destructor is only looked at where it would run.
pub struct Armed(());

/// Exactly one disable of an interrupt line.
///
/// Made by [`Platform::mask`] and [`Platform::mask_sync`], used up by [`Platform::unmask`]; the
/// moderator keeps it as the `MASKED` bit of the state word in between. It can't be copied.
/// Dropping one would leave the line masked for ever: where panics abort (the kernel) a program
/// that drops one does not compile, where they unwind it panics.
///
/// # Invariants
///
/// The depth of the line's disables includes one for this value.
#[must_use = "dropping a token leaves the line masked for ever"]
pub struct MaskToken<A = Armed>(PhantomData<A>);

impl MaskToken {
    /// For implementations of [`Platform`] (and the state word, which keeps a token as a bit): the
    /// line was disabled once, for this token.
    pub fn mint() -> Self {
        // INVARIANT: by the contract of this function.
        Self(PhantomData)
    }

    /// For implementations of [`Platform`] (and the state word): the token ends here, and the line
    /// is enabled once for it.
    pub fn redeem(self) {
        mem::forget(self);
    }
}

impl<A> Drop for MaskToken<A> {
    fn drop(&mut self) {
        #[cfg(panic = "abort")]
        const {
            assert!(
                mem::size_of::<A>() == usize::MAX,
                "a MaskToken is dropped here: the line would stay masked for ever"
            )
        }
        #[cfg(not(panic = "abort"))]
        if !std::thread::panicking() {
            panic!("a MaskToken was dropped: the line stays masked for ever");
        }
    }
}

/// One invocation of the softirq poller.
#[must_use = "the poller core waits for an answer"]
#[derive(Debug)]
pub struct PollPass {
    budget: Budget,
    found: u32,
}

impl PollPass {
    /// For implementations of [`Platform`] only: the poller core called with this weight.
    pub fn new(budget: Budget) -> Self {
        Self { budget, found: 0 }
    }

    /// The weight of this pass. Unit: completions.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Notes what was drained in this pass.
    pub(crate) fn with_found(self, found: u32) -> Self {
        Self { found, ..self }
    }

    /// Stays scheduled: the poller core calls again.
    pub fn stay(self) -> PollEnd {
        PollEnd {
            work: self.budget.get(),
        }
    }

    /// For [`Platform::complete_poller`] only: the instance was taken off the softirq list.
    pub fn completed(self) -> PollEnd {
        PollEnd {
            work: self.found.min(self.budget.get() - 1),
        }
    }
}

/// The answer to the poller core.
///
/// Made from a [`PollPass`] only, either by staying scheduled (the whole weight) or by completing
/// (less than the weight): "the whole weight after completing", which corrupts the core's list,
/// can't be said.
#[must_use = "the poller core waits for an answer"]
#[derive(Debug, PartialEq, Eq)]
pub struct PollEnd {
    work: u32,
}

impl PollEnd {
    /// What the poller callback returns. Unit: completions.
    pub fn work(&self) -> u32 {
        self.work
    }
}

/// One interrupt line with its poller, thread, timers and locks.
///
/// A *deferred context* is whatever may drain or release the source later: softirq poller, work
/// item, per-line timer, and membership in the hold list or the completion list of a CPU. The
/// interrupt thread belongs to the handler: [`Platform::synchronize`] joins it. What the poller has
/// woken of either is a deferred context.
pub trait Platform {
    /// Disables the line once, without waiting. Handler, for itself.
    fn mask(&self, how: Mask) -> MaskToken;

    /// Disables the line once and waits until neither handler nor interrupt thread runs. Task.
    fn mask_sync(&self) -> MaskToken;

    /// Enables the line once, which may replay a kept interrupt at once. Any context.
    fn unmask(&self, token: MaskToken);

    /// Waits until the handler and the interrupt thread that run now are finished. Task.
    fn synchronize(&self);

    /// Schedules the context that drains next. Any context, with softirqs or interrupts off.
    ///
    /// For [`Deferral::Thread`] only the softirq poller calls this: a handler wakes the thread by what
    /// it returns. A platform that can't wake it otherwise may start the handler for that, also while
    /// the line is masked: it leaves alone what is not its own. For [`Deferral::Hold`] and [`Deferral::Cpu`] the line joins the list of the CPU that this runs on;
    /// a platform that has no completion thread there uses the softirq poller.
    fn defer(&self, to: Deferral);

    /// Starts the hold timer of this CPU, which is not running. Handler.
    fn arm_hold(&self, after: Span);

    /// Schedules the softirq poller after a while. Softirq poller, once it has completed.
    fn poll_after(&self, after: Span);

    /// Takes the poller off the softirq list and turns `pass` into [`PollPass::completed`].
    /// Softirq poller, under [`Platform::locked`].
    fn complete_poller(&self, pass: PollPass) -> PollEnd;

    /// Waits until no deferred context has the line, and keeps it from being deferred. Task.
    fn join_deferred(&self);

    /// Ends what [`Platform::join_deferred`] began. Task.
    fn enable_deferred(&self);

    /// A look at this CPU. Any context, cheap.
    fn glance(&self) -> Glance;

    /// [`Glance::is_free`] of a look at this CPU. Any context, as cheap as can be.
    #[inline]
    fn is_free(&self) -> bool {
        self.glance().is_free()
    }

    /// The clock: monotonic, not stopped by anything but suspend. Any context.
    fn now(&self) -> Instant;

    /// A number that changes whenever this CPU switches tasks. Hardirq.
    fn switches(&self) -> u64;

    /// Runs `f` on the policies' state of this CPU, with interrupts off. Not recursive. Any context.
    fn on_cpu<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R;

    /// Runs `f` under the source's queue lock, with softirqs off. Softirq poller, thread, work item
    /// and task, never hardirq. Not recursive.
    fn locked<R>(&self, f: impl FnOnce() -> R) -> R;

    /// Tells tracers, if there are any, what happens to the line. `policy` is the number of its policy in
    /// [`Config::NAMES`](crate::policy::Config::NAMES). Any context.
    #[inline(always)]
    fn trace(&self, _policy: u32, _event: Event) {}

    /// Lets others run. Thread or work item, between two drains, without the lock.
    fn relax(&self);

    /// Sleeps for about `span`. Thread or work item, between two drains, without the lock.
    fn sleep(&self, span: Span);
}
