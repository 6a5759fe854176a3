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
#[derive(Block)]
#[block(check)]
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
    pub discard: Signal<In, Bit>,
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
    no_sq_event: Zero<SqEvent>,
    no_rq_event: Zero<RqEvent>,
    /// Bits of a doorbell's number that a queue pair of the build does not have.
    #[init(Constant::new((0x1_ffff_u64 >> Q << Q).to_bits()))]
    outside_qp: Constant<Bits<17>>,
    /// Those that a completion queue does not have.
    #[init(Constant::new((0x1_ffff_u64 >> C << C).to_bits()))]
    outside_cq: Constant<Bits<17>>,
}

impl<const Q: usize, const C: usize> Doorbells<Q, C> {
    fn check() {
        assert!(
            (4..=14).contains(&Q) && (1..=16).contains(&C),
            "2^{Q} queue pairs, 2^{C} completion queues: 2^4 to 2^14 and 2^1 to 2^16 can be built"
        );
    }
}

impl<const Q: usize, const C: usize> Logic for Doorbells<Q, C> {
    describe!(
        "doorbells",
        format!("q{Q}_c{C}"),
        "From writes to events for the queues they name."
    );

    #[kernel]
    fn update(&mut self) {
        if sq.ready {
            sq_rung = false;
        }
        if rq.ready {
            rq_rung = false;
        }
        if cq.ready {
            cq_rung = false;
        }
        let of_qp = write & (at.slice::<2>(20) == QP_AT) & !(at.slice::<17>(3) & outside_qp).any();
        // the upper word is a hole
        let first = write & !at.bit(2);
        let of_cq = first & (at.slice::<2>(20) == CQ_AT) & !(at.slice::<17>(3) & outside_cq).any();
        let of_srq = first & (at.slice::<2>(20) == SRQ_AT) & !at.bit(19);
        if of_qp {
            sq_rung = !at.bit(2);
            rq_rung = at.bit(2);
        }
        if of_cq {
            cq_rung = true;
        }
        if of_srq {
            rq_rung = true;
        }
        if of_qp | of_cq | of_srq {
            shared = of_srq;
            number = at.slice::<16>(3);
            word = data;
        }
        if discard {
            sq_rung = false;
            rq_rung = false;
            cq_rung = false;
        }
        waits = sq_rung | rq_rung | cq_rung;

        sq.valid = sq_rung;
        sq.payload = no_sq_event;
        sq.payload.kind = SqEventKind::Doorbell;
        sq.payload.qpn = number;
        sq.payload.index = word.low::<16>();
        rq.valid = rq_rung;
        rq.payload = no_rq_event;
        rq.payload.kind = RqEventKind::Doorbell;
        rq.payload.qpn = number;
        if shared {
            rq.payload.kind = RqEventKind::SrqDoorbell;
            rq.payload.srqn = number;
        }
        rq.payload.index = word.low::<16>();
        cq.valid = cq_rung;
        cq.payload.cqn = number;
        cq.payload.any = word.bit(ARM_ANY);
        cq.payload.solicited = word.bit(ARM_SOLICITED);
        cq.payload.index = word.low::<24>();
    }
}
