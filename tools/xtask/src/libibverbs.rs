//! `cargo xtask libibverbs`: the verbs library for unmodified programs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ferroce_ibverbs::{SONAME, version_script};
use ferroce_system::link;

use crate::{Usage, tools};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder for the library.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Put simulated cards into the library: the model and the engine, which Verilator and a C++ compiler build when it is
    /// first opened.
    #[arg(long)]
    sim: bool,
}

/// The library that a task runs programs with.
#[derive(clap::Args)]
pub(crate) struct Ready {
    /// Folder of a libibverbs.so.1 that is ready; unless given it is built.
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
}

impl Ready {
    /// Its folder; below `place` if it is built.
    ///
    /// # Errors
    /// [`Usage`]: there is none; it is not built or not linked.
    pub(crate) fn folder(&self, place: &Path) -> Result<PathBuf> {
        let Some(folder) = &self.library else {
            let folder = place.join("lib");
            build(&folder, "ferroce-ibverbs")?;
            return Ok(folder);
        };
        let library = folder.join(SONAME).canonicalize();
        let library = library.map_err(|e| {
            let folder = folder.display();
            Usage(format!(
                "no {SONAME} in {folder}: {e}; cargo xtask libibverbs makes one"
            ))
        })?;
        Ok(library.parent().unwrap_or(folder).to_owned())
    }
}

/// Runs the task.
///
/// # Errors
/// The library is not built or not linked.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (package, card) = match args.sim {
        true => ("ferroce-simverbs", "sim:model"),
        false => ("ferroce-ibverbs", "CARD"),
    };
    build(&args.out, package)?;
    let folder = args.out.display();
    println!(
        "{folder}/{SONAME} is ready: FERROCE_DEVICE={card} LD_LIBRARY_PATH={folder} ibv_devinfo"
    );
    Ok(())
}

/// Builds the library of a package in `folder`.
///
/// # Errors
/// The library is not built or not linked.
fn build(folder: &Path, package: &str) -> Result<()> {
    tools::ensure_present(&[tools::CXX])?;
    let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    let status = tools::cargo()
        .args(["build", "--release", "--package", package])
        .arg("--manifest-path")
        .arg(manifest)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the library does not build ({status})");
    let archive = format!("release/lib{}.a", package.replace('-', "_"));
    let archive = tools::target_folder().join(archive);
    link::shared(&archive, &version_script(), SONAME, folder)?;
    Ok(())
}
