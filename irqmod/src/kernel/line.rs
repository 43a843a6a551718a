// SPDX-License-Identifier: GPL-2.0

//! One interrupt line with its source: what a driver owns per queue.
//!
//! # Life of a line
//!
//! ```text
//!          new
//!           |
//!           v      request, request_plain
//!         Idle ------------------------------> Requested <---> paused (pause, resume)
//!           ^                                     |
//!           +-------------------------------------+
//!                        free, drop
//! ```
//!
//! All edges are task context, serialised by one sleeping lock. A line can be requested again after
//! `free`, with another vector; nothing of its former life survives.
//!
//! Another policy in between: [`Line::set_policy`].
//!
//! The files in debugfs come with the first request and go when the line is dropped. To remove them
//! is to wait for their readers, who may wait for memory, and so for a device. So a request that is
//! freed to reset a device must not remove them, and none is made with the lock held.
//!
//! Going down, dropping keeps this order: debugfs files; then, as [`Line::free`] does, interrupt and
//! its thread, poller; then, as the fields are dropped, the source with its queue memory.

use core::ops::Deref;
use kernel::{
    bindings,
    error::to_result,
    fmt,
    irq::Flags,
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex,
        SetOnce, //
    }, //
};

use super::{
    debugfs::LineDir,
    entry::{
        on_forced_interrupt,
        on_interrupt,
        on_poll,
        on_thread, //
    },
    mask::can_silence,
    platform::LinePlatform, //
};
use crate::{
    moderator::Moderator,
    platform::Platform as _,
    policy::Choice,
    source::{
        DrainRight,
        Source, //
    }, //
};

/// What a request holds until it is freed.
pub(super) struct Request {
    irq: u32,
    /// Whether the moderator may defer.
    pub(super) moderated: bool,
    /// The core keeps a pointer to the name.
    name: CString,
}

/// One interrupt line, moderated, with the source that it belongs to.
///
/// Dereferences to the source. Embed it in the driver's queue, or keep it in a box or an
/// [`Arc`](kernel::sync::Arc).
///
/// # Invariants
///
/// - `lifecycle` holds a request if, and only if, an interrupt handler is registered whose cookie
///   points to this line.
/// - The poller is only scheduled or running while there is a request.
#[pin_data(PinnedDrop)]
pub struct Line<S: Source> {
    // First: the word that a handler reads before anything else.
    pub(super) moderator: Moderator,
    #[pin]
    pub(super) source: S,
    #[pin]
    pub(super) platform: LinePlatform,
    /// Mirrors `lifecycle.is_some()`; written under both locks, read under the queue lock.
    requested: Atomic<bool>,
    #[pin]
    pub(super) lifecycle: Mutex<Option<Request>>,
    files: SetOnce<LineDir>,
}

/// One lockdep class for the lines of all drivers.
fn new_lifecycle() -> impl PinInit<Mutex<Option<Request>>> {
    new_mutex!(None, "irqmod_line")
}

impl<S: Source> Line<S> {
    /// Creates a line that is not requested.
    pub fn new(
        source: impl PinInit<S, Error>,
        choice: impl Into<Choice>,
    ) -> impl PinInit<Self, Error> {
        // INVARIANT: No request, no handler, and the poller is idle.
        try_pin_init!(Self {
            moderator: Moderator::of_line(choice),
            source <- source,
            platform <- LinePlatform::new(&Self::CALLBACKS),
            requested: Atomic::new(false),
            lifecycle <- new_lifecycle(),
            files: SetOnce::new(),
        })
    }

    /// Chooses another policy for the next request. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` while the line is requested.
    pub fn set_choice(&self, choice: impl Into<Choice>) -> Result {
        let lifecycle = self.lifecycle.lock();
        if lifecycle.is_some() {
            return Err(EBUSY);
        }
        self.moderator.set_choice(choice);
        Ok(())
    }

