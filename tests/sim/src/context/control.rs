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
    Ns, //
};
use irqmod::{
    Budget,
    Drain,
    Source, //
};

/// How often overdue requests are looked for.
const TIMEOUT: Ns = 25_000_000;
/// How long a pause lasts at most.
const PAUSE: Ns = 500_000;

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
                core::with(|core| core.move_line(line));
            }
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
        Meddling::Rescue => TIMEOUT,
    }
}

fn any(lines: &[LineCode]) -> &LineCode {
    let count = lines.len() as u64;
    let place = core::with_random(|random| random.below(count));
    &lines[place as usize]
}

/// Pauses a line for a while; one at a time.
fn with_pause(line: &LineCode, f: impl FnOnce(&mut Core)) {
    while core::with(|core| std::mem::replace(&mut core.line(line.number).paused, true)) {
        sleep(PAUSE);
    }
    line.moderator.pause(&line.queue, &line.platform);
    sleep(core::with(|core| core.random.below(PAUSE) + 1));
    core::with(f);
    line.moderator.resume(&line.queue, &line.platform);
    core::with(|core| core.line(line.number).paused = false);
}

/// The device goes out of reach, whatever is going on, and comes back while it is paused.
fn freeze(line: &LineCode) {
    core::with(|core| core.line(line.number).reachable = false);
    sleep(core::with(|core| core.random.below(PAUSE) + 1));
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
    line.moderator
        .exclusive(&line.queue, &line.platform, |queue, right| {
            while let Drain::More(_) = queue.drain(right, Budget::POLL_DEFAULT) {}
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
