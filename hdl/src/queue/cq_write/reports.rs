//! Reports: completion queues with something to report, until their CQEs are in host memory.
//!
//! A queue stands here once for COMPLETION and once for CQ_ERROR at most; the owner sees to that with a bit of its state,
//! and clears it when it takes a report. So the lists hold all there can be and nobody waits to get in. A report is
//! handed over when all CQEs written before it have their response.
use ferroce_proto::abi::eq::event;

use super::types::CqReport;
use crate::prelude::*;
use crate::queue::eq_write::EqEvent;

const CQ_ERROR: u64 = event::CQ_ERROR as u64;

/// Reports of 2^C completion queues.
#[derive(LogicBlock, Default)]
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
    /// With `found`: the queue is open; else nobody is told.
    pub open: Signal<In, Bit>,
    /// With `found`: its event queue.
    pub eqn: Signal<In, Bits<8>>,
    /// Events.
    pub events: StreamOut<EqEvent>,

    alive: Fifo<CqReport, C>,
    dead: Fifo<CqReport, C>,
    /// CQEs written, modulo 2^16.
    written: Reg<Bits<16>>,
    now: Signal<Local, Bits<16>>,
    age: Signal<Local, Bits<16>>,
    leaves: Signal<Local, Bit>,
    oldest: Signal<Local, Bits<16>>,
    /// The oldest of `alive` may go: once so, it stays so.
    free: Reg<Bit>,
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
        "Completion queues with something to report.";
        CQ_ERROR
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, alive, dead);
        dff_setup!(
            self,
            clock,
            written,
            free,
            taken,
            taken_cqn,
            taken_death,
            reported,
            told_eqn
        );
        self.now.next = self.written.q.val();
        if self.wrote.val() {
            self.now.next = self.written.q.val() + 1;
        }
        self.written.d.next = self.now.val();
        self.alive.s.valid.next = self.news.val();
        self.alive.s.payload.next.cqn = self.cqn.val();
        self.alive.s.payload.next.fence = self.now.val();
        self.dead.s.valid.next = self.death.val();
        self.dead.s.payload.next.cqn = self.cqn.val();
        self.dead.s.payload.next.fence = self.now.val();

        self.age.next = self.done.val() - self.alive.m.payload.val().fence;
        self.leaves.next = self.take.val() & self.free.q.val();
        self.alive.m.ready.next = self.leaves.val();
        self.free.d.next = self.alive.m.valid.val()
            & !self.leaves.val()
            & (self.free.q.val() | !self.age.val().get_bit(15));
        self.dead.m.ready.next = self.take.val() & !self.free.q.val();
        self.due.next = (self.free.q.val() | self.dead.m.valid.val()) & !self.taken.q.val();
        self.oldest.next = self.dead.m.payload.val().cqn;
        if self.free.q.val() {
            self.oldest.next = self.alive.m.payload.val().cqn;
        }
        self.due_cqn.next = self.oldest.val();

        if self.take.val() {
            self.taken.d.next = true;
            self.taken_cqn.d.next = self.oldest.val();
            self.taken_death.d.next = !self.free.q.val();
        }
        if self.found.val() {
            self.reported.d.next = self.open.val();
            self.taken.d.next = self.open.val();
            self.told_eqn.d.next = self.eqn.val();
        } else if self.reported.q.val() & self.events.ready.val() {
            self.reported.d.next = false;
            self.taken.d.next = false;
        }
        self.of_death.next = self.taken_death.q.val();
        self.events.valid.next = self.reported.q.val();
        self.events.payload.next.eqn = self.told_eqn.q.val();
        self.events.payload.next.event = bits::<8>(0);
        if self.taken_death.q.val() {
            self.events.payload.next.event = CQ_ERROR.into();
        }
        self.events.payload.next.detail = bits::<8>(0);
        self.events.payload.next.object = self.taken_cqn.q.val();
    }
}
