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
#[derive(LogicBlock, Default)]
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
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    producer: Signal<Local, Bits<16>>,
    available: Signal<Local, Bits<16>>,
    most: Signal<Local, Bits<16>>,
    in_error: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    fresh: Signal<Local, Bit>,
    read_bound: Signal<Local, Bit>,
    /// PSNs outstanding with those of a whole READ.
    all: Signal<Local, Bits<25>>,
    crowded: Signal<Local, Bit>,
    missing: Signal<Local, Bits<24>>,
    at_psn: Signal<Local, Bit>,
    at_other: Signal<Local, Bit>,
    is_good: Signal<Local, Bit>,
    progresses: Signal<Local, Bit>,
    quantum: Signal<Local, Bits<24>>,
    left: Signal<Local, Bits<24>>,
    is_running: Signal<Local, Bit>,
    distance: Signal<Local, Bits<24>>,
}

impl Logic for SqTermsOf {
    describe!("sq_terms", "What an event means for the state of its send queue."; RTS, SQD, SQE, ERR, RC);

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out);
        self.e.next = self.sq_event.val();
        self.k.next = self.image.val();
        self.c.next = self.state.val();
        // in SQD what was started goes on, and nothing else starts
        self.is_running.next = ((self.c.val().state == RTS)
            | ((self.c.val().state == SQD) & self.c.val().behind.any()))
            & !self.c.val().rewind
            & !self.c.val().rnr_wait
            & !self.c.val().broken;
        self.out.d.next.running = self.is_running.val();
        self.in_error.next = (self.c.val().state == ERR) | (self.c.val().state == SQE);
        self.out.d.next.reliable = self.k.val().qp_type == RC;
        // Fetch, Doorbell: 8 slots, not more than the ring has
        self.out.d.next.may_fetch = (self.is_running.val() & !self.c.val().blocked)
            | (self.in_error.val() & !self.c.val().closing & (self.c.val().used == 0));
        self.producer.next = self.c.val().producer;
        if self.e.val().kind == SqEventKind::Doorbell {
            self.producer.next = self.e.val().index;
        }
        self.available.next = self.producer.val() - self.c.val().fetch_index;
        self.most.next = bits::<16>(8);
        if self.k.val().sq_log == 2 {
            self.most.next = bits::<16>(4);
        } else if self.k.val().sq_log == 1 {
            self.most.next = bits::<16>(2);
        } else if self.k.val().sq_log == 0 {
            self.most.next = bits::<16>(1);
        }
        self.out.d.next.more = self.available.val() > self.most.val();
        self.out.d.next.fetched = self.most.val().get_bits::<4>(0);
        if self.available.val() < self.most.val() {
            self.out.d.next.fetched = self.available.val().get_bits::<4>(0);
        }
        // Start: how much of the message may go now
        self.quantum.next = bits::<24>(128);
        if self.k.val().mtu == 3 {
            self.quantum.next = bits::<24>(64);
        }
        if self.k.val().mtu == 4 {
            self.quantum.next = bits::<24>(32);
        }
        if self.k.val().mtu == 5 {
            self.quantum.next = bits::<24>(16);
        }
        self.left.next = self.e.val().packets - self.c.val().exec_offset;
        self.answered.next = self.e.val().answered & !self.e.val().status.any();
        self.out.d.next.answered = self.answered.val();
        self.out.d.next.ends = self.answered.val() | (self.left.val() <= self.quantum.val());
        self.out.d.next.turn_ends = !self.answered.val()
            & ((self.left.val() > self.quantum.val())
                | (self.shared.val() & (self.left.val() == self.quantum.val())));
        self.out.d.next.part = self.quantum.val();
        if self.answered.val() | (self.left.val() <= self.quantum.val()) {
            self.out.d.next.part = self.left.val();
        }
        self.out.d.next.fits = (self.e.val().epoch == self.c.val().epoch)
            & (self.e.val().index == self.c.val().exec_index);
        self.fresh.next = self.c.val().behind == 0;
        self.out.d.next.fresh = self.fresh.val();
        self.read_bound.next = self.fresh.val()
            & !self.e.val().status.any()
            & ((self.e.val().fence & self.c.val().reads.any())
                | (self.e.val().answered & (self.c.val().reads >= self.k.val().max_rd_atomic)));
        self.out.d.next.read_bound = self.read_bound.val();
        // a READ takes its PSNs at once, and only if less than 2^23 are then outstanding; else 2^13 may be, or if READs
        // are among them nearly 2^23; what was sent before, and what nobody acknowledges, may always go
        self.all.next =
            bit_cast::<25, 24>(self.c.val().inflight) + bit_cast::<25, 24>(self.e.val().packets);
        self.crowded.next = self.k.val().qp_type == RC;
        if self.answered.val() {
            self.crowded.next = self.fresh.val() & self.all.val().get_bits::<2>(23).any();
        } else if self.c.val().resend.any() {
            self.crowded.next = false;
        } else if self.c.val().reads.any() {
            self.crowded.next = (self.k.val().qp_type == RC)
                & (self.c.val().inflight.get_bit(23)
                    | self.c.val().inflight.get_bits::<10>(13).all());
        } else {
            self.crowded.next =
                (self.k.val().qp_type == RC) & self.c.val().inflight.get_bits::<11>(13).any();
        }
        self.out.d.next.room = !(self.fresh.val()
            & self.c.val().used.get_bit(self.k.val().ot_log.index()))
            & !self.crowded.val()
            & !self.read_bound.val();
        self.out.d.next.read_bound = self.read_bound.val();
        // Answer
        self.distance.next = self.e.val().psn - self.c.val().una_psn;
        self.missing.next = self.e.val().una_psn - self.c.val().una_psn;
        self.is_good.next =
            (self.e.val().syndrome.get_bits::<3>(5) == 0) & !self.e.val().status.any();
        // of two acknowledgements either may be outside; the later one follows the earlier one closely
        self.at_psn.next = self.distance.val() < self.c.val().inflight;
        self.at_other.next = self.missing.val() < self.c.val().inflight;
        self.out.d.next.in_window =
            self.at_psn.val() & (!self.e.val().implied | self.at_other.val());
        if self.e.val().merged {
            self.out.d.next.in_window = self.at_psn.val() | self.at_other.val();
        }
        self.out.d.next.both = self.at_psn.val() & self.at_other.val();
        self.out.d.next.progress = self.distance.val();
        self.progresses.next = self.is_good.val() | (self.e.val().psn != self.c.val().una_psn);
        if self.e.val().implied {
            self.out.d.next.progress = self.missing.val();
            self.progresses.next = self.e.val().una_psn != self.c.val().una_psn;
        } else if self.e.val().merged & !self.at_psn.val() {
            self.out.d.next.progress = self.missing.val() + 1;
        } else if self.is_good.val() {
            self.out.d.next.progress = self.distance.val() + 1;
        }
        if !(self.e.val().kind == SqEventKind::Answer) {
            self.progresses.next = false;
        }
        self.out.d.next.progresses = self.progresses.val();
        self.out.d.next.retry = self.c.val().retry;
        self.out.d.next.rnr_retry = self.c.val().rnr_retry;
        if self.progresses.val() {
            self.out.d.next.retry = self.k.val().retry_cnt;
            self.out.d.next.rnr_retry = self.k.val().rnr_retry;
        }
        self.out.d.next.ahead = self.c.val().inflight - self.c.val().resend;
        // Retired, Timeout; of a Command `idle` too
        self.out.d.next.used_after = self.c.val().used - self.e.val().count;
        self.out.d.next.idle = self.c.val().used == self.e.val().count;
        if self.e.val().kind == SqEventKind::Command {
            self.out.d.next.idle = !self.c.val().used.any();
        }
        self.out.d.next.reads_after = self.c.val().reads - self.e.val().reads;
        self.out.d.next.empties =
            self.c.val().used.any() & (self.c.val().used == self.e.val().count);
        self.out.d.next.same_una = self.e.val().una_psn == self.c.val().una_psn;
        self.out.d.next.current = self.e.val().generation == self.c.val().incarnation;
        self.out.d.next.timed_out =
            self.c.val().timer_on & (self.e.val().generation == self.c.val().timer_generation);
        self.terms.next = self.out.q.val();
    }
}
