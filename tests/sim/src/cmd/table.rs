// SPDX-License-Identifier: GPL-2.0

//! `cargo sim table`: many runs, beside what is known of them.

use super::show;
use sim::{
    field,
    matrix::{
        self,
        Cell,
        Claim,
        Plan, //
    },
    page::Page,
    scaling::{
        self,
        Cost, //
    },
    Metric,
    Row,
    Scenario, //
};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(crate) enum Table {
    /// The rows of the field report.
    Field(Field),
    /// Every machine under every policy, and whether fair is ever worse than the best of them.
    Machines(Machines),
    /// What a simulation costs as the machine grows.
    Scaling(Scaling),
    /// All of these.
    All(Common),
}

/// What all tables take.
#[derive(clap::Args)]
pub(crate) struct Common {
    /// Seed of everything that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that simulate.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Prints rows as JSON.
    #[arg(long)]
    json: bool,
    /// Writes a page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Field {
    #[command(flatten)]
    common: Common,
    /// Only rows whose names contain this.
    #[arg(default_value = "")]
    filter: String,
}

#[derive(clap::Args)]
pub(crate) struct Machines {
    #[command(flatten)]
    common: Common,
    /// Machines, with commas between: names, gen:SEED, paths of TOML files.
    #[arg(long, value_delimiter = ',')]
    machine: Vec<String>,
    /// Policies, with commas between them and between the parameters of each.
    #[arg(long)]
    policy: Option<String>,
    /// Simulated milliseconds that are measured.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    ms: u64,
}

#[derive(clap::Args)]
pub(crate) struct Scaling {
    #[command(flatten)]
    common: Common,
    /// The policy under which the machines run.
    #[arg(long, default_value = "fair")]
    policy: String,
}

/// Machines of the table that are not of the set.
const DRAWN: [&str; 4] = ["gen:1", "gen:2", "gen:3", "gen:4"];

