//! What the host sees: registers, doorbells, rings in host memory, commands and context images.
//!
//! Every structure is little-endian and declared once, as an ordered list of bit fields from bit 0
//! (the least significant bit of byte 0) upwards. The list yields the plain value type used by the
//! driver and the golden model, and, through its `with_*!` macro, the packed type of the hardware.

mod layout;

pub mod classes;
pub mod cmd;
mod counters;
pub mod cq;
pub mod doorbell;
pub mod eq;
pub mod exception;
pub mod mr;
pub mod pci;
pub mod qpc;
pub mod rates;
pub mod regs;
pub mod wqe;

/// Alignment in host memory of the rings whose address a context image holds, bytes.
pub const RING_ALIGN: u64 = 64;
/// Bytes of a consumer record, and its alignment.
pub const RECORD_BYTES: u64 = 4;

pub use layout::{Code, Field, Structure, get_bits, set_bits};
