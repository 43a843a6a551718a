// SPDX-License-Identifier: GPL-2.0

//! CPUs that go away and come back.
//!
//! As in the kernel: first the completion thread is parked, which gives its lines to their softirq
//! pollers; then the stopper takes the CPU down, when nothing on it can be in the middle of anything,
//! and what is left goes to another CPU.

use super::{
    clock,
    poll,
    task::Kind,
    Core, //
};
use crate::trace::What;

impl Core {
    /// A CPU that is there, drawn at random.
    pub(crate) fn any_online(&mut self) -> u32 {
        let count = self.cpus.len() as u64;
        let first = self.random.below(count);
        let mut cpus = (first..first + count).map(|cpu| (cpu % count) as u32);
        let cpus = &mut cpus;
        cpus.find(|&cpu| self.cpus[cpu as usize].online)
            .unwrap_or_default()
    }

    /// Nothing new is to come to `cpu`, and its completion thread is to park.
    pub(crate) fn begin_unplug(&mut self, cpu: u32) {
        let (other, back) = (cpu, false);
        self.note(What::Plugged { other, back });
        let this = self.cpu(cpu);
        this.online = false;
        this.ready = false;
        this.parking = true;
        let completer = self.completer(cpu);
        self.wake(completer);
    }

    /// The completion thread of `cpu`, which it gets if it has none.
    pub(super) fn completer(&mut self, cpu: u32) -> u32 {
        if let Some(completer) = self.cpus[cpu as usize].completer {
            return completer;
        }
        let completer = self.spawn(Kind::Completer(cpu), cpu);
        *self.cpu(cpu).completer.insert(completer)
    }

    /// The completion thread of `cpu` is parked: the stopper is to go on.
    pub(crate) fn go_on_unplug(&mut self, cpu: u32) {
        let this = self.cpu(cpu);
        this.leaving = true;
        let stopper = this.stopper;
        self.wake(stopper);
    }

    /// The stopper of `cpu` runs: everything else moves to another CPU.
    pub(crate) fn take_down(&mut self, cpu: u32) {
        let to = self.any_online();
        self.move_lines(cpu, to);
        self.move_pollers(cpu, to);
        self.move_tasks(cpu, to);
        self.cpu(cpu).leaving = false;
    }

    fn move_lines(&mut self, cpu: u32, to: u32) {
        for line in &mut self.lines {
            if line.cpu == cpu {
                line.cpu = to;
            }
            if line.delayed_on == cpu {
                line.delayed_on = to;
            }
        }
        for what in std::mem::take(&mut self.cpu(cpu).pending) {
            self.raise(to, what);
        }
        let due = std::mem::take(&mut self.cpu(cpu).due);
        if !due.is_empty() {
            self.cpu(to).due.extend(due);
            self.expire(to, clock::POLL);
        }
    }

    fn move_pollers(&mut self, cpu: u32, to: u32) {
        let this = self.cpu(cpu);
        this.softirqs = 0;
        let polls = std::mem::take(&mut this.polls);
        if polls.is_empty() {
            return;
        }
        let there = self.cpu(to);
        there.polls.extend(polls);
        there.softirqs |= poll::IRQ_POLL;
        let ksoftirqd = there.ksoftirqd;
        self.wake(ksoftirqd);
    }

    fn move_tasks(&mut self, cpu: u32, to: u32) {
        for id in 0..self.tasks.len() as u32 {
            let task = &mut self.tasks[id as usize];
            if task.cpu != cpu || task.is_per_cpu() {
                continue;
            }
            if task.is_blocked() {
                task.cpu = to;
            } else {
                self.push_away(id, to);
            }
        }
    }

    /// `cpu` is back.
    pub(crate) fn plug(&mut self, cpu: u32) {
        let (other, back) = (cpu, true);
        self.note(What::Plugged { other, back });
        let this = self.cpu(cpu);
        this.online = true;
        this.ready = true;
        this.parking = false;
        this.parked = false;
        this.watchdog.restart();
        if let Some(completer) = this.completer {
            self.wake(completer);
        }
    }
}
