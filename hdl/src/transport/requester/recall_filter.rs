//! Drops packets of send queues that went back since they were cut (docs/architecture.md 3.3).
//!
//! A packet of another round than its queue pair is in goes no further: its descriptor ends here, and for each packet with
//! payload `payload` tells `gather` whether to hand it out (1) or to forget it (0), in order. The round is looked up for
//! as long as a packet waits to be offered.
//!
//! Latency: 1 cycle. Throughput: a packet a cycle.
use crate::bus::types::{Recall, TxDesc};
use crate::prelude::*;

/// The filter for 2^Q queue pairs; up to 2^V packets between it and their payload.
#[derive(LogicBlock, Default)]
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
    rounds: Ram<Bits<2>, Q>,
    held: Reg<Bit>,
    desc: Dff<TxDesc>,
    /// It was offered at `m`, and so stays there.
    offered: Reg<Bit>,
    verdicts: Fifo<Bit, V>,
    next_qpn: Signal<Local, Bits<16>>,
    has_payload: Signal<Local, Bit>,
    current: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

impl<const Q: usize, const V: usize> Logic for RecallFilter<Q, V> {
    describe!(
        "recall_filter",
        format!("q{Q}_{V}"),
        "Drops packets of send queues that went back."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, rounds, verdicts);
        dff_setup!(self, clock, held, desc, offered);
        self.rounds.we.next = self.recall_valid.val();
        self.rounds.waddr.next = self.recall.val().qpn.get_bits::<Q>(0);
        self.rounds.wdata.next = self.recall.val().round;

        self.has_payload.next = self.desc.q.val().plen.any();
        self.current.next =
            self.offered.q.val() | (self.rounds.rdata.val() == self.desc.q.val().round);
        self.passes.next = self.held.q.val()
            & self.current.val()
            & (self.verdicts.s.ready.val() | !self.has_payload.val());
        self.ends.next = (self.passes.val() & self.m.ready.val())
            | (self.held.q.val()
                & !self.current.val()
                & (self.verdicts.s.ready.val() | !self.has_payload.val()));
        self.verdicts.s.valid.next = self.ends.val() & self.has_payload.val();
        self.verdicts.s.payload.next = self.current.val();
        StreamOut::<Bit>::link(&mut self.payload, &mut self.verdicts.m);
        self.offered.d.next = self.passes.val() & !self.m.ready.val();
        self.m.valid.next = self.passes.val();
        self.m.payload.next = self.desc.q.val();

        self.s.ready.next = !self.held.q.val() | self.ends.val();
        self.next_qpn.next = self.desc.q.val().qpn;
        if !self.held.q.val() | self.ends.val() {
            self.held.d.next = self.s.valid.val();
            self.desc.d.next = self.s.payload.val();
            self.next_qpn.next = self.s.payload.val().qpn;
        }
        self.rounds.re.next = true;
        self.rounds.raddr.next = self.next_qpn.val().get_bits::<Q>(0);
    }
}
