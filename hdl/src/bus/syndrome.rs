//! Syndromes of the AETH that the engine makes or knows (IB1 9.7.5.2.8).
use ferroce_proto::wire::{NakCode, Syndrome};

/// ACK.
pub const ACK: u8 = Syndrome::ACK.bits();
/// RNR NAK; the code of the timer goes into its low bits.
pub const RNR: u8 = Syndrome::RnrNak { timer: 0 }.bits();
/// NAK: PSN sequence error.
pub const NAK_SEQUENCE: u8 = Syndrome::Nak(NakCode::PsnSequence).bits();
/// NAK: invalid request.
pub const NAK_INVALID: u8 = Syndrome::Nak(NakCode::InvalidRequest).bits();
/// NAK: remote access error.
pub const NAK_ACCESS: u8 = Syndrome::Nak(NakCode::RemoteAccess).bits();
/// NAK: remote operational error.
pub const NAK_OPERATIONAL: u8 = Syndrome::Nak(NakCode::RemoteOperational).bits();
