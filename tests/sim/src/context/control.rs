// SPDX-License-Identifier: GPL-2.0

//! Tasks that do to lines what drivers and administrators do.

use super::{
    block,
    lines,
    sleep,
    LineCode, //
};
use crate::{
    core::{
        self,
        task::Meddling,
        Core, //
    },
    fault::Plant,
    platform,
    trace::What,
    Ns, //
};
use irqmod::{
    Budget,
    Drain,
    Platform, //
};

/// How often overdue requests are looked for.
const TIMEOUT: Ns = 25_000_000;
/// How long a pause lasts at most.
const PAUSE: Ns = 500_000;
/// How long one who waits for another task looks away.
const WAIT: Ns = 20_000;
/// Resets of a storm at most.
const STORM: u64 = 6;

/// Does `what` now and then, as long as the faults say so.
pub(super) fn body(what: Meddling) {
    let lines = lines();
    loop {
        let mean = core::with(|core| interval(core, what));
        if mean == 0 {
            block();
            continue;
        }
        sleep(core::with(|core| core.random.below(2 * mean) + 1));
        match what {
            Meddling::Reset => with_pause(any(&lines), |_| ()),
            Meddling::Freeze => freeze(any(&lines)),
            Meddling::Peek => peek(any(&lines)),
            Meddling::Move => {
                let line = any(&lines).number;
                note(line, "moves to another CPU");
                core::with(|core| core.move_line(line));
            }
            Meddling::Switch => switch(any(&lines)),
            Meddling::Storm => storm(&lines),
            Meddling::Unplug => unplug(),
            Meddling::Rescue => lines.iter().for_each(rescue),
        }
    }
}

/// Mean time between two; 0: never again.
fn interval(core: &Core, what: Meddling) -> Ns {
    let faults = &core.faults;
    match what {
        Meddling::Reset => faults.reset_ns,
        Meddling::Freeze => faults.freeze_ns,
        Meddling::Peek => faults.peek_ns,
        Meddling::Move => faults.move_ns,
        Meddling::Switch => faults.switch_ns,
        Meddling::Storm => faults.storm_ns,
        Meddling::Unplug => faults.unplug_ns,
        Meddling::Rescue => TIMEOUT,
    }
}

fn any(lines: &[LineCode]) -> &LineCode {
    let count = lines.len() as u64;
    let place = core::with_random(|random| random.below(count));
    &lines[place as usize]
}

/// Notes what is done to a line.
fn note(line: u32, with: &'static str) {
    core::with(|core| core.note(What::Meddled { line, with }));
}

fn pause_a_while() {
    sleep(core::with(|core| core.random.below(PAUSE) + 1));
}

/// From here to [`unreserve`] no other task pauses the line.
fn reserve(line: &LineCode) {
    while core::with(|core| std::mem::replace(&mut core.line(line.number).paused, true)) {
        sleep(PAUSE);
    }
}

fn unreserve(line: &LineCode) {
    core::with(|core| core.line(line.number).paused = false);
}

/// Runs `f` while nobody drains as a task, or frees the line.
fn with_lifecycle<R>(line: &LineCode, f: impl FnOnce() -> R) -> R {
    while core::with(|core| std::mem::replace(&mut core.line(line.number).lifecycle, true)) {
        sleep(WAIT);
    }
    let result = f();
    core::with(|core| core.line(line.number).lifecycle = false);
    result
}

/// Pauses a line for a while; one at a time.
fn with_pause(line: &LineCode, f: impl FnOnce(&mut Core)) {
    reserve(line);
    note(line.number, "pauses");
    line.moderator.pause(&line.queue, &line.platform);
    pause_a_while();
    core::with(f);
    note(line.number, "resumes");
    line.moderator.resume(&line.queue, &line.platform);
    unreserve(line);
}

/// Gives a line that is in use another policy.
fn switch(line: &LineCode) {
    let Some(choice) = core::with(|core| {
        let count = core.switches.len() as u64;
        let place = core.random.below(count);
        core.switches.get(place as usize).copied()
    }) else {
        return;
    };
    reserve(line);
    note(line.number, "switches the policy");
    // Refused while the device is out of reach.
    if core::with(|core| core.line(line.number).reachable) {
        line.moderator.pause(&line.queue, &line.platform);
        line.moderator.set_choice(choice);
        line.moderator.resume(&line.queue, &line.platform);
    }
    unreserve(line);
}

