//! The report as a page: `--html FILE.html`, with plots inside and nothing loaded from elsewhere.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor;

use super::scenario::{STAGES, go_back_n};
use super::scenarios::{LONG, LOSSES, OPS, QPS, SIZES};
use crate::plots::{Area, Line, Page, draw, wrong};
use crate::report::Report;

/// Pixels of a plot, and of one with many rows.
const SIZE: (u32, u32) = (720, 360);
const TALL: (u32, u32) = (720, 720);
/// What the wire carries, bytes a cycle at 512 bits.
const BEAT: f64 = 64.0;

/// Pixels of a dot.
const DOT: u32 = 3;

/// The page of a report.
///
/// # Errors
/// A plot that cannot be drawn.
pub(super) fn page(report: &Report) -> Result<String> {
    let intro = format!(
        ", seed {}. Cycles of the core clock in simulation, bytes of payload.",
        report.seed
    );
    let mut page = Page::new("Ferroce bench", &report.command, &intro);
    let plots: [(&str, Plot, _); 5] = [
        (
            "Goodput by size of the message, one queue pair",
            by_size,
            SIZE,
        ),
        ("Messages by queue pairs, WRITE", by_queue_pairs, SIZE),
        ("Goodput by loss, WRITE, MTU 1024", by_loss, SIZE),
        (
            "Latency of a WRITE of 64 bytes, memory of no latency",
            by_stage,
            SIZE,
        ),
        ("The same block by block", by_block, TALL),
    ];
    for (title, plot, size) in plots {
        page.plot(title, size, |area| plot(report, area))?;
    }
    Ok(page.finish(&report.figures))
}

type Plot = fn(&Report, &Area) -> Result<()>;

/// The figure of a name, if the run had it.
fn figure(report: &Report, name: &str) -> Option<f64> {
    let found = report.figures.iter().find(|figure| figure.name == name)?;
    Some(found.value.as_f64())
}

fn by_size(report: &Report, area: &Area) -> Result<()> {
    let lines = OPS.map(|(op, _)| Line {
        name: op.to_uppercase(),
        points: points(SIZES, |size| {
            let name = format!("{op}_{size}_goodput_bytes_per_cycle");
            Some((f64::from(size), figure(report, &name)?))
        }),
    });
    let sizes = f64::from(SIZES[0])..f64::from(SIZES[SIZES.len() - 1]);
    draw(
        area,
        ["bytes", "payload bytes a cycle"],
        (sizes.log_scale(), BEAT),
        DOT,
        &lines,
    )
}

fn by_queue_pairs(report: &Report, area: &Area) -> Result<()> {
    let messages_per_kilocycle = |name: &str, of: fn(f64) -> f64| {
        points(QPS, |qps| {
            let name = name.replace("QPS", &qps.to_string());
            Some((f64::from(qps), of(figure(report, &name)?)))
        })
    };
    let lines = [
        Line {
            name: "64 bytes".into(),
            points: messages_per_kilocycle("write_64_qps_QPS_cycles_per_message", |c| 1000.0 / c),
        },
        Line {
            name: "4096 bytes".into(),
            points: messages_per_kilocycle("write_4096_qps_QPS_goodput_bytes_per_cycle", |g| {
                1000.0 * g / 4096.0
            }),
        },
    ];
    let qps = f64::from(QPS[0])..f64::from(QPS[QPS.len() - 1]);
    let names = ["queue pairs", "messages in 1000 cycles"];
    draw(area, names, (qps.log_scale(), 1000.0 / 2.0), DOT, &lines)
}

