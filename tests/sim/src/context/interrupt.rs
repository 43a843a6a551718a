// SPDX-License-Identifier: GPL-2.0

//! Hard interrupts.

use super::{
    lines,
    spend,
    suspend,
    LineCode, //
};
use crate::{
    core::{
        self,
        clock,
        cpu::Hard, //
    },
    run::Driver,
};
use irqmod::{
    Handled,
    Source, //
};

/// All hard interrupts of one CPU, one after the other.
pub(super) fn body(cpu: u32) {
    let lines = lines();
    loop {
        match core::with(|core| core.cpus[cpu as usize].hard) {
            Some(Hard::Timer) => timer(cpu, &lines),
            Some(Hard::Line(line)) => vector(&lines[line as usize]),
            None => (),
        }
        core::with(|core| core.exit_hard(cpu));
        suspend();
    }
}

/// The edge flow.
fn vector(line: &LineCode) {
    let number = line.number;
    if !core::with(|core| core.flow_enter(number)) {
        spend(core::with(|core| core.flow_mask(number)));
        return;
    }
    loop {
        let begin = core::with(|core| core.note_entry(number));
        let answer = handle(line);
        core::with(|core| {
            core.note_answer(number, answer != Handled::None, core.now - begin);
            if answer == Handled::WakeThread {
                core.wake_thread(number);
            }
        });
        if !core::with(|core| core.flow_again(number)) {
            return;
        }
    }
}

fn handle(line: &LineCode) -> Handled {
    match line.driver {
        Driver::Moderated(_) => line.moderator.on_interrupt(&line.queue, &line.platform),
        // The C driver's: the line stays open while its thread drains.
        Driver::StockThreaded if line.queue.pending() => Handled::WakeThread,
        Driver::StockThreaded => Handled::None,
    }
}

fn timer(cpu: u32, lines: &[LineCode]) {
    loop {
        let due = core::with(|core| core.take_timers(cpu));
        if due == 0 {
            return;
        }
        if due & clock::TICK != 0 {
            spend(core::with(|core| core.machine.costs.tick));
            core::with(|core| core.sched_tick(cpu));
        }
        if due & clock::WATCHDOG != 0 {
            core::with(|core| core.watch(cpu));
        }
        if due & clock::HOLD != 0 {
            hold_end(cpu, lines);
        }
        if due & clock::POLL != 0 {
            while let Some(line) = core::with(|core| core.take_due(cpu)) {
                core::with(|core| core.poll_sched(line));
            }
        }
    }
}

/// The hold timer of a CPU: the lines that it holds may go on.
fn hold_end(cpu: u32, lines: &[LineCode]) {
    while let Some(line) = core::with(|core| core.take_held(cpu)) {
        let line = &lines[line as usize];
        line.moderator.on_hold_end(&line.queue, &line.platform);
    }
}
