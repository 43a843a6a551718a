// SPDX-License-Identifier: GPL-2.0

//! `cargo sim`: runs machines that do not exist.

#![deny(unsafe_code)]

use clap::{
    Parser,
    Subcommand, //
};
use comfy_table::Table as Grid;
use sim::{
    calibration,
    field::{
        self,
        Kind,
        Row, //
    },
    fuzz::Plan,
    run::{
        self,
        Driver,
        Options, //
    },
    Machine,
    Report,
    Workload, //
};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo sim", about = "Runs machines that do not exist.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs one machine under one policy.
    Run(Run),
    /// Runs small machines on which things go wrong.
    Fuzz(Fuzz),
    /// Prints a table of runs beside what the field reports.
    #[command(subcommand)]
    Table(Table),
}

#[derive(Subcommand)]
enum Table {
    /// The rows of the field report.
    Field(Field),
}

#[derive(clap::Args)]
struct Fuzz {
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
}

#[derive(clap::Args)]
struct Field {
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Only rows whose names contain this.
    #[arg(default_value = "")]
    filter: String,
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Run {
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

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(run) => run_one(&run),
        Command::Fuzz(args) => fuzz(&args),
        Command::Table(Table::Field(args)) => table(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sim: {message}");
            ExitCode::FAILURE
        }
    }
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

fn run_one(args: &Run) -> Result<(), String> {
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

fn table(args: &Field) -> Result<(), String> {
    let rows = field::rows(args.seed, args.threads, &args.filter, |name| {
        eprintln!("{name}");
    });
    if args.json {
        let text = serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    let mut grid = Grid::new();
    grid.load_preset(comfy_table::presets::NOTHING);
    grid.set_header(["row", "metric", "field", "model", "off %", "kind", ""]);
    for row in &rows {
        grid.add_row(cells(row));
    }
    println!("{grid}");
    Ok(())
}

fn cells(row: &Row) -> [String; 7] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    let kind = match row.kind {
        Kind::Fit => "fit",
        Kind::HeldOut => "held out",
        Kind::Prediction => "prediction",
    };
    let verdict = match (row.ok, row.model) {
        (_, None) => "no such policy",
        (Some(true), _) => "ok",
        (Some(false), _) => "OFF",
        (None, _) => "",
    };
    [
        row.row.clone(),
        row.metric.into(),
        number(row.field),
        number(row.model),
        row.diff_pct
            .map_or_else(String::new, |off| format!("{off:+.1}")),
        kind.into(),
        verdict.into(),
    ]
}

fn fuzz(args: &Fuzz) -> Result<(), String> {
    for seed in args.seed..args.seed + args.seeds {
        let plan = Plan::new(seed);
        let outcome = plan.run();
        if let Some(first) = outcome.violations.first() {
            let summary = plan.summary();
            return Err(format!("seed {seed}: {first:?}\n{summary}"));
        }
    }
    println!("{} seeds, from {}: clean", args.seeds, args.seed);
    Ok(())
}
