//! Asks for every checked WQE to start, several ahead, and puts each together with its grant.
//!
//! ```text
//!  CheckedWqe ─► Start ─► FIFO ┐    ┌─► Send  ─► m
//!                grant ─► FIFO ┴────┼─► Flush ─► completion
//!                                   └─► Drop
//! ```
//!
//! Grants come in the order of the questions. An incomplete WQE gives the event Refetch, which has no grant.
use ferroce_proto::abi::cq::status::WR_FLUSH_ERR;

use super::event::*;
use super::grant::{SendAction, SendCompletion, StartGrant};
use super::send_types::{CheckedWqe, GrantedWqe};
use crate::bus::types::Activity;
use crate::prelude::*;

/// The block.
#[derive(Block)]
pub struct WqeStart {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Checked WQEs.
    pub s: StreamIn<CheckedWqe>,
    /// Start and Refetch events.
    pub start: StreamOut<SqEvent>,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, StartGrant>,
    /// WQEs of which a part is to be sent.
    pub m: StreamOut<GrantedWqe>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// WQEs that wait for their grant, or behind it.
    pub activity: Signal<Out, Activity>,

    asked: SkidRam<CheckedWqe>,
    started: Fifo<CheckedWqe, 3>,
    grants: Bypass<StartGrant, 4>,
    flush: SkidRam<CheckedWqe>,
    no_event: Zero<SqEvent>,
    no_completion: Zero<SendCompletion>,
}

impl Logic for WqeStart {
    describe!("wqe_start", "Puts checked WQEs together with their grants.");

    #[kernel]
    fn update(&mut self) {
        // ask
        asked.s.valid = s.valid & started.s.ready;
        asked.s.payload = s.payload;
        asked.m.ready = start.ready;
        start.valid = asked.m.valid;
        start.payload = no_event;
        start.payload.kind = SqEventKind::Start;
        if asked.m.payload.incomplete {
            start.payload.kind = SqEventKind::Refetch;
        }
        copy!(start.payload <= asked.m.payload;
            qpn, index, packets, length, answered, fence, status, epoch, slots, cqe_opcode,
            signaled);
        started.s.valid = s.valid & !s.payload.incomplete & asked.s.ready;
        started.s.payload = s.payload;
        s.ready = started.s.ready & asked.s.ready;
        grants.s.valid = grant_valid;
        grants.s.payload = grant;

        // a WQE and its grant
        let both = started.m.valid & grants.m.valid;
        let sends = (grants.m.payload.action == SendAction::Send) & grants.m.payload.count.any();
        let flushes = grants.m.payload.action == SendAction::Flush;
        m.valid = both & sends;
        m.payload.wqe = started.m.payload;
        m.payload.grant = grants.m.payload;
        flush.s.valid = both & flushes;
        flush.s.payload = started.m.payload;
        let accept = both & ((!sends & !flushes) | (flushes & flush.s.ready) | (sends & m.ready));
        started.m.ready = accept;
        grants.m.ready = accept;
        activity.busy = s.valid | started.m.valid;
        activity.moved = accept;
        activity.level = started.level.resize::<10>();

        flush.m.ready = flushed.ready;
        flushed.valid = flush.m.valid;
        flushed.payload = no_completion;
        copy!(flushed.payload <= flush.m.payload; cqn, qpn);
        flushed.payload.opcode = flush.m.payload.cqe_opcode;
        flushed.payload.wqe_index = flush.m.payload.index;
        flushed.payload.status = WR_FLUSH_ERR;
    }
}
