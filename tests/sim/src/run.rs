// SPDX-License-Identifier: GPL-2.0

//! One run.

use crate::{
    check::Promises,
    context::Contexts,
    core::{
        self,
        Core, //
    },
    fault::{
        Faults,
        Plant, //
    },
    machine::World,
    report::{
        Part,
        Report, //
    },
    trace::Trace,
    Machine,
    Ns,
    Workload, //
};
use irqmod::{
    policy::{
        Choice,
        Config,
        Policy, //
    },
    verdict::Placement, //
};

/// What drives the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// irqmod with a policy.
    Moderated(Choice),
    /// The C driver with its own `threaded`, which does not mask the line: for comparison with the
    /// field. Written `stock-threaded`.
    StockThreaded,
    /// The C driver under the timer moderation that the field measured. Written as the policy
    /// `timer`, with `stock-` before it.
    StockTimer(StockTimer),
    /// The C driver with the rate measurement that the field tried; it only counts whether polling
    /// would begin. Written `stock-rate`.
    StockRate,
}

/// Parameters of [`Driver::StockTimer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockTimer {
    /// Delay, or the largest one if it is adaptive.
    pub delay_ns: Ns,
    /// Share of the CPU from which an adaptive delay grows; 0: the delay is fixed.
    pub hardirq_percent: u64,
    /// Period of adapting.
    pub update_ns: Ns,
    /// How slowly it grows.
    pub divisor: u64,
    /// Whether an expiry is pushed forward.
    pub push: bool,
}

impl StockTimer {
    fn new(values: &irqmod::policy::Values) -> Self {
        let [delay_us, _, percent, update_ms, _, divisor, push] = values.map(u64::from);
        Self {
            delay_ns: delay_us * 1_000,
            hardirq_percent: percent,
            update_ns: update_ms * 1_000_000,
            divisor,
            push: push != 0,
        }
    }
}

impl Driver {
    /// Parses `stock-threaded`, or what [`irqmod::params::parse`] takes.
    ///
    /// # Errors
    ///
    /// One line that says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "stock-threaded" => Ok(Self::StockThreaded),
            "stock-rate" => Ok(Self::StockRate),
            _ => match text.strip_prefix("stock-") {
                Some(text) => Self::parse_timer(text),
                None => moderated(text).map(Self::Moderated),
            },
        }
    }

    fn parse_timer(text: &str) -> Result<Self, String> {
        match parse(text)?.policy {
            Config::Timer(timer) => Ok(Self::StockTimer(StockTimer::new(&timer.values()))),
            _ => Err("stock-: allowed are stock-threaded, stock-timer and stock-rate".into()),
        }
    }
}

/// What this machine can simulate of it.
fn moderated(text: &str) -> Result<Choice, String> {
    let choice = parse(text)?;
    match choice.policy.placement() {
        Placement::Follow => Ok(choice),
        Placement::Spread => Err(format!("{choice}: threads follow their interrupt here")),
    }
}

fn parse(text: &str) -> Result<Choice, String> {
    irqmod::params::parse(text).map_err(|error| error.to_string())
}

impl std::fmt::Display for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Moderated(choice) => write!(f, "{choice}"),
            Self::StockThreaded => f.write_str("stock-threaded"),
            Self::StockRate => f.write_str("stock-rate"),
            Self::StockTimer(timer) => write!(
                f,
                "stock-timer:delay_us={},hardirq_percent={},push={}",
                timer.delay_ns / 1_000,
                timer.hardirq_percent,
                u32::from(timer.push)
            ),
        }
    }
}

/// When a run that looks for errors changes. Unit: nanoseconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Faults end. From here on everything must go on within a bound.
    pub calm_ns: Ns,
    /// The load ends. At the end of the run nothing must be left of it.
    pub quiet_ns: Ns,
}

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What drives the lines.
    pub driver: Driver,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Time that is measured.
    pub time_ns: Ns,
    /// Time before that, with load.
    pub warm_ns: Ns,
    /// Time before that, without.
    pub idle_ns: Ns,
    /// What goes wrong.
    pub faults: Faults,
    /// When that ends; none: never, and nothing is looked at at the end.
    pub phases: Option<Phases>,
    /// Policies that lines may be given at run time.
    pub switches: Vec<Choice>,
    /// What the policy promises.
    pub promises: Promises,
    /// A bug in the machine.
    pub plant: Option<Plant>,
    /// How many entries of the trace are kept, of each world.
    pub trace: usize,
    /// Threads that simulate; worlds are spread over them.
    pub threads: usize,
}

impl Options {
    /// Two seconds of `driver`, measured from the start.
    pub fn new(driver: Driver) -> Self {
        Self {
            driver,
            seed: 1,
            time_ns: 2_000_000_000,
            warm_ns: 0,
            idle_ns: 0,
            faults: Faults::default(),
            phases: None,
            switches: Vec::new(),
            promises: Promises::default(),
            plant: None,
            trace: 0,
            threads: 1,
        }
    }
}

/// Runs `load` on `machine`. The same arguments make the same report, byte for byte.
pub fn run(machine: &Machine, load: &Workload, options: &Options) -> Report {
    let worlds = machine.split(load);
    let mut parts: Vec<Option<Part>> = worlds.iter().map(|_| None).collect();
    let threads = options.threads.clamp(1, worlds.len().max(1));
    std::thread::scope(|scope| {
        let shares = parts.chunks_mut(worlds.len().div_ceil(threads).max(1));
        let worlds = worlds.chunks(worlds.len().div_ceil(threads).max(1));
        for (shares, worlds) in shares.zip(worlds) {
            scope.spawn(move || {
                for (part, world) in shares.iter_mut().zip(worlds) {
                    *part = Some(run_world(machine, load, world, options).0);
                }
            });
        }
    });
    Report::new(machine, options, parts.into_iter().flatten().collect())
}

/// Runs one world.
pub fn run_world(
    machine: &Machine,
    load: &Workload,
    world: &World,
    options: &Options,
) -> (Part, Trace) {
    core::install(Core::new(machine, load, world, options));
    let mut contexts = Contexts::new(options.driver);
    while let Some(ctx) = core::with(Core::advance) {
        contexts.resume(ctx);
    }
    let part = Part::new(world);
    drop(contexts);
    let trace = core::remove().map_or_else(Trace::default, |core| core.trace);
    (part, trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_spread_is_refused() {
        assert!(Driver::parse("threaded:spread=0").is_ok());
        let error = Driver::parse("threaded:spread=1").unwrap_err();
        assert!(error.starts_with("threaded:spread=1: "), "{error}");
    }
}
