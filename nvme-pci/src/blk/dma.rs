// SPDX-License-Identifier: GPL-2.0

//! Mapping a request's data for the device, and unmapping it.

use super::{
    pdu::{
        self,
        Mapping,
        Segment,
        MAX_SEGMENTS, //
    },
    prp_lists::PrpLists,
    request::{
        Rq,
        Status, //
    }, //
};
use crate::{
    nvme_core::{
        ffi,
        Bound,
        Transport, //
    },
    prp::{
        self,
        Builder,
        PrpError,
        Prps, //
    }, //
};
use kernel::{
    bindings,
    prelude::*, //
};

const DMA_MAPPING_ERROR: u64 = !0;
const SPECIAL_PAYLOAD: u32 = 1 << bindings::rqf_flags___RQF_SPECIAL_PAYLOAD;

/// The device that does the DMA.
///
/// # Invariants
///
/// The device is valid and bound for as long as requests of it are mapped.
#[derive(Clone, Copy)]
pub(crate) struct DmaDevice(*mut bindings::device);

// SAFETY: DMA mapping functions may be called anywhere.
unsafe impl Send for DmaDevice {}
// SAFETY: as above.
unsafe impl Sync for DmaDevice {}

impl DmaDevice {
    /// The device of a controller. It must be dropped with the queue that holds it.
    pub(crate) fn new<T: Transport>(b: Bound<'_, T>) -> Self {
        // INVARIANT: requests are mapped while the device is bound, see `Bound`.
        Self(b.parent())
    }
}

/// How many bytes of data the request has, and in how many segments.
///
/// # Safety
///
/// `rq` is a valid request.
#[inline]
unsafe fn payload(rq: Rq) -> (u16, u32) {
    let rq = rq.as_ptr();
    // SAFETY: by the requirements; the special vector is set if the flag is.
    unsafe {
        if (*rq).rq_flags & SPECIAL_PAYLOAD != 0 {
            (1, (*rq).__bindgen_anon_3.special_vec.bv_len)
        } else {
            ((*rq).nr_phys_segments, (*rq).__data_len)
        }
    }
}

/// Whether the request has metadata, which is not mapped. The core was told, so none should.
///
/// # Safety
///
/// `rq` is a valid request.
#[inline]
unsafe fn has_metadata(rq: Rq) -> bool {
    // SAFETY: by the requirements.
    cfg!(CONFIG_BLK_DEV_INTEGRITY)
        && unsafe { (*rq.as_ptr()).cmd_flags } & (1 << bindings::req_flag_bits___REQ_INTEGRITY) != 0
}

/// # Safety
///
/// `rq` is a valid request.
#[inline]
unsafe fn direction(rq: Rq) -> bindings::dma_data_direction {
    // SAFETY: by the requirements. An odd operation writes to the device.
    if unsafe { (*rq.as_ptr()).cmd_flags } & 1 != 0 {
        bindings::dma_data_direction::DMA_TO_DEVICE
    } else {
        bindings::dma_data_direction::DMA_FROM_DEVICE
    }
}

/// Maps the data of `rq` and puts its addresses into the command. On error nothing is mapped.
///
/// # Safety
///
/// `rq` has a command and is the caller's.
#[inline]
pub(super) unsafe fn map(rq: Rq, dev: &DmaDevice, lists: &PrpLists) -> Result<(), Status> {
    // SAFETY: by the requirements.
    if unsafe { has_metadata(rq) } {
        return Err(Status::NOTSUPP);
    }
    // SAFETY: by the requirements.
    let (segments, bytes) = unsafe { payload(rq) };
    if segments == 0 {
        return Ok(());
    }
    let prps = if segments == 1 && bytes as usize <= prp::CTRL_PAGE {
        // SAFETY: by the requirements.
        unsafe { map_single(rq, dev, bytes) }?
    } else {
        // SAFETY: by the requirements.
        unsafe { map_segments(rq, dev, lists, bytes) }?
    };
    // SAFETY: by the requirements; the data pointer is ours to set.
    unsafe {
        let dptr = &raw mut (*pdu::cmd(rq)).__bindgen_anon_1.common.dptr;
        (*dptr).__bindgen_anon_1.prp1 = prps.prp1.to_le();
        (*dptr).__bindgen_anon_1.prp2 = prps.prp2.to_le();
        (*pdu::tail(rq)).bytes = bytes;
    }
    Ok(())
}

