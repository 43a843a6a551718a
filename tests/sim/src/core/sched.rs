// SPDX-License-Identifier: GPL-2.0

//! The scheduler.
//!
//! Three classes: the stopper, FIFO interrupt threads in the order in which they woke, and fair
//! tasks, of which the one that has had least runs next, for a slice. Fair is an approximation of
//! EEVDF: no weights, no lag beyond one slice.

use super::{
    clock::ALARM,
    cpu::Ctx,
    heap::Event,
    task::{
        Class,
        Kind,
        State,
        Task, //
    },
    Core, //
};
use crate::{
    trace::What,
    Ns, //
};

/// Mean idle time from which a CPU looks for tasks elsewhere.
const WORTH_A_PULL: Ns = 500_000;

impl Core {
    /// A new task, blocked.
    pub(crate) fn spawn(&mut self, kind: Kind, cpu: u32) -> u32 {
        self.tasks.push(Task::new(kind, cpu));
        u32::try_from(self.tasks.len() - 1).unwrap_or(u32::MAX)
    }

    /// The running task waits for a wake-up. Returns whether one had come already.
    pub(crate) fn block(&mut self) -> bool {
        let Ctx::Task(id) = self.running else {
            return true;
        };
        let task = &mut self.tasks[id as usize];
        task.sleep_seq = task.sleep_seq.wrapping_add(1);
        if std::mem::take(&mut task.token) {
            return true;
        }
        task.state = State::Blocked;
        let (cpu, ordinary) = (task.cpu, task.is_ordinary());
        self.pause(cpu);
        if ordinary {
            let now = self.now;
            self.cpu(cpu).unwant(now);
        }
        self.cpu(cpu).current = None;
        if self.cpus[cpu as usize].queue.is_empty() {
            self.pull(cpu);
        }
        if self.cpus[cpu as usize].queue.is_empty() {
            self.enter_idle(cpu);
        } else {
            let cost = self.machine.costs.switch;
            self.begin_switch(cpu, cost);
        }
        self.go(cpu);
        false
    }

    /// The running task will be woken after `time`, unless it is woken before.
    pub(crate) fn set_alarm(&mut self, time: Ns) {
        if let Ctx::Task(id) = self.running {
            let seq = self.tasks[id as usize].sleep_seq.wrapping_add(1);
            let event = Event::Wake { task: id, seq };
            let at = self.now + time + self.late_timer();
            self.heap.plan(at, event);
        }
    }

    pub(crate) fn on_alarm(&mut self, id: u32, seq: u32) {
        let task = &self.tasks[id as usize];
        if task.sleep_seq == seq {
            let cpu = task.cpu;
            self.cpu(cpu).alarms.push((id, seq));
            self.expire(cpu, ALARM);
        }
    }

    /// The timer interrupt of tasks that sleep.
    pub(crate) fn wake_sleepers(&mut self, cpu: u32) {
        for (id, seq) in std::mem::take(&mut self.cpu(cpu).alarms) {
            if self.tasks[id as usize].sleep_seq == seq {
                self.wake(id);
            }
        }
    }

    /// Wakes a task; one that is awake remembers it.
    pub(crate) fn wake(&mut self, id: u32) {
        let task = &mut self.tasks[id as usize];
        if task.state != State::Blocked {
            task.token = true;
            return;
        }
        task.sleep_seq = task.sleep_seq.wrapping_add(1);
        let cpu = self.place(id);
        self.enqueue(id, cpu);
        self.press(cpu, id);
    }

    /// The CPU on which a task wakes: where it was if that is idle, else here if this is, else one
    /// of a few that are looked at, else the less busy one of here and where it was.
    fn place(&mut self, id: u32) -> u32 {
        let (pinned, last) = {
            let task = &self.tasks[id as usize];
            (task.pinned, task.cpu)
        };
        let here = self.here();
        if self.tasks[id as usize].is_per_cpu() {
            return last;
        }
        if !self.cpus[last as usize].online {
            return self.any_online();
        }
        if pinned || self.is_vacant(last) {
            return last;
        }
        if self.is_vacant(here) {
            return here;
        }
        let count = self.cpus.len() as u64;
        let first = self.random.below(count);
        let scanned = u64::from(self.machine.kernel.wake_scan).min(count);
        (first..first + scanned)
            .map(|cpu| (cpu % count) as u32)
            .find(|&cpu| self.is_vacant(cpu))
            .unwrap_or(if self.load(here) <= self.load(last) {
                here
            } else {
                last
            })
    }

