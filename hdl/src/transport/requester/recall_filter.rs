//! Drops packets of send queues that went back since they were cut (docs/blocks/requester.md).
//!
//! A packet of another round than its queue pair is in goes no further: its descriptor ends here, and for each packet with
//! payload `payload` tells `gather` whether to hand it out (1) or to forget it (0), in order. The round is looked up for
//! as long as a packet waits to be offered.
//!
//! Latency: 1 cycle. Throughput: a packet a cycle.
use crate::bus::types::{Recall, TxDesc};
use crate::prelude::*;

/// The filter for 2^Q queue pairs; up to 2^V packets between it and their payload.
#[derive(Block)]
pub struct RecallFilter<const Q: usize, const V: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A send queue is in another round.
    pub recall_valid: Signal<In, Bit>,
    /// Which, and its round.
    pub recall: Signal<In, Recall>,
    /// Packets.
    pub s: StreamIn<TxDesc>,
    /// Packets to send.
    pub m: StreamOut<TxDesc>,
    /// Of each packet with payload: it is to be sent.
    pub payload: StreamOut<Bit>,
    /// A packet waits here.
    pub busy: Signal<Out, Bit>,
    rounds: Ram<Bits<2>, Q>,
    held: Reg<Bit>,
    desc: Dff<TxDesc>,
    /// It was offered at `m`, and so stays there.
    offered: Reg<Bit>,
    verdicts: Fifo<Bit, V>,
}

impl<const Q: usize, const V: usize> Logic for RecallFilter<Q, V> {
    describe!(
        "recall_filter",
        format!("q{Q}_{V}"),
        "Drops packets of send queues that went back."
    );

    #[kernel]
    fn update(&mut self) {
        rounds.we = recall_valid;
        rounds.waddr = recall.qpn.low::<Q>();
        rounds.wdata = recall.round;

        let has_payload = desc.plen.any();
        let current = offered | (rounds.rdata == desc.round);
        let passes = held & current & (verdicts.s.ready | !has_payload);
        let ends = (passes & m.ready) | (held & !current & (verdicts.s.ready | !has_payload));
        verdicts.s.valid = ends & has_payload;
        verdicts.s.payload = current;
        forward!(payload <= verdicts.m);
        offered = passes & !m.ready;
        busy = held;
        m.valid = passes;
        m.payload = desc;

        s.ready = !held | ends;
        let mut next_qpn = desc.qpn;
        if !held | ends {
            held = s.valid;
            desc = s.payload;
            next_qpn = s.payload.qpn;
        }
        rounds.re = true;
        rounds.raddr = next_qpn.low::<Q>();
    }
}
