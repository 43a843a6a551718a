// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: a static branch each while nobody traces, and none on the way of an interrupt that
//! is simply drained.
//!
//! C header: `rust/irqmod/trace.h`

use kernel::tracepoint::declare_trace;

use crate::{
    event::Event,
    time::Span, //
};

declare_trace! {
    /// # Safety
    ///
    /// None of these asks for anything.
    unsafe fn irqmod_defer(irq: u32, policy: u32, to: u32, found: u32);
    unsafe fn irqmod_poll(irq: u32, policy: u32, context: u32, found: u32);
    unsafe fn irqmod_empty(irq: u32, policy: u32, forgiven: bool);
    unsafe fn irqmod_rearm(irq: u32, policy: u32);
    unsafe fn irqmod_pause(irq: u32, policy: u32);
    unsafe fn irqmod_resume(irq: u32, policy: u32);
    unsafe fn irqmod_stop(irq: u32, policy: u32);
    unsafe fn irqmod_policy(irq: u32, policy: u32);
    unsafe fn irqmod_mask(irq: u32, how: u32);
    unsafe fn irqmod_unmask(irq: u32);
    unsafe fn irqmod_timer_arm(ns: u64);
    unsafe fn irqmod_timer_push(ns: u64);
    unsafe fn irqmod_timer_expire(lines: u32);
    unsafe fn irqmod_poll_after(irq: u32, ns: u64);
}

/// Something happened to line `irq`. Any context.
#[inline(always)]
pub(super) fn event(irq: u32, policy: u32, event: Event) {
    // CAST: Numbers of variants.
    // SAFETY: Callable from any context.
    unsafe {
        match event {
            Event::Defer { to, found } => irqmod_defer(irq, policy, to as u32, found),
            Event::Poll { context, found } => irqmod_poll(irq, policy, context as u32, found),
            Event::Empty { forgiven } => irqmod_empty(irq, policy, forgiven),
            Event::Rearm => irqmod_rearm(irq, policy),
            Event::Pause => irqmod_pause(irq, policy),
            Event::Resume => irqmod_resume(irq, policy),
            Event::Stop => irqmod_stop(irq, policy),
        }
    }
}

/// Line `irq` has another policy, of this number. Any context.
#[inline]
pub(super) fn policy(irq: u32, policy: u32) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_policy(irq, policy) };
}

/// How a line is disabled, as the tracepoint has it, if a task does it and waits.
pub(super) const SYNC: u32 = 2;

/// Line `irq` is disabled once. Any context.
#[inline]
pub(super) fn mask(irq: u32, how: u32) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_mask(irq, how) };
}

/// Line `irq` is enabled once. Any context.
#[inline]
pub(super) fn unmask(irq: u32) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_unmask(irq) };
}

/// The hold timer of this CPU is started. Any context.
#[inline]
pub(super) fn timer_arm(after: Span) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_timer_arm(after.as_nanos()) };
}

/// The hold timer of this CPU is started again. Hardirq.
#[inline]
pub(super) fn timer_push(after: Span) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_timer_push(after.as_nanos()) };
}

/// The hold timer of this CPU expired and released as many lines. Hardirq.
#[inline]
pub(super) fn timer_expire(lines: u32) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_timer_expire(lines) };
}

/// The timer of line `irq` is started. Any context.
#[inline]
pub(super) fn poll_after(irq: u32, after: Span) {
    // SAFETY: Callable from any context.
    unsafe { irqmod_poll_after(irq, after.as_nanos()) };
}
