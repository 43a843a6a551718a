// SPDX-License-Identifier: GPL-2.0

//! What the library has of each CPU: the policies' state, a completion list with a thread that
//! serves it, and a hold list with a timer that ends it.
//!
//! The storage is a per-CPU variable of C (`rust/irqmod/cpu.c`), set up before the second CPU
//! starts. Threads are started once a line is requested whose policy needs them; until they run, and
//! while their CPU goes down, the CPU is not *ready* and the softirq poller stands in.

use core::{
    mem,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    types::Opaque, //
};

use super::member::Member;
use crate::{
    observation::Glance,
    policy::Cpu, //
};

/// One CPU.
///
/// # Invariants
///
/// Is part of the per-CPU variable, which [`irqmod_cpu_init`] has set up.
#[repr(transparent)]
pub(super) struct PerCpu {
    raw: Opaque<bindings::irqmod_cpu>,
}

// SAFETY: What several CPUs access is only accessed under `lock`; see the C header.
unsafe impl Sync for PerCpu {}

/// One of the lists of a CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// Served by the CPU's thread.
    Served,
    /// Held until the CPU's timer expires.
    Held,
}

impl PerCpu {
    /// The CPU that was set up as `raw`.
    ///
    /// # Safety
    ///
    /// `raw` is part of the per-CPU variable.
    unsafe fn from_raw<'a>(raw: *mut bindings::irqmod_cpu) -> &'a Self {
        // SAFETY: Static by the contract; `PerCpu` is a transparent wrapper.
        unsafe { &*raw.cast() }
    }

    /// CPU `number`.
    ///
    /// # Safety
    ///
    /// The CPU is possible.
    pub(super) unsafe fn of(number: u32) -> &'static Self {
        // SAFETY: By the contract.
        let raw = unsafe { bindings::irqmod_cpu_of(number) };
        // SAFETY: As the helper says.
        unsafe { Self::from_raw(raw) }
    }

    /// The CPU whose hold timer `timer` is.
    ///
    /// # Safety
    ///
    /// `timer` is the hold timer of a CPU.
    pub(super) unsafe fn of_hold_timer(timer: *mut bindings::hrtimer) -> &'static Self {
        // SAFETY: By the contract.
        let raw = unsafe { kernel::container_of!(timer, bindings::irqmod_cpu, hold_timer) };
        // SAFETY: By the contract.
        unsafe { Self::from_raw(raw) }
    }

    /// Runs `f` with this CPU, interrupts off.
    #[inline]
    pub(super) fn with_this<R>(f: impl FnOnce(&'static Self) -> R) -> R {
        let mut flags = 0;
        // SAFETY: `flags` is valid for a write. Undone below by the same context.
        let raw = unsafe { bindings::irqmod_cpu_get(&mut flags) };
        // SAFETY: As the helper says.
        let result = f(unsafe { Self::from_raw(raw) });
        // SAFETY: `flags` is from the call above.
        unsafe { bindings::irqmod_cpu_put(flags) };
        result
    }

    pub(super) fn number(&self) -> u32 {
        // SAFETY: Never changes after the set-up.
        unsafe { (*self.raw.get()).number }
    }

    pub(super) fn hold_timer(&self) -> *mut bindings::hrtimer {
        // SAFETY: Computes the address of a field.
        unsafe { &raw mut (*self.raw.get()).hold_timer }
    }

    /// Runs `f` under the lock, interrupts off. Any context, not recursive.
    pub(super) fn locked<R>(&self, f: impl FnOnce(&Lists<'_>) -> R) -> R {
        // SAFETY: Set up by the type invariant.
        let flags = unsafe { bindings::irqmod_cpu_lock(self.raw.get()) };
        let result = f(&Lists(self));
        // SAFETY: Locked above.
        unsafe { bindings::irqmod_cpu_unlock(self.raw.get(), flags) };
        result
    }
}

/// A CPU whose lock is held.
pub(super) struct Lists<'a>(&'a PerCpu);

