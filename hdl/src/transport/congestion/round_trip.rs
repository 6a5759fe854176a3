//! Round trips: from the departure of a request to the acknowledgement of just that one.
//!
//! ```text
//!  departures that ask ─► one waits ─┐
//!  reports of send queues ───────────┴─► packet measured, of each queue pair ─► cycle of its departure ─► events
//! ```
//!
//! One packet of a queue pair is measured at a time: the next one that departs, asks for an acknowledgement and was not sent before. An
//! acknowledgement of it alone is a sample; one that goes further, and one by data, ends the measurement without (docs/congestion.md).
//!
//! *Not sent before* needs no list of packets. A go-back reports the PSN behind all that was granted by then; what departs from there on is
//! sent for the first time. So a departure and a report may come in any order: what is acknowledged, or to be sent again, is chosen no more.
//!
//! Latency: 6 cycles from a report to its event. A report a cycle; a departure waits for a cycle without one, and is lost while another
//! waits: a later one is measured then.
use super::pace_types::{MeasuredPacket, SendReport};
use super::types::{CongestionEvent, CongestionEventKind};
use crate::bus::types::Departure;
use crate::bus::valid::Valid;
use crate::cell::delay::Delay;
use crate::prelude::*;

/// Round trips of 2^Q queue pairs.
#[derive(Block)]
pub struct RoundTrip<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A request leaves; one cycle.
    pub left_valid: Signal<In, Bit>,
    /// Which.
    pub left: Signal<In, Departure>,
    /// What happened to a send queue.
    pub report: Signal<In, Valid<SendReport>>,
    /// The same for congestion control: Ack, Nak, Timeout; an Ack that is a sample has its `rtt`.
    pub feedback: Signal<Out, Valid<CongestionEvent>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    waits: Reg<Bit>,
    waiting: Dff<Departure>,
    table: Rmw<MeasuredPacket, Q>,
    /// It is a report; else a departure.
    reported: Delay<Bit, 2>,
    entered: Delay<SendReport, 2>,
    /// The PSN before that of it.
    before_it: Delay<Bits<24>, 2>,
    /// Departures of what is measured, in cycles: no less than 19 hours go round in 2^44.
    starts: Ram<Bits<44>, Q>,
    cycle: Reg<Bits<44>>,
    // behind the table
    chosen_3: Reg<Bit>,
    event_valid_3: Reg<Bit>,
    sampled_3: Dff<Bit>,
    report_3: Dff<SendReport>,
    event_valid_4: Reg<Bit>,
    sampled_4: Dff<Bit>,
    event_4: Dff<CongestionEvent>,
    // behind the cycle of departure
    event_valid_5: Reg<Bit>,
    sampled_5: Dff<Bit>,
    event_5: Dff<CongestionEvent>,
    took_5: Dff<Bits<44>>,
    feedback_q: Reg<Valid<CongestionEvent>>,
    no_report: Zero<SendReport>,
}

impl<const Q: usize> Logic for RoundTrip<Q> {
    describe!(
        "round_trip",
        format!("q{Q}"),
        "Round trips of requests, a packet of each queue pair at a time."
    );

    #[kernel]
    fn update(&mut self) {
        cycle = cycle + 1;
        let arrives = left_valid & left.ack_req;
        let offered = if waits { waiting } else { left };
        let offers = waits | arrives;
        if report.valid {
            waits = offers;
            waiting = offered;
        } else {
            waits = waits & arrives;
            waiting = left;
        }
        let mut entering = report.payload;
        if !report.valid {
            entering = no_report;
            copy!(entering <= offered; qpn, incarnation);
            entering.psn = offered.next_psn;
        }
        table.valid = report.valid | offers;
        table.addr = entering.qpn.low::<Q>();
        reported.d = report.valid;
        entered.d = entering;
        before_it.d = entering.psn - 1;
        ready = table.ready;

        // stage X
        let seen = table.current;
        let now = entered.q;
        let of_report = reported.q;
        let ahead = now.psn - seen.psn;
        let exact = !ahead.any();
        // not at it either: the sign of a second difference is there sooner than whether the first is 0
        let from_before = before_it.q - seen.psn;
        let further = !ahead.bit(23) & !from_before.bit(23);
        let chooses = !of_report & !seen.measures & (seen.incarnation == now.incarnation) & further;
        let mut next = seen;
        if !of_report {
            next.measures = seen.measures | chooses;
            if chooses {
                next.psn = now.psn;
            }
        } else if now.kind == CongestionEventKind::Reset {
            next.incarnation = now.incarnation;
            next.measures = false;
            next.psn = now.psn;
        } else if now.voids | !ahead.bit(23) {
            next.measures = false;
            next.psn = now.psn;
        }
        table.write = true;
        table.result = next;
        chosen_3 = table.x_valid & chooses;
        event_valid_3 = table.x_valid
            & of_report
            & matches!(
                now.kind,
                CongestionEventKind::Ack | CongestionEventKind::Nak | CongestionEventKind::Timeout
            );
        sampled_3 = now.plain & seen.measures & exact;
        report_3 = now;

        starts.we = chosen_3;
        starts.waddr = report_3.qpn.low::<Q>();
        starts.wdata = cycle;
        starts.re = true;
        starts.raddr = report_3.qpn.low::<Q>();
        event_valid_4 = event_valid_3;
        sampled_4 = sampled_3;
        copy!(event_4 <= report_3; kind, qpn, bytes);
        event_4.rtt = bits::<24>(0);
        event_4.packet = bits::<3>(0);
        event_valid_5 = event_valid_4;
        sampled_5 = sampled_4;
        event_5 = event_4;
        took_5 = cycle - starts.rdata;
        feedback_q.valid = event_valid_5;
        feedback_q.payload = event_5;
        if sampled_5 & !took_5.slice::<20>(24).any() {
            feedback_q.payload.rtt = took_5.low::<24>();
        }
        feedback = feedback_q;
    }
}
