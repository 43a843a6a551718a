// SPDX-License-Identifier: GPL-2.0

//! `cargo sim run`: one machine, one policy.

use sim::{
    calibration,
    run::{
        self,
        Driver,
        Options, //
    },
    Machine,
    Report,
    Workload, //
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// field, field-qd1
    #[arg(long, default_value = "field")]
    machine: String,
    /// As in the module parameter; stock-threaded: the C driver's own.
    #[arg(long, default_value = "hardirq")]
    policy: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulated milliseconds that are measured.
    #[arg(long, default_value_t = 2_000)]
    ms: u64,
    /// Simulated milliseconds before that.
    #[arg(long, default_value_t = 100)]
    warm_ms: u64,
    /// Simulated milliseconds before that, without load.
    #[arg(long, default_value_t = 0)]
    idle_ms: u64,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Another value for a key of the machine, as in kernel.hz=1000.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[arg(long)]
    json: bool,
}

fn named(name: &str) -> Result<(Machine, Workload), String> {
    match name {
        "field" => Ok((calibration::field(), calibration::storm())),
        "field-qd1" => Ok((calibration::field(), calibration::qd1())),
        "small" => Ok((
            Machine::default(),
            Workload {
                jobs: 3,
                depth: 2,
                ..Workload::default()
            },
        )),
        _ => Err(format!(
            "no machine '{name}'; there are: field, field-qd1, small"
        )),
    }
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let (mut machine, load) = named(&args.machine)?;
    for pair in &args.set {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair}: not KEY=VALUE"))?;
        machine = machine.with(key, value)?;
    }
    if let Some(problem) = machine.problem() {
        return Err(problem);
    }
    let options = Options {
        seed: args.seed,
        time_ns: args.ms * 1_000_000,
        warm_ns: args.warm_ms * 1_000_000,
        idle_ns: args.idle_ms * 1_000_000,
        threads: args.threads,
        ..Options::new(Driver::parse(&args.policy)?)
    };
    let report = run::run(&machine, &load, &options);
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        print(&report);
    }
    Ok(())
}

fn print(report: &Report) {
    println!("{report:#?}");
}
