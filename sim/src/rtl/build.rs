//! The standard builds of the engine, emitted and verilated.

use std::rc::Rc;
use std::sync::OnceLock;

use ferroce_hdl::engine::builds;
use ferroce_proto::abi::regs::Params;

use super::{Engine, Options, Pins, VerilatedPins, verilated};
use crate::axi::RemotePort;
use crate::memory::HostMemory;
use crate::remote::RemoteMemory;
use crate::verilator::{self, Model, Spec};

/// Tables of the standard builds.
pub const PARAMS: Params = builds::STANDARD;

/// An engine that cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no such width.
    #[error("no engine has a data path of {0} bits; choose one of {widths:?}", widths = builds::WIDTHS)]
    Width(usize),
    /// The engine has no Verilog of the same meaning.
    #[error("the engine cannot be emitted:\n{0}")]
    Emit(String),
    /// The Verilog could not be built.
    #[error(transparent)]
    Verilator(#[from] verilator::Error),
}

/// Verilog and ports of the standard build with a data path of `width` bits, emitted once in a process.
fn spec(width: usize) -> Result<&'static Spec, BuildError> {
    static SPECS: [OnceLock<Result<Spec, String>>; builds::WIDTHS.len()] =
        [const { OnceLock::new() }; builds::WIDTHS.len()];
    let found = builds::WIDTHS.iter().position(|&known| known == width);
    let slot = &SPECS[found.ok_or(BuildError::Width(width))?];
    slot.get_or_init(|| builds::verilog(width).map(|design| Spec::from(&design)))
        .as_ref()
        .map_err(|text| BuildError::Emit(text.clone()))
}

/// Emits and verilates the standard build with a data path of `width` bits, or takes it from the cache.
///
/// # Errors
/// See [`BuildError`].
pub fn model(width: usize, options: &verilator::Options) -> Result<Model, BuildError> {
    Ok(verilator::build(spec(width)?, options)?)
}

/// Verilates an engine with other tables and a data path of `width` bits, or takes it from the cache: module `top` of a text that
/// was emitted.
///
/// # Errors
/// What Verilator says, also of ports that are not those of an engine.
pub fn model_of(
    width: usize,
    top: &str,
    source: &str,
    options: &verilator::Options,
) -> Result<Model, verilator::Error> {
    let spec = Spec::new(top, source).clock("clk");
    verilator::build(&spec.ports(verilated::ports(width / 8)), options)
}

/// A card of its own of a [`model`], in a world whose DMA reaches `memory`; its state before reset is random.
///
/// # Errors
/// The instance cannot be made.
pub fn engine(
    model: &Model,
    memory: Rc<dyn HostMemory>,
    options: &Options,
) -> Result<Engine<VerilatedPins>, verilator::Error> {
    let pins = VerilatedPins::new(model.instance_randomised(options.seed)?)?;
    Ok(Engine::new(pins, memory, options))
}

/// A card of its own of a [`model`], in a world whose DMA reaches memory that answers later; its state before reset is random.
///
/// # Errors
/// The instance cannot be made.
pub fn remote_engine(
    model: &Model,
    memory: Rc<dyn RemoteMemory>,
    options: &Options,
) -> Result<Engine<VerilatedPins>, verilator::Error> {
    let pins = VerilatedPins::new(model.instance_randomised(options.seed)?)?;
    let port = RemotePort::new(memory, pins.lanes());
    Ok(Engine::with_memory(pins, port, options))
}
