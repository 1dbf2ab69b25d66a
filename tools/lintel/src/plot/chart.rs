//! A sheet of line charts as SVG, side by side: title, axes with units, lines, and a
//! legend below.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
pub use super::axis::Scale;
use crate::error::{Error, Result};

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A line with a mark at each point.
    Plain,
    /// A thin line without marks, for hundreds of points.
    Fine,
    /// As plain, of a colour and a dash by number: for lines that belong together, or
    /// lie upon each other.
    Styled {
        /// The index of the colour in the palette.
        colour: usize,
        /// 0 for a line without gaps.
        dash: usize,
    },
    /// Dashed and grey, distinguished by number.
    Limit(usize),
    /// Rings of a colour, by number: points that others have published.
    Points(usize),
    /// Dark rings, for points that belong to no line.
    Ink,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    label: String,
    stroke: Stroke,
    points: Vec<(f64, f64)>,
}

impl Series {
    /// Through `points`, by their x.
    pub fn new(label: &str, stroke: Stroke, mut points: Vec<(f64, f64)>) -> Self {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            label: label.into(),
            stroke,
            points,
        }
    }
}

/// A chart before it is drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    subtitle: String,
    x: (String, Scale),
    y: (String, Scale),
    series: Vec<Series>,
}

impl Figure {
    /// An empty figure with title and axes.
    pub fn new(title: &str, x: (&str, Scale), y: (&str, Scale)) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            x: (x.0.into(), x.1),
            y: (y.0.into(), y.1),
            series: Vec::new(),
        }
    }

    /// An empty figure over message size in bytes.
    pub fn over_size(title: &str, y: &str, scale: Scale) -> Self {
        Self::new(title, ("message size (bytes)", Scale::Sizes), (y, scale))
    }

    /// Adds a line, if it has points.
    pub fn add(&mut self, series: Series) {
        if !series.points.is_empty() {
            self.series.push(series);
        }
    }

    /// With a line of small print under its title.
    pub fn below(mut self, subtitle: &str) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Whether there is anything measured to draw.
    pub fn has_points(&self) -> bool {
        let measured =
            |s: &Series| !matches!(s.stroke, Stroke::Limit(_) | Stroke::Points(_) | Stroke::Ink);
        self.series.iter().any(measured)
    }

    /// The least and the greatest x.
    pub fn span(&self) -> Option<(f64, f64)> {
        let xs = self
            .series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.0));
        xs.fold(None, |span, x| match span {
            None => Some((x, x)),
            Some((low, high)) => Some((f64::min(low, x), f64::max(high, x))),
        })
    }
}

/// Draws `figures` side by side.
///
/// # Errors
/// What the drawing library refused.
pub fn draw(figures: &[Figure]) -> Result<String> {
    let most = figures.iter().map(|figure| figure.series.len()).max();
    let legend = LEGEND_ROW * most.unwrap_or(0).div_ceil(2) as u32 + LEGEND_ROW;
    let size = (WIDTH * figures.len() as u32, HEIGHT + legend);
    let mut svg = String::new();
    draw_sheet(&mut svg, size, figures)
        .map_err(|error| Error::Wrong(format!("drawing: {error}")))?;
    let extent = |(width, height)| format!("width=\"{width}\" height=\"{height}\"");
    let shown = (size.0 / FINE, size.1 / FINE);
    Ok(svg.replacen(&extent(size), &extent(shown), 1))
}

fn draw_sheet(svg: &mut String, size: (u32, u32), figures: &[Figure]) -> Drawn {
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, figure) in root.split_evenly((1, figures.len())).iter().zip(figures) {
        let (top, rest) = area.split_vertically(TITLE);
        let (plot, below) = rest.split_vertically(HEIGHT - TITLE);
        draw_title(&top, figure)?;
        draw_plot(&plot, figure)?;
        draw_legend(&below, figure)?;
    }
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;
type Plot<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

