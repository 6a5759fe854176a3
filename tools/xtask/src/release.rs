//! `cargo xtask release`: the Verilog of every build, for users without Rust.
//!
//! ```text
//!  ferroce-0.1.0/generic-512, generic-64, u50, ... versa_ecp5   what `emit` writes, each with its README.md
//!  ferroce-0.1.0.tar.gz                                         the same, byte for byte from the same commit
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce::emit::{Board, BuildArgs, write};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory to write; it is made, and what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Name and version.
const TITLE: &str = concat!("ferroce-", env!("CARGO_PKG_VERSION"));

/// A folder of the release: its name, the board, the data path if it is not the board's standard.
type Folder = (String, Board, Option<u64>);

/// All of them.
fn folders() -> Vec<Folder> {
    let boards = Board::all().map(|board| match board {
        Board::Generic => ("generic-512".into(), board, None),
        _ => (board.name().into(), board, None),
    });
    let narrow = ("generic-64".into(), Board::Generic, Some(64));
    boards.chain([narrow]).collect()
}

/// Writes the folders and their archive to `out`.
fn make(out: &Path, folders: &[Folder]) -> Result<PathBuf> {
    let top = out.join(TITLE);
    std::fs::create_dir_all(&top).with_context(|| format!("cannot make {}", top.display()))?;
    for (name, board, width) in folders {
        let build = BuildArgs::of_width(*width);
        let files = write(*board, &build, &top.join(name), true)?;
        println!("{name}: {files} files");
    }
    let archive = out.join(format!("{TITLE}.tar.gz"));
    // no time, owner or order of this machine in it
    let tar = Command::new("tar")
        .args([
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .env("GZIP", "-n")
        .arg("-C")
        .arg(out)
        .arg("-czf")
        .arg(&archive)
        .arg(TITLE)
        .status()
        .context("`tar` cannot be run: install it, as `apt-get install tar` does")?;
    ensure!(tar.success(), "`tar` failed: {tar}");
    Ok(archive)
}

/// Runs the task.
///
/// # Errors
/// Those of `emit`, and of `tar`.
pub(crate) fn run(args: &Args) -> Result<()> {
    let archive = make(&args.out, &folders())?;
    println!("wrote {}", archive.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_the_folders_and_is_the_same_again() {
        let scratch = tempfile::tempdir().unwrap();
        let small = [("small".to_owned(), Board::VersaEcp5, None)];
        let mut archives = Vec::new();
        for run in ["a", "b", "b"] {
            let archive = make(&scratch.path().join(run), &small).unwrap();
            archives.push(std::fs::read(archive).unwrap());
        }
        assert!(archives.windows(2).all(|pair| pair[0] == pair[1]));
        let top = scratch.path().join("a").join(TITLE).join("small");
        assert!(top.join("README.md").is_file());
        let names: Vec<_> = folders().into_iter().map(|folder| folder.0).collect();
        assert_eq!(names.len(), Board::all().count() + 1, "{names:?}");
    }
}
