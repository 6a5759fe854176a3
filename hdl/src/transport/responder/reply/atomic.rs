//! Atomics: read 8 bytes, change them, write them back, keep the result.
//!
//! ```text
//!  AtomicOp, verdict ─► same address under way? ─► read ─► sum, comparison ─► write ─► B ─► results ─► over
//! ```
//!
//! Up to 16 are under way, of all queue pairs together, in order. One whose address is that of another waits until
//! that one is *over* in memory: its write has its response. The others behind it wait too: so the answer of a read is never older than the
//! write before it, in whatever order the host executes reads and writes. Addresses that are the same modulo 16 MiB count as
//! the same, which costs time and nothing else. A compare and swap that fails writes
//! nothing.
//!
//! One whose rkey is no good touches no memory and goes the same way, so that all are over in the order in which they came.
//!
//! Throughput: an atomic in 2 cycles. Assumes: operations are aligned to 8 bytes; no more than 16 come before one is over
//! (`returned`); at least 3 cycles from a read request to its beat.
use super::accesses::AccessCount;
use super::atomic_types::*;
use super::results::Results;
use super::types::CutPacket;
use crate::bus::types::{ReadReq, WriteCmd};
use crate::prelude::*;

/// Atomics under way.
const DEPTH: usize = 16;
/// Bits of an address, from bit 3 on, that are compared.
const NEAR: usize = 21;

/// Unit for atomics of 2^Q queue pairs.
#[derive(Block)]
#[block(check)]
pub struct AtomicUnit<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An atomic arrives.
    pub valid: Signal<In, Bit>,
    /// The atomic.
    pub op: Signal<In, AtomicOp>,
    /// The next atomic is decided.
    pub decided: Signal<In, Bit>,
    /// It runs; else it is denied.
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
    /// The last one done was refused.
    pub refused: Signal<In, Bit>,
    /// Atomics over.
    pub ends: StreamOut<AtomicEnd>,
    /// An atomic is over.
    pub returned: Signal<Out, Bit>,
    /// A result is asked for, see [`Results`].
    pub asked: Signal<In, Bit>,
    /// See there.
    pub packet: Signal<In, CutPacket>,
    /// See there.
    pub found: Signal<Out, Bit>,
    /// See there.
    pub missing: Signal<Out, Bit>,
    /// See there.
    pub result: Signal<Out, Saved>,
    /// See there.
    pub taken: Signal<In, Bit>,
    /// Atomics that came, modulo 2^16.
    pub begun: Signal<Out, Bits<16>>,
    /// Of these, those that access memory no more; that does not depend on the wire.
    pub over: Signal<Out, Bits<16>>,

    ops: Fifo<AtomicOp, 4>,
    verdicts: Fifo<Bits<1>, 4>,
    // the one that is looked at
    held: Reg<Bit>,
    hazard_checked: Reg<Bit>,
    cand: Dff<AtomicOp>,
    hits: Dff<Bits<DEPTH>>,
    // those under way, by slot
    tail: Reg<Bits<4>>,
    head: Reg<Bits<4>>,
    used: Reg<Bits<DEPTH>>,
    addrs: [Dff<Bits<NEAR>>; DEPTH],
    reads: Skid<ReadReq>,
    flying: Fifo<AtomicOp, 4>,
    words: Fifo<Bits<3>, 4>,
    originals: Fifo<Original, 4>,
    arrived: Reg<Bit>,
    original: Dff<Original>,
    // the one that is computed
    valid_1: Reg<Bit>,
    op_1: Dff<AtomicOp>,
    original_1: Dff<Original>,
    sum_1: Dff<Bits<64>>,
    equal_1: Dff<Bit>,
    commands: Skid<WriteCmd>,
    values: Fifo<NewValue, 4>,
    issued: Reg<Bits<16>>,
    /// An atomic is asked for with its write.
    count: AccessCount<4>,
    /// `written` of the cycle before.
    counted: Reg<Bits<16>>,
    results: Results<Q>,
    // places in a beat
    #[init(Constant::new((K as u64 / 8 - 1).to_bits()))]
    word_mask: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize, const Q: usize> AtomicUnit<W, K, Q> {
    fn check() {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
    }
}

impl<const W: usize, const K: usize, const Q: usize> Logic for AtomicUnit<W, K, Q> {
    describe!(
        "reply_atomic",
        format!("w{W}_q{Q}"),
        "Executes atomics, those of one address one after the other."
    );

