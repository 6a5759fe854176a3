//! Failures: a queue pair that failed on one side fails on the other too.
//!
//! A send queue in error tells the responder. A queue pair that failed as responder, and a packet whose payload could not
//! be read from host memory, and a completion that was lost, tell the requester. A queue pair fails once until a command resets it, so the list of send
//! queues, an entry a queue pair, holds them all. Of lost packets 16 can wait; one that finds no room is found again when it
//! is sent again.
use ferroce_proto::abi::cq::status;

use crate::prelude::*;
use crate::queue::cq_write::CqLost;
use crate::transport::requester::event::{SqEvent, SqEventKind};
use crate::transport::responder::event::{RqEvent, RqEventKind, RqFailure};

const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;

/// Failures of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct Failures<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A send queue went into error, in this cycle.
    pub sq_failed: Signal<In, Bit>,
    /// Its queue pair.
    pub sq_failed_qpn: Signal<In, Bits<16>>,
    /// A packet was not sent because its payload could not be read, in this cycle.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Queue pairs that went into error as responder.
    pub responder: StreamIn<RqFailure>,
    /// Completions that were lost.
    pub lost_cqe: StreamIn<CqLost>,
    /// The queue pairs of `responder` again, for who reports them.
    pub told: StreamOut<RqFailure>,
    /// To the responder.
    pub rq: StreamOut<RqEvent>,
    /// To the requester.
    pub sq: StreamOut<SqEvent>,

    failed: Fifo<Bits<16>, Q>,
    unread: Fifo<Bits<16>, 4>,
    merge: Merge<SqEvent, 3>,
    no_rq_event: Zero<RqEvent>,
    no_sq_event: Zero<SqEvent>,
}

impl<const Q: usize> Logic for Failures<Q> {
    describe!(
        "failures",
        format!("q{Q}"),
        "Carries failures of queue pairs from one side to the other.";
        GENERAL_ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, failed, unread, merge);
        self.failed.s.valid.next = self.sq_failed.val();
        self.failed.s.payload.next = self.sq_failed_qpn.val();
        self.rq.valid.next = self.failed.m.valid.val();
        self.rq.payload.next = self.no_rq_event.val();
        self.rq.payload.next.kind = RqEventKind::SqFailed;
        self.rq.payload.next.qpn = self.failed.m.payload.val();
        self.failed.m.ready.next = self.rq.ready.val();

        self.unread.s.valid.next = self.lost.val();
        self.unread.s.payload.next = self.lost_qpn.val();
        self.merge.s[0].valid.next = self.unread.m.valid.val();
        self.merge.s[0].payload.next = self.no_sq_event.val();
        self.merge.s[0].payload.next.kind = SqEventKind::Failed;
        self.merge.s[0].payload.next.qpn = self.unread.m.payload.val();
        self.merge.s[0].payload.next.status = GENERAL_ERR.into();
        self.unread.m.ready.next = self.merge.s[0].ready.val();
        // who reports the failure hears of it before the requester can fail for its sake
        self.told.valid.next = self.responder.valid.val() & self.merge.s[1].ready.val();
        self.told.payload.next = self.responder.payload.val();
        self.merge.s[1].valid.next = self.responder.valid.val() & self.told.ready.val();
        self.merge.s[1].payload.next = self.no_sq_event.val();
        self.merge.s[1].payload.next.kind = SqEventKind::Failed;
        self.merge.s[1].payload.next.qpn = self.responder.payload.val().qpn;
        self.responder.ready.next = self.merge.s[1].ready.val() & self.told.ready.val();
        self.merge.s[2].valid.next = self.lost_cqe.valid.val();
        self.merge.s[2].payload.next = self.no_sq_event.val();
        self.merge.s[2].payload.next.kind = SqEventKind::Failed;
        self.merge.s[2].payload.next.qpn = self.lost_cqe.payload.val().qpn;
        self.lost_cqe.ready.next = self.merge.s[2].ready.val();
        StreamOut::<SqEvent>::link(&mut self.sq, &mut self.merge.m);
    }
}
