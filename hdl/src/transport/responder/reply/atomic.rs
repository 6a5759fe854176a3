//! Atomics: read 8 bytes, change them, write them back, answer.
//!
//! ```text
//!  AtomicOp, verdict ─► same address under way? ─► read ─► sum, comparison ─► write ─► B ─► results ─► packet, outcome
//! ```
//!
//! Up to 16 are under way, of all queue pairs together, in order. One whose address is that of another waits until
//! that one's write has its response, and the others behind it wait too: so the answer of a read is never older than the
//! write before it, in whatever order the host executes reads and writes. Addresses that are the same modulo 16 MiB count as
//! the same, which costs time and nothing else. A compare and swap that fails writes
//! nothing. A duplicate touches no memory; it goes the same way, so that the result it asks for is kept by then.
//!
//! An atomic whose memory cannot be read is answered with a NAK, remote operational error, and its queue pair fails.
//!
//! Throughput: an atomic in 2 cycles. Assumes: operations are aligned to 8 bytes; no more than 16 come before one has left
//! (`returned`); at least 3 cycles from a read request to its beat.
use super::results::Results;
use super::types::*;
use crate::bus::types::{ReadReq, WriteCmd};
use crate::prelude::*;

/// Atomics under way.
const DEPTH: usize = 16;
/// Bits of an address, from bit 3 on, that are compared.
const NEAR: usize = 21;

