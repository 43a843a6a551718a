// SPDX-License-Identifier: GPL-2.0

//! Small machines, drawn from a seed, on which things go wrong.
//!
//! Each seed draws a machine, a load, a policy with parameters, and which faults there are at all
//! (a swarm: most seeds have few). Faults end, then the load does, and then nothing may be left.

use crate::{
    check::Violation,
    fault::{
        Faults,
        Plant, //
    },
    machine::{
        Device,
        Kernel,
        Mask, //
    },
    promise,
    random::Random,
    run::{
        run,
        run_world,
        Driver,
        Phases, //
    },
    trace::Trace,
    Machine,
    Ns,
    Options,
    Workload, //
};
use irqmod::policy::Choice;

const MS: Ns = 1_000_000;

/// What one seed stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The machine.
    pub machine: Machine,
    /// Its load.
    pub load: Workload,
    /// Policy, faults and phases.
    pub options: Options,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests completed.
    pub completed: u64,
    /// Events simulated.
    pub events: u64,
    /// Broken rules; empty is good.
    pub violations: Vec<Violation>,
}

/// Policies and parameters that make trouble.
const POLICIES: &[&str] = &[
    "hardirq",
    "resched",
    "resched:budget=1",
    "resched:budget=7,mask=nowait",
    "threaded",
    "threaded:mask=nowait",
    "irqpoll",
    "irqpoll:budget=2,mask=nowait",
    "overflow",
    "overflow:budget=1",
    "timer:delay_us=10,push=0",
    "timer:delay_us=100,push=1",
    "timer:delay_us=500,hardirq_percent=10,push=1,mask=nowait",
    "inflight",
    "inflight:high=4,low=2",
    "rate",
    "workqueue",
    "flood",
    "fair",
    "fair:share_percent=50,window_us=500",
    "fair:share_percent=90,window_us=1000,mask=nowait",
];

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let machine = machine(&mut random);
        let load = load(&mut random);
        let driver = driver(&mut random);
        let faults = faults(&mut random);
        let switches: Vec<Choice> = match faults.switch_ns {
            0 => Vec::new(),
            _ => (0..2).filter_map(|_| choice(&mut random)).collect(),
        };
        let options = Options {
            seed,
            time_ns: 120 * MS,
            faults,
            switches,
            phases: Some(Phases {
                calm_ns: 40 * MS,
                quiet_ns: 60 * MS,
            }),
            ..Options::new(driver)
        };
        let mut plan = Self {
            machine,
            load,
            options,
        };
        plan.promise();
        plan
    }

    /// What is promised follows from the rest.
    pub(crate) fn promise(&mut self) {
        let options = &mut self.options;
        options.promises = promise::of(
            options.driver,
            &options.switches,
            &self.machine,
            &self.load,
            &options.faults,
        );
    }

    /// A plan in which `plant` must be found, if any seed finds it.
    pub fn with_plant(seed: u64, plant: Plant) -> Self {
        let mut plan = Self::new(seed);
        plan.options.plant = Some(plant);
        match plant {
            Plant::DrainsUnasked => plan.options.faults.peek_ns = 100_000,
            Plant::NeverRests => plan.flood("fair:share_percent=50,window_us=500"),
            Plant::RestsBriefly => {
                plan.flood("fair:share_percent=50,window_us=500,mask=nowait");
                plan.machine.controllers = 4;
                plan.load.copy_bytes = 0;
            }
            Plant::IgnoresBudget => plan.flood("resched:budget=16"),
            Plant::WantsNothing => plan.last(),
            Plant::KeepsList => {
                plan.flood("fair:share_percent=50,window_us=500");
                plan.options.faults.unplug_ns = 2 * MS;
            }
            Plant::NoLook => {
                plan.options.faults.storm_ns = MS / 2;
                plan.load.depth = 1;
            }
            Plant::ForgetsRequest => plan.options.faults.storm_ns = 5 * MS,
            _ => (),
        }
        plan.promise();
        plan
    }

    /// More load than the interrupt CPU can take, with somebody else who wants it.
    fn flood(&mut self, policy: &str) {
        self.machine.controllers = 1;
        self.machine.device = Device::default();
        self.load = Workload {
            jobs: 8,
            depth: 120,
            hogs: 1,
            copy_bytes: 32_768,
            ..Workload::default()
        };
        self.options.faults = Faults::default();
        if let Ok(driver) = Driver::parse(policy) {
            self.options.driver = driver;
            self.options.switches.clear();
        }
    }

    /// Enough interrupts of one line that the kernel draws its conclusions.
    fn last(&mut self) {
        self.flood("hardirq");
        self.load = Workload::default();
        self.machine.device.base_ns = 1_000;
        self.options.time_ns = 1_600 * MS;
        self.options.phases = Some(Phases {
            calm_ns: 1_400 * MS,
            quiet_ns: 1_500 * MS,
        });
    }

    /// Runs it.
    pub fn run(&self) -> Outcome {
        let report = run(&self.machine, &self.load, &self.options);
        Outcome {
            completed: report.totals.completed,
            events: report.events,
            violations: report.violations,
        }
    }

    /// Runs it, with the newest `room` entries of its trace.
    pub fn trace(&self, room: usize) -> Trace {
        let options = Options {
            trace: room,
            ..self.options.clone()
        };
        let worlds = self.machine.split(&self.load);
        // There is one queue, and so one world.
        worlds.first().map_or_else(Trace::default, |world| {
            run_world(&self.machine, &self.load, world, &options).1
        })
    }

    /// One line that says what it is.
    pub fn summary(&self) -> String {
        let switches = self.options.switches.iter();
        let switches: String = switches.map(|to| format!(" or {to}")).collect();
        let kernel = &self.machine.kernel;
        let device = &self.machine.device;
        format!(
            "{}{switches}\n\
             {} CPUs, {} controllers, {} jobs x {}, {} hogs, {} bytes copied, {} ms\n\
             {} Hz, lazy {}, irq_time {}, timer_first {}, mask {:?}\n\
             device: {} IOPS, {} +- {} % ns, depth {}, message {} ns, posted {} ns\n\
             faults: {}",
            self.options.driver,
            self.machine.cpus,
            self.machine.controllers,
            self.load.jobs,
            self.load.depth,
            self.load.hogs,
            self.load.copy_bytes,
            self.options.time_ns / MS,
            kernel.hz,
            kernel.lazy,
            kernel.irq_time,
            kernel.timer_first,
            kernel.mask,
            device.cap_iops,
            device.base_ns,
            device.base_cv,
            device.depth,
            device.message_ns,
            device.posted_ns,
            self.options.faults,
        )
    }
}

