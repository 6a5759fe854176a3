//! State and inputs of Swift.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::types::CongestionEvent;
use crate::bus::payload::payload;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum SwiftStep {
    /// Waits for an event.
    Idle,
    /// Its queue pair is read.
    Load,
    /// How long ago the last decrease was.
    Judge,
    /// What kind it is.
    Sort,
    /// The root of the window is there.
    Root,
    /// The target delay is.
    Aim,
    /// The delay is below it or not.
    Decide,
    /// What the window grows by is there.
    Grow,
    /// What a decrease takes off.
    Share,
    /// The decrease.
    Cut,
    /// Its product is there.
    Cutting,
    /// The window is taken within its bounds.
    Clamp,
    /// Has it decreased, is it below a packet?
    Settle,
    /// Its rate is there.
    Rate,
    /// The update leaves.
    Leave,
}

payload! {
    /// Parameters of Swift, as `ferroce_sim::model::congestion::SwiftParams`; a packet is the path MTU. Values beyond the ranges of docs/congestion.md are not looked for here.
    SwiftParams {
        /// Target delay of a large window, ns.
        base_target: Bits<20>,
        /// Additive increase, 1/256 packet a round trip.
        ai: Bits<16>,
        /// Multiplicative decrease, 1/1024 of the excess of the delay.
        beta: Bits<11>,
        /// What a decrease takes off at most, 1/1024 of the window.
        max_mdf: Bits<11>,
        /// What a small window adds to the target delay at most, ns.
        fs_range: Bits<20>,
        /// What a window of one packet adds, ns, before `fs_beta` is taken off.
        fs_alpha: Bits<20>,
        /// See `fs_alpha`.
        fs_beta: Bits<20>,
        /// Least window, 1/1024 packet.
        min_cwnd: Bits<11>,
        /// Largest window, packets.
        max_cwnd: Bits<12>,
        /// Window of a new queue pair, packets.
        initial_cwnd: Bits<12>,
        /// Timeouts in a row, the last of which sets the least window.
        retx_reset_threshold: Bits<3>,
    }

    /// What Swift remembers of a queue pair.
    SwiftState {
        /// Bytes that may be outstanding, in 2^-8.
        cwnd: Bits<32>,
        /// The last round trip that is known, in cycles; 0: none.
        rtt: Bits<24>,
        /// There was a decrease.
        decreased: Bit,
        /// The last one, in cycles.
        decreased_at: Bits<44>,
        /// Timeouts since the last acknowledgement.
        retransmits: Bits<3>,
        /// Path MTU, IB code; 0: the queue pair is not Swift's.
        packet: Bits<3>,
    }

    /// An event was taken.
    SwiftLook {
        /// In which cycle.
        at: Bits<44>,
        /// The event.
        taken: CongestionEvent,
        /// What is remembered now.
        state: SwiftState,
    }

    /// A task of the unit that multiplies and divides.
    SwiftOrder {
        /// First factor.
        a: Bits<32>,
        /// Second factor.
        b: Bits<16>,
        /// Divisor.
        d: Bits<26>,
        /// Zeros behind the product.
        shift: Bits<4>,
        /// The product is divided.
        divides: Bit,
    }
}
