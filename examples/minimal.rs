// SPDX-License-Identifier: GPL-2.0

//! The smallest driver: one source, one line, one interrupt.
//!
//! It binds to QEMU's `edu` device, makes it interrupt once and says what was heard when it is
//! unbound.

use irqmod::{
    Budget,
    Drain,
    DrainRight,
    Line,
    Source, //
};
use kernel::{
    device::Core,
    io::Io,
    pci,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

// `insmod irqmod_minimal.ko irq_policy=threaded`
irqmod::policy_param!(irq_policy: "hardirq");

/// Register that raises the interrupt when written.
const RAISE: usize = 0x60;

/// A completion queue without entries: it is only counted how often the bell rang, and was heard.
struct Bell {
    rung: Atomic<u32>,
    heard: Atomic<u32>,
}

impl Source for Bell {
    fn pending(&self) -> bool {
        self.rung.load(Acquire) != self.heard.load(Relaxed)
    }

    fn drain(bell: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        let heard = bell.heard.load(Relaxed);
        let waiting = bell.rung.load(Acquire).wrapping_sub(heard);
        let found = waiting.min(budget.get());
        bell.heard.store(heard.wrapping_add(found), Release);
        if found == waiting {
            Drain::Drained(found)
        } else {
            Drain::More(found)
        }
    }
}

struct Driver;

kernel::pci_device_table!(
    PCI_TABLE,
    (),
    [(irqmod::pci::device_id(0x1234, 0x11e8), ())]
);

impl pci::Driver for Driver {
    type IdInfo = ();
    type Data<'bound> = Arc<Line<Bell>>;

    const ID_TABLE: pci::IdTable<()> = &PCI_TABLE;

    fn probe<'bound>(
        device: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound ()>,
    ) -> impl PinInit<Arc<Line<Bell>>, Error> + 'bound {
        device.enable_device_mem()?;
        device.set_master();
        let registers = device.iomap_region_sized::<0x80>(0, c"irqmod_minimal")?;
        let bell = Bell {
            rung: Atomic::new(0),
            heard: Atomic::new(0),
        };
        let line = Line::new(Ok::<_, Error>(bell), irq_policy.get(device.as_ref().name()));
        let line = irqmod::pci::attach(device, line, fmt!("bell-{}", device.as_ref().name()))?;
        line.rung.store(1, Release);
        registers.write32(1, RAISE);
        Ok(line)
    }

    fn unbind<'bound>(device: &'bound pci::Device<Core<'_>>, line: Pin<&Arc<Line<Bell>>>) {
        dev_info!(device, "heard {}\n", line.heard.load(Acquire));
    }
}

kernel::module_pci_driver! {
    type: Driver,
    name: "irqmod_minimal",
    authors: ["irqmod contributors"],
    description: "The smallest driver with a moderated interrupt",
    license: "GPL v2",
}
