//! The page of a run: plots and all figures, nothing loaded from elsewhere.

use std::fmt::Write;

use anyhow::{Result, anyhow};
use ferroce_sim::fabric::MS;
use ferroce_sim::fabric::lab::Results;
use plotters::prelude::*;

use super::figures::bottleneck;
use super::plan::Plan;
use crate::report::{Figure, Value};

/// Pixels of a plot.
const SIZE: (u32, u32) = (900, 360);
/// Flows that are drawn.
const FLOWS: usize = 16;

/// A line of a plot.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The page.
///
/// # Errors
/// A plot that cannot be drawn.
pub(super) fn page(plan: &Plan, results: &Results, figures: &[Figure]) -> Result<String> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let mut text = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ferroce fabric</title>\n\
         <style>body{font-family:sans-serif;margin:2em}td{padding:0 1em 0 0}td.n{text-align:right}\
         figure{margin:0 0 1em 0}</style></head><body>\n<h1>Ferroce fabric</h1>\n",
    );
    writeln!(
        text,
        "<p><code>cargo xtask {}</code></p><p>Simulated; nothing here was measured on hardware.</p>",
        words.join(" ").replace('&', "&amp;").replace('<', "&lt;")
    )?;
    let plots = [
        ("Queue of the bottleneck", "kB", depth(plan, results)),
        ("Sent by flow", "Gb/s", rates(plan, results)),
        ("CNPs by flow", "1/ms", cnps(plan, results)),
    ];
    for (title, unit, lines) in plots {
        let svg = draw(unit, &lines)?;
        writeln!(
            text,
            "<figure><figcaption>{title}</figcaption>\n{svg}</figure>"
        )?;
    }
    text += "<table>\n";
    for figure in figures {
        let value = match figure.value {
            Value::Count(count) => count.to_string(),
            Value::Measure(measure) => format!("{measure:.3}"),
        };
        let (name, unit) = (&figure.name, &figure.unit);
        writeln!(
            text,
            "<tr><td>{name}</td><td class=\"n\">{value}</td><td>{unit}</td></tr>"
        )?;
    }
    text += "</table>\n</body></html>\n";
    Ok(text)
}

fn depth(plan: &Plan, results: &Results) -> Vec<Line> {
    let Some((_, _, trace)) = bottleneck(results) else {
        return Vec::new();
    };
    let step = plan.setup.switch.window.interval as f64 / MS as f64;
    let intervals = trace.intervals();
    let line = |name: &str, of: fn(&(f64, u64)) -> f64| Line {
        name: name.into(),
        points: (0..)
            .zip(&intervals)
            .map(|(at, depth)| (f64::from(at) * step, of(depth) / 1e3))
            .collect(),
    };
    vec![
        line("mean", |depth| depth.0),
        line("greatest", |depth| depth.1 as f64),
    ]
}

fn rates(plan: &Plan, results: &Results) -> Vec<Line> {
    by_flow(plan, results, |tick, ps| tick.bytes as f64 * 8000.0 / ps)
}

fn cnps(plan: &Plan, results: &Results) -> Vec<Line> {
    by_flow(plan, results, |tick, ps| {
        f64::from(tick.cnps) * MS as f64 / ps
    })
}

fn by_flow(
    plan: &Plan,
    results: &Results,
    of: fn(ferroce_sim::fabric::flow::Tick, f64) -> f64,
) -> Vec<Line> {
    let ids = 0..plan.flows.len().min(FLOWS);
    let lines = ids.map(|id| {
        let series = &results.sent(id).series;
        let interval = series.interval();
        let places = 0..(results.now / interval) as usize;
        let points = places.map(|place| {
            let time = place as f64 * interval as f64 / MS as f64;
            (time, of(series.get(place), interval as f64))
        });
        Line {
            name: format!("flow {id}"),
            points: points.collect(),
        }
    });
    lines.collect()
}

fn draw(unit: &str, lines: &[Line]) -> Result<String> {
    let wrong = |error: &dyn std::fmt::Display| anyhow!("a plot cannot be drawn: {error}");
    let points = || lines.iter().flat_map(|line| &line.points);
    let right = points().fold(1e-3, |most: f64, point| most.max(point.0));
    let top = points().fold(1e-3, |most: f64, point| most.max(point.1)) * 1.05;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(|e| wrong(&e))?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..right, 0.0..top)
            .map_err(|e| wrong(&e))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("ms").y_desc(unit);
        mesh.draw().map_err(|e| wrong(&e))?;
        for (index, line) in lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let series = LineSeries::new(line.points.iter().copied(), colour);
            let drawn = chart.draw_series(series).map_err(|e| wrong(&e))?;
            drawn
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
        }
        let mut legend = chart.configure_series_labels();
        legend.border_style(BLACK).background_style(WHITE.mix(0.8));
        legend.draw().map_err(|e| wrong(&e))?;
        area.present().map_err(|e| wrong(&e))?;
    }
    Ok(svg)
}