/// A part of what is shown: a table, bars, or lines of text.
enum Part {
    Grid(Vec<&'static str>, usize, Vec<Vec<String>>),
    Bars(&'static str, Vec<(String, f64)>),
    Text(String),
}

/// A table: its rows, and what is shown of it.
struct Made {
    title: &'static str,
    rows: Vec<Row>,
    parts: Vec<Part>,
}

impl Made {
    fn print(&self) {
        println!("{}", self.title);
        for part in &self.parts {
            match part {
                Part::Grid(head, texts, rows) => println!("\n{}", show::grid(head, *texts, rows)),
                Part::Text(text) => println!("\n{text}"),
                Part::Bars(..) => (),
            }
        }
        println!();
    }

    fn write(&self, page: &mut Page) {
        page.section(self.title);
        for part in &self.parts {
            match part {
                Part::Grid(head, texts, rows) => page.table(head, *texts, rows),
                Part::Bars(title, bars) => page.bars(title, bars),
                Part::Text(text) => page.text(text),
            }
        }
    }
}

pub(crate) fn execute(table: &Table) -> Result<(), String> {
    let (common, made) = match table {
        Table::Field(args) => (&args.common, vec![field_table(&args.common, &args.filter)]),
        Table::Machines(args) => (&args.common, vec![machines_table(args)?]),
        Table::Scaling(args) => (
            &args.common,
            vec![scaling_table(&args.common, &args.policy)?],
        ),
        Table::All(common) => (common, all(common)?),
    };
    if let Some(path) = &common.html {
        let mut page = Page::new("Machines that do not exist");
        made.iter().for_each(|made| made.write(&mut page));
        show::write(path, &page.finish())?;
    }
    if common.json {
        let rows: Vec<&Row> = made.iter().flat_map(|made| &made.rows).collect();
        return show::json(&rows);
    }
    made.iter().for_each(Made::print);
    Ok(())
}

fn all(common: &Common) -> Result<Vec<Made>, String> {
    let machines = Machines {
        common: Common {
            html: None,
            ..*common
        },
        machine: Vec::new(),
        policy: None,
        ms: 500,
    };
    Ok(vec![
        field_table(common, ""),
        machines_table(&machines)?,
        scaling_table(common, "fair")?,
    ])
}

fn field_table(common: &Common, filter: &str) -> Made {
    let bar = show::bar(field::count(filter));
    let rows = field::rows(common.seed, common.threads.into(), filter, |name| {
        show::step(&bar, name);
    });
    bar.finish_and_clear();
    let cells: Vec<_> = rows.iter().map(show::row).collect();
    Made {
        title: "The rows of the field report",
        parts: vec![Part::Grid(show::ROW.to_vec(), 2, cells)],
        rows,
    }
}

fn machines_table(args: &Machines) -> Result<Made, String> {
    let names: Vec<&str> = match args.machine.as_slice() {
        [] => Scenario::names().chain(DRAWN).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let scenarios = names
        .into_iter()
        .map(Scenario::find)
        .collect::<Result<Vec<_>, _>>()?;
    let policies = match &args.policy {
        Some(list) => matrix::policies(list),
        None => matrix::POLICIES.iter().map(|&name| name.into()).collect(),
    };
    let plan = Plan {
        seed: args.common.seed,
        time_ns: args.ms * 1_000_000,
        threads: args.common.threads.into(),
    };
    let bar = show::bar(scenarios.len() * policies.len());
    let cells = plan.run(&scenarios, &policies, |what| show::step(&bar, what))?;
    bar.finish_and_clear();
    let rows = matrix::rows(&scenarios, &cells);
    let known: Vec<_> = rows.iter().filter(|row| row.field.is_some()).collect();
    let known: Vec<_> = known.into_iter().map(show::row).collect();
    let bars = |title, value: fn(&Cell) -> f64| {
        let bar = |cell: &Cell| (format!("{} {}", cell.machine, cell.policy), value(cell));
        Part::Bars(title, cells.iter().map(bar).collect())
    };
    Ok(Made {
        title: "Every machine under every policy",
        parts: vec![
            Part::Grid(CELL.to_vec(), 3, cells.iter().map(cell).collect()),
            Part::Text("What was published, and the model:".into()),
            Part::Grid(show::ROW.to_vec(), 2, known),
            Part::Text(claims(&matrix::claims(&cells))),
            bars("IOPS, thousands", |cell| Metric::KiloIops.of(&cell.report)),
            bars("p99.9, us", |cell| Metric::P999.of(&cell.report)),
        ],
        rows,
    })
}

const CELL: [&str; 9] = [
    "machine", "policy", "status", "IOPS, k", "mean us", "p99 us", "p99.9 us", "wait ms", "irqs/IO",
];

fn cell(cell: &Cell) -> Vec<String> {
    let number = |metric: Metric, digits: usize| format!("{:.digits$}", metric.of(&cell.report));
    vec![
        cell.machine.clone(),
        cell.policy.clone(),
        cell.text().into(),
        number(Metric::KiloIops, 1),
        number(Metric::Mean, 1),
        number(Metric::P99, 1),
        number(Metric::P999, 1),
        number(Metric::Wait, 2),
        number(Metric::Interrupts, 4),
    ]
}

fn claims(claims: &[Claim]) -> String {
    let head = format!(
        "fair is safe, and never worse than {} of the best other safe policy",
        matrix::CLAIM
    );
    let of = |part: Option<f64>, best: &Option<String>| match (part, best) {
        (Some(part), Some(best)) => format!("{part:.3} of {best}"),
        _ => "no other policy is safe".into(),
    };
    let lines = claims.iter().map(|claim| {
        let verdict = if claim.ok { "ok " } else { "NOT" };
        let (all, near) = (
            of(claim.part, &claim.best),
            of(claim.near_part, &claim.near),
        );
        let near = if claim.best == claim.near {
            String::new()
        } else {
            format!("; of those that stay on the CPU: {near}")
        };
        format!("{verdict} {:12} {all}{near}", claim.machine)
    });
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

fn scaling_table(common: &Common, policy: &str) -> Result<Made, String> {
    let costs = scaling::costs(policy, common.seed, |what| eprintln!("{what}"))?;
    let rows = scaling::rows(&costs);
    let verdicts = rows.iter().filter_map(|row| {
        let verdict = if row.ok? { "ok " } else { "NOT" };
        Some(format!(
            "{verdict} {}: {} {:.1}",
            row.row,
            row.metric,
            row.model.unwrap_or(0.0)
        ))
    });
    let verdicts: Vec<String> = verdicts.collect();
    let cells: Vec<_> = costs.iter().map(cost).collect();
    Ok(Made {
        title: "What a simulation costs",
        parts: vec![
            Part::Grid(COST.to_vec(), 0, cells),
            Part::Text(verdicts.join("\n")),
        ],
        rows,
    })
}

const COST: [&str; 7] = [
    "CPUs",
    "controllers",
    "worlds",
    "events",
    "user s",
    "ns/event",
    "peak MiB",
];

fn cost(cost: &Cost) -> Vec<String> {
    vec![
        cost.cpus.to_string(),
        cost.controllers.to_string(),
        cost.worlds.to_string(),
        cost.events.to_string(),
        format!("{:.2}", cost.user_s),
        format!("{:.1}", cost.event_ns()),
        format!("{:.0}", cost.peak_mib),
    ]
}