impl Lists<'_> {
    pub(super) fn is_ready(&self) -> bool {
        // SAFETY: The lock is held.
        unsafe { (*self.0.raw.get()).ready }
    }

    /// Says whether the thread serves and the hold timer may run.
    ///
    /// # Safety
    ///
    /// A CPU that is ready has its thread.
    pub(super) unsafe fn set_ready(&self, ready: bool) {
        // SAFETY: The lock is held.
        unsafe { (*self.0.raw.get()).ready = ready };
    }

    /// The thread of a CPU that is ready.
    pub(super) fn thread(&self) -> *mut bindings::task_struct {
        // SAFETY: Written before the CPU becomes ready and after it ceased to be, and the lock is
        // held.
        unsafe { (*self.0.raw.get()).thread }
    }

    /// The anchor of a list.
    fn head(&self, list: List) -> *mut bindings::list_head {
        let raw = self.0.raw.get();
        match list {
            // SAFETY: Computes the address of a field.
            List::Served => unsafe { &raw mut (*raw).served },
            // SAFETY: As above.
            List::Held => unsafe { &raw mut (*raw).held },
        }
    }

    pub(super) fn is_empty(&self, list: List) -> bool {
        let head = self.head(list);
        // SAFETY: The lock is held, and the list was set up.
        unsafe { core::ptr::eq((*head).next, head) }
    }

    /// How many lines are on a list.
    pub(super) fn len(&self, list: List) -> usize {
        let head = self.head(list);
        let mut lines = 0;
        // SAFETY: The lock is held, and the list was set up.
        let mut node = unsafe { (*head).next };
        while !core::ptr::eq(node, head) {
            lines += 1;
            // SAFETY: As above: an entry of the list.
            node = unsafe { (*node).next };
        }
        lines
    }

    /// Appends a line.
    ///
    /// # Safety
    ///
    /// `member` is that of a requested line, and on no list.
    pub(super) unsafe fn push_back(&self, list: List, member: &Member) {
        member.set_cpu(self.0);
        // SAFETY: The lock is held; by the contract the entry is on no list, and a line leaves all
        // lists before its request ends.
        unsafe { bindings::list_add_tail(member.node(), self.head(list)) };
    }

    /// As [`push_back`](Self::push_back), but in front of all others.
    ///
    /// # Safety
    ///
    /// As for [`push_back`](Self::push_back).
    pub(super) unsafe fn push_front(&self, list: List, member: &Member) {
        member.set_cpu(self.0);
        // SAFETY: As above.
        unsafe { bindings::irqmod_list_add(member.node(), self.head(list)) };
    }

    /// Takes `member` off its list, if it is on one.
    ///
    /// # Safety
    ///
    /// `member` is on no list of another CPU.
    pub(super) unsafe fn remove(&self, member: &Member) {
        // SAFETY: The lock is held, and by the contract it is the one of the entry's list.
        unsafe { bindings::irqmod_list_del_init(member.node()) };
    }

    /// Takes the first line off, and keeps it from going until [`Member::release`].
    pub(super) fn take_first(&self, list: List) -> Option<Taken> {
        if self.is_empty(list) {
            return None;
        }
        // SAFETY: The lock is held; what follows the anchor is the node of a member.
        let member = unsafe { Member::of_node((*self.head(list)).next) };
        // SAFETY: A line leaves all lists before it goes, which takes the lock.
        let taken = unsafe { member.as_ref() };
        // SAFETY: It is on a list of this CPU.
        unsafe { self.remove(taken) };
        taken.acquire();
        Some(Taken(member))
    }
}

/// A line that was taken off a list: it does not go until [`Taken::end`].
pub(super) struct Taken(NonNull<Member>);

impl Taken {
    pub(super) fn member(&self) -> &Member {
        // SAFETY: A line that goes waits for `end`.
        unsafe { self.0.as_ref() }
    }

    /// The last that is done with the line, under the lock of the CPU that it was taken from.
    pub(super) fn end(self, _lists: &Lists<'_>) {
        self.member().release();
    }
}

/// Runs `f` on the policies' state of this CPU, interrupts off.
///
/// # Safety
///
/// `f` does not get here again.
#[inline]
pub(super) unsafe fn on_cpu<R>(f: impl FnOnce(&mut Cpu) -> R) -> R {
    PerCpu::with_this(|this| {
        let raw = this.raw.get();
        // SAFETY: Set up as a `Cpu`. Interrupts are off, only this CPU gets here, and by the
        // contract not recursively: nobody else has a reference.
        let cpu = unsafe { &mut *(&raw mut (*raw).policy).cast::<Cpu>() };
        let result = f(cpu);
        let glance = glance_of(cpu);
        // SAFETY: Only this CPU accesses it, with interrupts off or by a single instruction.
        unsafe { (&raw mut (*raw).glance).write_volatile(glance.bits()) };
        result
    })
}

/// What every handler on the CPU is to see at once.
#[inline]
fn glance_of(cpu: &Cpu) -> Glance {
    if cpu.ledger.is_deferring() {
        Glance::DEFERRING
    } else {
        Glance::empty()
    }
}

static_assertions::const_assert!(
    mem::size_of::<Cpu>() <= mem::size_of_val(&ROOM) && mem::align_of::<Cpu>() <= 8
);

/// As much as C has for a [`Cpu`].
const ROOM: [u64; 64] = [0; 64];

/// Writes the state of a CPU that has seen no interrupt.
///
/// # Safety
///
/// `raw` is a part of the per-CPU variable, and nobody else uses it yet: a second CPU is still to
/// come.
#[kernel::macros::export]
unsafe extern "C" fn irqmod_cpu_init(raw: *mut bindings::irqmod_cpu) {
    // SAFETY: Room enough, and aligned, as asserted above; nobody else has it by the contract.
    unsafe { (&raw mut (*raw).policy).cast::<Cpu>().write(Cpu::new()) };
}
