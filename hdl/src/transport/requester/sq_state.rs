//! The dynamic state of all send queues.
//!
//! One [`SqEvent`] a cycle enters at `s`, one of the same queue pair every second cycle; four cycles later its results
//! leave, registered: at most one entry for each list, one grant and one order for timer and outstanding table. Consumers have room by
//! construction: each queue pair stands at most once in a list (`queued`, `listed`), and grants answer requests whose
//! origin reserved a place. Grants come in the order of their events.
//!
//! Stage X, two cycles after the entry, sees the state after all earlier events ([`Rmw`]) and compares; stage Y applies
//! the rules; what is not part of the state's feedback is finished behind it ([`sq_terms`](super::sq_terms),
//! [`sq_rules`](super::sq_rules), [`sq_answer`](super::sq_answer), [`sq_result`](super::sq_result)).
use super::decision::SqCounts;
use super::departures::Departures;
use super::event::*;
use super::grant::{FetchGrant, Outstanding, RetireGrant, SendAction, StartGrant};
use super::sq_result::SqResults;
use super::sq_rules::SqRules;
use super::sq_terms::SqTermsOf;
use super::timer_types::TimerSet;
use crate::bus::types::image::{QpState, SqCtx};
use crate::bus::types::{Departure, Recall};
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_classes::PaceClasses;
use crate::transport::congestion::pace_types::{PaceClass, PaceGrant, PaceOrder, PaceRenewal};
use crate::transport::congestion::round_trip::RoundTrip;
use crate::transport::congestion::types::CongestionEvent;

/// State of 2^Q send queues.
#[derive(Block)]
pub struct SqStateTable<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Events.
    pub s: StreamIn<SqEvent>,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, SqCtx>,
    /// A request leaves; one cycle.
    pub left_valid: Signal<In, Bit>,
    /// Which.
    pub left: Signal<In, Departure>,
    /// Ticks since reset.
    pub now: Signal<In, Bits<36>>,
    /// There is room for completions of flushed WQEs.
    pub room: Signal<In, Bit>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<In, Bit>,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub payload_done: Signal<In, Bits<16>>,
    /// Orders to the calendar wait: no event is taken.
    pub pause: Signal<In, Bit>,
    /// A queue pair is paced from now on, or no more.
    pub paced_valid: Signal<In, Bit>,
    /// Which.
    pub paced_qpn: Signal<In, Bits<16>>,
    /// How.
    pub pace_class: Signal<In, PaceClass>,
    /// Packets were granted to a queue pair.
    pub sent: Signal<Out, Valid<PaceGrant>>,
    /// A paced queue pair got a grant, or wants to start, or both.
    pub order: Signal<Out, Valid<PaceOrder>>,
    /// A send queue begins anew.
    pub renewal: Signal<Out, Valid<PaceRenewal>>,
    /// What the network did to a send queue, for congestion control.
    pub feedback: Signal<Out, Valid<CongestionEvent>>,
    /// Grants that let packets out so far, modulo 2^16.
    pub granted: Signal<Out, Bits<16>>,
    /// The queue pair has something to fetch.
    pub ready_valid: Signal<Out, Bit>,
    /// With `ready_valid`: not before its class is open.
    pub ready_held: Signal<Out, Bit>,
    /// That class.
    pub ready_class: Signal<Out, Bits<2>>,
    /// And its part is short.
    pub ready_short: Signal<Out, Bit>,
    /// The queue pair has something to retire.
    pub list_valid: Signal<Out, Bit>,
    /// Queue pair of the two lists.
    pub list_qpn: Signal<Out, Bits<16>>,
    /// Answer to Fetch.
    pub fetch_valid: Signal<Out, Bit>,
    /// Answer to Fetch.
    pub fetch: Signal<Out, FetchGrant>,
    /// Answer to Start.
    pub start_valid: Signal<Out, Bit>,
    /// Answer to Start.
    pub start: Signal<Out, StartGrant>,
    /// Answer to Retire.
    pub retire_valid: Signal<Out, Bit>,
    /// Answer to Retire.
    pub retire: Signal<Out, RetireGrant>,
    /// Entry for the outstanding table.
    pub entry_valid: Signal<Out, Bit>,
    /// Its place in the pool.
    pub entry_addr: Signal<Out, Bits<24>>,
    /// The entry.
    pub entry: Signal<Out, Outstanding>,
    /// A send queue goes back: packets of another round are not to be sent any more.
    pub recall_valid: Signal<Out, Bit>,
    /// Which, and its round.
    pub recall: Signal<Out, Recall>,
    /// Order to the timer.
    pub timer_valid: Signal<Out, Bit>,
    /// Order to the timer.
    pub timer: Signal<Out, TimerSet>,
    /// Answer to Command: requester's part of the state.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to Command.
    pub query: Signal<Out, QpState>,
    /// A send queue went into error.
    pub failed_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub failed_qpn: Signal<Out, Bits<16>>,
    /// Status behind it; 0 if the cause is not in the send queue.
    pub failed_status: Signal<Out, Bits<8>>,
    /// A send queue entered error: `track` answers `closed` when no write of its queue pair is pending.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// In SQD nothing of the send queue is outstanding any more.
    pub drained_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses.
    pub counts: Signal<Out, SqCounts>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<SqState, Q, 2>,
    terms: SqTermsOf,
    rules: SqRules,
    results: SqResults,
    images: Ram<SqCtx, Q>,
    departures: Departures<Q>,
    classes: PaceClasses<Q>,
    round_trip: RoundTrip<Q>,
    e1: Dff<SqEvent>,
    e2: Dff<SqEvent>,
    e3: Dff<SqEvent>,
    k2: Dff<SqCtx>,
    k3: Dff<SqCtx>,
    c3: Dff<SqState>,
    valid_3: Reg<Bit>,
    grants: Reg<Bits<16>>,
}

