// SPDX-License-Identifier: GPL-2.0

//! What bindgen can not give: the static inline functions (see `helpers.c`) and the block layer's
//! status codes, whose C definitions are casts.

use kernel::{
    bindings,
    ffi::{
        c_int,
        c_uint, //
    },
};

pub(crate) type Complete = unsafe extern "C" fn(*mut bindings::io_comp_batch);

// The structures contain empty ones, depending on the configuration; they are only pointed to.
#[allow(improper_ctypes)]
extern "C" {
    pub(crate) fn nvme_rust_try_complete_req(
        rq: *mut bindings::request,
        status: u16,
        result: u64,
    ) -> bool;
    pub(crate) fn nvme_rust_add_to_batch(
        rq: *mut bindings::request,
        iob: *mut bindings::io_comp_batch,
        is_error: bool,
        complete: Complete,
    ) -> bool;
    pub(crate) fn nvme_rust_start_request(rq: *mut bindings::request);
    pub(crate) fn nvme_rust_req_phys_vec(rq: *mut bindings::request) -> bindings::phys_vec;
    pub(crate) fn nvme_rust_rq_dma_unmap(
        rq: *mut bindings::request,
        dev: *mut bindings::device,
        state: *mut bindings::dma_iova_state,
        len: usize,
    ) -> bool;
    pub(crate) fn nvme_rust_use_iova(state: *mut bindings::dma_iova_state) -> bool;
    pub(crate) fn nvme_rust_dma_mapping_error(
        dev: *mut bindings::device,
        addr: bindings::dma_addr_t,
    ) -> c_int;
    pub(crate) fn nvme_rust_set_min_align_mask(dev: *mut bindings::device, mask: c_uint);
    pub(crate) fn nvme_rust_dev_to_node(dev: *mut bindings::device) -> c_int;
    pub(crate) fn nvme_rust_queue_dying(q: *mut bindings::request_queue) -> bool;
    pub(crate) fn nvme_rust_pci_is_enabled(pdev: *mut bindings::pci_dev) -> bool;
    pub(crate) fn nvme_rust_pci_channel_offline(pdev: *mut bindings::pci_dev) -> bool;
    pub(crate) fn nvme_rust_pci_dev_is_disconnected(pdev: *mut bindings::pci_dev) -> bool;
    pub(crate) fn nvme_rust_readq(addr: *const u8) -> u64;
    pub(crate) fn nvme_rust_writeq(value: u64, addr: *mut u8);
    pub(crate) fn nvme_rust_num_possible_cpus() -> c_uint;
    pub(crate) fn nvme_rust_init_completion(done: *mut bindings::completion);
}

/// `BLK_STS_OK`.
pub(crate) const STS_OK: bindings::blk_status_t = 0;
/// `BLK_STS_NOTSUPP`.
pub(crate) const STS_NOTSUPP: bindings::blk_status_t = 1;
/// `BLK_STS_RESOURCE`: try again when a request of this queue has ended.
pub(crate) const STS_RESOURCE: bindings::blk_status_t = 9;
/// `BLK_STS_IOERR`.
pub(crate) const STS_IOERR: bindings::blk_status_t = 10;
