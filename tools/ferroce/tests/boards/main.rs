//! `cargo xtask emit --board`: what it writes for each board is read by the tools that are here.

mod constraints;
mod crossing;
mod elaborate;
mod script;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use ferroce::emit::{Board, Build, Bundle};
use ferroce_hdl::emit::Module;
use ferroce_hdl::engine::builds::STANDARD;

/// The standard build of this width and its modules, emitted once.
pub(crate) fn engine(width: usize) -> (Build, &'static [Module]) {
    static MODULES: [OnceLock<Vec<Module>>; 2] = [const { OnceLock::new() }; 2];
    let build = Build {
        width,
        tables: STANDARD,
    };
    let slot = &MODULES[usize::from(width == 64)];
    (build, slot.get_or_init(|| build.modules().unwrap()))
}

/// Boards that have a shell.
pub(crate) fn shells() -> impl Iterator<Item = Board> {
    Board::all().filter(|board| !matches!(board, Board::Generic))
}

/// A card of the project.
pub(crate) fn card(name: &str) -> Board {
    Board::find(name).unwrap()
}

/// What the task writes for a board, with nothing in the engine but its ports.
pub(crate) fn hollow(board: Board) -> Bundle {
    let (build, modules) = engine(board.widths()[0]);
    let top = modules.last().unwrap();
    let ports = top.text.split_inclusive(");\n").next().unwrap();
    let (doc, module) = ports.split_once('\n').unwrap();
    let text = format!(
        "{doc}\n/* verilator lint_off UNDRIVEN */\n/* verilator lint_off UNUSEDSIGNAL */\n(* blackbox *)\n{module}endmodule\n"
    );
    let name = top.name.clone();
    board.bundle(
        &build,
        &[Module {
            name,
            text,
            kind: top.kind.clone(),
        }],
    )
}

/// Text of a file of a bundle.
pub(crate) fn file<'a>(bundle: &'a Bundle, path: &str) -> &'a str {
    let found = bundle.files().find(|(p, _)| *p == path);
    found.unwrap_or_else(|| panic!("no {path}")).1
}

/// Writes the files of a bundle to a folder.
pub(crate) fn write(bundle: &Bundle, folder: &Path) {
    for (path, text) in bundle.files() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Whether a tool is there; where CI is set it has to be.
pub(crate) fn has(tool: &str, flag: &str) -> bool {
    let there = Command::new(tool).arg(flag).output().is_ok();
    assert!(
        there || std::env::var_os("CI").is_none(),
        "{tool} is needed where CI is set"
    );
    if !there {
        println!("skipped: {tool} is not installed");
    }
    there
}

/// Runs a command in a folder; what it says if it fails, or says anything where it should be silent.
pub(crate) fn run(folder: &Path, program: &str, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// Both outputs as one text.
pub(crate) fn log(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr];
    texts.map(|t| String::from_utf8_lossy(t)).concat()
}

#[test]
fn every_board_has_its_page() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let pages = ferroce::emit::pages();
    assert_eq!(pages.len(), shells().count());
    for (path, text) in pages {
        let stands = fs::read_to_string(root.join(&path)).unwrap_or_default();
        assert!(
            stands == text,
            "{path} is stale: run cargo xtask emit --pages"
        );
    }
}
