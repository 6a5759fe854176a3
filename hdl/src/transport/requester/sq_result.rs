//! What leaves the table of send queues: entries for lists, grants, orders, made of an event, the state it met and the
//! verdict of the rules.
//!
//! Latency: a cycle; two for what takes an address (`fetch`, `entry`).

use super::decision::*;
use super::event::*;
use super::grant::{FetchGrant, Outstanding, RetireGrant, StartGrant};
use super::sq_feedback::SqFeedback;
use super::sq_pace::SqPace;
use super::timer_types::TimerSet;
use crate::bus::qp_state::{ERR, RTS, SQD, is_sq_error};
use crate::bus::types::Recall;
use crate::bus::types::image::{QpState, SqCtx};
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_types::{PaceGrant, PaceOrder, PaceRenewal, SendReport};

/// Results of events, one a cycle.
#[derive(Block)]
pub struct SqResults {
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
    /// Packets were granted to a queue pair.
    pub sent: Signal<Out, Valid<PaceGrant>>,
    /// A paced queue pair got a grant, or has something to fetch, or both.
    pub order: Signal<Out, Valid<PaceOrder>>,
    /// A send queue begins anew.
    pub renewal: Signal<Out, Valid<PaceRenewal>>,
    /// What happened, for round trips.
    pub report: Signal<Out, Valid<SendReport>>,
    /// The queue pair has something to fetch, and is not paced.
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
    /// Packets of another round are not to be sent any more.
    pub recall_valid: Signal<Out, Bit>,
    /// The round.
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

    // stage W
    w_ready: Reg<Bit>,
    w_held: Dff<Bit>,
    w_class: Dff<Bits<2>>,
    w_short: Dff<Bit>,
    w_list: Reg<Bit>,
    w_qpn: Dff<Bits<16>>,
    w_fetch: Reg<Bit>,
    w_fetch_index: Dff<Bits<16>>,
    w_fetch_count: Dff<Bits<4>>,
    w_partial: Dff<Bit>,
    w_epoch: Dff<Bits<4>>,
    w_start: Reg<Bit>,
    w_grant: Dff<StartGrant>,
    w_retire: Reg<Bit>,
    w_retire_grant: Dff<RetireGrant>,
    w_entry: Reg<Bit>,
    w_tail: Dff<Bits<16>>,
    w_packets: Dff<Bits<24>>,
    w_outstanding: Dff<Outstanding>,
    w_image: Dff<SqCtx>,
    w_recall: Reg<Bit>,
    w_round: Dff<Bits<2>>,
    w_timer: Reg<Bit>,
    w_timer_set: Dff<TimerSet>,
    w_query: Reg<Bit>,
    w_state: Dff<QpState>,
    w_failed: Reg<Bit>,
    w_status: Dff<Bits<8>>,
    w_close: Reg<Bit>,
    w_drained: Reg<Bit>,
    w_length: Dff<Bits<32>>,
    w_counts: Reg<SqCounts>,
    no_counts: Zero<SqCounts>,
    pace: SqPace,
    feedback: SqFeedback,

    // stage V: addresses
    v_fetch: Reg<Bit>,
    v_fetch_grant: Dff<FetchGrant>,
    v_entry: Reg<Bit>,
    v_entry_addr: Dff<Bits<24>>,
    v_outstanding: Dff<Outstanding>,
}

/// Packets that an event grants. A READ is one packet, however many PSNs it takes.
#[kernel_fn]
fn granted_count(terms: SqTerms) -> Bits<8> {
    if terms.answered {
        bits::<8>(1)
    } else {
        terms.part.low::<8>()
    }
}

/// Of these, those that were sent before.
#[kernel_fn]
fn granted_again(state: SqState, terms: SqTerms) -> Bits<8> {
    if terms.answered & state.resend.any() {
        bits::<8>(1)
    } else if terms.answered {
        bits::<8>(0)
    } else if state.resend >= terms.part {
        terms.part.low::<8>()
    } else {
        state.resend.low::<8>()
    }
}

/// Bytes of the last packet of `length` bytes: at least one, unless there is none. MTU code c is 128 << c bytes.
#[kernel_fn]
fn last_bytes(length: Bits<32>, mtu: Bits<3>) -> Bits<13> {
    let rest = length.low::<13>() & !(bits::<13>(0x1f80) << mtu);
    if length.any() & !rest.any() {
        bits::<13>(128) << mtu
    } else {
        rest
    }
}

impl Logic for SqResults {
    describe!("sq_result", "What leaves the table of send queues.");

