//! Pages of a run: plots inside, all figures, nothing loaded from elsewhere.

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::report::{Figure, Value};

/// Where a plot is drawn.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line of a plot.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) fn wrong(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("a plot cannot be drawn: {error}")
}

/// A page of plots and figures, as it grows.
pub(crate) struct Page(String);

impl Page {
    /// `intro` follows the command line that repeats the run.
    pub(crate) fn new(title: &str, command: &[String], intro: &str) -> Self {
        let command = command.join(" ").replace('&', "&amp;").replace('<', "&lt;");
        Self(format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <style>body{{font-family:sans-serif;margin:2em}}td{{padding:0 1em 0 0}}td.n{{text-align:right}}\
             figure{{display:inline-block;margin:0 1em 1em 0}}</style></head><body>\n<h1>{title}</h1>\n\
             <p><code>{command}</code>{intro} Nothing here was measured on hardware.</p>\n"
        ))
    }

    /// Adds a plot of `size` pixels.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub(crate) fn plot(
        &mut self,
        title: &str,
        size: (u32, u32),
        plot: impl FnOnce(&Area) -> Result<()>,
    ) -> Result<()> {
        let svg = svg(size, plot)?;
        let text = &mut self.0;
        writeln!(
            text,
            "<figure><figcaption>{title}</figcaption>\n{svg}</figure>"
        )?;
        Ok(())
    }

    /// The page with its table of figures.
    pub(crate) fn finish(self, figures: &[Figure]) -> String {
        let mut text = self.0 + "<h2>All figures</h2>\n<table>\n";
        for figure in figures {
            let value = match figure.value {
                Value::Count(count) => count.to_string(),
                Value::Measure(measure) => format!("{measure:.3}"),
            };
            let (name, unit) = (&figure.name, &figure.unit);
            text +=
                &format!("<tr><td>{name}</td><td class=\"n\">{value}</td><td>{unit}</td></tr>\n");
        }
        text + "</table>\n</body></html>\n"
    }
}

/// A plot of `size` pixels.
///
/// # Errors
/// It cannot be drawn.
pub(crate) fn svg(size: (u32, u32), plot: impl FnOnce(&Area) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(wrong)?;
        plot(&area)?;
        area.present().map_err(wrong)?;
    }
    Ok(svg)
}

/// Draws lines over x from 0 to `top`; a point is a dot of `dot` pixels.
///
/// # Errors
/// They cannot be drawn.
pub(crate) fn draw<X>(
    area: &Area,
    [x_name, y_name]: [&str; 2],
    (x, top): (X, f64),
    dot: u32,
    lines: &[Line],
) -> Result<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let y: Range<f64> = 0.0..top;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(x, y)
        .map_err(wrong)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(x_name).y_desc(y_name);
    mesh.draw().map_err(wrong)?;
    for (index, line) in lines.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let series = LineSeries::new(line.points.iter().copied(), colour).point_size(dot);
        let drawn = chart.draw_series(series).map_err(wrong)?;
        drawn
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
    }
    let mut legend = chart.configure_series_labels();
    legend.border_style(BLACK).background_style(WHITE.mix(0.8));
    legend.draw().map_err(wrong)
}
