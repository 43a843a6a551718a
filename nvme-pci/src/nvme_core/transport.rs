// SPDX-License-Identifier: GPL-2.0

//! What a transport implements.

use super::{
    bound::Bound,
    regs::Registers, //
};
use crate::{
    blk::{
        Batch,
        InFlight,
        Ready,
        StartedList,
        Status, //
    },
    plan::Plan, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    ThisModule, //
};

/// A PCI transport: the steps between which nvme-core's calls happen.
///
/// The data of the implementor is part of the controller's block, and is dropped when the last user
/// of the controller is gone, long after unbind perhaps: its destructor must not touch the device.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// One hardware queue.
    type Queue: HwQueue;

    /// The module, which open devices hold.
    const MODULE: ThisModule;

    /// How many hardware queues there can ever be, the admin queue included.
    fn max_queues() -> usize;

    /// How many kinds of I/O queues there can ever be, in the order of [`Kind`](crate::plan::Kind).
    ///
    /// The block layer's maps are made once, so this is not what the first restart happens to get.
    fn kinds() -> u32;

    /// Called once, before anything else: get the registers, make the admin queue.
    fn attach(b: Bound<'_, Self>) -> Result;

    /// The counterpart of [`Self::attach`], when all queues are gone. May be called without it.
    fn detach(b: Bound<'_, Self>);

    /// The registers, between `attach` and `detach`.
    fn registers(&self) -> Result<Arc<Registers>>;

    /// Brings the controller from any state to "enabled, admin queue works".
    ///
    /// On failure everything it did is undone.
    fn enable(b: Bound<'_, Self>) -> Result;

    /// Creates the I/O queues, and returns how many there are. Commands may be sent and waited for.
    fn setup_io(b: Bound<'_, Self>) -> Result<u16>;

    /// The I/O queues in use and their kinds.
    fn plan(&self) -> Plan;

    /// I/O queues get no new requests any more: make their interrupts silent before they are
    /// deleted or the controller is disabled. Must not ring a doorbell of theirs from here on.
    fn pause_io(b: Bound<'_, Self>);

    /// As [`Self::pause_io`] for the admin queue, which is about to be disabled.
    fn pause_admin(b: Bound<'_, Self>);

    /// Frees interrupts and vectors, and disables the function. Idempotent; every queue reports
    /// that it is not enabled afterwards.
    fn release(b: Bound<'_, Self>);
}

/// One hardware queue; blk-mq's view of it and the timeout handler's.
pub(crate) trait HwQueue: Send + Sync + 'static {
    /// Requests may be submitted and are going to be completed.
    fn is_enabled(&self) -> bool;

    /// The queue's identifier.
    fn qid(&self) -> u16;

    /// Makes a request ready for submission, and starts it.
    fn prepare(&self, rq: Ready) -> Result<InFlight, Status>;

    /// Submits a request. `last`: no other one follows soon.
    fn submit(&self, rq: InFlight, last: bool);

    /// Submits some requests at once.
    fn submit_all(&self, rqs: StartedList);

    /// Tells the device of requests that were submitted without being the last.
    fn commit(&self);

    /// Collects completions of a polled queue; whether there were any.
    fn poll(&self, batch: &mut Batch) -> bool;

    /// Collects completions with the queue's interrupt held off. In task context.
    fn reap(&self);

    /// Forgets the requests that the device has, as it is disabled and they are going to be
    /// cancelled: no late completion may name one. In task context.
    fn forget(&self);

    /// Submits the one asynchronous event request; for the admin queue.
    fn submit_event(&self);
}
