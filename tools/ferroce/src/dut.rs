//! The device under test: `--dut` of every task that runs one.

use anyhow::Result;
use clap::ValueEnum;

use crate::tools;

/// The device under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dut {
    /// The golden model: its behaviour without its timing.
    Model,
    /// The emitted Verilog with a data path of 512 bits.
    #[default]
    Rtl512,
    /// The emitted Verilog with a data path of 64 bits.
    Rtl64,
}

impl Dut {
    /// Bits of the data path; a beat of the model has 512.
    #[must_use]
    pub const fn width(self) -> u32 {
        match self {
            Self::Model | Self::Rtl512 => 512,
            Self::Rtl64 => 64,
        }
    }

    /// As the command line names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Rtl512 => "rtl512",
            Self::Rtl64 => "rtl64",
        }
    }

    /// What builds the engine is there.
    ///
    /// # Errors
    /// The tools that are missing.
    pub fn ensure_buildable(self) -> Result<()> {
        match self {
            Self::Model => Ok(()),
            _ => tools::ensure_present(tools::ENGINE),
        }
    }
}

/// The device under test of a task that is about the Verilog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The emitted Verilog with a data path of 512 bits.
    #[default]
    Rtl512,
    /// The emitted Verilog with a data path of 64 bits.
    Rtl64,
}

impl Engine {
    /// Bits of the data path.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Self::Rtl512 => 512,
            Self::Rtl64 => 64,
        }
    }
}
