// SPDX-License-Identifier: GPL-2.0

//! Masking one interrupt line, through the core and never behind its back.
//!
//! `disable_irq_nosync()` is lazy: the chip is masked only if the line fires while disabled, and
//! that interrupt is kept and replayed by `enable_irq()`. So a mask costs no access to the device
//! when nothing comes, and at most one late interrupt when something does.
//!
//! The number is looked up once by the driver, in sleeping context, and kept here: the line that is
//! enabled is always the one that was disabled.

use kernel::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::platform::MaskToken;

/// The interrupt line, by its number.
///
/// # Invariants
///
/// Between a [`Vector::set`] and the end of the request `irq` is the number of a requested line.
/// All other methods are only called in between.
pub(super) struct Vector {
    irq: Atomic<u32>,
}

impl Vector {
    /// Creates a vector that has no number yet.
    pub(super) fn new() -> Self {
        Self {
            irq: Atomic::new(0),
        }
    }

    /// Sets the number before the line is requested.
    pub(super) fn set(&self, irq: u32) {
        // INVARIANT: The caller requests `irq` next.
        self.irq.store(irq, Relaxed);
    }

    fn irq(&self) -> u32 {
        self.irq.load(Relaxed)
    }

    /// Disables the line once; any context.
    pub(super) fn mask(&self) -> MaskToken {
        // SAFETY: A requested line by the type invariant; callable from any context for MSI.
        unsafe { bindings::disable_irq_nosync(self.irq()) };
        MaskToken::mint()
    }

    /// Disables the line once and joins its handler and thread; task context.
    pub(super) fn mask_sync(&self) -> MaskToken {
        // SAFETY: A requested line by the type invariant; the caller may sleep and is not the
        // handler.
        unsafe { bindings::disable_irq(self.irq()) };
        MaskToken::mint()
    }

    /// Undoes the disable that `token` stands for; any context.
    pub(super) fn unmask(&self, token: MaskToken) {
        token.redeem();
        // SAFETY: A requested line by the type invariant, disabled once for the token.
        unsafe { bindings::enable_irq(self.irq()) };
    }

    /// Joins handler and thread; task context.
    pub(super) fn synchronize(&self) {
        // SAFETY: A requested line by the type invariant; the caller may sleep and is not the
        // handler.
        unsafe { bindings::synchronize_irq(self.irq()) };
    }
}
