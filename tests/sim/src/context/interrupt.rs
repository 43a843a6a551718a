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
    fault::Plant,
    platform,
    run::{
        Driver,
        StockTimer, //
    },
};
use irqmod::{
    policy::timer::Expiry,
    time::Instant,
    Budget,
    Handled,
    MaskToken,
    Platform,
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
        if let Driver::StockTimer(config) = &line.driver {
            spend(core::with(|core| {
                core.stock_after(number, core.now - begin.at, config)
            }));
        }
        core::with(|core| {
            core.note_answer(number, answer, begin);
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
        Driver::Moderated(_) => {
            let answer = line.moderator.on_interrupt(&line.queue, &line.platform);
            match core::with(|core| core.plant) {
                Some(Plant::WantsNothing) if answer == Handled::Handled => Handled::None,
                Some(Plant::WantsEverything) if answer == Handled::None => Handled::Handled,
                _ => answer,
            }
        }
        // The C driver's: the line stays open while its thread drains.
        Driver::StockThreaded if line.queue.pending() => Handled::WakeThread,
        Driver::StockThreaded => Handled::None,
        Driver::StockTimer(_) | Driver::StockRate => {
            let found = platform::drain(line.number, Budget::UNLIMITED).found();
            core::with(|core| core.stock_rate(line.number, found));
            if found == 0 {
                Handled::None
            } else {
                Handled::Handled
            }
        }
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
        if due & clock::ALARM != 0 {
            core::with(|core| core.wake_sleepers(cpu));
        }
        if due & clock::POLL != 0 {
            while let Some(line) = core::with(|core| core.take_due(cpu)) {
                core::with(|core| core.poll_sched(line));
            }
        }
    }
}

/// The hold timer of a CPU: it starts again, or the lines that it holds may go on.
fn hold_end(cpu: u32, lines: &[LineCode]) {
    if let Some(Driver::StockTimer(config)) = lines.first().map(|line| &line.driver) {
        return stock_hold_end(cpu, lines, config);
    }
    let push = core::with(|core| {
        let now = Instant::from_nanos(core.now);
        match core.cpu(cpu).policies.timer.on_expiry(now) {
            Expiry::Release => None,
            Expiry::Push(span) => {
                core.arm_hold(cpu, span.as_nanos());
                Some(core.machine.costs.arm)
            }
        }
    });
    match push {
        Some(cost) => spend(cost),
        None => {
            while let Some(line) = core::with(|core| core.take_held(cpu)) {
                let line = &lines[line as usize];
                line.moderator.on_hold_end(&line.queue, &line.platform);
            }
        }
    }
}

/// As [`hold_end`], of the timer that the field measured.
fn stock_hold_end(cpu: u32, lines: &[LineCode], config: &StockTimer) {
    if core::with(|core| core.stock_expired(cpu, config)) {
        return spend(core::with(|core| core.machine.costs.arm));
    }
    while let Some(line) = core::with(|core| core.take_held(cpu)) {
        // The disable that goes with its place in the list.
        lines[line as usize].platform.unmask(MaskToken::mint());
    }
}