    /// Requests `irq` with moderation, as the policy says. May sleep.
    ///
    /// The source must be ready: an interrupt may come before this returns.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the line is requested already or `irq` is somebody else's, who would have to share
    /// it. `EOPNOTSUPP` if `irq` is level triggered or its chip can not mask: then
    /// [`request_plain`](Line::request_plain) is what works.
    ///
    /// # Safety
    ///
    /// `irq` is an edge-triggered MSI or MSI-X vector that is allocated for this line alone, and it
    /// stays allocated until [`Line::free`] returned or the line was dropped.
    pub unsafe fn request(self: Pin<&Self>, irq: u32, name: fmt::Arguments<'_>) -> Result {
        if !can_silence(irq) {
            return Err(EOPNOTSUPP);
        }
        // SAFETY: The contract of this function.
        unsafe { self.request_as(irq, 0, true, name) }
    }

    /// Requests `irq` with the plain handler, which never defers and never masks. May sleep.
    ///
    /// For lines that are shared, level triggered or too slow to matter. The only flag is
    /// [`Flags::SHARED`], or [`Flags::TRIGGER_NONE`] for none.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the line is requested already, `EINVAL` for another flag.
    ///
    /// # Safety
    ///
    /// `irq` is an interrupt of the source's device, and it stays allocated until [`Line::free`]
    /// returned or the line was dropped.
    pub unsafe fn request_plain(
        self: Pin<&Self>,
        irq: u32,
        flags: Flags,
        name: fmt::Arguments<'_>,
    ) -> Result {
        let flags = match flags {
            Flags::TRIGGER_NONE => 0,
            // CAST: A bit of the low word.
            Flags::SHARED => bindings::IRQF_SHARED as c_ulong,
            _ => return Err(EINVAL),
        };
        // SAFETY: The contract of this function.
        unsafe { self.request_as(irq, flags, false, name) }
    }

