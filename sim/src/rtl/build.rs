//! The standard builds of the engine, emitted and verilated.

use std::rc::Rc;

use ferroce_hdl::engine::builds;

use super::{Engine, Options, VerilatedPins};
use crate::memory::HostMemory;
use crate::verilator::{self, Model, Spec};

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

/// Emits and verilates the standard build with a data path of `width` bits, or takes it from the cache.
///
/// # Errors
/// See [`BuildError`].
pub fn model(width: usize, options: &verilator::Options) -> Result<Model, BuildError> {
    if !builds::WIDTHS.contains(&width) {
        return Err(BuildError::Width(width));
    }
    let design = builds::verilog(width).map_err(BuildError::Emit)?;
    Ok(verilator::build(&Spec::from(&design), options)?)
}

/// A card of its own of a [`model`], in a world whose DMA reaches `memory`.
///
/// # Errors
/// The instance cannot be made.
pub fn engine(
    model: &Model,
    memory: Rc<dyn HostMemory>,
    options: &Options,
) -> Result<Engine<VerilatedPins>, verilator::Error> {
    let pins = VerilatedPins::new(model.instance()?)?;
    Ok(Engine::new(pins, memory, options))
}
