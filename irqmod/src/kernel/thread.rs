// SPDX-License-Identifier: GPL-2.0

//! Manners of an interrupt thread that has more work than a budget.
//!
//! An interrupt thread is born `SCHED_FIFO` 50 (49 beside a forced one). A resched point never yields to an ordinary task
//! from there: under a flood the thread only replaces the hard interrupt as the one who starves the
//! CPU. So a thread that used up a whole budget becomes an ordinary task until it found its queue
//! empty. The fast case, one batch a wake-up, keeps the latency of a real-time thread and pays
//! nothing.

use kernel::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

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
