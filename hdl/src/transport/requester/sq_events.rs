//! Events of the send queues from all who have some, one a cycle, round robin.
//!
//! As [`Merge`], but a field is chosen among those only whose events name it; where one alone names it, it is not chosen
//! at all: others ignore it.
//!
//! Latency: a cycle. Throughput: an event a cycle.
use super::event::{SentPacket, SqEvent, SqEventKind};
use crate::prelude::*;

/// Merge of the events.
#[derive(LogicBlock, Default)]
pub struct SqEvents {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Command.
    pub command: StreamIn<SqEvent>,
    /// Answer.
    pub answer: StreamIn<SqEvent>,
    /// Retire and Retired.
    pub retire: StreamIn<SqEvent>,
    /// Timeout.
    pub timeout: StreamIn<SqEvent>,
    /// Start and Refetch.
    pub start: StreamIn<SqEvent>,
    /// Fetch.
    pub fetch: StreamIn<SqEvent>,
    /// Doorbell.
    pub doorbell: StreamIn<SqEvent>,
    /// Failed.
    pub failure: StreamIn<SqEvent>,
    /// Packets that nobody acknowledges, as Answer.
    pub sent: StreamIn<SentPacket>,
    /// Events.
    pub m: StreamOut<SqEvent>,
    arbiter: Arbiter<9>,
    kinds: Pick<SqEventKind, 9>,
    qpns: Pick<Bits<16>, 9>,
    skid: SkidRam<SqEvent>,
    requests: Signal<Local, Bits<9>>,
    turn: Signal<Local, Bits<9>>,
}

impl Logic for SqEvents {
    describe!("sq_events", "Merges the events of the send queues.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, skid);
        self.requests.next = bits::<9>(0)
            .replace_bit(0, self.command.valid.val())
            .replace_bit(1, self.answer.valid.val())
            .replace_bit(2, self.retire.valid.val())
            .replace_bit(3, self.timeout.valid.val())
            .replace_bit(4, self.start.valid.val())
            .replace_bit(5, self.fetch.valid.val())
            .replace_bit(6, self.doorbell.valid.val())
            .replace_bit(7, self.failure.valid.val())
            .replace_bit(8, self.sent.valid.val());
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = self.skid.s.ready.val();
        self.turn.next = self.arbiter.grant.val();
        self.command.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(0);
        self.answer.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(1);
        self.retire.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(2);
        self.timeout.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(3);
        self.start.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(4);
        self.fetch.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(5);
        self.doorbell.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(6);
        self.failure.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(7);
        self.sent.ready.next = self.skid.s.ready.val() & self.turn.val().get_bit(8);

        // named by all
        self.kinds.choice.next = self.turn.val();
        self.kinds.item[0].next = SqEventKind::Command;
        self.kinds.item[1].next = SqEventKind::Answer;
        self.kinds.item[2].next = self.retire.payload.val().kind;
        self.kinds.item[3].next = SqEventKind::Timeout;
        self.kinds.item[4].next = self.start.payload.val().kind;
        self.kinds.item[5].next = SqEventKind::Fetch;
        self.kinds.item[6].next = SqEventKind::Doorbell;
        self.kinds.item[7].next = SqEventKind::Failed;
        self.kinds.item[8].next = SqEventKind::Answer;
        self.qpns.choice.next = self.turn.val();
        self.qpns.item[0].next = self.command.payload.val().qpn;
        self.qpns.item[1].next = self.answer.payload.val().qpn;
        self.qpns.item[2].next = self.retire.payload.val().qpn;
        self.qpns.item[3].next = self.timeout.payload.val().qpn;
        self.qpns.item[4].next = self.start.payload.val().qpn;
        self.qpns.item[5].next = self.fetch.payload.val().qpn;
        self.qpns.item[6].next = self.doorbell.payload.val().qpn;
        self.qpns.item[7].next = self.failure.payload.val().qpn;
        self.qpns.item[8].next = self.sent.payload.val().qpn;

        self.skid.s.valid.next = self.requests.val().any();
        // named by one
        self.skid.s.payload.next = self.start.payload.val();
        self.skid.s.payload.next.writes = self.answer.payload.val().writes;
        self.skid.s.payload.next.reads = self.retire.payload.val().reads;
        self.skid.s.payload.next.count = self.retire.payload.val().count;
        self.skid.s.payload.next.fetches = self.doorbell.payload.val().fetches;
        self.skid.s.payload.next.state = self.command.payload.val().state;
        self.skid.s.payload.next.set = self.command.payload.val().set;
        self.skid.s.payload.next.reset = self.command.payload.val().reset;
        self.skid.s.payload.next.kind = self.kinds.picked.val();
        self.skid.s.payload.next.qpn = self.qpns.picked.val();
        // named by some
        if self.turn.val().get_bit(2) {
            self.skid.s.payload.next.index = self.retire.payload.val().index;
        } else if self.turn.val().get_bit(6) {
            self.skid.s.payload.next.index = self.doorbell.payload.val().index;
        }
        self.skid.s.payload.next.psn = self.answer.payload.val().psn;
        self.skid.s.payload.next.una_psn = self.answer.payload.val().una_psn;
        if self.turn.val().get_bit(0) {
            self.skid.s.payload.next.psn = self.command.payload.val().psn;
        } else if self.turn.val().get_bit(2) {
            self.skid.s.payload.next.psn = self.retire.payload.val().psn;
            self.skid.s.payload.next.una_psn = self.retire.payload.val().una_psn;
        } else if self.turn.val().get_bit(8) {
            self.skid.s.payload.next.psn = self.sent.payload.val().psn;
        }
        self.skid.s.payload.next.generation = self.timeout.payload.val().generation;
        if self.turn.val().get_bit(2) {
            self.skid.s.payload.next.generation = self.retire.payload.val().generation;
        }
        // a packet that was sent is as a positive answer
        self.skid.s.payload.next.data = self.answer.payload.val().data;
        self.skid.s.payload.next.implied = self.answer.payload.val().implied;
        self.skid.s.payload.next.closed = self.answer.payload.val().closed;
        self.skid.s.payload.next.merged = self.answer.payload.val().merged;
        self.skid.s.payload.next.syndrome = self.answer.payload.val().syndrome;
        self.skid.s.payload.next.sent = self.turn.val().get_bit(8);
        if self.turn.val().get_bit(8) {
            self.skid.s.payload.next.data = false;
            self.skid.s.payload.next.implied = false;
            self.skid.s.payload.next.closed = false;
            self.skid.s.payload.next.merged = false;
            self.skid.s.payload.next.syndrome = bits::<8>(0);
        }
        // of others, a timeout too, no failure
        self.skid.s.payload.next.status = bits::<8>(0);
        if self.turn.val().get_bit(1) {
            self.skid.s.payload.next.status = self.answer.payload.val().status;
        } else if self.turn.val().get_bit(2) {
            self.skid.s.payload.next.status = self.retire.payload.val().status;
        } else if self.turn.val().get_bit(4) {
            self.skid.s.payload.next.status = self.start.payload.val().status;
        } else if self.turn.val().get_bit(7) {
            self.skid.s.payload.next.status = self.failure.payload.val().status;
        }
        StreamOut::<SqEvent>::link(&mut self.m, &mut self.skid.m);
    }
}
