//! InfiniBand transport headers and the invariant CRC.
pub mod assemble;
pub mod bare_frame;
pub mod ext_tx;
pub mod header_layout;
pub mod header_tx;
pub mod icrc_check;
pub mod icrc_insert;
pub mod icrc_mask;
pub mod opcode_decode;
pub mod tx_entry;
pub mod tx_types;
pub mod wiring;
