//! Test bench for one block: clock, reset, stream drivers and monitors.
//!
//! ```no_run
//! use ferroce_hdl::prelude::{Bits, Skid};
//! use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
//! use ferroce_sim::random::Pauses;
//!
//! let mut bench = Bench::of(Skid::<Bits<24>>::default)?;
//! let mut source = StreamSource::new(bench.dut(), "s", Pauses::new(0.2, 5))?;
//! let mut sink = StreamSink::new(bench.dut(), "m", Pauses::new(0.5, 3))?;
//! for psn in 0..100 {
//!     source.push(source.item().with("payload", psn));
//!     sink.expect(sink.item().with("payload", psn));
//! }
//! bench.reset(&mut [&mut source, &mut sink]);
//! bench.finish(&mut [&mut source, &mut sink], 10_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The seed of all pauses is `$FERROCE_SEED`, else 1, and stands in every failure. With
//! `$FERROCE_TRACE` set to a directory, every bench writes an FST trace there, named after its test.

mod axis;
pub mod classes;
mod item;
mod log;
mod stream;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use fastrand::Rng;
use ferroce_hdl::emit::{self, EmitError};
use ferroce_hdl::prelude::Block;

pub use axis::{AxisSink, AxisSource, Frame};
pub use item::Item;
pub use stream::{StreamSink, StreamSource};

use crate::mutation::benches;
use crate::verilator::{self, Dut, Input, Model, Options, Spec};

/// Cycles for which [`Bench::reset`] holds `rst`.
pub const RESET_CYCLES: u64 = 16;

/// Something at ports of the device under test that acts once a cycle.
pub trait Agent {
    /// Drives its inputs for the coming cycle.
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng);

    /// Sees the signals of cycle `cycle` as the rising edge will; says which rule they break.
    ///
    /// # Errors
    /// The broken rule.
    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String>;

    /// What it still waits for, `None` if for nothing.
    fn pending(&self) -> Option<String>;

    /// Gives up what is under way and drives its inputs low, for a reset.
    fn reset(&mut self, dut: &mut Dut);
}

/// A run that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{top}`, cycle {cycle}: {what} (repeat with FERROCE_SEED={seed})")]
pub struct Failure {
    /// Top module.
    pub top: String,
    /// Cycles since the bench was made.
    pub cycle: u64,
    /// What happened.
    pub what: String,
    /// Seed of the run.
    pub seed: u64,
}

/// A bench that could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The block has no Verilog of the same meaning.
    #[error("the block cannot be emitted:\n{}", lines(.0))]
    Emit(Vec<EmitError>),
    /// The Verilog could not be built.
    #[error(transparent)]
    Build(#[from] verilator::Error),
}

