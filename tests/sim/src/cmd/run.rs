// SPDX-License-Identifier: GPL-2.0

//! `cargo sim run`: one machine, one policy.

use super::show;
use sim::{
    matrix::Status,
    page::Page,
    report::CpuReport,
    run::{
        self,
        Driver,
        Options, //
    },
    Metric,
    Report,
    Scenario, //
};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A name (`cargo sim machines` lists them), gen:SEED, or the path of a TOML file.
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
    /// Another value for a key of the machine or its load, as in kernel.hz=1000 or load.depth=8.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
    /// Writes a page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let scenario = Scenario::find(&args.machine)?.set_all(&args.set)?;
    let options = Options {
        seed: args.seed,
        time_ns: args.ms * 1_000_000,
        warm_ns: args.warm_ms * 1_000_000,
        idle_ns: args.idle_ms * 1_000_000,
        threads: args.threads,
        ..Options::new(Driver::parse(&args.policy)?)
    };
    let report = run::run(&scenario.machine, &scenario.load, &options);
    let head = ["", ""];
    let (numbers, cpus) = (numbers(&report), cpus(&report));
    if let Some(path) = &args.html {
        let mut page = Page::new(&format!("{} under {}", report.machine, report.policy));
        page.text(&scenario.about);
        page.table(&head, 1, &numbers);
        page.section("CPUs");
        page.table(&CPU, 1, &cpus);
        page.bars("latency, us", &latencies(&report));
        show::write(path, &page.finish())?;
    }
    if args.json {
        return show::json(&report);
    }
    println!("{} under {}", report.machine, report.policy);
    println!(
        "{}\n\n{}",
        show::grid(&head, 1, &numbers),
        show::grid(&CPU, 1, &cpus)
    );
    report
        .violations
        .iter()
        .for_each(|broken| println!("{broken:?}"));
    Ok(())
}

/// What is known of the whole machine.
fn numbers(report: &Report) -> Vec<Vec<String>> {
    let metrics = Metric::USUAL.iter().map(|metric| {
        let value = metric.of(report);
        vec![metric.name().into(), format!("{value:.3}")]
    });
    let status = vec!["status".into(), Status::of(report).text().into()];
    let seed = vec!["seed".into(), report.seed.to_string()];
    let events = vec!["events".into(), report.events.to_string()];
    std::iter::once(status)
        .chain(metrics)
        .chain([seed, events])
        .collect()
}

fn latencies(report: &Report) -> Vec<(String, f64)> {
    let latency = &report.latency;
    [
        ("mean", latency.mean),
        ("50 %", latency.p50),
        ("99 %", latency.p99),
        ("99.9 %", latency.p999),
        ("all", latency.max),
    ]
    .map(|(name, time)| (name.into(), time as f64 / 1e3))
    .into()
}

/// The head of the table of CPUs; shares in percent.
const CPU: [&str; 10] = [
    "CPU",
    "times",
    "hard",
    "soft",
    "service",
    "tasks",
    "switch",
    "idle",
    "interrupts",
    "wait ms",
];

/// The CPUs that were simulated, and for how many each stands.
fn cpus(report: &Report) -> Vec<Vec<String>> {
    let all = report.worlds.iter().flat_map(|world| {
        let times = world.times;
        world.cpus.iter().map(move |cpu| (times, cpu))
    });
    let row = |(times, cpu): (u32, &CpuReport)| {
        let mark = if cpu.takes_interrupts {
            " (interrupts)"
        } else {
            ""
        };
        let shares = &cpu.shares;
        let shares = [
            shares.hard,
            shares.soft,
            shares.service,
            shares.ordinary,
            shares.switch,
            shares.idle,
        ];
        let mut cells = vec![format!("{}{mark}", cpu.cpu), times.to_string()];
        cells.extend(shares.map(|share| format!("{:.1}", share as f64 / 10.0)));
        cells.push(cpu.interrupts.to_string());
        cells.push(format!("{:.3}", cpu.wait.length as f64 / 1e6));
        cells
    };
    all.map(row).collect()
}