    /// Tasks that want a CPU.
    fn load(&self, cpu: u32) -> usize {
        let this = &self.cpus[cpu as usize];
        this.queue.fair.len() + usize::from(this.current.is_some())
    }

    /// Idle as the scheduler sees it, which does not see interrupts.
    fn is_vacant(&self, cpu: u32) -> bool {
        let this = &self.cpus[cpu as usize];
        this.online && this.current.is_none() && this.queue.is_empty()
    }

    fn enqueue(&mut self, id: u32, cpu: u32) {
        let now = self.now;
        // What passed up to now, passed before the task came.
        self.pause(cpu);
        let this = &mut self.cpus[cpu as usize];
        let task = &mut self.tasks[id as usize];
        let moved = task.cpu != cpu;
        task.cpu = cpu;
        task.state = State::Queued;
        match task.class {
            Class::Stop => this.queue.stop.push_back(id),
            Class::Fifo => this.queue.fifo.push_back(id),
            Class::Fair => {
                let floor = this.queue.floor;
                task.vruntime = if moved {
                    floor
                } else {
                    task.vruntime.max(floor)
                };
                this.queue.fair.push(id);
            }
        }
        if task.is_ordinary() {
            this.want(now);
        }
    }

    /// A task was queued on `cpu`: does it ask for the CPU?
    fn press(&mut self, cpu: u32, id: u32) {
        let slice = self.machine.kernel.slice_ns;
        let lazy = self.machine.kernel.lazy;
        let task = &self.tasks[id as usize];
        let current = self.cpus[cpu as usize].current;
        let current = current.map(|current| &self.tasks[current as usize]);
        let (now, later) = match current {
            None => (true, false),
            Some(current) => match (task.class, current.class) {
                (Class::Fair, Class::Fair) => {
                    let due = current.vruntime > task.vruntime + slice || current.ran >= slice;
                    (due && !lazy, due && lazy)
                }
                (Class::Fair | Class::Fifo, Class::Fifo) | (_, Class::Stop) => (false, false),
                _ => (true, false),
            },
        };
        let this = self.cpu(cpu);
        this.need_resched |= now;
        this.lazy |= later;
        if this.at_task_level() {
            self.pause(cpu);
            self.preempt(cpu);
            self.go(cpu);
        }
    }

    /// At task level: begins a switch if one is due and allowed.
    pub(crate) fn preempt(&mut self, cpu: u32) {
        let this = &self.cpus[cpu as usize];
        if this.switching {
            return;
        }
        match this.current {
            None if !this.queue.is_empty() => {
                let cost = self.machine.costs.idle_exit;
                self.begin_switch(cpu, cost);
            }
            None => (),
            Some(current) => {
                let task = &self.tasks[current as usize];
                let due = this.need_resched || (this.lazy && task.is_user());
                if due && task.bh_off == 0 {
                    let cost = self.machine.costs.switch;
                    self.begin_switch(cpu, cost);
                }
            }
        }
    }

    /// The running task lets others run if the scheduler wants that. Returns whether it goes on at
    /// once.
    pub(crate) fn relax(&mut self) -> bool {
        let Ctx::Task(id) = self.running else {
            return true;
        };
        let cpu = self.tasks[id as usize].cpu;
        let this = &self.cpus[cpu as usize];
        if !(this.need_resched || this.lazy) || this.switching {
            return true;
        }
        self.pause(cpu);
        let cost = self.machine.costs.switch;
        self.begin_switch(cpu, cost);
        self.go(cpu);
        false
    }

    /// The switch was paid for: who runs now?
    pub(crate) fn on_switched(&mut self, cpu: u32) {
        self.pause(cpu);
        let was_idle = self.cpus[cpu as usize].current.is_none();
        self.put_back(cpu);
        let next = self.pick(cpu);
        let this = &mut self.cpus[cpu as usize];
        this.switching = false;
        this.need_resched = false;
        this.lazy = false;
        this.current = next;
        this.books.switches += 1;
        match next {
            Some(id) => self.begin_run(id),
            None => self.enter_idle(cpu),
        }
        let what = next.map_or(What::Idle, |id| self.tasks[id as usize].kind.runs(id));
        self.trace.note(self.now, cpu, what);
        if was_idle && next.is_some() {
            self.leave_idle(cpu);
        }
        self.go(cpu);
    }