fn lines(errors: &[EmitError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn trace_dir() -> Option<OsString> {
    env::var_os("FERROCE_TRACE")
}

fn built(mut spec: Spec) -> Result<Model, verilator::Error> {
    benches::put_listed(&mut spec);
    let options = Options {
        trace: trace_dir().is_some(),
        ..Options::default()
    };
    verilator::build(&spec, &options)
}

/// The block that `make` makes; once in a process where `make` holds nothing, so that its block is always the same.
fn emitted<B: Block, F>(make: F) -> Result<Model, SetupError>
where
    F: FnOnce() -> B + Send + 'static,
{
    static MODELS: Mutex<BTreeMap<TypeId, Arc<Mutex<Option<Model>>>>> = Mutex::new(BTreeMap::new());
    let slot = match size_of::<F>() {
        0 => lock(&MODELS).entry(TypeId::of::<F>()).or_default().clone(),
        _ => Arc::default(),
    };
    let mut slot = lock(&slot);
    if slot.is_none() {
        let design = emit::with_stack(|| emit::verilog(&make())).map_err(SetupError::Emit)?;
        *slot = Some(built(Spec::from(&design))?);
    }
    Ok(slot.clone().expect("it was put there"))
}

/// The contents are whole also when another test failed amid its own emission.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device under test with clock and reset.
#[derive(Debug)]
pub struct Bench {
    dut: Dut,
    rst: Option<Input>,
    seed: u64,
    rng: Rng,
    cycle: u64,
    /// Cycles that it may take.
    life: u64,
}

impl Bench {
    /// Emits the block that `make` makes, as the top, and goes on as [`new`](Self::new).
    ///
    /// # Errors
    /// What the emission refuses, and the errors of [`new`](Self::new).
    pub fn of<B, F>(make: F) -> Result<Self, SetupError>
    where
        B: Block,
        F: FnOnce() -> B + Send + 'static,
    {
        Ok(Self::instance(&emitted(make)?)?)
    }

    /// Builds `spec` and makes an instance; what its reset does not reach is random.
    ///
    /// # Errors
    /// Those of [`verilator::build`], and a trace that cannot be written.
    pub fn new(spec: &Spec) -> Result<Self, verilator::Error> {
        Self::instance(&built(spec.clone())?)
    }

    fn instance(model: &Model) -> Result<Self, verilator::Error> {
        let seed = seed();
        let mut dut = model.instance_randomised(seed)?;
        let is_mutant = benches::choose(&mut dut);
        if let Some(dir) = trace_dir() {
            let thread = thread::current();
            let test = thread.name().unwrap_or("bench").replace("::", "-");
            dut.trace(Path::new(&dir).join(format!("{test}-{}.fst", model.top())))?;
        }
        let mut bench = Self::with_dut(dut, seed);
        if is_mutant {
            bench.life = benches::LIFE;
        }
        Ok(bench)
    }

    /// Takes an instance made elsewhere. Its input `rst`, if there is one, is the reset.
    pub fn with_dut(dut: Dut, seed: u64) -> Self {
        Self {
            rst: dut.input("rst").ok(),
            rng: Rng::with_seed(seed),
            dut,
            seed,
            cycle: 0,
            life: u64::MAX,
        }
    }

    /// The device, to find and read its ports.
    pub fn dut(&self) -> &Dut {
        &self.dut
    }

    /// The device, to drive ports that no agent does.
    pub fn dut_mut(&mut self) -> &mut Dut {
        &mut self.dut
    }

    /// The generator of the run, for stimulus that the seed is to repeat.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Cycles since the bench was made, those of resets among them.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Resets the agents, and the device for [`RESET_CYCLES`].
    pub fn reset(&mut self, agents: &mut [&mut dyn Agent]) {
        for agent in agents {
            agent.reset(&mut self.dut);
        }
        let Some(rst) = self.rst else { return };
        self.dut.set(rst, 1);
        self.dut.ticks(RESET_CYCLES);
        self.dut.set(rst, 0);
        self.cycle += RESET_CYCLES;
    }

    /// One clock cycle: the agents drive, the logic settles, the agents observe, the clock rises.
    ///
    /// # Errors
    /// A rule that an agent saw broken.
    pub fn step(&mut self, agents: &mut [&mut dyn Agent]) -> Result<(), Failure> {
        for agent in agents.iter_mut() {
            agent.drive(&mut self.dut, &mut self.rng);
        }
        self.dut.settle();
        for agent in agents.iter_mut() {
            agent
                .observe(&self.dut, self.cycle)
                .map_err(|what| self.failure(what))?;
        }
        self.dut.rise();
        self.cycle += 1;
        assert!(self.cycle < self.life, "at work after {} cycles", self.life);
        Ok(())
    }

    /// `cycles` cycles.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self, agents: &mut [&mut dyn Agent], cycles: u64) -> Result<(), Failure> {
        (0..cycles).try_for_each(|_| self.step(agents))
    }

    /// Runs until no agent waits for anything.
    ///
    /// # Errors
    /// As [`step`](Self::step); and if an agent still waits after `limit` cycles, with what it
    /// waits for.
    pub fn finish(&mut self, agents: &mut [&mut dyn Agent], limit: u64) -> Result<(), Failure> {
        for _ in 0..limit {
            if agents.iter().all(|agent| agent.pending().is_none()) {
                return Ok(());
            }
            self.step(agents)?;
        }
        let waits: Vec<_> = agents.iter().filter_map(|agent| agent.pending()).collect();
        if waits.is_empty() {
            return Ok(());
        }
        Err(self.failure(format!("after {limit} cycles: {}", waits.join("; "))))
    }

    /// A failure at the present cycle.
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        Failure {
            top: self.dut.model().top().into(),
            cycle: self.cycle,
            what: what.into(),
            seed: self.seed,
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if thread::panicking() {
            let top = self.dut.model().top();
            eprintln!(
                "`{top}`, cycle {}: repeat with FERROCE_SEED={}",
                self.cycle, self.seed
            );
        }
    }
}

/// Seed of this run: `$FERROCE_SEED`, else 1.
///
/// # Panics
/// If the variable is no decimal number of 64 bits.
pub fn seed() -> u64 {
    env::var("FERROCE_SEED").map_or(1, |text| {
        let seed = text.parse();
        seed.unwrap_or_else(|_| panic!("FERROCE_SEED is `{text}`; a decimal number is expected"))
    })
}
