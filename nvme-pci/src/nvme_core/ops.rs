// SPDX-License-Identifier: GPL-2.0

//! nvme-core's calls into the transport: the operations table and its trampolines.

use super::{
    bound::Bound,
    ctrl::Ctrl,
    transport::{
        HwQueue,
        Transport, //
    }, //
};
use crate::prp::CTRL_PAGE;
use core::marker::PhantomData;
use kernel::{
    bindings,
    error::from_result,
    ffi::{
        c_char,
        c_int,
        c_ulong, //
    },
    prelude::*, //
};

/// A table of pointers, made `Sync`.
struct Table(bindings::nvme_ctrl_ops);

// SAFETY: the table is only read.
unsafe impl Sync for Table {}

struct TableOf<T>(PhantomData<T>);

impl<T: Transport> TableOf<T> {
    const TABLE: Table = Table(bindings::nvme_ctrl_ops {
        name: kernel::str::as_char_ptr_in_const_context(c"pcie"),
        module: T::MODULE.as_ptr(),
        reg_read32: Some(reg_read32::<T>),
        reg_write32: Some(reg_write32::<T>),
        reg_read64: Some(reg_read64::<T>),
        free_ctrl: Some(free_ctrl::<T>),
        submit_async_event: Some(submit_async_event::<T>),
        get_address: Some(get_address::<T>),
        get_virt_boundary: Some(get_virt_boundary),
        ..pin_init::zeroed()
    });
    const TABLE_REF: &'static Table = &Self::TABLE;
}

/// The operations of `T`.
pub(super) fn table<T: Transport>() -> *const bindings::nvme_ctrl_ops {
    &raw const TableOf::<T>::TABLE_REF.0
}

/// Reads a register.
///
/// # Safety
///
/// Called by nvme-core with a controller of this transport, while the device is bound.
unsafe extern "C" fn reg_read32<T: Transport>(
    ctrl: *mut bindings::nvme_ctrl,
    off: u32,
    val: *mut u32,
) -> c_int {
    // SAFETY: the core reads registers while the device is bound.
    let b = unsafe { Bound::<T>::from_raw(ctrl) };
    from_result(|| {
        let value = b.data().registers()?.read32_at(off)?;
        // SAFETY: the core gives a place for the result.
        unsafe { val.write(value) };
        Ok(0)
    })
}

/// Writes a register.
///
/// # Safety
///
/// Called by nvme-core with a controller of this transport, while the device is bound.
unsafe extern "C" fn reg_write32<T: Transport>(
    ctrl: *mut bindings::nvme_ctrl,
    off: u32,
    val: u32,
) -> c_int {
    // SAFETY: the core writes registers while the device is bound.
    let b = unsafe { Bound::<T>::from_raw(ctrl) };
    from_result(|| {
        b.data().registers()?.write32_at(off, val)?;
        Ok(0)
    })
}

/// Reads a register.
///
/// # Safety
///
/// Called by nvme-core with a controller of this transport, while the device is bound.
unsafe extern "C" fn reg_read64<T: Transport>(
    ctrl: *mut bindings::nvme_ctrl,
    off: u32,
    val: *mut u64,
) -> c_int {
    // SAFETY: the core reads registers while the device is bound.
    let b = unsafe { Bound::<T>::from_raw(ctrl) };
    from_result(|| {
        let value = b.data().registers()?.read64_at(off)?;
        // SAFETY: the core gives a place for the result.
        unsafe { val.write(value) };
        Ok(0)
    })
}

/// The last reference to a controller is gone.
///
/// # Safety
///
/// Called by nvme-core, once.
unsafe extern "C" fn free_ctrl<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: the core calls this when the last reference is gone.
    unsafe { Ctrl::<T>::free(ctrl) };
}

/// Gives the device the event request.
///
/// # Safety
///
/// Called by nvme-core with a controller of this transport, while the device is bound.
unsafe extern "C" fn submit_async_event<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: called by the core's event work, which the teardown stops.
    let b = unsafe { Bound::<T>::from_raw(ctrl) };
    if let Some(admin) = b.queue(0) {
        admin.submit_event();
    }
}

/// Prints the address of the device.
///
/// # Safety
///
/// Called by nvme-core with a controller of this transport and a buffer of `size` bytes.
unsafe extern "C" fn get_address<T: Transport>(
    ctrl: *mut bindings::nvme_ctrl,
    buf: *mut c_char,
    size: c_int,
) -> c_int {
    // SAFETY: `ctrl` is live, so its block is, and it holds its parent.
    let parent = unsafe { (*Ctrl::<T>::from_raw(ctrl).as_raw()).dev };
    // SAFETY: as above; the buffer is the core's, of `size` bytes.
    unsafe {
        bindings::snprintf(
            buf,
            size as usize,
            c"%s\n".as_char_ptr(),
            bindings::dev_name(parent),
        )
    }
}

/// The addresses at which segments must begin and end, but for the first and the last.
///
/// # Safety
///
/// None; the arguments are not used.
unsafe extern "C" fn get_virt_boundary(
    _ctrl: *mut bindings::nvme_ctrl,
    _is_admin: bool,
) -> c_ulong {
    // A PRP can only have an offset at the start of the data, and an end at the end of it.
    CTRL_PAGE as c_ulong - 1
}
