//! Verilator harness: Verilog text in, a running model out.
//!
//! [`build`] verilates a [`Spec`] at run time, compiles the C++ on all cores and loads the
//! result as a shared object; a second build of the same text comes from a cache. A [`Model`] makes
//! any number of independent [`Dut`] instances, and any number of models live in one process.
//!
//! ```no_run
//! use ferroce_sim::verilator::{self, Options, Port, Spec};
//!
//! let spec = Spec::new("top", std::fs::read_to_string("top.v")?)
//!     .clock("clk")
//!     .ports([Port::input("clk", 1), Port::input("a", 512), Port::output("q", 512)]);
//! let model = verilator::build(&spec, &Options::default())?;
//! let (a, q) = (model.input("a")?, model.output("q")?);
//! let mut dut = model.instance()?;
//! dut.edit(a, |words| words[15] = 7);
//! dut.tick();
//! assert_eq!(dut.view(q)[15], 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Only [`Dut::eval`], [`Dut::tick`] and their like cross into C++; ports are read and written at
//! addresses fetched once per instance. The `unsafe` of the bridge stays within this module.

mod compile;
mod dut;
mod error;
mod header;
mod jobs;
mod model;
mod ports;
mod signal;
mod sources;
mod spec;
mod tools;

use std::path::PathBuf;

use ferroce_system::cache;

pub use dut::Dut;
pub use error::Error;
pub use model::Model;
pub use signal::{Input, Output, Signal};
pub use spec::{Direction, Field, Port, Spec};

/// Length of one clock cycle in simulated time, in ps: 250 MHz.
pub const CLOCK_PERIOD_PS: u64 = 4000;

/// How a model is built. Each distinct set of options is a build of its own in the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Compile FST tracing in, for [`Dut::trace`]. Needs zlib's header.
    pub trace: bool,
    /// Compile line, toggle and user coverage in, for [`Model::write_coverage`].
    pub coverage: bool,
    /// Optimisation of the C++ that runs every cycle.
    pub optimise: Optimise,
    /// Where built models are kept. Default: `verilated/` in cargo's target directory of the
    /// running program, else `ferroce/verilated/` in the user's cache directory.
    pub cache: Option<PathBuf>,
    /// The Verilator to run. Default: `$VERILATOR`, else `verilator` on the path.
    pub verilator: Option<PathBuf>,
    /// The C++ compiler to run, GCC or compatible. Default: `$CXX`, else `g++` on the path.
    pub cxx: Option<PathBuf>,
}

/// Optimisation level of the C++ that runs every cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Optimise {
    /// `-O1`: quicker to compile.
    Fast,
    /// `-O2`: quicker to run.
    #[default]
    Full,
}

/// Builds `spec`, or takes it from the cache, and loads it.
///
/// Builds of one spec exclude each other, also across processes; the cache never holds a half
/// build.
///
/// # Errors
/// A missing or too old tool (with the package that brings it); Verilog that Verilator rejects;
/// a port list that is not the module's; a C++ compiler failure; a file that cannot be written.
pub fn build(spec: &Spec, options: &Options) -> Result<Model, Error> {
    spec.check()?;
    let tools = tools::Tools::find(options)?;
    let default = || cache::target_dir("verilated");
    let dir = options.cache.clone().unwrap_or_else(default);
    let cache = cache::Cache::open(&dir)?;
    let built = compile::build(spec, options, &tools, &cache)?;
    Model::load(spec, built)
}