impl<const Q: usize> Logic for SqStateTable<Q> {
    describe!(
        "sq_state",
        format!("q{Q}"),
        "Dynamic state of all send queues: one event a cycle."
    );

    #[kernel]
    fn update(&mut self) {
        // entry and stage 1
        ready = table.ready & departures.ready & classes.ready & round_trip.ready;
        table.addr = s.payload.qpn.low::<Q>();
        let takes = table.ready & !table.same_addr & !pause;
        s.ready = takes;
        table.valid = s.valid & takes;
        classes.paced_valid = paced_valid;
        classes.paced_qpn = paced_qpn;
        classes.pace_class = pace_class;
        classes.qpn = s.payload.qpn;
        copy!(classes <= images.rdata; mtu, window);
        images.we = image_we;
        images.waddr = image_qpn;
        images.wdata = image;
        images.re = true;
        images.raddr = s.payload.qpn.low::<Q>();
        departures.left_valid = left_valid;
        departures.left = left;
        departures.tick = now;
        departures.qpn = s.payload.qpn;
        round_trip.left_valid = left_valid;
        round_trip.left = left;
        e1 = s.payload;
        e2 = e1;
        k2 = images.rdata;

        // stage X
        terms.sq_event = e2;
        terms.image = k2;
        terms.state = table.current;
        terms.departed = departures.departed;
        terms.since = departures.since;
        terms.shared = shared;
        copy!(terms <= classes; paced, quantum, long, windowed, spare);
        copy!(terms <= self; payload_issued, payload_done);
        e3 = e2;
        k3 = k2;
        c3 = table.current;
        valid_3 = table.x_valid;

        // stage Y
        rules.sq_event = e3;
        rules.image = k3;
        rules.state = c3;
        rules.terms = terms.terms;
        rules.granted = grants;
        rules.room = room;
        if valid_3 & (rules.decision.action == SendAction::Send) & terms.terms.part.any() {
            grants = grants + 1;
        }
        granted = grants;
        table.write = rules.write;
        table.result = rules.next_state;

        results.valid = valid_3;
        results.sq_event = e3;
        results.image = k3;
        results.state = c3;
        results.terms = terms.terms;
        results.decision = rules.decision;
        sent = results.sent;
        order = results.order;
        renewal = results.renewal;
        round_trip.report = results.report;
        feedback = round_trip.feedback;
        copy!(self <= results; ready_valid, ready_held, ready_class, ready_short);
        list_valid = results.list_valid;
        list_qpn = results.list_qpn;
        fetch_valid = results.fetch_valid;
        fetch = results.fetch;
        start_valid = results.start_valid;
        start = results.start;
        retire_valid = results.retire_valid;
        retire = results.retire;
        entry_valid = results.entry_valid;
        entry_addr = results.entry_addr;
        entry = results.entry;
        recall_valid = results.recall_valid;
        recall = results.recall;
        timer_valid = results.timer_valid;
        timer = results.timer;
        query_valid = results.query_valid;
        query = results.query;
        failed_valid = results.failed_valid;
        failed_qpn = results.failed_qpn;
        failed_status = results.failed_status;
        close_valid = results.close_valid;
        close_qpn = results.close_qpn;
        drained_valid = results.drained_valid;
        drained_qpn = results.drained_qpn;
        counts = results.counts;
    }
}
