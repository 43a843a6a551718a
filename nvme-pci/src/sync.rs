// SPDX-License-Identifier: GPL-2.0

//! The atomics of the pure halves: the kernel's in the kernel, the same operations on the host.

#[cfg(not(CONFIG_RUST_IRQMOD))]
mod host;
#[cfg(CONFIG_RUST_IRQMOD)]
mod kernel;

#[cfg(not(CONFIG_RUST_IRQMOD))]
pub(crate) use self::host::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};
#[cfg(CONFIG_RUST_IRQMOD)]
pub(crate) use self::kernel::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};
