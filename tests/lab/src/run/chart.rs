// SPDX-License-Identifier: GPL-2.0

//! The pictures, as SVG text.

use super::result::{
    Repeat,
    Row,
    Wait, //
};
use plotters::{
    coord::{
        ranged1d::{
            AsRangedCoord,
            Ranged,
            ValueFormatter, //
        },
        types::RangedCoordf64,
        Shift, //
    },
    prelude::*,
    style::text_anchor::{
        HPos,
        Pos,
        VPos, //
    },
};

/// What went wrong while drawing.
type Problem = Box<dyn std::error::Error>;
/// A picture.
type Svg = Result<String, Problem>;
/// Where it is drawn.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Its coordinates: a value to the right, rows downwards.
type Chart<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>;

/// Colours of hardirq, softirq, task and idle.
pub(crate) const SHARES: [(&str, RGBColor); 4] = [
    ("hardirq", RGBColor(0xc0, 0x39, 0x2b)),
    ("softirq", RGBColor(0xe6, 0x9f, 0x00)),
    ("tasks and IRQ threads", RGBColor(0x2a, 0x78, 0xb5)),
    ("idle", RGBColor(0xe3, 0xe6, 0xea)),
];
/// Colour of the ordinary task's waits.
pub(crate) const WAITS: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Colours of series in bar charts.
pub(crate) const BARS: [RGBColor; 3] = [
    RGBColor(0x2a, 0x78, 0xb5),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0xc0, 0x39, 0x2b),
];
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const FAINT: RGBColor = RGBColor(0xcc, 0xcc, 0xcc);

/// Width of every picture.
const WIDTH: u32 = 860;
/// Least space left of the axes for the rows' names.
const LEFT: u32 = 150;
/// Most of it: a longer name is cut short.
const LEFT_MAX: u32 = 330;
/// Width of a character in a name.
const CHARACTER: u32 = 8;

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

fn draw(height: u32, with: impl FnOnce(&Area<'_>) -> Result<(), Problem>) -> Svg {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        with(&root)?;
        root.present()?;
    }
    Ok(svg)
}

/// The row's name in pictures: driver and policy.
pub(crate) fn label(row: &Row) -> String {
    let driver = match row.driver {
        super::workload::Driver::C => "C",
        super::workload::Driver::Rust => "Rust",
        super::workload::Driver::Edu => "edu",
    };
    format!("{driver} {}", row.policy)
}

/// What fits of a name beside a picture.
fn fitting(name: &str) -> String {
    let most = (LEFT_MAX / CHARACTER) as usize - 2;
    match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['\u{2026}']).collect(),
        false => name.to_owned(),
    }
}

/// Space left of the axes for these names.
pub(crate) fn left<'a>(names: impl IntoIterator<Item = &'a str>) -> u32 {
    let longest = names.into_iter().map(|name| name.chars().count()).max();
    // CAST: A name has a few dozen characters.
    let wanted = (longest.unwrap_or(0) as u32 + 2).saturating_mul(CHARACTER);
    wanted.clamp(LEFT, LEFT_MAX)
}

/// Where in a time line the teeth stand, in units of the height of the shares below them.
const TEETH: (f64, f64) = (1.1, 1.8);

/// CPU 0 along the load: what it did, and above it how long the ordinary task has been waiting.
/// `left` is the space for the row's name.
pub(crate) fn timeline(row: &Row, repeat: &Repeat, left: u32) -> Svg {
    draw(138, |root| {
        let end = row.load_ms as f64;
        let mut chart = ChartBuilder::on(root)
            .margin(4)
            .margin_right(16)
            .x_label_area_size(22)
            .y_label_area_size(left)
            .build_cartesian_2d(0.0..end, 0.0..TEETH.1)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(9)
            .x_label_formatter(&|ms| format!("{:.1} s", ms / 1000.0))
            .label_style(font(12))
            .axis_style(FAINT)
            .draw()?;
        for layer in (0..4).rev() {
            let colour = SHARES[layer].1;
            chart.draw_series(AreaSeries::new(
                steps(repeat, layer, end),
                0.0,
                colour.filled(),
            ))?;
        }
        let teeth = repeat.waits.iter().filter_map(|wait| tooth(wait, end));
        chart.draw_series(teeth.map(|corners| Polygon::new(corners, WAITS.filled())))?;
        for (text, y, size) in [
            (fitting(&label(row)), 0.62, 14),
            (row.status.text().to_owned(), 0.30, 12),
            ("task waits".to_owned(), 1.45, 11),
        ] {
            let (px, py) = chart.backend_coord(&(0.0, y));
            write(root, text, (px - 10, py), HPos::Right, size)?;
        }
        Ok(())
    })
}

