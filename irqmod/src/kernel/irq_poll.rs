// SPDX-License-Identifier: GPL-2.0

//! One instance of the kernel's `irq_poll`: a callback that the softirq runs with a budget.
//!
//! C header: [`include/linux/irq_poll.h`](srctree/include/linux/irq_poll.h)
//!
//! Its rules, which the [`Moderator`](crate::moderator::Moderator) obeys and the types enforce
//! where they can:
//!
//! - scheduling while scheduled is dropped, scheduling while disabled is silently refused;
//! - a callback that returns its full weight must not have completed the instance;
//! - a second disable hangs, enabling without disable is a bug.

use kernel::{
    bindings,
    prelude::*,
    types::Opaque, //
};

use crate::budget::Budget;

/// A callback: gets the instance and the budget, returns the work done.
pub(super) type Callback = unsafe extern "C" fn(*mut bindings::irq_poll, c_int) -> c_int;

/// An instance of `irq_poll`.
///
/// # Invariants
///
/// `raw` is valid for C from the first [`Poller::init`] on.
#[pin_data]
#[repr(transparent)]
pub(super) struct Poller {
    #[pin]
    raw: Opaque<bindings::irq_poll>,
}

// SAFETY: An instance is not bound to the thread that created it.
unsafe impl Send for Poller {}

// SAFETY: All operations are atomic on the state word of the instance, or (`init`) demand exclusion
// by their contract.
unsafe impl Sync for Poller {}

impl Poller {
    /// Creates an instance that may be initialised by [`Poller::init`].
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: `init` is still to come.
            raw: Opaque::uninit(),
        })
    }

    /// The instance that C knows as `raw`; the pointer is not looked at.
    pub(super) fn from_raw(raw: *mut bindings::irq_poll) -> *mut Self {
        // `Poller` is a transparent wrapper.
        raw.cast()
    }

    /// Makes the instance ready: enabled and idle, with `budget` as the weight of a call.
    ///
    /// # Safety
    ///
    /// The instance is neither scheduled nor running: it is new, or joined by [`Poller::disable`].
    /// `callback` may be called with this instance until the next `disable`.
    pub(super) unsafe fn init(&self, budget: Budget, callback: Callback) {
        // INVARIANT: `raw` is valid for C from here on.
        // SAFETY: `raw` is pinned memory of the right type and by the contract of this function
        // nobody uses it now.
        unsafe { bindings::irq_poll_init(self.raw.get(), weight(budget), Some(callback)) };
    }

    /// Makes `budget` the weight of a call from now on.
    ///
    /// # Safety
    ///
    /// The instance is initialised, and joined by [`Poller::disable`] or not used yet.
    pub(super) unsafe fn set_weight(&self, budget: Budget) {
        // SAFETY: Initialised, and by the contract nobody reads it now.
        unsafe { (*self.raw.get()).weight = weight(budget) };
    }

    /// Puts the instance on this CPU's list; any context.
    ///
    /// # Safety
    ///
    /// The instance is initialised.
    pub(super) unsafe fn schedule(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::irq_poll_sched(self.raw.get()) };
    }

    /// Takes the instance off the list of this CPU; only from its own callback.
    ///
    /// # Safety
    ///
    /// The caller is the callback of the instance, and has not completed it.
    pub(super) unsafe fn complete(&self) {
        // SAFETY: By the contract the instance is on this CPU's list.
        unsafe { bindings::irq_poll_complete(self.raw.get()) };
    }

    /// Waits for the callback and blocks scheduling; task context, once until [`Poller::enable`].
    ///
    /// # Safety
    ///
    /// The instance is initialised.
    pub(super) unsafe fn disable(&self) {
        // SAFETY: By the contract; the caller may sleep.
        unsafe { bindings::irq_poll_disable(self.raw.get()) };
    }

    /// Allows scheduling again.
    ///
    /// # Safety
    ///
    /// The instance is disabled by [`Poller::disable`].
    pub(super) unsafe fn enable(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::irq_poll_enable(self.raw.get()) };
    }
}

fn weight(budget: Budget) -> c_int {
    c_int::try_from(budget.get()).unwrap_or(c_int::MAX)
}
