// SPDX-License-Identifier: GPL-2.0

//! Loom models of the protocol, on the real state word and the real moderator.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p model --release`
//!
//! Two or three threads are CPUs that take interrupts, run the poller or the interrupt thread on
//! their way out, or are the task that pauses, resumes, stops or drains. Loom tries the
//! interleavings and the values that the memory model allows (with at most three involuntary switches
//! in one execution). The queue is a cell that loom watches: two consumers at a time, or one that
//! does not see what the one before did, fail the model.
//!
//! [`bugs`] holds copies of the crate, each with one line changed. A model that still passes with
//! the bug in it would be worth nothing: the tests demand that it fails.

#![cfg(loom)]

/// The models on the crate as it is.
#[allow(missing_docs)]
pub mod real {
    pub use ::irqmod;
    /// The world around one source.
    pub mod world {
        include!("world.rs");
    }
    /// What happens in it.
    pub mod scenarios {
        include!("scenarios.rs");
    }
}

/// The models on copies of the crate with one planted bug each.
#[allow(missing_docs, unreachable_pub, unused, clippy::all)]
pub mod bugs {
    include!(concat!(env!("OUT_DIR"), "/bugs.rs"));
}
