// SPDX-License-Identifier: GPL-2.0

//! Manners of an interrupt thread that has more work than a budget.
//!
//! An interrupt thread is born `SCHED_FIFO` 50. A resched point never yields to an ordinary task
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

/// Whether an interrupt thread runs as an ordinary task now; written by that thread only.
pub(super) struct Manners {
    demoted: Atomic<bool>,
}

impl Manners {
    /// Creates the manners of a thread that has its usual priority.
    pub(super) fn new() -> Self {
        Self {
            demoted: Atomic::new(false),
        }
    }

    /// A resched point between two budgets of the interrupt thread.
    pub(super) fn yield_to_tasks(&self) {
        // SAFETY: Always callable.
        if unsafe { bindings::irqmod_current_is_fifo() } {
            self.demote();
        }
        // SAFETY: The caller is in task context and holds no lock.
        unsafe { bindings::irqmod_cond_resched() };
    }

    fn demote(&self) {
        // SAFETY: Always callable.
        let current = unsafe { bindings::get_current() };
        // SAFETY: `current` is the running task and this is task context.
        unsafe { bindings::sched_set_normal(current, OVERLOAD_NICE) };
        self.demoted.store(true, Relaxed);
    }

    /// Gives the thread back what [`Manners::yield_to_tasks`] took, once its queue is empty.
    pub(super) fn restore(&self) {
        if self.demoted.load(Relaxed) {
            self.demoted.store(false, Relaxed);
            // SAFETY: Always callable.
            let current = unsafe { bindings::get_current() };
            // SAFETY: `current` is the running task, an interrupt thread in its handler.
            unsafe { bindings::sched_set_fifo(current) };
        }
    }
}
