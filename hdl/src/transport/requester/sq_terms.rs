//! What an event means for the state it meets: comparisons and sums, a cycle ahead of the rules.
use ferroce_proto::abi::qpc::{RATE_HEADERS, qp_type};

use super::decision::*;
use super::event::*;
use crate::bus::qp_state::{RTS, SQD, SQE, is_sq_error, takes_responses};
use crate::bus::types::image::SqCtx;
use crate::bus::types::waits_for;
use crate::prelude::*;

const RC: u64 = qp_type::RC as u64;
const HEADERS: u64 = RATE_HEADERS as u64;

/// Terms of an event. Latency: a cycle; no state of its own.
#[derive(Block)]
pub struct SqTermsOf {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// What of it has left.
    pub departed: Signal<In, Departed>,
    /// Ticks since the latest of it left, less one.
    pub since: Signal<In, Bits<36>>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<In, Bit>,
    /// It is paced.
    pub paced: Signal<In, Bit>,
    /// Packets that may be granted at once.
    pub quantum: Signal<In, Bits<8>>,
    /// It has a window.
    pub windowed: Signal<In, Bit>,
    /// PSNs that may be outstanding when a turn begins.
    pub spare: Signal<In, Bits<16>>,
    /// Bits of a length that are 0 in that of a message which is less than an eighth of a paced turn.
    pub long: Signal<In, Bits<32>>,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub payload_done: Signal<In, Bits<16>>,
    /// The terms.
    pub terms: Signal<Out, SqTerms>,

    issued: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
    out: Dff<SqTerms>,
}

