//! Responses as events for the table of send queues, two acknowledgements of a queue pair that wait as one.
//!
//! The table takes an event of one queue pair every second cycle. A plain acknowledgement (positive, of no data, with
//! nothing wrong) that waits behind another response takes the next plain one of its queue pair with it, if that one
//! acknowledges more: the event has both PSNs, and the table counts both. What is offered at `m` does not change.
//!
//! They wait in LUT RAM, a ring of four of which three are in use; what the next one is compared with of the last one stands in
//! registers too.
//!
//! Latency: 0 while nothing waits. Throughput: a response a cycle; of one queue pair two in two cycles.
use super::event::{SqEvent, SqEventKind};
use crate::bus::types::Answer;
use crate::cell::fifo_ram::FifoRam;
use crate::prelude::*;

/// Queue of three responses.
#[derive(LogicBlock, Default)]
pub struct AckMerge {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Responses.
    pub s: StreamIn<Answer>,
    /// Their events.
    pub m: StreamOut<SqEvent>,
    ring: FifoRam<Answer, 2>,
    /// Where the first one stands, and where the next one is written.
    head: Reg<Bits<2>>,
    write: Reg<Bits<2>>,
    head_next: Signal<Local, Bits<2>>,
    first_valid: Reg<Bit>,
    second_valid: Reg<Bit>,
    third_valid: Reg<Bit>,
    /// Of two acknowledgements; `missing` is the PSN of the earlier one.
    first_merged: Reg<Bit>,
    second_merged: Reg<Bit>,
    last_qpn: Dff<Bits<16>>,
    last_psn: Dff<Bits<24>>,
    /// It may take another one with it.
    last_open: Dff<Bit>,
    stores: Signal<Local, Bit>,
    place: Signal<Local, Bits<2>>,
    stored: Signal<Local, Answer>,
    shown: Signal<Local, Answer>,
    no_event: Zero<SqEvent>,
    arrives: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    distance: Signal<Local, Bits<24>>,
    merges: Signal<Local, Bit>,
}

impl Logic for AckMerge {
    describe!(
        "ack_merge",
        "Responses as events, two acknowledgements of a queue pair that wait as one."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ring);
        dff_setup!(
            self,
            clock,
            head,
            write,
            first_valid,
            second_valid,
            third_valid,
            first_merged,
            second_merged,
            last_qpn,
            last_psn,
            last_open
        );
        self.s.ready.next = !self.third_valid.q.val();
        self.arrives.next = self.s.valid.val() & !self.third_valid.q.val();
        self.moves.next = self.first_valid.q.val() & self.m.ready.val();
        self.plain.next = !self.s.payload.val().syndrome.get_bits::<3>(5).any()
            & !self.s.payload.val().status.any()
            & !self.s.payload.val().data
            & !self.s.payload.val().implied
            & !self.s.payload.val().closed;
        // later, and by less than 2^22: a PSN in the window plus that is none before the window
        self.distance.next = self.s.payload.val().psn - self.last_psn.q.val();
        self.merges.next = self.second_valid.q.val()
            & !self.m.ready.val()
            & self.last_open.q.val()
            & self.plain.val()
            & (self.s.payload.val().qpn == self.last_qpn.q.val())
            & !(self.s.payload.val().psn == self.last_psn.q.val())
            & !self.distance.val().get_bits::<2>(22).any();

        // what nothing is in front of passes, if it is taken
        self.stores.next = self.arrives.val() & (self.first_valid.q.val() | !self.m.ready.val());
        self.place.next = self.write.q.val();
        self.stored.next = self.s.payload.val();
        if self.merges.val() {
            self.place.next = self.write.q.val() - 1;
            self.stored.next.missing = self.last_psn.q.val();
        }
        if self.stores.val() {
            self.write.d.next = self.place.val() + 1;
            self.last_qpn.d.next = self.s.payload.val().qpn;
            self.last_psn.d.next = self.s.payload.val().psn;
            self.last_open.d.next = self.plain.val() & !self.merges.val();
        }
        self.head_next.next = self.head.q.val();
        if self.moves.val() {
            self.head_next.next = self.head.q.val() + 1;
            self.first_merged.d.next = self.second_merged.q.val();
            self.second_merged.d.next = false;
            self.first_valid.d.next = self.second_valid.q.val() | self.arrives.val();
            self.second_valid.d.next =
                self.third_valid.q.val() | (self.second_valid.q.val() & self.arrives.val());
            self.third_valid.d.next = false;
        } else if self.merges.val() & self.arrives.val() {
            self.second_merged.d.next = true;
        } else if self.stores.val() {
            self.first_valid.d.next = true;
            self.second_valid.d.next = self.first_valid.q.val();
            self.third_valid.d.next = self.second_valid.q.val();
        }
        self.head.d.next = self.head_next.val();
        self.ring.we.next = self.stores.val();
        self.ring.waddr.next = bit_cast::<16, 2>(self.place.val());
        self.ring.wdata.next = self.stored.val();
        self.ring.re.next = true;
        self.ring.pass.next = false;
        self.ring.raddr.next = bit_cast::<16, 2>(self.head_next.val());

        self.shown.next = self.s.payload.val();
        self.m.valid.next = self.s.valid.val();
        self.m.payload.next = self.no_event.val();
        if self.first_valid.q.val() {
            self.shown.next = self.ring.rdata.val();
            self.m.valid.next = true;
            self.m.payload.next.merged = self.first_merged.q.val();
        }
        self.m.payload.next.kind = SqEventKind::Answer;
        self.m.payload.next.qpn = self.shown.val().qpn;
        self.m.payload.next.psn = self.shown.val().psn;
        self.m.payload.next.una_psn = self.shown.val().missing;
        self.m.payload.next.syndrome = self.shown.val().syndrome;
        self.m.payload.next.status = self.shown.val().status;
        self.m.payload.next.data = self.shown.val().data;
        self.m.payload.next.implied = self.shown.val().implied;
        self.m.payload.next.closed = self.shown.val().closed;
        self.m.payload.next.writes = self.shown.val().fence;
    }
}
