// SPDX-License-Identifier: GPL-2.0

//! A line's timer that schedules its softirq poller after a while.

use kernel::{
    bindings,
    prelude::*,
    types::Opaque, //
};

use crate::time::Span;

/// What a timer may be late by, to expire together with others.
const SLACK: Span = Span::from_micros(2);

/// Called with the timer, in hardirq.
pub(super) type Callback =
    unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart;

/// A timer of one shot.
///
/// # Invariants
///
/// `raw` is set up.
#[pin_data]
#[repr(transparent)]
pub(super) struct PollTimer {
    #[pin]
    raw: Opaque<bindings::hrtimer>,
}

// SAFETY: A timer is not bound to a thread.
unsafe impl Send for PollTimer {}

// SAFETY: All operations take the timer's lock.
unsafe impl Sync for PollTimer {}

/// Pinned: the poller stays on the CPU of its interrupt.
const MODE: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD;

impl PollTimer {
    /// Creates a timer that calls `callback`.
    pub(super) fn new(callback: Callback) -> impl PinInit<Self> {
        // CAST: A small constant.
        let clock = bindings::CLOCK_MONOTONIC as bindings::clockid_t;
        // INVARIANT: Set up here.
        pin_init!(Self {
            raw <- Opaque::ffi_init(move |raw| {
                // SAFETY: Pinned memory, valid for writes.
                unsafe { bindings::hrtimer_setup(raw, Some(callback), clock, MODE) }
            }),
        })
    }

    /// The timer that C knows as `raw`; the pointer is not looked at.
    pub(super) fn from_raw(raw: *mut bindings::hrtimer) -> *mut Self {
        // `PollTimer` is a transparent wrapper.
        raw.cast()
    }

    /// Starts the timer. Any context.
    pub(super) fn start(&self, after: Span) {
        let after = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: Set up by the type invariant.
        unsafe { bindings::hrtimer_start_range_ns(self.raw.get(), after, SLACK.as_nanos(), MODE) };
    }

    /// Stops the timer, or waits for its callback. Task.
    pub(super) fn cancel(&self) {
        // SAFETY: Set up by the type invariant; the caller may sleep.
        unsafe { bindings::hrtimer_cancel(self.raw.get()) };
    }
}
