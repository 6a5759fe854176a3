//! Reports: completion queues with something to report, until their CQEs are in host memory.
//!
//! A queue stands here once at most, for COMPLETION, CQ_ERROR or both; the owner sees to that with bits of its state. So the
//! list never fills up. A report is handed over when all CQEs written before it have their response, and so is a marker.
//! Reports keep their order: when as many have `left` as had `entered`, none of then is here.
use ferroce_proto::abi::eq::event::CQ_ERROR;

use super::types::{CqMark, CqMarked, CqReport};
use crate::bus::types::waits_for;
use crate::prelude::*;
use crate::queue::eq_write::EqEvent;

/// Reports of 2^C completion queues.
#[derive(Block)]
pub struct CqReports<const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A CQE is written, in this cycle.
    pub wrote: Signal<In, Bit>,
    /// CQE bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// A queue has something to report, that of `wrote` included.
    pub report: Signal<In, Bit>,
    /// Which.
    pub cqn: Signal<In, Bits<16>>,
    /// A marker comes, in this cycle.
    pub mark: Signal<In, Bit>,
    /// What it says.
    pub marked: Signal<In, CqMarked>,
    /// Markers can be taken, 8 of them.
    pub room: Signal<Out, Bit>,
    /// Markers.
    pub marks: StreamOut<CqMarked>,
    /// There are some.
    pub marking: Signal<Out, Bit>,
    /// A report is due, and there is room for its event.
    pub due: Signal<Out, Bit>,
    /// Its queue.
    pub due_cqn: Signal<Out, Bits<16>>,
    /// It is taken: the owner looks its queue up.
    pub take: Signal<In, Bit>,
    /// The queue taken is there, in this cycle.
    pub found: Signal<In, Bit>,
    /// With `found`: the queue is open; else there is no event.
    pub open: Signal<In, Bit>,
    /// With `found`: CQ_ERROR is reported; else COMPLETION.
    pub error: Signal<In, Bit>,
    /// With `found`: its event queue.
    pub eqn: Signal<In, Bits<8>>,
    /// Events.
    pub events: StreamOut<EqEvent>,
    /// Reports that came, modulo 2^16.
    pub entered: Signal<Out, Bits<16>>,
    /// Of these, those whose event is handed over, or that have none.
    pub left: Signal<Out, Bits<16>>,

    waiting: Fifo<CqReport, C>,
    markers: Fifo<CqMark, 4>,
    /// CQEs written, modulo 2^16.
    written: Reg<Bits<16>>,
    /// CQEs written, and how many of these have no response, of one cycle.
    latest: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
    came: Reg<Bits<16>>,
    went: Reg<Bits<16>>,
    /// The oldest of `waiting` may go: once so, it stays so.
    free: Reg<Bit>,
    /// The same of `markers`.
    passed: Reg<Bit>,
    /// A report was taken, its event is not.
    taken: Reg<Bit>,
    taken_cqn: Dff<Bits<16>>,
    taken_error: Dff<Bit>,
    reported: Reg<Bit>,
    event_eqn: Dff<Bits<8>>,
}

impl<const C: usize> Logic for CqReports<C> {
    describe!(
        "cq_reports",
        format!("c{C}"),
        "Completion queues with something to report."
    );

    #[kernel]
    fn update(&mut self) {
        let mut now = written;
        if wrote {
            now = written + 1;
        }
        written = now;
        waiting.s.valid = report;
        waiting.s.payload.cqn = cqn;
        waiting.s.payload.fence = now;
        if report {
            came = came + 1;
        }

        // it waits while its CQE is one of those without a response, see `fence`
        under_way = now - done;
        latest = now;
        let waits = waits_for(waiting.m.payload.fence, latest, under_way);
        waiting.m.ready = take;
        free = waiting.m.valid & !take & (free | !waits);
        due = free & !taken;
        due_cqn = waiting.m.payload.cqn;
        // a marker likewise
        markers.s.valid = mark;
        copy!(markers.s.payload <= marked; qpn, recv);
        markers.s.payload.fence = now;
        let held = waits_for(markers.m.payload.fence, latest, under_way);
        let goes = passed & marks.ready;
        markers.m.ready = goes;
        passed = markers.m.valid & !goes & (passed | !held);
        room = !markers.level.slice::<2>(3).any();
        marks.valid = passed;
        copy!(marks.payload <= markers.m.payload; qpn, recv);
        marking = mark | markers.m.valid;

        if take {
            taken = true;
            taken_cqn = waiting.m.payload.cqn;
        }
        let mut leaves = found & !open;
        if found {
            reported = open;
            taken = open;
            event_eqn = eqn;
            taken_error = error;
        } else if reported & events.ready {
            reported = false;
            taken = false;
            leaves = true;
        }
        if leaves {
            went = went + 1;
        }
        entered = came;
        left = went;
        events.valid = reported;
        events.payload.eqn = event_eqn;
        events.payload.event = bits::<8>(0);
        if taken_error {
            events.payload.event = CQ_ERROR;
        }
        events.payload.detail = bits::<8>(0);
        events.payload.object = taken_cqn;
    }
}
