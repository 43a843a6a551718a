// SPDX-License-Identifier: GPL-2.0

//! Where the time of a CPU goes, and how long ordinary tasks get none of it.

use super::{
    cpu::{
        Cpu,
        Ctx, //
    },
    Core, //
};
use crate::Ns;

/// Where the time of a CPU went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    pub(crate) hard: Ns,
    pub(crate) soft: Ns,
    /// Interrupt threads, workers and ksoftirqd.
    pub(crate) service: Ns,
    /// Ordinary tasks.
    pub(crate) ordinary: Ns,
    pub(crate) switch: Ns,
    pub(crate) idle: Ns,
    pub(crate) interrupts: u64,
    pub(crate) switches: u64,
    pub(crate) softirqs: u64,
    pub(crate) deferrals: u64,
    /// Interrupts that saw a pending reschedule.
    pub(crate) pressed: u64,
}

/// A stretch of time in which ordinary tasks wanted a CPU and none got on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    pub(crate) since: Ns,
    pub(crate) length: Ns,
    /// What the CPU did in the meantime.
    pub(crate) during: Books,
}

impl Core {
    /// Books `elapsed` of the time of `cpu`.
    pub(super) fn charge(&mut self, cpu: u32, top: Option<Ctx>, elapsed: Ns) {
        if let Some(top) = top {
            self.blame_time(cpu, top, elapsed);
        }
        let now = self.now;
        let irq_time = self.machine.kernel.irq_time;
        let this = &mut self.cpus[cpu as usize];
        if let (Some(Ctx::Hard(_) | Ctx::Soft(_)), Some(current), false) =
            (top, this.current, irq_time)
        {
            self.tasks[current as usize].on_ran(elapsed);
        }
        let runs = matches!(top, Some(Ctx::Task(task)) if self.tasks[task as usize].is_ordinary());
        if !matches!(top, Some(Ctx::Switch(_))) {
            this.on_share(self.share, runs, elapsed);
        }
        match top {
            Some(Ctx::Hard(_)) => this.books.hard += elapsed,
            Some(Ctx::Soft(_)) => this.books.soft += elapsed,
            Some(Ctx::Switch(_)) => this.books.switch += elapsed,
            None => {
                this.books.idle += elapsed;
                this.quiescent = now;
            }
            Some(Ctx::Task(task)) => {
                let task = &mut self.tasks[task as usize];
                task.on_ran(elapsed);
                this.quiescent = now;
                if task.is_ordinary() {
                    this.books.ordinary += elapsed;
                    this.on_progress(now, elapsed);
                    let wait = this.longest;
                    if wait.since + wait.length + elapsed == now {
                        self.checker.waited(now - elapsed, cpu, wait.length);
                    }
                } else {
                    this.books.service += elapsed;
                }
            }
        }
    }
}

impl Cpu {
    /// An ordinary task got `elapsed` of CPU time, up to now.
    fn on_progress(&mut self, now: Ns, elapsed: Ns) {
        self.note_wait(now - elapsed);
        self.begin_wait(now);
    }

    /// `elapsed` has passed, in which ordinary tasks that want this CPU should get `share` of 1,000
    /// parts; `runs`: in which one ran.
    fn on_share(&mut self, share: u32, runs: bool, elapsed: Ns) {
        if self.wanting == 0 {
            self.lack = 0;
        } else if runs {
            let more = elapsed * u64::from(1_000 - share);
            self.lack = self.lack.saturating_sub(more);
        } else {
            self.lack += elapsed * u64::from(share);
            self.lack_max = self.lack_max.max(self.lack);
        }
    }

    /// From now on an ordinary task waits.
    fn begin_wait(&mut self, now: Ns) {
        self.blames.restart();
        self.waiting.since = now;
        self.waiting.during = self.books;
    }

    /// A wait ends at `until`, if there is one.
    fn note_wait(&mut self, until: Ns) {
        let length = until.saturating_sub(self.waiting.since);
        if self.wanting != 0 && length > self.longest.length {
            self.blames.keep(&mut self.longest_blames);
            self.longest = Wait {
                since: self.waiting.since,
                length,
                during: self.books.since(&self.waiting.during),
            };
        }
    }

    /// One more ordinary task wants this CPU.
    pub(crate) fn want(&mut self, now: Ns) {
        self.wanting += 1;
        if self.wanting == 1 {
            self.begin_wait(now);
        }
    }

    /// One ordinary task less wants this CPU.
    pub(crate) fn unwant(&mut self, now: Ns) {
        self.note_wait(now);
        self.wanting -= 1;
    }

    /// The end of the run.
    pub(crate) fn close_wait(&mut self, now: Ns) {
        self.note_wait(now);
    }

    /// What was booked up to now does not count.
    pub(crate) fn restart_books(&mut self, now: Ns) {
        self.books = Books::default();
        self.longest = Wait::default();
        self.begin_wait(now);
    }
}

impl Books {
    /// What was booked since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            hard: self.hard - before.hard,
            soft: self.soft - before.soft,
            service: self.service - before.service,
            ordinary: self.ordinary - before.ordinary,
            switch: self.switch - before.switch,
            idle: self.idle - before.idle,
            interrupts: self.interrupts - before.interrupts,
            switches: self.switches - before.switches,
            softirqs: self.softirqs - before.softirqs,
            deferrals: self.deferrals - before.deferrals,
            pressed: self.pressed - before.pressed,
        }
    }
}
