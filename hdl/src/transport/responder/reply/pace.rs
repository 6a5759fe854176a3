//! Pace of the responses: a queue pair whose rate is limited waits here until its next turn may start.
//!
//! ```text
//!  listed ─┬─ not paced, or an acknowledgement alone ──────────────► due ─► m
//!          └─► waiting ─► read ─► product ─► sum ─► compare ─┬─► due
//!                 ▲                                          │ too early
//!                 └──────────────────────────────────────────┘
//! ```
//!
//! A turn of B bytes puts the next one off by B times the gap, the time of a byte at the rate of its queue pair. Nothing is
//! planned: those that wait are looked at in turn, with the rate of that moment, so a rate change counts at once. A turn
//! has what the rate sends in 1024 cycles, a packet at least ([`part`](super::part)).
//!
//! Idle time is no credit. A queue pair that waited, or was listed less than 256 cycles late, keeps its schedule. One that
//! was looked at late has a turn of as much more. One that was listed for an acknowledgement alone, and has a READ by its
//! turn, is listed again.
//!
//! Rate: one that waits in 10 cycles, so a start is 10 cycles late for each queue pair that waits, on average exact; with N of
//! them none sends more than 64 KiB in 10 N cycles. Latency: of one that is not paced none. What is owed ends with the rate.
//! Times go round after 73 minutes: one that was idle for just as long may wait for its latest turn again.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::congestion::pace_types::{PaceGrant, PaceRate};

/// Log2 of the bytes of the longest turn.
const WHOLE: u64 = 16;
/// One that comes so many cycles late keeps its schedule, as a power of two.
const LATE: usize = 8;

payload! {
    /// A queue pair whose turn may start.
    DueReply {
        /// Queue pair.
        qpn: Bits<16>,
        /// Log2 of the bytes that the turn may have.
        log_bytes: Bits<5>,
        /// It has a rate, and was listed for an acknowledgement alone.
        alone: Bit,
    }

    /// A queue pair whose turn may not start yet, see [`ReplyPace`].
    WaitingReply {
        /// Queue pair.
        qpn: Bits<16>,
        /// It was too early before.
        waited: Bit,
        /// When it was listed, in cycles: counts until it is looked at.
        listed: Bits<18>,
    }

    /// The rate of the responses of a queue pair.
    ReplyRate {
        /// Cycles a byte, in 2^-20; 0 if nothing limits it.
        gap: Bits<31>,
        /// Log2 of the bytes that it sends in 1024 cycles, 0 at least.
        span: Bits<5>,
    }
}

/// Half of the time after which times go round, in 2^-8 cycles.
const LONG_AGO: u64 = 1 << 47;

/// By what power of two a turn that is `late` cycles late is longer than the bytes of 512 to 1024 cycles.
#[kernel_fn]
fn longer_by(late: Bits<40>) -> Bits<3> {
    let mut more: Bits<3> = 0;
    for i in 0..6 {
        if late.bit(9 + i) {
            more = bits::<3>(1 + i);
        }
    }
    if late.slice::<25>(15).any() {
        more = bits::<3>(7);
    }
    more
}

/// Log2 of the bytes of a turn that is longer by `more`.
#[kernel_fn]
fn longer(log_bytes: Bits<5>, more: Bits<3>) -> Bits<5> {
    let sum = log_bytes + more.resize::<5>();
    let mut bytes = sum;
    if sum.bit(4) {
        bytes = WHOLE;
    }
    bytes
}

/// What is done with the queue pair that is looked at.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum PaceStep {
    /// The tables are cleared.
    Sweep,
    /// The next one is taken.
    Pick,
    /// Its rate, its bytes and its latest start are there.
    Read,
    /// The product is made.
    Multiply,
    /// Another cycle of that.
    Wait,
    /// The next start is made.
    Sum,
    /// It is compared with the time.
    Compare,
    /// Was it late when it was listed.
    Judge,
    /// How long may the turn be.
    Lengthen,
    /// It is due, or waits again.
    Put,
}

/// Pace of the responses of 2^Q queue pairs.
#[derive(Block)]
pub struct ReplyPace<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A rate changed.
    pub rate: Signal<In, Valid<PaceRate>>,
    /// A queue pair that may be listed two cycles later.
    pub ahead_qpn: Signal<In, Bits<Q>>,
    /// A queue pair is listed.
    pub listed: Signal<In, Bit>,
    /// With `listed`: which.
    pub qpn: Signal<In, Bits<16>>,
    /// With `listed`: one of its replies may run.
    pub runs: Signal<In, Bit>,
    /// A turn ended.
    pub sent: Signal<In, Valid<PaceGrant>>,
    /// Queue pairs whose turn may start.
    pub m: StreamOut<DueReply>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    /// Whether a queue pair is paced: a copy out of `rates`, read ahead.
    paced: Ram<Bits<1>, Q>,
    paced_q: Dff<Bit>,
    rates: Ram<ReplyRate, Q>,
    /// Bytes of the latest turn; 0 when one is due, until it ends.
    sizes: Ram<Bits<17>, Q>,
    /// The latest start, in 2^-8 cycles.
    starts: Ram<Bits<48>, Q>,
    waiting: Fifo<WaitingReply, Q>,
    due: Fifo<DueReply, Q>,

    now: Reg<Bits<40>>,
    step: Reg<PaceStep>,
    sweep: Reg<Bits<Q>>,
    current: Dff<WaitingReply>,
    log_bytes: Dff<Bits<5>>,
    start: Dff<Bits<48>>,
    product: Product<17, 31, 48>,
    span: Dff<Bits<36>>,
    age: Dff<Bits<48>>,
    next_start: Dff<Bits<48>>,
    late: Dff<Bits<49>>,
    /// From when it was listed to now, in cycles.
    listed_since: Dff<Bits<18>>,
    in_time: Dff<Bit>,
    /// How much longer its turn is by `late`, and by `listed_since`.
    more_late: Dff<Bits<3>>,
    more_listed: Dff<Bits<3>>,
    no_rate: Zero<ReplyRate>,
}