    /// # Safety
    ///
    /// As [`Line::request`] if `moderated`, else as [`Line::request_plain`].
    unsafe fn request_as(
        self: Pin<&Self>,
        irq: u32,
        flags: c_ulong,
        moderated: bool,
        name: fmt::Arguments<'_>,
    ) -> Result {
        self.provide_for(&self.moderator.choice())?;
        let name = CString::try_from_fmt(name)?;
        let shown = CString::try_from(&*name)?;
        // SAFETY: The contract of this function.
        unsafe { self.request_named(irq, flags, moderated, name) }?;
        self.show(&shown);
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Line::request_as`].
    unsafe fn request_named(
        &self,
        irq: u32,
        flags: c_ulong,
        moderated: bool,
        name: CString,
    ) -> Result {
        let mut lifecycle = self.lifecycle.lock();
        if lifecycle.is_some() {
            return Err(EBUSY);
        }
        self.prepare(irq);
        // SAFETY: `irq` is ours by the contract of this function; `name` is kept in the request,
        // which is given up after the interrupt was freed.
        let registered = unsafe { self.register(irq, flags, &name, moderated) };
        if let Err(error) = registered {
            self.set_requested(false);
            return Err(error);
        }
        if moderated {
            self.moderator.start();
        }
        // INVARIANT: The handler was registered above.
        *lifecycle = Some(Request {
            irq,
            moderated,
            name,
        });
        Ok(())
    }

    /// Makes the files of the line, if it has none yet. They are for people: without them, all works.
    fn show(self: Pin<&Self>, name: &CStr) {
        if self.files.as_ref().is_some() {
            return;
        }
        // SAFETY: The line is pinned, and gives the files up first when it is dropped.
        if let Ok(files) = unsafe { LineDir::new(self.get_ref(), name) } {
            self.files.populate(files);
        }
    }

    /// Makes what the policy needs. Without the lock, which a time-out takes: this allocates, and
    /// reclaim may wait for this very device.
    pub(super) fn provide_for(&self, choice: &Choice) -> Result {
        if choice.policy.wants_work() {
            self.platform.work.prepare()?;
        }
        if choice.policy.wants_cpu() {
            // SAFETY: Callable from any context.
            unsafe { bindings::irqmod_start_threads() };
        }
        Ok(())
    }

    /// Forgets the former life, before the handler is registered.
    fn prepare(&self, irq: u32) {
        self.platform.vector.set(irq);
        self.moderator.prepare();
        let policy = self.moderator.choice().policy;
        self.platform.place.reset(policy.placement());
        // SAFETY: Without a request the poller is neither scheduled nor running, by the type
        // invariant, and the line outlives the request.
        unsafe { self.platform.poller.init(policy.budget(), on_poll::<S>) };
        self.set_requested(true);
    }

    fn set_requested(&self, requested: bool) {
        self.platform
            .locked(|| self.requested.store(requested, Relaxed));
    }

    /// A moderated line has its thread under every policy: then another one can be chosen without
    /// another request, which allocates while the device has no interrupt.
    ///
    /// # Safety
    ///
    /// As [`Line::request_as`]; `name` lives until the interrupt is freed.
    unsafe fn register(&self, irq: u32, flags: c_ulong, name: &CStr, moderated: bool) -> Result {
        let thread: bindings::irq_handler_t = if moderated {
            Some(on_thread::<S>)
        } else {
            None
        };
        // SAFETY: Always callable.
        let forced = unsafe { bindings::irqmod_forces_threads() };
        let handler: bindings::irq_handler_t = if forced && moderated {
            Some(on_forced_interrupt::<S>)
        } else {
            Some(on_interrupt::<S>)
        };
        // SAFETY: The cookie is a line that is pinned and that frees the interrupt before it goes,
        // and the handlers expect exactly that. `name` is valid by the contract of this function.
        to_result(unsafe {
            bindings::request_threaded_irq(
                irq,
                handler,
                thread,
                flags,
                name.as_char_ptr(),
                self.as_cookie(),
            )
        })
    }

    pub(super) fn as_cookie(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Stops moderation, frees the interrupt and joins everything that ran for it. May sleep;
    /// idempotent.
    ///
    /// If the source is reachable the line is left with a disable depth of zero, whoever owned it.
    pub fn free(self: Pin<&Self>) {
        let mut lifecycle = self.lifecycle.lock();
        let Some(request) = lifecycle.take() else {
            return;
        };
        if request.moderated {
            self.moderator.stop(&self.source, &self.platform);
        }
        // SAFETY: By the type invariant the handler was registered for this number and cookie.
        unsafe { bindings::free_irq(request.irq, self.as_cookie()) };
        self.set_requested(false);
        // INVARIANT: No handler, no request, and `stop` joined the poller.
        drop(request.name);
    }

    /// Keeps handler, thread and poller from draining, until [`Line::resume`]. May sleep;
    /// idempotent.
    ///
    /// Nothing happens to a line that is not requested, or requested plainly: free that one.
    pub fn pause(&self) {
        let lifecycle = self.lifecycle.lock();
        if lifecycle.as_ref().is_some_and(|request| request.moderated) {
            self.moderator.pause(&self.source, &self.platform);
        }
    }

    /// Ends a pause, if the source is reachable. May sleep; idempotent.
    pub fn resume(&self) {
        let lifecycle = self.lifecycle.lock();
        if lifecycle.as_ref().is_some_and(|request| request.moderated) {
            self.moderator.resume(&self.source, &self.platform);
        }
    }

    /// Runs `f` as the only drainer: handler and thread are joined and kept out, the poller is
    /// locked out.
    ///
    /// May sleep, but `f` must not. For time-outs and for reaping; works with or without a request.
    pub fn exclusive<R>(&self, f: impl FnOnce(&mut DrainRight<'_, S>) -> R) -> R {
        let lifecycle = self.lifecycle.lock();
        if lifecycle.is_some() {
            return self.moderator.exclusive(&self.source, &self.platform, f);
        }
        self.platform
            .locked(|| f(&mut DrainRight::new(&self.source)))
    }

    /// Runs `f` as the only drainer of a line without an interrupt, for queues that are polled.
    ///
    /// Softirq or task; does not sleep, and neither may `f`. `None` if the line is requested.
    pub fn poll<R>(&self, f: impl FnOnce(&mut DrainRight<'_, S>) -> R) -> Option<R> {
        self.platform.locked(|| {
            if self.requested.load(Relaxed) {
                return None;
            }
            Some(f(&mut DrainRight::new(&self.source)))
        })
    }
}

impl<S: Source> Deref for Line<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

#[pinned_drop]
impl<S: Source> PinnedDrop for Line<S> {
    fn drop(mut self: Pin<&mut Self>) {
        // Waits for readers and writers, who must not find a line that is going away.
        *self.as_mut().project().files = SetOnce::new();
        self.as_ref().free();
    }
}
