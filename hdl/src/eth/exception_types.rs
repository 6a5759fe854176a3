//! Types of the exception queue.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::payload::payload;
use rust_hdl_core::prelude::*;

payload! {
    /// A received beat as it came, whatever its frame is. All 0 without a beat.
    RawBeat {
        /// There is a beat.
        valid: Bit,
        /// Last beat of its frame.
        last: Bit,
        /// With `last`: the frame is well addressed but not RoCEv2.
        not_roce: Bit,
        /// Bytes of the beat, 1 to K.
        bytes: Bits<7>,
    }

    /// What the host says about the exception queue (`ferroce_proto::abi::exception`).
    ExceptionSetup {
        /// Address of the rings; bits 11:0 are 0.
        base: Bits<64>,
        /// Log2 of the slots of each ring, 0 to 8.
        log_slots: Bits<4>,
        /// Slots of 16384 bytes; else of 2048.
        large: Bit,
        /// The queue is on.
        on: Bit,
        /// Received frames that the host is done with.
        rx_consumer: Bits<16>,
        /// One event is to be given; one cycle, in which `rx_consumer` is as written with it.
        arm: Bit,
        /// Frames to send that the host has handed over.
        tx_producer: Bits<16>,
    }
}

/// Bytes of a slot in front of its frame.
pub const HEAD_BYTES: u64 = ferroce_proto::abi::exception::HEAD_BYTES as u64;
/// Longest frame of a small and of a large slot.
pub const LONGEST: u64 =
    (ferroce_proto::abi::exception::SLOT_BYTES - ferroce_proto::abi::exception::HEAD_BYTES) as u64;
pub const LONGEST_LARGE: u64 = (ferroce_proto::abi::exception::LARGE_SLOT_BYTES
    - ferroce_proto::abi::exception::HEAD_BYTES) as u64;
/// Log2 of the bytes of a slot.
pub const SLOT_SHIFT: u64 = ferroce_proto::abi::exception::SLOT_BYTES.ilog2() as u64;
pub const LARGE_SLOT_SHIFT: u64 = ferroce_proto::abi::exception::LARGE_SLOT_BYTES.ilog2() as u64;
