// SPDX-License-Identifier: GPL-2.0

//! What the subcommands have in common: tables on the terminal, progress, files.

use comfy_table::{
    presets::NOTHING,
    CellAlignment,
    Table as Grid, //
};
use indicatif::{
    ProgressBar,
    ProgressStyle, //
};
use serde::Serialize;
use sim::Row;
use std::{
    fs,
    path::Path, //
};

/// A table: its head, and rows of as many cells. The first `texts` columns are texts, the others
/// numbers.
pub(crate) fn grid(head: &[&str], texts: usize, rows: &[Vec<String>]) -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(NOTHING).set_header(head.to_vec());
    for row in rows {
        grid.add_row(row);
    }
    for column in grid.column_iter_mut().skip(texts) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid
}

/// The head of tables of [`row`]s.
pub(crate) const ROW: [&str; 7] = ["row", "metric", "field", "model", "off %", "kind", ""];

/// The cells of a row.
pub(crate) fn row(row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    let verdict = match (row.ok, row.model) {
        (_, None) => "no such policy",
        (Some(true), _) => "ok",
        (Some(false), _) => "OFF",
        (None, _) => "",
    };
    vec![
        row.row.clone(),
        row.metric.clone(),
        number(row.field),
        number(row.model),
        row.diff_pct
            .map_or_else(String::new, |off| format!("{off:+.1}")),
        row.kind.text().into(),
        verdict.into(),
    ]
}

/// Prints `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), String> {
    println!("{}", to_json(value)?);
    Ok(())
}

/// `value` as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(|error| error.to_string())
}

/// Writes a file in one step: nobody ever sees a part of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let says = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(says)?;
    }
    let part = path.with_extension("part");
    fs::write(&part, text).map_err(says)?;
    fs::rename(&part, path).map_err(says)
}

/// Shows progress on a terminal: a bar, and what was done last.
pub(crate) fn bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// One step of `bar` is done.
pub(crate) fn step(bar: &ProgressBar, what: &str) {
    bar.set_message(what.to_owned());
    bar.inc(1);
    if bar.is_hidden() {
        let (done, all) = (bar.position(), bar.length().unwrap_or(0));
        eprintln!("{done}/{all} {what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let path = std::env::temp_dir().join(format!("sim-show-{}/a.json", std::process::id()));
        write(&path, "1").expect("written");
        write(&path, "2").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "2");
        let folder = path.parent().expect("a folder");
        assert_eq!(fs::read_dir(folder).expect("listed").count(), 1);
        fs::remove_dir_all(folder).expect("removed");
    }
}
