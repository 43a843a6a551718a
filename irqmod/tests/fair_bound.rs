// SPDX-License-Identifier: GPL-2.0

//! The bound that `fair` gives in writing (Documentation/policy-guide/fair.rst), on a simulated CPU:
//! many sources with random costs and rates, and a task that wants the CPU as well. The policy and
//! its ledger are the real ones. Faults that are planted break the bound.
//!
//! `IRQMOD_SEED=N cargo test -p irqmod --test fair_bound` begins with another seed.

#![cfg(not(loom))]

use irqmod::{
    ledger::Ledger,
    observation::{
        Glance,
        Observation, //
    },
    policy::{
        fair::Config,
        Cpu,
        Policy as _, //
    },
    time::Instant,
    verdict::{
        After,
        Next,
        Verdict, //
    },
    Budget,
    Drain, //
};
use std::{
    collections::VecDeque,
    env, //
};

/// What is wrong with the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The completion thread never rests.
    NoRest,
    /// The handler weighs only what comes while the scheduler wants the CPU.
    FlagsOnly,
    /// The handler drains until the queue is empty.
    UnboundedHandler,
    /// What was taken is forgotten when handlers drain again.
    ForgetsOnLeave,
    /// A source stays first until it is empty.
    UnboundedTurn,
    /// Pieces are counted, not timed.
    CountedPieces,
    /// The time between two interrupts that follow each other is everybody's.
    NoBreak,
}

/// A small generator with a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// Times in nanoseconds.
#[derive(Clone, Debug)]
struct Source {
    cost: u64,
    /// Room in the queue.
    depth: u32,
    /// Completions come in bursts of up to this many, about this far apart.
    burst: u32,
    interval: u64,
    next: u64,
    waiting: u32,
    message: bool,
    masked: bool,
    /// Since when it waits for the thread.
    since: u64,
}

/// A machine and its load.
#[derive(Clone, Debug)]
struct Scenario {
    seed: u64,
    config: Config,
    sources: Vec<Source>,
    /// The way into and out of an interrupt, together.
    entry: u64,
    /// To mask a line and to put it on the list.
    mask: u64,
    /// The completion thread's work besides draining, for each piece.
    overhead: u64,
    /// The task runs and sleeps for up to this long; it never sleeps if zero.
    runs: u64,
    sleeps: u64,
}

impl Scenario {
    fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let config = Config::new(
            [50, 90, 95, 99][random.within(0, 3) as usize],
            [500, 2_000, 4_000, 20_000][random.within(0, 3) as usize],
        );
        let count = random.within(1, 24);
        // Together anything from next to nothing to twice what the CPU can do.
        let load = random.within(5, 200);
        // One in four has a source that never gets empty.
        let endless = random.within(0, 3) == 0;
        let sources = (0..count)
            .map(|index| {
                let cost = [300, 1_000, 2_500, 8_000, 20_000][random.within(0, 4) as usize];
                let burst = [1, 1, 4, 32, 128][random.within(0, 4) as usize];
                let crowd = if endless && index == 0 { 1 } else { count };
                Source {
                    cost,
                    depth: [8, 32, 128, 1023][random.within(0, 3) as usize],
                    burst: burst as u32,
                    interval: (cost * burst * crowd * 100 / load.max(200 / crowd)).max(100),
                    next: random.within(0, 1_000_000),
                    waiting: 0,
                    message: false,
                    masked: false,
                    since: 0,
                }
            })
            .collect();
        Self {
            seed,
            config: config.unwrap(),
            sources,
            entry: random.within(200, 1_500),
            mask: random.within(100, 400),
            overhead: random.within(100, 600),
            runs: random.within(5_000, 3_000_000),
            sleeps: [0, 0, 20_000, 2_000_000][random.within(0, 3) as usize],
        }
    }

    fn dearest(&self) -> u64 {
        let costs = self.sources.iter().map(|source| source.cost);
        costs.max().unwrap_or(0)
    }

    /// `p`: the longest piece.
    fn piece(&self) -> u64 {
        let first = u64::from(Ledger::FIRST_PIECE) * self.dearest();
        self.overhead + first.max(Ledger::PIECE.as_nanos())
    }

    /// The longest that the task waits: `d + S * W + 2 * p`, and each line is masked once.
    fn longest_wait(&self) -> u64 {
        let light = u64::from(Ledger::FIRST_PIECE) * self.dearest();
        let masks = self.sources.len() as u64 * (self.entry + self.mask);
        let work = self.config.share().work().as_nanos();
        light + self.entry + work + 2 * self.piece() + masks
    }

    /// The longest that a source waits for its turn.
    fn longest_turn(&self) -> u64 {
        let turn = Ledger::TURN.as_nanos() + self.piece();
        let share = self.config.share();
        let round = self.sources.len() as u64 * (turn + self.entry + self.mask);
        let rests = round / share.work().as_nanos() + 2;
        round + rests * (share.rest().as_nanos() + 2 * self.piece())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    Idle,
    Task,
    Thread,
}

