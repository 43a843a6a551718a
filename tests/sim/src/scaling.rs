// SPDX-License-Identifier: GPL-2.0

//! What a simulation costs as the machine grows.
//!
//! Every world is simulated, also those that are equal, on one thread. The time is the user time of
//! this process: what else the host does makes no difference, but for its caches.

use crate::{
    metric::Row,
    run::{
        run_world,
        Driver, //
    },
    Ns,
    Options,
    Scenario, //
};
use serde::Serialize;
use std::fs;

/// CPUs, controllers, and queues of each, for the machines of the table.
const SIZES: &[(u32, u32, u32)] = &[
    (8, 1, 1),
    (32, 4, 4),
    (128, 16, 16),
    (512, 64, 64),
    // All in one world: every interrupt goes to one CPU.
    (512, 64, 1),
];

/// Cost is linear if no machine takes more for an event than this many times the cheapest.
const LINEAR: f64 = 2.0;
/// No simulation takes more memory. Unit: MiB.
const MEMORY: f64 = 1024.0;
/// What is simulated of each machine. Unit: nanoseconds, for each of its worlds.
const TIME: Ns = 100_000_000;

/// What one machine cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Its CPUs.
    pub cpus: u32,
    /// Its controllers.
    pub controllers: u32,
    /// Parts that were simulated one after the other.
    pub worlds: u32,
    /// Events.
    pub events: u64,
    /// CPU time. Unit: seconds.
    pub user_s: f64,
    /// Most memory. Unit: MiB.
    pub peak_mib: f64,
}

impl Cost {
    /// CPU time of an event. Unit: nanoseconds.
    pub fn event_ns(&self) -> f64 {
        self.user_s * 1e9 / self.events.max(1) as f64
    }

    fn name(&self) -> String {
        format!(
            "scaling {} CPUs, {} controllers, {} worlds",
            self.cpus, self.controllers, self.worlds
        )
    }
}

/// Runs the machines; `progress` is called before each.
///
/// # Errors
///
/// What is wrong with `policy`, or with reading what this process took.
pub fn costs(policy: &str, seed: u64, mut progress: impl FnMut(&str)) -> Result<Vec<Cost>, String> {
    let big = Scenario::find("big")?;
    let driver = Driver::parse(policy)?;
    let mut costs = Vec::new();
    for &(cpus, controllers, queues) in SIZES {
        progress(&format!(
            "{cpus} CPUs, {controllers} controllers, {queues} queues"
        ));
        let scenario = big.set_all(&[
            format!("cpus={cpus}"),
            format!("controllers={controllers}"),
            format!("queues={queues}"),
            format!("load.jobs={cpus}"),
        ])?;
        costs.push(cost(&scenario, driver, seed)?);
    }
    Ok(costs)
}

fn cost(scenario: &Scenario, driver: Driver, seed: u64) -> Result<Cost, String> {
    let options = Options {
        time_ns: TIME,
        ..Options::new(driver)
    };
    forget_peak();
    let before = user_s()?;
    let (mut worlds, mut events) = (0, 0);
    for world in scenario.machine.split(&scenario.load) {
        for _ in 0..world.times {
            worlds += 1;
            let options = Options {
                seed: seed + u64::from(worlds),
                ..options.clone()
            };
            let (part, _) = run_world(&scenario.machine, &scenario.load, &world, &options);
            events += part.events();
        }
    }
    Ok(Cost {
        cpus: scenario.machine.cpus,
        controllers: scenario.machine.controllers,
        worlds,
        events,
        user_s: user_s()? - before,
        peak_mib: peak_mib()?,
    })
}

/// The table as rows, with what is claimed of it.
pub fn rows(costs: &[Cost]) -> Vec<Row> {
    let least = costs
        .iter()
        .map(Cost::event_ns)
        .fold(f64::INFINITY, f64::min);
    let each = |cost: &Cost| {
        let row = |metric, value, ok| Row {
            ok,
            ..Row::prediction(&cost.name(), metric, Some(value))
        };
        let event = cost.event_ns();
        [
            row("events", cost.events as f64, None),
            row("user time, s", cost.user_s, None),
            row(
                "user time an event, ns",
                event,
                Some(event <= LINEAR * least),
            ),
            row(
                "peak memory, MiB",
                cost.peak_mib,
                Some(cost.peak_mib < MEMORY),
            ),
        ]
    };
    costs.iter().flat_map(each).collect()
}

/// What `/proc/self/stat` counts user time in, on every architecture. Unit: 1 a second.
const USER_HZ: f64 = 100.0;

/// User time of this process. Unit: seconds.
fn user_s() -> Result<f64, String> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    // The name of the process, in parentheses, may hold anything; utime is the twelfth word after it.
    let ticks = text
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(11)?.parse::<f64>().ok());
    ticks
        .map(|ticks| ticks / USER_HZ)
        .ok_or_else(|| format!("{path}: has no user time"))
}

/// The most memory that this process had since [`forget_peak`]. Unit: MiB.
fn peak_mib() -> Result<f64, String> {
    let path = "/proc/self/status";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok())
        .map(|kib| kib / 1024.0)
        .ok_or_else(|| format!("{path}: has no VmHWM"))
}

/// Where this is not allowed the peak is that of all runs so far: too much, never too little.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(events: u64, user_s: f64, peak_mib: f64) -> Cost {
        Cost {
            cpus: 8,
            controllers: 1,
            worlds: 1,
            events,
            user_s,
            peak_mib,
        }
    }

    #[test]
    fn more_for_an_event_is_not_linear() {
        let verdicts =
            |costs: &[Cost]| -> Vec<bool> { rows(costs).iter().filter_map(|row| row.ok).collect() };
        let base = some(1_000_000, 0.1, 10.0);
        let linear = [base.clone(), some(64_000_000, 8.0, 500.0)];
        assert_eq!(verdicts(&linear), [true, true, true, true]);
        let bad = [base, some(64_000_000, 20.0, 2_000.0)];
        assert_eq!(verdicts(&bad), [true, true, false, false]);
    }

    #[test]
    fn this_process_has_used_time_and_memory() {
        assert!(user_s().expect("user time") >= 0.0);
        assert!(peak_mib().expect("memory") > 0.5);
    }
}
