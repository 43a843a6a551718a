// SPDX-License-Identifier: GPL-2.0

//! The hold timer of a CPU: lines that are held stay masked until it expires.
//!
//! A pinned hard timer: it expires in hardirq on its own CPU, so that nothing on that CPU joins the
//! list in the meantime. A CPU that goes down releases what it holds first.

use kernel::bindings;

use super::{
    context,
    percpu::{
        on_cpu,
        List,
        PerCpu, //
    },
    trace, //
};
use crate::{
    policy::timer::Expiry,
    time::Span, //
};

/// What a timer may be late by, to expire together with others.
const SLACK: Span = Span::from_micros(2);

/// Whether the timer of `cpu` will expire. On that CPU, interrupts off.
pub(super) fn is_running(cpu: &PerCpu) -> bool {
    // SAFETY: Set up with the CPU; only reads.
    unsafe { bindings::irqmod_hrtimer_is_queued(cpu.hold_timer()) }
}

/// Starts the timer of this CPU, if the CPU is ready. Any context.
pub(super) fn arm(after: Span) {
    PerCpu::with_this(|this| {
        if this.locked(|lists| lists.is_ready()) {
            trace::timer_arm(after);
            start(this, after);
        }
    });
}

/// Tells the policy that nothing is held on this CPU. Any context.
pub(super) fn forget() {
    // SAFETY: What the policy keeps knows nothing of where it is kept.
    unsafe { on_cpu(|cpu| cpu.timer.on_release()) };
}

/// Starts the timer of this CPU. Interrupts off.
fn start(this: &PerCpu, after: Span) {
    let after = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
    // SAFETY: Set up with the CPU.
    unsafe {
        bindings::hrtimer_start_range_ns(
            this.hold_timer(),
            after,
            SLACK.as_nanos(),
            bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD,
        )
    };
}

/// Unmasks all lines that this CPU holds, and says how many. Interrupts off, or no line joins any more.
fn release_all(this: &PerCpu) -> u32 {
    let mut lines = 0;
    while let Some(taken) = this.locked(|lists| lists.take_first(List::Held)) {
        let member = taken.member();
        // SAFETY: A line that is requested, as it was on the list.
        unsafe { (member.ops().hold_end)(member) };
        this.locked(|lists| taken.end(lists));
        lines += 1;
    }
    lines
}

/// The CPU is going down, and not ready any more: stops the timer and releases what it holds. Task,
/// on that CPU.
pub(super) fn end(this: &PerCpu) {
    // SAFETY: Set up with the CPU, whose lock is not held.
    unsafe { bindings::hrtimer_cancel(this.hold_timer()) };
    PerCpu::with_this(|this| {
        release_all(this);
    });
    forget();
}

/// The timer of a CPU expires. Hardirq on that CPU.
///
/// # Safety
///
/// `timer` is the hold timer of a CPU.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_on_hold_timer(
    timer: *mut bindings::hrtimer,
) -> bindings::hrtimer_restart {
    // SAFETY: By the contract.
    let this = unsafe { PerCpu::of_hold_timer(timer) };
    // SAFETY: What the policy keeps knows nothing of where it is kept.
    match unsafe { on_cpu(|cpu| cpu.timer.on_expiry(context::now())) } {
        Expiry::Release => {
            let lines = release_all(this);
            trace::timer_expire(lines);
        }
        Expiry::Push(span) => {
            trace::timer_push(span);
            start(this, span);
        }
    }
    bindings::hrtimer_restart::HRTIMER_NORESTART
}