    #[kernel]
    fn update(&mut self) {
        counted = written;
        count.checked = valid;
        count.answered = written.bit(0) ^ counted.bit(0);
        begun = count.begun;
        over = count.over;

        // the next one, looked up among those under way in the cycle behind
        ops.s.valid = valid;
        ops.s.payload = op;
        verdicts.s.valid = decided;
        verdicts.s.payload = bits::<1>(0).replace_bit(0, runs);
        let clear = !(hits & used).any();
        let issue = held & hazard_checked & clear & reads.s.ready & flying.s.ready;
        let take = (!held | issue) & ops.m.valid & verdicts.m.valid;
        ops.m.ready = take;
        verdicts.m.ready = take;
        if issue {
            held = false;
        }
        hazard_checked = held & !issue;
        if take {
            held = true;
            hazard_checked = false;
            cand = ops.m.payload;
            cand.denied = !verdicts.m.payload.bit(0);
        }
        let mut hits_now: Bits<DEPTH> = bits::<16>(0);
        let tail_bit = bits::<16>(1) << tail;
        let head_bit = bits::<16>(1) << head;
        for i in 0..16 {
            hits_now = hits_now.replace_bit(i, addrs[i] == cand.va.slice::<NEAR>(3));
            addrs[i] = addrs[i];
            if issue & tail_bit.bit(i) {
                addrs[i] = cand.va.slice::<NEAR>(3);
            }
        }
        hits = hits_now;
        let mut used_next = used;
        if count.ends {
            head = head + 1;
            used_next = used & !head_bit;
        }
        used = used_next;
        if issue {
            tail = tail + 1;
            if !cand.denied {
                used = used_next | tail_bit;
            }
        }
        returned = results.returned;

        // read
        reads.s.valid = issue & !cand.denied;
        reads.s.payload.addr = cand.va;
        reads.s.payload.len = bits::<13>(8);
        forward!(read <= reads.m);
        words.s.valid = issue & !cand.denied;
        words.s.payload = cand.va.slice::<3>(3) & word_mask;
        flying.s.valid = issue;
        flying.s.payload = cand;
        words.m.ready = beat.valid;
        arrived = beat.valid;
        original.error = beat.error;
        original.value = beat.data.slice::<64>(words.m.payload * 64);
        originals.s.valid = arrived;
        originals.s.payload = original;

        // compute
        let aside = flying.m.payload.denied;
        let got = flying.m.valid & (originals.m.valid | aside);
        let writes = !op_1.denied & !original_1.error & (op_1.add | equal_1);
        let step_1 = valid_1 & commands.s.ready & results.s.ready;
        let take_1 = got & (!valid_1 | step_1);
        flying.m.ready = take_1;
        originals.m.ready = take_1 & !aside;
        if step_1 {
            valid_1 = false;
        }
        if take_1 {
            valid_1 = true;
            op_1 = flying.m.payload;
            original_1 = originals.m.payload;
            sum_1 = originals.m.payload.value + flying.m.payload.swap_add;
            equal_1 = originals.m.payload.value == flying.m.payload.compare;
        }

        // write; there is room for as many values as can be under way
        let mut new_value = op_1.swap_add;
        if op_1.add {
            new_value = sum_1;
        }
        commands.s.valid = step_1 & writes;
        commands.s.payload.addr = op_1.va;
        commands.s.payload.len = bits::<8>(0);
        values.s.valid = step_1 & writes;
        values.s.payload.value = new_value;
        values.s.payload.word = op_1.va.slice::<3>(3) & word_mask;
        forward!(write <= commands.m);
        // the value in every place, of which the strobes choose one
        let pair =
            values.m.payload.value.resize::<128>() | (values.m.payload.value.resize::<128>() << 64);
        let every_place = pair.resize::<512>()
            | (pair.resize::<512>() << 128)
            | (pair.resize::<512>() << 256)
            | (pair.resize::<512>() << 384);
        let byte_lift = values.m.payload.word.resize::<6>() << 3;
        beats.data = every_place.low::<W>();
        beats.strb = bits::<8>(255).resize::<K>() << byte_lift;
        beats.last = true;
        beats.valid = values.m.valid;
        values.m.ready = beats.ready;
        let mut issued_next = issued;
        if step_1 & writes {
            issued_next = issued + 1;
        }
        issued = issued_next;
        count.asked = step_1 & writes;
        count.dropped = step_1 & !writes;

        // result
        results.s.valid = valid_1 & commands.s.ready;
        copy!(results.s.payload <= op_1; qpn, generation, psn, denied, slot);
        results.s.payload.original = original_1.value;
        results.s.payload.error = original_1.error & !op_1.denied;
        results.s.payload.writes = writes;
        results.s.payload.fence = issued_next;
        copy!(results <= self; written, refused, asked, packet, taken);
        copy!(self <= results; found, missing, result);
        forward!(ends <= results.over);
    }
}
