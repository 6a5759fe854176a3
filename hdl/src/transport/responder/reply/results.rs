//! Results of atomics: waits for the write, keeps the result, finds it when the atomic is answered.
//!
//! ```text
//!  Written ─► its write is done ─┬─► kept, by queue pair and slot ─► found ─► exit
//!                                └─► over (admit)                      ▲ asked
//! ```
//!
//! The last 16 results of a queue pair are kept with their PSNs. That of a duplicate is looked for among them, from the
//! latest answered one back, 2 cycles an entry; one that is not there is not answered (IBA vol. 1, 9.7.5.1.5).
//!
//! Throughput: a result in 2 cycles. Latency: one that is asked for is found in 3 cycles.
use super::atomic_types::*;
use super::types::CutPacket;
use crate::prelude::*;

/// What happens to the result that is asked for.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum FindStep {
    /// None is asked for.
    Idle,
    /// An entry is read.
    Read,
    /// It is compared, for a duplicate.
    Compare,
    /// It is found, or is not there.
    Found,
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
    /// Atomics over.
    pub over: StreamOut<AtomicEnd>,
    /// An atomic is over in this cycle.
    pub returned: Signal<Out, Bit>,
    /// A result is asked for.
    pub asked: Signal<In, Bit>,
    /// Of this packet.
    pub packet: Signal<In, CutPacket>,
    /// It is found.
    pub found: Signal<Out, Bit>,
    /// It is not kept.
    pub missing: Signal<Out, Bit>,
    /// It.
    pub result: Signal<Out, Saved>,
    /// It is taken.
    pub taken: Signal<In, Bit>,

    waiting: Fifo<Written, 4>,
    /// Of each write done: whether it was refused.
    refusals: Fifo<Bits<1>, 4>,
    /// `written` of the cycle before.
    counted: Reg<Bits<16>>,
    /// Of the oldest one, a cycle behind it: since its write is done; it writes.
    age: Dff<Bits<16>>,
    writes: Dff<Bit>,
    aged: Reg<Bit>,
    kept: RingRam<Saved, Q, 4>,
    ends: Skid<AtomicEnd>,

    step: Reg<FindStep>,
    index: Dff<Bits<4>>,
    left: Dff<Bits<5>>,
    misses: Dff<Bit>,
    /// That of the packet.
    psn: Dff<Bits<24>>,
}

impl<const Q: usize> Logic for Results<Q> {
    describe!(
        "reply_results",
        format!("q{Q}"),
        "Keeps the results of atomics until they are answered, and for duplicates."
    );

    #[kernel]
    fn update(&mut self) {
        // the oldest one: a write of its own, and with it those before
        forward!(s <= waiting.s);
        let r = waiting.m.payload;
        let came = written.bit(0) ^ counted.bit(0);
        refusals.s.valid = came;
        refusals.s.payload = bits::<1>(0).replace_bit(0, refused);
        assert!(!came | refusals.s.ready, "no more writes than results");
        counted = written;
        let ends_now = aged & !age.bit(15) & (refusals.m.valid | !writes) & ends.s.ready;
        age = written - r.fence;
        writes = r.writes;
        aged = waiting.m.valid & !ends_now;
        waiting.m.ready = ends_now;
        refusals.m.ready = ends_now & writes;
        let failed = r.error | (writes & refusals.m.payload.bit(0));
        kept.we = ends_now;
        kept.wring = r.qpn.low::<Q>();
        kept.wslot = r.slot;
        kept.wdata.failed = failed;
        copy!(kept.wdata <= r; psn, original, denied);
        ends.s.valid = ends_now;
        copy!(ends.s.payload <= r; qpn, generation);
        ends.s.payload.failed = failed | r.denied;
        forward!(over <= ends.m);
        returned = ends_now;

        // the one that is asked for
        kept.re = step == FindStep::Read;
        kept.rring = packet.qpn.low::<Q>();
        kept.rslot = index;
        psn = packet.psn;
        match step {
            FindStep::Idle => {
                index = packet.save;
                left = packet.saved;
                misses = packet.duplicate & !packet.saved.any();
                if packet.duplicate {
                    index = packet.save - 1;
                }
                if asked {
                    step = FindStep::Read;
                }
            }
            FindStep::Read => {
                index = index - 1;
                left = left - 1;
                step = FindStep::Found;
                if packet.duplicate & !misses {
                    step = FindStep::Compare;
                }
            }
            FindStep::Compare => {
                misses = !left.any();
                step = FindStep::Read;
                if kept.rdata.psn == psn {
                    misses = false;
                    step = FindStep::Found;
                }
            }
            FindStep::Found => {
                if taken {
                    step = FindStep::Idle;
                }
            }
            _ => {}
        }
        found = step == FindStep::Found;
        missing = misses;
        result = kept.rdata;
    }
}
