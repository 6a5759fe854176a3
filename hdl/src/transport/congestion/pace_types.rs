//! What the calendar hears and remembers.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::swift_types::SwiftParams;
use super::types::{CongestionEventKind, DcqcnParams};
use crate::bus::payload::payload;
use crate::prelude::*;

/// What passes the calendar's pipeline.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum PaceKind {
    /// Nothing.
    None,
    /// A [`PaceOrder`].
    Order,
    /// A queue pair whose slot has come.
    Pop,
    /// The next slot comes.
    Turn,
    /// A rate changed: what was planned with the old one is taken back.
    Unplan,
    /// It is planned with the new one.
    Replan,
    /// A start long ago is moved up, so that times do not go round.
    Walk,
}

payload! {
    /// What a paced queue pair did, and wants.
    PaceOrder {
        /// Queue pair.
        qpn: Bits<16>,
        /// Bytes that were granted to it.
        bytes: Bits<17>,
        /// It wants to start again.
        pushes: Bit,
        /// It had nothing to send before: neither a grant comes with this, nor is a WQE of it under way.
        idle: Bit,
    }

    /// Whether a queue pair is paced, and how much of it may leave at once.
    PaceClass {
        /// It is paced.
        paced: Bit,
        /// Log2 of the bytes that its rate sends in 1024 cycles, 0 at least.
        span: Bits<5>,
        /// PSNs that congestion control lets it have outstanding; 0: any number.
        window: Bits<16>,
    }

    /// The rate of a queue pair from now on.
    PaceRate {
        /// Queue pair.
        qpn: Bits<16>,
        /// Cycles a byte, in 2^-20; 0 if nothing limits it.
        gap: Bits<31>,
        /// Log2 of the bytes that its rate sends in 1024 cycles, 0 at least.
        span: Bits<5>,
    }

    /// A send queue begins anew, by command.
    PaceRenewal {
        /// Queue pair.
        qpn: Bits<16>,
        /// What congestion control remembers of it is void.
        resets: Bit,
        /// Its limit changes.
        limits: Bit,
        /// Its limit in Mb/s; 0: none.
        rate: Bits<20>,
        /// Path MTU, IB code, if congestion control is by round trips; else 0.
        packet: Bits<3>,
    }

    /// Bytes were granted to a queue pair.
    PaceGrant {
        /// Queue pair.
        qpn: Bits<16>,
        /// Bytes, headers too.
        bytes: Bits<17>,
    }

    /// What happened to a reliable send queue, for its round trips.
    SendReport {
        /// Queue pair.
        qpn: Bits<16>,
        /// Ack, Nak, Timeout, Reset; or None, an RNR NAK.
        kind: CongestionEventKind,
        /// The oldest PSN that is not acknowledged. With `voids` the one behind all that was granted, of Reset the first one.
        psn: Bits<24>,
        /// What was granted and is not acknowledged is sent again.
        voids: Bit,
        /// Ack: by an acknowledgement alone, not by data.
        plain: Bit,
        /// Ack: of the PSNs acknowledged; 2^24 - 1 for more.
        bytes: Bits<24>,
        /// Reset: the incarnation that begins.
        incarnation: Bits<2>,
    }

    /// The packet of a queue pair whose round trip is measured.
    MeasuredPacket {
        /// Incarnation of the queue pair.
        incarnation: Bits<2>,
        /// One is measured.
        measures: Bit,
        /// The PSN behind it; else the PSN from which on no packet was sent before.
        psn: Bits<24>,
    }

    /// What the host says of the reaction point.
    CongestionSetup {
        /// CNPs slow queue pairs down.
        enable: Bit,
        /// Parameters.
        params: DcqcnParams,
        /// Parameters of Swift.
        swift: SwiftParams,
    }

    /// Something in the calendar's pipeline.
    PaceOp {
        /// What it is.
        kind: PaceKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Bytes, see [`PaceOrder`].
        bytes: Bits<17>,
        /// It is to be released, now or later.
        pushes: Bit,
        /// See [`PaceOrder`].
        idle: Bit,
    }

    /// What the calendar remembers of a queue pair.
    PaceState {
        /// Cycles a byte, in 2^-20.
        gap: Bits<31>,
        /// When it may start, in 2^-8 cycles.
        start: Bits<40>,
        /// Bytes of its latest grant.
        last: Bits<17>,
    }

    /// A rate of a queue pair, or none.
    RateLimit {
        /// It is limited.
        limited: Bit,
        /// Rate, Mb/s.
        rate: Bits<20>,
    }

    /// A slot of the wheel: a list of queue pairs.
    WheelSlot {
        /// There are some.
        held: Bit,
        /// The first.
        head: Bits<16>,
        /// The last.
        tail: Bits<16>,
    }
}
