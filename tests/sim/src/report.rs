// SPDX-License-Identifier: GPL-2.0

//! What a run found.

use crate::{
    check::Violation,
    context,
    core::{
        self,
        blame::Blame,
        books::Books,
        cpu::Cpu,
        Core, //
    },
    machine::World,
    run::Options,
    Machine,
    Ns, //
};
use hdrhistogram::Histogram;
use serde::Serialize;

/// A run of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the machine.
    pub machine: String,
    /// The policy, with all of its parameters.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Time that was measured.
    pub time_ns: Ns,
    /// Requests completed a second.
    pub iops: u64,
    /// From submission to reaping.
    pub latency: Latency,
    /// Soft lockups: CPUs, of the whole machine, whose watchdog reported.
    pub lockups: Vec<Lockup>,
    /// RCU stalls, over the whole machine.
    pub rcu_stalls: u64,
    /// What happened over the whole machine.
    pub totals: Totals,
    /// The worlds that were simulated, with their CPUs.
    pub worlds: Vec<WorldReport>,
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// Events that were simulated.
    pub events: u64,
}

/// Latency. Unit: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: Ns,
    /// Half of all requests took less.
    pub p50: Ns,
    /// 99 %.
    pub p99: Ns,
    /// 99.9 %.
    pub p999: Ns,
    /// The longest.
    pub max: Ns,
}

/// A soft lockup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lockup {
    /// The CPU's number in the machine.
    pub cpu: u32,
    /// How many CPUs of the machine it stands for.
    pub times: u32,
    /// What the watchdog printed: "stuck for this many s".
    pub stuck_s: u64,
    /// When it did.
    pub at: Ns,
    /// How often it did.
    pub reports: u32,
}

/// What happened, over all lines of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests completed.
    pub completed: u64,
    /// Messages that devices sent.
    pub messages: u64,
    /// Runs of handlers.
    pub handler_runs: u64,
    /// Interrupts that nobody wanted.
    pub unhandled: u64,
    /// Interrupts that came while their line was disabled.
    pub absorbed: u64,
    /// How often a line was deferred.
    pub deferrals: u64,
    /// Deferred drains.
    pub polls: u64,
    /// Wake-ups of interrupt threads.
    pub thread_wakes: u64,
    /// Timers armed by policies.
    pub timers: u64,
    /// Switches between tasks.
    pub switches: u64,
    /// The longest run of a handler.
    pub handler_max_ns: Ns,
    /// The longest time that ordinary tasks wanted a CPU and none got on.
    pub wait_max_ns: Ns,
}

/// A world, and how many of it the machine has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldReport {
    /// How many.
    pub times: u32,
    /// Its CPUs.
    pub cpus: Vec<CpuReport>,
}

/// A CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuReport {
    /// Its number in the machine.
    pub cpu: u32,
    /// Whether it takes interrupts of controllers.
    pub takes_interrupts: bool,
    /// Where its time went.
    pub shares: Shares,
    /// Interrupts of all kinds.
    pub interrupts: u64,
    /// The longest time that ordinary tasks wanted it and none got on.
    pub wait: WaitReport,
}

/// Where the time of a CPU went. Unit: parts of 1,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// Hard interrupts.
    pub hard: u64,
    /// Softirqs on the way out of interrupts.
    pub soft: u64,
    /// Interrupt threads, workers, ksoftirqd.
    pub service: u64,
    /// Ordinary tasks.
    pub ordinary: u64,
    /// Switches and wake-ups.
    pub switch: u64,
    /// Nothing.
    pub idle: u64,
}

/// A stretch of time in which ordinary tasks wanted a CPU and none got on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitReport {
    /// When it began.
    pub since: Ns,
    /// How long it was.
    pub length: Ns,
    /// Where the CPU's time went meanwhile.
    pub shares: Shares,
    /// Interrupts meanwhile.
    pub interrupts: u64,
    /// How often a policy looked and saw a pending reschedule.
    pub pressed: u64,
    /// Lines deferred meanwhile.
    pub deferrals: u64,
    /// Switches between tasks meanwhile.
    pub switches: u64,
    /// What each line took, and what its policy could see.
    pub lines: Vec<Blame>,
}

impl Shares {
    fn new(books: &Books) -> Self {
        let all = books.hard + books.soft + books.service + books.ordinary;
        let all = all + books.switch + books.idle;
        let share = |part: Ns| (part * 1_000 + all / 2).checked_div(all).unwrap_or(0);
        Self {
            hard: share(books.hard),
            soft: share(books.soft),
            service: share(books.service),
            ordinary: share(books.ordinary),
            switch: share(books.switch),
            idle: share(books.idle),
        }
    }
}

/// What one world found, to be joined with others.
pub struct Part {
    times: u32,
    latency: Histogram<u64>,
    measured: Ns,
    completed: u64,
    totals: Totals,
    rcu_stalls: u64,
    lockups: Vec<Lockup>,
    world: WorldReport,
    violations: Vec<Violation>,
    events: u64,
}

impl Part {
    /// Events that were simulated.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Of this thread's machine, at the end of its run.
    pub(crate) fn new(world: &World) -> Self {
        let lines = context::lines();
        let moderated = lines.iter().map(|line| line.moderator.stats().read());
        let (deferrals, polls) = moderated.fold((0, 0), |(deferrals, polls), counts| {
            (
                deferrals + counts.deferrals as u64,
                polls + counts.polls as u64,
            )
        });
        core::with(|core| {
            for cpu in 0..core.cpus.len() as u32 {
                core.pause(cpu);
                let now = core.now;
                core.cpu(cpu).close_wait(now);
                let longest = core.cpus[cpu as usize].longest.length;
                core.checker.waited(now, cpu, longest);
                let lack = core.cpus[cpu as usize].lack_max;
                core.checker.lacked(now, cpu, lack);
            }
            if core.quiet {
                core.checker.settled(core.now);
            }
            let mut part = Self::of(core, world);
            part.totals.deferrals += deferrals;
            part.totals.polls = polls;
            part
        })
    }