    #[kernel]
    fn update(&mut self) {
        // stage W
        w_grant.action = decision.action;
        w_grant.psn = state.next_psn;
        w_grant.offset = state.exec_offset;
        let count = granted_count(terms);
        w_grant.count = count;
        w_grant.some = terms.answered | terms.part.low::<8>().any();
        w_grant.again = granted_again(state, terms);
        w_grant.final_part = terms.ends;
        w_grant.fresh = terms.fresh;
        copy!(w_grant <= state; round, incarnation);
        w_recall = valid & decision.recall;
        w_round = decision.round;
        w_entry = valid & decision.entry;
        let pushes = valid
            & ((decision.push_ready & !state.queued)
                | ((sq_event.kind == SqEventKind::Fetch) & decision.queued));
        copy!(pace <= self; valid, sq_event, image, state, terms, decision);
        pace.pushes = pushes;
        pace.count = count;
        sent = pace.sent;
        order = pace.order;
        renewal = pace.renewal;
        copy!(feedback <= self; valid, sq_event, image, state, terms, decision);
        report = feedback.report;
        w_ready = pushes & !pace.paces;
        w_held = decision.held;
        w_class = sq_event.packet_class;
        w_short = sq_event.is_short;
        w_list =
            valid & decision.push_list & (!state.listed | (sq_event.kind == SqEventKind::Retire));
        w_qpn = sq_event.qpn;
        w_fetch = valid
            & ((sq_event.kind == SqEventKind::Fetch)
                | ((sq_event.kind == SqEventKind::Doorbell) & sq_event.fetches));
        w_fetch_index = state.fetch_index;
        w_fetch_count = bits::<4>(0);
        let own = !state.queued & !terms.paced;
        if terms.may_fetch & ((sq_event.kind == SqEventKind::Fetch) | own) {
            w_fetch_count = terms.fetched;
        }
        w_partial = state.single & terms.more;
        w_epoch = state.epoch;
        w_start = valid & (sq_event.kind == SqEventKind::Start);
        w_retire = valid & (sq_event.kind == SqEventKind::Retire);
        w_retire_grant.qpn = sq_event.qpn;
        w_retire_grant.head = state.tail - state.used;
        w_retire_grant.error = is_sq_error(state.state) & !state.closing;
        // what is executed completes first
        w_retire_grant.fatal = (state.state == ERR) & !state.closing & !state.executing;
        w_retire_grant.status = state.error_status;
        w_retire_grant.syndrome = state.error_syndrome;
        copy!(w_retire_grant <= state;
            used, head_index, una_psn, writes, unfenced, incarnation, unread, stall, stall_psn);
        copy!(w_retire_grant <= image; mtu, cqn, ot_base, ot_log);
        w_tail = state.tail;
        w_packets = sq_event.packets;
        w_outstanding.first_psn = state.next_psn;
        copy!(w_outstanding <= sq_event; slots, cqe_opcode, signaled);
        w_outstanding.answered = terms.answered;
        w_outstanding.bad = sq_event.status.any();
        w_outstanding.rest = sq_event.status.resize::<13>();
        w_length = sq_event.length;
        w_image = image;
        w_timer = valid & (decision.start_timer | decision.stop_timer);
        w_timer_set.qpn = sq_event.qpn;
        w_timer_set.on =
            !decision.stop_timer & terms.reliable & (decision.rnr_timer | image.timeout.any());
        w_timer_set.generation = state.timer_generation + 1;
        w_timer_set.rnr = decision.rnr_timer;
        w_timer_set.code = image.timeout;
        if decision.rnr_timer {
            w_timer_set.code = sq_event.syndrome.low::<5>();
        }
        w_query = valid & (sq_event.kind == SqEventKind::Command);
        w_state.sq_state = state.state.resize::<4>();
        if state.resumes_to_sqd {
            w_state.sq_state = bits::<4>(SQD);
        } else if state.resumes {
            w_state.sq_state = bits::<4>(RTS);
        }
        w_state.sq_psn = state.next_psn;
        w_state.una_psn = state.una_psn;
        w_failed = valid & decision.fail;
        w_status = decision.status;
        w_close = valid & decision.close;
        w_drained = valid & decision.drained;
        w_counts = if valid { decision.counts } else { no_counts };

        // stage V
        let slot_mask = !(bits::<16>(0xffff) << w_image.sq_log);
        let entry_mask = !(bits::<16>(0xffff) << w_image.ot_log);
        v_fetch = w_fetch;
        v_fetch_grant.qpn = w_qpn;
        v_fetch_grant.epoch = w_epoch;
        v_fetch_grant.index = w_fetch_index;
        v_fetch_grant.count = w_fetch_count;
        v_fetch_grant.partial = w_partial;
        v_fetch_grant.addr = w_image.sq_base + ((w_fetch_index & slot_mask).resize::<64>() << 6);
        // Slots from the first one granted to the last of the ring.
        let to_last = !w_fetch_index & slot_mask;
        v_fetch_grant.head = w_fetch_count;
        v_fetch_grant.tail = bits::<4>(0);
        if !to_last.slice::<13>(3).any() & (to_last.low::<4>() < w_fetch_count) {
            v_fetch_grant.head = to_last.low::<4>() + 1;
            v_fetch_grant.tail = w_fetch_count + !to_last.low::<4>();
        }
        v_fetch_grant.base = w_image.sq_base;
        v_entry = w_entry;
        v_entry_addr = w_image.ot_base | (w_tail & entry_mask).resize::<24>();
        v_outstanding = w_outstanding;
        v_outstanding.last_psn = w_outstanding.first_psn + w_packets - 1;
        if w_outstanding.answered {
            v_outstanding.rest = last_bytes(w_length, w_image.mtu);
        }

        ready_valid = w_ready;
        ready_held = w_held;
        ready_class = w_class;
        ready_short = w_short;
        list_valid = w_list;
        list_qpn = w_qpn;
        fetch_valid = v_fetch;
        fetch = v_fetch_grant;
        start_valid = w_start;
        start = w_grant;
        retire_valid = w_retire;
        retire = w_retire_grant;
        entry_valid = v_entry;
        entry_addr = v_entry_addr;
        entry = v_outstanding;
        recall_valid = w_recall;
        recall.qpn = w_qpn;
        recall.round = w_round;
        timer_valid = w_timer;
        timer = w_timer_set;
        query_valid = w_query;
        query = w_state;
        failed_valid = w_failed;
        failed_qpn = w_qpn;
        failed_status = w_status;
        close_valid = w_close;
        close_qpn = w_qpn;
        drained_valid = w_drained;
        drained_qpn = w_qpn;
        counts = w_counts;
    }
}
