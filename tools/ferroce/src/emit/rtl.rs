//! Builds of the engine by the sizes that the command line names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use ferroce_hdl::emit::Module;
use ferroce_hdl::engine::builds::{self, STANDARD, WIDTHS};
use ferroce_proto::abi::regs::Params;
use ferroce_sim::rtl::build;
use ferroce_sim::verilator::{self, Model};

use super::BuildArgs;
use crate::{Usage, tools};

/// Log2 of the sizes that can be built, by option.
const LIMITS: [(&str, std::ops::RangeInclusive<u8>); 4] = [
    ("qps", 4..=14),
    ("mrs", 6..=16),
    ("cqs", 4..=14),
    ("outstanding", 10..=16),
];

/// A build of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Data path in bits.
    pub width: usize,
    /// Its tables.
    pub tables: Params,
}

impl Build {
    /// The build of these options, with what `standard` has where they say nothing.
    ///
    /// # Errors
    /// [`Usage`] with the limits.
    pub(crate) fn new(args: &BuildArgs, standard: Self) -> Result<Self> {
        let asked = args.width.unwrap_or(standard.width as u64);
        let width = usize::try_from(asked).unwrap_or(0);
        if !WIDTHS.contains(&width) {
            return Err(Usage(format!("--width {asked}: 512 or 64")).into());
        }
        let asked = [
            args.qps.unwrap_or(1 << standard.tables.log_qp),
            args.mrs.unwrap_or(1 << standard.tables.log_mr),
            args.cqs.unwrap_or(1 << standard.tables.log_cq),
            args.outstanding
                .unwrap_or(1 << standard.tables.log_outstanding),
        ];
        let mut logs = [0; 4];
        for ((log, size), (option, limits)) in logs.iter_mut().zip(asked).zip(LIMITS) {
            *log = size.checked_ilog2().unwrap_or(0) as u8;
            if !size.is_power_of_two() || !limits.contains(log) {
                let (low, high) = (1u64 << limits.start(), 1u64 << limits.end());
                let text = format!("--{option} {size}: a power of two from {low} to {high}");
                return Err(Usage(text).into());
            }
        }
        let [log_qp, log_mr, log_cq, log_outstanding] = logs;
        let tables = Params {
            log_qp,
            log_mr,
            log_cq,
            log_outstanding,
            ..STANDARD
        };
        Ok(Self { width, tables })
    }

    /// The build in words: data path and tables.
    #[must_use]
    pub fn words(&self) -> String {
        let tables = &self.tables;
        format!(
            "{} bits, {} queue pairs, {} memory regions, {} completion queues, {} outstanding messages",
            self.width,
            1u64 << tables.log_qp,
            1u64 << tables.log_mr,
            1u64 << tables.log_cq,
            1u64 << tables.log_outstanding
        )
    }