/// Frees the interrupt, does `f`, and requests the interrupt again.
fn request_again(line: &LineCode, f: impl FnOnce()) {
    with_lifecycle(line, || {
        line.moderator.stop(&line.queue, &line.platform);
        note(line.number, "frees the interrupt");
        core::with(|core| core.shut(line.number));
        line.platform.synchronize();
        f();
        note(line.number, "requests the interrupt");
        line.moderator.prepare();
        core::with(|core| core.open(line.number));
        line.moderator.start();
        if core::with(|core| core.plant) != Some(Plant::NoLook) {
            // Ends with a look.
            let (queue, platform) = (&line.queue, &line.platform);
            line.moderator.exclusive(queue, platform, |_| ());
        }
    });
}

/// A controller is reset, and again before it has recovered.
fn storm(lines: &[LineCode]) {
    let (controller, times) = core::with(|core| {
        let controllers = core.controllers.len() as u64;
        let controller = core.random.below(controllers) as u32;
        (controller, 1 + core.random.below(STORM))
    });
    let its = |line: &&LineCode| core::with(|core| core.line(line.number).controller) == controller;
    let lines: Vec<&LineCode> = lines.iter().filter(its).collect();
    lines.iter().for_each(|line| reserve(line));
    for _ in 0..times {
        reset(&lines);
    }
    lines.iter().for_each(|line| unreserve(line));
}

/// A reset: with warning or without, of lines that keep their interrupts or request them again.
fn reset(lines: &[&LineCode]) {
    let (sudden, anew) = core::with(|core| (core.random.chance(500), core.random.chance(500)));
    let reach = |reachable| {
        core::with(|core| {
            for line in lines {
                core.line(line.number).reachable = reachable;
            }
        });
    };
    reach(!sudden);
    for line in lines {
        let with = if sudden {
            "resets, without a warning"
        } else {
            "resets"
        };
        note(line.number, with);
        line.moderator.pause(&line.queue, &line.platform);
    }
    core::with(|core| lines.iter().for_each(|line| core.forget(line.number)));
    pause_a_while();
    for line in lines {
        let recover = || {
            core::with(|core| core.line(line.number).reachable = true);
        };
        if anew {
            request_again(line, recover);
        } else {
            recover();
            note(line.number, "resumes");
            line.moderator.resume(&line.queue, &line.platform);
        }
        core::with(|core| core.ask_again(line.number));
    }
}

/// A CPU goes away and comes back. Not that of the tasks which do such things.
fn unplug() {
    let cpu = core::with(|core| {
        let others = u64::from(core.world.cpus - 1);
        core.random.below(others) as u32
    });
    core::with(|core| core.begin_unplug(cpu));
    while !core::with(|core| core.cpus[cpu as usize].parked) {
        sleep(WAIT);
    }
    core::with(|core| core.go_on_unplug(cpu));
    while core::with(|core| core.cpus[cpu as usize].leaving) {
        sleep(WAIT);
    }
    pause_a_while();
    core::with(|core| core.plug(cpu));
}

/// The device goes out of reach, whatever is going on, and comes back while it is paused.
fn freeze(line: &LineCode) {
    note(line.number, "puts the device out of reach");
    core::with(|core| core.line(line.number).reachable = false);
    pause_a_while();
    with_pause(line, |core| core.line(line.number).reachable = true);
}

/// A task drains, as the poll of a request does.
fn peek(line: &LineCode) {
    if core::with(|core| core.plant) == Some(Plant::DrainsUnasked) {
        let _ = platform::drain(line.number, Budget::UNLIMITED);
        return;
    }
    drain(line);
}

fn drain(line: &LineCode) {
    note(line.number, "drains as a task");
    with_lifecycle(line, || {
        line.moderator
            .exclusive(&line.queue, &line.platform, |queue| {
                while let Drain::More(_) = queue.drain(Budget::POLL_DEFAULT) {}
            });
    });
}

/// The timeout of a request that nobody came for.
fn rescue(line: &LineCode) {
    let overdue = core::with(|core| {
        let this = core.line(line.number);
        let overdue = this.excused && !this.posted.is_empty() && !this.paused;
        core.counts.missed += u64::from(overdue);
        overdue
    });
    if overdue {
        drain(line);
    }
}
