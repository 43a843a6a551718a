// SPDX-License-Identifier: GPL-2.0

//! The life of the I/O queues: made in every restart, stopped in every disabling.

use crate::{
    command::Command,
    controller::{
        add_queue,
        listen_admin,
        NvmePci, //
    },
    io_queue::IoQueue,
    nvme_core::{
        vectors::Listen,
        Bound,
        HwQueue,
        Transport, //
    },
    params,
    plan::{
        Kind,
        Plan, //
    }, //
};
use irqmod::Line;
use kernel::prelude::*;

/// Creates as many I/O queues as the controller gives, at most one per vector, and returns how
/// many work.
///
/// If not all that were planned can be created, the plan is made again for those that can, as the
/// block layer's maps follow the plan.
pub(crate) fn setup_io(b: Bound<'_, NvmePci>) -> Result<u16> {
    let wanted = params::wanted();
    let regs = b.data().registers()?;
    let cap = crate::doorbell::Cap::new(regs.read64(crate::nvme_core::regs::Reg::Cap));
    let doorbells = crate::doorbell::Doorbells::new(cap, regs.len()).ok_or(ENODEV)?;
    let mut granted = b.set_queue_count(wanted.queues(doorbells.queues()))?;
    while granted > 0 {
        let plan = b.while_connecting(|| plan_vectors(b, granted))?;
        let online = create_queues(b, &plan)?;
        if online == plan.total() {
            announce(b, &plan);
            return Ok(online);
        }
        delete_queues(b, online)?;
        granted = online;
    }
    b.data().set_plan(Plan::new(&wanted, 0, 1));
    Ok(0)
}

/// Replaces the vectors, and with them the admin queue's interrupt.
fn plan_vectors(b: Bound<'_, NvmePci>, granted: u16) -> Result<Plan> {
    let wanted = params::wanted();
    let admin = b.queue(0).ok_or(ENODEV)?;
    // The core may send commands, of a scan for example; they wait until there are vectors again.
    b.quiesce_admin();
    admin.disable();
    leave(b, admin);
    b.free_vectors();
    let vectors = b.alloc_vectors(wanted.vectors(granted), wanted.write_queues)?;
    let plan = Plan::new(&wanted, granted, vectors);
    b.data().set_plan(plan);
    listen_admin(b)?;
    // What was answered without an interrupt.
    admin.reap();
    b.unquiesce_admin();
    Ok(plan)
}

fn announce(b: Bound<'_, NvmePci>, plan: &Plan) {
    dev_info!(
        b.ctrl().device(),
        "{}/{}/{} default/read/poll queues\n",
        plan.set(Kind::Default).count,
        plan.set(Kind::Read).count,
        plan.set(Kind::Poll).count
    );
}

/// Creates the queues of `plan` until one fails, and returns how many there are.
fn create_queues(b: Bound<'_, NvmePci>, plan: &Plan) -> Result<u16> {
    for qid in 1..=plan.total() {
        match create_queue(b, plan, qid) {
            Ok(()) => {}
            // The controller is being disabled, or gone.
            Err(e) if e == ENODEV || e == EINTR => return Err(e),
            Err(e) => {
                dev_warn!(b.ctrl().device(), "I/O queue {qid} was refused: {e:?}\n");
                return Ok(qid - 1);
            }
        }
    }
    Ok(plan.total())
}

fn create_queue(b: Bound<'_, NvmePci>, plan: &Plan, qid: u16) -> Result {
    if b.queue(qid).is_none() {
        let regs = b.data().registers()?;
        add_queue(b, &regs, qid, b.data().entries()?, b.max_transfer())?;
    }
    let queue = b.queue(qid).ok_or(ENODEV)?;
    let entries = queue.entries();
    let vector = plan.vector(qid);
    IoQueue::reset(&queue);
    b.submit_sync(&Command::create_cq(
        qid,
        entries,
        queue.cq_address(),
        vector,
    ))?;
    let created = b
        .submit_sync(&Command::create_sq(qid, entries, queue.sq_address(), qid))
        .and_then(|()| b.while_connecting(|| start_queue(b, plan, qid, queue)));
    match created {
        // The controller is being disabled, and takes no commands.
        Err(e) if e == ENODEV => Err(e),
        Err(e) => {
            delete_queue(b, qid);
            Err(e)
        }
        Ok(()) => Ok(()),
    }
}

fn start_queue(b: Bound<'_, NvmePci>, plan: &Plan, qid: u16, queue: Pin<&Line<IoQueue>>) -> Result {
    if let Some(vector) = plan.vector(qid) {
        let how = if plan.dedicated(qid) {
            Listen::Moderated
        } else {
            Listen::Plain
        };
        queue.set_choice(params::policy(b.device().as_ref().name()))?;
        b.listen(queue, vector, how, fmt!("nvme{}q{}", b.instance(), qid))?;
        queue.set_listening(true);
    }
    queue.enable();
    Ok(())
}

/// Undoes [`create_queues`], as the controller goes on.
fn delete_queues(b: Bound<'_, NvmePci>, last: u16) -> Result {
    for (qid, queue) in b.io_queues().rev().filter(|(qid, _)| *qid <= last) {
        stop_queue(queue);
        delete_queue(b, qid);
        b.while_connecting(|| {
            leave(b, queue);
            Ok(())
        })?;
    }
    Ok(())
}

/// The queue is unused. What is not deleted is refused when it is created again, so errors are
/// not lost.
fn delete_queue(b: Bound<'_, NvmePci>, qid: u16) {
    let _ = b.submit_sync(&Command::delete_sq(qid));
    let _ = b.submit_sync(&Command::delete_cq(qid));
}

/// Lets nothing into the queue, and no interrupt of it be handled.
///
/// The device is going to delete it, so no doorbell of it may be rung from here on. The line
/// itself stays requested: its mask must outlive what the device still sends.
pub(crate) fn stop_queue(queue: Pin<&Line<IoQueue>>) {
    if queue.disable() {
        queue.pause();
        // A line that is not moderated has no pause. In any case this waits for a handler that
        // found the queue enabled, and may be about to ring its doorbell.
        queue.exclusive(|_| ());
    }
}

/// Stops all I/O queues before they are deleted. The block layer sends nothing any more.
///
/// A level-triggered line stays asserted until the device's answers are acknowledged by the
/// doorbell, and can not be masked here, as others may share it. Its queues stop after the
/// deletion, with the admin queue.
pub(crate) fn pause_io(b: Bound<'_, NvmePci>) {
    if !b.has_level_interrupt() {
        stop_io(b);
    }
}

/// Stops what is left of I/O queues.
pub(crate) fn stop_io(b: Bound<'_, NvmePci>) {
    for (_, queue) in b.io_queues() {
        stop_queue(queue);
    }
}

fn leave(b: Bound<'_, NvmePci>, queue: Pin<&Line<IoQueue>>) {
    if queue.set_listening(false) {
        b.leave(queue);
    }
}

/// Frees all interrupts and the vectors, and disables the function.
pub(crate) fn release(b: Bound<'_, NvmePci>) {
    for (_, queue) in b.io_queues() {
        queue.disable();
        leave(b, queue);
    }
    if let Some(admin) = b.queue(0) {
        admin.disable();
        leave(b, admin);
    }
    b.free_vectors();
    b.pci_disable();
}
