//! What an event means for the state it meets: comparisons and sums, a cycle ahead of the rules.
use ferroce_proto::abi::qpc::state;

use super::event::*;
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const ERR: u64 = state::ERR as u64;

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
    /// The terms.
    pub terms: Signal<Out, SqTerms>,

    out: Dff<SqTerms>,
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    available: Signal<Local, Bits<16>>,
    to_boundary: Signal<Local, Bits<16>>,
    quantum: Signal<Local, Bits<24>>,
    left: Signal<Local, Bits<24>>,
    is_running: Signal<Local, Bit>,
    distance: Signal<Local, Bits<24>>,
}

impl Logic for SqTermsOf {
    describe!("sq_terms", "What an event means for the state of its send queue."; RTS, SQD, ERR);

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
        self.out.d.next.may_fetch = (self.is_running.val() & !self.c.val().blocked)
            | ((self.c.val().state == ERR) & (self.c.val().used == 0));
        // Fetch: up to the next multiple of 8 slots, or of the slots of a smaller ring, so that no read wraps around it
        self.available.next = self.c.val().producer - self.c.val().fetch_index;
        self.to_boundary.next =
            bits::<16>(8) - bit_cast::<16, 3>(self.c.val().fetch_index.get_bits::<3>(0));
        if self.k.val().sq_log == 2 {
            self.to_boundary.next =
                bits::<16>(4) - bit_cast::<16, 2>(self.c.val().fetch_index.get_bits::<2>(0));
        } else if self.k.val().sq_log == 1 {
            self.to_boundary.next =
                bits::<16>(2) - bit_cast::<16, 1>(self.c.val().fetch_index.get_bits::<1>(0));
        } else if self.k.val().sq_log == 0 {
            self.to_boundary.next = bits::<16>(1);
        }
        self.out.d.next.more = self.available.val() > self.to_boundary.val();
        self.out.d.next.fetched = self.to_boundary.val().get_bits::<4>(0);
        if self.available.val() < self.to_boundary.val() {
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
        self.out.d.next.ends = self.left.val() <= self.quantum.val();
        self.out.d.next.part = self.quantum.val();
        if self.left.val() <= self.quantum.val() {
            self.out.d.next.part = self.left.val();
        }
        self.out.d.next.fits = (self.e.val().epoch == self.c.val().epoch)
            & (self.e.val().index == self.c.val().exec_index);
        self.out.d.next.fresh = self.c.val().behind == 0;
        self.out.d.next.room = !((self.c.val().behind == 0)
            & self.c.val().used.get_bit(self.k.val().ot_log.index()))
            & !self.c.val().inflight.get_bits::<11>(13).any();
        // Ack
        self.distance.next = self.e.val().psn - self.c.val().una_psn;
        self.out.d.next.in_window = self.distance.val() < self.c.val().inflight;
        self.out.d.next.progress = self.distance.val();
        if self.e.val().syndrome.get_bits::<3>(5) == 0 {
            self.out.d.next.progress = self.distance.val() + 1;
        }
        self.out.d.next.retry = self.c.val().retry;
        self.out.d.next.rnr_retry = self.c.val().rnr_retry;
        if (self.e.val().syndrome.get_bits::<2>(5) == 0)
            | (self.e.val().psn != self.c.val().una_psn)
        {
            self.out.d.next.retry = self.k.val().retry_cnt;
            self.out.d.next.rnr_retry = self.k.val().rnr_retry;
        }
        self.out.d.next.ahead = self.c.val().inflight - self.c.val().resend;
        // Retired, Timeout
        self.out.d.next.used_after = self.c.val().used - self.e.val().count;
        self.out.d.next.empties =
            self.c.val().used.any() & (self.c.val().used == self.e.val().count);
        self.out.d.next.same_una = self.e.val().una_psn == self.c.val().una_psn;
        self.out.d.next.current = self.e.val().generation == self.c.val().incarnation;
        self.out.d.next.timed_out =
            self.c.val().timer_on & (self.e.val().generation == self.c.val().timer_generation);
        self.terms.next = self.out.q.val();
    }
}
