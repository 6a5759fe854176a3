//! `cargo xtask lib`: the verbs library for unmodified programs, and that of connections beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ferroce_ibverbs::{SONAME, version_script};
use ferroce_system::link;

use crate::{Usage, tools};

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for the libraries.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Put simulated cards into the library: the model and the engine, which Verilator and a C++ compiler build when it is
    /// first opened.
    #[arg(long)]
    sim: bool,
}

/// The library that a task runs programs with.
#[derive(clap::Args)]
pub struct Ready {
    /// Folder of a libibverbs.so.1 that is ready; unless given it is built.
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
}

impl Ready {
    /// Its folder; below `place` if it is built.
    ///
    /// # Errors
    /// [`Usage`]: there is none; it is not built or not linked.
    pub fn folder(&self, place: &Path) -> Result<PathBuf> {
        let Some(folder) = &self.library else {
            let folder = place.join("lib");
            build(&folder, "ferroce-ibverbs")?;
            return Ok(folder);
        };
        let library = folder.join(SONAME).canonicalize();
        let library = library.map_err(|e| {
            let folder = folder.display();
            Usage(format!(
                "no {SONAME} in {folder}: {e}; cargo xtask lib makes one"
            ))
        })?;
        Ok(library.parent().unwrap_or(folder).to_owned())
    }
}

/// Runs the task.
///
/// # Errors
/// The library is not built or not linked.
pub fn run(args: &Args) -> Result<()> {
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

/// Builds the verbs library of a package in `folder`, and that of connections beside it.
///
/// # Errors
/// One is not built or not linked.
fn build(folder: &Path, package: &str) -> Result<()> {
    tools::ensure_present(&[tools::CXX])?;
    let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    let status = tools::cargo()
        .args(["build", "--release", "--package", package])
        .args(["--package", "ferroce-rdmacm"])
        .arg("--manifest-path")
        .arg(manifest)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the libraries do not build ({status})");
    let release = tools::target_folder().join("release");
    let archive = |package: &str| release.join(format!("lib{}.a", package.replace('-', "_")));
    link::shared(&archive(package), &version_script(), SONAME, folder)?;
    let script = ferroce_rdmacm::version_script();
    let (own, soname) = (archive("ferroce-rdmacm"), ferroce_rdmacm::SONAME);
    link::shared_with(&own, &script, soname, folder, &[SONAME])?;
    Ok(())
}
