// SPDX-License-Identifier: GPL-2.0

//! The proof that a controller's device is bound.
//!
//! Work items, timeouts and block layer callbacks get a bare `struct nvme_ctrl`; no type of theirs
//! says that the device is still bound and that its queues exist. The argument is made once, here:
//!
//! *[`Registration`](super::Registration) is the driver's data of the bound device, and its
//! teardown is run by `unbind`. The teardown flushes the reset work, stops the controller's other
//! work, removes the namespaces and the admin queue (which waits for every request and timeout of
//! them) and frees every interrupt, before it frees queues. So reset work, timeouts, register
//! accesses, event submission and block layer data path callbacks run only while the device is
//! bound and the queues exist.*
//!
//! Outside of that are `free_ctrl` and the block layer's `exit_*` callbacks: they run at any time
//! later, so they are not given a [`Bound`].

use super::{
    ctrl::Ctrl,
    transport::Transport, //
};
use core::ops::Deref;
use kernel::{
    bindings,
    device,
    pci,
    prelude::*, //
};

/// A controller whose device is bound for `'a`, and whose queues are not freed during it.
pub(crate) struct Bound<'a, T: Transport> {
    ctrl: &'a Ctrl<T>,
}

impl<T: Transport> Clone for Bound<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Transport> Copy for Bound<'_, T> {}

impl<T: Transport> Deref for Bound<'_, T> {
    type Target = Ctrl<T>;

    fn deref(&self) -> &Ctrl<T> {
        self.ctrl
    }
}

impl<'a, T: Transport> Bound<'a, T> {
    /// # Safety
    ///
    /// The caller runs between `Registration::new` and the point of the teardown at which queues
    /// are freed, for all of `'a`; see the module's argument.
    pub(super) unsafe fn new(ctrl: &'a Ctrl<T>) -> Self {
        Self { ctrl }
    }

    /// # Safety
    ///
    /// As [`Self::new`], and `ctrl` is part of a `Ctrl<T>`.
    pub(crate) unsafe fn from_raw(ctrl: *mut bindings::nvme_ctrl) -> Self {
        // SAFETY: forwarded; a bound controller has not been freed.
        unsafe { Self::new(Ctrl::from_raw(ctrl)) }
    }

    /// The controller itself.
    pub(crate) fn ctrl(self) -> &'a Ctrl<T> {
        self.ctrl
    }

    /// The PCI device.
    pub(crate) fn device(self) -> &'a pci::Device<device::Bound> {
        // SAFETY: `dev` was set at init to the device in a `struct pci_dev`.
        let pdev =
            unsafe { kernel::container_of!((*self.ctrl.as_raw()).dev, bindings::pci_dev, dev) };
        // SAFETY: the device is valid and bound for `'a`; `pci::Device` is transparent.
        unsafe { &*pdev.cast() }
    }

    /// The queue `qid`, if it was ever made.
    pub(crate) fn queue(self, qid: u16) -> Option<Pin<&'a T::Queue>> {
        // SAFETY: queues are not freed while bound.
        unsafe { self.ctrl.queues.get(qid) }
    }

    /// All I/O queues that were ever made.
    pub(crate) fn io_queues(self) -> impl DoubleEndedIterator<Item = (u16, Pin<&'a T::Queue>)> {
        let capacity = u16::try_from(self.ctrl.queues.capacity()).unwrap_or(u16::MAX);
        (1..capacity).filter_map(move |qid| Some((qid, self.queue(qid)?)))
    }

    /// Adds a queue.
    pub(crate) fn add_queue(self, qid: u16, queue: Pin<KBox<T::Queue>>) -> Result {
        self.ctrl.queues.add(qid, queue)
    }
}
