// SPDX-License-Identifier: GPL-2.0

//! The completion thread of a CPU: serves the lines that were deferred to the CPU.
//!
//! A task that precedes ordinary ones and never leaves its CPU. It serves one line after the other,
//! in pieces between which it can be preempted, and sleeps when the ledger says that others are due:
//! that, and not its priority, is what leaves them their share. A CPU that goes down parks it, which
//! first moves its lines to their softirq pollers.

use kernel::{
    bindings,
    prelude::*, //
};

use super::{
    context, hold,
    percpu::{
        on_cpu,
        List,
        Lists,
        PerCpu,
        Taken, //
    },
};
use crate::{
    moderator::Pass,
    time::Span, //
};

/// How often a thread that rests looks whether somebody still wants the CPU. Two context switches
/// should be little beside it.
const STEP: Span = Span::from_micros(50);

/// Wakes the thread of a CPU that is ready and has lines to serve now. Any context.
pub(super) fn wake(lists: &Lists<'_>) {
    // SAFETY: The CPU is ready, and the lock held: its thread exists, and takes the lock to change
    // the first before it ends.
    unsafe { bindings::wake_up_process(lists.thread()) };
}

/// Tells the policy that this CPU has nothing to serve. Any context.
pub(super) fn forget() {
    on_cpu(|cpu| cpu.ledger.leave(context::now()));
}

/// Whether the thread of CPU `number` has something to do. Preemption off.
#[kernel::macros::export]
extern "C" fn irqmod_cpu_should_serve(number: c_uint) -> c_int {
    let has_lines = PerCpu::of(number).locked(|lists| !lists.is_empty(List::Served));
    c_int::from(has_lines)
}

/// One piece of work of the thread of CPU `number`, and the rest that is due after it.
#[kernel::macros::export]
extern "C" fn irqmod_cpu_serve(number: c_uint) {
    let this = PerCpu::of(number);
    let Some(taken) = this.locked(|lists| lists.take_first(List::Served)) else {
        return;
    };
    let member = taken.member();
    let began = context::now();
    let budget = on_cpu(|cpu| cpu.ledger.piece());
    // SAFETY: A line that is requested, as it was on the list.
    let (pass, found) = unsafe { (member.ops().piece)(member, budget) };
    let now = context::now();
    // SAFETY: Callable from any context.
    let is_contended = unsafe { bindings::irqmod_cpu_is_contended() };
    let (rest, turn_is_over) = on_cpu(|cpu| {
        let rest = cpu.ledger.on_piece(began, now, found, is_contended);
        (rest, cpu.ledger.turn_is_over())
    });
    put_back(this, taken, &pass, turn_is_over);
    match (pass, rest) {
        (_, Some(span)) | (Pass::Rest(span), None) => rest_for(span),
        _ => go_on(),
    }
    leave_if_over(this);
}

/// With nothing more to serve the CPU's handlers drain again. Not before a rest that is due: what
/// comes meanwhile would take it.
fn leave_if_over(this: &PerCpu) {
    this.locked(|lists| {
        if lists.is_empty(List::Served) {
            on_cpu(|cpu| cpu.ledger.leave(context::now()));
        }
    });
}

/// Lets those run that precede this thread, and RCU see that it can.
fn go_on() {
    // SAFETY: Task context, no lock is held.
    unsafe { bindings::irqmod_cond_resched() };
}

/// Keeps a line that is not finished.
fn put_back(this: &PerCpu, taken: Taken, pass: &Pass, turn_is_over: bool) {
    this.locked(|lists| {
        match pass {
            Pass::Again if !turn_is_over => lists.push_front(List::Served, taken.member()),
            Pass::Again | Pass::Rest(_) => lists.push_back(List::Served, taken.member()),
            Pass::Done => (),
        }
        taken.end(lists);
    });
}

/// Sleeps. To park, or a CPU that nobody else wants, ends it early; a line that joins does not.
fn rest_for(span: Span) {
    // SAFETY: Task context, no lock is held.
    unsafe { bindings::irqmod_rest(span.as_nanos(), STEP.as_nanos()) };
}

/// CPU `number` has come up. Its thread, on it.
#[kernel::macros::export]
extern "C" fn irqmod_cpu_online(number: c_uint) {
    PerCpu::of(number).locked(|lists| lists.set_ready(true));
}

/// CPU `number` goes down, or its thread ends as there is none for another CPU. Its thread, on it.
#[kernel::macros::export]
extern "C" fn irqmod_cpu_offline(number: c_uint) {
    let this = PerCpu::of(number);
    this.locked(|lists| lists.set_ready(false));
    while let Some(taken) = this.locked(|lists| lists.take_first(List::Served)) {
        let member = taken.member();
        // SAFETY: A line that is requested, as it was on the list.
        unsafe { (member.ops().poll)(member) };
        this.locked(|lists| taken.end(lists));
    }
    hold::end(this);
    forget();
}
