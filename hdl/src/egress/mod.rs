//! Where frames wait for the wire, by class: queues, pause, and whose turn it is (`docs/classes.md`).
pub mod account;
pub mod ack_share;
pub mod claims;
pub mod class_egress;
pub mod class_entry;
pub mod class_gate;
pub mod class_of;
pub mod class_port;
pub mod class_queue;
pub mod class_turn;
pub mod held_queues;
pub mod host_gate;
pub mod passage;
pub mod path_marks;
pub mod pause_in;
pub mod pause_watch;
pub mod types;

use crate::emit::{self, Design, EmitError};
use class_egress::ClassEgress;
use class_port::ClassPort;
use ferroce_proto::abi::classes;

/// Classes.
pub const CLASSES: usize = classes::CLASSES;
/// Queues: of each class one for data, and behind those one each for acknowledgements and CNPs.
pub const QUEUES: usize = 2 * CLASSES;
/// Those of data, a bit of each.
const DATA: u64 = (1 << CLASSES) - 1;
/// Bytes of the largest frame: a payload of 4096 and all headers that there are.
const LARGEST: usize = 4224;
/// Bytes of the queues of a class, as a logarithm.
const LOG_BYTES: usize = 18;
/// Of these, bytes for acknowledgements and CNPs.
const LOG_CONTROL: usize = 14;
/// The others.
const DATA_BYTES: u64 = (1 << LOG_BYTES) - (1 << LOG_CONTROL);

/// The queues, of beats of 512 bits.
pub type Wide = ClassEgress<
    512,
    64,
    { LOG_BYTES - 6 },
    { LOG_CONTROL - 6 },
    { LOG_BYTES - 4 },
    { LARGEST / 64 },
>;
/// Of 64 bits.
pub type Narrow =
    ClassEgress<64, 8, { LOG_BYTES - 3 }, { LOG_CONTROL - 3 }, { LOG_BYTES - 1 }, { LARGEST / 8 }>;
/// The same queues with the pauses of the peer, of beats of 512 bits.
pub type WidePort =
    ClassPort<512, 64, { LOG_BYTES - 6 }, { LOG_CONTROL - 6 }, { LOG_BYTES - 4 }, { LARGEST / 64 }>;
/// Of 64 bits.
pub type NarrowPort =
    ClassPort<64, 8, { LOG_BYTES - 3 }, { LOG_CONTROL - 3 }, { LOG_BYTES - 1 }, { LARGEST / 8 }>;

/// The Verilog of the queues with the pauses of the peer, for a data path of `width` bits, 512 or 64.
///
/// # Errors
/// What the emission refuses.
pub fn standard(width: usize) -> Result<Design, Vec<EmitError>> {
    emit::with_stack(|| match width {
        512 => emit::verilog(&WidePort::default()),
        _ => emit::verilog(&NarrowPort::default()),
    })
}
