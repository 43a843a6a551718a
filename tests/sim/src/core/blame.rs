// SPDX-License-Identifier: GPL-2.0

//! Which lines have what an ordinary task waits for.

use super::{
    cpu::{
        Cpu,
        Ctx,
        Hard, //
    },
    Core, //
};
use crate::Ns;
use serde::Serialize;

/// What one line took of a CPU while ordinary tasks waited, and what its policy could see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// The line.
    pub line: u32,
    /// Time in hard interrupts.
    pub hard: Ns,
    /// Time in softirqs on the way out of interrupts.
    pub soft: Ns,
    /// Time in interrupt threads, workers, completion threads and ksoftirqd.
    pub service: Ns,
    /// Runs of the handler.
    pub handler_runs: u64,
    /// The longest of them.
    pub handler_max: Ns,
    /// Completions.
    pub completions: u64,
    /// Completions of one drain at most.
    pub found_max: u32,
    /// Commands under way at the end of a drain, at most.
    pub in_flight_max: u32,
    /// How often it was deferred.
    pub deferrals: u64,
}

/// The blames of one stretch of waiting.
#[derive(Default)]
pub(crate) struct Blames {
    /// The number of the stretch. What is older counts as nothing.
    stretch: u64,
    lines: Vec<(u64, Blame)>,
}

impl Blames {
    /// Another stretch begins.
    pub(super) fn restart(&mut self) {
        self.stretch += 1;
    }

    fn of(&mut self, line: u32) -> &mut Blame {
        let place = line as usize;
        if self.lines.len() <= place {
            self.lines.resize(place + 1, (0, Blame::default()));
        }
        let (stretch, blame) = &mut self.lines[place];
        if *stretch != self.stretch {
            *stretch = self.stretch;
            *blame = Blame {
                line,
                ..Blame::default()
            };
        }
        blame
    }

    /// Those of this stretch, into `kept`.
    pub(super) fn keep(&self, kept: &mut Vec<Blame>) {
        let now = self.lines.iter();
        kept.clear();
        kept.extend(
            now.filter(|(stretch, _)| *stretch == self.stretch)
                .map(|(_, blame)| blame),
        );
    }
}

impl Cpu {
    /// The line that a context works for; none: no line.
    fn works_for(&self, top: Ctx, of_task: Option<u32>) -> Option<u32> {
        match top {
            Ctx::Hard(_) => match self.hard {
                Some(Hard::Line(line)) => Some(line),
                _ => None,
            },
            Ctx::Soft(_) => self.soft_line,
            Ctx::Task(_) => of_task,
            Ctx::Switch(_) => None,
        }
    }
}

impl Core {
    /// `elapsed` has passed in the context `top` of `cpu`.
    pub(super) fn blame_time(&mut self, cpu: u32, top: Ctx, elapsed: Ns) {
        let of_task = match top {
            Ctx::Task(task) => self.tasks[task as usize].line,
            _ => None,
        };
        let this = &mut self.cpus[cpu as usize];
        if this.wanting == 0 {
            return;
        }
        let Some(line) = this.works_for(top, of_task) else {
            return;
        };
        let blame = this.blames.of(line);
        match top {
            Ctx::Hard(_) => blame.hard += elapsed,
            Ctx::Soft(_) => blame.soft += elapsed,
            _ => blame.service += elapsed,
        }
    }

    /// The running context begins, or ends, to work for a line.
    pub(super) fn set_working_for(&mut self, line: Option<u32>) {
        let cpu = self.here();
        match self.running {
            Ctx::Soft(_) => self.cpu(cpu).soft_line = line,
            Ctx::Task(task) => self.tasks[task as usize].line = line,
            Ctx::Hard(_) | Ctx::Switch(_) => (),
        }
    }

    /// A handler of `line` ran for `took`.
    pub(super) fn blame_handler(&mut self, line: u32, took: Ns) {
        let cpu = self.here();
        let blame = self.cpu(cpu).blames.of(line);
        blame.handler_runs += 1;
        blame.handler_max = blame.handler_max.max(took);
    }

    /// A drain of `line` found `found`.
    pub(super) fn blame_drain(&mut self, line: u32, found: u32) {
        let cpu = self.here();
        let in_flight = self.lines[line as usize].tags;
        let blame = self.cpu(cpu).blames.of(line);
        blame.completions += u64::from(found);
        blame.found_max = blame.found_max.max(found);
        blame.in_flight_max = blame.in_flight_max.max(in_flight);
    }

    /// `line` was deferred.
    pub(super) fn blame_deferral(&mut self, line: u32) {
        let cpu = self.here();
        self.cpu(cpu).blames.of(line).deferrals += 1;
    }
}