/// What a run showed, with what was allowed. Unit: nanoseconds.
#[derive(Debug)]
struct Outcome {
    wait: u64,
    wait_allowed: u64,
    /// What the task lacks of its share, at most.
    lack: u64,
    lack_allowed: u64,
    turn: u64,
    turn_allowed: u64,
    deferred: u32,
    drained: u64,
}

impl Outcome {
    fn percent(&self) -> [u64; 3] {
        [
            self.wait * 100 / self.wait_allowed,
            self.lack * 100 / self.lack_allowed,
            self.turn * 100 / self.turn_allowed,
        ]
    }

    fn keeps_the_bound(&self) -> bool {
        self.wait <= self.wait_allowed
            && self.lack <= self.lack_allowed
            && self.turn <= self.turn_allowed
    }
}

struct Machine<'a> {
    scenario: &'a Scenario,
    fault: Fault,
    random: Random,
    now: u64,
    sources: Vec<Source>,
    cpu: Cpu,
    list: VecDeque<usize>,
    rest_until: u64,
    current: Current,
    /// The task: when it wakes, or what it still has to run; since when it waits.
    wakes: u64,
    left: u64,
    since: u64,
    lack: u64,
    outcome: Outcome,
}

impl<'a> Machine<'a> {
    fn new(scenario: &'a Scenario, fault: Fault) -> Self {
        let wait = scenario.longest_wait();
        let rest_percent = scenario.config.share().rest().as_nanos() * 100
            / (scenario.config.share().rest().as_nanos()
                + scenario.config.share().work().as_nanos());
        Self {
            scenario,
            fault,
            random: Random(scenario.seed ^ 1),
            now: 0,
            sources: scenario.sources.clone(),
            cpu: Cpu::new(),
            list: VecDeque::new(),
            rest_until: 0,
            current: Current::Idle,
            wakes: 0,
            left: u64::MAX,
            since: 0,
            lack: 0,
            outcome: Outcome {
                wait: 0,
                wait_allowed: wait,
                lack: 0,
                lack_allowed: wait * rest_percent,
                turn: 0,
                turn_allowed: scenario.longest_turn(),
                deferred: 0,
                drained: 0,
            },
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn task_wants_the_cpu(&self) -> bool {
        self.wakes <= self.now
    }

    /// Time passes; the task does not run.
    fn spend(&mut self, span: u64) {
        let waited = (self.now + span).saturating_sub(self.now.max(self.wakes));
        self.now += span;
        // In percent of nanoseconds. What interrupts take on the way in and out, further apart than
        // a break, is the task's loss.
        let rest = 100 - self.percent();
        let way = self.scenario.entry.min(Ledger::BREAK.as_nanos());
        let kept = Ledger::BREAK.as_nanos() - way;
        self.lack += waited * rest * kept / Ledger::BREAK.as_nanos();
        self.outcome.lack = self.outcome.lack.max(self.lack);
        if self.wakes <= self.now {
            let wait = self.now - self.since.max(self.wakes);
            self.outcome.wait = self.outcome.wait.max(wait);
        }
        self.arrive();
    }

    fn percent(&self) -> u64 {
        let share = self.scenario.config.share();
        let window = share.work().plus(share.rest()).as_nanos();
        share.work().as_nanos() * 100 / window
    }

    fn arrive(&mut self) {
        for source in &mut self.sources {
            while source.next <= self.now {
                let burst = self.random.within(1, u64::from(source.burst)) as u32;
                let posted = burst.min(source.depth - source.waiting);
                source.waiting += posted;
                source.message |= posted != 0;
                source.next += self
                    .random
                    .within(source.interval / 2, source.interval * 3 / 2);
            }
        }
    }

    fn drain(&mut self, index: usize, budget: Budget) -> Drain {
        let mut found = 0;
        loop {
            // Some faults never let go.
            if self.sources[index].waiting == 0 || self.now > RUN {
                break Drain::Drained(found);
            }
            if found == budget.get() {
                break Drain::More(found);
            }
            found += 1;
            self.outcome.drained += 1;
            self.sources[index].waiting -= 1;
            let cost = self.sources[index].cost;
            self.spend(cost);
        }
    }

    fn glance(&self) -> Glance {
        let idle = self.current == Current::Idle;
        let thread = !self.list.is_empty() && self.rest_until <= self.now;
        let mut glance = Glance::HARDIRQ;
        glance.set(Glance::IDLE, idle);
        let wanted = (idle && self.task_wants_the_cpu()) || thread;
        glance.set(Glance::RESCHED, wanted);
        glance.set(Glance::DEFERRING, self.cpu.ledger.is_deferring());
        if self.fault == Fault::FlagsOnly && !wanted && !self.cpu.ledger.is_deferring() {
            glance |= Glance::IDLE;
        }
        glance
    }

    /// What the moderator does with an interrupt.
    fn interrupt(&mut self, index: usize) {
        self.sources[index].message = false;
        self.spend(self.scenario.entry / 2);
        let config = self.scenario.config;
        let glance = self.glance();
        let mut seen = Observation {
            glance,
            ..Observation::default()
        };
        let light = glance.is_free();
        let verdict = if light {
            Verdict::Drain(Config::LIGHT.unwrap())
        } else {
            if self.fault == Fault::NoBreak {
                // As if others had had the time since.
                self.cpu.ledger.on_handler(
                    Instant::from_nanos(self.now + Ledger::BREAK.as_nanos()),
                    config.share(),
                );
            }
            seen.began = self.now();
            seen.now = seen.began;
            config.weigh_interrupt(&seen, &mut (), &mut self.cpu)
        };
        let mut after = match verdict {
            Verdict::Drain(budget) => After::Again(budget),
            Verdict::Defer(to) => After::Defer(to),
        };
        loop {
            match after {
                After::Again(budget) => {
                    let budget = match self.fault {
                        Fault::UnboundedHandler => Budget::UNLIMITED,
                        _ => budget,
                    };
                    let drain = self.drain(index, budget);
                    after = if light && matches!(drain, Drain::Drained(_)) {
                        After::Open
                    } else {
                        let now = self.now();
                        seen.began = if seen.now == Instant::ZERO {
                            now
                        } else {
                            seen.now
                        };
                        seen.now = now;
                        config.weigh_drained(&seen, drain, &mut (), &mut self.cpu)
                    };
                }
                After::Defer(_) => break self.join(index),
                _ => break,
            }
        }
        self.spend(self.scenario.entry - self.scenario.entry / 2);
    }

    fn join(&mut self, index: usize) {
        self.spend(self.scenario.mask);
        self.sources[index].masked = true;
        self.sources[index].since = self.now;
        self.list.push_back(index);
        self.outcome.deferred += 1;
    }

    /// One round of the completion thread.
    fn serve(&mut self) {
        self.current = Current::Thread;
        let index = self.list[0];
        let waited = self.now - self.sources[index].since;
        self.outcome.turn = self.outcome.turn.max(waited);
        let began = self.now();
        self.spend(self.scenario.overhead);
        let piece = match self.fault {
            Fault::CountedPieces => Budget::POLL_DEFAULT,
            _ => self.cpu.ledger.piece(),
        };
        let drain = self.drain(index, piece);
        self.sources[index].since = self.now;
        let contended = self.task_wants_the_cpu();
        let now = self.now();
        let rest = self
            .cpu
            .ledger
            .on_piece(began, now, drain.found(), contended);
        let next = self
            .scenario
            .config
            .on_pass(&Observation::default(), drain, &mut ());
        if next == Next::HandBack && matches!(drain, Drain::Drained(_)) {
            self.sources[index].masked = false;
            self.list.pop_front();
        } else if self.cpu.ledger.turn_is_over() && self.fault != Fault::UnboundedTurn {
            self.list.rotate_left(1);
        }
        if let (Some(rest), true) = (rest, self.fault != Fault::NoRest) {
            self.rest_until = self.now + rest.as_nanos();
        } else if self.list.is_empty() {
            self.leave();
        }
    }

    fn leave(&mut self) {
        if self.fault == Fault::ForgetsOnLeave {
            self.cpu = Cpu::new();
        } else {
            self.cpu.ledger.leave(self.now());
        }
    }

    fn run_task(&mut self) {
        self.current = Current::Task;
        let until = self.next_event().min(self.now.saturating_add(self.left));
        let ran = until - self.now;
        self.now = until;
        self.since = until;
        self.lack = self.lack.saturating_sub(ran * 100);
        if self.scenario.sleeps != 0 {
            self.left -= ran;
        }
        if self.left == 0 {
            self.left = self.random.within(1_000, self.scenario.runs);
            self.wakes = self.now + self.random.within(1_000, self.scenario.sleeps);
            self.lack = 0;
        }
        self.arrive();
    }

    /// When something happens that is neither the task's doing nor the thread's.
    fn next_event(&self) -> u64 {
        let open = self.sources.iter().filter(|source| !source.masked);
        let arrival = open.map(|source| source.next).min();
        let thread = (self.cpu.ledger.is_deferring()).then_some(self.rest_until);
        let later = |time: &u64| *time > self.now;
        let next = arrival.into_iter().chain(thread.filter(later)).min();
        next.unwrap_or(self.now + 1_000_000).max(self.now + 1)
    }

    fn step(&mut self) {
        let from = self.random.next() as usize;
        let count = self.sources.len();
        let waiting = (0..count)
            .map(|i| (from % count + i) % count)
            .find(|&i| self.sources[i].message && !self.sources[i].masked);
        let awake = self.rest_until <= self.now;
        if let Some(index) = waiting {
            self.interrupt(index);
        } else if awake && !self.list.is_empty() {
            self.serve();
        } else if awake && self.cpu.ledger.is_deferring() && self.rest_until != 0 {
            self.leave();
            self.rest_until = 0;
        } else if self.task_wants_the_cpu() {
            self.run_task();
        } else {
            self.current = Current::Idle;
            let until = self.next_event().min(self.wakes);
            self.now = until;
            self.arrive();
        }
    }

    fn run(mut self) -> Outcome {
        if self.scenario.sleeps != 0 {
            self.left = self.scenario.runs;
        }
        while self.now < RUN {
            self.step();
        }
        self.outcome
    }
}

/// Unit: nanoseconds.
const RUN: u64 = 100_000_000;

fn first_seed() -> u64 {
    let seed = env::var("IRQMOD_SEED").ok();
    seed.and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn scenarios(count: u64) -> impl Iterator<Item = Scenario> {
    (first_seed()..).take(count as usize).map(Scenario::random)
}

#[test]
fn no_scenario_breaks_the_bound() {
    let mut deferred = 0;
    let mut nearest = [0; 3];
    for scenario in scenarios(300) {
        let outcome = Machine::new(&scenario, Fault::None).run();
        assert!(outcome.keeps_the_bound(), "{outcome:?}\n{scenario:#?}");
        deferred += u32::from(outcome.deferred != 0);
        for (nearest, percent) in nearest.iter_mut().zip(outcome.percent()) {
            *nearest = percent.max(*nearest);
        }
    }
    println!("wait, lack, turn: at most {nearest:?} percent of what is allowed");
    assert!(deferred > 100, "{deferred} of 300 defer at all");
}

/// The number of scenarios that it takes to find the fault.
fn found_after(fault: Fault) -> Option<usize> {
    scenarios(300).position(|scenario| {
        let outcome = Machine::new(&scenario, fault).run();
        !outcome.keeps_the_bound()
    })
}

#[test]
fn planted_faults_break_the_bound() {
    let faults = [
        Fault::NoRest,
        Fault::FlagsOnly,
        Fault::UnboundedHandler,
        Fault::ForgetsOnLeave,
        Fault::UnboundedTurn,
        Fault::CountedPieces,
        Fault::NoBreak,
    ];
    for fault in faults {
        let found = found_after(fault);
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}
