// SPDX-License-Identifier: GPL-2.0

//! Which CPU starved, by which lines, for how long, and why the policy did not act.

use crate::{
    core::blame::Blame,
    report::{
        CpuReport,
        Report,
        WaitReport, //
    },
    run::Driver,
    Machine,
    Ns, //
};
use irqmod::policy::{
    Config,
    Policy, //
};
use serde::Serialize;
use std::fmt;

/// CPUs whose longest wait is at least this part of the longest one are named with it. Unit: percent.
const ALIKE: u64 = 80;

/// Something that a policy looks at, or could.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What.
    pub signal: &'static str,
    /// What it was.
    pub measured: String,
    /// From where on the policy acts.
    pub threshold: String,
    /// What that means; empty: it is plain.
    pub so: String,
}

/// The longest time that ordinary tasks of a CPU got nothing of it.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The policy.
    pub policy: String,
    /// The CPU that starved.
    pub cpu: u32,
    /// Others whose tasks waited for nearly as long.
    pub alike: Vec<u32>,
    /// Its wait.
    pub wait: WaitReport,
    /// What its watchdog printed. Unit: its seconds.
    pub stuck_s: Option<u64>,
    /// Why the policy did not prevent it.
    pub reasons: Vec<Reason>,
    /// Controllers of the lines.
    controllers: Vec<u32>,
}

impl Explanation {
    /// Of a run of `machine` under `driver`; [`None`]: no task waited.
    pub fn new(machine: &Machine, driver: Driver, report: &Report) -> Option<Self> {
        let cpus = || report.worlds.iter().flat_map(|world| &world.cpus);
        let worst = cpus().max_by_key(|cpu| (cpu.wait.length, u32::MAX - cpu.cpu))?;
        if worst.wait.length == 0 {
            return None;
        }
        let alike = |cpu: &&CpuReport| {
            cpu.cpu != worst.cpu && cpu.wait.length * 100 >= worst.wait.length * ALIKE
        };
        let stuck = report.lockups.iter().find(|lockup| lockup.cpu == worst.cpu);
        // Each world has one queue of each controller, in order.
        let controllers = (0..machine.controllers).collect();
        Some(Self {
            policy: report.policy.clone(),
            cpu: worst.cpu,
            alike: cpus().filter(alike).map(|cpu| cpu.cpu).collect(),
            wait: worst.wait.clone(),
            stuck_s: stuck.map(|lockup| lockup.stuck_s),
            reasons: reasons(driver, &worst.wait),
            controllers,
        })
    }
}

fn us(time: Ns) -> String {
    format!("{}.{} us", time / 1_000, time / 100 % 10)
}

fn reason(signal: &'static str, measured: String, threshold: String, so: &str) -> Reason {
    Reason {
        signal,
        measured,
        threshold,
        so: so.into(),
    }
}

/// What the policy looks at, beside what it was in the wait.
fn reasons(driver: Driver, wait: &WaitReport) -> Vec<Reason> {
    let config = match driver {
        Driver::Moderated(choice) => choice.policy,
        Driver::StockThreaded => return vec![always(wait)],
        Driver::StockTimer(timer) => return vec![pace(wait, timer.delay_ns), burst(wait)],
        Driver::StockRate => return vec![rate(wait, 10)],
    };
    match config {
        config if handlers(wait) == 0 && !matches!(config, Config::Hardirq(_)) => {
            vec![deferred_before()]
        }
        Config::Hardirq(_) => vec![reason(
            "nothing",
            format!("{} handlers", handlers(wait)),
            "never".into(),
            "it drains until the queue is empty, and looks at nothing",
        )],
        Config::Resched(_) => vec![reason(
            "need_resched in a handler",
            format!("seen {} times in {} handlers", wait.pressed, handlers(wait)),
            "once".into(),
            match (wait.pressed, wait.deferrals) {
                (0, _) => "the interrupted task is the current one: nobody sets the flag for it",
                (_, 0) => "the flag was set, and nothing was pending or it was owned already",
                _ => "it acted: what then takes the CPU are its softirq pollers",
            },
        )],
        Config::Threaded(_) | Config::Irqpoll(_) | Config::Workqueue(_) => vec![always(wait)],
        Config::Timer(timer) => vec![pace(wait, Ns::from(timer.values()[0]) * 1_000), burst(wait)],
        Config::Inflight(inflight) => vec![reason(
            "commands in flight after a drain",
            most(wait, |blame| u64::from(blame.in_flight_max)),
            inflight.values()[0].to_string(),
            acted(wait, "no queue has as many, however many queues there are"),
        )],
        Config::Rate(config) => vec![rate(wait, Ns::from(config.values()[0]))],
        Config::Overflow(overflow) => vec![reason(
            "completions of one drain",
            most(wait, |blame| u64::from(blame.found_max)),
            overflow.values()[0].to_string(),
            acted(
                wait,
                "each drain is short: it is their sum that takes the CPU",
            ),
        )],
        Config::Flood(flood) => flooded(wait, &flood.values()),
        Config::Fair(fair) => {
            let work = fair.share().work().as_nanos();
            let took = wait.lines.iter().map(|blame| blame.hard + blame.service);
            vec![reason(
                "work of all lines without a rest",
                us(took.sum()),
                us(work),
                acted(wait, "the account is not full yet"),
            )]
        }
    }
}

