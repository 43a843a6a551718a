// SPDX-License-Identifier: GPL-2.0

//! Contexts on a CPU: a task, a softirq on top of it, a hard interrupt on top of that.
//!
//! A context *spends* time while it is on top and is resumed when it has spent all of it. Whoever
//! changes what is on top says [`Core::pause`] before and [`Core::go`] after it.

use super::{
    blame::{
        Blame,
        Blames, //
    },
    books::{
        Books,
        Wait, //
    },
    clock::Watchdog,
    heap::Event,
    task::Queue,
    Core, //
};
use crate::Ns;
use std::collections::VecDeque;

/// Something that takes CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ctx {
    /// The hard interrupts of a CPU, one after the other.
    Hard(u32),
    /// The softirqs of a CPU on the way out of an interrupt.
    Soft(u32),
    /// A task, wherever it is.
    Task(u32),
    /// A CPU between two tasks. No code runs.
    Switch(u32),
}

/// What a hard interrupt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hard {
    /// Timers of this CPU have expired.
    Timer,
    /// A vector.
    Line(u32),
}

/// The time that a context has to spend before its code goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Act {
    pub(crate) left: Ns,
}

/// A CPU.
pub(crate) struct Cpu {
    pub(crate) hard: Option<Hard>,
    pub(crate) soft: bool,
    pub(crate) switching: bool,
    /// The task that runs or is interrupted; none: idle.
    pub(crate) current: Option<u32>,
    /// Interrupts that wait for this CPU.
    pub(crate) pending: VecDeque<Hard>,
    /// Raised softirqs.
    pub(crate) softirqs: u8,
    pub(crate) need_resched: bool,
    pub(crate) lazy: bool,
    pub(crate) queue: Queue,
    /// Expired timers whose interrupt has not been handled: bits of [`super::clock`].
    pub(crate) timers: u8,
    pub(crate) tick_seq: u32,
    pub(crate) tick_stopped: bool,
    pub(crate) hold_seq: u32,
    pub(crate) watchdog: Watchdog,
    /// Lines whose pollers wait for the softirq, in order.
    pub(crate) polls: VecDeque<u32>,
    /// Lines that are held until the hold timer, those that the completion thread serves, and those
    /// whose delayed poller is due.
    pub(crate) held: VecDeque<u32>,
    pub(crate) listed: VecDeque<u32>,
    pub(crate) due: Vec<u32>,
    pub(crate) completer: Option<u32>,
    /// Sleeping tasks whose time is over, each with the number of its sleep.
    pub(crate) alarms: Vec<(u32, u32)>,
    pub(crate) stock: super::stock::StockCpu,
    /// The expiry of the hold timer that waits for a halted CPU.
    pub(crate) hold_late: Option<u32>,
    /// What the policies remember of this CPU.
    pub(crate) policies: irqmod::policy::Cpu,
    pub(crate) ksoftirqd: u32,
    pub(crate) stopper: u32,
    pub(crate) online: bool,
    /// Lines can be deferred to it.
    pub(crate) ready: bool,
    /// The completion thread is to park, and has.
    pub(crate) parking: bool,
    pub(crate) parked: bool,
    /// The stopper is to take it down.
    pub(crate) leaving: bool,
    /// Mean length of the last idle times, and when the present one began.
    pub(crate) idle_mean: Ns,
    pub(crate) idle_since: Ns,
    /// When its waiting tasks may be moved again.
    pub(crate) next_balance: Ns,
    /// Ordinary tasks that want this CPU, running or not.
    pub(crate) wanting: u32,
    /// Since when they have got nothing.
    pub(super) waiting: Wait,
    pub(crate) longest: Wait,
    /// Which lines they wait for, and waited for longest.
    pub(super) blames: Blames,
    pub(crate) longest_blames: Vec<Blame>,
    /// The line that the softirq on the way out of an interrupt drains.
    pub(super) soft_line: Option<u32>,
    /// What they lack of their share, and lacked at most. Unit: nanoseconds, times 1,000.
    pub(super) lack: u64,
    pub(crate) lack_max: u64,
    pub(crate) books: Books,
    /// Counts quiescent states, for RCU.
    pub(crate) quiescent: Ns,
    hard_act: Act,
    soft_act: Act,
    switch_act: Act,
    since: Ns,
    seq: u32,
}

