//! Failures: a queue pair that failed on one side fails on the other too.
//!
//! A send queue in error tells the responder, behind the completions of the messages that it failed with. To the requester go a queue
//! pair that failed as responder, a packet whose payload could not be read from host memory, and a completion that was lost, but not
//! that of a flushed receive: its queue pair failed before. That of another receive goes to the responder too. The report of a responder's first request (COMM_EST) only passes through,
//! to `qp_events`. Of lost packets 16 can wait; `lost_hold` keeps further ones where they are. The requester takes these reports
//! whatever waits for them.
use ferroce_proto::abi::eq::event::COMM_EST;

use crate::bus::types::Activity;
use crate::prelude::*;
use crate::queue::cq_write::CqLost;
use crate::transport::requester::event::{SqEvent, SqEventKind, UnreadPacket};
use crate::transport::responder::event::{RqEvent, RqEventKind, RqFailure};

/// More than are on their way, and in front of the blocks that they come from.
const MOST: u64 = 512;

/// Lost packets that wait, of 16, above which no more may be lost than are on their way.
const LOST_MOST: u64 = 11;

/// Failures on their way.
#[derive(Block)]
pub struct Failures {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue pairs whose send queue is in error.
    pub sq_down: StreamIn<Bits<16>>,
    /// A packet was not sent because its payload could not be read, in this cycle.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<In, Bits<24>>,
    /// Incarnation of its queue pair.
    pub lost_incarnation: Signal<In, Bits<2>>,
    /// Four more may be lost at most.
    pub lost_hold: Signal<Out, Bit>,
    /// Queue pairs that went into error as responder.
    pub responder: StreamIn<RqFailure>,
    /// Completions that were lost.
    pub lost_cqe: StreamIn<CqLost>,
    /// The queue pairs of `responder` again, for the block that reports them.
    pub err_report: StreamOut<RqFailure>,
    /// To the responder.
    pub rq: StreamOut<RqEvent>,
    /// To the requester.
    pub sq: StreamOut<SqEvent>,
    /// What is on its way to the responder.
    pub to_rq: Signal<Out, Activity>,
    /// What is on its way to the requester.
    pub to_sq: Signal<Out, Activity>,

    hold: Reg<Bit>,
    down: Fifo<Bits<16>, 4>,
    /// Of `lost_cqe`, receives.
    receives: Fifo<Bits<16>, 4>,
    responders: Merge<Bits<16>, 2>,
    unread: Fifo<UnreadPacket, 4>,
    /// Of `responder`: `err_report` does not wait for the arbiter.
    failed: Skid<Bits<16>>,
    /// Of `lost_cqe`: the arbiter begins at a register.
    completions: Skid<Bits<16>>,
    merge: Merge<SqEvent, 3>,
    no_rq_event: Zero<RqEvent>,
    no_sq_event: Zero<SqEvent>,
}

impl Logic for Failures {
    describe!(
        "failures",
        "Carries failures of queue pairs from one side to the other."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(sq_down <= down.s);
        forward!(responders.s[0] <= down.m);
        forward!(responders.s[1] <= receives.m);
        rq.valid = responders.m.valid;
        rq.payload = no_rq_event;
        rq.payload.kind = RqEventKind::SqFailed;
        rq.payload.qpn = responders.m.payload;
        responders.m.ready = rq.ready;

        unread.s.valid = lost;
        unread.s.payload.qpn = lost_qpn;
        unread.s.payload.psn = lost_psn;
        unread.s.payload.incarnation = lost_incarnation;
        assert!(!lost | unread.s.ready, "a lost packet is not reported");
        hold = unread.level > LOST_MOST;
        lost_hold = hold;
        merge.s[0].valid = unread.m.valid;
        merge.s[0].payload = no_sq_event;
        merge.s[0].payload.kind = SqEventKind::Unread;
        copy!(merge.s[0].payload <= unread.m.payload; qpn, psn);
        merge.s[0].payload.generation = unread.m.payload.incarnation;
        unread.m.ready = merge.s[0].ready;
        // `err_report` takes the failure before the requester can fail because of it
        err_report.valid = responder.valid & failed.s.ready;
        err_report.payload = responder.payload;
        failed.s.valid =
            responder.valid & err_report.ready & !(responder.payload.event == COMM_EST);
        failed.s.payload = responder.payload.qpn;
        responder.ready = failed.s.ready & err_report.ready;
        merge.s[1].valid = failed.m.valid;
        merge.s[1].payload = no_sq_event;
        merge.s[1].payload.kind = SqEventKind::Failed;
        merge.s[1].payload.qpn = failed.m.payload;
        failed.m.ready = merge.s[1].ready;
        let cqe_fails = lost_cqe.valid & !lost_cqe.payload.flushed;
        completions.s.valid = cqe_fails;
        completions.s.payload = lost_cqe.payload.qpn;
        lost_cqe.ready = completions.s.ready | lost_cqe.payload.flushed;
        // a requester in RESET or ERR carries nothing on; what finds no room comes again with the next completion that is lost
        receives.s.valid = cqe_fails & completions.s.ready & lost_cqe.payload.recv;
        receives.s.payload = lost_cqe.payload.qpn;
        merge.s[2].valid = completions.m.valid;
        merge.s[2].payload = no_sq_event;
        merge.s[2].payload.kind = SqEventKind::Failed;
        merge.s[2].payload.qpn = completions.m.payload;
        completions.m.ready = merge.s[2].ready;
        forward!(sq <= merge.m);
        to_rq.busy =
            sq_down.valid | down.m.valid | cqe_fails | receives.m.valid | responders.m.valid;
        to_rq.moved = rq.valid & rq.ready;
        to_rq.level = MOST;
        to_sq.busy = responder.valid
            | lost
            | unread.m.valid
            | failed.m.valid
            | cqe_fails
            | completions.m.valid
            | merge.m.valid;
        to_sq.moved = merge.m.valid & sq.ready;
        to_sq.level = MOST;
    }
}