/// One segment of up to a page, so at most two PRPs: no iterator, no list.
///
/// # Safety
///
/// As [`map`], with one segment of `bytes` bytes.
#[inline]
unsafe fn map_single(rq: Rq, dev: &DmaDevice, bytes: u32) -> Result<Prps, Status> {
    // SAFETY: by the requirements.
    let vec = unsafe { ffi::nvme_rust_req_phys_vec(rq.as_ptr()) };
    // SAFETY: by the requirements the memory is the request's.
    let addr =
        unsafe { bindings::dma_map_phys(dev.0, vec.paddr, bytes as usize, direction(rq), 0) };
    if is_error(dev, addr) {
        return Err(Status::RESOURCE);
    }
    // SAFETY: the request is ours.
    unsafe {
        (*pdu::tail(rq)).mapping = Mapping::Single;
        (*pdu::tail(rq)).segments[0] = Segment { addr, len: bytes };
    }
    let Some(prps) = prp::single(addr, bytes) else {
        // SAFETY: mapped just now.
        unsafe { unmap(rq, dev) };
        return Err(Status::IOERR);
    };
    Ok(prps)
}

#[inline]
fn is_error(dev: &DmaDevice, addr: u64) -> bool {
    if cfg!(CONFIG_DMA_API_DEBUG) {
        // Tells the checker that we have looked.
        // SAFETY: the device is valid.
        return unsafe { ffi::nvme_rust_dma_mapping_error(dev.0, addr) } != 0;
    }
    addr == DMA_MAPPING_ERROR
}

/// Any data.
///
/// # Safety
///
/// As [`map`], with `bytes` bytes.
unsafe fn map_segments(
    rq: Rq,
    dev: &DmaDevice,
    lists: &PrpLists,
    bytes: u32,
) -> Result<Prps, Status> {
    // SAFETY: the tag belongs to the request, which is ours.
    let mut list = unsafe { lists.of_tag((*rq.as_ptr()).tag) }.ok_or(Status::IOERR)?;
    let mut prps = Builder::new(&mut list);
    // SAFETY: by the requirements.
    let done = unsafe { push_segments(rq, dev, &mut prps) }
        .and_then(|()| prps.finish().map_err(malformed))
        .and_then(|prps| match prps.bytes == u64::from(bytes) {
            true => Ok(prps),
            false => Err(Status::IOERR),
        });
    if done.is_err() {
        // SAFETY: what was mapped is recorded in the request. No IOVA range can be recorded with
        // an error other than of the builder, and then it is the whole request's.
        unsafe {
            (*pdu::tail(rq)).bytes = bytes;
            unmap(rq, dev);
        }
    }
    done
}

#[cold]
fn malformed(e: PrpError) -> Status {
    // Once: user space may repeat it at will.
    kernel::pr_err_once!("request can not be expressed in PRPs: {e:?}\n");
    Status::IOERR
}

