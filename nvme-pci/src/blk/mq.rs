// SPDX-License-Identifier: GPL-2.0

//! The block layer's calls into the driver: the operations tables and their trampolines.

use super::{
    batch::{
        self,
        Batch, //
    },
    pdu,
    request::{
        Fresh,
        Rq,
        Status, //
    },
    started::{
        self,
        StartedList, //
    },
    timed_out::TimedOut, //
};
use crate::{
    nvme_core::{
        Bound,
        HwQueue,
        Overdue,
        Transport, //
    },
    plan::Kind, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*, //
};

struct Table(bindings::blk_mq_ops);

// SAFETY: the table is only read.
unsafe impl Sync for Table {}

struct TablesOf<T>(PhantomData<T>);

impl<T: Transport> TablesOf<T> {
    const ADMIN: Table = Table(bindings::blk_mq_ops {
        queue_rq: Some(queue_rq::<T>),
        commit_rqs: Some(commit_rqs::<T>),
        complete: Some(batch::complete_rq),
        init_hctx: Some(init_admin_hctx::<T>),
        init_request: Some(init_request),
        timeout: Some(timeout::<T>),
        ..pin_init::zeroed()
    });
    const ADMIN_REF: &'static Table = &Self::ADMIN;

    const IO: Table = Table(bindings::blk_mq_ops {
        queue_rq: Some(queue_rq::<T>),
        queue_rqs: Some(queue_rqs::<T>),
        commit_rqs: Some(commit_rqs::<T>),
        complete: Some(batch::complete_rq),
        init_hctx: Some(init_io_hctx::<T>),
        init_request: Some(init_request),
        map_queues: Some(map_queues::<T>),
        timeout: Some(timeout::<T>),
        poll: Some(poll::<T>),
        ..pin_init::zeroed()
    });
    const IO_REF: &'static Table = &Self::IO;
}

/// The operations of the admin queue.
pub(crate) fn admin_ops<T: Transport>() -> *const bindings::blk_mq_ops {
    &raw const TablesOf::<T>::ADMIN_REF.0
}

/// The operations of I/O queues.
pub(crate) fn io_ops<T: Transport>() -> *const bindings::blk_mq_ops {
    &raw const TablesOf::<T>::IO_REF.0
}

/// The hardware queue behind `hctx`.
///
/// # Safety
///
/// The caller is a data path or timeout callback for `hctx`, for all of `'a`.
#[inline]
unsafe fn queue<'a, T: Transport>(hctx: *mut bindings::blk_mq_hw_ctx) -> &'a T::Queue {
    // SAFETY: set by `init_hctx`; the queue exists while such callbacks run, see `Bound`.
    unsafe { &*(*hctx).driver_data.cast::<T::Queue>() }
}

/// Submits one request.
///
/// # Safety
///
/// Called by the block layer for a queue that `init_hctx` has set up.
unsafe extern "C" fn queue_rq<T: Transport>(
    hctx: *mut bindings::blk_mq_hw_ctx,
    bd: *const bindings::blk_mq_queue_data,
) -> bindings::blk_status_t {
    // SAFETY: this is such a callback.
    let queue = unsafe { queue::<T>(hctx) };
    // SAFETY: the block layer hands over a valid request, which it gets back by the status.
    let (rq, last) = unsafe { (Fresh::new(NonNull::new_unchecked((*bd).rq)), (*bd).last) };
    match rq
        .admit(queue.is_enabled())
        .and_then(|rq| queue.prepare(rq))
    {
        Ok(rq) => {
            queue.submit(rq, last);
            Status::OK.0
        }
        Err(status) => status.0,
    }
}

/// Takes what it can of a list, and leaves what is for `queue_rq`, which can tell why.
///
/// # Safety
///
/// Called by the block layer with requests of queues that `init_hctx` has set up.
unsafe extern "C" fn queue_rqs<T: Transport>(list: *mut bindings::rq_list) {
    // SAFETY: the list is the caller's, and it hands over its requests.
    let list = unsafe { &mut *list };
    let mut left = bindings::rq_list::default();
    let mut started = StartedList::new();
    let mut current: Option<&T::Queue> = None;
    // SAFETY: all requests of the list are ours until they are left in it.
    while let Some(rq) = unsafe { started::pop(list) } {
        // SAFETY: this is a data path callback for the request's queue.
        let queue = unsafe { queue::<T>((*rq.as_ptr()).mq_hctx) };
        if let Some(before) = current.replace(queue) {
            if !core::ptr::eq(before, queue) && !started.is_empty() {
                before.submit_all(core::mem::replace(&mut started, StartedList::new()));
            }
        }
        // SAFETY: the request is ours.
        let fresh = unsafe { Fresh::new(rq) };
        match fresh
            .admit_live(queue.is_enabled())
            .and_then(|rq| queue.prepare(rq).ok())
        {
            Some(rq) => started.push(rq),
            // SAFETY: it could not be prepared, and is as it was.
            None => unsafe { started::push(&mut left, rq) },
        }
    }
    if let Some(queue) = current.filter(|_| !started.is_empty()) {
        queue.submit_all(started);
    }
    *list = left;
}