/// What to say of a policy that has, or has not, deferred.
fn acted(wait: &WaitReport, else_: &'static str) -> &'static str {
    match wait.deferrals {
        0 => else_,
        _ => "it acted: see above who had the CPU then",
    }
}

fn handlers(wait: &WaitReport) -> u64 {
    wait.lines.iter().map(|blame| blame.handler_runs).sum()
}

/// The largest of something over the lines.
fn most(wait: &WaitReport, of: impl Fn(&Blame) -> u64) -> String {
    wait.lines.iter().map(of).max().unwrap_or(0).to_string()
}

fn deferred_before() -> Reason {
    reason(
        "handlers",
        "0".into(),
        "1".into(),
        "the lines had been deferred before: who drains them had the CPU",
    )
}

fn always(wait: &WaitReport) -> Reason {
    let measured = format!("{} handlers, {} deferrals", handlers(wait), wait.deferrals);
    let so = "it always acts: who drains has the CPU by priority, or on top of the task";
    reason("each interrupt", measured, "always".into(), so)
}

/// A timer that holds lines.
fn pace(wait: &WaitReport, delay: Ns) -> Reason {
    let longest = wait.lines.iter().map(|blame| blame.handler_max).max();
    let longest = longest.unwrap_or(0);
    let so = if longest >= delay {
        "the timer has expired before the handler returns: there is no gap"
    } else {
        "the handlers of the other lines fill the gap"
    };
    reason(
        "the longest handler, to the delay",
        us(longest),
        us(delay),
        so,
    )
}

/// Nothing bounds what a paced handler does.
fn burst(wait: &WaitReport) -> Reason {
    reason(
        "completions of one drain",
        most(wait, |blame| u64::from(blame.found_max)),
        "none".into(),
        "a timer paces how often handlers run, not what they do",
    )
}

fn rate(wait: &WaitReport, interval_us: Ns) -> Reason {
    let completions = wait.lines.iter().map(|blame| blame.completions).max();
    let mean = wait.length.checked_div(completions.unwrap_or(0));
    let mean = mean.unwrap_or(wait.length);
    let so = if mean > interval_us * 1_000 {
        "no queue is fast enough; their sum is"
    } else {
        acted(wait, "its window is not over, or trials did not pay")
    };
    reason(
        "mean time between two completions of one queue",
        us(mean),
        us(interval_us * 1_000),
        so,
    )
}

fn flooded(wait: &WaitReport, values: &[u32]) -> Vec<Reason> {
    let window = Ns::from(values[0]) * 1_000;
    let hard: Ns = wait.lines.iter().map(|blame| blame.hard).sum();
    let calm = wait.length / (wait.switches + 1);
    vec![
        reason(
            "time without a switch",
            us(calm),
            us(window),
            acted(wait, "the CPU switches often enough"),
        ),
        reason(
            "of it in handlers",
            format!("{} %", hard * 100 / wait.length.max(1)),
            format!("{} %", values[1]),
            "",
        ),
    ]
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "  {}: {}; acts from: {}",
            self.signal, self.measured, self.threshold
        )?;
        match self.so.as_str() {
            "" => Ok(()),
            so => write!(f, "\n    {so}"),
        }
    }
}

impl Explanation {
    /// One line about what a line took.
    fn blame(&self, blame: &Blame) -> String {
        let percent = |time: Ns| {
            let permille = time * 1_000 / self.wait.length.max(1);
            format!("{}.{} %", permille / 10, permille % 10)
        };
        let queues = self.controllers.len();
        let controller = self.controllers.get(blame.line as usize % queues.max(1));
        format!(
            "  line {} (controller {}): hard {}, softirq {}, threads {}; {} handlers, the longest {}; \
             {} completions; deferred {} times",
            blame.line,
            controller.copied().unwrap_or(blame.line),
            percent(blame.hard),
            percent(blame.soft),
            percent(blame.service),
            blame.handler_runs,
            us(blame.handler_max),
            blame.completions,
            blame.deferrals,
        )
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = &self.wait;
        let shares = &wait.shares;
        writeln!(
            f,
            "{}\nCPU {}: from {} on its tasks got nothing for {}",
            self.policy,
            self.cpu,
            us(wait.since),
            us(wait.length)
        )?;
        if let Some(seconds) = self.stuck_s {
            writeln!(f, "  its watchdog printed: stuck for {seconds}s")?;
        }
        if !self.alike.is_empty() {
            writeln!(f, "  nearly as long: CPUs {:?}", self.alike)?;
        }
        writeln!(
            f,
            "who had it, of 1,000: hard {}, softirq {}, threads {}, tasks {}, switches {}, idle {}",
            shares.hard, shares.soft, shares.service, shares.ordinary, shares.switch, shares.idle
        )?;
        for blame in &wait.lines {
            writeln!(f, "{}", self.blame(blame))?;
        }
        write!(f, "why the policy let it happen:")?;
        for reason in &self.reasons {
            write!(f, "\n{reason}")?;
        }
        Ok(())
    }
}