/// A wait as a ramp: at each moment as high as the task has been waiting for; the height of the
/// band is the length of the load.
fn tooth(wait: &Wait, end: f64) -> Option<[(f64, f64); 4]> {
    let (low, high) = TEETH;
    let height = |ms: f64| low + (high - low) * (ms - wait.ms).clamp(0.0, end) / end;
    let from = wait.ms.clamp(0.0, end);
    let to = (wait.ms + wait.len_ms).clamp(0.0, end);
    let corners = [
        (from, low),
        (from, height(from)),
        (to, height(to)),
        (to, low), //
    ];
    (to > from).then_some(corners)
}

/// The upper edge of a layer of the stack: steps, not slopes, since shares belong to stretches.
fn steps(repeat: &Repeat, layer: usize, end: f64) -> Vec<(f64, f64)> {
    let mut from = 0.0;
    let mut line = Vec::new();
    for point in &repeat.timeline {
        let s = &point.shares;
        let top: f64 = [s.hardirq, s.softirq, s.task, s.idle][..=layer]
            .iter()
            .sum();
        let to = point.ms.min(end);
        line.extend([(from, top), (to, top)]);
        from = to;
    }
    line
}

/// One group of bars a row.
pub(crate) struct Bars<'a> {
    /// What the axis shows, with its unit.
    pub(crate) axis: &'a str,
    /// Digits of the numbers at the bars.
    pub(crate) digits: usize,
    /// A logarithmic axis.
    pub(crate) log: bool,
    /// The rows: name, and one value a series.
    pub(crate) rows: Vec<(String, Vec<Option<f64>>)>,
    /// Dashed lines: value and what it means.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Bars<'_> {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let bars = self.rows.iter().flat_map(|(_, v)| v.iter().flatten());
        bars.chain(self.marks.iter().map(|(v, _)| v))
            .copied()
            .filter(|v| v.is_finite() && *v > 0.0)
    }

    fn range(&self) -> (f64, f64) {
        let max = self.values().fold(0.0, f64::max).max(1e-3);
        let min = self.values().fold(f64::INFINITY, f64::min).min(max);
        match self.log {
            // Whole decades, with room for the number at the longest bar.
            true => (
                10f64.powf((min * 0.7).log10().floor()),
                10f64.powf((max * 3.0).log10().ceil()),
            ),
            false => (0.0, max * 1.15),
        }
    }

    /// Space for the marks' texts above the first row, in rows.
    fn headroom(&self) -> f64 {
        match self.marks.is_empty() {
            true => 0.0,
            false => 0.6,
        }
    }

    /// The picture.
    pub(crate) fn draw(&self) -> Svg {
        let series = self.rows.iter().map(|(_, v)| v.len()).max().unwrap_or(1);
        let room = self.rows.len() as f64 + self.headroom();
        let height = 60 + (room * (series * 15 + 12) as f64) as u32;
        let (min, max) = self.range();
        draw(height, |root| match self.log {
            true => self.on(root, (min..max).log_scale(), min),
            false => self.on(root, min..max, min),
        })
    }

    fn on<X>(&self, root: &Area<'_>, x: X, min: f64) -> Result<(), Problem>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let count = self.rows.len() as f64;
        let mut chart = ChartBuilder::on(root)
            .margin(6)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(left(self.rows.iter().map(|(name, _)| name.as_str())))
            .build_cartesian_2d(x, count..-self.headroom())?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(8)
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .x_label_formatter(&|v| compact(*v))
            .x_desc(self.axis)
            .axis_desc_style(font(13))
            .label_style(font(12))
            .axis_style(FAINT)
            .draw()?;
        for row in 0..self.rows.len() {
            self.row(root, &mut chart, row, min)?;
        }
        self.lines(root, &mut chart)
    }

    /// One row: its name and its bars, each with its number.
    fn row<X: Ranged<ValueType = f64>>(
        &self,
        root: &Area<'_>,
        chart: &mut Chart<'_, '_, X>,
        row: usize,
        min: f64,
    ) -> Result<(), Problem> {
        let (name, values) = &self.rows[row];
        let step = 0.8 / values.len().max(1) as f64;
        for (k, value) in values.iter().enumerate() {
            let top = row as f64 + 0.1 + k as f64 * step;
            let shown = value.unwrap_or(min).max(min);
            let bar = [(min, top), (shown, top + step * 0.9)];
            chart.draw_series([Rectangle::new(bar, BARS[k % 3].filled())])?;
            let (px, py) = chart.backend_coord(&(shown, top + step * 0.45));
            let text = super::table::number(*value, self.digits);
            write(root, text, (px + 4, py), HPos::Left, 11)?;
        }
        let (px, py) = chart.backend_coord(&(min, row as f64 + 0.5));
        write(root, fitting(name), (px - 10, py), HPos::Right, 14)
    }

    /// The dashed lines.
    fn lines<X: Ranged<ValueType = f64>>(
        &self,
        root: &Area<'_>,
        chart: &mut Chart<'_, '_, X>,
    ) -> Result<(), Problem> {
        for (value, text) in &self.marks {
            let ends = [
                (*value, -self.headroom()),
                (*value, self.rows.len() as f64), //
            ];
            let line = DashedLineSeries::new(ends, 5, 4, WAITS.stroke_width(1));
            chart.draw_series(line)?;
            let (px, py) = chart.backend_coord(&(*value, -self.headroom() / 2.0));
            write(root, text.clone(), (px - 4, py), HPos::Right, 11)?;
        }
        Ok(())
    }
}

