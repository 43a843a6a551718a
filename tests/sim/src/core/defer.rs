// SPDX-License-Identifier: GPL-2.0

//! Deferred contexts other than the softirq poller: hold lists, work items, completion threads and
//! delayed pollers.

use super::{
    cpu::Ctx,
    heap::Event,
    task::Kind,
    Core, //
};
use crate::{
    trace::What,
    Ns, //
};
use irqmod::{
    moderator::Pass,
    observation::Glance,
    time::{
        Instant,
        Span, //
    },
    Budget,
    Deferral, //
};

/// What a completion thread did for one line.
pub(crate) struct Piece {
    pub(crate) line: u32,
    pub(crate) began: Ns,
    /// Completions of the line before it.
    pub(crate) before: u64,
    pub(crate) pass: Pass,
}

impl Core {
    /// A look at the CPU of the running context.
    pub(crate) fn glance(&mut self) -> Glance {
        let cpu = self.here();
        let flaps = self.faults.flapping;
        let flap = self.random.chance(flaps);
        let hard = matches!(self.running, Ctx::Hard(_));
        let this = self.cpu(cpu);
        let mut glance = Glance::empty();
        glance.set(Glance::HARDIRQ, hard);
        glance.set(Glance::RESCHED, this.need_resched != flap);
        glance.set(Glance::LAZY, this.lazy);
        glance.set(
            Glance::IDLE,
            this.current.is_none() && !this.switching && !this.soft,
        );
        glance.set(Glance::DEFERRING, this.policies.ledger.is_deferring());
        this.books.pressed += u64::from(this.need_resched || this.lazy);
        glance
    }

    /// Schedules the context that drains a line next.
    pub(crate) fn defer(&mut self, line: u32, to: Deferral) {
        let cpu = self.here();
        self.cpu(cpu).books.deferrals += 1;
        self.blame_deferral(line);
        self.note(What::Deferred { line });
        if self.line(line).poll_disable {
            return;
        }
        match to {
            Deferral::Hold | Deferral::Cpu if !self.cpus[cpu as usize].ready => {
                let now = Instant::from_nanos(self.now);
                let policies = &mut self.cpu(cpu).policies;
                match to {
                    Deferral::Hold => policies.timer.on_release(),
                    _ => policies.ledger.leave(now),
                }
                self.poll_sched(line);
            }
            Deferral::Thread => self.wake_thread(line),
            Deferral::Softirq => self.poll_sched(line),
            Deferral::Work => self.queue_work(line),
            Deferral::Hold => {
                self.line(line).held = true;
                self.cpu(cpu).held.push_back(line);
            }
            Deferral::Cpu => self.list(cpu, line),
        }
    }

    /// Whether a deferred context has the line.
    pub(crate) fn is_deferred(&mut self, line: u32) -> bool {
        let this = self.line(line);
        this.poll_sched || this.held || this.work || this.listed || this.served || this.delayed
    }

    /// The next line that a CPU holds.
    pub(crate) fn take_held(&mut self, cpu: u32) -> Option<u32> {
        let line = self.cpu(cpu).held.pop_front()?;
        self.line(line).held = false;
        Some(line)
    }

    fn queue_work(&mut self, line: u32) {
        if std::mem::replace(&mut self.line(line).work, true) {
            return;
        }
        self.work.push_back(line);
        let idle = self.workers.iter().copied();
        let idle = idle
            .into_iter()
            .find(|&task| self.tasks[task as usize].is_blocked());
        let worker = idle.unwrap_or_else(|| {
            let cpu = self.here();
            let worker = self.spawn(Kind::Worker, cpu);
            self.workers.push(worker);
            worker
        });
        self.wake(worker);
    }

    /// The next item of the workqueue, for a worker: not one that another worker runs.
    ///
    /// It can be queued again as soon as it runs.
    pub(crate) fn take_work(&mut self) -> Option<u32> {
        let lines = &self.lines;
        let next = self.work.iter();
        let next = next
            .copied()
            .position(|line| !lines[line as usize].served)?;
        let line = self.work.remove(next)?;
        let this = self.line(line);
        this.work = false;
        this.served = true;
        Some(line)
    }

