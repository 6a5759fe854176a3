//! What an event means for the state it meets: comparisons and sums, a cycle ahead of the rules.
use ferroce_proto::abi::qpc::{qp_type, state};

use super::event::*;
use super::verdict::*;
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const SQE: u64 = state::SQE as u64;
const ERR: u64 = state::ERR as u64;
const RC: u64 = qp_type::RC as u64;

/// Terms of an event. Latency: a cycle; no state of its own.
#[derive(Block)]
pub struct SqTermsOf {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<In, Bit>,
    /// The terms.
    pub terms: Signal<Out, SqTerms>,

    out: Dff<SqTerms>,
}

impl Logic for SqTermsOf {
    describe!(
        "sq_terms",
        "What an event means for the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let e = sq_event;
        let k = image;
        let c = state;
        // in SQD what was started goes on, and nothing else starts
        let is_running = ((c.state == RTS) | ((c.state == SQD) & c.behind.any()))
            & !c.rewind
            & !c.rnr_wait
            & !c.broken;
        out.running = is_running;
        let in_error = (c.state == ERR) | (c.state == SQE);
        out.reliable = k.qp_type == RC;
        // Fetch, Doorbell: 8 slots, not more than the ring has
        out.may_fetch = (is_running & !c.blocked) | (in_error & !c.closing & (c.used == 0));
        let mut producer = c.producer;
        if e.kind == SqEventKind::Doorbell {
            producer = e.index;
        }
        let available = producer - c.fetch_index;
        let mut most: Bits<16> = bits::<16>(8);
        if k.sq_log == 2 {
            most = bits::<16>(4);
        } else if k.sq_log == 1 {
            most = bits::<16>(2);
        } else if k.sq_log == 0 {
            most = bits::<16>(1);
        }
        out.more = available > most;
        out.fetched = most.low::<4>();
        if available < most {
            out.fetched = available.low::<4>();
        }
        // Start: how much of the message may go now
        let mut quantum: Bits<24> = bits::<24>(128);
        if k.mtu == 3 {
            quantum = bits::<24>(64);
        }
        if k.mtu == 4 {
            quantum = bits::<24>(32);
        }
        if k.mtu == 5 {
            quantum = bits::<24>(16);
        }
        let left = e.packets - c.exec_offset;
        let answered = e.answered & !e.status.any();
        out.answered = answered;
        out.ends = answered | (left <= quantum);
        out.turn_ends = !answered & ((left > quantum) | (shared & (left == quantum)));
        out.part = quantum;
        if answered | (left <= quantum) {
            out.part = left;
        }
        out.fits = (e.epoch == c.epoch) & (e.index == c.exec_index);
        let fresh = c.behind == 0;
        out.fresh = fresh;
        let read_bound = fresh
            & !e.status.any()
            & ((e.fence & c.reads.any()) | (e.answered & (c.reads >= k.max_rd_atomic)));
        out.read_bound = read_bound;
        // a READ takes its PSNs at once, and only if less than 2^23 are then outstanding; else 2^13 may be, or if READs
        // are among them nearly 2^23; what was sent before, and what nobody acknowledges, may always go
        // PSNs outstanding with those of a whole READ.
        let all = c.inflight.resize::<25>() + e.packets.resize::<25>();
        let crowded = if answered {
            fresh & all.slice::<2>(23).any()
        } else if c.resend.any() {
            false
        } else if c.reads.any() {
            (k.qp_type == RC) & (c.inflight.bit(23) | c.inflight.slice::<10>(13).all())
        } else {
            (k.qp_type == RC) & c.inflight.slice::<11>(13).any()
        };
        out.room = !(fresh & c.used.bit(k.ot_log)) & !crowded & !read_bound;
        out.read_bound = read_bound;
        // Answer
        let distance = e.psn - c.una_psn;
        let missing = e.una_psn - c.una_psn;
        let is_good = (e.syndrome.slice::<3>(5) == 0) & !e.status.any();
        // of two acknowledgements either may be outside; the later one follows the earlier one closely
        let at_psn = distance < c.inflight;
        let at_other = missing < c.inflight;
        out.in_window = at_psn & (!e.implied | at_other);
        if e.merged {
            out.in_window = at_psn | at_other;
        }
        out.both = at_psn & at_other;
        out.progress = distance;
        let mut progresses = is_good | (e.psn != c.una_psn);
        if e.implied {
            out.progress = missing;
            progresses = e.una_psn != c.una_psn;
        } else if e.merged & !at_psn {
            out.progress = missing + 1;
        } else if is_good {
            out.progress = distance + 1;
        }
        if !(e.kind == SqEventKind::Answer) {
            progresses = false;
        }
        out.progresses = progresses;
        out.retry = c.retry;
        out.rnr_retry = c.rnr_retry;
        if progresses {
            out.retry = k.retry_cnt;
            out.rnr_retry = k.rnr_retry;
        }
        out.ahead = c.inflight - c.resend;
        // Retired, Timeout; of a Command `idle` too
        out.used_after = c.used - e.count;
        out.idle = c.used == e.count;
        if e.kind == SqEventKind::Command {
            out.idle = !c.used.any();
        }
        out.reads_after = c.reads - e.reads;
        out.empties = c.used.any() & (c.used == e.count);
        out.same_una = e.una_psn == c.una_psn;
        out.current = e.generation == c.incarnation;
        out.timed_out = c.timer_on & (e.generation == c.timer_generation);
        terms = out;
    }
}
