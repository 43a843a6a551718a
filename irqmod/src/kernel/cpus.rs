// SPDX-License-Identifier: GPL-2.0

//! What the CPUs have, as a table.

use core::fmt;
use kernel::{
    bindings,
    cpu::nr_cpu_ids,
    prelude::*, //
};

use super::percpu::{
    on_cpu,
    List,
    PerCpu, //
};
use crate::{
    ledger::View,
    policy::Cpu,
    reason::micros,
    watch::Totals, //
};

/// One row for each CPU that is online. Reading interrupts each of them once.
pub(super) struct Table;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cpu deferring share_percent window_us account_percent piece served held ")?;
        f.write_str("delay_ns completions cost_ns unbroken_us unswitched_us\n")?;
        (0..nr_cpu_ids())
            .filter_map(Row::of)
            .try_for_each(|row| row.fmt(f))
    }
}

/// A CPU as it was when it looked at itself.
#[derive(Default)]
struct Row {
    number: u32,
    ledger: View,
    totals: Totals,
    delay_ns: u64,
    served: usize,
    held: usize,
}

impl Row {
    /// CPU `number`, if it is online. May wait for it.
    fn of(number: u32) -> Option<Self> {
        let mut row = Self::default();
        let raw = (&raw mut row).cast();
        // SAFETY: Calls `fill` with a row that is valid for writes, and returns after it has.
        let result = unsafe { bindings::irqmod_call_on(number, Some(Self::fill), raw) };
        (result == 0).then_some(row)
    }

    /// Looks at this CPU.
    ///
    /// # Safety
    ///
    /// `raw` points to a row that nobody else accesses meanwhile. Interrupts are off.
    unsafe extern "C" fn fill(raw: *mut c_void) {
        // SAFETY: By the contract.
        let row = unsafe { &mut *raw.cast::<Self>() };
        let look = |cpu: &mut Cpu| {
            row.ledger = cpu.ledger.view();
            row.totals = cpu.watch.totals();
            row.delay_ns = cpu.timer.delay().as_nanos();
        };
        // SAFETY: What is kept for a CPU knows nothing of where it is kept.
        unsafe { on_cpu(look) };
        PerCpu::with_this(|this| {
            row.number = this.number();
            this.locked(|lists| {
                row.served = lists.len(List::Served);
                row.held = lists.len(List::Held);
            });
        });
    }

    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View {
            deferring,
            share_percent,
            window_us,
            account_percent,
            piece,
        } = self.ledger;
        let deferring = u8::from(deferring);
        write!(f, "{} {deferring} {share_percent} ", self.number)?;
        write!(f, "{window_us} {account_percent} {piece} ")?;
        write!(f, "{} {} {} ", self.served, self.held, self.delay_ns)?;
        let totals = &self.totals;
        write!(f, "{} {} ", totals.found, totals.cost())?;
        let (unbroken, unswitched) = (micros(totals.unbroken), micros(totals.unswitched));
        writeln!(f, "{unbroken} {unswitched}")
    }
}
