//! Where frames wait for the wire, by class: queues, pause, and whose turn it is (`docs/classes.md`).
pub mod account;
pub mod class_egress;
pub mod class_entry;
pub mod class_of;
pub mod class_port;
pub mod class_queue;
pub mod class_room;
pub mod class_turn;
pub mod part_ring;
pub mod passage;
pub mod pause_in;
pub mod pause_watch;
pub mod types;

use crate::emit::{self, Design, EmitError};
use class_egress::ClassEgress;
use class_port::ClassPort;
use class_room::ClassRoom;
use ferroce_proto::abi::classes;

/// Classes.
pub const CLASSES: usize = classes::CLASSES;
/// Queues: of each class one for data, and behind those one each for acknowledgements and CNPs.
pub const QUEUES: usize = 2 * CLASSES;
/// Bytes of the largest frame: a payload of 4096 and all headers that there are.
const LARGEST: usize = 4224;
/// Bytes of a queue, as a logarithm.
const LOG_BYTES: usize = 14;

/// The queues, 16 KiB each, of beats of 512 bits.
pub type Wide =
    ClassEgress<512, 64, QUEUES, { LOG_BYTES - 6 }, { LOG_BYTES - 3 }, { LARGEST / 64 }>;
/// Of 64 bits.
pub type Narrow = ClassEgress<64, 8, QUEUES, { LOG_BYTES - 3 }, LOG_BYTES, { LARGEST / 8 }>;
/// The same queues with the pauses of the peer, of beats of 512 bits.
pub type WidePort = ClassPort<512, 64, { LOG_BYTES - 6 }, { LOG_BYTES - 3 }, { LARGEST / 64 }>;
/// Of 64 bits.
pub type NarrowPort = ClassPort<64, 8, { LOG_BYTES - 3 }, LOG_BYTES, { LARGEST / 8 }>;

/// Room of parts of 64 KiB with their headers, in beats of 512 bits; one waits 16 us.
pub type WideRoom = ClassRoom<8, 12, 1100>;
/// In beats of 64 bits; one waits 131 us.
pub type NarrowRoom = ClassRoom<8, 15, 8500>;

/// The Verilog of the room of parts, for a data path of `width` bits, 512 or 64.
///
/// # Errors
/// What the emission refuses.
pub fn room(width: usize) -> Result<Design, Vec<EmitError>> {
    emit::with_stack(|| match width {
        512 => emit::verilog(&WideRoom::default()),
        _ => emit::verilog(&NarrowRoom::default()),
    })
}

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
