// SPDX-License-Identifier: GPL-2.0

//! The primitives under the model checker, which weakens sequentially consistent accesses but does
//! model fences.

pub(super) use ::loom::sync::atomic::{
    fence,
    AtomicU32,
    Ordering, //
};
