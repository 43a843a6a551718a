// SPDX-License-Identifier: GPL-2.0

//! `cargo sim table`: runs beside what the field reports.

use comfy_table::Table as Grid;
use sim::field::{
    self,
    Kind,
    Row, //
};

#[derive(clap::Subcommand)]
pub(crate) enum Table {
    /// The rows of the field report.
    Field(Field),
}

#[derive(clap::Args)]
pub(crate) struct Field {
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

pub(crate) fn execute(table: &Table) -> Result<(), String> {
    match table {
        Table::Field(args) => field(args),
    }
}

fn field(args: &Field) -> Result<(), String> {
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
