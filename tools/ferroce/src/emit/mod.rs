//! `cargo xtask emit`: the engine as Verilog, with what a tool chain needs beside it.

mod board;
mod bundle;
mod memory;
mod rtl;
mod text;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use ferroce_hdl::emit::Module;
use ferroce_hdl::engine::builds::{STANDARD, WIDTHS};

use self::board::card::{CARDS, FILE};
use self::board::ecp5;
use crate::Usage;
use crate::output::put;

pub use board::card::Card;
pub use bundle::Bundle;
pub use memory::Memories;
pub use rtl::Build;

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// What to write it for: generic, the engine alone; u50, u55c, u200, u250, u280, vcu118, versa_ecp5; or a folder with the
    /// board.toml of a board of your own.
    #[arg(long, value_name = "BOARD", default_value = "generic")]
    board: String,
    #[command(flatten)]
    build: BuildArgs,
    /// Directory to write; it is made, and has to be empty if it is there.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["pages", "constraints"])]
    out: Option<PathBuf>,
    /// Write the pages of the boards, docs/boards, instead.
    #[arg(long, conflicts_with = "out")]
    pages: bool,
    /// Write the constraints of the boards, constraints/, instead.
    #[arg(long, conflicts_with_all = ["out", "pages"])]
    constraints: bool,
    /// Replace DIR if an earlier run wrote it, with all that was added to it since.
    #[arg(long)]
    force: bool,
}

/// Sizes of a build.
#[derive(Clone, Debug, Default, clap::Args)]
// clap names groups by the type.
#[group(skip)]
pub struct BuildArgs {
    /// Data path in bits: 512 or 64; 512 if not given, but for versa_ecp5.
    #[arg(long, value_name = "BITS")]
    width: Option<u64>,
    /// Queue pairs: a power of two from 16 to 16384; 256 if not given, 16 for versa_ecp5.
    #[arg(long, value_name = "N")]
    qps: Option<u64>,
    /// Memory regions: a power of two from 64 to 65536; 1024 if not given, 64 for versa_ecp5.
    #[arg(long, value_name = "N")]
    mrs: Option<u64>,
    /// Completion queues: a power of two from 16 to 16384; 256 if not given, 16 for versa_ecp5.
    #[arg(long, value_name = "N")]
    cqs: Option<u64>,
    /// Messages that may be outstanding, of all queue pairs together: a power of two from 1024 to 65536; 16384 if not given,
    /// 1024 for versa_ecp5.
    #[arg(long, value_name = "N")]
    outstanding: Option<u64>,
}

impl BuildArgs {
    /// The standard build with a data path of `bits`.
    #[must_use]
    pub fn of_width(bits: Option<u64>) -> Self {
        Self {
            width: bits,
            ..Self::default()
        }
    }
}

/// A board that the engine can be written for.
#[derive(Clone, Copy, Debug)]
pub enum Board {
    /// The engine alone, with AXI ports.
    Generic,
    /// A PCIe card with an UltraScale+ FPGA, by Vivado.
    Card(&'static Card),
    /// ECP5-5G Versa, by open tools.
    VersaEcp5,
}

impl Board {
    /// Names of those that are no cards.
    pub(crate) const OTHERS: [&str; 2] = ["generic", ecp5::NAME];

    /// Those of the project.
    pub fn all() -> impl Iterator<Item = Self> {
        let cards = CARDS.iter().map(Self::Card);
        [Self::Generic]
            .into_iter()
            .chain(cards)
            .chain([Self::VersaEcp5])
    }

    /// The board of this name, or that of a folder with a `board.toml`.
    ///
    /// # Errors
    /// [`Usage`] with the names that are there, or with what is wrong with the folder.
    pub fn find(name: &str) -> Result<Self, Usage> {
        if let Some(board) = Self::all().find(|board| board.name() == name) {
            return Ok(board);
        }
        if Path::new(name).is_dir() {
            return Card::read(Path::new(name)).map(Self::Card);
        }
        let names: Vec<_> = Self::all().map(Self::name).collect();
        Err(Usage(format!(
            "--board {name}: {}, or a folder with a {FILE}",
            names.join(", ")
        )))
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Card(card) => &card.name,
            Self::VersaEcp5 => ecp5::NAME,
        }
    }

