//! What an event of a send queue means for its pace: bytes granted, orders to the calendar, a new limit.
//!
//! Latency: a cycle for `renewal`, two for what counts bytes.
use ferroce_proto::abi::qpc::RATE_HEADERS;

use super::decision::*;
use super::event::*;
use super::grant::SendAction;
use crate::bus::qp_state::RESET;
use crate::bus::types::image::SqCtx;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_types::{PaceGrant, PaceOrder, PaceRenewal};

/// Log2 of the bytes of a packet beside its payload.
const LOG_HEADERS: usize = RATE_HEADERS.ilog2() as usize;

/// Pace of events, one a cycle.
#[derive(Block)]
pub struct SqPace {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event was judged.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State before the event.
    pub state: Signal<In, SqState>,
    /// Its terms.
    pub terms: Signal<In, SqTerms>,
    /// The verdict.
    pub decision: Signal<In, SqDecision>,
    /// The queue pair has something to fetch.
    pub pushes: Signal<In, Bit>,
    /// It goes by the calendar.
    pub paces: Signal<Out, Bit>,
    /// Packets of its grant.
    pub count: Signal<In, Bits<8>>,
    /// Packets were granted to a queue pair.
    pub sent: Signal<Out, Valid<PaceGrant>>,
    /// A paced queue pair got a grant, or has something to fetch, or both.
    pub order: Signal<Out, Valid<PaceOrder>>,
    /// A send queue begins anew.
    pub renewal: Signal<Out, Valid<PaceRenewal>>,

    // stage W
    granted: Reg<Bit>,
    paced: Reg<Bit>,
    /// It has something to fetch.
    wants: Reg<Bit>,
    /// No WQE of it is under way.
    idle: Dff<Bit>,
    qpn: Dff<Bits<16>>,
    mtu: Dff<Bits<3>>,
    offset: Dff<Bits<17>>,
    /// The grant ends its message.
    finishes: Dff<Bit>,
    /// Bytes with headers of whole packets, and of the whole message.
    whole: Dff<Bits<17>>,
    message: Dff<Bits<17>>,
    renewal_q: Reg<Valid<PaceRenewal>>,
    // stage V
    sent_q: Reg<Valid<PaceGrant>>,
    order_q: Reg<Valid<PaceOrder>>,
}

impl Logic for SqPace {
    describe!("sq_pace", "What events of send queues mean for their pace.");

    #[kernel]
    fn update(&mut self) {
        // released for one slot of a WQE that has more, or for what its class holds up: it may go on, its start has come
        let goes_on = ((sq_event.kind == SqEventKind::Refetch) & state.single) | decision.held;
        paces = terms.paced & !goes_on;
        wants = pushes & paces;
        idle = state.fetch_index == state.exec_index;
        paced = paces;
        granted = valid & (decision.action == SendAction::Send) & terms.part.any();
        qpn = sq_event.qpn;
        mtu = image.mtu;
        offset = state.exec_offset.low::<17>();
        // a READ is its headers
        finishes = terms.ends & !terms.answered;
        let headers = count.resize::<17>() << LOG_HEADERS;
        whole = headers;
        if !terms.answered {
            whole = headers + ((count.resize::<17>() << image.mtu) << 7);
        }
        message = headers + sq_event.length.low::<17>();
        let ends = sq_event.set & (sq_event.state == RESET);
        renewal_q.valid = valid
            & (sq_event.kind == SqEventKind::Command)
            & (sq_event.image | sq_event.reset | ends);
        renewal_q.payload.qpn = sq_event.qpn;
        renewal_q.payload.resets = sq_event.reset | ends;
        renewal_q.payload.limits = sq_event.image | ends;
        renewal_q.payload.rate = image.rate_limit;
        renewal_q.payload.packet = bits::<3>(0);
        // the image may be that of a former owner of the number
        let is_own = sq_event.image | state.known;
        if image.swift & terms.reliable & is_own & !ends {
            renewal_q.payload.packet = image.mtu;
        }
        if ends {
            renewal_q.payload.rate = bits::<20>(0);
        }
        renewal = renewal_q;

        let mut bytes = whole;
        if finishes {
            bytes = message - ((offset << mtu) << 7);
        }
        sent_q.valid = granted;
        sent_q.payload.qpn = qpn;
        sent_q.payload.bytes = bytes;
        order_q.valid = (granted & paced) | wants;
        order_q.payload.qpn = qpn;
        order_q.payload.bytes = bits::<17>(0);
        if granted {
            order_q.payload.bytes = bytes;
        }
        order_q.payload.pushes = wants;
        order_q.payload.idle = !granted & idle;
        sent = sent_q;
        order = order_q;
    }
}
