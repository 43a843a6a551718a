// SPDX-License-Identifier: GPL-2.0

//! The kernel's own atomics.

pub(crate) use ::kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed, //
};

/// A counter that takes no part in the protocol.
pub(crate) type Counter = Atomic<usize>;