/// Tells the device of what `queue_rq` has only put into the ring.
///
/// # Safety
///
/// Called by the block layer for a queue that `init_hctx` has set up.
unsafe extern "C" fn commit_rqs<T: Transport>(hctx: *mut bindings::blk_mq_hw_ctx) {
    // SAFETY: this is such a callback.
    unsafe { queue::<T>(hctx) }.commit();
}

/// Collects completions of a polled queue.
///
/// # Safety
///
/// Called by the block layer for a queue that `init_hctx` has set up; `iob` is a batch or NULL.
unsafe extern "C" fn poll<T: Transport>(
    hctx: *mut bindings::blk_mq_hw_ctx,
    iob: *mut bindings::io_comp_batch,
) -> c_int {
    // SAFETY: this is such a callback.
    let queue = unsafe { queue::<T>(hctx) };
    // SAFETY: the batch is the caller's, or NULL.
    unsafe { Batch::borrow(iob, |batch| queue.poll(batch)) }.into()
}

/// The time of a request is up.
///
/// # Safety
///
/// Called by the block layer with a request of ours that it holds a reference to.
unsafe extern "C" fn timeout<T: Transport>(
    rq: *mut bindings::request,
) -> bindings::blk_eh_timer_return {
    // SAFETY: the block layer passes a valid request, whose timeout this is.
    let (rq, queue, ctrl) = unsafe {
        let rq = NonNull::new_unchecked(rq);
        (
            TimedOut::new(rq),
            queue::<T>((*rq.as_ptr()).mq_hctx),
            (*pdu::req(rq)).ctrl,
        )
    };
    // SAFETY: timeouts end before the device is unbound, see `Bound`.
    match unsafe { Bound::<T>::from_raw(ctrl) }.timed_out(queue, &rq) {
        Overdue::Done => bindings::blk_eh_timer_return_BLK_EH_DONE,
        Overdue::Wait => bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
    }
}

/// # Safety
///
/// `hctx` is being initialised by the block layer, and `data` is its set's `driver_data`.
unsafe fn init_hctx<T: Transport>(
    hctx: *mut bindings::blk_mq_hw_ctx,
    data: *mut c_void,
    qid: u32,
) -> c_int {
    // SAFETY: the core stores the controller in its tag sets, and makes queues while bound.
    let b = unsafe { Bound::<T>::from_raw(data.cast()) };
    let Some(queue) = u16::try_from(qid).ok().and_then(|qid| b.queue(qid)) else {
        return ENODEV.to_errno();
    };
    let raw: *const T::Queue = &raw const *queue;
    // SAFETY: by the requirements.
    unsafe { (*hctx).driver_data = raw.cast_mut().cast() };
    0
}

/// Connects the admin queue.
///
/// # Safety
///
/// Called by the block layer; `data` is the controller.
unsafe extern "C" fn init_admin_hctx<T: Transport>(
    hctx: *mut bindings::blk_mq_hw_ctx,
    data: *mut c_void,
    _index: c_uint,
) -> c_int {
    // SAFETY: called by the block layer so.
    unsafe { init_hctx::<T>(hctx, data, 0) }
}

/// Connects an I/O queue.
///
/// # Safety
///
/// Called by the block layer; `data` is the controller.
unsafe extern "C" fn init_io_hctx<T: Transport>(
    hctx: *mut bindings::blk_mq_hw_ctx,
    data: *mut c_void,
    index: c_uint,
) -> c_int {
    // SAFETY: called by the block layer so. The admin queue is not counted here.
    unsafe { init_hctx::<T>(hctx, data, index + 1) }
}

/// Prepares a new request.
///
/// # Safety
///
/// Called by the block layer with a tag set of ours and a request of it that is not used yet.
unsafe extern "C" fn init_request(
    set: *mut bindings::blk_mq_tag_set,
    rq: *mut bindings::request,
    _index: c_uint,
    _node: c_int,
) -> c_int {
    // SAFETY: a new request of a set of ours, whose `driver_data` is the controller.
    unsafe {
        let rq: Rq = NonNull::new_unchecked(rq);
        pdu::init(rq, (*set).driver_data.cast());
    }
    0
}

/// Tells which CPUs use which queues, for each kind of queue.
///
/// # Safety
///
/// Called by the block layer with the I/O tag set of a bound controller.
unsafe extern "C" fn map_queues<T: Transport>(set: *mut bindings::blk_mq_tag_set) {
    // SAFETY: a set of ours, in a restart, with the device bound.
    let b = unsafe { Bound::<T>::from_raw((*set).driver_data.cast()) };
    let plan = b.data().plan();
    for (index, kind) in [Kind::Default, Kind::Read, Kind::Poll]
        .into_iter()
        .enumerate()
    {
        let part = plan.set(kind);
        // SAFETY: there are three maps.
        let map = unsafe { &mut (*set).map[index] };
        map.nr_queues = part.count.into();
        if part.count == 0 {
            continue;
        }
        map.queue_offset = part.offset.into();
        let own_vectors = plan.dedicated(part.offset + 1);
        // SAFETY: the map is allocated. Vector n + 1 is that of hardware queue n.
        unsafe {
            if own_vectors {
                bindings::blk_mq_map_hw_queues(map, b.parent(), u32::from(part.offset) + 1);
            } else {
                bindings::blk_mq_map_queues(map);
            }
        }
    }
}
