//! What an event of a send queue tells of the network: PSNs acknowledged, a NAK or a timeout that counts, another life of the queue pair.
//!
//! Latency: two cycles. An event a cycle.
use super::decision::*;
use super::event::*;
use crate::bus::types::image::SqCtx;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_types::SendReport;
use crate::transport::congestion::types::CongestionEventKind;

/// Reports of events, one a cycle.
#[derive(Block)]
pub struct SqFeedback {
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
    /// What happened.
    pub report: Signal<Out, Valid<SendReport>>,

    raised: Reg<Bit>,
    raised_report: Dff<SendReport>,
    /// `psn` is this many PSNs behind that of `raised_report`.
    ahead: Dff<Bits<24>>,
    acked: Dff<Bits<24>>,
    mtu: Dff<Bits<3>>,
    report_q: Reg<Valid<SendReport>>,
    no_report: Zero<SendReport>,
}

impl Logic for SqFeedback {
    describe!(
        "sq_feedback",
        "What events of send queues tell of the network."
    );

    #[kernel]
    fn update(&mut self) {
        let answered = (sq_event.kind == SqEventKind::Answer) & !sq_event.closed;
        let acks = answered & terms.in_window & terms.counts & terms.progresses;
        let renews = (sq_event.kind == SqEventKind::Command) & sq_event.reset;
        // what is in flight is sent again (Karn), or the timer of an RNR NAK runs first
        let voids = decision.retries | decision.rnr_timer | decision.rereads;
        raised = valid & ((terms.reliable & (acks | voids)) | renews);
        raised_report = no_report;
        copy!(raised_report <= sq_event; qpn);
        raised_report.kind = CongestionEventKind::None;
        if renews {
            raised_report.kind = CongestionEventKind::Reset;
        } else if decision.retries & answered {
            raised_report.kind = CongestionEventKind::Nak;
        } else if decision.retries {
            raised_report.kind = CongestionEventKind::Timeout;
        } else if acks {
            raised_report.kind = CongestionEventKind::Ack;
        }
        raised_report.voids = voids;
        raised_report.plain =
            !voids & !sq_event.syndrome.slice::<3>(5).any() & !sq_event.data & !sq_event.implied;
        raised_report.incarnation = terms.next_incarnation;
        raised_report.psn = if renews { sq_event.psn } else { state.una_psn };
        let progress = if terms.earlier {
            terms.earlier_progress
        } else {
            terms.progress
        };
        acked = progress;
        ahead = progress;
        if voids {
            ahead = state.inflight;
        }
        if renews {
            ahead = bits::<24>(0);
        }
        mtu = image.mtu;

        report_q.valid = raised;
        report_q.payload = raised_report;
        report_q.payload.psn = raised_report.psn + ahead;
        // MTU code c is 2^(7 + c) bytes
        let mut bytes = ((acked.low::<12>().resize::<24>() << mtu) << 7).low::<24>();
        if acked.slice::<12>(12).any() {
            bytes = bits::<24>(0xff_ffff);
        }
        report_q.payload.bytes = bytes;
        report = report_q;
    }
}
