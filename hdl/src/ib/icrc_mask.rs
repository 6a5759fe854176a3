//! What of a frame the ICRC covers (IB1 7.8.1, A17 CA17-22), for a CRC register that starts from 0.
//!
//! Everything before the IP header and behind the covered bytes is zeroed, and variant fields count as ones. The seed
//! ([`icrc::SEED`], the register behind eight bytes of ones) is added to the first four bytes of the IP header. One
//! cycle, a beat a cycle.
use std::fmt::Write;

use ferroce_proto::wire::icrc;

use crate::bus::layout::Layout;
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct IcrcMask<const W: usize, const K: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The beat.
    pub data: Signal<In, Bits<W>>,
    /// Its number in the frame.
    pub index: Signal<In, Bits<10>>,
    /// The frame is IPv6; else IPv4.
    pub ipv6: Signal<In, Bit>,
    /// The frame has an 802.1Q tag.
    pub vlan: Signal<In, Bit>,
    /// All bytes of the beat count.
    pub whole: Signal<In, Bit>,
    /// The first `tail` bytes count.
    pub partial: Signal<In, Bit>,
    /// See `partial`.
    pub tail: Signal<In, Bits<6>>,
    /// What enters the CRC.
    pub masked: Signal<Out, Bits<W>>,
}

/// Mask of a byte before the payload: `(byte & and) ^ xor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteMask {
    and: u8,
    xor: u8,
}

impl ByteMask {
    /// A byte that counts as it is.
    const KEEP: Self = Self { and: 0xff, xor: 0 };
    /// A byte that does not count.
    const DROP: Self = Self { and: 0, xor: 0 };

    /// The rule for byte `at` of a frame.
    fn of(layout: Layout, at: usize) -> Self {
        let Some(at) = at.checked_sub(layout.ip()) else {
            return Self::DROP;
        };
        let variant: &[u8] = if layout.ipv6 {
            &icrc::IPV6_MASK
        } else {
            &icrc::IPV4_MASK
        };
        let ones = variant.get(at).copied().unwrap_or(0);
        let seed = icrc::SEED.to_le_bytes().get(at).copied().unwrap_or(0);
        Self {
            and: !ones,
            xor: ones ^ seed,
        }
    }
}

impl<const W: usize, const K: usize> IcrcMask<W, K> {
    /// Beats in which some byte is not kept as it is, in some layout.
    fn head_beats() -> usize {
        let bytes = Layout::ALL.iter().map(|l| l.ext()).max().unwrap_or(0);
        bytes.div_ceil(K)
    }

    /// The rules for the bytes of a beat.
    fn beat(layout: Layout, index: usize) -> [ByteMask; K] {
        std::array::from_fn(|lane| ByteMask::of(layout, index * K + lane))
    }
}

impl<const W: usize, const K: usize> Logic for IcrcMask<W, K> {
    describe!(
        "icrc_mask",
        format!("w{W}"),
        "What of a beat the ICRC covers: zeroes the rest, sets the variant fields, adds the seed."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            return;
        }
        let layout = Layout {
            ipv6: self.ipv6.val(),
            vlan: self.vlan.val(),
        };
        let (tail, index) = (self.tail.val().index(), self.index.val().index());
        let mut masked = self.data.val();
        for (lane, rule) in Self::beat(layout, index).into_iter().enumerate() {
            let byte = masked.get_bits::<8>(8 * lane).to_u32() as u8;
            let counts = self.whole.val() || self.partial.val() && lane < tail;
            let byte = if counts {
                byte & rule.and ^ rule.xor
            } else {
                0
            };
            masked.set_bits::<8>(8 * lane, byte.to_bits());
        }
        self.masked.next = masked;
    }

    fn connect(&mut self) {
        self.masked.connect();
    }

    fn hdl(&self) -> Verilog {
        let hex = |rules: &[ByteMask], of: fn(&ByteMask) -> u8| -> String {
            rules
                .iter()
                .rev()
                .map(|r| format!("{:02x}", of(r)))
                .collect()
        };
        let mut text = format!(
            "reg [{w}:0] kept, added;\nreg [{k}:0] front;\nalways @*\n    case ({{index, ipv6, vlan}})\n",
            w = W - 1,
            k = K - 1
        );
        for index in 0..Self::head_beats() {
            for (number, &layout) in Layout::ALL.iter().enumerate() {
                let rules = Self::beat(layout, index);
                if rules.iter().all(|rule| *rule == ByteMask::KEEP) {
                    continue;
                }
                let dropped = rules.map(|rule| rule == ByteMask::DROP);
                let rules = rules.map(|rule| match rule {
                    ByteMask::DROP => ByteMask::KEEP,
                    rule => rule,
                });
                let front: String = dropped
                    .iter()
                    .rev()
                    .map(|&d| if d { '1' } else { '0' })
                    .collect();
                let _ = write!(
                    text,
                    "        {{10'd{index}, 2'd{number}}}: begin\n            \
                     kept = {W}'h{};\n            added = {W}'h{};\n            front = {K}'b{front};\n        end\n",
                    hex(&rules, |r| r.and),
                    hex(&rules, |r| r.xor)
                );
            }
        }
        let _ = write!(
            text,
            "        default: begin\n            kept = {{{W}{{1'b1}}}};\n            added = {W}'h0;\n            \
             front = {K}'h0;\n        end\n    \
             endcase\n\
             // Bytes that do not count are reset: that takes no LUT a bit, as a gate would.\n\
             wire [{k}:0] dropped = front | ({{{K}{{!whole}}}} & ({{{K}{{!partial}}}} | ({{{K}{{1'b1}}}} << tail)));\n\
             integer lane;\n\
             always @(posedge clk)\n    for (lane = 0; lane < {K}; lane = lane + 1)\n        \
             if (dropped[lane]) masked[8*lane +: 8] <= 8'h0;\n        \
             else masked[8*lane +: 8] <= (data[8*lane +: 8] & kept[8*lane +: 8]) ^ added[8*lane +: 8];\n",
            k = K - 1,
        );
        Verilog::Custom(text)
    }
}
