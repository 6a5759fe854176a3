//! Results of atomics: waits for the write, keeps the result for duplicates, answers.
//!
//! The last 16 results of a queue pair are kept with their PSNs. That of a duplicate is looked for among them, from the
//! latest back, 2 cycles an entry; one that is not there is not answered (IBA vol. 1, 9.7.5.1.5).
//!
//! Throughput: a result in 3 cycles.
use super::types::*;
use crate::prelude::*;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};

const RC_ACK: u64 = Opcode::RcAck.code() as u64;
const ATOMIC_ACK: u64 = Opcode::RcAtomicAck.code() as u64;
const ACK: u64 = Syndrome::ACK.bits() as u64;
const NAK_OPERATIONAL: u64 = Syndrome::Nak(NakCode::RemoteOperational).bits() as u64;

/// What happens to the oldest result.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum ResultStep {
    /// It is awaited.
    Idle,
    /// Its write is awaited.
    Write,
    /// An entry is read for a duplicate.
    Read,
    /// The entry is compared.
    Compare,
    /// It is answered.
    Answer,
    /// It is over.
    Over,
}

/// Results of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct Results<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Results, in order.
    pub s: StreamIn<Written>,
    /// Writes done, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// Answers.
    pub packet: StreamOut<ReplyPacket>,
    /// Atomics done.
    pub done: StreamOut<Op>,
    /// An atomic is done in this cycle.
    pub returned: Signal<Out, Bit>,

    waiting: Fifo<Written, 4>,
    kept: RingRam<Saved, Q, 4>,
    outcomes: Skid<AtomicEnd>,
    state: Reg<ResultStep>,
    r: Signal<Local, Written>,
    age: Dff<Bits<16>>,
    aged: Reg<Bit>,
    index: Dff<Bits<4>>,
    left: Dff<Bits<5>>,
    value: Dff<Bits<64>>,
    blank: Zero<Op>,
}

impl<const Q: usize> Logic for Results<Q> {
    describe!(
        "reply_results",
        format!("q{Q}"),
        "Keeps the results of atomics and answers.";
        RC_ACK, ATOMIC_ACK, ACK, NAK_OPERATIONAL
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, waiting, kept, outcomes);
        dff_setup!(self, clock, state, age, aged, index, left, value);
        StreamIn::<Written>::link(&mut self.s, &mut self.waiting.s);
        self.r.next = self.waiting.m.payload.val();
        self.age.d.next = self.written.val() - self.r.val().fence;
        self.aged.d.next = self.state.q.val() == ResultStep::Write;

        self.kept.re.next = true;
        self.kept.rring.next = self.r.val().qpn.get_bits::<Q>(0);
        self.kept.rslot.next = self.index.q.val();
        self.kept.we.next = false;
        self.kept.wring.next = self.r.val().qpn.get_bits::<Q>(0);
        self.kept.wslot.next = self.r.val().save;
        self.kept.wdata.next.psn = self.r.val().psn;
        self.kept.wdata.next.original = self.r.val().original;

        self.packet.valid.next = false;
        self.packet.payload.next.qpn = self.r.val().qpn;
        self.packet.payload.next.opcode = ATOMIC_ACK.into();
        self.packet.payload.next.psn = self.r.val().psn;
        self.packet.payload.next.msn = self.r.val().msn;
        self.packet.payload.next.syndrome = ACK.into();
        self.packet.payload.next.plen = bits::<13>(0);
        self.packet.payload.next.value = self.value.q.val();
        if self.r.val().error {
            self.packet.payload.next.opcode = RC_ACK.into();
            self.packet.payload.next.syndrome = NAK_OPERATIONAL.into();
            // it was not executed
            self.packet.payload.next.msn = self.r.val().msn - 1;
        }
        self.outcomes.s.valid.next = false;
        self.outcomes.s.payload.next.qpn = self.r.val().qpn;
        self.outcomes.s.payload.next.generation = self.r.val().generation;
        self.outcomes.s.payload.next.duplicate = self.r.val().duplicate;
        self.outcomes.s.payload.next.failed = self.r.val().error;
        self.waiting.m.ready.next = false;

        match self.state.q.val() {
            ResultStep::Idle => {
                self.index.d.next = self.r.val().save - 1;
                self.left.d.next = self.r.val().saved;
                self.value.d.next = self.r.val().original;
                if self.waiting.m.valid.val() {
                    self.state.d.next = ResultStep::Write;
                    if self.r.val().duplicate {
                        self.state.d.next = ResultStep::Read;
                    }
                }
            }
            ResultStep::Write => {
                if self.aged.q.val() & !self.age.q.val().get_bit(15) {
                    self.kept.we.next = !self.r.val().error;
                    self.state.d.next = ResultStep::Answer;
                }
            }
            ResultStep::Read => {
                self.state.d.next = ResultStep::Compare;
                if !self.left.q.val().any() {
                    self.state.d.next = ResultStep::Over;
                }
            }
            ResultStep::Compare => {
                self.value.d.next = self.kept.rdata.val().original;
                self.index.d.next = self.index.q.val() - 1;
                self.left.d.next = self.left.q.val() - 1;
                self.state.d.next = ResultStep::Read;
                if self.kept.rdata.val().psn == self.r.val().psn {
                    self.state.d.next = ResultStep::Answer;
                }
            }
            ResultStep::Answer => {
                self.packet.valid.next = true;
                if self.packet.ready.val() {
                    self.state.d.next = ResultStep::Over;
                }
            }
            ResultStep::Over => {
                self.outcomes.s.valid.next = true;
                if self.outcomes.s.ready.val() {
                    self.waiting.m.ready.next = true;
                    self.state.d.next = ResultStep::Idle;
                }
            }
            _ => {}
        }
        self.returned.next = (self.state.q.val() == ResultStep::Over) & self.outcomes.s.ready.val();
        self.outcomes.m.ready.next = self.done.ready.val();
        self.done.valid.next = self.outcomes.m.valid.val();
        self.done.payload.next = self.blank.val();
        self.done.payload.next.kind = OpKind::Atomic;
        self.done.payload.next.qpn = self.outcomes.m.payload.val().qpn;
        self.done.payload.next.syndrome = NAK_OPERATIONAL.into();
        self.done.payload.next.generation = self.outcomes.m.payload.val().generation;
        self.done.payload.next.duplicate = self.outcomes.m.payload.val().duplicate;
        self.done.payload.next.failed = self.outcomes.m.payload.val().failed;
    }
}
