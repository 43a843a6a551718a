// SPDX-License-Identifier: GPL-2.0

//! The machine apart from the stacks of its contexts: plain data and events.
//!
//! There is one on each thread that simulates, so that a [`irqmod::Source`], which may hold nothing
//! but words, can reach it.

mod audit;
pub(crate) mod blame;
pub(crate) mod books;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod defer;
pub(crate) mod device;
pub(crate) mod heap;
pub(crate) mod line;
mod plug;
pub(crate) mod poll;
pub(crate) mod sched;
pub(crate) mod stock;
pub(crate) mod task;

use crate::{
    check::Checker,
    fault::{
        Faults,
        Plant, //
    },
    machine::World,
    random::Random,
    run::Options,
    trace::{
        Trace,
        What, //
    },
    Machine,
    Ns,
    Workload, //
};
use cpu::{
    Cpu,
    Ctx, //
};
use device::{
    Controller,
    Job,
    Request, //
};
use hdrhistogram::Histogram;
use heap::{
    Event,
    Heap, //
};
use irqmod::policy::Choice;
use line::Line;
use std::{
    cell::RefCell,
    collections::VecDeque, //
};
use task::{
    Kind,
    Task, //
};

/// What is counted over the whole world.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) completed: u64,
    pub(crate) timers: u64,
    pub(crate) rcu_stalls: u64,
    /// Messages that were lost, and queues that a timeout had to drain.
    pub(crate) lost: u64,
    pub(crate) missed: u64,
}

/// The machine.
pub(crate) struct Core {
    pub(crate) now: Ns,
    pub(crate) end: Ns,
    /// When measuring began.
    pub(crate) begin: Ns,
    pub(crate) heap: Heap,
    /// Contexts whose code goes on now.
    pub(crate) ready: VecDeque<Ctx>,
    /// The context whose code runs, or that an event stands in for.
    pub(crate) running: Ctx,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) lines: Vec<Line>,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) requests: Vec<Request>,
    pub(crate) free: Vec<u32>,
    pub(crate) jobs: Vec<Job>,
    /// The unbound workqueue: its items, and its workers.
    pub(crate) work: VecDeque<u32>,
    pub(crate) workers: Vec<u32>,
    pub(crate) random: Random,
    pub(crate) machine: Machine,
    pub(crate) load: Workload,
    pub(crate) world: World,
    pub(crate) faults: Faults,
    pub(crate) counts: Counts,
    pub(crate) latency: Histogram<u64>,
    pub(crate) checker: Checker,
    pub(crate) plant: Option<Plant>,
    /// Jobs submit nothing any more.
    pub(crate) quiet: bool,
    /// Policies that lines may be given at run time.
    pub(crate) switches: Vec<Choice>,
    pub(crate) trace: Trace,
    /// What ordinary tasks should get of a CPU that they want, of 1,000 parts.
    share: u32,
}

thread_local! {
    static CORE: RefCell<Option<Core>> = const { RefCell::new(None) };
}

/// Makes `core` this thread's machine.
pub(crate) fn install(core: Core) {
    CORE.set(Some(core));
}

/// Takes this thread's machine away.
pub(crate) fn remove() -> Option<Core> {
    CORE.take()
}

/// Looks at, or changes, this thread's machine. Not recursive.
pub(crate) fn with<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    CORE.with_borrow_mut(|core| match core {
        Some(core) => f(core),
        None => unreachable!("no machine on this thread"),
    })
}

/// Draws from the machine's random numbers.
pub(crate) fn with_random<R>(f: impl FnOnce(&mut Random) -> R) -> R {
    with(|core| f(&mut core.random))
}

impl Core {
    pub(crate) fn new(
        machine: &Machine,
        load: &Workload,
        world: &World,
        options: &Options,
    ) -> Self {
        let mut core = Self {
            now: 0,
            end: options.idle_ns + options.warm_ns + options.time_ns,
            begin: 0,
            heap: Heap::default(),
            ready: VecDeque::new(),
            running: Ctx::Switch(0),
            cpus: Vec::new(),
            tasks: Vec::new(),
            lines: Vec::new(),
            controllers: vec![Controller::default(); machine.controllers as usize],
            requests: Vec::new(),
            free: Vec::new(),
            jobs: Vec::new(),
            work: VecDeque::new(),
            workers: Vec::new(),
            random: Random::new(options.seed),
            machine: machine.clone(),
            load: load.clone(),
            world: world.clone(),
            faults: options.faults.clone(),
            counts: Counts::default(),
            latency: Histogram::new_with_bounds(1, 100_000_000_000, 3)
                .unwrap_or_else(|_| unreachable!("the bounds are fine")),
            checker: Checker::default(),
            plant: options.plant,
            quiet: false,
            switches: options.switches.clone(),
            trace: Trace::new(options.trace),
            share: options.promises.share.unwrap_or(0),
        };
        core.build(options);
        core
    }

