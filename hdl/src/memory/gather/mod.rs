//! Collects the payload of packets to send from host memory (docs/architecture.md 3.4), for two lanes.
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
//! Assumes: in no cycle do both lanes get a beat.
pub mod lane;
pub mod space;

use crate::bus::types::{Activity, GatherCmd, PayloadToken, ReadReq};
use crate::prelude::*;

use lane::GatherLane;

/// Lanes.
pub const LANES: usize = 2;

/// Payload collector: a store of 2 * 2^A beats and 2^P pieces under way a lane.
#[derive(LogicBlock, Default)]
pub struct Gather<const W: usize, const K: usize, const A: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces to collect.
    pub command: [StreamIn<GatherCmd>; LANES],
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
    rotate: Rotate<W, K>,
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Logic for Gather<W, K, A, P> {
    describe!(
        "gather",
        format!("{W}_{A}_{P}"),
        "Collects the payload of packets from host memory."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, rotate);
        for i in 0..2 {
            ClkRst::link(&mut self.clock, &mut self.lane[i].clock);
            StreamIn::<GatherCmd>::link(&mut self.command[i], &mut self.lane[i].command);
            StreamOut::<ReadReq>::link(&mut self.request[i], &mut self.lane[i].request);
            StreamIn::<Bit>::link(&mut self.wanted[i], &mut self.lane[i].wanted);
            StreamOut::<PayloadToken>::link(&mut self.packet[i], &mut self.lane[i].packet);
            PayloadOut::<W>::link(&mut self.payload[i], &mut self.lane[i].payload);
            ReadBeatIn::<W>::link(&mut self.beats[i], &mut self.lane[i].beats);
            self.activity[i].next = self.lane[i].activity.val();
            self.lane[i].rotated.next = self.rotate.rotated.val();
        }
        self.rotate.enable.next = self.beats[0].valid.val() | self.beats[1].valid.val();
        self.rotate.amount.next = self.lane[0].rotation.val();
        // behind `dma_read` both are the same data
        self.rotate.data.next = self.beats[0].data.val();
        if self.beats[1].valid.val() {
            self.rotate.amount.next = self.lane[1].rotation.val();
            self.rotate.data.next = self.beats[1].data.val();
        }
    }
}
