// SPDX-License-Identifier: GPL-2.0

//! A line's work item, on a workqueue of the line's own: any CPU may run it.
//!
//! The item is part of the line, so that nothing is allocated in a handler. The queue is made when
//! a policy is chosen that wants one.

use kernel::{
    bindings,
    prelude::*,
    static_lock_class,
    sync::SetOnce,
    types::Opaque, //
};

/// Called with the item by a worker.
pub(super) type Callback = unsafe extern "C" fn(*mut bindings::work_struct);

/// A work item with its queue.
///
/// # Invariants
///
/// `raw` is initialised.
#[pin_data]
pub(super) struct Work {
    #[pin]
    raw: Opaque<bindings::work_struct>,
    queue: SetOnce<Queue>,
}

// SAFETY: A work item is not bound to a thread.
unsafe impl Send for Work {}

// SAFETY: All operations on a work item are atomic.
unsafe impl Sync for Work {}

impl Work {
    /// Creates an item that `callback` runs.
    pub(super) fn new(callback: Callback) -> impl PinInit<Self> {
        // INVARIANT: Initialised here.
        pin_init!(Self {
            raw <- Opaque::ffi_init(move |raw| {
                let (name, key) = (c"irqmod_work", static_lock_class!());
                // SAFETY: Pinned memory, valid for writes; name and key are static.
                unsafe {
                    bindings::init_work_with_key(
                        raw,
                        Some(callback),
                        false,
                        name.as_char_ptr(),
                        key.as_ptr(),
                    )
                }
            }),
            queue: SetOnce::new(),
        })
    }

    /// The item that C knows as `raw`.
    ///
    /// # Safety
    ///
    /// There is one.
    pub(super) unsafe fn from_raw(raw: *mut bindings::work_struct) -> *mut Self {
        let raw: *mut Opaque<bindings::work_struct> = raw.cast();
        // SAFETY: By the contract.
        unsafe { kernel::container_of!(raw, Self, raw) }
    }

    /// Makes the queue, unless there is one. May sleep; without locks, as it allocates and starts a
    /// thread: reclaim may wait for the very device whose time-out would take the lock.
    pub(super) fn prepare(&self) -> Result {
        if self.queue.as_ref().is_none() {
            // Another task may have been faster: then this one goes at once.
            self.queue.populate(Queue::new()?);
        }
        Ok(())
    }

    /// Queues the item, if there is a queue. Any context.
    pub(super) fn schedule(&self) -> bool {
        let Some(queue) = self.queue.as_ref() else {
            return false;
        };
        let cpu = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;
        // SAFETY: Item and queue are valid by the type invariants. If the item is queued already
        // it will run, too.
        unsafe { bindings::queue_work_on(cpu, queue.0, self.raw.get()) };
        true
    }

    /// Takes the item off its queue, or waits for it. Task.
    pub(super) fn cancel(&self) {
        // SAFETY: Valid by the type invariant; the caller may sleep and is not the item.
        unsafe { bindings::cancel_work_sync(self.raw.get()) };
    }
}

/// # Invariants
///
/// Points to a workqueue that is ours.
struct Queue(*mut bindings::workqueue_struct);

// SAFETY: A workqueue is not bound to a thread.
unsafe impl Send for Queue {}

// SAFETY: Queueing is what several threads do with a workqueue.
unsafe impl Sync for Queue {}

impl Queue {
    fn new() -> Result<Self> {
        // SAFETY: The name is a C string. May sleep.
        let raw = unsafe { bindings::irqmod_alloc_workqueue(c"irqmod".as_char_ptr()) };
        if raw.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: Just made.
        Ok(Self(raw))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant, and nobody can queue on it any more.
        unsafe { bindings::destroy_workqueue(self.0) };
    }
}
