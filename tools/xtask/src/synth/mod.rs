//! `cargo xtask synth`: what the blocks of the engine take, and how deep their logic is, by Yosys for UltraScale+.

mod netlist;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce_hdl::emit::Design;
use ferroce_hdl::engine::builds::{self, WIDTHS};

use crate::output::Output;
use crate::{Usage, tools};

pub use netlist::{Cost, cost};

/// The page, below the root of the repository.
const PAGE: &str = "docs/resources.md";

/// Blocks of the table, by the name without the sizes. Together they are nearly all of the engine.
const BLOCKS: [&str; 22] = [
    "rx_front",
    "rx_check",
    "responder",
    "track",
    "rq_fetch",
    "scatter",
    "reply_queue",
    "send_queues",
    "send",
    "gather",
    "tx_back",
    "exceptions",
    "host_port",
    "mr_table",
    "cq_write",
    "eq_write",
    "qp_events",
    "command",
    "csr",
    "stats",
    "drain",
    "restart",
];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this block: a module of the engine, with or without the sizes in its name. May be given more than once.
    #[arg(long, value_name = "NAME")]
    block: Vec<String>,
    /// Data path in bits: 512 or 64.
    #[arg(long, default_value_t = 512, value_name = "BITS", value_parser = width)]
    width: usize,
    /// Write the page of the table, docs/resources.md.
    #[arg(long, conflicts_with_all = ["block", "width"])]
    write: bool,
}

fn width(text: &str) -> Result<usize, String> {
    let width = text.parse().ok().filter(|w| WIDTHS.contains(w));
    width.ok_or_else(|| "512 or 64".into())
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] if there is no such block; else what Yosys says.
pub(crate) fn run(args: &Args) -> Result<()> {
    let design = builds::verilog(args.width).map_err(anyhow::Error::msg)?;
    let asked: Vec<&str> = if args.block.is_empty() {
        BLOCKS.to_vec()
    } else {
        args.block.iter().map(String::as_str).collect()
    };
    let modules = asked.iter().map(|name| module(&design, name));
    let modules = modules.collect::<Result<Vec<_>>>()?;
    tools::ensure_present(&[tools::YOSYS])?;
    println!("{}", line("block", HEADS.map(str::to_owned)));
    let mut rows = vec![];
    for module in modules {
        let cost = synthesise(&design, module)?;
        println!("{}  {}", line(module, columns(&cost)), cost.worst);
        rows.push((module, cost));
    }
    if args.write {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut output = Output::create(&root.join(PAGE))?;
        let text = page(args.width, &version()?, &rows);
        let written = output.file().write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {PAGE}"))?;
        output.finish()?;
    }
    Ok(())
}

/// The module that `name` means.
fn module<'a>(design: &'a Design, name: &str) -> Result<&'a str> {
    let names = || design.modules.iter().map(|m| m.name.as_str());
    if let Some(exact) = names().find(|n| *n == name) {
        return Ok(exact);
    }
    // What follows the name is sizes, not the name of another block.
    let sized = |n: &&str| {
        let rest = n.strip_prefix(name).and_then(|r| r.strip_prefix('_'));
        let first = rest.and_then(|r| r.split('_').next());
        first.is_some_and(|part| part.bytes().any(|b| b.is_ascii_digit()))
    };
    let found: Vec<_> = names().filter(sized).collect();
    let text = match found[..] {
        [one] => return Ok(one),
        [] => format!(
            "--block {name}: no such module; the README of cargo xtask emit --out DIR lists them"
        ),
        _ => format!("--block {name}: which of {}?", found.join(", ")),
    };
    Err(Usage(text).into())
}

