// SPDX-License-Identifier: GPL-2.0

//! A moderated PCI vector for a driver without `unsafe`.
//!
//! A request must not outlive the vector it is for, and leaking a value is safe Rust. So the vector
//! and the request are not owned by the driver: they belong to the device, which takes them down
//! when it is unbound, before the driver's code can go away. The driver keeps a reference to the
//! line for as long as it likes.

use kernel::{
    bindings,
    device::Bound,
    devres,
    fmt,
    irq::IrqRequest,
    pci::{
        Device,
        DeviceId,
        IrqType,
        IrqTypes,
        IrqVectorRegistration, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::{
    kernel::line::Line,
    source::Source, //
};

/// A requested line with the vector it was requested on.
struct Attachment<S: Source> {
    line: Arc<Line<S>>,
    // Dropped after `Drop::drop` has freed the interrupt.
    vectors: IrqVectorRegistration<'static>,
}

// SAFETY: A line can be freed, and vectors released, by any thread that may sleep; `Line<S>` is
// `Send` and `Sync` for any source.
unsafe impl<S: Source> Send for Attachment<S> {}

impl<S: Source> Attachment<S> {
    fn new(device: &'static Device<Bound>, line: Arc<Line<S>>) -> Result<Self> {
        // Both kinds are edge triggered and never shared.
        let kinds = IrqTypes::default().with(IrqType::MsiX).with(IrqType::Msi);
        Ok(Self {
            vectors: device.alloc_irq_vectors(1, 1, kinds)?,
            line,
        })
    }

    fn request(&self, name: fmt::Arguments<'_>) -> Result {
        let irq = IrqRequest::from(self.vectors.index(0)?).irq();
        // SAFETY: `irq` is an MSI or MSI-X vector that was allocated for this attachment alone, and
        // stays so until the attachment, having freed the line, drops `vectors`.
        unsafe { pinned(&self.line).request(irq, name) }
    }
}

impl<S: Source> Drop for Attachment<S> {
    fn drop(&mut self) {
        pinned(&self.line).free();
    }
}

fn pinned<S: Source>(line: &Arc<Line<S>>) -> Pin<&Line<S>> {
    // SAFETY: What an `Arc` points to is never moved.
    unsafe { Pin::new_unchecked(&**line) }
}

/// The id of `device` by a `vendor` that has no name in the kernel.
pub const fn device_id(vendor: u16, device: u16) -> DeviceId {
    let any = u32::MAX;
    let raw = bindings::pci_device_id {
        vendor: vendor as u32,
        device: device as u32,
        subvendor: any,
        subdevice: any,
        class: 0,
        class_mask: 0,
        driver_data: 0,
        override_only: 0,
    };
    // SAFETY: `DeviceId` is a transparent wrapper of what C knows, for any values.
    unsafe { core::mem::transmute::<bindings::pci_device_id, DeviceId>(raw) }
}

/// Allocates the one MSI-X or MSI vector of `device` and requests it for `line` under `name`.
///
/// The line is freed when `device` is unbound, after the driver's own data was dropped. It must
/// already tolerate interrupts.
pub fn attach<S: Source>(
    device: &Device<Bound>,
    line: impl PinInit<Line<S>, Error>,
    name: fmt::Arguments<'_>,
) -> Result<Arc<Line<S>>> {
    let line = Arc::pin_init(line, GFP_KERNEL)?;
    // SAFETY: The extended reference only lives in the attachment, which is dropped before `device`
    // is unbound: by the `?` below, or as a resource that the device manages.
    let lasting = unsafe { &*core::ptr::from_ref(device) };
    let attachment = Attachment::new(lasting, line.clone())?;
    attachment.request(name)?;
    devres::register::<_, Error>(device.as_ref(), Ok(attachment), GFP_KERNEL)?;
    Ok(line)
}