    fn of(core: &mut Core, world: &World) -> Self {
        let cpus = (world.first_cpu..).zip(&core.cpus);
        let lockups = cpus.clone().filter_map(|(number, cpu)| {
            Some(Lockup {
                cpu: number,
                times: world.times,
                stuck_s: cpu.watchdog.stuck?,
                at: cpu.watchdog.first,
                reports: cpu.watchdog.reports,
            })
        });
        let irq_cpus = &world.irq_cpu;
        Self {
            times: world.times,
            latency: core.latency.clone(),
            measured: core.now - core.begin,
            completed: core.counts.completed,
            totals: totals(core),
            rcu_stalls: core.counts.rcu_stalls,
            lockups: lockups.collect(),
            world: WorldReport {
                times: world.times,
                cpus: cpus
                    .map(|(number, cpu)| {
                        let takes = irq_cpus.contains(&(number - world.first_cpu));
                        CpuReport::new(number, takes, cpu)
                    })
                    .collect(),
            },
            violations: std::mem::take(&mut core.checker.violations),
            events: core.heap.planned(),
        }
    }
}

fn totals(core: &Core) -> Totals {
    let mut totals = Totals {
        completed: core.counts.completed,
        timers: core.counts.timers,
        ..Totals::default()
    };
    for line in &core.lines {
        totals.messages += line.counts.messages;
        totals.handler_runs += line.counts.handler_runs;
        totals.unhandled += line.counts.unhandled;
        totals.absorbed += line.counts.absorbed;
        totals.thread_wakes += line.counts.thread_wakes;
        totals.deferrals += line.counts.engaged;
        totals.handler_max_ns = totals.handler_max_ns.max(line.counts.longest);
    }
    for cpu in &core.cpus {
        totals.switches += cpu.books.switches;
        totals.wait_max_ns = totals.wait_max_ns.max(cpu.longest.length);
    }
    totals
}

impl CpuReport {
    fn new(number: u32, takes_interrupts: bool, cpu: &Cpu) -> Self {
        let wait = &cpu.longest;
        Self {
            cpu: number,
            takes_interrupts,
            shares: Shares::new(&cpu.books),
            interrupts: cpu.books.interrupts,
            wait: WaitReport {
                since: wait.since,
                length: wait.length,
                shares: Shares::new(&wait.during),
                interrupts: wait.during.interrupts,
                pressed: wait.during.pressed,
                deferrals: wait.during.deferrals,
                switches: wait.during.switches,
                lines: cpu.longest_blames.clone(),
            },
        }
    }
}

impl Report {
    pub(crate) fn new(machine: &Machine, options: &Options, parts: Vec<Part>) -> Self {
        let mut report = Self {
            machine: machine.name.clone(),
            policy: options.driver.to_string(),
            seed: options.seed,
            time_ns: options.time_ns,
            iops: 0,
            latency: Latency::default(),
            lockups: Vec::new(),
            rcu_stalls: 0,
            totals: Totals::default(),
            worlds: Vec::new(),
            violations: Vec::new(),
            events: 0,
        };
        let mut latency: Option<Histogram<u64>> = None;
        for part in parts {
            let all = latency.get_or_insert_with(|| Histogram::new_from(&part.latency));
            for _ in 0..part.times {
                // Both have the same bounds.
                let _ = all.add(&part.latency);
            }
            report.add(part);
        }
        report.latency = latency.as_ref().map_or_else(Latency::default, Latency::new);
        report
    }

    fn add(&mut self, part: Part) {
        let times = u64::from(part.times);
        let second = 1_000_000_000;
        self.iops += (part.completed * times * second)
            .checked_div(part.measured)
            .unwrap_or(0);
        self.rcu_stalls += part.rcu_stalls * times;
        self.totals.add(&part.totals, times);
        self.lockups.extend(part.lockups);
        self.worlds.push(part.world);
        self.violations.extend(part.violations);
        self.events += part.events;
    }

    /// CPUs of the whole machine whose watchdog reported.
    pub fn locked_cpus(&self) -> u32 {
        self.lockups.iter().map(|lockup| lockup.times).sum()
    }
}

impl Totals {
    fn add(&mut self, other: &Self, times: u64) {
        self.completed += other.completed * times;
        self.messages += other.messages * times;
        self.handler_runs += other.handler_runs * times;
        self.unhandled += other.unhandled * times;
        self.absorbed += other.absorbed * times;
        self.deferrals += other.deferrals * times;
        self.polls += other.polls * times;
        self.thread_wakes += other.thread_wakes * times;
        self.timers += other.timers * times;
        self.switches += other.switches * times;
        self.handler_max_ns = self.handler_max_ns.max(other.handler_max_ns);
        self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
    }
}

impl Latency {
    fn new(histogram: &Histogram<u64>) -> Self {
        let sum: u128 = histogram
            .iter_recorded()
            .map(|step| {
                let middle = histogram.median_equivalent(step.value_iterated_to());
                u128::from(middle) * u128::from(step.count_since_last_iteration())
            })
            .sum();
        let mean = sum.checked_div(u128::from(histogram.len())).unwrap_or(0);
        Self {
            mean: Ns::try_from(mean).unwrap_or(Ns::MAX),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}
