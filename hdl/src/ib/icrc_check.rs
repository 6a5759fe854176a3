//! Invariant CRC check of received frames, without shifting.
//!
//! The CRC of a frame is taken over its whole beats, of which everything before the IP header is zeroed, the variant
//! fields are set to ones, and everything behind the ICRC is zeroed. A register that starts from 0 does not see the
//! leading zeros; the seed ([`SEED`](ferroce_proto::wire::icrc::SEED)) is added to the first four bytes of the IP header instead. Behind the
//! ICRC the register holds the residue of the CRC, and then runs over the zeros that fill the beat: it is compared with
//! the residue moved on by so many bytes, one of `K` constants. Both are in coordinates in which the zeros of a whole beat
//! are a shift. Later beats do not count.
//!
//! The block also hands on the beats, zeroed outside of the IP datagram, in step with the answer. Five cycles from a
//! beat to its answer, a beat a cycle; the answer is that of the frame in its last beat.
//!
//! ```text
//! cycle 0        1          2          3, 4            5
//! end of the  ─► mask  ─►  CRC: two cycles  ─► compare ─► good
//! ICRC          beat └───────────── delay ─────────────► beat
//! ```

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use std::fmt::Write;

use super::icrc_mask::IcrcMask;
use crate::cell::crc::{Crc, Map, RESIDUE};
use crate::cell::delay::Delay;
use crate::prelude::*;

/// What the check must know of a beat.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct IcrcBeat {
    /// There is a beat.
    pub valid: Bit,
    /// Its number in the frame; stops counting at the last number.
    pub index: Bits<10>,
    /// The frame is IPv6.
    pub ipv6: Bit,
    /// The frame has an 802.1Q tag.
    pub vlan: Bit,
    /// The byte of the frame behind the ICRC; in beats before the one that tells, any number beyond the next beat.
    pub icrc_end: Bits<17>,
}

/// What of a beat counts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Part {
    valid: Bit,
    first: Bit,
    // All bytes count; or the first `tail` do.
    whole: Bit,
    partial: Bit,
    tail: Bits<6>,
    index: Bits<10>,
    ipv6: Bit,
    vlan: Bit,
}

/// The block.
#[derive(Clone, Debug, Block)]
pub struct IcrcCheck<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A beat of a frame.
    pub beat: Signal<In, IcrcBeat>,
    /// Its bytes.
    pub data: Signal<In, Bits<W>>,
    /// The ICRC of the frame is good.
    pub good: Signal<Out, Bit>,
    /// The beat, zeroed in front of the IP header and behind the ICRC; variant fields and the first four bytes of the IP header are not what they were.
    pub masked: Signal<Out, Bits<W>>,
    part: Reg<Part>,
    whole_data: Dff<Bits<W>>,
    mask: IcrcMask<W, K>,
    counts: Reg<Bit>,
    first: Dff<Bit>,
    tail: Delay<Bits<6>, 2>,
    #[init(Crc::seen_through(0, coordinates(K)))]
    crc: Crc<W>,
    residue: Residue<K>,
    good_q: Reg<Bit>,
    data_delay: Delay<Bits<W>, 3>,
}

impl<const W: usize, const K: usize> IcrcCheck<W, K> {
    /// Cycles from a beat to its answer.
    pub const LATENCY: usize = 5;
    const LOG_K: u64 = {
        assert!(
            W == 8 * K && K.is_power_of_two() && K <= 64,
            "a beat of W bits has K = W / 8 bytes, 1, 2, 4 ... 64"
        );
        K.ilog2() as u64
    };
    const LANES: u64 = K as u64 - 1;
}

impl<const W: usize, const K: usize> Logic for IcrcCheck<W, K> {
    describe!(
        "icrc_check",
        format!("w{W}"),
        "Invariant CRC of received frames, a beat a cycle, five cycles of latency."
    );

    #[kernel]
    fn update(&mut self) {
        // What of the beat counts.
        let end_beat = beat.icrc_end >> Self::LOG_K;
        part.valid = beat.valid;
        part.first = beat.index == 0;
        part.whole = beat.index.resize::<17>() < end_beat;
        part.partial = beat.index.resize::<17>() == end_beat;
        part.tail = (beat.icrc_end & Self::LANES).resize::<6>();
        copy!(part <= beat; index, ipv6, vlan);
        whole_data = data;
        // Mask.
        mask.data = whole_data;
        copy!(mask <= part; index, ipv6, vlan, whole, partial, tail);
        counts = part.valid & (part.whole | (part.partial & (part.tail != 0)));
        first = part.first;
        tail.d = part.tail;
        // CRC.
        crc.valid = counts;
        crc.first = first;
        crc.data = mask.masked;
        residue.tail = tail.q;
        // Compare.
        good_q = crc.register == residue.register;
        good = good_q;
        data_delay.d = mask.masked;
        masked = data_delay.q;
    }
}

/// Those of the CRC register, for beats of `bytes` bytes.
fn coordinates(bytes: usize) -> Map {
    Map::shifting(&Map::zero_bytes(bytes))
}

/// The register behind a good frame whose last beat counts for `tail` bytes, 0 for all; one cycle.
#[derive(Clone, Debug, Block)]
struct Residue<const K: usize> {
    pub clock: ClkRst,
    pub tail: Signal<In, Bits<6>>,
    pub register: Signal<Out, Bits<32>>,
}

impl<const K: usize> Residue<K> {
    fn value(tail: usize) -> u32 {
        let zeros = Map::zero_bytes((K - tail) % K);
        coordinates(K).apply(zeros.apply(RESIDUE))
    }
}

impl<const K: usize> Logic for Residue<K> {
    describe!(
        "icrc_residue",
        format!("k{K}"),
        "CRC register behind a good frame, by the bytes of its last beat."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.register.next = Self::value(self.tail.val().index() % K).to_bits();
        }
    }

    fn connect(&mut self) {
        self.register.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from("always @(posedge clk)\n    case (tail)\n");
        for tail in 1..K {
            let _ = writeln!(
                text,
                "        6'd{tail}: register <= 32'h{:08x};",
                Self::value(tail)
            );
        }
        let _ = writeln!(
            text,
            "        default: register <= 32'h{:08x};\n    endcase",
            Self::value(0)
        );
        Verilog::Custom(text)
    }
}
