// SPDX-License-Identifier: GPL-2.0

//! Tasks.

use super::{
    block,
    lines,
    relax,
    sleep,
    spend,
    with_bh_off,
    LineCode, //
};
use crate::{
    core::{
        self,
        defer::Piece, //
    },
    fault::Plant,
    platform,
    run::Driver,
    Ns, //
};
use irqmod::{
    moderator::Pass,
    Budget,
    Source, //
};

/// What the stopper takes.
const STOPPER: Ns = 2_000;
/// After how much of its rest a completion thread looks, once, whether somebody still wants its CPU.
pub(crate) const LOOK: Ns = 50_000;
/// What a hog takes at a time.
const HOG: Ns = 1_000_000;

/// A job with libaio: fills its queue, waits for one completion, takes all that there are.
pub(super) fn job(job: u32) {
    let (costs, depth) = core::with(|core| {
        let depth = core.jobs[job as usize].depth;
        (core.machine.costs.clone(), depth)
    });
    loop {
        while core::with(|core| core.wants_more(job, depth)) {
            spend(costs.prepare);
            let began = core::with(|core| core.now);
            spend(costs.submit);
            while !core::with(|core| core.submit(job, began)) {
                block();
            }
        }
        let count = loop {
            match core::with(|core| core.reapable(job)) {
                0 => {
                    block();
                }
                count => break count,
            }
        };
        spend(costs.reap + costs.reap_each * Ns::from(count));
        core::with(|core| core.reap(job, count));
    }
}

/// Wants the CPU all the time.
pub(super) fn hog() {
    loop {
        spend(HOG);
    }
}

/// Runs before everybody else on its CPU, for the watchdog.
pub(super) fn stopper(cpu: u32) {
    loop {
        if core::with(|core| core.cpus[cpu as usize].watchdog.is_asked()) {
            spend(STOPPER);
            core::with(|core| core.touch(cpu));
        }
        if core::with(|core| core.cpus[cpu as usize].leaving) {
            core::with(|core| core.take_down(cpu));
        }
        block();
    }
}

/// The interrupt thread of a line.
pub(super) fn thread(number: u32) {
    let lines = lines();
    let line = &lines[number as usize];
    let wake = core::with(|core| core.machine.costs.thread_wake);
    spend(wake);
    loop {
        match line.driver {
            Driver::Moderated(_) => {
                let _ = line.moderator.on_thread(&line.queue, &line.platform);
            }
            _ => {
                if line.queue.pending() {
                    let _ = platform::drain(number, Budget::UNLIMITED);
                }
            }
        }
        core::with(|core| core.thread_over(number));
        if block() {
            spend(wake);
        }
    }
}

/// A worker of the unbound workqueue: one line at a time.
pub(super) fn worker() {
    let lines = lines();
    loop {
        match core::with(|core| core.take_work()) {
            Some(number) => {
                let line = &lines[number as usize];
                let _ = line.moderator.on_thread(&line.queue, &line.platform);
                core::with(|core| core.work_over(number));
            }
            None => {
                block();
            }
        }
    }
}

/// The completion thread of a CPU: the lines of its list, in turn, as the ledger says.
pub(super) fn completer(cpu: u32) {
    let lines = lines();
    loop {
        if core::with(|core| core.cpus[cpu as usize].parking) {
            park(cpu, &lines);
            continue;
        }
        let next = core::with(|core| {
            let (line, budget) = core.take_listed(cpu)?;
            Some((line, budget, core.now, core.line(line).completed))
        });
        let Some((number, budget, began, before)) = next else {
            block();
            continue;
        };
        let line = &lines[number as usize];
        let pass = line.moderator.on_pass(&line.queue, &line.platform, budget);
        let piece = Piece {
            line: number,
            began,
            before,
            pass,
        };
        let rest = core::with(|core| core.listed_over(cpu, piece));
        match (pass, rest) {
            (_, Some(_)) if core::with(|core| core.plant) == Some(Plant::NeverRests) => (),
            (_, Some(rest)) => rest_for(cpu, rest),
            (Pass::Rest(span), None) => rest_for(cpu, span.as_nanos()),
            _ => relax(),
        }
    }
}

/// The CPU goes away: its lines go to their softirq pollers, or back to their handlers.
fn park(cpu: u32, lines: &[LineCode]) {
    let keeps = core::with(|core| core.plant) == Some(Plant::KeepsList);
    while let Some(line) = core::with(|core| core.unlist(cpu)).filter(|_| !keeps) {
        with_bh_off(|| core::with(|core| core.poll_sched(line)));
    }
    while let Some(line) = core::with(|core| core.take_held(cpu)) {
        let line = &lines[line as usize];
        line.moderator.on_hold_end(&line.queue, &line.platform);
    }
    core::with(|core| core.on_parked(cpu));
    while core::with(|core| core.cpus[cpu as usize].parking) {
        block();
    }
}

/// Sleeps. To park, or a CPU that nobody else wants, ends it early; a line that joins does not.
fn rest_for(cpu: u32, time: Ns) {
    let until_look = time.min(LOOK);
    sleep(until_look);
    let brief = core::with(|core| core.plant) == Some(Plant::RestsBriefly);
    let parks = core::with(|core| core.cpus[cpu as usize].parking);
    if !brief && !parks && !core::with(|core| core.is_alone(cpu)) {
        sleep(time - until_look);
    }
}
