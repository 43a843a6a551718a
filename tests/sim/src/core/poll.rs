// SPDX-License-Identifier: GPL-2.0

//! The irq_poll core's lists.

use super::{
    cpu::Ctx,
    Core, //
};
/// The softirq of the irq_poll core, as a bit.
pub(crate) const IRQ_POLL: u8 = 1 << 0;

/// What all instances together may take in one pass. Unit: completions.
pub(crate) const PASS_BUDGET: u32 = 256;

impl Core {
    /// irq_poll_sched().
    pub(crate) fn poll_sched(&mut self, line: u32) {
        let this = self.line(line);
        if this.poll_disable || std::mem::replace(&mut this.poll_sched, true) {
            return;
        }
        this.poll_listed = true;
        self.checker.poll_listed(line);
        let cpu = self.here();
        self.cpu(cpu).polls.push_back(line);
        self.raise_softirq(cpu);
    }

    /// raise_softirq_irqoff(): outside of interrupts and softirqs, ksoftirqd does it.
    fn raise_softirq(&mut self, cpu: u32) {
        self.cpu(cpu).softirqs |= IRQ_POLL;
        if let Ctx::Task(task) = self.running {
            if self.tasks[task as usize].bh_off == 0 && self.cpus[cpu as usize].hard.is_none() {
                let ksoftirqd = self.cpus[cpu as usize].ksoftirqd;
                self.wake(ksoftirqd);
            }
        }
    }

    /// What the core does with an instance that used its weight up.
    pub(crate) fn poll_rotate(&mut self, cpu: u32, line: u32) {
        self.checker.poll_stays(self.now, line);
        let this = self.line(line);
        this.poll_runs = false;
        if !this.poll_listed {
            return;
        }
        if this.poll_disable {
            self.poll_remove(cpu, line);
        } else {
            let list = &mut self.cpu(cpu).polls;
            list.retain(|&other| other != line);
            list.push_back(line);
        }
    }

    /// irq_poll_complete(): off the list.
    pub(crate) fn poll_complete(&mut self, line: u32) {
        let cpu = self.here();
        self.line(line).poll_runs = false;
        self.poll_remove(cpu, line);
    }

    fn poll_remove(&mut self, cpu: u32, line: u32) {
        self.checker.poll_completed(self.now, line);
        let this = self.line(line);
        this.poll_listed = false;
        this.poll_sched = false;
        self.cpu(cpu).polls.retain(|&other| other != line);
    }

    /// The pass ended before the list did: once more.
    pub(crate) fn poll_rearm(&mut self, cpu: u32) {
        self.cpu(cpu).softirqs |= IRQ_POLL;
    }
}