/// Maps segment by segment, and records each.
///
/// # Safety
///
/// As [`map`].
unsafe fn push_segments<L: prp::PrpList>(
    rq: Rq,
    dev: &DmaDevice,
    prps: &mut Builder<'_, L>,
) -> Result<(), Status> {
    // SAFETY: by the requirements.
    let tail = unsafe { pdu::tail(rq) };
    let mut iter = core::mem::MaybeUninit::<bindings::blk_dma_iter>::uninit();
    let iter = iter.as_mut_ptr();
    // SAFETY: `start` initialises the iterator and the state.
    let mut more = unsafe {
        bindings::blk_rq_dma_map_iter_start(rq.as_ptr(), dev.0, &raw mut (*tail).iova, iter)
    };
    let mut count: u16 = 0;
    while more {
        // SAFETY: the iterator has mapped a segment, whose place it tells.
        let (addr, len) = unsafe { ((*iter).addr, (*iter).len) };
        // SAFETY: the state was initialised by `start`.
        if unsafe { ffi::nvme_rust_use_iova(&raw mut (*tail).iova) } {
            // SAFETY: the request is ours.
            unsafe { (*tail).mapping = Mapping::Iova };
            return prps.push(addr, len).map_err(malformed);
        }
        if usize::from(count) == MAX_SEGMENTS {
            // Can not be, by the queue's limits. This segment is not recorded.
            // SAFETY: mapped by the iterator just now.
            unsafe { bindings::dma_unmap_phys(dev.0, addr, len as usize, direction(rq), 0) };
            return Err(Status::IOERR);
        }
        // SAFETY: the request is ours, and `count` is in range.
        unsafe {
            (*tail).segments[usize::from(count)] = Segment { addr, len };
            count += 1;
            (*tail).mapping = Mapping::Segments(count);
        }
        prps.push(addr, len).map_err(malformed)?;
        // SAFETY: as `start`.
        more = unsafe { bindings::blk_rq_dma_map_iter_next(rq.as_ptr(), dev.0, iter) };
    }
    // SAFETY: valid when the iterator returned false.
    match unsafe { (*iter).status } {
        ffi::STS_OK => Ok(()),
        status => Err(Status(status)),
    }
}

/// Undoes [`map`]. Idempotent.
///
/// # Safety
///
/// `rq` is the caller's, and the device does not access its data any more.
#[inline]
pub(super) unsafe fn unmap(rq: Rq, dev: &DmaDevice) {
    // SAFETY: by the requirements.
    let tail = unsafe { pdu::tail(rq) };
    // SAFETY: as above; the request's mapping was recorded when it was made.
    unsafe {
        match core::mem::replace(&mut (*tail).mapping, Mapping::None) {
            Mapping::None => {}
            Mapping::Single => unmap_one(rq, dev, &(*tail).segments[0]),
            Mapping::Segments(count) => unmap_all(rq, dev, tail, count),
            Mapping::Iova => {
                let bytes = (*tail).bytes as usize;
                ffi::nvme_rust_rq_dma_unmap(rq.as_ptr(), dev.0, &raw mut (*tail).iova, bytes);
            }
        }
    }
}

/// # Safety
///
/// `segment` is mapped, and part of `rq`.
#[inline]
unsafe fn unmap_one(rq: Rq, dev: &DmaDevice, segment: &Segment) {
    // SAFETY: by the requirements.
    unsafe {
        bindings::dma_unmap_phys(dev.0, segment.addr, segment.len as usize, direction(rq), 0)
    };
}

/// # Safety
///
/// The first `count` segments in `tail` are mapped, and part of `rq`.
unsafe fn unmap_all(rq: Rq, dev: &DmaDevice, tail: *mut pdu::Tail, count: u16) {
    // SAFETY: the device is valid.
    if !unsafe { bindings::dma_need_unmap(dev.0) } {
        return;
    }
    // SAFETY: by the requirements.
    let segments = unsafe { &(*tail).segments };
    for segment in segments.iter().take(usize::from(count)) {
        // SAFETY: by the requirements.
        unsafe { unmap_one(rq, dev, segment) };
    }
}

/// [`unmap`] when all one has is the request.
///
/// # Safety
///
/// As [`unmap`], and the device is bound.
#[inline]
pub(super) unsafe fn unmap_for_completion(rq: Rq) {
    // SAFETY: the request's controller is valid, and so is its parent device.
    let dev = DmaDevice(unsafe { (*(*pdu::req(rq)).ctrl).dev });
    // SAFETY: forwarded.
    unsafe { unmap(rq, &dev) };
}
