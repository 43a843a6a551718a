// SPDX-License-Identifier: GPL-2.0

//! Softirqs: the irq_poll core, on the way out of interrupts and in ksoftirqd.

use super::{
    block,
    lines,
    relax,
    spend,
    suspend,
    with_bh_off,
    LineCode, //
};
use crate::core::{
    self,
    poll, //
};
use irqmod::PollPass;

/// How often a softirq that is raised again is handled at once.
const RESTARTS: u32 = 10;

/// Softirqs on the way out of interrupts.
pub(super) fn body(cpu: u32) {
    let lines = lines();
    loop {
        handle(cpu, &lines);
        core::with(|core| core.exit_soft(cpu));
        suspend();
    }
}

/// The task that goes on where the others stop.
pub(super) fn ksoftirqd(cpu: u32) {
    let lines = lines();
    loop {
        while core::with(|core| core.cpus[cpu as usize].softirqs) != 0 {
            with_bh_off(|| {
                spend(core::with(|core| core.machine.costs.softirq));
                handle(cpu, &lines);
            });
            relax();
        }
        block();
    }
}

/// handle_softirqs(): until nothing is raised, but not for too long.
fn handle(cpu: u32, lines: &[LineCode]) {
    let end = core::with(|core| {
        let hz = u64::from(core.machine.kernel.hz);
        core.jiffies() + (2 * hz).div_ceil(1000)
    });
    for left in (0..RESTARTS).rev() {
        let raised = core::with(|core| {
            let this = core.cpu(cpu);
            this.books.softirqs += 1;
            std::mem::take(&mut this.softirqs)
        });
        if raised & poll::IRQ_POLL != 0 {
            poll_pass(cpu, lines);
        }
        let go_on = core::with(|core| {
            let this = &core.cpus[cpu as usize];
            if this.softirqs == 0 {
                return false;
            }
            let again = core.jiffies() < end && !this.need_resched && left != 0;
            if !again {
                let ksoftirqd = this.ksoftirqd;
                core.wake(ksoftirqd);
            }
            again
        });
        if !go_on {
            return;
        }
    }
}

/// irq_poll_softirq(): the instances in turn, within the budget and one jiffy.
fn poll_pass(cpu: u32, lines: &[LineCode]) {
    let begin = core::with(|core| core.jiffies());
    let mut budget = i64::from(poll::PASS_BUDGET);
    loop {
        let first = core::with(|core| {
            let over = budget <= 0 || core.jiffies() > begin;
            let first = core.cpus[cpu as usize].polls.front().copied();
            if over && first.is_some() {
                core.poll_rearm(cpu);
                return None;
            }
            first.inspect(|&line| core.line(line).poll_runs = true)
        });
        let Some(number) = first else { return };
        let line = &lines[number as usize];
        let weight = line.moderator.choice().policy.budget();
        let pass = PollPass::new(weight);
        let work = line
            .moderator
            .on_poll(&line.queue, &line.platform, pass)
            .work();
        budget -= i64::from(work);
        if work >= weight.get() {
            core::with(|core| core.poll_rotate(cpu, number));
        }
    }
}
