//! InfiniBand transport headers and the invariant CRC.
pub mod icrc_check;
pub mod opcode_decode;