impl Cpu {
    pub(crate) fn new(ksoftirqd: u32, stopper: u32) -> Self {
        Self {
            hard: None,
            soft: false,
            switching: false,
            current: None,
            pending: VecDeque::new(),
            softirqs: 0,
            need_resched: false,
            lazy: false,
            queue: Queue::default(),
            timers: 0,
            tick_seq: 0,
            tick_stopped: true,
            hold_seq: 0,
            watchdog: Watchdog::default(),
            polls: VecDeque::new(),
            held: VecDeque::new(),
            listed: VecDeque::new(),
            due: Vec::new(),
            completer: None,
            alarms: Vec::new(),
            stock: super::stock::StockCpu::default(),
            hold_late: None,
            policies: irqmod::policy::Cpu::new(),
            ksoftirqd,
            stopper,
            online: true,
            ready: true,
            parking: false,
            parked: false,
            leaving: false,
            idle_mean: 0,
            idle_since: 0,
            next_balance: 0,
            wanting: 0,
            waiting: Wait::default(),
            longest: Wait::default(),
            blames: Blames::default(),
            longest_blames: Vec::new(),
            soft_line: None,
            lack: 0,
            lack_max: 0,
            books: Books::default(),
            quiescent: 0,
            hard_act: Act::default(),
            soft_act: Act::default(),
            switch_act: Act::default(),
            since: 0,
            seq: 0,
        }
    }

    /// Neither interrupt nor softirq.
    pub(crate) fn at_task_level(&self) -> bool {
        self.hard.is_none() && !self.soft
    }
}

