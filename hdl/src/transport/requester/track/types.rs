//! Packed types inside `track`. First field = lowest bits.

#![allow(missing_docs)] // the accessors that the derive generates have no documentation

use rust_hdl_core::prelude::*;

/// What an event is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum TrackKind {
    /// A response arrived.
    Response,
    /// A READ or atomic is about to be sent.
    Issue,
    /// The send queue went into error.
    Failed,
    /// The queue pair starts afresh.
    Reset,
}

/// What `track` keeps of an `SqCtx`.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct TrackImage {
    /// Address of the send queue.
    pub sq_base: Bits<64>,
    /// Log2 of its slots.
    pub sq_log: Bits<4>,
    /// Protection domain.
    pub pd: Bits<24>,
    /// Path MTU, IB code.
    pub mtu: Bits<3>,
}

/// A READ or atomic under way.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct ReadEntry {
    /// First PSN.
    pub psn: Bits<24>,
    /// Responses.
    pub packets: Bits<24>,
    /// Bytes.
    pub length: Bits<32>,
    /// Place of its WQE in the ring, in slots.
    pub slot: Bits<16>,
    /// Slots of the WQE.
    pub slots: Bits<3>,
    /// Of these, slots before the ring wraps.
    pub head: Bits<3>,
    /// An atomic; else a READ.
    pub atomic: Bit,
}

/// State of a queue pair.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct TrackState {
    /// Responses are discarded.
    pub closed: Bit,
    /// The oldest entry of the ring.
    pub head: Bits<4>,
    /// Entries.
    pub count: Bits<5>,
    /// A response of the oldest was taken, and the following fields count.
    pub begun: Bit,
    /// PSN of the next one.
    pub due: Bits<24>,
    /// Responses to come.
    pub left: Bits<24>,
    /// Bytes taken.
    pub offset: Bits<32>,
    /// Bytes to come.
    pub rest: Bits<32>,
}

/// An event for one queue pair. Fields that a kind does not name are ignored.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct TrackEvent {
    /// What it is.
    pub kind: TrackKind,
    /// Queue pair.
    pub qpn: Bits<16>,
    /// Response: BTH PSN. Issue: first PSN.
    pub psn: Bits<24>,
    /// Response: AETH syndrome.
    pub syndrome: Bits<8>,
    /// Response: of a READ.
    pub read: Bit,
    /// Response, Issue: of an atomic.
    pub atomic: Bit,
    /// Response: LAST or ONLY.
    pub last: Bit,
    /// Response: payload bytes.
    pub plen: Bits<13>,
    /// Response: lane of the first payload byte.
    pub lane: Bits<6>,
    /// Response: buffered beats.
    pub beats: Bits<10>,
    /// Issue: responses.
    pub packets: Bits<24>,
    /// Issue: bytes.
    pub length: Bits<32>,
    /// Issue: first slot of the WQE.
    pub index: Bits<16>,
    /// Issue: its slots.
    pub slots: Bits<3>,
    /// Reset: the send queue starts.
    pub starts: Bit,
}

/// A queue pair that failed or starts afresh.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct TrackControl {
    /// Queue pair.
    pub qpn: Bits<16>,
    /// It is reset; else it failed.
    pub reset: Bit,
    /// With `reset`: and starts.
    pub starts: Bit,
}

/// What stage C finds out about an event and the oldest entry, for the decision.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct TrackTerms {
    /// A READ or atomic is under way.
    pub has: Bit,
    /// The PSN is the one expected.
    pub at: Bit,
    /// It is before that.
    pub before_expected: Bit,
    /// Data with a good AETH or none.
    pub data: Bit,
    /// Good AETH or none.
    pub good: Bit,
    /// The next response of the oldest is its last.
    pub single: Bit,
    /// The payload is as long as what is left.
    pub fits: Bit,
    /// The payload is as long as the MTU.
    pub full: Bit,
    /// PSN expected.
    pub expected: Bits<24>,
    /// State after the response, if it is taken and not the last: PSN due.
    pub due: Bits<24>,
    /// Likewise: responses to come.
    pub left: Bits<24>,
    /// Bytes before this response.
    pub offset: Bits<32>,
    /// State after it: bytes taken.
    pub offset_next: Bits<32>,
    /// State after it: bytes to come.
    pub rest: Bits<32>,
    /// Address of the WQE.
    pub addr: Bits<64>,
    /// Address of the send queue.
    pub base: Bits<64>,
    /// Protection domain.
    pub pd: Bits<24>,
    /// Slots of the WQE.
    pub slots: Bits<3>,
    /// Of these, before the ring wraps.
    pub head: Bits<3>,
    /// The oldest is an atomic.
    pub atomic: Bit,
    /// Issue: slots from the WQE to the end of the ring.
    pub to_end: Bits<17>,
}
