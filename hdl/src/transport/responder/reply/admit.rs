//! Admission: puts the operations of all sources into one sequence.
//!
//! Tokens take every cycle that the others leave, and every second if they do not; the others go round robin: replies
//! past their fence, atomics to run, atomics over, turns, ends of turns, packets lost. A token of a reply takes the reply along; a void one
//! leaves nothing. An operation waits while a queue behind the table could overflow by it; tokens wait for the queue of
//! fences alone, which depends on nothing but writes to memory.
//!
//! Throughput: an operation a cycle. Latency: none. Of lost packets in a row one of each queue pair waits, which ends it; no more than
//! 256 responses are behind the exit.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::atomic_types::{AtomicEnd, RunEntry};
use super::pace::DueReply;
use super::types::*;
use crate::bus::payload::payload;
use crate::bus::syndrome::NAK_OPERATIONAL;
use crate::bus::types::{AckToken, Reply};
use crate::prelude::*;

payload! {
    /// A packet that was lost because its payload could not be read.
    Loss {
        /// Queue pair.
        qpn: Bits<16>,
        /// PSN.
        psn: Bits<24>,
        /// MSN.
        msn: Bits<24>,
    }
}

/// Admission.
#[derive(Block)]
pub struct Admit {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What placements led to.
    pub tokens: StreamIn<AckToken>,
    /// READs and atomics, one a token that says so.
    pub replies: StreamIn<Reply>,
    /// Replies past their fence.
    pub releases: StreamIn<Op>,
    /// Queue pairs whose turn it is.
    pub list: StreamIn<DueReply>,
    /// Ends of turns.
    pub served: StreamIn<Op>,
    /// Queue pairs with atomics to run.
    pub runs: StreamIn<RunEntry>,
    /// Atomics over.
    pub atomics: StreamIn<AtomicEnd>,
    /// A packet was lost.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<In, Bits<24>>,
    /// Its MSN.
    pub lost_msn: Signal<In, Bits<24>>,
    /// The table is swept.
    pub ready: Signal<In, Bit>,
    /// There is room for fences.
    pub fence_room: Signal<In, Bit>,
    /// There is room for acknowledgements.
    pub ack_room: Signal<In, Bit>,
    /// There is room for acknowledgements and starts.
    pub turn_room: Signal<In, Bit>,
    /// There is room for events and errors.
    pub report_room: Signal<In, Bit>,
    /// A lost response waits.
    pub losing: Signal<Out, Bit>,
    /// An operation.
    pub valid: Signal<Out, Bit>,
    /// The operation.
    pub op: Signal<Out, Op>,
    /// Its reply.
    pub word: Signal<Out, RingWord>,

    arbiter: Arbiter<6>,
    losses: Fifo<Loss, 8>,
    /// Whose packet was lost last.
    latest: Dff<Bits<16>>,
    /// Keeps the grant away from the FIFO's counters.
    loss: Skid<Loss>,
    /// A token went last.
    token_last: Reg<Bit>,
    blank: Zero<Op>,
}

impl Logic for Admit {
    describe!(
        "reply_admit",
        "Puts operations on queue pairs into one sequence."
    );

    #[kernel]
    fn update(&mut self) {
        let waits = losses.m.valid | loss.m.valid;
        let is_known = waits & (latest == lost_qpn);
        losses.s.valid = lost & !is_known;
        assert!(
            !lost | is_known | losses.s.ready,
            "a lost packet ends no queue pair"
        );
        if lost {
            latest = lost_qpn;
        }
        losses.s.payload.qpn = lost_qpn;
        losses.s.payload.psn = lost_psn;
        losses.s.payload.msn = lost_msn;
        forward!(loss.s <= losses.m);
        losing = waits;

        let has_reply = tokens.payload.reply;
        let is_void = tokens.payload.reply & tokens.payload.void;
        let token_there = tokens.valid & ready & (!has_reply | (replies.valid & fence_room));
        let requests = bits::<6>(0)
            .replace_bit(0, releases.valid)
            .replace_bit(1, list.valid & turn_room)
            .replace_bit(2, served.valid & report_room)
            .replace_bit(3, atomics.valid)
            .replace_bit(4, loss.m.valid & report_room & ack_room)
            .replace_bit(5, runs.valid);
        let take_token = token_there & (!token_last | !requests.any());
        token_last = take_token;
        arbiter.request = requests;
        arbiter.take = !take_token;
        let mut grant: Bits<6> = bits::<6>(0);
        if !take_token {
            grant = arbiter.grant;
        }
        tokens.ready = take_token;
        replies.ready = take_token & has_reply;
        releases.ready = grant.bit(0);
        list.ready = grant.bit(1);
        served.ready = grant.bit(2);
        atomics.ready = grant.bit(3);
        loss.m.ready = grant.bit(4);
        runs.ready = grant.bit(5);

        valid = (take_token & !is_void) | grant.any();
        op = blank;
        let reply = replies.payload;
        if take_token {
            op.kind = OpKind::Ack;
            if tokens.payload.reset {
                op.kind = OpKind::Reset;
            } else if tokens.payload.rsp_flush {
                op.kind = OpKind::Halt;
            }
            copy!(op <= tokens.payload; qpn, psn, msn, syndrome);
            if has_reply {
                op.kind = OpKind::Reply;
                op.psn = reply.psn;
            }
            op.fence = tokens.payload.fence;
            op.incarnation = reply.incarnation;
            op.duplicate = reply.duplicate;
            op.runs = reply.atomic & !reply.duplicate;
        } else if grant.bit(0) {
            op = releases.payload;
        } else if grant.bit(1) {
            op.kind = OpKind::Turn;
            copy!(op <= list.payload; qpn, log_bytes, alone);
        } else if grant.bit(2) {
            op = served.payload;
        } else if grant.bit(3) {
            op.kind = OpKind::Atomic;
            copy!(op <= atomics.payload; qpn, generation, failed);
        } else if grant.bit(5) {
            op.kind = OpKind::Run;
            copy!(op <= runs.payload; qpn, generation);
            op.failed = runs.payload.denied;
        } else {
            op.kind = OpKind::Lost;
            copy!(op <= loss.m.payload; qpn, psn, msn);
            op.syndrome = NAK_OPERATIONAL;
        }
        copy!(word <= reply;
            atomic, add, duplicate, psn, msn, mtu, pd, va, rkey, len, swap_add, compare);
        if reply.atomic {
            word.len = 0;
        }
    }
}