impl Core {
    pub(crate) fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.cpus[cpu as usize]
    }

    /// The context that has the CPU; none: idle.
    fn top(&self, cpu: u32) -> Option<Ctx> {
        let this = &self.cpus[cpu as usize];
        if this.hard.is_some() {
            Some(Ctx::Hard(cpu))
        } else if this.soft {
            Some(Ctx::Soft(cpu))
        } else if this.switching {
            Some(Ctx::Switch(cpu))
        } else {
            this.current.map(Ctx::Task)
        }
    }

    /// The CPU that a context is on.
    pub(crate) fn cpu_of(&self, ctx: Ctx) -> u32 {
        match ctx {
            Ctx::Hard(cpu) | Ctx::Soft(cpu) | Ctx::Switch(cpu) => cpu,
            Ctx::Task(task) => self.tasks[task as usize].cpu,
        }
    }

    /// The CPU that the running code is on.
    pub(crate) fn here(&self) -> u32 {
        self.cpu_of(self.running)
    }

    fn act(&mut self, ctx: Ctx) -> &mut Act {
        match ctx {
            Ctx::Hard(cpu) => &mut self.cpu(cpu).hard_act,
            Ctx::Soft(cpu) => &mut self.cpu(cpu).soft_act,
            Ctx::Switch(cpu) => &mut self.cpu(cpu).switch_act,
            Ctx::Task(task) => &mut self.tasks[task as usize].act,
        }
    }

    /// Before the top of `cpu` changes: books what it has spent.
    pub(crate) fn pause(&mut self, cpu: u32) {
        let elapsed = self.now - self.cpus[cpu as usize].since;
        if elapsed == 0 {
            return;
        }
        let top = self.top(cpu);
        self.charge(cpu, top, elapsed);
        if let Some(ctx) = top {
            let act = self.act(ctx);
            act.left = act.left.saturating_sub(elapsed);
        }
        self.cpu(cpu).since = self.now;
    }

    /// After the top of `cpu` changed: it begins to spend, or is ready.
    pub(crate) fn go(&mut self, cpu: u32) {
        let now = self.now;
        let this = self.cpu(cpu);
        this.since = now;
        this.seq = this.seq.wrapping_add(1);
        let seq = this.seq;
        let Some(ctx) = self.top(cpu) else { return };
        match self.act(ctx).left {
            0 => self.ready.push_back(ctx),
            left => self.heap.plan(now + left, Event::CpuDone { cpu, seq }),
        }
    }

    /// The running context takes `time`. Returns whether that is over already.
    pub(crate) fn spend(&mut self, time: Ns) -> bool {
        let ctx = self.running;
        let cpu = self.cpu_of(ctx);
        let on_top = self.top(cpu) == Some(ctx);
        let end = self.now + time;
        if on_top && self.ready.is_empty() && self.heap.next_at() > end && end < self.end {
            self.now = end;
            self.charge(cpu, Some(ctx), time);
            self.cpu(cpu).since = end;
            return true;
        }
        self.act(ctx).left += time;
        if on_top {
            self.go(cpu);
        }
        false
    }

    /// A context has spent its time: the next one whose code goes on.
    pub(crate) fn on_cpu_done(&mut self, cpu: u32, seq: u32) {
        if self.cpus[cpu as usize].seq != seq {
            return;
        }
        self.pause(cpu);
        if let Some(ctx) = self.top(cpu) {
            self.ready.push_back(ctx);
        }
    }

    /// Whether the code of `ctx`, which was ready a moment ago, may go on.
    pub(crate) fn is_runnable(&mut self, ctx: Ctx) -> bool {
        let cpu = self.cpu_of(ctx);
        self.top(cpu) == Some(ctx) && self.act(ctx).left == 0
    }

    /// An interrupt reaches a CPU.
    pub(crate) fn raise(&mut self, cpu: u32, what: Hard) {
        let first = what == Hard::Timer && self.machine.kernel.timer_first;
        let this = self.cpu(cpu);
        if first {
            this.pending.push_front(what);
        } else {
            this.pending.push_back(what);
        }
        if this.hard.is_none() {
            self.pause(cpu);
            self.begin_hard(cpu);
            self.go(cpu);
        }
    }

    /// The next interrupt that waits begins.
    fn begin_hard(&mut self, cpu: u32) {
        let cost = self.machine.costs.interrupt;
        let this = self.cpu(cpu);
        this.hard = this.pending.pop_front();
        if this.hard.is_some() {
            this.books.interrupts += 1;
            this.hard_act.left = cost;
        }
    }

    /// The code of a hard interrupt ends.
    pub(crate) fn exit_hard(&mut self, cpu: u32) {
        self.pause(cpu);
        self.cpu(cpu).hard = None;
        self.leave(cpu);
    }

    /// The softirqs on the way out of an interrupt end.
    pub(crate) fn exit_soft(&mut self, cpu: u32) {
        self.pause(cpu);
        self.cpu(cpu).soft = false;
        self.preempt(cpu);
        self.go(cpu);
    }

    /// The way out of an interrupt: softirqs, or the scheduler, and the next interrupt on top.
    fn leave(&mut self, cpu: u32) {
        let bh_off = self.bh_off(cpu);
        let cost = self.machine.costs.softirq;
        let this = self.cpu(cpu);
        if !this.soft && this.softirqs != 0 && !bh_off {
            this.soft = true;
            this.soft_act.left = cost;
        } else if !this.soft {
            self.preempt(cpu);
        }
        self.begin_hard(cpu);
        self.go(cpu);
    }

    /// Whether the current task of `cpu` keeps softirqs, and the scheduler, away.
    fn bh_off(&self, cpu: u32) -> bool {
        let current = self.cpus[cpu as usize].current;
        current.is_some_and(|task| self.tasks[task as usize].bh_off != 0)
    }

    /// The running task keeps softirqs and the scheduler away. Nothing if it is not a task.
    pub(crate) fn bh_disable(&mut self) {
        if let Ctx::Task(task) = self.running {
            self.tasks[task as usize].bh_off += 1;
        }
    }

    /// The end of [`bh_disable`](Self::bh_disable): what was kept away comes now. Returns whether
    /// the task goes on at once.
    pub(crate) fn bh_enable(&mut self) -> bool {
        let Ctx::Task(task) = self.running else {
            return true;
        };
        let bh_off = &mut self.tasks[task as usize].bh_off;
        *bh_off -= 1;
        if *bh_off != 0 {
            return true;
        }
        let cpu = self.here();
        if self.cpus[cpu as usize].hard.is_none() {
            self.pause(cpu);
            self.leave(cpu);
        }
        self.top(cpu) == Some(self.running)
    }

    /// The CPU begins to change its task.
    pub(crate) fn begin_switch(&mut self, cpu: u32, cost: Ns) {
        let this = self.cpu(cpu);
        this.switching = true;
        this.switch_act.left = cost;
    }
}