    fn build(&mut self, options: &Options) {
        for cpu in 0..self.world.cpus {
            let ksoftirqd = self.spawn(Kind::Ksoftirqd(cpu), cpu);
            let stopper = self.spawn(Kind::Stopper(cpu), cpu);
            self.cpus.push(Cpu::new(ksoftirqd, stopper));
        }
        for controller in 0..self.machine.controllers {
            for cpu in self.world.irq_cpu.clone() {
                self.lines.push(Line::new(controller, cpu));
            }
        }
        self.checker = Checker::new(self.lines.len(), options.promises);
        self.start_clocks();
        self.start_audit(options);
        self.heap.plan(options.idle_ns, Event::Load);
        let warm = options.idle_ns + options.warm_ns;
        self.heap.plan(warm, Event::Warm);
    }

    fn start_load(&mut self) {
        let files = match self.load.files {
            0 => self.machine.controllers,
            files => files.min(self.machine.controllers),
        };
        for (job, cpu) in (0..).zip(self.world.jobs.clone()) {
            let task = self.spawn(Kind::Job(job), cpu);
            self.jobs.push(Job::new(task, self.load.depth, files, job));
            self.running = Ctx::Switch(cpu);
            self.wake(task);
        }
        for cpu in self.world.irq_cpu.clone() {
            for _ in 0..self.load.hogs {
                let hog = self.spawn(Kind::Hog, cpu);
                self.wake(hog);
            }
        }
    }

    /// Lets time pass until the code of a context goes on; none: the run is over.
    pub(crate) fn advance(&mut self) -> Option<Ctx> {
        loop {
            while let Some(ctx) = self.ready.pop_front() {
                if let Ctx::Switch(cpu) = ctx {
                    if self.is_runnable(ctx) {
                        self.on_switched(cpu);
                    }
                } else if self.is_runnable(ctx) {
                    self.running = ctx;
                    return Some(ctx);
                }
            }
            if self.heap.next_at() >= self.end {
                self.now = self.end;
                return None;
            }
            let (at, event) = self.heap.pop()?;
            self.now = at;
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::CpuDone { cpu, seq } => self.on_cpu_done(cpu, seq),
            Event::Posted { request, epoch } => self.on_posted(request, epoch),
            Event::Message { line } => {
                self.line(line).in_flight -= 1;
                self.on_message(line);
            }
            Event::MaskLands { line, seq } => self.on_mask_lands(line, seq),
            Event::UnmaskLands { line, seq } => self.on_unmask_lands(line, seq),
            Event::Tick { cpu, seq } => self.on_tick(cpu, seq),
            Event::Watchdog { cpu } => self.on_watchdog_timer(cpu),
            Event::Hold { cpu, seq } => self.on_hold_timer(cpu, seq),
            Event::PollTimer { line, seq } => self.on_poll_timer(line, seq),
            Event::Wake { task, seq } => self.on_alarm(task, seq),
            Event::Audit => self.on_audit(),
            Event::Calm => self.on_calm(),
            Event::Quiet => self.on_quiet(),
            Event::Load => self.start_load(),
            Event::Warm => self.on_warm(),
        }
    }

    /// Notes what happened on the CPU of the running context.
    pub(crate) fn note(&mut self, what: What) {
        let cpu = self.here();
        self.trace.note(self.now, cpu, what);
    }

    /// What was measured up to now does not count.
    fn on_warm(&mut self) {
        self.begin = self.now;
        self.counts = Counts::default();
        self.latency.reset();
        for cpu in 0..self.cpus.len() as u32 {
            self.pause(cpu);
            let now = self.now;
            self.cpu(cpu).restart_books(now);
        }
        for line in &mut self.lines {
            line.counts = line::LineCounts::default();
        }
    }
}
