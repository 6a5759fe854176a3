//! Failures: a queue pair that failed on one side fails on the other too.
//!
//! A send queue in error tells the responder, behind the completions of the messages that it failed with. A queue pair that
//! failed as responder, a packet whose payload could not be read from host memory, and a completion that was lost, tell
//! the requester. Of lost packets 16 can wait; one that finds no room is found again when it is sent again.
use ferroce_proto::abi::cq::status;

use crate::prelude::*;
use crate::queue::cq_write::CqLost;
use crate::transport::requester::event::{SqEvent, SqEventKind};
use crate::transport::responder::event::{RqEvent, RqEventKind, RqFailure};

const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;

/// Failures on their way.
#[derive(LogicBlock, Default)]
pub struct Failures {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue pairs whose send queue is in error.
    pub sq_down: StreamIn<Bits<16>>,
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

    down: Fifo<Bits<16>, 4>,
    unread: Fifo<Bits<16>, 4>,
    /// Of `responder`: who reports does not wait for the arbiter.
    failed: Skid<Bits<16>>,
    merge: Merge<SqEvent, 3>,
    no_rq_event: Zero<RqEvent>,
    no_sq_event: Zero<SqEvent>,
}

impl Logic for Failures {
    describe!(
        "failures",
        "Carries failures of queue pairs from one side to the other.";
        GENERAL_ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, down, unread, failed, merge);
        StreamIn::<Bits<16>>::link(&mut self.sq_down, &mut self.down.s);
        self.rq.valid.next = self.down.m.valid.val();
        self.rq.payload.next = self.no_rq_event.val();
        self.rq.payload.next.kind = RqEventKind::SqFailed;
        self.rq.payload.next.qpn = self.down.m.payload.val();
        self.down.m.ready.next = self.rq.ready.val();

        self.unread.s.valid.next = self.lost.val();
        self.unread.s.payload.next = self.lost_qpn.val();
        self.merge.s[0].valid.next = self.unread.m.valid.val();
        self.merge.s[0].payload.next = self.no_sq_event.val();
        self.merge.s[0].payload.next.kind = SqEventKind::Failed;
        self.merge.s[0].payload.next.qpn = self.unread.m.payload.val();
        self.merge.s[0].payload.next.status = GENERAL_ERR.into();
        self.unread.m.ready.next = self.merge.s[0].ready.val();
        // who reports the failure hears of it before the requester can fail for its sake
        self.told.valid.next = self.responder.valid.val() & self.failed.s.ready.val();
        self.told.payload.next = self.responder.payload.val();
        self.failed.s.valid.next = self.responder.valid.val() & self.told.ready.val();
        self.failed.s.payload.next = self.responder.payload.val().qpn;
        self.responder.ready.next = self.failed.s.ready.val() & self.told.ready.val();
        self.merge.s[1].valid.next = self.failed.m.valid.val();
        self.merge.s[1].payload.next = self.no_sq_event.val();
        self.merge.s[1].payload.next.kind = SqEventKind::Failed;
        self.merge.s[1].payload.next.qpn = self.failed.m.payload.val();
        self.failed.m.ready.next = self.merge.s[1].ready.val();
        self.merge.s[2].valid.next = self.lost_cqe.valid.val();
        self.merge.s[2].payload.next = self.no_sq_event.val();
        self.merge.s[2].payload.next.kind = SqEventKind::Failed;
        self.merge.s[2].payload.next.qpn = self.lost_cqe.payload.val().qpn;
        self.lost_cqe.ready.next = self.merge.s[2].ready.val();
        StreamOut::<SqEvent>::link(&mut self.sq, &mut self.merge.m);
    }
}
