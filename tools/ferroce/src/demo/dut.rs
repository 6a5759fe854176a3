//! The cards at both ends.

use std::fmt;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{self, build};
use ferroce_sim::verilator;

use super::Options;
use crate::Usage;

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dut {
    /// The golden model.
    Model,
    /// The emitted Verilog.
    Rtl {
        /// Data path in bits, 512 or 64.
        width: u32,
    },
}

impl Dut {
    /// Queue pairs for the file: those of the build but numbers 0 and 1, which are reserved (IBA 3.9.2), and that of
    /// the announcement.
    fn max_qps(self) -> u32 {
        let params = match self {
            Self::Model => DEFAULT_PARAMS,
            Self::Rtl { .. } => build::PARAMS,
        };
        (1 << params.log_qp) - 3
    }
}

impl fmt::Display for Dut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("golden models, whose host memory answers at once"),
            Self::Rtl { width } => {
                write!(f, "RTL engines of {width} bits, host memory after 1 us")
            }
        }
    }
}

/// Surroundings of one card.
pub(crate) struct Setup<'a> {
    /// What its DMA reaches.
    pub(crate) memory: Rc<dyn HostMemory>,
    /// Seed of the timing of host memory.
    pub(crate) seed: u64,
    /// Where its waveform goes.
    pub(crate) wave: Option<&'a Path>,
}

/// Checks that what was asked for can be had, before anything is built or written.
///
/// # Errors
/// [`Usage`]: more queue pairs than the build has, an operation that the transport does not have, or a waveform of
/// something that has none.
pub(super) fn check(options: &Options, wave: bool) -> Result<()> {
    let dut = options.dut();
    if wave && dut == Dut::Model {
        let text =
            "--wave shows the RTL engine, and --model runs without one; leave one of them out";
        return Err(Usage(text.into()).into());
    }
    if !options.is_possible() {
        let (transport, op) = (options.transport, options.op);
        let text = format!("{transport} has no {op}; UC does WRITE and SEND, UD SEND, RC all");
        return Err(Usage(text).into());
    }
    let (qps, limit) = (options.qps, dut.max_qps());
    if qps > limit {
        let text = format!("--qps {qps} is more than this build has; give 1 to {limit}");
        return Err(Usage(text).into());
    }
    Ok(())
}

/// Builds a card.
///
/// Host memory of an RTL engine answers reads after 1 us (230 to 270 cycles) and writes after half of
/// it, in any order that AXI permits; that of the model answers at once.
pub(crate) fn nic(dut: Dut, setup: Setup<'_>) -> Result<Box<dyn Nic>> {
    match dut {
        Dut::Model => Ok(Box::new(Model::new(DEFAULT_PARAMS, setup.memory))),
        Dut::Rtl { width } => {
            let tracing = verilator::Options {
                trace: setup.wave.is_some(),
                ..verilator::Options::default()
            };
            let model = build::model(width as usize, &tracing)?;
            let mut engine = build::engine(&model, setup.memory, &rtl::Options::host(setup.seed))?;
            if let Some(wave) = setup.wave {
                engine.pins().dut().trace(wave)?;
            }
            Ok(Box::new(engine))
        }
    }
}
