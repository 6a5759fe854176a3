//! The cards at both ends.

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
use crate::dut::Dut;

/// Queue pairs for the file: those of the build but numbers 0 and 1, which are reserved (IBA 3.9.2), and that of the
/// announcement.
fn max_qps(dut: Dut) -> u32 {
    let params = match dut {
        Dut::Model => DEFAULT_PARAMS,
        Dut::Rtl512 | Dut::Rtl64 => build::PARAMS,
    };
    (1 << params.log_qp) - 3
}

/// What is at both ends, in words.
pub(super) fn words(dut: Dut) -> String {
    match dut {
        Dut::Model => "golden models, whose host memory answers at once".into(),
        Dut::Rtl512 | Dut::Rtl64 => {
            format!(
                "RTL engines of {} bits, host memory after 1 us",
                dut.width()
            )
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
    let dut = options.dut;
    if wave && dut == Dut::Model {
        let text =
            "--wave shows an engine, and --dut model runs without one; leave one of them out";
        return Err(Usage(text.into()).into());
    }
    if !options.is_possible() {
        let (transport, op) = (options.transport, options.op);
        let text = format!("{transport} has no {op}; UC does WRITE and SEND, UD SEND, RC all");
        return Err(Usage(text).into());
    }
    let (qps, limit) = (options.qps, max_qps(dut));
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
        Dut::Rtl512 | Dut::Rtl64 => {
            let tracing = verilator::Options {
                trace: setup.wave.is_some(),
                ..verilator::Options::default()
            };
            let model = build::model(dut.width() as usize, &tracing)?;
            let mut engine = build::engine(&model, setup.memory, &rtl::Options::host(setup.seed))?;
            if let Some(wave) = setup.wave {
                engine.pins().dut().trace(wave)?;
            }
            Ok(Box::new(engine))
        }
    }
}
