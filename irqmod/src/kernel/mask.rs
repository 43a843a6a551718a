// SPDX-License-Identifier: GPL-2.0

//! Masking one interrupt line, through the core and never behind its back.
//!
//! `disable_irq_nosync()` is lazy: the chip is masked only if the line fires while disabled, and
//! that interrupt is kept and replayed by `enable_irq()`. So a mask costs no access to the device
//! when nothing comes, and one interrupt that masks and waits when something does.
//!
//! `disable_irq_nowait()` masks at the chip at once, and where the chip can without waiting for the
//! device. What was on its way is kept and replayed likewise. It comes with patches of ours; a
//! kernel without them does as for [`Mask::Nosync`].
//!
//! The number is looked up once by the driver, in sleeping context, and kept here: the line that is
//! enabled is always the one that was disabled.

use core::fmt;
use kernel::{
    bindings,
    ffi::c_void,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use super::trace;
use crate::{
    platform::MaskToken,
    policy::Mask,
    sync::Counter, //
};

/// How a disabled line is kept from the CPU.
#[cfg_attr(not(CONFIG_GENERIC_IRQ_MASK_NOWAIT), expect(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// The chip can't mask.
    None,
    /// The chip masks once an interrupt comes.
    Lazy,
    /// The chip masks at once, and nobody waits for the device.
    Nowait,
    /// The chip masks at once, and waits for the device.
    Flushed,
    /// The parent chip masks at once; the device goes on sending.
    Parent,
    /// The kernel can't tell.
    Unknown,
}

impl Path {
    /// The path of a mask of line `irq`.
    #[cfg(CONFIG_GENERIC_IRQ_MASK_NOWAIT)]
    fn of(irq: u32, how: Mask) -> Self {
        // SAFETY: Looks the number up under the locks that it needs; any number, any context.
        match unsafe { bindings::irq_get_mask_path(irq, how == Mask::Nowait) } {
            bindings::irq_mask_path_IRQ_MASK_PATH_NONE => Self::None,
            bindings::irq_mask_path_IRQ_MASK_PATH_LAZY => Self::Lazy,
            bindings::irq_mask_path_IRQ_MASK_PATH_NOWAIT => Self::Nowait,
            bindings::irq_mask_path_IRQ_MASK_PATH_FLUSHED => Self::Flushed,
            bindings::irq_mask_path_IRQ_MASK_PATH_PARENT => Self::Parent,
            _ => Self::Unknown,
        }
    }

    #[cfg(not(CONFIG_GENERIC_IRQ_MASK_NOWAIT))]
    fn of(_: u32, _: Mask) -> Self {
        Self::Unknown
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lazy => "lazy",
            Self::Nowait => "nowait",
            Self::Flushed => "flushed",
            Self::Parent => "parent",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a mask writes to a chip when it is made.
    fn writes(self) -> bool {
        matches!(self, Self::Nowait | Self::Flushed | Self::Parent)
    }
}

/// Whether a handler can keep line `irq` silent by disabling it: its chip masks, as far as the kernel
/// can tell, and it is not level triggered, so nothing fires for as long as the queue is not drained.
pub(super) fn can_silence(irq: u32) -> bool {
    // SAFETY: Looks any number up; any context.
    let trigger = unsafe { bindings::irq_get_trigger_type(irq) };
    trigger & bindings::IRQ_TYPE_LEVEL_MASK == 0 && Path::of(irq, Mask::Nosync) != Path::None
}

/// The interrupt line, by its number.
///
/// # Invariants
///
/// While the line is requested, `irq` is its number.
pub(super) struct Vector {
    irq: Atomic<u32>,
    /// Masks of each mode since the line was requested. Written by the handler, which is not
    /// reentrant.
    nosync: Counter,
    nowait: Counter,
}

impl Vector {
    /// Creates a vector that has no number yet.
    pub(super) fn new() -> Self {
        Self {
            irq: Atomic::new(0),
            nosync: Counter::new(0),
            nowait: Counter::new(0),
        }
    }

    /// Sets the number before the line is requested.
    pub(super) fn set(&self, irq: u32) {
        // INVARIANT: The caller requests `irq` next.
        self.irq.store(irq, Relaxed);
        self.nosync.store(0, Relaxed);
        self.nowait.store(0, Relaxed);
    }

