//! Admission: puts the operations of all sources into one sequence.
//!
//! Tokens take every cycle that the others leave, and every second if they do not; the others go round robin: replies
//! past their fence, turns, ends of turns, atomics done, packets lost. A token of a reply takes the reply along; a void one
//! leaves nothing. An operation waits while a queue behind the table could overflow by it; tokens wait for the queue of
//! fences alone, which depends on nothing but writes to memory.
//!
//! Throughput: an operation a cycle. Latency: none. Of the packets lost 16 can wait; further ones of queue pairs that
//! failed already add nothing.
use super::types::*;
use crate::bus::types::{AckToken, Reply};
use crate::prelude::*;
use ferroce_proto::wire::{NakCode, Syndrome};

const NAK_OPERATIONAL: u64 = Syndrome::Nak(NakCode::RemoteOperational).bits() as u64;

/// Admission.
#[derive(LogicBlock, Default)]
pub struct Admit<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What placements led to.
    pub tokens: StreamIn<AckToken>,
    /// READs and atomics, one a token that says so.
    pub replies: StreamIn<Reply>,
    /// Replies past their fence.
    pub releases: StreamIn<Op>,
    /// Queue pairs whose turn it is.
    pub list: StreamIn<Bits<Q>>,
    /// Ends of turns.
    pub served: StreamIn<Op>,
    /// Atomics done.
    pub atomics: StreamIn<Op>,
    /// A packet was lost.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<In, Bits<24>>,
    /// Its MSN.
    pub lost_msn: Signal<In, Bits<24>>,
    /// The table is swept.
    pub ready: Signal<In, Bit>,
    /// There is room for fences.
    pub fence_room: Signal<In, Bit>,
    /// There is room for acknowledgements and starts.
    pub turn_room: Signal<In, Bit>,
    /// There is room for events and errors.
    pub report_room: Signal<In, Bit>,
    /// An operation.
    pub valid: Signal<Out, Bit>,
    /// The operation.
    pub op: Signal<Out, Op>,
    /// Its reply.
    pub word: Signal<Out, RingWord>,

    arbiter: Arbiter<5>,
    losses: Fifo<Loss, 4>,
    /// Keeps the grant away from the FIFO's counters.
    loss: Skid<Loss>,
    /// A token went last.
    token_last: Reg<Bit>,
    has_reply: Signal<Local, Bit>,
    is_void: Signal<Local, Bit>,
    token_there: Signal<Local, Bit>,
    take_token: Signal<Local, Bit>,
    requests: Signal<Local, Bits<5>>,
    grant: Signal<Local, Bits<5>>,
    r: Signal<Local, Reply>,
    blank: Zero<Op>,
}

impl<const Q: usize> Logic for Admit<Q> {
    describe!(
        "reply_admit",
        format!("q{Q}"),
        "Puts operations on queue pairs into one sequence.";
        NAK_OPERATIONAL
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, losses, loss);
        dff_setup!(self, clock, token_last);
        self.losses.s.valid.next = self.lost.val();
        self.losses.s.payload.next.qpn = self.lost_qpn.val();
        self.losses.s.payload.next.psn = self.lost_psn.val();
        self.losses.s.payload.next.msn = self.lost_msn.val();
        StreamOut::<Loss>::join(&mut self.losses.m, &mut self.loss.s);

        self.has_reply.next = self.tokens.payload.val().reply;
        self.is_void.next = self.tokens.payload.val().reply & self.tokens.payload.val().void;
        self.token_there.next = self.tokens.valid.val()
            & self.ready.val()
            & (!self.has_reply.val() | (self.replies.valid.val() & self.fence_room.val()));
        self.requests.next = bits::<5>(0)
            .replace_bit(0, self.releases.valid.val())
            .replace_bit(1, self.list.valid.val() & self.turn_room.val())
            .replace_bit(2, self.served.valid.val() & self.report_room.val())
            .replace_bit(3, self.atomics.valid.val() & self.report_room.val())
            .replace_bit(
                4,
                self.loss.m.valid.val() & self.report_room.val() & self.turn_room.val(),
            );
        self.take_token.next =
            self.token_there.val() & (!self.token_last.q.val() | !self.requests.val().any());
        self.token_last.d.next = self.take_token.val();
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = !self.take_token.val();
        self.grant.next = bits::<5>(0);
        if !self.take_token.val() {
            self.grant.next = self.arbiter.grant.val();
        }
        self.tokens.ready.next = self.take_token.val();
        self.replies.ready.next = self.take_token.val() & self.has_reply.val();
        self.releases.ready.next = self.grant.val().get_bit(0);
        self.list.ready.next = self.grant.val().get_bit(1);
        self.served.ready.next = self.grant.val().get_bit(2);
        self.atomics.ready.next = self.grant.val().get_bit(3);
        self.loss.m.ready.next = self.grant.val().get_bit(4);

        self.valid.next = (self.take_token.val() & !self.is_void.val()) | self.grant.val().any();
        self.op.next = self.blank.val();
        self.r.next = self.replies.payload.val();
        if self.take_token.val() {
            self.op.next.kind = OpKind::Ack;
            if self.tokens.payload.val().reset {
                self.op.next.kind = OpKind::Reset;
            } else if self.tokens.payload.val().halt {
                self.op.next.kind = OpKind::Halt;
            }
            self.op.next.qpn = self.tokens.payload.val().qpn;
            self.op.next.psn = self.tokens.payload.val().psn;
            self.op.next.msn = self.tokens.payload.val().msn;
            self.op.next.syndrome = self.tokens.payload.val().syndrome;
            if self.has_reply.val() {
                self.op.next.kind = OpKind::Reply;
                self.op.next.psn = self.r.val().psn;
            }
            self.op.next.fence = self.tokens.payload.val().fence;
            self.op.next.incarnation = self.r.val().incarnation;
            self.op.next.duplicate = self.r.val().duplicate;
        } else if self.grant.val().get_bit(0) {
            self.op.next = self.releases.payload.val();
        } else if self.grant.val().get_bit(1) {
            self.op.next.kind = OpKind::Turn;
            self.op.next.qpn = bit_cast::<16, Q>(self.list.payload.val());
        } else if self.grant.val().get_bit(2) {
            self.op.next = self.served.payload.val();
        } else if self.grant.val().get_bit(3) {
            self.op.next = self.atomics.payload.val();
        } else {
            self.op.next.kind = OpKind::Lost;
            self.op.next.qpn = self.loss.m.payload.val().qpn;
            self.op.next.psn = self.loss.m.payload.val().psn;
            self.op.next.msn = self.loss.m.payload.val().msn;
            self.op.next.syndrome = NAK_OPERATIONAL.into();
        }
        self.word.next.atomic = self.r.val().atomic;
        self.word.next.add = self.r.val().add;
        self.word.next.duplicate = self.r.val().duplicate;
        self.word.next.psn = self.r.val().psn;
        self.word.next.msn = self.r.val().msn;
        self.word.next.mtu = self.r.val().mtu;
        self.word.next.pd = self.r.val().pd;
        self.word.next.va = self.r.val().va;
        self.word.next.rkey = self.r.val().rkey;
        self.word.next.len = self.r.val().len;
        self.word.next.swap_add = self.r.val().swap_add;
        self.word.next.compare = self.r.val().compare;
    }
}
