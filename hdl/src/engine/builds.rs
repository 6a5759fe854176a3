//! Builds of the engine: the standard ones, which the tools know by width, and those of other tables.
use ferroce_proto::abi::regs::Params;

use super::{Engine, LOG_EQ};
use crate::emit::{self, Design, EmitError};
use crate::prelude::*;

/// Widths of the data path that can be built, in bits.
pub const WIDTHS: [usize; 2] = [512, 64];

/// Tables of the standard build.
pub const STANDARD: Params = Params {
    log_qp: 8,
    log_mr: 10,
    log_cq: 8,
    log_outstanding: 14,
    log_gid: 4,
    log_eq: LOG_EQ as u8,
};

const Q: usize = STANDARD.log_qp as usize;
const M: usize = STANDARD.log_mr as usize;
const C: usize = STANDARD.log_cq as usize;
const O: usize = STANDARD.log_outstanding as usize;

/// The Verilog of the standard build with a data path of `width` bits, one of [`WIDTHS`].
///
/// # Errors
/// What the emission refuses, as one text.
///
/// # Panics
/// If there is no such width.
pub fn verilog(width: usize) -> Result<Design, String> {
    emit::with_stack(|| match width {
        512 => wide::<Q, M, C, O>(),
        64 => narrow::<Q, M, C, O>(),
        _ => panic!("data path of {width} bits: {WIDTHS:?} can be built"),
    })
}

/// The Verilog of a build with a data path of 512 bits: 64 KiB of payload to send and 128 KiB of packet buffer, 10 us of
/// line rate. 2^`Q` queue pairs, 2^`M` memory regions, 2^`C` completion queues, 2^`O` outstanding messages; to be called
/// inside [`emit::with_stack`].
///
/// # Errors
/// What the emission refuses, as one text.
pub fn wide<const Q: usize, const M: usize, const C: usize, const O: usize>()
-> Result<Design, String> {
    emit_engine(Engine::<512, 64, Q, M, C, O, 9, 11, 10, 12, 8, 14, 66>::default())
}

/// As [`wide`], with a data path of 64 bits: 16 KiB of payload to send and 128 KiB of packet buffer.
///
/// # Errors
/// What the emission refuses, as one text.
pub fn narrow<const Q: usize, const M: usize, const C: usize, const O: usize>()
-> Result<Design, String> {
    emit_engine(Engine::<64, 8, Q, M, C, O, 10, 14, 13, 15, 11, 17, 528>::default())
}

fn emit_engine(mut engine: impl Block) -> Result<Design, String> {
    engine.connect_all();
    emit::verilog(&engine).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(EmitError::to_string).collect();
        lines.join("\n")
    })
}