    pub(super) fn irq(&self) -> u32 {
        self.irq.load(Relaxed)
    }

    /// Disables the line once; handler.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn mask(&self, how: Mask) -> MaskToken {
        // CAST: The variant's number.
        trace::mask(self.irq(), how as u32);
        let count = match how {
            Mask::Nosync => {
                // SAFETY: By the contract.
                unsafe { self.disable_nosync() };
                &self.nosync
            }
            Mask::Nowait => {
                // SAFETY: By the contract.
                unsafe { self.disable_nowait() };
                &self.nowait
            }
        };
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        MaskToken::mint()
    }

    /// # Safety
    ///
    /// As [`Vector::mask`].
    unsafe fn disable_nosync(&self) {
        // SAFETY: A requested line by the contract; callable from any context for MSI.
        unsafe { bindings::disable_irq_nosync(self.irq()) };
    }

    /// # Safety
    ///
    /// As [`Vector::mask`].
    #[cfg(CONFIG_GENERIC_IRQ_MASK_NOWAIT)]
    unsafe fn disable_nowait(&self) {
        // SAFETY: A requested line by the contract; callable from any context for MSI.
        unsafe { bindings::disable_irq_nowait(self.irq()) };
    }

    /// # Safety
    ///
    /// As [`Vector::mask`].
    #[cfg(not(CONFIG_GENERIC_IRQ_MASK_NOWAIT))]
    unsafe fn disable_nowait(&self) {
        // SAFETY: By the contract.
        unsafe { self.disable_nosync() };
    }

    /// Disables the line once and joins its handler and thread; task context.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn mask_sync(&self) -> MaskToken {
        trace::mask(self.irq(), trace::SYNC);
        // SAFETY: A requested line by the contract; the caller may sleep and is not the handler.
        unsafe { bindings::disable_irq(self.irq()) };
        MaskToken::mint()
    }

    /// Undoes the disable that `token` stands for; any context.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn unmask(&self, token: MaskToken) {
        trace::unmask(self.irq());
        token.redeem();
        // SAFETY: A requested line by the contract, disabled once for the token.
        unsafe { bindings::enable_irq(self.irq()) };
    }

    /// Wakes the thread of the handler with this cookie; any context. If the core runs handlers in
    /// threads, that is the one that the handler itself runs in.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn wake_thread(&self, cookie: *mut c_void) {
        // SAFETY: A requested line by the contract; the cookie is only compared.
        unsafe { bindings::irq_wake_thread(self.irq(), cookie) };
    }

    /// Joins handler and thread; task context.
    ///
    /// # Safety
    ///
    /// The line is requested.
    pub(super) unsafe fn synchronize(&self) {
        // SAFETY: A requested line by the contract; the caller may sleep and is not the handler.
        unsafe { bindings::synchronize_irq(self.irq()) };
    }

    /// The masks so far of a line that masks like this now; any context.
    pub(super) fn masks(&self, how: Mask) -> Masks {
        let mut masks = Masks {
            how,
            path: Path::of(self.irq(), how),
            all: 0,
            writes: 0,
            read_backs: 0,
        };
        let counts = [(Mask::Nosync, &self.nosync), (Mask::Nowait, &self.nowait)];
        for (how, count) in counts {
            masks.add(count.load(Relaxed), Path::of(self.irq(), how));
        }
        masks
    }
}

/// What a line's masks are and were. [`fmt::Display`] writes one `name value` line for each.
pub(super) struct Masks {
    how: Mask,
    path: Path,
    all: usize,
    writes: usize,
    read_backs: usize,
}

impl Masks {
    fn add(&mut self, count: usize, path: Path) {
        self.all = self.all.wrapping_add(count);
        if path.writes() {
            self.writes = self.writes.wrapping_add(count);
        }
        if path == Path::Flushed {
            self.read_backs = self.read_backs.wrapping_add(count);
        }
    }
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "mode {}", self.how.name())?;
        writeln!(f, "path {}", self.path.name())?;
        writeln!(f, "masks {}", self.all)?;
        writeln!(f, "mask_writes {}", self.writes)?;
        writeln!(f, "read_backs {}", self.read_backs)
    }
}
