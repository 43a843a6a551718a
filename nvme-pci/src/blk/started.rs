// SPDX-License-Identifier: GPL-2.0

//! Requests that were started and are going to be submitted together.

use super::request::InFlight;
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::bindings;

/// A queue of such requests, linked through the requests themselves.
///
/// # Invariants
///
/// The list's requests were started, and are owned by the list.
pub(crate) struct StartedList(bindings::rq_list);

impl StartedList {
    /// An empty list.
    #[inline]
    pub(crate) fn new() -> Self {
        Self(bindings::rq_list {
            head: null_mut(),
            tail: null_mut(),
        })
    }

    /// Whether there is no request.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.head.is_null()
    }

    /// Adds a request at the end.
    #[inline]
    pub(crate) fn push(&mut self, rq: InFlight) {
        // SAFETY: the request is ours.
        unsafe { push(&mut self.0, rq.as_raw()) };
    }

    /// Takes the first request.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<InFlight> {
        // SAFETY: by the invariants.
        unsafe { pop(&mut self.0).map(|rq| InFlight::from_raw(rq)) }
    }
}

/// Adds `rq` at the end of `list`.
///
/// # Safety
///
/// The caller owns all of them.
#[inline]
pub(super) unsafe fn push(list: &mut bindings::rq_list, rq: NonNull<bindings::request>) {
    let rq = rq.as_ptr();
    // SAFETY: by the requirements; a list that is not empty has a last request.
    unsafe {
        (*rq).__bindgen_anon_1.rq_next = null_mut();
        if list.head.is_null() {
            list.head = rq;
        } else {
            (*list.tail).__bindgen_anon_1.rq_next = rq;
        }
    }
    list.tail = rq;
}

/// Takes the first request of `list`.
///
/// # Safety
///
/// The caller owns all of them.
#[inline]
pub(super) unsafe fn pop(list: &mut bindings::rq_list) -> Option<NonNull<bindings::request>> {
    let rq = NonNull::new(list.head)?;
    // SAFETY: by the requirements.
    unsafe {
        list.head = (*rq.as_ptr()).__bindgen_anon_1.rq_next;
        (*rq.as_ptr()).__bindgen_anon_1.rq_next = null_mut();
    }
    Some(rq)
}
