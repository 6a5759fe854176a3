//! Reports: completion queues with something to report, until their CQEs are in host memory.
//!
//! A queue stands here once for COMPLETION and once for CQ_ERROR at most; the owner sees to that with a bit of its state,
//! and clears it when it takes a report. So the lists never fill up. A report is handed over when all CQEs written before it
//! have their response, and so is a marker.
use ferroce_proto::abi::eq::event::CQ_ERROR;

use super::types::{CqMark, CqMarked, CqReport};
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
    /// Queue of `news` and `death`.
    pub cqn: Signal<In, Bits<16>>,
    /// It has a completion to report, that of `wrote` included.
    pub news: Signal<In, Bit>,
    /// It has overflowed.
    pub death: Signal<In, Bit>,
    /// A marker comes, in this cycle.
    pub mark: Signal<In, Bit>,
    /// What it says.
    pub marked: Signal<In, CqMarked>,
    /// Markers can be taken, 8 of them.
    pub room: Signal<Out, Bit>,
    /// Markers.
    pub marks: StreamOut<CqMarked>,
    /// A report is due, and there is room for its event.
    pub due: Signal<Out, Bit>,
    /// Its queue.
    pub due_cqn: Signal<Out, Bits<16>>,
    /// It is taken: the owner looks its queue up.
    pub take: Signal<In, Bit>,
    /// The one taken is of CQ_ERROR; else of COMPLETION.
    pub of_death: Signal<Out, Bit>,
    /// Its queue is there, in this cycle.
    pub found: Signal<In, Bit>,
    /// With `found`: the queue is open; else there is no event.
    pub open: Signal<In, Bit>,
    /// With `found`: its event queue.
    pub eqn: Signal<In, Bits<8>>,
    /// Events.
    pub events: StreamOut<EqEvent>,

    alive: Fifo<CqReport, C>,
    dead: Fifo<CqReport, C>,
    markers: Fifo<CqMark, 4>,
    /// CQEs written, modulo 2^16.
    written: Reg<Bits<16>>,
    /// CQEs written, and how many of these have no response, of one cycle.
    latest: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
    /// The oldest of `alive` may go: once so, it stays so.
    free: Reg<Bit>,
    /// The same of `markers`.
    passed: Reg<Bit>,
    /// A report was taken, its event is not.
    taken: Reg<Bit>,
    taken_cqn: Dff<Bits<16>>,
    taken_death: Dff<Bit>,
    reported: Reg<Bit>,
    told_eqn: Dff<Bits<8>>,
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
        alive.s.valid = news;
        alive.s.payload.cqn = cqn;
        alive.s.payload.fence = now;
        dead.s.valid = death;
        dead.s.payload.cqn = cqn;
        dead.s.payload.fence = now;

        // it waits while its CQE is one of those without a response, see `fence`
        under_way = now - done;
        latest = now;
        let waits = latest - alive.m.payload.fence < under_way;
        let leaves = take & free;
        alive.m.ready = leaves;
        free = alive.m.valid & !leaves & (free | !waits);
        dead.m.ready = take & !free;
        due = (free | dead.m.valid) & !taken;
        // a marker likewise
        markers.s.valid = mark;
        copy!(markers.s.payload <= marked; qpn, recv);
        markers.s.payload.fence = now;
        let held = latest - markers.m.payload.fence < under_way;
        let goes = passed & marks.ready;
        markers.m.ready = goes;
        passed = markers.m.valid & !goes & (passed | !held);
        room = !markers.level.slice::<2>(3).any();
        marks.valid = passed;
        copy!(marks.payload <= markers.m.payload; qpn, recv);
        let mut oldest = dead.m.payload.cqn;
        if free {
            oldest = alive.m.payload.cqn;
        }
        due_cqn = oldest;

        if take {
            taken = true;
            taken_cqn = oldest;
            taken_death = !free;
        }
        if found {
            reported = open;
            taken = open;
            told_eqn = eqn;
        } else if reported & events.ready {
            reported = false;
            taken = false;
        }
        of_death = taken_death;
        events.valid = reported;
        events.payload.eqn = told_eqn;
        events.payload.event = bits::<8>(0);
        if taken_death {
            events.payload.event = CQ_ERROR;
        }
        events.payload.detail = bits::<8>(0);
        events.payload.object = taken_cqn;
    }
}