impl Logic for SqTermsOf {
    describe!(
        "sq_terms",
        "What an event means for the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        issued = payload_issued;
        under_way = payload_issued - payload_done;
        // in SQD what was started goes on, and nothing else starts
        let is_running = ((state.state == RTS)
            | ((state.state == SQD) & state.msgs_to_resend.any()))
            & !state.rewind
            & !state.rnr_wait
            & !state.stall
            & !state.broken
            & !state.executing;
        out.running = is_running;
        let in_error = is_sq_error(state.state);
        // what is flushed is over when nothing of it is in the ring and execution has come to its end
        let busy = state.closing | state.used.any() | state.executing;
        let to_flush_end = state.exec_index - state.flush_end;
        out.resumed = state.resumes & !busy & !to_flush_end.bit(15);
        out.unflushed = (state.state == SQE) & (busy | (state.exec_index != state.producer));
        out.reliable = image.qp_type == RC;
        // Fetch, Doorbell: 8 slots, not more than the ring has
        out.may_fetch = (is_running & !state.blocked) | (in_error & state.known & !busy);
        let mut producer = state.producer;
        if sq_event.kind == SqEventKind::Doorbell {
            producer = sq_event.index;
        }
        let available = producer - state.fetch_index;
        let most = slots_at_once(image.sq_log);
        out.more = available > most;
        out.fetched = most.low::<4>();
        if available < most {
            out.fetched = available.low::<4>();
        }
        if state.single {
            out.more = available.slice::<15>(1).any();
            out.fetched = bits::<4>(0).replace_bit(0, available.any());
        }
        // Start: how much of the message may go now
        // the offset behind which a quantum ends the message; the offset is known late
        let latest = sq_event.packets.resize::<25>() - quantum.resize::<25>();
        let exceeds = !latest.bit(24) & (state.exec_offset < latest.low::<24>());
        let is_equal = !latest.bit(24) & (state.exec_offset == latest.low::<24>());
        let answered = sq_event.answered & !sq_event.status.any();
        out.answered = answered;
        out.ends = answered | !exceeds;
        let bytes = counted(sq_event.answered, sq_event.length);
        // an eighth of what the rate sends in a turn, and half of it
        let middling = paced & (bytes & long).any();
        let fills =
            (!answered & (exceeds | (shared & is_equal))) | (paced & (bytes & (long << 2)).any());
        out.middling = middling;
        out.fills = fills;
        out.turn_ends = fills | (middling & state.middling.all());
        // what is flushed goes without waiting
        out.paced = paced & !in_error;
        out.part = sq_event.packets - state.exec_offset;
        if exceeds & !answered {
            out.part = quantum.resize::<24>();
        }
        out.fits = (sq_event.epoch == state.epoch) & (sq_event.index == state.exec_index);
        let fresh = state.msgs_to_resend == 0;
        out.fresh = fresh;
        // what sends nothing takes effect when all in front of it is complete, so one that is flushed has none
        let is_local = !sq_event.packets.any() & !sq_event.status.any();
        out.is_local = is_local;
        // host memory is read again for each turn and each time the message is sent again
        let spent = state.exec_offset.any() & (sq_event.packets <= state.exec_offset);
        out.differs = !fresh & (sq_event.status.any() | spent | is_local);
        out.oldest = state.used == state.msgs_to_resend;
        let waits = waits_in_ring(is_local, sq_event, image.max_rd_atomic, state);
        let read_bound = fresh & !sq_event.status.any() & waits;
        let is_rc = image.qp_type == RC;
        let crowded = has_most(answered, fresh, is_rc, sq_event.packets, state);
        // what is sent again counts from where it began: with nothing ahead a packet may always go
        let ahead = state.inflight - state.resend;
        let full = windowed & (ahead > spare.resize::<24>()) & is_rc;
        out.read_bound = read_bound;
        // READs and atomics are complete when their data is in host memory (IB1 10.8.3.3)
        let in_flight = waits_for(state.writes, issued, under_way);
        out.later = sq_event.held | (in_flight & is_fenced(fresh, sq_event));
        out.room = !(fresh & state.used.bit(image.ot_log)) & !crowded & !full & !read_bound;
        // Answer
        let distance = sq_event.psn - state.una_psn;
        let missing = sq_event.una_psn - state.una_psn;
        let is_good = (sq_event.syndrome.slice::<3>(5) == 0) & !sq_event.status.any();
        // a response acknowledges what has left (IB1 9.7.5); a UC or UD packet reports by itself that it left
        let known = departed.incarnation == state.incarnation;
        let reach = departed.furthest - state.una_psn;
        let current = sq_event.generation == state.incarnation;
        // of two acknowledgements either may be outside; the later one follows the earlier one closely
        let is_outstanding = (distance < state.inflight) & (distance < reach) & known;
        let mut at_psn = is_outstanding;
        if sq_event.sent {
            at_psn = (distance < state.inflight) & current;
        }
        // what left behind a packet that did not is not complete
        let unstalled = !state.stall | (sq_event.psn - state.stall_psn).bit(23);
        out.counts = takes_responses(state.state) & (unstalled | !sq_event.sent);
        // Unread: one that is to be sent again is met again
        let granted = (sq_event.psn - state.next_psn).bit(23);
        out.unread = (distance < state.inflight) & granted & current & unstalled;
        out.at_stall = state.stall & (sq_event.psn == state.stall_psn);
        // Retired: what is to be sent again is read again
        let stalled = state.stall & !state.rewind & current;
        out.passed = stalled & sq_event.passed;
        out.stalled =
            stalled & sq_event.stalled & !sq_event.status.any() & takes_responses(state.state);
        let at_other = (missing < state.inflight) & (missing < reach) & known;
        out.in_window = at_psn & (!sq_event.implied | at_other);
        if sq_event.merged {
            out.in_window = at_psn | at_other;
        }
        out.both = at_psn & at_other;
        out.progress = distance;
        let mut moves = is_good | (sq_event.psn != state.una_psn);
        if is_good {
            out.progress = distance + 1;
        }
        if sq_event.implied {
            out.progress = missing;
            moves = sq_event.una_psn != state.una_psn;
        }
        // what is sent is not merged; the comparison is known last
        out.earlier = sq_event.merged & !sq_event.implied & !is_outstanding;
        out.earlier_progress = missing + 1;
        let progresses = moves & (sq_event.kind == SqEventKind::Answer);
        out.progresses = progresses;
        copy!(out <= state; retry, rnr_retry);
        if progresses {
            out.retry = image.retry_cnt;
            out.rnr_retry = image.rnr_retry;
        }
        out.ahead = ahead;
        // Retired, Timeout; of a Command `idle` too
        out.used_after = state.used - sq_event.count;
        out.idle = is_idle(sq_event.kind, sq_event.count, state);
        out.reads_after = state.reads - sq_event.reads;
        out.empties = state.used.any() & (state.used == sq_event.count);
        out.same_una = sq_event.una_psn == state.una_psn;
        out.current = current;
        let following = state.incarnation + 1;
        let is_noted = following == departed.incarnation;
        out.next_incarnation = if is_noted { following + 1 } else { following };
        // the timer begins anew while something granted has not left, or all that is outstanding is still to be sent again
        let none_left = state.rewind | (state.inflight == state.resend);
        out.waits = !known | !has_left(departed, state) | none_left;
        // an ACK timeout of code n is 4 * 2^n ticks
        out.recent = since.bit(35) | !(since.slice::<34>(2) >> image.timeout).any();
        out.timed_out = state.timer_on & (sq_event.generation == state.timer_generation);
        terms = out;
    }
}

