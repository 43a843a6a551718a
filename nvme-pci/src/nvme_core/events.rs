// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events: the answers to the one command that is outstanding all the time.

use super::{
    bound::Bound,
    transport::Transport, //
};
use kernel::bindings;

/// Where a queue delivers events.
///
/// # Invariants
///
/// The controller is valid for as long as this value exists.
pub(crate) struct EventSink(*mut bindings::nvme_ctrl);

// SAFETY: events may be delivered from any context.
unsafe impl Send for EventSink {}
// SAFETY: as above.
unsafe impl Sync for EventSink {}

impl EventSink {
    /// The sink of a controller. It must be dropped with the queue that holds it.
    pub(crate) fn new<T: Transport>(b: Bound<'_, T>) -> Self {
        // INVARIANT: queues are part of the controller.
        Self(b.as_raw())
    }

    /// Passes the answer to an event request on.
    pub(crate) fn deliver(&self, status: u16, result: u64) {
        let mut result = bindings::nvme_completion_nvme_result {
            u64_: result.to_le(),
        };
        // SAFETY: the controller is valid; the result is only read, during the call.
        unsafe { bindings::nvme_complete_async_event(self.0, status.to_le(), &mut result) };
    }
}