fn draw_title(area: &Area<'_>, figure: &Figure) -> Drawn {
    let title = font(24).style(FontStyle::Bold).color(&INK);
    let small = font(15).color(&QUIET);
    area.draw_text(&figure.title, &title, (LEFT, px(14) as i32))?;
    area.draw_text(&figure.subtitle, &small, (LEFT, px(46) as i32))?;
    Ok(())
}

fn draw_plot(area: &Area<'_>, figure: &Figure) -> Drawn {
    let points = || figure.series.iter().flat_map(|s| s.points.iter());
    let x = Axis::new(figure.x.1, points().map(|p| p.0));
    let y = Axis::new(figure.y.1, points().map(|p| p.1));
    let mut chart = ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(px(28))
        .margin_top(px(4))
        .x_label_area_size(px(58))
        .y_label_area_size(LEFT - MARGIN)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(px(1)))
        .axis_style(QUIET.stroke_width(px(1)))
        .set_all_tick_mark_size(px(5))
        .x_labels(x.ticks.len())
        .y_labels(y.ticks.len())
        .x_desc(figure.x.0.as_str())
        .y_desc(figure.y.0.as_str())
        .label_style(font(16).color(&INK))
        .axis_desc_style(font(17).color(&INK))
        .draw()?;
    // What has gaps goes over what has none, and rings over all.
    let mut looks = looks(figure);
    looks.sort_by_key(|(look, _)| (look.marks == Marks::Rings, look.dash.is_some()));
    for (look, series) in looks {
        let points: Vec<_> = series
            .points
            .iter()
            .map(|&(px, py)| (x.place(px), y.place(py)))
            .collect();
        draw_series(&mut chart, look, points)?;
    }
    Ok(())
}

fn draw_series(chart: &mut Plot<'_, '_>, look: Look, points: Vec<(f64, f64)>) -> Drawn {
    match look.dash {
        Some((dash, gap)) => {
            let line = DashedLineSeries::new(points.clone(), px(dash), px(gap), look.line);
            chart.draw_series(line)?;
        }
        None if look.line.stroke_width > 0 => {
            chart.draw_series(LineSeries::new(points.clone(), look.line))?;
        }
        None => {}
    }
    let (radius, style) = match look.marks {
        Marks::None => return Ok(()),
        Marks::Dots => (DOT, look.line.color.filled()),
        Marks::Rings => (RING, look.line.stroke_width(px(2))),
    };
    let mark = |point| Circle::new(point, radius, style);
    chart.draw_series(points.into_iter().map(mark))?;
    Ok(())
}

fn draw_legend(area: &Area<'_>, figure: &Figure) -> Drawn {
    let middle = Pos::new(HPos::Left, VPos::Center);
    let text = font(16).color(&INK).pos(middle);
    let rows = figure.series.len().div_ceil(2);
    for (i, (look, series)) in looks(figure).into_iter().enumerate() {
        let x = LEFT + (i / rows) as i32 * (WIDTH as i32 - LEFT) / 2;
        let y = LEGEND_ROW as i32 + (i % rows) as i32 * LEGEND_ROW as i32;
        let (sample, unit) = (px(40) as i32, px(1) as i32);
        match look.dash {
            Some((dash, gap)) => {
                for from in (x..x + sample).step_by(px(dash + gap) as usize) {
                    let dash = [(from, y), ((from + dash as i32 * unit).min(x + sample), y)];
                    area.draw(&PathElement::new(dash, look.line))?;
                }
            }
            None if look.line.stroke_width > 0 => {
                area.draw(&PathElement::new([(x, y), (x + sample, y)], look.line))?;
            }
            None => {}
        }
        let centre = (x + sample / 2, y);
        match look.marks {
            Marks::None => {}
            Marks::Dots => area.draw(&Circle::new(centre, DOT, look.line.color.filled()))?,
            Marks::Rings => area.draw(&Circle::new(centre, RING, look.line.stroke_width(px(2))))?,
        }
        area.draw_text(&series.label, &text, (x + 50 * unit, y))?;
    }
    Ok(())
}

