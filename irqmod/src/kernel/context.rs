// SPDX-License-Identifier: GPL-2.0

//! Questions about the context that runs now.

use kernel::bindings;

/// Whether the scheduler wants this CPU: a best-effort pressure signal, no bound on anything.
#[inline]
pub(super) fn need_resched() -> bool {
    // SAFETY: Reads a flag of the current task; callable from any context.
    unsafe { bindings::irqmod_need_resched() }
}

/// Whether this is a hard interrupt.
///
/// False in a forced interrupt thread, and false when the core replays a lazily disabled line from
/// its tasklet: a handler must not take `true` for granted.
#[inline]
pub(super) fn in_hardirq() -> bool {
    // SAFETY: Reads this CPU's preemption count; callable from any context.
    unsafe { bindings::irqmod_in_hardirq() }
}
