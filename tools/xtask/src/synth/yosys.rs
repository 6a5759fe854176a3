//! Yosys: maps the emitted Verilog for UltraScale+.

use std::collections::HashSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce_hdl::emit::Module;
use ferroce_system::pool;

use super::netlist::{Cost, cost};

/// A module to map, with what is below it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// What the figures are kept under.
    pub name: String,
    /// The module, and all that are below it.
    pub source: String,
    /// Its name in the source.
    pub top: String,
}

impl Job {
    /// Maps the module `top` of `modules`, children before parents.
    pub(super) fn new(name: &str, modules: &[Module], top: &str) -> Self {
        let mut needed = HashSet::from([top]);
        let mut texts = vec![];
        for module in modules.iter().rev() {
            if needed.contains(module.name.as_str()) {
                // An instance begins with the name of its module; other first words are no modules.
                let words = module.text.lines();
                needed.extend(words.filter_map(|line| line.split_whitespace().next()));
                texts.push(module.text.as_str());
            }
        }
        texts.reverse();
        let (name, source, top) = (name.into(), texts.join("\n"), top.into());
        Self { name, source, top }
    }

    /// Maps it, flat, and reads what it takes.
    fn run(&self) -> Result<Cost> {
        let folder = tempfile::tempdir().context("no temporary directory")?;
        fs::write(folder.path().join("in.v"), &self.source).context("cannot write the Verilog")?;
        let top = &self.top;
        let script = format!(
            "read_verilog in.v; hierarchy -check -top {top}; \
             synth_xilinx -family xcup -flatten -top {top} -noiopad -noclkbuf -nowidelut; write_json out.json"
        );
        let output = Command::new("yosys")
            .args(["-q", "-p", &script])
            .current_dir(folder.path())
            .output()
            .context("yosys cannot be started")?;
        let log = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "yosys on {top}: {log}");
        let json = fs::read_to_string(folder.path().join("out.json")).context("the netlist")?;
        cost(&json, top, &self.source).with_context(|| format!("module {top}"))
    }
}

/// Maps all of them, and tells of each when it is done. In the order of `jobs`.
///
/// # Errors
/// The first that failed.
pub(super) fn run(jobs: &[Job], done: impl Fn(&Job, &Cost) + Sync) -> Result<Vec<Cost>> {
    pool::try_each(pool::processors(), jobs, || {
        |job| {
            let cost = job.run()?;
            done(job, &cost);
            Ok(cost)
        }
    })
}

/// Name and version of the program.
pub(super) fn version() -> Result<String> {
    let output = Command::new("yosys").arg("-V").output();
    let text = String::from_utf8(output.context("yosys cannot be started")?.stdout)?;
    let words: Vec<_> = text.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}