/// Unit for atomics of 2^Q queue pairs.
#[derive(LogicBlock)]
pub struct AtomicUnit<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An atomic arrives.
    pub valid: Signal<In, Bit>,
    /// The atomic.
    pub op: Signal<In, AtomicOp>,
    /// The next atomic is decided.
    pub decided: Signal<In, Bit>,
    /// It runs; else it is dropped.
    pub runs: Signal<In, Bit>,
    /// Reads.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Writes.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Writes done, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// Answers.
    pub packet: StreamOut<ReplyPacket>,
    /// Atomics done.
    pub done: StreamOut<Op>,
    /// An atomic is over.
    pub returned: Signal<Out, Bit>,

    ops: Fifo<AtomicOp, 4>,
    verdicts: Fifo<Bits<1>, 4>,
    // the one that is looked at
    held: Reg<Bit>,
    looked: Reg<Bit>,
    cand: Dff<AtomicOp>,
    hits: Dff<Bits<DEPTH>>,
    hits_now: Signal<Local, Bits<DEPTH>>,
    clear: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    drop_now: Signal<Local, Bit>,
    // those under way, by slot
    tail: Reg<Bits<4>>,
    head: Reg<Bits<4>>,
    used: Reg<Bits<DEPTH>>,
    used_next: Signal<Local, Bits<DEPTH>>,
    tail_bit: Signal<Local, Bits<DEPTH>>,
    head_bit: Signal<Local, Bits<DEPTH>>,
    addrs: [Dff<Bits<NEAR>>; DEPTH],
    reads: Skid<ReadReq>,
    flying: Fifo<AtomicOp, 4>,
    words: Fifo<Bits<3>, 4>,
    originals: Fifo<Original, 4>,
    arrived: Reg<Bit>,
    original: Dff<Original>,
    // the one that is computed
    got: Signal<Local, Bit>,
    take_1: Signal<Local, Bit>,
    valid_1: Reg<Bit>,
    op_1: Dff<AtomicOp>,
    original_1: Dff<Original>,
    sum_1: Dff<Bits<64>>,
    equal_1: Dff<Bit>,
    writes: Signal<Local, Bit>,
    new_value: Signal<Local, Bits<64>>,
    step_1: Signal<Local, Bit>,
    commands: Skid<WriteCmd>,
    values: Fifo<NewValue, 4>,
    issued: Reg<Bits<16>>,
    issued_next: Signal<Local, Bits<16>>,
    results: Results<Q>,
    // places in a beat
    pair: Signal<Local, Bits<128>>,
    every_place: Signal<Local, Bits<512>>,
    byte_lift: Signal<Local, Bits<6>>,
    word_mask: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize, const Q: usize> Default for AtomicUnit<W, K, Q> {
    fn default() -> Self {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
        Self {
            clock: ClkRst::default(),
            valid: Signal::default(),
            op: Signal::default(),
            decided: Signal::default(),
            runs: Signal::default(),
            read: StreamOut::default(),
            beat: ReadBeatIn::default(),
            write: StreamOut::default(),
            beats: WriteBeatOut::default(),
            written: Signal::default(),
            packet: StreamOut::default(),
            done: StreamOut::default(),
            returned: Signal::default(),
            ops: Fifo::default(),
            verdicts: Fifo::default(),
            held: Reg::default(),
            looked: Reg::default(),
            cand: Dff::default(),
            hits: Dff::default(),
            hits_now: Signal::default(),
            clear: Signal::default(),
            issue: Signal::default(),
            take: Signal::default(),
            drop_now: Signal::default(),
            tail: Reg::default(),
            head: Reg::default(),
            used: Reg::default(),
            used_next: Signal::default(),
            tail_bit: Signal::default(),
            head_bit: Signal::default(),
            addrs: std::array::from_fn(|_| Dff::default()),
            reads: Skid::default(),
            flying: Fifo::default(),
            words: Fifo::default(),
            originals: Fifo::default(),
            arrived: Reg::default(),
            original: Dff::default(),
            got: Signal::default(),
            take_1: Signal::default(),
            valid_1: Reg::default(),
            op_1: Dff::default(),
            original_1: Dff::default(),
            sum_1: Dff::default(),
            equal_1: Dff::default(),
            writes: Signal::default(),
            new_value: Signal::default(),
            step_1: Signal::default(),
            commands: Skid::default(),
            values: Fifo::default(),
            issued: Reg::default(),
            issued_next: Signal::default(),
            results: Results::default(),
            pair: Signal::default(),
            every_place: Signal::default(),
            byte_lift: Signal::default(),
            word_mask: Constant::new((K as u64 / 8 - 1).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize, const Q: usize> Logic for AtomicUnit<W, K, Q> {
    describe!(
        "reply_atomic",
        format!("w{W}_q{Q}"),
        "Executes atomics, those of one address one after the other."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, ops, verdicts, reads, flying, words, originals, commands, values, results
        );
        dff_setup!(
            self, clock, held, looked, cand, hits, tail, head, used, arrived, original
        );
        dff_setup!(
            self, clock, valid_1, op_1, original_1, sum_1, equal_1, issued
        );
        for i in 0..16 {
            ClkRst::link(&mut self.clock, &mut self.addrs[i].clock);
        }

        // the next one, looked up among those under way in the cycle behind
        self.ops.s.valid.next = self.valid.val();
        self.ops.s.payload.next = self.op.val();
        self.verdicts.s.valid.next = self.decided.val();
        self.verdicts.s.payload.next = bits::<1>(0).replace_bit(0, self.runs.val());
        self.clear.next = !(self.hits.q.val() & self.used.q.val()).any();
        self.issue.next = self.held.q.val()
            & self.looked.q.val()
            & self.clear.val()
            & self.reads.s.ready.val()
            & self.flying.s.ready.val();
        self.take.next = (!self.held.q.val() | self.issue.val())
            & self.ops.m.valid.val()
            & self.verdicts.m.valid.val()
            & !self.results.returned.val();
        self.drop_now.next = self.take.val() & !self.verdicts.m.payload.val().get_bit(0);
        self.ops.m.ready.next = self.take.val();
        self.verdicts.m.ready.next = self.take.val();
        if self.issue.val() {
            self.held.d.next = false;
        }
        self.looked.d.next = self.held.q.val() & !self.issue.val();
        if self.take.val() {
            self.held.d.next = self.verdicts.m.payload.val().get_bit(0);
            self.looked.d.next = false;
            self.cand.d.next = self.ops.m.payload.val();
        }
        self.hits_now.next = bits::<16>(0);
        self.tail_bit.next = bits::<16>(1) << self.tail.q.val();
        self.head_bit.next = bits::<16>(1) << self.head.q.val();
        for i in 0..16 {
            self.hits_now.next = self.hits_now.val().replace_bit(
                i,
                self.addrs[i].q.val() == self.cand.q.val().va.get_bits::<NEAR>(3),
            );
            self.addrs[i].d.next = self.addrs[i].q.val();
            if self.issue.val() & self.tail_bit.val().get_bit(i) {
                self.addrs[i].d.next = self.cand.q.val().va.get_bits::<NEAR>(3);
            }
        }
        self.hits.d.next = self.hits_now.val();
        self.used_next.next = self.used.q.val();
        if self.results.returned.val() {
            self.head.d.next = self.head.q.val() + 1;
            self.used_next.next = self.used.q.val() & !self.head_bit.val();
        }
        self.used.d.next = self.used_next.val();
        if self.issue.val() {
            self.tail.d.next = self.tail.q.val() + 1;
            if !self.cand.q.val().duplicate {
                self.used.d.next = self.used_next.val() | self.tail_bit.val();
            }
        }
        self.returned.next = self.results.returned.val() | self.drop_now.val();

        // read
        self.reads.s.valid.next = self.issue.val() & !self.cand.q.val().duplicate;
        self.reads.s.payload.next.addr = self.cand.q.val().va;
        self.reads.s.payload.next.len = bits::<13>(8);
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.reads.m);
        self.words.s.valid.next = self.issue.val() & !self.cand.q.val().duplicate;
        self.words.s.payload.next = self.cand.q.val().va.get_bits::<3>(3) & self.word_mask.val();
        self.flying.s.valid.next = self.issue.val();
        self.flying.s.payload.next = self.cand.q.val();
        self.words.m.ready.next = self.beat.valid.val();
        self.arrived.d.next = self.beat.valid.val();
        self.original.d.next.error = self.beat.error.val();
        self.original.d.next.value = self
            .beat
            .data
            .val()
            .get_bits::<64>(self.words.m.payload.val().index() * 64);
        self.originals.s.valid.next = self.arrived.q.val();
        self.originals.s.payload.next = self.original.q.val();

        // compute
        self.got.next = self.flying.m.valid.val()
            & (self.originals.m.valid.val() | self.flying.m.payload.val().duplicate);
        self.writes.next = !self.op_1.q.val().duplicate
            & !self.original_1.q.val().error
            & (self.op_1.q.val().add | self.equal_1.q.val());
        self.step_1.next =
            self.valid_1.q.val() & self.commands.s.ready.val() & self.results.s.ready.val();
        self.take_1.next = self.got.val() & (!self.valid_1.q.val() | self.step_1.val());
        self.flying.m.ready.next = self.take_1.val();
        self.originals.m.ready.next = self.take_1.val() & !self.flying.m.payload.val().duplicate;
        if self.step_1.val() {
            self.valid_1.d.next = false;
        }
        if self.take_1.val() {
            self.valid_1.d.next = true;
            self.op_1.d.next = self.flying.m.payload.val();
            self.original_1.d.next = self.originals.m.payload.val();
            self.sum_1.d.next =
                self.originals.m.payload.val().value + self.flying.m.payload.val().swap_add;
            self.equal_1.d.next =
                self.originals.m.payload.val().value == self.flying.m.payload.val().compare;
        }

        // write; there is room for as many values as can be under way
        self.new_value.next = self.op_1.q.val().swap_add;
        if self.op_1.q.val().add {
            self.new_value.next = self.sum_1.q.val();
        }
        self.commands.s.valid.next = self.step_1.val() & self.writes.val();
        self.commands.s.payload.next.addr = self.op_1.q.val().va;
        self.commands.s.payload.next.len = bits::<8>(0);
        self.values.s.valid.next = self.step_1.val() & self.writes.val();
        self.values.s.payload.next.value = self.new_value.val();
        self.values.s.payload.next.word =
            self.op_1.q.val().va.get_bits::<3>(3) & self.word_mask.val();
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.commands.m);
        // the value in every place, of which the strobes choose one
        self.pair.next = bit_cast::<128, 64>(self.values.m.payload.val().value)
            | (bit_cast::<128, 64>(self.values.m.payload.val().value) << 64);
        self.every_place.next = bit_cast::<512, 128>(self.pair.val())
            | (bit_cast::<512, 128>(self.pair.val()) << 128)
            | (bit_cast::<512, 128>(self.pair.val()) << 256)
            | (bit_cast::<512, 128>(self.pair.val()) << 384);
        self.byte_lift.next = bit_cast::<6, 3>(self.values.m.payload.val().word) << 3;
        self.beats.data.next = self.every_place.val().get_bits::<W>(0);
        self.beats.strb.next = bit_cast::<K, 8>(bits::<8>(255)) << self.byte_lift.val();
        self.beats.last.next = true;
        self.beats.valid.next = self.values.m.valid.val();
        self.values.m.ready.next = self.beats.ready.val();
        self.issued_next.next = self.issued.q.val();
        if self.step_1.val() & self.writes.val() {
            self.issued_next.next = self.issued.q.val() + 1;
        }
        self.issued.d.next = self.issued_next.val();

        // answer
        self.results.s.valid.next = self.valid_1.q.val() & self.commands.s.ready.val();
        self.results.s.payload.next.qpn = self.op_1.q.val().qpn;
        self.results.s.payload.next.generation = self.op_1.q.val().generation;
        self.results.s.payload.next.psn = self.op_1.q.val().psn;
        self.results.s.payload.next.msn = self.op_1.q.val().msn;
        self.results.s.payload.next.duplicate = self.op_1.q.val().duplicate;
        self.results.s.payload.next.save = self.op_1.q.val().save;
        self.results.s.payload.next.saved = self.op_1.q.val().saved;
        self.results.s.payload.next.original = self.original_1.q.val().value;
        self.results.s.payload.next.error =
            self.original_1.q.val().error & !self.op_1.q.val().duplicate;
        self.results.s.payload.next.fence = self.issued_next.val();
        self.results.written.next = self.written.val();
        StreamOut::<ReplyPacket>::link(&mut self.packet, &mut self.results.packet);
        StreamOut::<Op>::link(&mut self.done, &mut self.results.done);
    }
}