/// What a line looks like in the plot and in the legend.
#[derive(Clone, Copy)]
struct Look {
    line: ShapeStyle,
    dash: Option<(u32, u32)>,
    marks: Marks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Dots,
    /// Rings at the points, without a line.
    Rings,
}

fn looks(figure: &Figure) -> Vec<(Look, &Series)> {
    let mut colours = COLOURS.iter().cycle();
    let mut look = |series: &Series| match series.stroke {
        Stroke::Limit(number) => Look {
            line: QUIET.stroke_width(px(2)),
            dash: Some(DASHES[number % DASHES.len()]),
            marks: Marks::None,
        },
        Stroke::Points(colour) => ring(COLOURS[colour % COLOURS.len()]),
        Stroke::Ink => ring(INK),
        Stroke::Styled { colour, dash } => Look {
            line: COLOURS[colour % COLOURS.len()].stroke_width(px(3)),
            dash: dash.checked_sub(1).map(|dash| DASHES[dash % DASHES.len()]),
            marks: match series.points.len() <= MOST_MARKS {
                true => Marks::Dots,
                false => Marks::None,
            },
        },
        stroke => Look {
            line: colours
                .next()
                .expect("an endless cycle")
                .stroke_width(px(if stroke == Stroke::Fine { 2 } else { 3 })),
            dash: None,
            marks: match stroke {
                Stroke::Plain => Marks::Dots,
                _ => Marks::None,
            },
        },
    };
    figure.series.iter().map(|s| (look(s), s)).collect()
}

fn ring(colour: RGBColor) -> Look {
    Look {
        line: colour.stroke_width(0),
        dash: None,
        marks: Marks::Rings,
    }
}

fn font(size: u32) -> FontDesc<'static> {
    ("sans-serif", px(size)).into_font()
}

/// Units of the drawing in a pixel: coordinates are whole numbers, and dashes along a slope would
/// wave if they were pixels.
const FINE: u32 = 10;

/// Pixels as units of the drawing.
const fn px(pixels: u32) -> u32 {
    pixels * FINE
}

const WIDTH: u32 = px(960);
/// Of title and plot, without the legend.
const HEIGHT: u32 = px(620);
const TITLE: u32 = px(76);
/// Where the plot begins, and all text above and below it.
const LEFT: i32 = px(96) as i32;
const MARGIN: i32 = px(14) as i32;
const LEGEND_ROW: u32 = px(26);

const INK: RGBColor = RGBColor(34, 34, 34);
const QUIET: RGBColor = RGBColor(105, 105, 105);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// Okabe and Ito's colours, which colour-blind readers can distinguish, the yellow one
/// replaced by a brown that shows on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(140, 86, 75),
];

/// Points that still stand apart.
const MOST_MARKS: usize = 40;

/// The radius of a ring.
const RING: i32 = px(8) as i32;
/// The radius of a dot.
const DOT: i32 = px(4) as i32;

/// Lengths of dashes and gaps, in pixels.
const DASHES: [(u32, u32); 3] = [(9, 5), (3, 4), (18, 5)];

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(title: &str) -> Figure {
        let mut figure = Figure::over_size(title, "time (µs)", Scale::Linear);
        for (dash, label) in ["RC", "XRC"].into_iter().enumerate() {
            let stroke = Stroke::Styled { colour: dash, dash };
            figure.add(Series::new(label, stroke, vec![(8.0, 2.0), (64.0, 3.0)]));
        }
        figure
    }

    #[test]
    fn figures_stand_side_by_side_each_with_its_title_and_legend() {
        let svg = draw(&[figure("first"), figure("second")]).expect("draws");
        let width = format!("width=\"{}\"", 2 * WIDTH / FINE);
        assert!(svg.contains(&width) && svg.contains(&format!("viewBox=\"0 0 {} ", 2 * WIDTH)));
        for text in ["first", "second", "RC", "XRC", "64 B"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}");
        }
    }
}