/// As many PSNs are outstanding as may be. A READ takes its PSNs at once, and only if less than 2^23 are then outstanding; else
/// 2^13 may be, or if READs are among them nearly 2^23; what was sent before, and UC and UD packets, may always go.
#[kernel_fn]
fn has_most(answered: Bit, fresh: Bit, is_rc: Bit, packets: Bits<24>, state: SqState) -> Bit {
    let all = state.inflight.resize::<25>() + packets.resize::<25>();
    let most = if answered {
        fresh & all.slice::<2>(23).any()
    } else if state.resend.any() {
        false
    } else if state.reads.any() {
        is_rc & (state.inflight.bit(23) | state.inflight.slice::<10>(13).all())
    } else {
        is_rc & state.inflight.slice::<11>(13).any()
    };
    most
}

/// It waits for the data of READs and atomics in front of it.
#[kernel_fn]
fn is_fenced(fresh: Bit, sq_event: SqEvent) -> Bit {
    fresh & sq_event.fence & !sq_event.status.any()
}

/// A message in the outstanding ring stands in the way: any of one that sends nothing, else a READ or atomic.
#[kernel_fn]
fn waits_in_ring(is_local: Bit, sq_event: SqEvent, most: Bits<5>, state: SqState) -> Bit {
    (is_local & state.used.any())
        | (sq_event.fence & state.reads.any())
        | (sq_event.answered & (state.reads >= most))
}

/// Nothing of it is outstanding, of a Retired event when `count` messages are off the ring.
#[kernel_fn]
fn is_idle(kind: SqEventKind, count: Bits<16>, state: SqState) -> Bit {
    let none: Bit = if kind == SqEventKind::Command {
        !state.used.any()
    } else {
        state.used == count
    };
    !state.executing & none
}

/// All that was granted has left, in this round: of a packet whose payload could not be read, and of those behind it, none counts.
#[kernel_fn]
fn has_left(departed: Departed, state: SqState) -> Bit {
    let all = if state.stall {
        !(departed.latest - state.stall_psn).bit(23)
    } else {
        departed.latest == state.next_psn
    };
    all & (departed.round == state.round)
}

/// Bits of what a message counts at its rate: a READ is short, and of a packet its headers count too.
#[kernel_fn]
fn counted(answered: Bit, length: Bits<32>) -> Bits<32> {
    if answered {
        bits::<32>(HEADERS)
    } else {
        length | HEADERS
    }
}

/// Slots that a Fetch takes at most, of a ring of 2^`log`.
#[kernel_fn]
fn slots_at_once(log: Bits<4>) -> Bits<16> {
    match log {
        0 => bits::<16>(1),
        1 => bits::<16>(2),
        2 => bits::<16>(4),
        _ => bits::<16>(8),
    }
}
