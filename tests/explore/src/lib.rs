// SPDX-License-Identifier: GPL-2.0

//! An explorer of all the states that one source can get into: the real moderator and the real
//! state word, on a machine that knows contexts.
//!
//! # What a step is
//!
//! One call of the code under test out of itself: to the platform, to the source, or to a word of
//! the protocol (a change together with the load that it begins with). In between nothing can be seen by
//! others. A drain is several: it begins, takes completions one by one, and ends. Events (the device posts,
//! a message arrives, a timer expires, a task begins to pause) are steps, too.
//!
//! # What runs beside what
//!
//! Two CPUs. On each of them a hard interrupt nests over what it finds, a softirq over tasks that have
//! not switched it off; tasks preempt each other unless they hold the lock. What is interrupted goes on
//! when what nests over it has ended. Across CPUs everything interleaves. Memory is sequentially
//! consistent: the order of accesses is a matter of the loom models.
//!
//! # What is checked
//!
//! See [`world`]: in every state, at the end of every context, and in every quiescent state.

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    unreachable_pub,
    unused
)]
mod copy {
    include!(concat!(env!("OUT_DIR"), "/include.rs"));
}
pub(crate) use copy::irqmod;

pub(crate) mod engine;
#[allow(dead_code)]
pub(crate) mod facade;
pub mod scenario;
pub mod search;
pub mod world;
