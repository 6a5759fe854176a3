//! Doorbells: from writes to events for the queues they name.
//!
//! One at a time: while `waits` is 1 the owner holds the next one back. Those of queues that the build does not have do
//! nothing; the responder, which they reach, knows how many shared receive queues there are. Latency: a cycle.
use super::bar::{ARM_ANY, ARM_SOLICITED, CQ_AT, QP_AT, SRQ_AT};
use crate::prelude::*;
use crate::queue::cq_write::CqArm;
use crate::transport::requester::event::{SqEvent, SqEventKind};
use crate::transport::responder::event::{RqEvent, RqEventKind};

/// Doorbells of 2^Q queue pairs and 2^C completion queues.
#[derive(LogicBlock)]
pub struct Doorbells<const Q: usize, const C: usize> {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// A word is written, in this cycle; not while `waits`.
    pub write: Signal<In, Bit>,
    /// Its byte address in BAR0.
    pub at: Signal<In, Bits<22>>,
    /// The word.
    pub data: Signal<In, Bits<32>>,
    /// What waits is forgotten.
    pub forget: Signal<In, Bit>,
    /// A doorbell was not taken.
    pub waits: Signal<Out, Bit>,
    /// Send queue doorbells.
    pub sq: StreamOut<SqEvent>,
    /// Doorbells of receive queues, shared ones too.
    pub rq: StreamOut<RqEvent>,
    /// Arm doorbells of completion queues.
    pub cq: StreamOut<CqArm>,

    sq_rung: Reg<Bit>,
    rq_rung: Reg<Bit>,
    cq_rung: Reg<Bit>,
    /// The one of `rq` is of a shared receive queue.
    shared: Dff<Bit>,
    number: Dff<Bits<16>>,
    word: Dff<Bits<32>>,
    of_qp: Signal<Local, Bit>,
    of_cq: Signal<Local, Bit>,
    of_srq: Signal<Local, Bit>,
    no_sq_event: Zero<SqEvent>,
    no_rq_event: Zero<RqEvent>,
    /// Bits of a doorbell's number that a queue pair of the build does not have.
    beyond: Constant<Bits<17>>,
    /// Those that a completion queue does not have.
    beyond_cq: Constant<Bits<17>>,
}

impl<const Q: usize, const C: usize> Default for Doorbells<Q, C> {
    fn default() -> Self {
        assert!(
            (4..=14).contains(&Q) && (1..=16).contains(&C),
            "2^{Q} queue pairs, 2^{C} completion queues: 2^4 to 2^14 and 2^1 to 2^16 can be built"
        );
        Self {
            clock: Default::default(),
            write: Default::default(),
            at: Default::default(),
            data: Default::default(),
            forget: Default::default(),
            waits: Default::default(),
            sq: Default::default(),
            rq: Default::default(),
            cq: Default::default(),
            sq_rung: Default::default(),
            rq_rung: Default::default(),
            cq_rung: Default::default(),
            shared: Default::default(),
            number: Default::default(),
            word: Default::default(),
            of_qp: Default::default(),
            of_cq: Default::default(),
            of_srq: Default::default(),
            no_sq_event: Default::default(),
            no_rq_event: Default::default(),
            beyond: Constant::new((0x1_ffff_u64 >> Q << Q).to_bits()),
            beyond_cq: Constant::new((0x1_ffff_u64 >> C << C).to_bits()),
        }
    }
}

impl<const Q: usize, const C: usize> Logic for Doorbells<Q, C> {
    describe!(
        "doorbells",
        format!("q{Q}_c{C}"),
        "From writes to events for the queues they name.";
        QP_AT, CQ_AT, SRQ_AT, ARM_ANY, ARM_SOLICITED
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sq_rung, rq_rung, cq_rung, shared, number, word);
        if self.sq.ready.val() {
            self.sq_rung.d.next = false;
        }
        if self.rq.ready.val() {
            self.rq_rung.d.next = false;
        }
        if self.cq.ready.val() {
            self.cq_rung.d.next = false;
        }
        self.of_qp.next = self.write.val()
            & (self.at.val().get_bits::<2>(20) == QP_AT)
            & !(self.at.val().get_bits::<17>(3) & self.beyond.val()).any();
        self.of_cq.next = self.write.val()
            & (self.at.val().get_bits::<2>(20) == CQ_AT)
            & !(self.at.val().get_bits::<17>(3) & self.beyond_cq.val()).any();
        self.of_srq.next = self.write.val()
            & (self.at.val().get_bits::<2>(20) == SRQ_AT)
            & !self.at.val().get_bit(19);
        if self.of_qp.val() {
            self.sq_rung.d.next = !self.at.val().get_bit(2);
            self.rq_rung.d.next = self.at.val().get_bit(2);
        }
        if self.of_cq.val() {
            self.cq_rung.d.next = true;
        }
        if self.of_srq.val() {
            self.rq_rung.d.next = true;
        }
        if self.of_qp.val() | self.of_cq.val() | self.of_srq.val() {
            self.shared.d.next = self.of_srq.val();
            self.number.d.next = self.at.val().get_bits::<16>(3);
            self.word.d.next = self.data.val();
        }
        if self.forget.val() {
            self.sq_rung.d.next = false;
            self.rq_rung.d.next = false;
            self.cq_rung.d.next = false;
        }
        self.waits.next = self.sq_rung.q.val() | self.rq_rung.q.val() | self.cq_rung.q.val();

        self.sq.valid.next = self.sq_rung.q.val();
        self.sq.payload.next = self.no_sq_event.val();
        self.sq.payload.next.kind = SqEventKind::Doorbell;
        self.sq.payload.next.qpn = self.number.q.val();
        self.sq.payload.next.index = self.word.q.val().get_bits::<16>(0);
        self.rq.valid.next = self.rq_rung.q.val();
        self.rq.payload.next = self.no_rq_event.val();
        self.rq.payload.next.kind = RqEventKind::Doorbell;
        self.rq.payload.next.qpn = self.number.q.val();
        if self.shared.q.val() {
            self.rq.payload.next.kind = RqEventKind::SrqDoorbell;
            self.rq.payload.next.srqn = self.number.q.val();
        }
        self.rq.payload.next.index = self.word.q.val().get_bits::<16>(0);
        self.cq.valid.next = self.cq_rung.q.val();
        self.cq.payload.next.cqn = self.number.q.val();
        self.cq.payload.next.any = self.word.q.val().get_bit(ARM_ANY);
        self.cq.payload.next.solicited = self.word.q.val().get_bit(ARM_SOLICITED);
        self.cq.payload.next.index = self.word.q.val().get_bits::<24>(0);
    }
}