fn machine(random: &mut Random) -> Machine {
    let one_of = |random: &mut Random, choices: &[u64]| {
        let place = random.below(choices.len() as u64);
        choices[place as usize]
    };
    let small = |value: u64| u32::try_from(value).unwrap_or(1);
    Machine {
        name: "fuzz".into(),
        cpus: small(2 + random.below(3)),
        controllers: small(1 + random.below(4)),
        queues: 1,
        device: Device {
            cap_iops: one_of(random, &[0, 50_000, 300_000]),
            base_ns: one_of(random, &[1_000, 8_000, 20_000, 80_000]),
            base_cv: small(random.below(30)),
            depth: small(one_of(random, &[2, 3, 8, 1024])),
            message_ns: one_of(random, &[0, 0, 300, 2_000]),
            posted_ns: one_of(random, &[1, 500, 5_000, 100_000]),
            ..Device::default()
        },
        kernel: Kernel {
            hz: small(one_of(random, &[100, 250, 1000])),
            lazy: random.chance(500),
            irq_time: random.chance(500),
            timer_first: random.chance(500),
            mask: match random.below(4) {
                0 => Mask::Sync,
                1 => Mask::Parent,
                _ => Mask::Lazy,
            },
            ..Kernel::default()
        },
        ..Machine::default()
    }
}

fn load(random: &mut Random) -> Workload {
    Workload {
        jobs: 1 + u32::from(random.chance(700)) * 3,
        depth: [1, 2, 4, 32][random.below(4) as usize],
        hogs: u32::from(random.chance(200)),
        ..Workload::default()
    }
}

fn driver(random: &mut Random) -> Driver {
    let policies: Vec<Driver> = POLICIES
        .iter()
        .filter_map(|text| Driver::parse(text).ok())
        .collect();
    let place = random.below(policies.len() as u64);
    policies[place as usize]
}

fn choice(random: &mut Random) -> Option<Choice> {
    match driver(random) {
        Driver::Moderated(choice) => Some(choice),
        _ => None,
    }
}

fn faults(random: &mut Random) -> Faults {
    let mut some = |permille: u32, value: u64| {
        let drawn = random.below(value) + 1;
        if random.chance(permille) {
            drawn
        } else {
            0
        }
    };
    let permille = |value: u64| u32::try_from(value).unwrap_or(0);
    Faults {
        lost: permille(some(150, 50)),
        duplicated: permille(some(250, 300)),
        late: permille(some(250, 300)),
        late_ns: 1 + some(1000, 200_000),
        forgets: some(100, 1) != 0,
        flapping: permille(some(300, 500)),
        late_timer: some(300, 50_000),
        reset_ns: some(300, 3_000_000),
        freeze_ns: some(250, 5_000_000),
        peek_ns: some(300, 2_000_000),
        move_ns: some(200, 3_000_000),
        races: permille(some(250, 500)),
        switch_ns: some(150, 3_000_000),
        storm_ns: some(150, 10_000_000),
        unplug_ns: some(200, 5_000_000),
    }
}
