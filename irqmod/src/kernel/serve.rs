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
    policy::Cpu,
    time::Span, //
};

/// After how much of its rest a thread looks, once, whether somebody still wants the CPU. Two context
/// switches should be little beside it: where a CPU is not given all of its time, as that of a
/// guest, more looks leave nothing of the rest.
const LOOK: Span = Span::from_micros(50);

/// Wakes the thread of a CPU that has lines to serve now. Any context.
///
/// # Safety
///
/// The CPU is ready.
pub(super) unsafe fn wake(lists: &Lists<'_>) {
    // SAFETY: Ready by the contract, and the lock held: the thread exists, and takes the lock to
    // change the first before it ends.
    unsafe { bindings::wake_up_process(lists.thread()) };
}

/// Tells the policy that this CPU has nothing to serve. Any context.
pub(super) fn forget() {
    // SAFETY: The ledger knows nothing of where it is kept.
    unsafe { on_cpu(|cpu| cpu.ledger.leave(context::now())) };
}

/// Whether the thread of CPU `number` has something to do. Preemption off.
///
/// # Safety
///
/// The CPU is possible.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_should_serve(number: c_uint) -> c_int {
    // SAFETY: By the contract.
    let this = unsafe { PerCpu::of(number) };
    let has_lines = this.locked(|lists| !lists.is_empty(List::Served));
    c_int::from(has_lines)
}

/// The thread of CPU `number` has something to do. That thread, on its CPU.
///
/// # Safety
///
/// The CPU is possible.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_serve(number: c_uint) {
    // SAFETY: By the contract.
    let this = unsafe { PerCpu::of(number) };
    while serve(this) {}
}

/// One piece of work, and the rest that is due after it. Whether to go on at once.
fn serve(this: &PerCpu) -> bool {
    let Some(taken) = this.locked(|lists| lists.take_first(List::Served)) else {
        return false;
    };
    let member = taken.member();
    let began = context::now();
    // SAFETY: The ledger knows nothing of where it is kept.
    let budget = unsafe { on_cpu(|cpu| cpu.ledger.piece()) };
    // SAFETY: A line that is requested, as it was on the list.
    let (pass, found) = unsafe { (member.ops().piece)(member, budget) };
    let now = context::now();
    let is_contended = is_contended();
    let book = |cpu: &mut Cpu| {
        let rest = cpu.ledger.on_piece(began, now, found, is_contended);
        (rest, cpu.ledger.turn_is_over())
    };
    // SAFETY: As above.
    let (rest, turn_is_over) = unsafe { on_cpu(book) };
    let rest = match (&pass, rest) {
        (Pass::Rest(span), None) => Some(*span),
        _ => rest,
    };
    this.locked(|lists| {
        put_back(lists, taken, &pass, turn_is_over);
        if rest.is_none() {
            leave_if_over(lists);
        }
    });
    let Some(span) = rest else {
        return go_on();
    };
    rest_for(span);
    this.locked(leave_if_over);
    false
}

/// With nothing more to serve the CPU's handlers drain again. Not before a rest that is due: what
/// comes meanwhile would take it.
fn leave_if_over(lists: &Lists<'_>) {
    if lists.is_empty(List::Served) {
        forget();
    }
}

/// Lets those run that precede this thread, and RCU see that it can. Whether it may go on.
fn go_on() -> bool {
    // SAFETY: Task context, no lock is held.
    unsafe { bindings::irqmod_go_on() }
}

/// Keeps a line that is not finished.
fn put_back(lists: &Lists<'_>, taken: Taken, pass: &Pass, turn_is_over: bool) {
    let member = taken.member();
    match pass {
        // SAFETY: Its source is owned still, and nobody but who took the line off acts for the owner:
        // it is on no list, and its request does not end before `end`.
        Pass::Again if !turn_is_over => unsafe { lists.push_front(List::Served, member) },
        // SAFETY: As above.
        Pass::Again | Pass::Rest(_) => unsafe { lists.push_back(List::Served, member) },
        Pass::Done => (),
    }
    taken.end(lists);
}

/// Sleeps. To park, or a CPU that nobody else wants, ends it early; a line that joins does not.
fn rest_for(span: Span) {
    let until_look = span.min(LOOK);
    sleep_for(until_look);
    let left = span.minus(until_look);
    if left > Span::ZERO && is_contended() {
        sleep_for(left);
    }
}

fn sleep_for(span: Span) {
    // SAFETY: Task context, no lock is held.
    unsafe { bindings::irqmod_rest(span.as_nanos()) };
}

/// Whether another task is runnable on this CPU. The thread of this CPU.
fn is_contended() -> bool {
    // SAFETY: Callable from any context.
    unsafe { bindings::irqmod_cpu_is_contended() }
}

/// CPU `number` has come up. Its thread, on it.
///
/// # Safety
///
/// The CPU is possible, and `thread` is its thread, which does not end before the CPU is made
/// offline.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_online(number: c_uint) {
    // SAFETY: By the contract.
    let this = unsafe { PerCpu::of(number) };
    // SAFETY: By the contract.
    this.locked(|lists| unsafe { lists.set_ready(true) });
}

/// CPU `number` goes down, or its thread ends as there is none for another CPU. Its thread, on it.
///
/// # Safety
///
/// The CPU is possible.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_offline(number: c_uint) {
    // SAFETY: By the contract.
    let this = unsafe { PerCpu::of(number) };
    // SAFETY: That it is not ready promises nothing.
    this.locked(|lists| unsafe { lists.set_ready(false) });
    while let Some(taken) = this.locked(|lists| lists.take_first(List::Served)) {
        let member = taken.member();
        // SAFETY: A line that is requested, as it was on the list.
        unsafe { (member.ops().poll)(member) };
        this.locked(|lists| taken.end(lists));
    }
    hold::end(this);
    forget();
}
