// SPDX-License-Identifier: GPL-2.0

//! The page: one file that needs nothing else, for a reader who was not there.

use super::{
    chart::{
        self,
        Bars, //
    },
    result::{
        Results,
        Row,
        Status,
        STARVED, //
    },
    table,
    verdict::{
        self,
        Check,
        Outcome, //
    },
    workload::Workload,
};
use plotters::style::RGBColor;

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 1120px; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
h3 { margin: 1.5rem 0 .3rem; font-size: 1.05rem; }
p.what, figcaption { color: #444; max-width: 52rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .55rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
th { vertical-align: bottom; }
td.n, th.n { text-align: right; }
.good { color: #14692b; font-weight: 600; }
.bad { color: #a3271b; font-weight: 600; }
figure { margin: .5rem 0 1.5rem; }
figure svg { display: block; max-width: 100%; height: auto; }
.key { font-size: .87rem; margin: .3rem 0; }
.key span { display: inline-block; margin-right: 1.2rem; }
.key i { display: inline-block; width: .9em; height: .9em; margin-right: .35em; vertical-align: -.1em; border: 1px solid #999; }
ul.checks { list-style: none; padding: 0; }
ul.checks li { padding: .15rem 0; }
ul.checks b { display: inline-block; width: 3.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem; }
dt { color: #555; }
dd { margin: 0; overflow-wrap: anywhere; }
";

/// The whole page.
pub(crate) fn render(results: &Results) -> Result<String, Box<dyn std::error::Error>> {
    let mut body = String::new();
    body += &head(results);
    body += &checks(&results.checks);
    for workload in Workload::ALL {
        let rows: Vec<&Row> = results
            .rows
            .iter()
            .filter(|row| row.workload == workload)
            .collect();
        if !rows.is_empty() {
            body += &section(workload, &rows)?;
        }
    }
    body += &circumstances(results);
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>irqmod: what each policy does to a completion storm</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

/// Text as HTML has it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn head(results: &Results) -> String {
    let count = |outcome| {
        results
            .checks
            .iter()
            .filter(|c| c.outcome == outcome)
            .count()
    };
    let (held, failed) = (count(Outcome::Pass), count(Outcome::Fail));
    let open = count(Outcome::Open);
    let verdict = match failed {
        0 if open > 0 => format!(
            "<span class=\"good\">{held} checks hold</span>, {open} are open: not reached yet."
        ),
        0 => format!("<span class=\"good\">All {held} checks hold.</span>"),
        _ => format!(
            "<span class=\"bad\">{failed} of {} checks fail.</span>",
            held + failed + open
        ),
    };
    format!(
        "<h1>What each policy does to a completion storm</h1>\n\
         <p class=\"what\">A storage completion is first handled in a hard interrupt. When several \
         devices interrupt the same CPU faster than it can handle, nothing else runs there. Each \
         row below is one boot of Linux {} in an emulated machine: the kernel's own NVMe driver \
         (C), the Rust NVMe driver on irqmod, or the edu example on irqmod, under one policy. An \
         ordinary task pinned to CPU 0 measures how long it is kept from running. {verdict}</p>\n",
        escape(&results.meta.kernel)
    )
}

fn checks(checks: &[Check]) -> String {
    let mut out = String::from("<h2>Verdict</h2>\n<ul class=\"checks\">\n");
    for check in checks {
        let (class, mark) = match check.outcome {
            Outcome::Pass => ("good", "pass"),
            Outcome::Fail => ("bad", "FAIL"),
            Outcome::Open => ("bad", "open"),
        };
        out += &format!(
            "<li><b class=\"{class}\">{mark}</b> {}: {}</li>\n",
            escape(&check.what),
            escape(&check.figures)
        );
    }
    out + "</ul>\n"
}

fn section(workload: Workload, rows: &[&Row]) -> Result<String, Box<dyn std::error::Error>> {
    let mut out = format!(
        "<h2>{} ({workload})</h2>\n<p class=\"what\">{}</p>\n",
        workload.title(),
        workload.describe()
    );
    out += &html_table(rows);
    out += &timelines(rows)?;
    if workload != Workload::Qd1 {
        out += &waits(rows)?;
    }
    out += &latencies(rows)?;
    out += &throughput(rows)?;
    Ok(out)
}

fn html_table(rows: &[&Row]) -> String {
    let class = |i: usize| if i > 3 { " class=\"n\"" } else { "" };
    let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr>");
    for (i, head) in table::HEADS.iter().enumerate().skip(1) {
        out += &format!("<th{}>{}</th>", class(i), escape(head));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        out += "<tr>";
        for (i, cell) in table::cells(row).iter().enumerate().skip(1) {
            let class = match (i, row.status) {
                (3, Status::Pass) => " class=\"good\"",
                (3, _) => " class=\"bad\"",
                _ => class(i),
            };
            out += &format!("<td{class}>{}</td>", escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

fn figure(title: &str, key: &[(&str, RGBColor)], pictures: &[String], caption: &str) -> String {
    let mut out = format!("<h3>{}</h3>\n<figure>\n", escape(title));
    if !key.is_empty() {
        out += "<div class=\"key\">";
        for (name, RGBColor(r, g, b)) in key {
            let name = escape(name);
            out +=
                &format!("<span><i style=\"background:#{r:02x}{g:02x}{b:02x}\"></i>{name}</span>");
        }
        out += "</div>\n";
    }
    for picture in pictures {
        let labelled = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(title));
        out += &picture.replacen("<svg ", &labelled, 1);
        out += "\n";
    }
    out + &format!("<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
}

fn timelines(rows: &[&Row]) -> Result<String, Box<dyn std::error::Error>> {
    let names: Vec<String> = rows.iter().map(|row| chart::label(row)).collect();
    let left = chart::left(names.iter().map(String::as_str));
    let mut pictures = Vec::new();
    for row in rows {
        let drawn = row.repeats.iter().find(|r| !r.timeline.is_empty());
        if let Some(repeat) = drawn {
            pictures.push(chart::timeline(row, repeat, left)?);
        }
    }
    if pictures.is_empty() {
        return Ok(String::new());
    }
    let key: Vec<(&str, RGBColor)> = chart::SHARES
        .into_iter()
        .chain([("the ordinary task waits", chart::WAITS)])
        .collect();
    Ok(figure(
        "What CPU 0 does during the load",
        &key,
        &pictures,
        "Below: shares of CPU 0, 0 to 100 %. Above, in black: for how long the ordinary task pinned \
         to CPU 0 has been waiting to run; full height is the length of the load, many low teeth \
         mean that it is served again and again. First repeat of each row. (threaded: the threads \
         of interrupts are real-time tasks; the kernel keeps 50 ms of each second for ordinary \
         ones, hence waits of 950 ms.)",
    ))
}

fn waits(rows: &[&Row]) -> Result<String, Box<dyn std::error::Error>> {
    let load = rows.first().map_or(0.0, |row| row.load_ms as f64);
    let starved = format!("{:.0} % of the load", STARVED * 100.0);
    let limits = [
        ("fair", verdict::FAIR_WAIT_MS),
        ("resched", verdict::RESCHED_WAIT_MS),
    ];
    let mut marks: Vec<(f64, String)> = limits
        .into_iter()
        .filter(|(policy, _)| rows.iter().any(|row| row.policy_name() == *policy))
        .map(|(policy, ms)| (ms, format!("limit of {policy}")))
        .collect();
    marks.push((STARVED * load, starved));
    let bars = Bars {
        axis: "longest wait of an ordinary task on CPU 0, ms (logarithmic)",
        digits: 1,
        log: true,
        rows: rows
            .iter()
            .map(|row| (chart::label(row), vec![row.wait_max_ms]))
            .collect(),
        marks,
    };
    Ok(figure(
        "Longest wait of an ordinary task on CPU 0",
        &[],
        &[bars.draw()?],
        "Shorter is better. A bar as long as the load means that the task did not run at all. Dashed: \
         what is allowed under fair and under resched, and from where on a row counts as starved. \
         Worst repeat of each row.",
    ))
}

fn latencies(rows: &[&Row]) -> Result<String, Box<dyn std::error::Error>> {
    let bars = Bars {
        axis: "latency, us (logarithmic)",
        digits: 1,
        log: true,
        rows: rows
            .iter()
            .map(|row| {
                let values = vec![row.lat_mean_us, row.lat_p99_us, row.lat_p999_us];
                (chart::label(row), values)
            })
            .collect(),
        marks: Vec::new(),
    };
    let key = [
        ("mean", chart::BARS[0]),
        ("99 % are faster", chart::BARS[1]),
        ("99.9 % are faster", chart::BARS[2]),
    ];
    Ok(figure(
        "Latency of a request",
        &key,
        &[bars.draw()?],
        "Shorter is better. From submission to the moment its submitter has the result.",
    ))
}

fn throughput(rows: &[&Row]) -> Result<String, Box<dyn std::error::Error>> {
    let bars = Bars {
        axis: "completions per second of guest time",
        digits: 0,
        log: false,
        rows: rows
            .iter()
            .map(|row| (chart::label(row), vec![row.iops]))
            .collect(),
        marks: Vec::new(),
    };
    Ok(figure(
        "Throughput",
        &[],
        &[bars.draw()?],
        "Longer is better. Mean of the repeats.",
    ))
}

fn circumstances(results: &Results) -> String {
    let meta = &results.meta;
    let loads = format!(
        "qd1 {} ms, the others {} ms; synthetic and hot24: {} ns a completion, {} ns (hot24: ten times \
         that) between; {} repeat(s) a row",
        meta.qd1_ms, meta.storm_ms, meta.cost_ns, meta.gap_ns, meta.repeats
    );
    let wall = format!("{:.0} s on the host", meta.wall_seconds);
    let mut out = String::from("<h2>Circumstances</h2>\n<dl>\n");
    for (name, value) in [
        ("date", &meta.date),
        ("command", &meta.command),
        ("commit", &meta.commit),
        ("guest kernel", &meta.kernel),
        ("emulator", &meta.qemu),
        ("host CPU", &meta.host_cpu),
        ("time", &meta.time),
        ("shares of CPU 0", &meta.cpu_shares),
        ("loads", &loads),
        ("took", &wall),
    ] {
        out += &format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value));
    }
    for note in &meta.notes {
        out += &format!("<dt>note</dt><dd>{}</dd>\n", escape(note));
    }
    out + "</dl>\n"
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::run::{
        result::{
            Meta,
            Point, //
        },
        verdict::{
            judge,
            tests::good, //
        },
    };

    /// Fails unless all tags are closed in order and no text holds a raw `<` or `&`.
    pub(crate) fn well_formed(text: &str) {
        let mut open: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('<') {
            entities(&rest[..start]);
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            assert!(!tag.contains('<'), "raw < in {tag}");
            entities(tag);
            rest = &rest[end + 1..];
            if tag.starts_with(['!', '?']) || tag.ends_with('/') {
                continue;
            }
            let name = tag.split_ascii_whitespace().next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
                None => open.push(name.to_owned()),
            }
        }
        assert!(open.is_empty(), "not closed: {open:?}");
    }

    fn entities(text: &str) {
        for (i, _) in text.match_indices('&') {
            let word = text[i + 1..].split(';').next().unwrap_or_default();
            let known =
                ["amp", "lt", "gt", "quot", "apos"].contains(&word) || word.starts_with('#');
            assert!(known, "raw & before {word}");
        }
    }

    fn results() -> Results {
        let mut rows = good();
        rows[6].repeats[0].timeline = vec![Point::default()];
        Results {
            checks: judge(&rows),
            rows,
            meta: Meta {
                kernel: "7.3.4".into(),
                notes: vec!["a <note> & more".into()],
                ..Meta::default()
            },
        }
    }

    #[test]
    fn the_page_is_well_formed_and_whole() {
        let page = render(&results()).unwrap();
        well_formed(&page);
        for text in [
            "<title>",
            "a &lt;note&gt; &amp; more",
            "Longest wait",
            "Latency of a request",
            "What CPU 0 does",
            "soft lockup",
            &format!("All {} checks hold", verdict::tests::CLAIMS),
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.matches("<svg ").count() >= 9);
        // Nothing is fetched from anywhere.
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn failures_are_shown() {
        let mut results = results();
        results.checks[0].outcome = Outcome::Fail;
        let page = render(&results).unwrap();
        let share = format!("1 of {} checks fail", verdict::tests::CLAIMS);
        assert!(page.contains(&share));
        assert!(page.contains("<b class=\"bad\">FAIL</b>"));
    }

    #[test]
    fn rows_without_figures_do_not_spoil_it() {
        let mut results = results();
        for row in &mut results.rows {
            row.iops = None;
            row.lat_mean_us = None;
            row.wait_max_ms = None;
            row.repeats.clear();
        }
        well_formed(&render(&results).unwrap());
    }

    #[test]
    #[should_panic(expected = "not closed")]
    fn an_open_tag_is_found() {
        well_formed("<p><b>x</b>");
    }

    #[test]
    #[should_panic(expected = "raw &")]
    fn a_raw_ampersand_is_found() {
        well_formed("<p>a & b</p>");
    }

    #[test]
    #[should_panic]
    fn crossed_tags_are_found() {
        well_formed("<p><b>x</p></b>");
    }
}
