//! The page of a run: plots and all figures, nothing loaded from elsewhere.

use std::path::Path;

use anyhow::{Context, Result};
use ferroce_sim::fabric::MS;
use ferroce_sim::fabric::lab::Results;

use super::figures::bottleneck;
use super::plan::Plan;
use crate::Usage;
use crate::plots::{Area, Line, Page, draw};
use crate::report::Report;

/// Pixels of a plot.
const SIZE: (u32, u32) = (900, 360);
/// Flows that are drawn.
const FLOWS: usize = 16;

/// The page.
///
/// # Errors
/// A plot that cannot be drawn.
pub(super) fn page(
    plan: &Plan,
    results: &Results,
    queue: Vec<Line>,
    report: &Report,
) -> Result<String> {
    let mut page = Page::new("Ferroce fabric", &report.command, ". Simulated.");
    let plots = [
        ("Queue of the bottleneck", "kB", queue),
        ("Sent by flow", "Gb/s", rates(plan, results)),
        ("CNPs by flow", "1/ms", cnps(plan, results)),
    ];
    for (title, unit, lines) in plots {
        page.plot(title, SIZE, |area| over_time(area, unit, &lines))?;
    }
    Ok(page.finish(&report.figures))
}

/// The plot of the queue alone.
///
/// # Errors
/// It cannot be drawn.
pub(super) fn svg(queue: &[Line]) -> Result<String> {
    crate::plots::svg(SIZE, |area| over_time(area, "kB", queue))
}

fn over_time(area: &Area, unit: &str, lines: &[Line]) -> Result<()> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let right = points().fold(1e-3, |most: f64, point| most.max(point.0));
    let top = points().fold(1e-3, |most: f64, point| most.max(point.1)) * 1.05;
    draw(area, ["ms", unit], (0.0..right, top), 0, lines)
}

/// The mean queue of a recorded run.
///
/// # Errors
/// [`Usage`]: no such file, or no such table.
pub(super) fn recorded(file: &Path) -> Result<Line> {
    let wrong = |what: &str| {
        Usage(format!(
            "{}: {what}; a table with columns t_us and q0_mean_B is expected",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error.to_string()))?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut lines = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let column = |name| names.iter().position(|&known| known == name);
    let columns = column("t_us").zip(column("q0_mean_B"));
    let (time, queue) = columns.ok_or_else(|| wrong("no such column"))?;
    let number =
        |row: &[&str], at: usize| row.get(at)?.parse::<f64>().ok().filter(|x| x.is_finite());
    let points = lines.map(|row| Some((number(&row, time)? / 1e3, number(&row, queue)? / 1e3)));
    let points = points.collect::<Option<Vec<_>>>();
    Ok(Line {
        name: file.file_stem().context("a name")?.to_string_lossy().into(),
        points: points.ok_or_else(|| wrong("a row without numbers"))?,
    })
}

/// The queue of the bottleneck, and that of a recorded run.
pub(super) fn queue(plan: &Plan, results: &Results, beside: Option<Line>) -> Vec<Line> {
    let mut lines = depth(plan, results);
    lines.extend(beside);
    lines
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
