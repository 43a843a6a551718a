// SPDX-License-Identifier: GPL-2.0

//! Pages: one file each that needs nothing else, with tables and simple pictures.

use std::fmt::Write;

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 1120px; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n, th.n { text-align: right; }
.good { color: #14692b; font-weight: 600; }
.bad { color: #a3271b; font-weight: 600; }
figure { margin: .5rem 0 1.5rem; }
figure svg { display: block; max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
";

/// Colours of lines; after the last one they begin again.
const COLOURS: [&str; 6] = [
    "#2a78b5", "#e69f00", "#c0392b", "#14692b", "#7b4fa3", "#555555",
];

/// Words that are good or bad wherever they stand alone in a cell.
const GOOD: [&str; 2] = ["ok", "pass"];
const BAD: [&str; 5] = ["OFF", "NOT", "stall", "soft lockup", "BROKEN"];

/// Width of a picture, and of the names in it.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 260.0;
/// Height of a bar with the space below it, and of a picture with lines.
const BAR: f64 = 18.0;
const HEIGHT: f64 = 300.0;

/// A page that is being written.
pub struct Page {
    title: String,
    body: String,
}

/// A line of a picture: its name and its points, from left to right.
pub type Line = (String, Vec<(f64, f64)>);

impl Page {
    /// A page with nothing but its title.
    pub fn new(title: &str) -> Self {
        Self {
            title: escape(title),
            body: format!("<h1>{}</h1>\n", escape(title)),
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.body.write_fmt(text);
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        self.put(format_args!("<h2>{}</h2>\n", escape(title)));
    }

    /// A paragraph for each line of `text`.
    pub fn text(&mut self, text: &str) {
        for line in text.lines() {
            self.put(format_args!("<p>{}</p>\n", escape(line)));
        }
    }

    /// A table. Its first `texts` columns are texts, the others numbers.
    pub fn table(&mut self, head: &[&str], texts: usize, rows: &[Vec<String>]) {
        let side = |place: usize| if place < texts { "" } else { " class=\"n\"" };
        self.put(format_args!("<div class=\"wide\"><table>\n<thead><tr>"));
        for (place, name) in head.iter().enumerate() {
            self.put(format_args!("<th{}>{}</th>", side(place), escape(name)));
        }
        self.put(format_args!("</tr></thead>\n<tbody>\n"));
        for row in rows {
            self.put(format_args!("<tr>"));
            for (place, cell) in row.iter().enumerate() {
                let class = if GOOD.contains(&cell.as_str()) {
                    " class=\"good\""
                } else if BAD.contains(&cell.as_str()) {
                    " class=\"bad\""
                } else {
                    side(place)
                };
                self.put(format_args!("<td{class}>{}</td>", escape(cell)));
            }
            self.put(format_args!("</tr>\n"));
        }
        self.put(format_args!("</tbody></table></div>\n"));
    }

    /// A bar for each value.
    pub fn bars(&mut self, title: &str, bars: &[(String, f64)]) {
        let most = bars.iter().map(|(_, value)| *value).fold(1e-9, f64::max);
        let height = BAR * bars.len() as f64 + 4.0;
        self.begin_figure(title, height);
        for (place, (name, value)) in (0_u32..).zip(bars) {
            let top = BAR * f64::from(place) + 2.0;
            let (text, end) = (
                top + BAR * 0.65,
                (WIDTH - LEFT - 90.0) * value.max(0.0) / most,
            );
            self.put(format_args!(
                "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{LEFT:.0}\" y=\"{top:.0}\" width=\"{end:.1}\" height=\"{:.0}\" fill=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"{text:.0}\">{}</text>\n",
                LEFT - 8.0,
                escape(name),
                BAR - 4.0,
                COLOURS[0],
                LEFT + end + 5.0,
                short(*value),
            ));
        }
        self.end_figure();
    }

    /// Lines over a common axis `along`; both axes begin at zero or below the least value.
    pub fn lines(&mut self, title: &str, along: &str, lines: &[Line]) {
        let all = || lines.iter().flat_map(|(_, points)| points);
        let right = all().map(|point| point.0).fold(1e-9, f64::max);
        let left = all().map(|point| point.0).fold(0.0, f64::min);
        let most = all().map(|point| point.1).fold(1e-9, f64::max);
        let (width, height) = (WIDTH - LEFT - 20.0, HEIGHT - 50.0);
        let x = |value: f64| 70.0 + width * (value - left) / (right - left);
        let y = |value: f64| 10.0 + height * (1.0 - value.max(0.0) / most);
        self.begin_figure(title, HEIGHT);
        for part in 0..=4 {
            let (at, up) = (
                left + (right - left) * f64::from(part) / 4.0,
                most * f64::from(part) / 4.0,
            );
            self.put(format_args!(
                "<path d=\"M70 {0:.1}H{1:.1}\" stroke=\"#ddd\"/><text x=\"64\" y=\"{2:.1}\" \
                 text-anchor=\"end\">{3}</text><text x=\"{4:.1}\" y=\"{5:.0}\" text-anchor=\"middle\">{6}</text>\n",
                y(up),
                x(right),
                y(up) + 4.0,
                short(up),
                x(at),
                HEIGHT - 22.0,
                short(at),
            ));
        }
        self.put(format_args!(
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\n",
            x((left + right) / 2.0),
            HEIGHT - 5.0,
            escape(along)
        ));
        for (place, (name, points)) in lines.iter().enumerate() {
            let colour = COLOURS[place % COLOURS.len()];
            let path: Vec<String> = points
                .iter()
                .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
                .collect();
            self.put(format_args!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\">{}</text>\n",
                path.join(" "),
                x(right) + 12.0,
                20.0 + 15.0 * place as f64,
                escape(name)
            ));
        }
        self.end_figure();
    }

    fn begin_figure(&mut self, title: &str, height: f64) {
        let title = escape(title);
        self.put(format_args!(
            "<figure>\n<figcaption>{title}</figcaption>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
             role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\">\n"
        ));
    }

    fn end_figure(&mut self) {
        self.put(format_args!("</svg>\n</figure>\n"));
    }

    /// The whole page.
    pub fn finish(self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.title, self.body
        )
    }
}

/// Text as HTML has it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A number with as many digits as fit a picture.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2}M", v / 1e6),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v == v.trunc() => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails unless all tags are closed in order.
    fn well_formed(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('<') {
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            assert!(!tag.contains('<'), "raw < in {tag}");
            rest = &rest[end + 1..];
            if tag.starts_with('!') || tag.ends_with('/') {
                continue;
            }
            let name = tag.split_ascii_whitespace().next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "not closed: {open:?}");
    }

    fn page() -> String {
        let mut page = Page::new("a <b> & c");
        page.section("one");
        page.text("first\nsecond <x>");
        let rows = [vec!["a<b".into(), "pass".into(), "1.0".into()]];
        page.table(&["name", "status", "IOPS"], 2, &rows);
        page.bars("bars", &[("a".into(), 5.0), ("b\"".into(), 0.0)]);
        page.lines(
            "lines",
            "depth",
            &[("fair".into(), vec![(1.0, 2.0), (8.0, 1.0)])],
        );
        page.lines("none", "depth", &[]);
        page.finish()
    }

    #[test]
    fn a_page_is_well_formed_and_needs_nothing_else() {
        let page = page();
        well_formed(&page);
        assert!(page.contains("a &lt;b&gt; &amp; c") && page.contains("class=\"good\">pass<"));
        for outside in ["src=", "href=", "@import", "url(", "NaN", "inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn planted_fault_is_not_well_formed() {
        let broken = page().replace("</tbody>", "");
        assert!(std::panic::catch_unwind(|| well_formed(&broken)).is_err());
    }
}
