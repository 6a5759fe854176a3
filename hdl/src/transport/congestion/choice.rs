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
    chosen: SweptRam<Bit, Q>,
    chosen_too: SweptRam<Bit, Q>,
    holds: Reg<Bit>,
    held: Dff<CongestionEvent>,
    /// Cycles for which a Reset waits.
    waits: Reg<Bits<3>>,
    dcqcn_has: Reg<Bit>,
    swift_has: Reg<Bit>,
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
        dcqcn.valid = (holds & !resets & !drops) | (goes & !dcqcn_has);
        dcqcn.payload = held;
        swift_resets.valid = goes & !swift_has;
        swift_resets.payload = held;
        let dcqcn_done = dcqcn_has | dcqcn.ready;
        let swift_done = swift_has | swift_resets.ready;
        let done = if resets {
            goes & dcqcn_done & swift_done
        } else {
            drops | dcqcn.ready
        };
        dcqcn_has = goes & dcqcn_done & !done;
        swift_has = goes & swift_done & !done;
        if waits.any() {
            waits = waits - 1;
        }
        // behind a Reset the tables are written first
        let takes = chosen.ready & (!holds | (done & !resets));
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
        chosen_too.re = true;
        chosen_too.raddr = feedback.payload.qpn.low::<Q>();
        let at = held.qpn.low::<Q>();
        let is_swift = held.packet.any();
        chosen.we = resets;
        chosen.waddr = at;
        chosen.wdata = is_swift;
        chosen_too.we = resets;
        chosen_too.waddr = at;
        chosen_too.wdata = is_swift;
        ready = chosen.ready;

        came = feedback.valid;
        came_event = feedback.payload;
        swift_q.valid = came & chosen_too.rdata;
        swift_q.payload = came_event;
        swift = swift_q;
    }
}
