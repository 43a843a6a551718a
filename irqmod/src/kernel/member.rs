// SPDX-License-Identifier: GPL-2.0

//! A line as the lists of the CPUs know it: without its type.
//!
//! A line is on one list at most, because one owner at most has its source. The thread of a CPU and
//! a hold timer take a line off before they go on with it: by the time they return it may be on
//! another CPU's list already.

use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

use super::{
    hold,
    percpu::{
        List,
        PerCpu, //
    },
    serve, //
};
use crate::{
    moderator::Pass,
    Budget, //
};

/// What can be done with a line of any type. The member is that of a requested line.
pub(super) struct Ops {
    /// One piece of the CPU's thread: what to do next, and how many completions were found.
    pub(super) piece: unsafe fn(&Member, Budget) -> (Pass, u32),
    /// The hold is over. Interrupts off.
    pub(super) hold_end: unsafe fn(&Member),
    /// The softirq poller is to go on.
    pub(super) poll: unsafe fn(&Member),
    /// The interrupt thread is to go on. Any context.
    pub(super) wake: unsafe fn(&Member),
}

/// How long to wait before looking again whether a line is let go. A piece takes as long.
const PATIENCE: Delta = Delta::from_micros(50);

/// What links a line into a list.
///
/// # Invariants
///
/// `node` is initialised. It is on a list of CPU `cpu` or on none, and changed under that CPU's
/// lock. `cpu` is the number of a possible CPU.
#[pin_data]
pub(super) struct Member {
    #[pin]
    node: Opaque<bindings::list_head>,
    /// Written by the owner of the source, under the lock of this CPU.
    cpu: Atomic<u32>,
    /// Threads and timers that have the line off a list.
    busy: Atomic<i32>,
    ops: &'static Ops,
}

// SAFETY: A member is not bound to a thread.
unsafe impl Send for Member {}

// SAFETY: `node` is changed under a lock by the type invariant; the rest is atomic or constant.
unsafe impl Sync for Member {}

impl Member {
    pub(super) fn new(ops: &'static Ops) -> impl PinInit<Self> {
        // INVARIANT: On no list, and CPU 0 is what the kernel boots on.
        pin_init!(Self {
            node <- Opaque::ffi_init(|node| {
                // SAFETY: Pinned memory, valid for writes.
                unsafe { bindings::INIT_LIST_HEAD(node) }
            }),
            cpu: Atomic::new(0),
            busy: Atomic::new(0),
            ops,
        })
    }

    pub(super) fn node(&self) -> *mut bindings::list_head {
        self.node.get()
    }

    /// The member whose node `node` is.
    ///
    /// # Safety
    ///
    /// `node` is one.
    pub(super) unsafe fn of_node(node: *mut bindings::list_head) -> NonNull<Self> {
        let node: *mut Opaque<bindings::list_head> = node.cast();
        // SAFETY: By the contract.
        let member = unsafe { kernel::container_of!(node, Self, node) };
        // SAFETY: A member is nowhere near null.
        unsafe { NonNull::new_unchecked(member) }
    }

    pub(super) fn ops(&self) -> &'static Ops {
        self.ops
    }

    /// `cpu` is about to have the line on one of its lists.
    pub(super) fn set_cpu(&self, cpu: &PerCpu) {
        // INVARIANT: A CPU that has a `PerCpu` is possible.
        self.cpu.store(cpu.number(), Relaxed);
    }

    /// Somebody goes on with the line, off the lists.
    pub(super) fn acquire(&self) {
        self.busy.add(1, Relaxed);
    }

    /// Ends [`acquire`](Self::acquire).
    pub(super) fn release(&self) {
        self.busy.fetch_sub(1, Release);
    }

    /// Puts the line on a list of this CPU. Any context.
    ///
    /// Refuses while the CPU is not ready, and for a hold that no timer would end.
    ///
    /// # Safety
    ///
    /// The line is requested, and the caller acts for the owner of its source, who has not put it
    /// on a list yet.
    pub(super) unsafe fn join(&self, list: List) -> Result<(), NotReady> {
        PerCpu::with_this(|this| {
            this.locked(|lists| {
                let ends = list == List::Served || hold::is_running(this);
                if !lists.is_ready() || !ends {
                    return Err(NotReady);
                }
                let wakes = list == List::Served && lists.is_empty(list);
                // SAFETY: By the contract; only an owner's line is on a list.
                unsafe { lists.push_back(list, self) };
                if wakes {
                    // SAFETY: Asked above, under the same lock.
                    unsafe { serve::wake(lists) };
                }
                Ok(())
            })
        })
    }

    /// Takes the line off its list, or waits for who has taken it off. Task.
    ///
    /// # Safety
    ///
    /// Nobody begins to [`join`](Self::join) until this returns.
    pub(super) unsafe fn leave(&self) {
        loop {
            // SAFETY: Possible by the type invariant.
            let cpu = unsafe { PerCpu::of(self.cpu.load(Relaxed)) };
            let busy = cpu.locked(|lists| {
                // SAFETY: By the type invariant, and by the contract `cpu` is still the one: who
                // has the line off a list puts it back on the same CPU's.
                unsafe { lists.remove(self) };
                self.busy.load(Acquire) != 0
            });
            if !busy {
                return;
            }
            fsleep(PATIENCE);
        }
    }
}

/// The softirq poller has to stand in.
pub(super) struct NotReady;