    pub(crate) fn work_over(&mut self, line: u32) {
        self.line(line).served = false;
    }

    fn list(&mut self, cpu: u32, line: u32) {
        if std::mem::replace(&mut self.line(line).listed, true) {
            return;
        }
        self.cpu(cpu).listed.push_back(line);
        let completer = self.completer(cpu);
        self.wake(completer);
    }

    /// The line that the completion thread of a CPU serves next, and how much of it.
    ///
    /// It is taken off the list first: its handler may put it there again as soon as it is given
    /// back, which is before the thread hears of that.
    pub(crate) fn take_listed(&mut self, cpu: u32) -> Option<(u32, Budget)> {
        let now = Instant::from_nanos(self.now);
        let this = self.cpu(cpu);
        let Some(line) = this.listed.pop_front() else {
            this.policies.ledger.leave(now);
            return None;
        };
        let budget = this.policies.ledger.piece();
        self.line(line).listed = false;
        self.line(line).served = true;
        Some((line, budget))
    }

    /// The completion thread has served a line. Returns how long it must rest.
    pub(crate) fn listed_over(&mut self, cpu: u32, piece: Piece) -> Option<Ns> {
        let now = Instant::from_nanos(self.now);
        let found = self.line(piece.line).completed - piece.before;
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        let contended = !self.is_alone(cpu);
        let this = self.cpu(cpu);
        let began = Instant::from_nanos(piece.began);
        let ledger = &mut this.policies.ledger;
        let rest = ledger.on_piece(began, now, found, contended);
        let last = ledger.turn_is_over();
        self.line(piece.line).served = false;
        if piece.pass != Pass::Done {
            self.line(piece.line).listed = true;
            let list = &mut self.cpu(cpu).listed;
            if last || piece.pass != Pass::Again {
                list.push_back(piece.line);
            } else {
                list.push_front(piece.line);
            }
        }
        rest.map(Span::as_nanos)
    }

    /// Whether nobody but the running task wants `cpu` (`single_task_running()`).
    pub(crate) fn is_alone(&self, cpu: u32) -> bool {
        self.cpus[cpu as usize].queue.is_empty()
    }

    /// The next line that a completion thread that parks leaves to its softirq poller.
    pub(crate) fn unlist(&mut self, cpu: u32) -> Option<u32> {
        let line = self.cpu(cpu).listed.pop_front()?;
        self.line(line).listed = false;
        Some(line)
    }

    /// The completion thread of `cpu` has parked.
    pub(crate) fn on_parked(&mut self, cpu: u32) {
        let now = Instant::from_nanos(self.now);
        let this = self.cpu(cpu);
        this.policies.timer.on_release();
        this.policies.ledger.leave(now);
        this.hold_seq = this.hold_seq.wrapping_add(1);
        this.parked = true;
    }

    /// Schedules the softirq poller of a line after a while.
    pub(crate) fn poll_after(&mut self, line: u32, after: Ns) {
        let at = self.now + after;
        let cpu = self.here();
        let this = self.line(line);
        this.delayed = true;
        this.delayed_on = cpu;
        this.poll_seq = this.poll_seq.wrapping_add(1);
        let seq = this.poll_seq;
        self.counts.timers += 1;
        self.heap.plan(at, Event::PollTimer { line, seq });
    }

    /// The timer interrupt of a delayed poller.
    pub(crate) fn on_poll_timer(&mut self, line: u32, seq: u32) {
        let this = self.line(line);
        if this.poll_seq != seq || !this.delayed {
            return;
        }
        let cpu = this.delayed_on;
        self.cpu(cpu).due.push(line);
        self.expire(cpu, super::clock::POLL);
    }

    /// The pollers whose delay is over.
    pub(crate) fn take_due(&mut self, cpu: u32) -> Option<u32> {
        let line = self.cpu(cpu).due.pop()?;
        self.line(line).delayed = false;
        Some(line)
    }
}
