// SPDX-License-Identifier: GPL-2.0

//! The completion-queue lock: a spinlock that keeps the local softirqs out.
//!
//! Its users are the poller (softirq) and tasks; a hard interrupt never takes it, because while the
//! moderator lets a handler drain nobody else may. All instances form one lockdep class.

use kernel::{
    bindings,
    prelude::*,
    static_lock_class,
    types::Opaque, //
};

/// A spinlock of the lock class of all completion queues.
///
/// # Invariants
///
/// `raw` is an initialised `spinlock_t` that is only ever taken by [`CqLock::with`], so with bottom
/// halves disabled.
#[pin_data]
pub(super) struct CqLock {
    #[pin]
    raw: Opaque<bindings::spinlock_t>,
}

// SAFETY: A `spinlock_t` may be handed to another thread.
unsafe impl Send for CqLock {}

// SAFETY: Locking by several threads is what a `spinlock_t` is for.
unsafe impl Sync for CqLock {}

impl CqLock {
    /// Creates an unlocked lock.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: `raw` is initialised here.
        pin_init!(Self {
            raw <- Opaque::ffi_init(Self::init),
        })
    }

    fn init(slot: *mut bindings::spinlock_t) {
        let (name, key) = (c"irqmod_cq", static_lock_class!());
        // SAFETY: `Opaque::ffi_init` hands out memory that is valid for writes and pinned; `name`
        // and `key` are static.
        unsafe { bindings::__spin_lock_init(slot, name.as_char_ptr(), key.as_ptr()) };
    }

    /// Runs `f` under the lock with the local softirqs excluded.
    ///
    /// Task or softirq context; `f` must not sleep.
    #[inline]
    pub(super) fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: Initialised by the type invariant; taken with bottom halves disabled by every
        // user, so that the poller of this CPU cannot interrupt a holder.
        unsafe { bindings::spin_lock_bh(self.raw.get()) };
        let found = f();
        // SAFETY: Locked above by this context; `f` cannot unwind past this point, for the kernel
        // is built with `panic = "abort"`.
        unsafe { bindings::spin_unlock_bh(self.raw.get()) };
        found
    }
}
