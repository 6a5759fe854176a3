//! What is to be moved: of each piece a move and its write bursts, of a packet that is not written a move that drops its
//! payload.
use super::types::{Move, Run};
use crate::bus::axi;
use crate::bus::types::WriteCmd;
use crate::memory::align::Align;
use crate::memory::split::Split;
use crate::memory::types::Range;
use crate::prelude::*;

/// Planning in front of [`mover`](super::mover). Throughput: a piece a cycle.
#[derive(Block)]
pub struct MovePlan<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces of the packets.
    pub runs: StreamIn<Run>,
    /// One a packet: it is to be written; else its payload is dropped.
    pub plan: StreamIn<Bit>,
    /// Write bursts.
    pub command: StreamOut<WriteCmd>,
    /// What is to be moved.
    pub moves: StreamOut<Move>,

    split: Split<K>,
    align: Align<K>,
    commands: Hold<WriteCmd>,
    planned: Skid<Move>,
    /// The next run is the first of its packet.
    #[init(Reg::new(true))]
    fresh: Reg<Bit>,
    lane: Dff<Bits<6>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<6>>,
    #[init(Constant::new(u64::from(axi::burst_size(K)).to_bits()))]
    log_beat: Constant<Bits<3>>,
    #[init(Constant::new(((axi::burst_bytes(K) / K) as u64 - 1).to_bits()))]
    last_index: Constant<Bits<8>>,
}

impl<const K: usize> Logic for MovePlan<K> {
    describe!(
        "scatter_plan",
        format!("{K}"),
        "Plans moves and write bursts of pieces."
    );

    #[kernel]
    fn update(&mut self) {
        let source = if fresh { runs.payload.lane } else { lane };
        align.source = source;
        align.target = runs.payload.addr.resize::<6>() & lanes;
        align.len = runs.payload.len;
        let write = plan.payload & (runs.payload.len != 0);
        let idle = !write & !runs.payload.last;
        let can_plan = runs.valid & plan.valid & planned.s.ready & split.s.ready;
        runs.ready = can_plan;
        plan.ready = can_plan & runs.payload.last;
        if can_plan {
            fresh = runs.payload.last;
            lane = if write { align.source_next } else { source };
        }

        planned.s.valid = can_plan & !idle;
        planned.s.payload = Move {
            rotation: align.fit.rotation,
            start: align.fit.start,
            first_end: align.fit.first_end,
            last_end: align.fit.last_end,
            index: (runs.payload.addr >> log_beat).resize::<8>() & last_index,
            beats: if write {
                align.source_more + 1
            } else {
                runs.payload.beats
            },
            keep: write & !runs.payload.last & (align.source_next != 0),
            discard: !write,
            last: runs.payload.last,
        };
        forward!(moves <= planned.m);

        split.s_fits = runs.payload.fits;
        split.s.valid = can_plan & write;
        split.s.payload = Range {
            addr: runs.payload.addr,
            more: runs.payload.len - 1,
            tag: 0,
        };
        commands.s.valid = split.m.valid;
        copy!(commands.s.payload <= split.m.payload; addr, len);
        split.m.ready = commands.s.ready;
        forward!(command <= commands.m);
    }
}
