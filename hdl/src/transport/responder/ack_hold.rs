//! Holds the acknowledgement of a message back until its completion is there (docs/decisions/ack-after-completion.md).
//!
//! ```text
//!  s ─► token ─┬─ nothing of its queue pair waits, and it completes nothing ─┬─► m (reply)
//!              └─► queue, 512 deep ─► the outcome of its completion is there ─┤
//!  outcome (cq_write) ─► outcomes, 512 deep ─┘                                └─► errors (responder)
//! ```
//!
//! A token with `completes` goes into the queue, and so does every token of a queue pair that has one there: they keep
//! their order, turns of READs and atomics too, as a response acknowledges what is before it. Which they are, a count of
//! each queue pair's latest token in the queue tells; a count as old as to come round again makes a token wait for no reason, once.
//! Outcomes have no name: the n-th is that of the n-th token with `completes`. Nor has the `Reply` of a token: the n-th is
//! that of the n-th token with `reply`, so while one is in the queue all others with `reply` go there too, of whatever
//! queue pair.
//!
//! | head of the queue | leaves | as |
//! |---|---|---|
//! | completes nothing | at once | it is |
//! | completes, written | with the outcome | it is; `unanswered`: not at all |
//! | completes, lost | with the outcome | NAK remote operational error of a message that does not count, and a [`PlaceError`] |
//!
//! What follows that NAK `reply` drops. It names the first message that failed; the [`PlaceError`]s of further ones find
//! the queue pair in error.
//!
//! Throughput: a token a cycle, both ways by turns. Latency: 2 cycles; through the queue 4, or 2 behind the outcome.
//! Assumes: `outcome` comes for every token with `completes`, in their order, also when the token is dropped.
use ferroce_proto::abi::cq::status::GENERAL_ERR;

use crate::bus::syndrome::NAK_OPERATIONAL;
use crate::bus::types::{AckToken, Activity, CqOutcome, PlaceError, if_there};
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Acknowledgements of 2^Q queue pairs.
#[derive(Block)]
pub struct AckHold<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What placements led to.
    pub s: StreamIn<AckToken>,
    /// What became of a completion.
    pub outcome: Signal<In, Valid<CqOutcome>>,
    /// What is due.
    pub m: StreamOut<AckToken>,
    /// Queue pairs whose completion was lost.
    pub errors: StreamOut<PlaceError>,
    /// Tokens that wait.
    pub activity: Signal<Out, Activity>,

    /// A token that came.
    there: Reg<Bit>,
    token: Dff<AckToken>,
    /// The token before it was queued when it came, and is of the same queue pair.
    follows: Dff<Bit>,
    /// Of each queue pair: tokens queued before its latest one, modulo 2^16 and inverted, so that 0 is of none.
    latest: SweptRam<Bits<16>, Q>,
    /// Tokens queued before the latest one with `reply`, modulo 2^16.
    #[init(Reg::new(0xffff_u64.into()))]
    reply: Reg<Bits<16>>,
    /// That one is in the queue, or was in the cycle before.
    reply_waits: Reg<Bit>,
    queue: Deep<AckToken, 9>,
    outcomes: Fifo<CqOutcome, 9>,
    /// Tokens queued, modulo 2^17.
    queued: Reg<Bits<17>>,
    /// Of these, those that left.
    left: Reg<Bits<17>>,
    out: SkidRam<AckToken>,
    /// The queue has the turn to leave: a token passed it, or waits.
    turn: Reg<Bit>,
    failed: Skid<PlaceError>,
}

impl<const Q: usize> Logic for AckHold<Q> {
    describe!(
        "ack_hold",
        format!("q{Q}"),
        "Holds acknowledgements back until the completion is there."
    );

    #[kernel]
    fn update(&mut self) {
        // the head of the queue and its outcome
        outcomes.s.valid = outcome.valid;
        outcomes.s.payload = outcome.payload;
        assert!(
            !outcome.valid | outcomes.s.ready,
            "no more outcomes than tokens that wait for one"
        );
        let head = queue.m.payload;
        let lost = head.completes & outcomes.m.payload.lost;
        let judged = !head.completes | (outcomes.m.valid & (!lost | failed.s.ready));
        let is_unanswered = head.completes & head.unanswered & !outcomes.m.payload.lost;
        let offers = queue.m.valid & judged & !is_unanswered;

        // the token: past the queue, or into it; a few places are left for outcomes that come before their token
        // the latest one of its queue pair is from `left` on and before `queued`: two comparisons side by side, where a
        // difference and its comparison would follow each other
        let last = !latest.rdata;
        let from = last >= left.low::<16>();
        let until = last < queued.low::<16>();
        let turned = queued.bit(16) ^ left.bit(16);
        let queues = (from & until) | (turned & (from | until));
        let waits = token.completes | follows | queues | (token.reply & reply_waits);
        let room = !(queue.level.slice::<6>(3).all() | queue.level.bit(9));
        let enters = there & waits & room;
        let may_pass = out.s.ready & (!turn | !offers);
        let passes = there & !waits & may_pass;
        let free = latest.ready & (!there | enters | passes);
        s.ready = free;
        if free {
            there = s.valid;
            token = s.payload;
            follows = enters & (s.payload.qpn.low::<Q>() == token.qpn.low::<Q>());
        }
        latest.re = free;
        latest.raddr = s.payload.qpn.low::<Q>();
        latest.we = enters;
        latest.waddr = token.qpn.low::<Q>();
        latest.wdata = !queued.low::<16>();
        queue.s.valid = enters;
        queue.s.payload = token;
        let after_reply = (reply - left.low::<16>()) < queue.level;
        reply_waits = after_reply;
        if enters {
            queued = queued + 1;
            if token.reply {
                reply = queued.low::<16>();
                reply_waits = true;
            }
        }
        assert!(!enters | queue.s.ready, "the queue has room");

        // they leave by turns; that of the queue is known without a look at the token
        let takes = offers & out.s.ready & (turn | !there);
        turn = passes | (there & waits) | (turn & !takes);
        out.s.valid = takes | passes;
        out.s.payload = token;
        if takes {
            out.s.payload = head;
            if lost {
                out.s.payload.syndrome = NAK_OPERATIONAL;
                out.s.payload.msn = head.msn - 1;
            }
        }
        let leaves = takes | (queue.m.valid & judged & is_unanswered);
        queue.m.ready = leaves;
        outcomes.m.ready = leaves & head.completes;
        if leaves {
            left = left + 1;
        }
        failed.s.valid = leaves & lost;
        failed.s.payload = PlaceError {
            qpn: head.qpn,
            incarnation: head.incarnation,
            spared: false,
            syndrome: NAK_OPERATIONAL,
            status: GENERAL_ERR,
        };
        forward!(m <= out.m);
        forward!(errors <= failed.m);
        let some = queue.level.any();
        activity.busy = s.valid | there | some | out.m.valid;
        // what passes beside the queue does not count while a token waits in it: it may come for ever
        activity.moved = leaves | (passes & !some);
        activity.level = queue.level
            + if_there(there, bits::<16>(1))
            + if_there(out.m.valid, bits::<16>(2))
            + if_there(s.valid, bits::<16>(2));
    }
}
