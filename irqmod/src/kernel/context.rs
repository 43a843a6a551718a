// SPDX-License-Identifier: GPL-2.0

//! Questions about the context that runs now.

use kernel::bindings;

use crate::{
    observation::Glance,
    time::{
        Instant,
        Span, //
    },
};

/// A look at this CPU.
///
/// [`Glance::HARDIRQ`] is missing in a forced interrupt thread, and when the core replays a lazily
/// disabled line from its tasklet: a handler must not take it for granted.
#[inline]
pub(super) fn glance() -> Glance {
    // SAFETY: Reads flags of the current task and this CPU's preemption count; callable from any
    // context.
    Glance::from_bits_retain(unsafe { bindings::irqmod_glance() })
}

/// [`Glance::is_free`] of a look at this CPU, in fewer instructions.
#[inline]
pub(super) fn is_free() -> bool {
    // SAFETY: As above.
    unsafe { bindings::irqmod_is_free() }
}

/// The monotonic clock.
#[inline]
pub(super) fn now() -> Instant {
    // SAFETY: Callable from any context.
    Instant::from_nanos(unsafe { bindings::ktime_get_mono_fast_ns() })
}

/// A number that changes whenever this CPU switches tasks.
#[inline]
pub(super) fn switches() -> u64 {
    // SAFETY: Reads the current task's counters; callable from any context.
    unsafe { bindings::irqmod_switches() }
}

/// Sleeps for about `span`. Task context, without locks.
pub(super) fn sleep(span: Span) {
    // Divides a machine word: the kernel has no division of 64 bits on 32-bit machines.
    let nanos = usize::try_from(span.as_nanos()).unwrap_or(usize::MAX);
    let micros = (nanos / 1_000).max(1);
    // SAFETY: The caller is in task context and holds no lock.
    unsafe {
        bindings::usleep_range_state(
            micros,
            micros.saturating_add(micros / 4),
            bindings::TASK_IDLE,
        )
    };
}
