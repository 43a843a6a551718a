// SPDX-License-Identifier: GPL-2.0

//! The phases of a run that looks for errors, and the looks at its lines in between.

use super::{
    heap::Event,
    task::{
        Kind,
        Meddling, //
    },
    Core, //
};
use crate::{
    fault::Faults,
    run::Options,
    Ns, //
};

/// How often the lines are looked at. Longer than anybody is on the way to a completion.
const AUDIT: Ns = 10_000_000;

impl Core {
    pub(super) fn start_audit(&mut self, options: &Options) {
        let Some(phases) = options.phases else { return };
        let begin = options.idle_ns;
        self.heap.plan(begin + phases.calm_ns, Event::Calm);
        self.heap.plan(begin + phases.quiet_ns, Event::Quiet);
        self.heap.plan(begin + AUDIT, Event::Audit);
        for what in Meddling::ALL {
            let cpu = self.world.cpus - 1;
            let task = self.spawn(Kind::Control(what), cpu);
            self.wake(task);
        }
    }

    pub(super) fn on_calm(&mut self) {
        self.faults = Faults::default();
    }

    pub(super) fn on_quiet(&mut self) {
        self.quiet = true;
    }

    pub(super) fn on_audit(&mut self) {
        self.heap.plan(self.now + AUDIT, Event::Audit);
        for line in 0..self.lines.len() as u32 {
            self.audit(line);
        }
    }

    /// Whether a completion waits for nobody since the last look.
    fn audit(&mut self, line: u32) {
        let expected = self.is_expected(line);
        let this = self.line(line);
        // A request comes again: it is the same completion only if none was completed since.
        let completed = this.completed;
        let oldest = this.posted.front().filter(|_| !expected);
        let oldest = oldest.map(|&request| (request, completed));
        let before = std::mem::replace(&mut this.suspect, oldest);
        if oldest.is_some() && before == oldest {
            self.checker.forgotten(self.now, line);
        }
    }

    /// Whether somebody is on the way to a line, or is excused.
    fn is_expected(&mut self, line: u32) -> bool {
        let deferred = self.is_deferred(line);
        let this = &self.lines[line as usize];
        let sent = this.is_queued() || this.in_flight != 0 || this.is_unmasking();
        let coming = sent || this.is_busy();
        // A task that drains may wait for its CPU, behind others, for longer than between two looks.
        let meddled = this.paused || !this.reachable || this.excused || this.lifecycle;
        deferred || coming || meddled || this.drainers != 0 || this.locked
    }
}
