// SPDX-License-Identifier: GPL-2.0

//! The kernel's atomics, everywhere.
//!
//! In the kernel these are `kernel::sync::atomic`. Elsewhere they offer the same operations with
//! the same orderings and nothing stronger: what is proved on the host must hold in the kernel.

#[cfg(not(CONFIG_RUST_IRQMOD))]
mod core;
#[cfg(CONFIG_RUST_IRQMOD)]
#[allow(unsafe_code)]
mod kernel;
#[cfg(all(loom, not(CONFIG_RUST_IRQMOD)))]
mod loom;

#[cfg(not(CONFIG_RUST_IRQMOD))]
pub(crate) use self::core::*;
#[cfg(CONFIG_RUST_IRQMOD)]
pub(crate) use self::kernel::*;
