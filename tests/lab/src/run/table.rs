// SPDX-License-Identifier: GPL-2.0

//! The table on the terminal.

use super::{
    result::{
        Results,
        Row,
        Status, //
    },
    verdict::{
        Check,
        Outcome, //
    },
};
use comfy_table::{
    presets::UTF8_FULL_CONDENSED,
    Cell,
    CellAlignment,
    Color,
    ContentArrangement,
    Table, //
};

/// Heads of the columns.
pub(crate) const HEADS: [&str; 15] = [
    "workload",
    "driver",
    "policy",
    "status",
    "IOPS",
    "mean us",
    "p99 us",
    "p99.9 us",
    "max us",
    "irqs/IO",
    "deferrals",
    "hardirq %",
    "softirq %",
    "task %",
    "longest wait ms",
];

/// The cells of a row, in the order of [`HEADS`].
pub(crate) fn cells(row: &Row) -> [String; 15] {
    let share = |of: fn(&guest_agent::report::Shares) -> f64| {
        number(row.cpu0.as_ref().map(|s| of(s) * 100.0), 1)
    };
    [
        row.workload.to_string(),
        row.driver.to_string(),
        row.policy.clone(),
        row.status.text().to_owned(),
        number(row.iops, 0),
        number(row.lat_mean_us, 1),
        number(row.lat_p99_us, 1),
        number(row.lat_p999_us, 1),
        number(row.lat_max_us, 1),
        ratio(row.irqs_per_io),
        number(Some(row.deferrals as f64), 0),
        share(|s| s.hardirq),
        share(|s| s.softirq),
        share(|s| s.task),
        wait(row.wait_max_ms),
    ]
}

/// A wait in milliseconds, short ones with more digits.
pub(crate) fn wait(ms: Option<f64>) -> String {
    number(ms, if ms.is_some_and(|ms| ms < 1.0) { 3 } else { 1 })
}

/// Interrupts per request, rare ones with more digits.
fn ratio(value: Option<f64>) -> String {
    number(
        value,
        if value.is_some_and(|v| v < 0.01) {
            5
        } else {
            3
        },
    )
}

/// With commas between thousands; a dash for what was not measured.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else {
        return "-".into();
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (text.as_str(), String::new()),
    };
    let mut grouped = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && c.is_ascii_digit() && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(c);
    }
    grouped + &fraction
}

fn colour(status: Status) -> Color {
    match status {
        Status::Pass => Color::Green,
        Status::Stall | Status::SoftLockup => Color::Yellow,
        Status::Error => Color::Red,
    }
}

/// Everything that the terminal gets.
pub(crate) fn render(results: &Results) -> String {
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(HEADS);
    for row in &results.rows {
        let cells = cells(row).into_iter().enumerate().map(|(i, text)| match i {
            3 => Cell::new(text).fg(colour(row.status)),
            4.. => Cell::new(text).set_alignment(CellAlignment::Right),
            _ => Cell::new(text),
        });
        table.add_row(cells);
    }
    let mut out = format!("{table}\n");
    for row in results.rows.iter().filter(|r| r.status != Status::Pass) {
        if let Some(reason) = row.reason() {
            out += &format!("{}: {reason}\n", row.name());
        }
    }
    out += &spreads(&results.rows);
    out += &format!("\n{}\n{}\n", results.meta.time, results.meta.cpu_shares);
    for note in &results.meta.notes {
        out += &format!("note: {note}\n");
    }
    out + "\n" + &verdict(&results.checks)
}

/// How far the repeats of each row are apart, one a line.
fn spreads(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let iops: Vec<String> = row.repeats.iter().map(|r| number(r.iops, 0)).collect();
        let spread = row.spread_percent?;
        Some(format!(
            "{}: {} IOPS, {spread:.2} % apart\n",
            row.name(),
            iops.join(" and ")
        ))
    };
    let lines: String = rows.iter().filter_map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\nrepeats\n{lines}"),
    }
}

/// The checks, one a line.
pub(crate) fn verdict(checks: &[Check]) -> String {
    let mut out = String::new();
    for check in checks {
        let mark = match check.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "FAIL",
            Outcome::Open => "open",
        };
        out += &format!("{mark}  {}: {}\n", check.what, check.figures);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::verdict::{
        judge,
        tests::good, //
    };

    #[test]
    fn numbers_are_grouped() {
        for (value, digits, text) in [
            (0.0, 1, "0.0"),
            (999.0, 0, "999"),
            (1000.0, 0, "1,000"),
            (1_234_567.891, 2, "1,234,567.89"),
            (-123.0, 0, "-123"),
            (-1234.0, 0, "-1,234"),
        ] {
            assert_eq!(number(Some(value), digits), text);
        }
        assert_eq!(number(None, 1), "-");
        assert_eq!(number(Some(f64::NAN), 1), "-");
    }

    #[test]
    fn the_table_shows_every_row_and_check() {
        let rows = good();
        let results = Results {
            checks: judge(&rows),
            rows,
            ..Results::default()
        };
        let text = render(&results);
        for row in &results.rows {
            let line = text
                .lines()
                .find(|l| cells(row)[..3].iter().all(|c| l.contains(c.as_str())));
            assert!(line.unwrap().contains(row.status.text()), "{}", row.name());
        }
        assert_eq!(text.matches("\npass  ").count(), results.checks.len());
        assert!(text.contains("42,679 and 42,721 IOPS, 0.10 % apart"));
        for head in HEADS {
            assert!(text.contains(head), "{head}");
        }
    }
}
