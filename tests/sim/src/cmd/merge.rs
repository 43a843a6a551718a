// SPDX-License-Identifier: GPL-2.0

//! `cargo sim merge`: joins the shards of a sweep, and shows it.

use super::show;
use sim::{
    page::{
        Line,
        Page, //
    },
    sweep::{
        self,
        Group,
        Piece,
        Plan,
        Point, //
    },
    Metric, //
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders with shards.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Folder for the result; the first one with shards if it is not given.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints rows as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), String> {
    let mut pieces = Vec::new();
    for folder in &args.folders {
        for path in shards(folder)? {
            pieces.push((path.display().to_string(), read(&path)?));
        }
    }
    let (plan, points) = sweep::merge(pieces)?;
    let out = args.out.as_ref().unwrap_or(&args.folders[0]);
    finish(&plan, &points, out, args.json)
}

/// The files of shards in a folder, in order.
fn shards(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let says = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(says)? {
        let path = entry.map_err(says)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.starts_with("shard-") && name.ends_with(".json")) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: has no shard-*.json", folder.display()));
    }
    Ok(paths)
}

/// A shard's file.
pub(super) fn read(path: &Path) -> Result<Piece, String> {
    let says = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| says(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| says(format!("is no shard: {error}")))
}

/// Writes rows and page of a whole sweep, and prints it.
pub(super) fn finish(plan: &Plan, points: &[Point], out: &Path, json: bool) -> Result<(), String> {
    let rows = plan.rows(points);
    show::write(&out.join("rows.json"), &show::to_json(&rows)?)?;
    let groups = sweep::groups(points);
    let head: Vec<&str> = plan.axes.iter().map(|axis| axis.key.as_str()).collect();
    let head = [head.as_slice(), &HEAD].concat();
    let cells: Vec<Vec<String>> = groups.iter().map(cells).collect();
    let texts = plan.axes.len() + 1;
    let mut page = Page::new(&format!("Sweep of {}", plan.scenario.machine.name));
    page.text(&plan.scenario.about);
    page.table(&head, texts, &cells);
    pictures(&mut page, plan, &groups);
    show::write(&out.join("sweep.html"), &page.finish())?;
    if json {
        return show::json(&rows);
    }
    println!("{}", show::grid(&head, texts, &cells));
    Ok(())
}

/// A picture for each metric, over the first axis that has numbers; the others make lines.
fn pictures(page: &mut Page, plan: &Plan, groups: &[Group]) {
    let numbers = |place: &usize| plan.axes[*place].numbers().is_some_and(|all| all.len() > 1);
    let Some(along) = (0..plan.axes.len()).find(numbers) else {
        return;
    };
    for (place, metric) in Metric::USUAL.iter().enumerate() {
        let mut lines: Vec<Line> = Vec::new();
        for group in groups {
            let others = plan.axes.iter().zip(&group.settings).enumerate();
            let others = others.filter(|(axis, _)| *axis != along);
            let name: Vec<String> = others
                .map(|(_, (axis, value))| format!("{}={value}", axis.key))
                .collect();
            let name = name.join(" ");
            let point = (
                group.settings[along].parse().unwrap_or(0.0),
                group.mean[place],
            );
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => lines.push((name, vec![point])),
            }
        }
        page.lines(metric.name(), &plan.axes[along].key, &lines);
    }
}

/// What follows the columns of the axes.
const HEAD: [&str; 9] = [
    "status", "locked", "IOPS, k", "mean us", "p99 us", "p99.9 us", "wait ms", "irqs/IO",
    "IOPS +-%",
];

/// The cells of a row of the table.
fn cells(group: &Group) -> Vec<String> {
    let values = group.mean.iter().zip(Metric::USUAL);
    let values = values.map(|(value, metric)| match metric {
        Metric::Locked => format!("{value:.0}"),
        Metric::Interrupts => format!("{value:.4}"),
        Metric::Wait => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    });
    let mut cells = group.settings.clone();
    cells.push(group.status.text().into());
    cells.extend(values);
    cells.push(format!("{:.2}", group.apart[1]));
    cells
}