fn by_loss(report: &Report, area: &Area) -> Result<()> {
    let without = figure(
        report,
        &format!("write_{LONG}_mtu_1024_goodput_bytes_per_cycle"),
    );
    let found = points(LOSSES, |(percent, loss)| {
        let name = format!("write_{LONG}_mtu_1024_loss_{percent}_percent_goodput_bytes_per_cycle");
        Some((100.0 * loss, figure(report, &name)?))
    });
    let formula = points(LOSSES, |(_, loss)| {
        Some((100.0 * loss, without? * go_back_n(loss)))
    });
    let lines = [
        Line {
            name: "found".into(),
            points: found,
        },
        Line {
            name: "go-back-N".into(),
            points: formula,
        },
    ];
    let losses = 100.0 * LOSSES[0].1..100.0 * LOSSES[LOSSES.len() - 1].1;
    let names = ["% of the requests lost", "payload bytes a cycle"];
    draw(area, names, (losses.log_scale(), BEAT), DOT, &lines)
}

/// The stages of a message on its way, one behind the other.
fn by_stage(report: &Report, area: &Area) -> Result<()> {
    let stages = STAGES.iter().filter_map(|name| {
        let cycles = figure(report, &format!("{name}_cycles"))?;
        Some((name.replace('_', " "), cycles))
    });
    stack(&stages.collect::<Vec<_>>(), area)
}

/// The blocks that it passes.
fn by_block(report: &Report, area: &Area) -> Result<()> {
    let blocks = report.figures.iter().filter_map(|figure| {
        let name = figure.name.strip_prefix("block_")?;
        let name = name.strip_suffix("_cycles")?.replace('_', " ");
        Some((name, figure.value.as_f64()))
    });
    stack(&blocks.collect::<Vec<_>>(), area)
}

/// Spans of cycles, each from the end of the one before.
fn stack(stages: &[(String, f64)], area: &Area) -> Result<()> {
    let total: f64 = stages.iter().map(|(_, cycles)| cycles).sum();
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .build_cartesian_2d(0.0..total.max(1.0), 0.0..(stages.len() + 1) as f64)
        .map_err(wrong)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_axis().disable_y_mesh().x_desc("cycles");
    mesh.draw().map_err(wrong)?;
    let mut at = 0.0;
    for (row, (name, cycles)) in stages.iter().enumerate() {
        let (top, colour) = ((stages.len() - row) as f64, Palette99::pick(row));
        let bar = Rectangle::new([(at, top - 0.4), (at + cycles, top + 0.4)], colour.filled());
        chart.draw_series([bar]).map_err(wrong)?;
        let label = format!("{name}: {cycles}");
        // To the left of what stands in the right half.
        let (x, anchor) = if at > total / 2.0 {
            (at, text_anchor::HPos::Right)
        } else {
            (at + cycles, text_anchor::HPos::Left)
        };
        let style = ("sans-serif", 13).into_text_style(area);
        let style = style.pos(text_anchor::Pos::new(anchor, text_anchor::VPos::Center));
        chart
            .draw_series([Text::new(label, (x, top), style)])
            .map_err(wrong)?;
        at += cycles;
    }
    Ok(())
}

/// The points that the run had.
fn points<T>(
    of: impl IntoIterator<Item = T>,
    point: impl Fn(T) -> Option<(f64, f64)>,
) -> Vec<(f64, f64)> {
    of.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Figure;

    #[test]
    fn a_page_has_its_plots_and_all_figures() {
        let figures = vec![
            Figure::new("write_64_goodput_bytes_per_cycle", 11.25, "bytes/cycle"),
            Figure::new("write_4096_goodput_bytes_per_cycle", 61.75, "bytes/cycle"),
            Figure::new("stage_wqe_read_cycles", 1, "cycles"),
            Figure::new("block_rx_icrc_cycles", 5, "cycles"),
        ];
        let page = page(&Report::new(true, 7, figures)).unwrap();
        assert_eq!(page.matches("<svg").count(), 5);
        // The two points of the first plot.
        assert_eq!(page.matches("<circle").count(), 2, "{page}");
        for text in ["11.25", "stage wqe read: 1", "rx icrc: 5", "seed 7"] {
            assert!(page.contains(text), "no {text} in {page}");
        }
    }

    /// Parts of a run have a page too.
    #[test]
    fn a_report_without_figures_has_a_page() {
        let page = page(&Report::new(true, 7, vec![])).unwrap();
        assert_eq!(page.matches("<circle").count(), 0);
    }
}