    /// Data paths in bits that it has a shell for.
    #[must_use]
    pub fn widths(self) -> &'static [usize] {
        match self {
            Self::Generic => &WIDTHS,
            Self::VersaEcp5 => &[ecp5::BUILD.width],
            _ => &[512],
        }
    }

    /// What is built for it if nothing else is asked for.
    #[must_use]
    pub fn standard(self) -> Build {
        match self {
            Self::VersaEcp5 => ecp5::BUILD,
            _ => Build {
                width: 512,
                tables: STANDARD,
            },
        }
    }

    /// Whether it has a shell for this build.
    ///
    /// # Errors
    /// [`Usage`] with the limits.
    fn check(self, build: &Build) -> Result<(), Usage> {
        if self.widths().contains(&build.width) {
            return Ok(());
        }
        let can: Vec<_> = self.widths().iter().map(usize::to_string).collect();
        let (width, name) = (build.width, self.name());
        let can = can.join(" or ");
        Err(Usage(format!(
            "--width {width}: the shell of {name} has a data path of {can} bits"
        )))
    }

    /// Whether its part has the memories that a build of `modules` takes; the shell comes on top.
    ///
    /// # Errors
    /// [`Usage`] with what is missing.
    pub fn holds(self, modules: &[Module]) -> Result<(), Usage> {
        let Self::Card(card) = self else {
            return Ok(());
        };
        let needs = Memories::of(modules);
        let (needs, has) = ((needs.ramb36(), needs.uram), (card.ramb36, card.uram));
        if needs.0 <= has.0 && needs.1 <= has.1 {
            return Ok(());
        }
        Err(Usage(format!(
            "{} block RAMs and {} UltraRAMs: the {} has {} and {}; ask for smaller tables",
            needs.0, needs.1, card.title, has.0, has.1
        )))
    }

    /// The files of a build of `modules` for this board.
    #[must_use]
    pub fn bundle(self, build: &Build, modules: &[Module]) -> Bundle {
        match self {
            Self::Generic => text::generic(build, modules),
            Self::Card(card) => board::bundle(card, build, modules),
            Self::VersaEcp5 => ecp5::bundle(build, modules),
        }
    }
}

/// The pages of the boards: path below the root of the repository, and text.
#[must_use]
pub fn pages() -> Vec<(String, String)> {
    let page = |board: Board| {
        let text = match board {
            Board::Generic => return None,
            Board::Card(card) => board::text::page(card),
            Board::VersaEcp5 => ecp5::page(),
        };
        Some((format!("docs/boards/{}.md", board.name()), text))
    };
    Board::all().filter_map(page).collect()
}

/// What is generated for each board alone: constraints by function, and settings of its scripts. Path below the root of
/// the repository, and text.
#[must_use]
pub fn constraints() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for board in Board::all().filter(|board| !matches!(board, Board::Generic)) {
        let bundle = board.bundle(&board.standard(), &[]);
        for (path, text) in bundle.files() {
            let name = path.strip_prefix("constraints/").unwrap_or(path);
            let own = !name.contains('/') && (name != path || name == "settings.tcl");
            if own {
                files.push((format!("constraints/{}/{name}", board.name()), text.into()));
            }
        }
    }
    files
}

/// The commit of the source, or that it is not known.
fn commit() -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let git = Command::new("git")
        .args(["-C", root, "rev-parse", "HEAD"])
        .output();
    let text = git.ok().filter(|git| git.status.success());
    let text = text.and_then(|git| String::from_utf8(git.stdout).ok());
    text.map_or("unknown".into(), |text| text.trim().into())
}

/// Writes the engine for `board` to `out`, which is free or, with `force`, of an earlier run; returns the number of files.
///
/// # Errors
/// As [`run`].
pub fn write(board: Board, build: &BuildArgs, out: &Path, force: bool) -> Result<usize> {
    let build = Build::new(build, board.standard())?;
    board.check(&build)?;
    let place = bundle::Place::new(out, force)?;
    let modules = build.modules()?;
    board.holds(&modules)?;
    let bundle = board.bundle(&build, &modules).signed(&commit());
    let files = bundle.files().count();
    place.write(&bundle)?;
    Ok(files)
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] for a size that cannot be built or a directory that is not free; else what failed.
pub fn run(args: &Args) -> Result<()> {
    let Some(out) = &args.out else {
        let (files, folder) = match args.constraints {
            true => (constraints(), "constraints"),
            false => (pages(), "docs/boards"),
        };
        for (path, text) in files {
            put(&path, &text)?;
        }
        println!("wrote {folder}");
        return Ok(());
    };
    let board = Board::find(&args.board)?;
    let files = write(board, &args.build, out, args.force)?;
    println!(
        "wrote {files} files to {}; README.md there has the next commands",
        out.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_the_memories_of_a_build_is_refused_in_a_line() {
        let of = |style: &str, words: u32| Module {
            name: "m".into(),
            text: format!(
                "(* ram_style = \"{style}\" *) reg [71:0] mem [0:{}];",
                words - 1
            ),
            kind: Default::default(),
        };
        // 641 UltraRAMs, 1345 block RAMs: one more than the U50 has
        for (style, words) in [("ultra", 641 * 4096), ("block", 1345 * 512)] {
            let error = Board::find("u50")
                .unwrap()
                .holds(&[of(style, words)])
                .unwrap_err();
            let text = error.to_string();
            assert!(text.contains("the Alveo U50 has 1344 and 640"), "{text}");
            assert!(!text.contains('\n'));
            assert!(
                Board::find("u250")
                    .unwrap()
                    .holds(&[of(style, words)])
                    .is_ok()
            );
            assert!(Board::Generic.holds(&[of(style, words)]).is_ok());
        }
    }
}
