//! Responses as events for the table of send queues, two acknowledgements of a queue pair that wait as one.
//!
//! The table takes an event of one queue pair every second cycle. A plain acknowledgement (positive, of no data, with
//! nothing wrong) that waits behind another response takes the next plain one of its queue pair with it, if that one
//! acknowledges more: the event has both PSNs, and the table counts both. What is offered at `m` does not change.
//!
//! ```text
//!  s ─┬──────────────────────────────┬─► m
//!     └─► third ─► second ─► first ──┘
//!                  merges
//! ```
//!
//! Latency: 0 while nothing waits. Throughput: a response a cycle; of one queue pair two in two cycles.
use super::event::{SqEvent, SqEventKind};
use crate::bus::types::Answer;
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
    first: Dff<Answer>,
    second: Dff<Answer>,
    third: Dff<Answer>,
    first_valid: Reg<Bit>,
    second_valid: Reg<Bit>,
    third_valid: Reg<Bit>,
    /// Of two acknowledgements; `missing` is the PSN of the earlier one.
    first_merged: Dff<Bit>,
    second_merged: Dff<Bit>,
    /// It may take another one with it.
    second_open: Dff<Bit>,
    shown: Signal<Local, Answer>,
    no_event: Zero<SqEvent>,
    arrives: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    third_plain: Signal<Local, Bit>,
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
        dff_setup!(
            self,
            clock,
            first,
            second,
            third,
            first_valid,
            second_valid,
            third_valid,
            first_merged,
            second_merged,
            second_open
        );
        self.s.ready.next = !self.third_valid.q.val();
        self.arrives.next = self.s.valid.val() & !self.third_valid.q.val();
        self.moves.next = self.first_valid.q.val() & self.m.ready.val();
        self.plain.next = !self.s.payload.val().syndrome.get_bits::<3>(5).any()
            & !self.s.payload.val().status.any()
            & !self.s.payload.val().data
            & !self.s.payload.val().implied
            & !self.s.payload.val().closed;
        self.third_plain.next = !self.third.q.val().syndrome.get_bits::<3>(5).any()
            & !self.third.q.val().status.any()
            & !self.third.q.val().data
            & !self.third.q.val().implied
            & !self.third.q.val().closed;
        // later, and by less than 2^22: a PSN in the window plus that is none before the window
        self.distance.next = self.s.payload.val().psn - self.second.q.val().psn;
        self.merges.next = self.second_valid.q.val()
            & self.second_open.q.val()
            & self.plain.val()
            & (self.s.payload.val().qpn == self.second.q.val().qpn)
            & !(self.s.payload.val().psn == self.second.q.val().psn)
            & !self.distance.val().get_bits::<2>(22).any();

        if self.moves.val() {
            self.first.d.next = self.s.payload.val();
            self.first_valid.d.next = self.arrives.val();
            self.first_merged.d.next = false;
            if self.second_valid.q.val() {
                self.first.d.next = self.second.q.val();
                self.first_valid.d.next = true;
                self.first_merged.d.next = self.second_merged.q.val();
            }
            self.second.d.next = self.s.payload.val();
            self.second_open.d.next = self.plain.val();
            self.second_merged.d.next = false;
            self.second_valid.d.next = self.second_valid.q.val() & self.arrives.val();
            if self.third_valid.q.val() {
                self.second.d.next = self.third.q.val();
                self.second_open.d.next = self.third_plain.val();
                self.second_valid.d.next = true;
            }
            self.third_valid.d.next = false;
        } else if self.arrives.val() {
            if !self.first_valid.q.val() {
                self.first.d.next = self.s.payload.val();
                self.first_valid.d.next = !self.m.ready.val();
                self.first_merged.d.next = false;
            } else if !self.second_valid.q.val() {
                self.second.d.next = self.s.payload.val();
                self.second_valid.d.next = true;
                self.second_open.d.next = self.plain.val();
                self.second_merged.d.next = false;
            } else if self.merges.val() {
                self.second.d.next = self.s.payload.val();
                self.second.d.next.missing = self.second.q.val().psn;
                self.second_open.d.next = false;
                self.second_merged.d.next = true;
            } else {
                self.third.d.next = self.s.payload.val();
                self.third_valid.d.next = true;
            }
        }

        self.shown.next = self.s.payload.val();
        self.m.valid.next = self.s.valid.val();
        self.m.payload.next = self.no_event.val();
        if self.first_valid.q.val() {
            self.shown.next = self.first.q.val();
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