impl<const Q: usize> Logic for ReplyPace<Q> {
    describe!(
        "reply_pace",
        format!("q{Q}"),
        "Queue pairs whose responses are paced, until their next turn may start."
    );

    #[kernel]
    fn update(&mut self) {
        now = now + 1;
        let sweeps = step == PaceStep::Sweep;
        ready = !sweeps;

        // rates
        let changed = rate.payload;
        paced.re = true;
        paced.raddr = ahead_qpn;
        paced_q = paced.rdata.bit(0);
        paced.we = sweeps | rate.valid;
        paced.waddr = changed.qpn.low::<Q>();
        paced.wdata = bits::<1>(0).replace_bit(0, changed.gap.any());
        rates.we = sweeps | rate.valid;
        rates.waddr = changed.qpn.low::<Q>();
        copy!(rates.wdata <= changed; gap, span);
        sizes.we = sweeps | sent.valid;
        sizes.waddr = sent.payload.qpn.low::<Q>();
        sizes.wdata = sent.payload.bytes;
        // what is owed ends with the rate: the start was long ago
        let lifted = rate.valid & !changed.gap.any();
        starts.we = sweeps | lifted;
        starts.waddr = changed.qpn.low::<Q>();
        if sweeps {
            sweep = sweep + 1;
            paced.waddr = sweep;
            paced.wdata = bits::<1>(0);
            rates.waddr = sweep;
            rates.wdata = no_rate;
            sizes.waddr = sweep;
            sizes.wdata = bits::<17>(0);
            starts.waddr = sweep;
        }

        // listed: due at once, or to wait; each queue pair is here once, so there is room
        let waits = listed & runs & paced_q;
        let lists = listed & !waits;
        waiting.s.valid = waits;
        waiting.s.payload.qpn = qpn;
        waiting.s.payload.waited = false;
        waiting.s.payload.listed = now.low::<18>();
        due.s.valid = lists;
        due.s.payload.qpn = qpn;
        due.s.payload.log_bytes = WHOLE;
        due.s.payload.alone = paced_q & !runs;
        assert!(!waits | waiting.s.ready, "a queue pair waits twice");
        assert!(!lists | due.s.ready, "a queue pair is due twice");

        // the one that is looked at
        let picks = step == PaceStep::Pick;
        let picked = waiting.m.payload.qpn.low::<Q>();
        waiting.m.ready = picks;
        rates.re = picks;
        rates.raddr = picked;
        sizes.re = picks;
        sizes.raddr = picked;
        starts.re = picks;
        starts.raddr = picked;
        product.a = sizes.rdata;
        product.b = rates.rdata.gap;
        let moment = now.resize::<48>() << 8;
        let is_due = !late.bit(48);
        starts.wdata = moment - LONG_AGO;
        match step {
            PaceStep::Sweep => {
                if sweep.all() {
                    step = PaceStep::Pick;
                }
            }
            PaceStep::Pick => {
                current = waiting.m.payload;
                if waiting.m.valid {
                    step = PaceStep::Read;
                }
            }
            PaceStep::Read => {
                start = starts.rdata;
                log_bytes = rates.rdata.span;
                if rates.rdata.span.bit(4) | !rates.rdata.gap.any() {
                    log_bytes = WHOLE;
                }
                step = PaceStep::Multiply;
            }
            PaceStep::Multiply => step = PaceStep::Wait,
            PaceStep::Wait => step = PaceStep::Sum,
            PaceStep::Sum => {
                let taken = product.product.slice::<36>(12);
                span = taken;
                next_start = start + taken.resize::<48>();
                age = moment - start;
                step = PaceStep::Compare;
            }
            PaceStep::Compare => {
                late = age.resize::<49>() - span.resize::<49>();
                listed_since = now.low::<18>() - current.listed;
                step = PaceStep::Judge;
            }
            PaceStep::Judge => {
                let unlisted = late.slice::<41>(8) - listed_since.resize::<41>();
                in_time = current.waited | unlisted.bit(40) | !unlisted.slice::<32>(LATE).any();
                more_late = longer_by(late.slice::<40>(8));
                more_listed = longer_by(listed_since.resize::<40>());
                step = PaceStep::Lengthen;
            }
            PaceStep::Lengthen => {
                let more: Bits<3> = if in_time { more_late } else { more_listed };
                log_bytes = longer(log_bytes, more);
                step = PaceStep::Put;
            }
            PaceStep::Put => {
                if !is_due {
                    if !waits {
                        waiting.s.valid = true;
                        waiting.s.payload.qpn = current.qpn;
                        waiting.s.payload.waited = true;
                        step = PaceStep::Pick;
                    }
                } else if !lists & !sent.valid & !lifted {
                    due.s.valid = true;
                    due.s.payload.qpn = current.qpn;
                    due.s.payload.log_bytes = log_bytes;
                    due.s.payload.alone = false;
                    starts.we = true;
                    starts.waddr = current.qpn.low::<Q>();
                    starts.wdata = if in_time { next_start } else { moment };
                    sizes.we = true;
                    sizes.waddr = current.qpn.low::<Q>();
                    sizes.wdata = bits::<17>(0);
                    step = PaceStep::Pick;
                }
            }
        }
        forward!(m <= due.m);
    }
}
