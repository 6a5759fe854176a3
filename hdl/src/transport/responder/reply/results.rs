//! Results of atomics: waits for the write, keeps the result for duplicates, answers.
//!
//! The last 16 results of a queue pair are kept with their PSNs. That of a duplicate is looked for among them, from the
//! latest back, 2 cycles an entry; one that is not there is not answered (IBA vol. 1, 9.7.5.1.5).
//!
//! Throughput: a result in 3 cycles.
use super::types::*;
use crate::bus::syndrome::{ACK, NAK_ACCESS, NAK_OPERATIONAL};
use crate::prelude::*;
use ferroce_proto::wire::Opcode;

const RC_ACK: u64 = Opcode::RcAck.code() as u64;
const ATOMIC_ACK: u64 = Opcode::RcAtomicAck.code() as u64;

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
#[derive(Block)]
pub struct Results<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Results, in order.
    pub s: StreamIn<Written>,
    /// Writes done, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// The last one done was refused.
    pub refused: Signal<In, Bit>,
    /// Answers.
    pub packet: StreamOut<ReplyPacket>,
    /// Atomics done.
    pub done: StreamOut<Op>,
    /// An atomic is done in this cycle.
    pub returned: Signal<Out, Bit>,

    waiting: Fifo<Written, 4>,
    /// Of each write done: whether it was refused.
    refusals: Fifo<Bits<1>, 4>,
    /// `written` of the cycle before.
    counted: Reg<Bits<16>>,
    /// The oldest one failed: it was denied, or could not be read or written.
    failed: Dff<Bit>,
    kept: RingRam<Saved, Q, 4>,
    outcomes: Skid<AtomicEnd>,
    state: Reg<ResultStep>,
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
        "Keeps the results of atomics and answers."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= waiting.s);
        let r = waiting.m.payload;
        let came = written.bit(0) ^ counted.bit(0);
        refusals.s.valid = came;
        refusals.s.payload = bits::<1>(0).replace_bit(0, refused);
        assert!(!came | refusals.s.ready, "no more writes than results");
        refusals.m.ready = false;
        counted = written;
        age = written - r.fence;
        aged = state == ResultStep::Write;

        kept.re = true;
        kept.rring = r.qpn.low::<Q>();
        kept.rslot = index;
        kept.we = false;
        kept.wring = r.qpn.low::<Q>();
        kept.wslot = r.save;
        kept.wdata.psn = r.psn;
        kept.wdata.original = r.original;

        let nak: Bits<8> = if r.denied {
            NAK_ACCESS
        } else {
            NAK_OPERATIONAL
        };
        packet.valid = false;
        packet.payload.qpn = r.qpn;
        packet.payload.opcode = ATOMIC_ACK;
        packet.payload.psn = r.psn;
        packet.payload.msn = r.msn;
        packet.payload.syndrome = ACK;
        packet.payload.plen = bits::<13>(0);
        packet.payload.path = bits::<2>(0);
        packet.payload.value = value;
        if failed {
            packet.payload.opcode = RC_ACK;
            packet.payload.syndrome = nak;
            // it was not executed
            packet.payload.msn = r.msn - 1;
        }
        outcomes.s.valid = false;
        copy!(outcomes.s.payload <= r; qpn, generation, duplicate, denied);
        outcomes.s.payload.failed = failed;
        waiting.m.ready = false;

        match state {
            ResultStep::Idle => {
                index = r.save - 1;
                left = r.saved;
                value = r.original;
                failed = r.error | r.denied;
                if waiting.m.valid {
                    state = ResultStep::Write;
                    if r.duplicate {
                        state = ResultStep::Read;
                    }
                }
            }
            ResultStep::Write => {
                // a write of its own, and with it those before
                let is_refused = r.writes & refusals.m.payload.bit(0);
                if aged & !age.bit(15) & (refusals.m.valid | !r.writes) {
                    kept.we = !failed & !is_refused;
                    refusals.m.ready = r.writes;
                    failed = failed | is_refused;
                    state = ResultStep::Answer;
                }
            }
            ResultStep::Read => {
                state = ResultStep::Compare;
                if !left.any() {
                    state = ResultStep::Over;
                }
            }
            ResultStep::Compare => {
                value = kept.rdata.original;
                index = index - 1;
                left = left - 1;
                state = ResultStep::Read;
                if kept.rdata.psn == r.psn {
                    state = ResultStep::Answer;
                }
            }
            ResultStep::Answer => {
                packet.valid = true;
                if packet.ready {
                    state = ResultStep::Over;
                }
            }
            ResultStep::Over => {
                outcomes.s.valid = true;
                if outcomes.s.ready {
                    waiting.m.ready = true;
                    state = ResultStep::Idle;
                }
            }
            _ => {}
        }
        returned = (state == ResultStep::Over) & outcomes.s.ready;
        outcomes.m.ready = done.ready;
        done.valid = outcomes.m.valid;
        done.payload = blank;
        done.payload.kind = OpKind::Atomic;
        done.payload.qpn = outcomes.m.payload.qpn;
        done.payload.syndrome = NAK_OPERATIONAL;
        // its turn has not ended before
        if outcomes.m.payload.denied {
            done.payload.kind = OpKind::Served;
            done.payload.syndrome = NAK_ACCESS;
        }
        copy!(done.payload <= outcomes.m.payload; generation, duplicate, failed);
    }
}
