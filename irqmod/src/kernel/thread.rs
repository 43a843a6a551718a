// SPDX-License-Identifier: GPL-2.0

//! What an interrupt thread does beside draining: manners if it has more work than a budget, and
//! where it runs.
//!
//! An interrupt thread is born `SCHED_FIFO` 50 (49 beside a forced one). A resched point never yields to an ordinary task
//! from there: under a flood the thread only replaces the hard interrupt as the one who starves the
//! CPU. So a thread that used up a whole budget becomes an ordinary task until it found its queue
//! empty. The fast case, one batch a wake-up, keeps the latency of a real-time thread and pays
//! nothing.
//!
//! The core keeps such a thread on the CPU that its interrupt is sent to: whenever that changes, the
//! thread moves itself before it sleeps again. A thread that is spread allows itself more when it is
//! woken, and again after the core has taken that back.

use kernel::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::verdict::Placement;

/// Nice value of a thread in overload.
///
/// Weight 9548 to the 1024 of an ordinary task. Four such threads and one task on a CPU leave the
/// task 1024 / (4 * 9548 + 1024) = 2.6 %, so a slice of 3 ms about every 115 ms, and cost
/// completions no more than that.
const OVERLOAD_NICE: i32 = -10;

/// What an interrupt thread that runs as an ordinary task now was before; written by that thread
/// only.
pub(super) struct Manners {
    /// The real-time priority to give back; 0 is none.
    taken: Atomic<u32>,
}

impl Manners {
    /// Creates the manners of a thread that has its usual priority.
    pub(super) fn new() -> Self {
        Self {
            taken: Atomic::new(0),
        }
    }

    /// A resched point between two budgets of the interrupt thread.
    pub(super) fn yield_to_tasks(&self) {
        // SAFETY: Always callable.
        let priority = unsafe { bindings::irqmod_current_fifo_priority() };
        if priority != 0 {
            self.demote(priority);
        }
        // SAFETY: The caller is in task context and holds no lock.
        unsafe { bindings::irqmod_cond_resched() };
    }

    fn demote(&self, priority: u32) {
        // SAFETY: Always callable.
        let current = unsafe { bindings::get_current() };
        // SAFETY: `current` is the running task and this is task context.
        unsafe { bindings::sched_set_normal(current, OVERLOAD_NICE) };
        self.taken.store(priority, Relaxed);
    }

    /// Gives the thread back what [`Manners::yield_to_tasks`] took, once its queue is empty.
    pub(super) fn restore(&self) {
        let priority = self.taken.load(Relaxed);
        if priority != 0 {
            self.taken.store(0, Relaxed);
            // SAFETY: Task context; the priority is one that the scheduler gave.
            unsafe { bindings::irqmod_current_set_fifo(priority) };
        }
    }
}

/// Where an interrupt thread may run.
pub(super) struct Place {
    /// Whether it shall be spread. Written while the line is not requested or paused.
    spread: Atomic<bool>,
    /// Whether it is, as far as it knows. Written by the thread while there is one.
    is_spread: Atomic<bool>,
}

impl Place {
    /// Creates the place of a thread that follows its interrupt.
    pub(super) fn new() -> Self {
        Self {
            spread: Atomic::new(false),
            is_spread: Atomic::new(false),
        }
    }

    /// Forgets the thread of the last request. The next one begins as one that follows.
    pub(super) fn reset(&self, placement: Placement) {
        self.choose(placement);
        self.is_spread.store(false, Relaxed);
    }

    /// Chooses for a thread that does not run. True if it has to be woken to know.
    pub(super) fn choose(&self, placement: Placement) -> bool {
        let spread = placement == Placement::Spread;
        self.spread.store(spread, Relaxed);
        spread != self.is_spread.load(Relaxed)
    }

    /// Goes where the thread of line `irq`, which is the caller, may run.
    pub(super) fn take(&self, irq: u32) {
        let spread = self.spread.load(Relaxed);
        if !spread && !self.is_spread.load(Relaxed) {
            return;
        }
        // SAFETY: Task context; the line is requested, or it had no thread.
        if unsafe { bindings::irqmod_place_current(irq, spread) } {
            self.is_spread.store(spread, Relaxed);
        }
    }
}
