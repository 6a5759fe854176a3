//! Each event to the algorithm of its queue pair, and a Reset to both.
//!
//! A Reset says which of the two it is. It waits 8 cycles, so that what the network did to the queue pair before comes first, and until
//! both algorithms have taken it. Latency: a cycle, of feedback two. An event a cycle.
use super::types::*;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Choice of 2^Q queue pairs.
#[derive(Block)]
pub struct Choice<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Cnp, Sent, Reset.
    pub s: StreamIn<CongestionEvent>,
    /// Ack, Nak, Timeout.
    pub feedback: Signal<In, Valid<CongestionEvent>>,
    /// Cnp, Sent, Reset for DCQCN.
    pub dcqcn: StreamOut<CongestionEvent>,
    /// Ack, Nak, Timeout for Swift.
    pub swift: Signal<Out, Valid<CongestionEvent>>,
    /// Reset for Swift.
    pub swift_resets: StreamOut<CongestionEvent>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    /// Queue pairs of Swift, for the stream and for the feedback.
    chosen: Ram<Bit, Q>,
    chosen_too: Ram<Bit, Q>,
    sweep: Reg<Bits<Q>>,
    swept: Reg<Bit>,
    holds: Reg<Bit>,
    held: Dff<CongestionEvent>,
    /// Cycles for which a Reset waits.
    waits: Reg<Bits<3>>,
    told_dcqcn: Reg<Bit>,
    told_swift: Reg<Bit>,
    came: Reg<Bit>,
    came_event: Dff<CongestionEvent>,
    swift_q: Reg<Valid<CongestionEvent>>,
}

impl<const Q: usize> Logic for Choice<Q> {
    describe!(
        "congestion_choice",
        format!("q{Q}"),
        "Each event to the algorithm of its queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let kind = held.kind;
        let resets = holds & (kind == CongestionEventKind::Reset);
        let goes = resets & !waits.any();
        let drops = (kind == CongestionEventKind::Cnp) & chosen.rdata;
        dcqcn.valid = (holds & !resets & !drops) | (goes & !told_dcqcn);
        dcqcn.payload = held;
        swift_resets.valid = goes & !told_swift;
        swift_resets.payload = held;
        let dcqcn_knows = told_dcqcn | dcqcn.ready;
        let swift_knows = told_swift | swift_resets.ready;
        let done = if resets {
            goes & dcqcn_knows & swift_knows
        } else {
            drops | dcqcn.ready
        };
        told_dcqcn = goes & dcqcn_knows & !done;
        told_swift = goes & swift_knows & !done;
        if waits.any() {
            waits = waits - 1;
        }
        // behind a Reset the tables are written first
        let takes = swept & (!holds | (done & !resets));
        s.ready = takes;
        if takes {
            holds = s.valid;
            held = s.payload;
            waits = bits::<3>(7);
        } else if done {
            holds = false;
        }
        chosen.re = takes;
        chosen.raddr = s.payload.qpn.low::<Q>();
        chosen.we = resets | !swept;
        chosen.waddr = held.qpn.low::<Q>();
        chosen.wdata = held.packet.any();
        chosen_too.re = true;
        chosen_too.raddr = feedback.payload.qpn.low::<Q>();
        chosen_too.we = resets | !swept;
        chosen_too.waddr = held.qpn.low::<Q>();
        chosen_too.wdata = held.packet.any();
        if !swept {
            sweep = sweep + 1;
            swept = sweep.all();
            chosen.waddr = sweep;
            chosen.wdata = false;
            chosen_too.waddr = sweep;
            chosen_too.wdata = false;
        }
        ready = swept;

        came = feedback.valid;
        came_event = feedback.payload;
        swift_q.valid = came & chosen_too.rdata;
        swift_q.payload = came_event;
        swift = swift_q;
    }
}
