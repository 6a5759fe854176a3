//! Beats of frames to send, between the assemblers and the ICRC.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use super::payload::payload;
use rust_hdl_core::prelude::*;

payload! {
    /// What goes with a beat of a frame to send. All but the first five fields are the same in every beat of a frame.
    FrameBeat {
        /// Number of the beat in its frame.
        index: Bits<10>,
        /// Last beat of the frame.
        last: Bit,
        /// All bytes are covered by the ICRC.
        whole: Bit,
        /// The first `tail` bytes are covered by the ICRC, which begins behind them. Never with `whole`; with neither,
        /// the beat holds the end of the ICRC and nothing else.
        partial: Bit,
        /// Bytes of the last covered beat, never 0: headers end at 2 modulo 4, payload and pad are whole words.
        tail: Bits<6>,
        /// Bytes of the last beat, never 0 for the same reason.
        bytes: Bits<6>,
        /// The frame is IPv6; else IPv4.
        ipv6: Bit,
        /// The frame has an 802.1Q tag.
        vlan: Bit,
        /// The packet is an acknowledgement.
        ack: Bit,
        /// It is a CNP.
        cnp: Bit,
        /// It is of the lane of responses.
        response: Bit,
        /// Its class.
        packet_class: Bits<2>,
        /// Bytes of the frame, the ICRC included.
        length: Bits<13>,
    }
}

/// Beats of frames, the producer's end: a stream, a beat a cycle within a frame.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "FrameIn"]
pub struct FrameOut<const W: usize> {
    /// Data, byte 0 in bits 7:0; bytes behind the covered ones are 0.
    pub data: Signal<Out, Bits<W>>,
    /// What goes with it.
    pub beat: Signal<Out, FrameBeat>,
    /// The beat is there to be taken.
    pub valid: Signal<Out, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Beats of frames, the consumer's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "FrameOut"]
pub struct FrameIn<const W: usize> {
    /// Data, byte 0 in bits 7:0; bytes behind the covered ones are 0.
    pub data: Signal<In, Bits<W>>,
    /// What goes with it.
    pub beat: Signal<In, FrameBeat>,
    /// The beat is there to be taken.
    pub valid: Signal<In, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// Beats of frames as headers and payload that are yet to be put together, the producer's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "PartsIn"]
pub struct PartsOut<const W: usize, const K: usize> {
    /// Bytes of the headers, byte 0 in bits 7:0; 0 behind them.
    pub header: Signal<Out, Bits<W>>,
    /// Bytes of the payload.
    pub payload: Signal<Out, Bits<W>>,
    /// Lanes that hold payload.
    pub lanes: Signal<Out, Bits<K>>,
    /// What goes with the beat.
    pub beat: Signal<Out, FrameBeat>,
    /// The beat is there to be taken.
    pub valid: Signal<Out, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Beats of frames as headers and payload, the consumer's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "PartsOut"]
pub struct PartsIn<const W: usize, const K: usize> {
    /// Bytes of the headers, byte 0 in bits 7:0; 0 behind them.
    pub header: Signal<In, Bits<W>>,
    /// Bytes of the payload.
    pub payload: Signal<In, Bits<W>>,
    /// Lanes that hold payload.
    pub lanes: Signal<In, Bits<K>>,
    /// What goes with the beat.
    pub beat: Signal<In, FrameBeat>,
    /// The beat is there to be taken.
    pub valid: Signal<In, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<Out, Bit>,
}
