// SPDX-License-Identifier: GPL-2.0

//! What the driver keeps of a controller, and how it brings one to life.

use crate::{
    doorbell::{
        Cap,
        Doorbells, //
    },
    io_queue::IoQueue,
    nvme_core::{
        regs::{
            Reg,
            Registers,
            GONE, //
        },
        vectors::Listen,
        Bound,
        Transport,
        MAX_TRANSFER, //
    },
    params,
    plan::{
        Plan,
        Wanted, //
    },
    queue::Entries,
    reset, //
};
use irqmod::Line;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    ThisModule, //
};

/// Entries of the admin queue: the core's 30 tags, one event request, and the one that is lost.
const ADMIN_ENTRIES: u16 = 32;

/// The driver's part of a controller.
#[pin_data]
pub(crate) struct NvmePci {
    #[pin]
    registers: Mutex<Option<Arc<Registers>>>,
    #[pin]
    shape: Mutex<Shape>,
}

/// How the I/O queues are laid out.
#[derive(Clone, Copy)]
struct Shape {
    plan: Plan,
    entries: Option<Entries>,
}

impl NvmePci {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        let shape = Shape {
            plan: Plan::new(&params::wanted(), 0, 1),
            entries: None,
        };
        try_pin_init!(Self {
            registers <- new_mutex!(None, "nvme_rust::registers"),
            shape <- new_mutex!(shape, "nvme_rust::shape"),
        })
    }

    /// Records how the I/O queues are laid out from now on.
    pub(crate) fn set_plan(&self, plan: Plan) {
        self.shape.lock().plan = plan;
    }

    /// Entries of an I/O queue, agreed on when the controller was first enabled.
    ///
    /// Rings are kept over resets, so a controller that supports less than before is refused.
    fn agree(&self, cap: Cap) -> Result<Entries> {
        let now = Entries::negotiate(params::depth(), cap);
        let mut shape = self.shape.lock();
        match shape.entries {
            Some(before) if before > now => Err(ENODEV),
            Some(before) => Ok(before),
            None => {
                shape.entries = Some(now);
                Ok(now)
            }
        }
    }

    pub(crate) fn entries(&self) -> Result<Entries> {
        self.shape.lock().entries.ok_or(ENODEV)
    }
}

impl Transport for NvmePci {
    type Queue = Line<IoQueue>;
    const MODULE: ThisModule = <crate::LocalModule as kernel::ModuleMetadata>::THIS_MODULE;

    fn max_queues() -> usize {
        let Wanted {
            cpus,
            write_queues,
            poll_queues,
        } = params::wanted();
        1 + usize::from(cpus) + usize::from(write_queues) + usize::from(poll_queues)
    }

    fn kinds() -> u32 {
        let wanted = params::wanted();
        match (wanted.write_queues, wanted.poll_queues) {
            (0, 0) => 1,
            (_, 0) => 2,
            _ => 3,
        }
    }

    fn attach(b: Bound<'_, Self>) -> Result {
        let regs = Registers::map(b.device())?;
        *b.data().registers.lock() = Some(regs.clone());
        let entries = Entries::new(ADMIN_ENTRIES).ok_or(EINVAL)?;
        add_queue(b, &regs, 0, entries, MAX_TRANSFER)
    }

    fn detach(b: Bound<'_, Self>) {
        *b.data().registers.lock() = None;
    }

    fn registers(&self) -> Result<Arc<Registers>> {
        self.registers.lock().clone().ok_or(ENODEV)
    }

    fn enable(b: Bound<'_, Self>) -> Result {
        b.pci_enable()?;
        let done = enable_controller(b);
        if done.is_err() {
            b.free_vectors();
            b.pci_disable();
        }
        done
    }

    fn setup_io(b: Bound<'_, Self>) -> Result<u16> {
        reset::setup_io(b)
    }

    fn plan(&self) -> Plan {
        self.shape.lock().plan
    }

    fn pause_io(b: Bound<'_, Self>) {
        reset::pause_io(b);
    }

    fn pause_admin(b: Bound<'_, Self>) {
        reset::stop_io(b);
        if let Some(admin) = b.queue(0) {
            reset::stop_queue(admin);
        }
    }

    fn release(b: Bound<'_, Self>) {
        reset::release(b);
    }
}

/// Makes a queue. It is kept until the device is unbound.
pub(crate) fn add_queue(
    b: Bound<'_, NvmePci>,
    regs: &Arc<Registers>,
    qid: u16,
    entries: Entries,
    max_transfer: usize,
) -> Result {
    let cap = Cap::new(regs.read64(Reg::Cap));
    let doorbells = Doorbells::new(cap, regs.len()).ok_or(ENODEV)?;
    let queue = IoQueue::new(b, regs, doorbells, qid, entries, max_transfer);
    let line = KBox::pin_init(Line::new(queue, params::policy(b.device().as_ref().name())), GFP_KERNEL)?;
    b.add_queue(qid, line)
}

/// From "the function is enabled" to "the admin queue works".
fn enable_controller(b: Bound<'_, NvmePci>) -> Result {
    let regs = b.data().registers()?;
    if regs.read32(Reg::Csts) == GONE {
        return Err(ENODEV);
    }
    b.alloc_admin_vector()?;
    let cap = regs.read64(Reg::Cap);
    let entries = b.data().agree(Cap::new(cap))?;
    b.set_capabilities(cap, entries.usable());
    b.pci_save_state();
    stop_controller(b)?;
    start_admin(b, &regs)
}

/// The controller may have been left enabled by whoever had it before.
fn stop_controller(b: Bound<'_, NvmePci>) -> Result {
    b.disable_registers().or_else(|_| {
        b.pci_reset()?;
        b.disable_registers()
    })
}

fn start_admin(b: Bound<'_, NvmePci>, regs: &Registers) -> Result {
    let admin = b.queue(0).ok_or(ENODEV)?;
    let size = u32::from(admin.entries().zero_based());
    IoQueue::reset(&admin);
    regs.write32(Reg::Aqa, size << 16 | size)?;
    regs.write64(Reg::Asq, admin.sq_address())?;
    regs.write64(Reg::Acq, admin.cq_address())?;
    b.enable_registers()?;
    listen_admin(b).inspect_err(|_| {
        // Nothing else to be done about an error; the first one counts.
        let _ = b.disable_registers();
    })
}

/// Lets the admin queue listen to vector 0, and enables it.
pub(crate) fn listen_admin(b: Bound<'_, NvmePci>) -> Result {
    let admin = b.queue(0).ok_or(ENODEV)?;
    let name = fmt!("nvme{}q0", b.instance());
    b.listen(admin, 0, Listen::Plain, name)?;
    admin.set_listening(true);
    admin.enable();
    Ok(())
}
