//! Collects the payload of packets to send from host memory (docs/blocks/transmit.md), for two lanes.
//!
//! ```text
//!             ┌─► lane 0 ─► packet, payload
//!  beats ─► rotate
//!             └─► lane 1 ─► packet, payload
//! ```
//!
//! `dma_read` hands out one beat a cycle, so one rotator serves both lanes without holding up either. What a lane does with
//! its beats, its throughput and its latency: [`lane`].
//!
//! Of lane 1 room is taken ahead of the commands ([`ahead`]), which then never wait for the consumer of the payload; a packet of
//! it is one piece.
//!
//! `crowded` bounds what both lanes hold together ([`PAYLOAD`]); of lane 1 no room is given then.
//!
//! Assumes: in no cycle do both lanes get a beat; lane 1 gets no command for which no room was taken.
pub mod ahead;
pub mod lane;
pub mod space;

use crate::bus::types::{Activity, GatherCmd, PayloadSize, PayloadToken, ReadReq};
use crate::bus::valid::Valid;
use crate::egress::class_gate::PAYLOAD;
use crate::memory::types::GatherClaim;
use crate::prelude::*;

use ahead::GatherAhead;
use lane::GatherLane;

/// Lanes.
pub const LANES: usize = 2;

/// Payload collector: a store of 2 * 2^A beats and 2^P pieces under way a lane.
#[derive(Block)]
pub struct Gather<const W: usize, const K: usize, const A: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces to collect.
    pub command: [StreamIn<GatherCmd>; LANES],
    /// Lane 1: room is taken ahead of a command.
    pub reserve: Signal<In, Valid<PayloadSize>>,
    /// Lane 1: it is given back, and no command comes.
    pub give_back: Signal<In, Valid<PayloadSize>>,
    /// Lane 1: there is room ahead.
    pub room: Signal<Out, Bit>,
    /// No more is to be added: both lanes together hold what may be under way.
    pub crowded: Signal<Out, Bit>,
    /// Reads.
    pub request: [StreamOut<ReadReq>; LANES],
    /// Their answers.
    pub beats: [ReadBeatIn<W>; LANES],
    /// Of each packet: it is to be announced; else it is forgotten.
    pub wanted: [StreamIn<Bit>; LANES],
    /// Packets whose payload is there.
    pub packet: [StreamOut<PayloadToken>; LANES],
    /// The payload.
    pub payload: [PayloadOut<W>; LANES],
    /// Pieces that are not answered.
    pub activity: [Signal<Out, Activity>; LANES],
    lane: [GatherLane<W, K, A, P>; LANES],
    ahead: GatherAhead<K>,
    taken: Reg<Bits<16>>,
    crowded_q: Reg<Bit>,
    nothing: Zero<GatherClaim>,
    rotate: Rotate<W, K>,
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Gather<W, K, A, P> {
    /// Beats of both lanes from which on it is crowded.
    const MOST: u64 = PAYLOAD * 64 / K as u64;
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Logic for Gather<W, K, A, P> {
    describe!(
        "gather",
        format!("{W}_{A}_{P}"),
        "Collects the payload of packets from host memory."
    );

    #[kernel]
    fn update(&mut self) {
        for i in 0..2 {
            forward!(command[i] <= lane[i].command);
            forward!(request[i] <= lane[i].request);
            forward!(wanted[i] <= lane[i].wanted);
            forward!(packet[i] <= lane[i].packet);
            forward!(payload[i] <= lane[i].payload);
            forward!(beats[i] <= lane[i].beats);
            activity[i] = lane[i].activity;
            lane[i].rotated = rotate.rotated;
        }
        lane[0].ahead = false;
        lane[0].claim = nothing;
        lane[1].ahead = true;
        lane[1].claim = ahead.claim;
        copy!(ahead <= self; reserve, give_back);
        room = lane[1].ample & !crowded_q;
        taken = lane[0].taken + lane[1].taken;
        crowded_q = taken >= Self::MOST;
        crowded = crowded_q;
        rotate.enable = beats[0].valid | beats[1].valid;
        rotate.amount = lane[0].rotation;
        // behind `dma_read` both are the same data
        rotate.data = beats[0].data;
        if beats[1].valid {
            rotate.amount = lane[1].rotation;
            rotate.data = beats[1].data;
        }
    }
}