    fn begin_run(&mut self, id: u32) {
        let task = &mut self.tasks[id as usize];
        task.state = State::Running;
        task.ran = 0;
        if task.class == Class::Fair {
            let (cpu, vruntime) = (task.cpu, task.vruntime);
            let floor = &mut self.cpu(cpu).queue.floor;
            *floor = (*floor).max(vruntime);
        }
    }

    /// The task that is preempted waits again, a FIFO one before the others.
    fn put_back(&mut self, cpu: u32) {
        let this = &mut self.cpus[cpu as usize];
        let Some(id) = this.current.take() else {
            return;
        };
        let task = &mut self.tasks[id as usize];
        task.state = State::Queued;
        match task.class {
            Class::Stop => this.queue.stop.push_front(id),
            Class::Fifo => this.queue.fifo.push_front(id),
            Class::Fair => this.queue.fair.push(id),
        }
    }

    fn pick(&mut self, cpu: u32) -> Option<u32> {
        let queue = &mut self.cpus[cpu as usize].queue;
        if let Some(id) = queue.stop.pop_front().or_else(|| queue.fifo.pop_front()) {
            return Some(id);
        }
        let tasks = &self.tasks;
        let least = (0..queue.fair.len())
            .min_by_key(|&place| tasks[queue.fair[place] as usize].vruntime)?;
        Some(queue.fair.remove(least))
    }

    /// A CPU that runs out of tasks takes one that waits elsewhere.
    ///
    /// Not one whose idle times are so short that it would not pay.
    fn pull(&mut self, cpu: u32) {
        let this = &self.cpus[cpu as usize];
        if !this.online || this.idle_mean < WORTH_A_PULL {
            return;
        }
        let from = (0..self.cpus.len()).find(|&other| self.movable(other).is_some());
        if let Some(from) = from {
            self.migrate(from, cpu);
        }
    }

    /// A task that waits for a CPU and need not.
    fn movable(&self, cpu: usize) -> Option<usize> {
        let this = &self.cpus[cpu];
        let fair = &this.queue.fair;
        fair.iter()
            .position(|&id| !self.tasks[id as usize].pinned)
            .filter(|_| this.current.is_some())
    }

    fn migrate(&mut self, from: usize, to: u32) {
        let Some(place) = self.movable(from) else {
            return;
        };
        let id = self.cpus[from].queue.fair.remove(place);
        if self.tasks[id as usize].is_ordinary() {
            let now = self.now;
            self.pause(self.tasks[id as usize].cpu);
            self.cpus[from].unwant(now);
        }
        self.enqueue(id, to);
    }

    /// A task that waits is sent to another CPU, whether it may or not.
    pub(super) fn push_away(&mut self, id: u32, to: u32) {
        let from = self.tasks[id as usize].cpu;
        let ordinary = self.tasks[id as usize].is_ordinary();
        self.pause(from);
        let now = self.now;
        let this = self.cpu(from);
        this.queue.fair.retain(|&other| other != id);
        this.queue.fifo.retain(|&other| other != id);
        if ordinary {
            this.unwant(now);
        }
        self.enqueue(id, to);
        self.press(to, id);
    }

    /// The tick of a CPU looks at its tasks.
    pub(crate) fn sched_tick(&mut self, cpu: u32) {
        let slice = self.machine.kernel.slice_ns;
        let lazy = self.machine.kernel.lazy;
        let this = &mut self.cpus[cpu as usize];
        this.need_resched |= std::mem::take(&mut this.lazy);
        let fair_waits = !this.queue.fair.is_empty();
        if let Some(task) = this.current.map(|id| &self.tasks[id as usize]) {
            if task.class == Class::Fair && fair_waits && task.ran >= slice {
                this.need_resched |= !lazy;
                this.lazy |= lazy;
            }
        }
        self.kick_idle(cpu);
    }

    /// An idle CPU is told to take a task that waits here: one whose time to balance has come.
    fn kick_idle(&mut self, cpu: u32) {
        if self.movable(cpu as usize).is_none() {
            return;
        }
        let now = self.now;
        let count = self.cpus.len() as u32;
        let due =
            |other: &u32| self.is_vacant(*other) && self.cpus[*other as usize].next_balance <= now;
        let Some(idle) = (0..count).find(due) else {
            return;
        };
        let unit = Ns::from(self.machine.kernel.balance_ms) * 1_000_000;
        self.cpu(idle).next_balance = now + unit + self.random.below(unit);
        self.migrate(cpu as usize, idle);
        self.cpu(idle).need_resched = true;
        if self.cpus[idle as usize].at_task_level() {
            self.pause(idle);
            self.preempt(idle);
            self.go(idle);
        }
    }
}
