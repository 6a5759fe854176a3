//! Entry of completions: sends and receives as one stream, each behind the fence of its payload.
//!
//! ```text
//!  recv ─► fence, 256 deep ─┐
//!  send ─► fence ───────────┴► line, 256 deep ─► m
//! ```
//!
//! Payload takes as long to be written as host memory takes: so 256 receives may wait, and 2 sends. Tokens of one input
//! keep their order.
use super::fence::CqFence;
use super::fence_queue::CqFenceQueue;
use super::line::CqLine;
use crate::bus::types::{AccessCounts, AtomicsOver, CqToken, if_there};
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Completions of both sides.
#[derive(Block)]
pub struct CqEntrance {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions of receives.
    pub recv: StreamIn<CqToken>,
    /// Completions of sends; what only receives have counts as 0.
    pub send: StreamIn<CqToken>,
    /// Payload bursts issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub done: Signal<In, Bits<16>>,
    /// Accesses to memory for peers.
    pub accesses: Signal<In, AccessCounts>,
    /// See [`CqFenceQueue`].
    pub awaited: Signal<Out, Bits<16>>,
    /// See there.
    pub over: Signal<In, Valid<AtomicsOver>>,
    /// Completions whose payload is in host memory.
    pub m: StreamOut<CqToken>,
    /// A completion is here, or waits at an input.
    pub busy: Signal<Out, Bit>,
    /// When so many have left, those that were here in the cycle before have: the inputs take turns.
    pub level: Signal<Out, Bits<16>>,
    /// Of these, those in line.
    pub in_line: Signal<Out, Bits<9>>,

    recv_fence: CqFenceQueue,
    send_fence: CqFence,
    line: CqLine,
    /// `level`, which sums of others follow.
    level_q: Dff<Bits<16>>,
}

impl Logic for CqEntrance {
    describe!(
        "cq_entrance",
        "Completions whose payload is in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(recv <= recv_fence.s);
        recv_fence.issued = issued;
        recv_fence.done = done;
        recv_fence.accesses = accesses;
        recv_fence.over = over;
        awaited = recv_fence.awaited;
        forward!(line.s[0] <= recv_fence.m);
        send_fence.s.valid = send.valid;
        send.ready = send_fence.s.ready;
        send_fence.s.payload = send.payload;
        if send.payload.marker {
            send_fence.s.payload.fenced = true;
            send_fence.s.payload.fence = issued;
        }
        send_fence.issued = issued;
        send_fence.done = done;
        line.s[1].valid = send_fence.m.valid;
        send_fence.m.ready = line.s[1].ready;
        // a send has none of the fields that are 0, which then need no register
        line.s[1].payload = send_fence.m.payload;
        line.s[1].payload.imm = bits::<32>(0);
        line.s[1].payload.with_imm = false;
        line.s[1].payload.with_inv = false;
        line.s[1].payload.solicited = false;
        line.s[1].payload.recv = false;
        line.s[1].payload.src_qpn = bits::<24>(0);
        line.s[1].payload.pkey = bits::<16>(0);
        line.s[1].payload.grh = false;
        line.s[1].payload.judged = false;
        line.s[1].payload.after_atomics = false;
        line.s[1].payload.atomics = bits::<5>(0);
        forward!(m <= line.m);
        in_line = line.level;
        let recv_few = recv.valid | recv_fence.busy;
        let send_few = send.valid | send_fence.busy;
        // 3 at each input and in its fence
        let few = if_there(recv_few | send_few, bits::<16>(6));
        level_q = (recv_fence.level.resize::<16>() << 1) + few + line.level.resize::<16>();
        level = level_q;
        busy = recv_few | send_few | line.level.any();
    }
}
