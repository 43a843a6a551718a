// SPDX-License-Identifier: GPL-2.0

//! Completion moderation for interrupt-driven completion queues.
//!
//! A device posts completions in a queue and raises an interrupt. A handler that drains the queue
//! until it is empty is the fastest thing there is while the CPU keeps up, and starves the CPU when
//! it does not. This crate leaves the first case alone and moves the work of the second one to a
//! context that the scheduler controls.
//!
//! # Words
//!
//! - *Source*: a completion queue with its interrupt ([`Source`], implemented by a driver).
//! - *Drain*: take completions off the queue; only the holder of a [`DrainRight`] can.
//! - *Mask*: one disable of the interrupt line; owned as a [`MaskToken`], given back exactly once.
//! - *Defer*: hand the source to a softirq poller or to a thread ([`Deferral`]).
//! - *Moderator*: who may drain when ([`Moderator`]); the state word is described in [`state`].
//! - *Policy*: when to defer ([`policy::Config`]); with the way to mask, a [`policy::Choice`].
//! - *Platform*: the kernel, or its stand-in in a test ([`Platform`]).
//!
//! # Example
//!
//! ```
//! use irqmod::{Budget, Drain, DrainRight, Source};
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//!
//! /// A queue that is just a number of waiting completions.
//! struct Ring(AtomicU32);
//!
//! impl Source for Ring {
//!     fn pending(&self) -> bool {
//!         self.0.load(Relaxed) != 0
//!     }
//!
//!     fn drain(ring: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
//!         let left = ring.0.load(Relaxed);
//!         let found = left.min(budget.get());
//!         ring.0.store(left - found, Relaxed);
//!         if found == left { Drain::Drained(found) } else { Drain::More(found) }
//!     }
//! }
//! ```

#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(CONFIG_RUST_IRQMOD_KUNIT_TEST, feature(used_with_arg))]

#[cfg(not(panic = "abort"))]
extern crate std;

#[cfg(CONFIG_RUST_IRQMOD)]
#[allow(dead_code)]
const __LOG_PREFIX: &[u8] = b"irqmod\0";

pub mod budget;
pub mod event;
#[cfg(CONFIG_RUST_IRQMOD)]
#[allow(unsafe_code)]
pub mod kernel;
pub mod ledger;
pub mod moderator;
pub mod observation;
pub mod params;
pub mod platform;
pub mod policy;
pub mod reason;
pub mod source;
pub mod state;
pub mod stats;
mod sync;
pub mod time;
pub mod verdict;
pub mod watch;

#[cfg(all(CONFIG_RUST_IRQMOD, CONFIG_PCI))]
pub use self::kernel::pci;
#[cfg(CONFIG_RUST_IRQMOD)]
pub use self::kernel::{
    debugfs,
    line::Line, //
};
pub use budget::{
    Budget,
    Drain, //
};
pub use moderator::{
    Handled,
    Moderator,
    Pass, //
};
pub use platform::{
    MaskToken,
    Platform,
    PollEnd,
    PollPass, //
};
pub use source::{
    DrainRight,
    Source, //
};
pub use verdict::Deferral;
