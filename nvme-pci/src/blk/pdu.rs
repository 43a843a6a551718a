// SPDX-License-Identifier: GPL-2.0

//! The driver's data behind each `struct request`.
//!
//! nvme-core owns the first part, and writes to it even while the driver has the request (the
//! generation at completion, flags from the timeout handler). So there is never a reference to a
//! whole [`Pdu`]: the accessors below hand out pointers, and references to the driver's own tail.

use crate::nvme_core::{
    rings::Sqe,
    word::Word, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    ffi::c_uint,
    prelude::*, //
};

/// The most segments of a request. Each costs 16 bytes in every request, as what is mapped must be
/// known at unmap time from memory that the device can not write.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// The size of the driver's data of a request.
pub(crate) const CMD_SIZE: c_uint = size_of::<Pdu>() as c_uint;

/// The driver's data of a request.
#[repr(C)]
pub(super) struct Pdu {
    /// The core's part, which it expects at the start.
    req: bindings::nvme_request,
    /// The command. It must live here: the core puts passed-through commands in it and uses it
    /// again for retries. Only the data pointer may be changed.
    cmd: bindings::nvme_command,
    tail: Tail,
}

const _: () = assert!(offset_of!(Pdu, req) == 0);
const _: () = assert!(size_of::<bindings::nvme_command>() == size_of::<Sqe>());
const _: () = assert!(offset_of!(Pdu, cmd) % align_of::<Sqe>() == 0);

/// The driver's own part. Zeroed by the block layer when the request is allocated.
pub(super) struct Tail {
    /// The timeout handler has asked for the command to be aborted.
    pub(super) aborted: Word<bool>,
    pub(super) mapping: Mapping,
    /// The data's length, as mapped.
    pub(super) bytes: u32,
    pub(super) iova: bindings::dma_iova_state,
    pub(super) segments: [Segment; MAX_SEGMENTS],
}

/// One mapped piece of memory.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) addr: u64,
    pub(super) len: u32,
}

/// How a request's data is mapped.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Mapping {
    /// It has none, or there is nothing to undo.
    None = 0,
    /// One piece: segment 0.
    Single,
    /// One IOVA range: `iova`.
    Iova,
    /// That many segments.
    Segments(u16),
}

/// The data of `rq`.
///
/// # Safety
///
/// `rq` is a request of a tag set made with [`CMD_SIZE`].
#[inline]
unsafe fn pdu(rq: NonNull<bindings::request>) -> *mut Pdu {
    // SAFETY: the private data follows the request, by the requirements.
    unsafe { rq.as_ptr().add(1).cast() }
}

/// The core's part.
///
/// # Safety
///
/// As [`pdu`].
#[inline]
pub(super) unsafe fn req(rq: NonNull<bindings::request>) -> *mut bindings::nvme_request {
    // SAFETY: forwarded; only the address is taken.
    unsafe { &raw mut (*pdu(rq)).req }
}

/// The command.
///
/// # Safety
///
/// As [`pdu`].
#[inline]
pub(super) unsafe fn cmd(rq: NonNull<bindings::request>) -> *mut bindings::nvme_command {
    // SAFETY: forwarded; only the address is taken.
    unsafe { &raw mut (*pdu(rq)).cmd }
}

/// The driver's part, to change it.
///
/// # Safety
///
/// As [`pdu`], and the caller owns the request. It must not touch `aborted` by this.
#[inline]
pub(super) unsafe fn tail(rq: NonNull<bindings::request>) -> *mut Tail {
    // SAFETY: forwarded; only the address is taken.
    unsafe { &raw mut (*pdu(rq)).tail }
}

/// Connects a new request to its controller and its command.
///
/// # Safety
///
/// As [`pdu`], and the request is not used yet.
pub(super) unsafe fn init(rq: NonNull<bindings::request>, ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: by the requirements.
    unsafe {
        (*req(rq)).ctrl = ctrl;
        (*req(rq)).cmd = cmd(rq);
    }
}
