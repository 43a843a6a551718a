// SPDX-License-Identifier: GPL-2.0

//! Ring 3: the kernel as a [`Platform`](crate::platform::Platform), one primitive per file.
//!
//! This ring alone touches the C side, and with the atomic facade it alone contains `unsafe`. A
//! driver sees three things of it:
//!
//! - [`Line`](crate::Line): one interrupt line with its source, moderated;
//! - [`policy_param!`](crate::policy_param): the module parameter that chooses the policy;
//! - [`pci`] and [`debugfs`]: safe faces for a driver without `unsafe`.

mod context;
mod cpus;
mod entry;
mod hold;
mod irq_poll;
mod lock;
mod mask;
mod member;
mod percpu;
mod platform;
mod poll_timer;
mod serve;
mod switch;
#[cfg(CONFIG_RUST_IRQMOD_KUNIT_TEST)]
mod tests;
mod thread;
mod trace;
mod work;

pub mod debugfs;
pub mod line;
pub mod params;
#[cfg(CONFIG_PCI)]
pub mod pci;
