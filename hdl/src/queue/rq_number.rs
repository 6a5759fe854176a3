//! Numbers of receive WQEs of shared receive queues: which WQE an [`RqRead`] means, and where it stands.
//!
//! The host posts to a shared receive queue by writing the number of a WQE into a ring. A queue pair that takes the next one
//! has that entry read (`ask`); the number stays in a table, for the next packets of the message, its completion and its
//! flush. Where a WQE is read the low bits of the number count, so nothing outside of the queue is read. A flush reads no WQE: its
//! number is that of the table, whatever size the queue has by then. One that could not be read is [`NO_NUMBER`](ferroce_proto::abi::cq::NO_NUMBER): its WQE is read too, as WQE 0, and is `lost`.
//!
//! ```text
//!  s ─┬─► waiting ─► head ─► number: of the answer (takes), else of the table ─► numbers (scatter)
//!     └─► ask ─► answers ─────┘                                            └─► found ─► m
//! ```
//!
//! Order: `m` and `numbers` follow `s`. Rate: one a cycle. Latency: none for other WQEs while none of a shared queue waits;
//! of a shared queue 4 cycles to `m` and 5 to `numbers`, and the read of one that is taken. 256 reads may be under way.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::wqe::SLOT_BYTES;

use crate::bus::payload::payload;
use crate::bus::types::RqRead;
use crate::cell::ram::Ram;
use crate::prelude::*;

const _: () = assert!(SLOT_BYTES == 64, "the shift that the kernel spells out");

payload! {
    /// A WQE that was found.
    RqFound {
        /// Host address of its first slot.
        addr: Bits<64>,
        /// Its slots, 1 to 8.
        slots: Bits<4>,
        /// Of these, slots read at `addr`; the ring wraps behind them.
        head: Bits<4>,
        /// It does: these are fewer.
        wraps: Bit,
        /// Address of the ring, where the others are read.
        base: Bits<64>,
        /// It has no number: its slots count as failed.
        lost: Bit,
    }
}

/// Numbers of receive WQEs, 2^Q queue pairs.
#[derive(Block)]
pub struct RqNumber<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// WQEs to read.
    pub s: StreamIn<RqRead>,
    /// Addresses of numbers to read.
    pub ask: StreamOut<Bits<64>>,
    /// One was read.
    pub answer_valid: Signal<In, Bit>,
    /// It, below 2^15, or all ones: it could not be read.
    pub answer: Signal<In, Bits<16>>,
    /// WQEs found.
    pub m: StreamOut<RqFound>,
    /// Numbers of those that are `numbered`.
    pub numbers: StreamOut<Bits<16>>,
    asked: Slice<Bits<64>>,
    waiting: Deep<RqRead, 8>,
    /// Longer than `waiting`: an answer always has room.
    answers: Deep<Bits<16>, 9>,
    named: Deep<Bits<16>, 8>,
    /// The number that a queue pair took last.
    #[init(Ram::new(Style::Block))]
    table: Ram<Bits<16>, Q>,
    /// Nothing was here in the cycle before.
    #[init(Reg::new(true))]
    quiet: Reg<Bit>,
    head_valid: Reg<Bit>,
    head: Dff<RqRead>,
    /// The number of `head` was written when the table was read.
    forwarded: Dff<Bit>,
    written: Dff<Bits<16>>,
    found_valid: Reg<Bit>,
    found: Dff<RqFound>,
    /// Its number.
    place: Dff<Bits<16>>,
}

impl<const Q: usize> Logic for RqNumber<Q> {
    describe!(
        "rq_number",
        format!("q{Q}"),
        "Finds the receive WQEs of shared receive queues."
    );

    #[kernel]
    fn update(&mut self) {
        // in: past the queue, or into it
        let direct = quiet & !s.payload.shared;
        let asks = s.payload.shared & s.payload.takes;
        let room = waiting.s.ready & (asked.s.ready | !asks);
        let enters = s.valid & !direct & room;
        waiting.s.valid = enters;
        waiting.s.payload = s.payload;
        asked.s.valid = enters & asks;
        asked.s.payload = s.payload.addr;
        forward!(ask <= asked.m);
        s.ready = if direct { m.ready } else { room };
        quiet = !waiting.level.any() & !enters & !head_valid & !found_valid;

        // the number
        answers.s.valid = answer_valid;
        answers.s.payload = answer;
        let takes = head.shared & head.takes;
        let mut whole = table.rdata;
        if forwarded {
            whole = written;
        }
        if takes {
            whole = answers.m.payload;
        }
        let lost = whole.bit(15);
        let mut number = whole;
        for i in 0..15 {
            if (head.log <= i) & (takes | head.list) & !lost {
                number = number.replace_bit(i, false);
            }
        }
        // what stays of it, whatever size the queue has later
        let kept = if takes { number } else { whole };
        let found_ready = !found_valid | m.ready;
        let leaves = head_valid
            & (!takes | answers.m.valid)
            & (!head.numbered | named.s.ready)
            & (!head.list | found_ready);
        answers.m.ready = leaves & takes;
        table.we = leaves & takes;
        table.waddr = head.qpn.low::<Q>();
        table.wdata = kept;
        named.s.valid = leaves & head.numbered;
        named.s.payload = number;
        forward!(numbers <= named.m);

        // the next one
        let pops = waiting.m.valid & (!head_valid | leaves);
        waiting.m.ready = !head_valid | leaves;
        table.re = pops;
        table.raddr = waiting.m.payload.qpn.low::<Q>();
        if leaves {
            head_valid = false;
        }
        if pops {
            head_valid = true;
            head = waiting.m.payload;
            forwarded = leaves & (waiting.m.payload.qpn == head.qpn);
            written = kept;
        }

        // its address
        if found_ready {
            found_valid = leaves & head.list;
            copy!(found <= head; addr, slots, head, wraps, base);
            found.lost = false;
            place = bits::<16>(0);
            if head.shared {
                found.addr = head.base;
                found.lost = lost;
                if !lost {
                    place = number;
                }
            }
        }
        let far = place.resize::<25>();
        let mut distance = far << 6;
        if found.slots.bit(1) {
            distance = far << 7;
        }
        if found.slots.bit(2) {
            distance = far << 8;
        }
        if found.slots.bit(3) {
            distance = far << 9;
        }
        m.valid = found_valid | (s.valid & direct);
        m.payload = found;
        m.payload.addr = found.addr + distance.resize::<64>();
        if !found_valid {
            copy!(m.payload <= s.payload; addr, slots, head, wraps, base);
            m.payload.lost = false;
        }
    }
}