    /// The modules, children before parents.
    ///
    /// The standard tables are part of this program; the program for others is compiled here, as their sizes are constants
    /// of it.
    ///
    /// # Errors
    /// What the emission or the compiler refuses.
    pub fn modules(&self) -> Result<Vec<Module>> {
        if self.tables == STANDARD {
            let design = builds::verilog(self.width).map_err(anyhow::Error::msg)?;
            return Ok(design.modules);
        }
        let folder = tempfile::tempdir().context("no temporary directory")?;
        let names = self.compiled(folder.path())?;
        names
            .lines()
            .map(|line| {
                let (name, kind) = line.split_once(' ').context("a line is name and block")?;
                let path = folder.path().join(format!("{name}.v"));
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Module {
                    name: name.into(),
                    text,
                    kind: kind.parse().map_err(anyhow::Error::msg)?,
                })
            })
            .collect()
    }

    /// It Verilated; other tables than the standard ones are emitted once in a process.
    ///
    /// # Errors
    /// As [`modules`](Self::modules); what Verilator says.
    pub fn model(&self, options: &verilator::Options) -> Result<Model> {
        static EMITTED: Mutex<Vec<(Build, Vec<Module>)>> = Mutex::new(Vec::new());
        if self.tables == STANDARD {
            return Ok(build::model(self.width, options)?);
        }
        let mut emitted = EMITTED.lock().unwrap_or_else(PoisonError::into_inner);
        if emitted.iter().all(|(known, _)| known != self) {
            emitted.push((*self, self.modules()?));
        }
        let found = emitted.iter().find(|(known, _)| known == self);
        let (_, modules) = found.expect("it was put there a moment ago");
        let source: String = modules.iter().map(|module| module.text.as_str()).collect();
        let top = modules.last().context("an engine has modules")?;
        Ok(build::model_of(self.width, &top.name, &source, options)?)
    }

    /// Compiles and runs the program that writes this build to `folder`; name, block and sizes of
    /// the modules, a line each.
    fn compiled(&self, folder: &Path) -> Result<String> {
        let tables = &self.tables;
        let sizes = [
            ("FERROCE_WIDTH", self.width),
            ("FERROCE_LOG_QP", tables.log_qp.into()),
            ("FERROCE_LOG_MR", tables.log_mr.into()),
            ("FERROCE_LOG_CQ", tables.log_cq.into()),
            ("FERROCE_LOG_OUTSTANDING", tables.log_outstanding.into()),
        ];
        // Of the workspace: its crates then have the features with which all else was built.
        let words = "build --quiet --workspace --example emit_engine --manifest-path";
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
        let status = tools::cargo()
            .args(words.split(' ').chain([manifest]))
            .envs(sizes.map(|(name, size)| (name, size.to_string())))
            .status()
            .context("cargo cannot be started")?;
        ensure!(status.success(), "the build was refused, see above");
        let program = tools::target_folder().join("debug/examples/emit_engine");
        let output = Command::new(program)
            .arg(folder)
            .stderr(Stdio::inherit())
            .output()
            .context("the program that emits cannot be started")?;
        ensure!(output.status.success(), "the build was refused, see above");
        String::from_utf8(output.stdout).context("names of modules")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD_BUILD: Build = Build {
        width: 512,
        tables: STANDARD,
    };

    fn args() -> BuildArgs {
        BuildArgs {
            width: None,
            qps: None,
            mrs: None,
            cqs: None,
            outstanding: None,
        }
    }

    #[test]
    fn sizes_over_the_limits_are_refused_with_the_limits() {
        type Spoil = fn(&mut BuildArgs);
        let cases: [(Spoil, &str); 7] = [
            (|a| a.width = Some(128), "--width 128: 512 or 64"),
            (
                |a| a.qps = Some(8),
                "--qps 8: a power of two from 16 to 16384",
            ),
            (|a| a.qps = Some(100), "--qps 100: a power of two"),
            (|a| a.qps = Some(0), "--qps 0"),
            (
                |a| a.mrs = Some(1 << 17),
                "--mrs 131072: a power of two from 64 to 65536",
            ),
            (|a| a.cqs = Some(u64::MAX), "--cqs 18446744073709551615"),
            (|a| a.outstanding = Some(512), "from 1024 to 65536"),
        ];
        for (spoil, part) in cases {
            let mut args = args();
            spoil(&mut args);
            let error = Build::new(&args, STANDARD_BUILD).unwrap_err();
            let text = error.to_string();
            assert!(error.is::<Usage>() && text.contains(part), "{text}");
            assert!(!text.contains('\n'));
        }
    }

    #[test]
    fn the_defaults_are_the_standard_tables() {
        assert_eq!(
            Build::new(&args(), STANDARD_BUILD).unwrap().tables,
            STANDARD
        );
    }

    #[test]
    #[ignore = "compiles two builds of the engine"]
    fn the_smallest_and_the_largest_tables_can_be_built() {
        for end in [false, true] {
            let log = |i: usize| {
                let limits = &LIMITS[i].1;
                1u64 << if end { *limits.end() } else { *limits.start() }
            };
            let args = BuildArgs {
                width: Some(if end { 512 } else { 64 }),
                qps: Some(log(0)),
                mrs: Some(log(1)),
                cqs: Some(log(2)),
                outstanding: Some(log(3)),
            };
            let modules = Build::new(&args, STANDARD_BUILD)
                .unwrap()
                .modules()
                .unwrap();
            assert_eq!(modules.last().unwrap().name, "ferroce");
        }
    }
}