/// Maps one module and what is below it.
fn synthesise(design: &Design, top: &str) -> Result<Cost> {
    let folder = tempfile::tempdir().context("no temporary directory")?;
    fs::write(folder.path().join("in.v"), design.source()).context("cannot write the Verilog")?;
    let script = format!(
        "read_verilog in.v; hierarchy -check -top {top}; \
         synth_xilinx -family xcup -flatten -top {top} -noiopad -noclkbuf -nowidelut; write_json out.json"
    );
    let output = Command::new("yosys")
        .args(["-q", "-p", &script])
        .current_dir(folder.path())
        .output()
        .context("yosys cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "yosys on {top}: {said}");
    let json = fs::read_to_string(folder.path().join("out.json")).context("the netlist")?;
    cost(&json, top).with_context(|| format!("block {top}"))
}

fn version() -> Result<String> {
    let output = Command::new("yosys").arg("-V").output();
    let text = String::from_utf8(output.context("yosys cannot be started")?.stdout)?;
    let words: Vec<_> = text.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}

/// What is counted, in the order of the columns.
const HEADS: [&str; 6] = ["LUT", "FF", "BRAM36", "URAM", "LUTRAM", "levels"];

fn columns(cost: &Cost) -> [String; 6] {
    [
        cost.lut.to_string(),
        cost.ff.to_string(),
        cost.bram36.to_string(),
        cost.uram.to_string(),
        cost.lutram.to_string(),
        cost.levels.to_string(),
    ]
}

fn line(name: &str, columns: [String; 6]) -> String {
    columns
        .iter()
        .fold(format!("{name:<40}"), |text, c| format!("{text} {c:>7}"))
}

/// The page of the table.
fn page(width: usize, version: &str, rows: &[(&str, Cost)]) -> String {
    let mut text = format!(
        "# Resources\n\n\
         Generated by `cargo xtask synth --write`; do not edit. {version}, `synth_xilinx -family xcup`, standard build of {width} bits, each block by itself.\n\n\
         Yosys packs less tightly than Vivado and knows no delays of this family: compare with other figures of the same program \
         only. LUT levels count LUTs between registers (a carry chain is 1), ports of the block included; the aim is 8 at 250 MHz. \
         The last column is the net or register where the longest path ends. Nothing was placed, routed or run on a board.\n\n"
    );
    let _ = writeln!(text, "| block | {} | path |", HEADS.join(" | "));
    let _ = writeln!(text, "|---|{}---|", "---:|".repeat(HEADS.len()));
    for (name, cost) in rows {
        let columns = columns(cost).join(" | ");
        let _ = writeln!(text, "| `{name}` | {columns} | `{}` |", cost.worst);
    }
    let sum = |of: fn(&Cost) -> f64| rows.iter().map(|(_, cost)| of(cost)).sum::<f64>();
    let _ = writeln!(
        text,
        "| sum | {} | {} | {} | {} | {} | | |",
        sum(|c| c.lut as f64),
        sum(|c| c.ff as f64),
        sum(|c| c.bram36),
        sum(|c| c.uram as f64),
        sum(|c| c.lutram as f64)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_modules_with_their_sizes() {
        for width in WIDTHS {
            let design = builds::verilog(width).unwrap();
            for name in BLOCKS {
                module(&design, name).unwrap();
            }
            assert!(module(&design, "scatter").unwrap().starts_with("scatter_"));
            assert_eq!(module(&design, "scatter_walk").unwrap(), "scatter_walk");
            for (name, part) in [("asic", "no such"), ("arbiter", "arbiter_2")] {
                let error = module(&design, name).unwrap_err();
                assert!(error.is::<Usage>() && error.to_string().contains(part));
            }
        }
    }

    #[test]
    fn a_block_is_mapped_and_measured() {
        if Command::new("yosys").arg("-V").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "Yosys is needed in CI");
            println!("skipped: Yosys is not installed");
            return;
        }
        let design = builds::verilog(64).unwrap();
        let cost = synthesise(&design, "restart").unwrap();
        assert!(cost.lut > 0 && cost.ff > 0, "{cost:?}");
        assert!((1..=8).contains(&cost.levels), "{cost:?}");
    }
}
