//! Answers: acknowledgements for the send queues as long as nothing but acknowledgements is answered.
//!
//! No response has data, so a send queue in error is closed as soon as it asks for it. A queue pair asks once until a
//! command changes its state, so a FIFO entry a queue pair holds them all.
use crate::bus::types::{AckEvent, Answer};
use crate::prelude::*;

/// Answers for 2^Q send queues.
#[derive(LogicBlock, Default)]
pub struct Answers<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Response headers.
    pub acks: StreamIn<AckEvent>,
    /// A send queue is to be closed.
    pub close_valid: Signal<In, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<In, Bits<16>>,
    /// Answers.
    pub m: StreamOut<Answer>,

    closing: Fifo<Bits<16>, Q>,
    merge: Merge<Answer, 2>,
    no_answer: Zero<Answer>,
}

impl<const Q: usize> Logic for Answers<Q> {
    describe!(
        "answers",
        format!("q{Q}"),
        "Acknowledgements for the send queues."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, closing, merge);
        self.closing.s.valid.next = self.close_valid.val();
        self.closing.s.payload.next = self.close_qpn.val();
        self.merge.s[0].valid.next = self.acks.valid.val();
        self.merge.s[0].payload.next = self.no_answer.val();
        self.merge.s[0].payload.next.qpn = self.acks.payload.val().qpn;
        self.merge.s[0].payload.next.psn = self.acks.payload.val().psn;
        self.merge.s[0].payload.next.syndrome = self.acks.payload.val().syndrome;
        self.acks.ready.next = self.merge.s[0].ready.val();
        self.merge.s[1].valid.next = self.closing.m.valid.val();
        self.merge.s[1].payload.next = self.no_answer.val();
        self.merge.s[1].payload.next.qpn = self.closing.m.payload.val();
        self.merge.s[1].payload.next.closed = true;
        self.closing.m.ready.next = self.merge.s[1].ready.val();
        StreamOut::<Answer>::link(&mut self.m, &mut self.merge.m);
    }
}
