// SPDX-License-Identifier: GPL-2.0

//! Interrupt vectors, and the queues that listen to them.
//!
//! Vectors are allocated and freed on every restart, so they can not be tied to a scope. Instead
//! the number of queues that listen is counted, and vectors in use can not be freed.

use super::{
    bound::Bound,
    ffi,
    pci::as_raw,
    transport::Transport, //
};
use crate::plan;
use irqmod::Line;
use kernel::{
    bindings,
    ffi::c_uint,
    fmt,
    irq,
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    }, //
};

/// The state of a controller's vectors.
pub(super) struct Vectors {
    allocated: Atomic<u32>,
    users: Atomic<u32>,
}

impl Vectors {
    pub(super) fn new() -> Self {
        Self {
            allocated: Atomic::new(0),
            users: Atomic::new(0),
        }
    }
}

/// How many queues can have CPUs of their own, one at least.
pub(crate) fn possible_queues() -> u16 {
    // SAFETY: always safe to call; 0 sets no limit.
    let count = unsafe { bindings::blk_mq_num_possible_queues(0) };
    u16::try_from(count).unwrap_or(u16::MAX).max(1)
}

/// How many CPUs there can be.
pub(crate) fn possible_cpus() -> u32 {
    // SAFETY: always safe to call.
    unsafe { ffi::nvme_rust_num_possible_cpus() }
}

/// How a queue listens to its vector.
#[derive(Clone, Copy)]
pub(crate) enum Listen {
    /// It owns the vector, which is an MSI-X one: its completions may be moderated, if the vector
    /// can be masked.
    Moderated,
    /// Anything else.
    Plain,
}

/// Splits the I/O vectors into sets, for the PCI core.
///
/// # Safety
///
/// Called by the PCI core with the descriptor that `alloc_vectors` made.
unsafe extern "C" fn calc_sets(affd: *mut bindings::irq_affinity, vectors: c_uint) {
    // SAFETY: the PCI core passes the descriptor made in `alloc_vectors`.
    let affd = unsafe { &mut *affd };
    // SAFETY: `priv_` points to the number given to `alloc_vectors`, whose frame is live.
    let write_queues = unsafe { *affd.priv_.cast::<u16>() };
    let (default, read) = plan::irq_sets(vectors.try_into().unwrap_or(u16::MAX), write_queues);
    affd.set_size[0] = default.into();
    affd.set_size[1] = read.into();
    affd.nr_sets = if read > 0 { 2 } else { 1 };
}

impl<'a, T: Transport> Bound<'a, T> {
    /// Allocates the one vector that the admin queue needs to get going.
    pub(crate) fn alloc_admin_vector(self) -> Result {
        let pdev = as_raw(self.device());
        self.record(
            // SAFETY: `pdev` is a bound, enabled device without vectors.
            unsafe { bindings::pci_alloc_irq_vectors(pdev, 1, 1, bindings::PCI_IRQ_ALL_TYPES) },
        )?;
        Ok(())
    }

    /// Allocates up to `max` vectors, the first for the admin queue, the others spread over the
    /// CPUs in two sets, and returns how many there are.
    pub(crate) fn alloc_vectors(self, max: u16, mut write_queues: u16) -> Result<u16> {
        let mut affd = bindings::irq_affinity {
            pre_vectors: 1,
            calc_sets: Some(calc_sets),
            priv_: (&raw mut write_queues).cast(),
            ..pin_init::zeroed()
        };
        let flags = bindings::PCI_IRQ_ALL_TYPES | bindings::PCI_IRQ_AFFINITY;
        let pdev = as_raw(self.device());
        self.record(
            // SAFETY: `pdev` is a bound, enabled device without vectors; `affd` and what it points
            // to live through the call and are not kept.
            unsafe {
                bindings::pci_alloc_irq_vectors_affinity(pdev, 1, max.into(), flags, &mut affd)
            },
        )
    }

    fn record(self, ret: i32) -> Result<u16> {
        if ret < 0 {
            return Err(Error::from_errno(ret));
        }
        self.vectors.allocated.store(ret as u32, Relaxed);
        Ok(ret.try_into()?)
    }

    /// Frees the vectors, if there are any. All queues must have left theirs.
    pub(crate) fn free_vectors(self) {
        if self.vectors.users.load(Relaxed) != 0 {
            dev_err!(self.ctrl().device(), "interrupt vectors are in use\n");
            return;
        }
        if self.vectors.allocated.xchg(0, Full) != 0 {
            // SAFETY: vectors of this device are allocated, and no interrupt is requested.
            unsafe { bindings::pci_free_irq_vectors(as_raw(self.device())) };
        }
    }

    /// Whether there are no messages but a level-triggered line.
    pub(crate) fn has_level_interrupt(self) -> bool {
        // SAFETY: the device is valid.
        let pdev = unsafe { &*as_raw(self.device()) };
        pdev.msix_enabled() == 0 && pdev.msi_enabled() == 0
    }

    /// Whether the vectors are MSI-X ones.
    fn is_msix(self) -> bool {
        // SAFETY: the device is valid.
        unsafe { (*as_raw(self.device())).msix_enabled() != 0 }
    }

    /// Makes `line` listen to `vector`.
    pub(crate) fn listen<S: irqmod::Source>(
        self,
        line: Pin<&Line<S>>,
        vector: u16,
        how: Listen,
        name: fmt::Arguments<'_>,
    ) -> Result {
        // SAFETY: the device is valid.
        let irq = unsafe { bindings::pci_irq_vector(as_raw(self.device()), vector.into()) };
        let irq = u32::try_from(irq).map_err(|_| EINVAL)?;
        self.vectors.users.add(1, Relaxed);
        let moderated = match how {
            // SAFETY: `irq` is a vector of this device. `free_vectors` does not free it while this
            // user is counted, and `leave` frees the interrupt before it stops counting. A moderated
            // line does not share, so a second user of the vector would be refused.
            Listen::Moderated if self.is_msix() => unsafe { line.request(irq, name) },
            _ => Err(EOPNOTSUPP),
        };
        let done = match moderated {
            // SAFETY: as above; without moderation the vector may be of any kind.
            Err(e) if e == EOPNOTSUPP => unsafe {
                line.request_plain(irq, irq::Flags::SHARED, name)
            },
            done => done,
        };
        if done.is_err() {
            self.vectors.users.fetch_sub(1, Relaxed);
        }
        done
    }

    /// The counterpart of a successful [`Self::listen`].
    pub(crate) fn leave<S: irqmod::Source>(self, line: Pin<&Line<S>>) {
        line.free();
        self.vectors.users.fetch_sub(1, Relaxed);
    }
}