/// Text beside a point, on its height.
fn write(
    root: &Area<'_>,
    text: String,
    at: (i32, i32),
    side: HPos,
    size: i32,
) -> Result<(), Problem> {
    let style = font(size).pos(Pos::new(side, VPos::Center));
    Ok(root.draw(&Text::new(text, at, style))?)
}

/// 1500000 as 1.5M.
fn compact(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{page::tests::well_formed, result::Point, verdict::tests::good};
    use guest_agent::report::Shares;

    fn repeat() -> Repeat {
        let shares = Shares {
            hardirq: 0.5,
            softirq: 0.25,
            task: 0.25,
            idle: 0.0,
        };
        let timeline = (1..=4)
            .map(|i| Point {
                ms: f64::from(i) * 1000.0,
                shares,
            })
            .collect();
        Repeat {
            timeline,
            waits: vec![Wait {
                ms: 10.0,
                len_ms: 9000.0,
            }],
            ..Repeat::default()
        }
    }

    #[test]
    fn layers_are_stacked_in_steps() {
        let line = steps(&repeat(), 1, 4000.0);
        assert_eq!(line[..2], [(0.0, 0.75), (1000.0, 0.75)]);
        assert_eq!(line.len(), 8);
        assert_eq!(steps(&repeat(), 3, 4000.0)[7], (4000.0, 1.0));
    }

    #[test]
    fn a_wait_is_a_ramp_inside_the_picture() {
        let wait = |ms, len_ms| Wait { ms, len_ms };
        let (low, high) = TEETH;
        let whole = tooth(&wait(0.0, 4000.0), 4000.0).unwrap();
        assert_eq!(
            whole,
            [(0.0, low), (0.0, low), (4000.0, high), (4000.0, low)]
        );
        let half = tooth(&wait(1000.0, 2000.0), 4000.0).unwrap();
        assert!((half[2].1 - (low + high) / 2.0).abs() < 1e-9);
        // One that began before the load is already high when the picture begins.
        let early = tooth(&wait(-1000.0, 2000.0), 4000.0).unwrap();
        assert!(early[0].0 == 0.0 && early[1].1 > low && early[2].0 == 1000.0);
        assert_eq!(tooth(&wait(4000.0, 50.0), 4000.0), None);
    }

    #[test]
    fn a_time_line_is_drawn() {
        let rows = good();
        let row = rows.iter().find(|r| r.name() == "storm c hardirq").unwrap();
        let svg = timeline(row, &repeat(), LEFT).unwrap();
        assert!(svg.contains("C hardirq") && svg.contains("soft lockup"));
        well_formed(&svg);
        // Without data it is an empty frame, not a failure.
        timeline(row, &Repeat::default(), LEFT).unwrap();
    }

    #[test]
    fn bars_are_drawn_with_and_without_values() {
        for log in [true, false] {
            let bars = Bars {
                axis: "latency, us",
                digits: 1,
                log,
                rows: vec![
                    ("a".into(), vec![Some(5.0), Some(4321.0), None]),
                    ("b <&>".into(), vec![Some(0.0)]),
                ],
                marks: vec![(500.0, "limit".into())],
            };
            let svg = bars.draw().unwrap();
            assert!(svg.contains("4,321.0") && svg.contains("limit") && svg.contains("latency"));
            well_formed(&svg);
        }
        let empty = Bars {
            axis: "x",
            digits: 0,
            log: true,
            rows: vec![],
            marks: vec![],
        };
        well_formed(&empty.draw().unwrap());
    }

    #[test]
    fn long_names_get_room_and_end_somewhere() {
        assert_eq!(left(["Rust resched"]), LEFT);
        let long = "Rust timer:delay_us=30,push=1";
        assert_eq!(left(["a", long]), 31 * CHARACTER);
        assert_eq!(fitting(long), long);
        let endless = "x".repeat(500);
        assert_eq!(left([endless.as_str()]), LEFT_MAX);
        assert!(fitting(&endless).ends_with('\u{2026}'));
        assert_eq!(
            left([fitting(&endless).as_str()]),
            LEFT_MAX / CHARACTER * CHARACTER
        );
    }

    #[test]
    fn logarithmic_axes_cover_whole_decades() {
        let bars = |value| Bars {
            axis: "x",
            digits: 0,
            log: true,
            rows: vec![("a".into(), vec![Some(value)])],
            marks: vec![],
        };
        let (min, max) = bars(4000.0).range();
        assert!((min - 1e3).abs() < 1.0 && (max - 1e5).abs() < 1.0);
    }

    #[test]
    fn numbers_at_axes_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (100.0, "100"),
            (10_000.0, "10k"),
            (1_500_000.0, "1.5M"),
        ] {
            assert_eq!(compact(value), text);
        }
    }
}
