//! The page of a run: plots and all figures, nothing loaded from elsewhere.

use anyhow::Result;
use ferroce_sim::fabric::MS;
use ferroce_sim::fabric::lab::Results;

use super::figures::bottleneck;
use super::plan::Plan;
use crate::plots::{Line, Page, draw};
use crate::report::Report;

/// Pixels of a plot.
const SIZE: (u32, u32) = (900, 360);
/// Flows that are drawn.
const FLOWS: usize = 16;

/// The page.
///
/// # Errors
/// A plot that cannot be drawn.
pub(super) fn page(plan: &Plan, results: &Results, report: &Report) -> Result<String> {
    let mut page = Page::new("Ferroce fabric", &report.command, ". Simulated.");
    let plots = [
        ("Queue of the bottleneck", "kB", depth(plan, results)),
        ("Sent by flow", "Gb/s", rates(plan, results)),
        ("CNPs by flow", "1/ms", cnps(plan, results)),
    ];
    for (title, unit, lines) in plots {
        let points = || lines.iter().flat_map(|line| &line.points);
        let right = points().fold(1e-3, |most: f64, point| most.max(point.0));
        let top = points().fold(1e-3, |most: f64, point| most.max(point.1)) * 1.05;
        page.plot(title, SIZE, |area| {
            draw(area, ["ms", unit], (0.0..right, top), 0, &lines)
        })?;
    }
    Ok(page.finish(&report.figures))
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
