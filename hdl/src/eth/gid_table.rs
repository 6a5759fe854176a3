//! GID table: the IP addresses of the port, compared all at once.
//!
//! Two cycles from an address to its entry, an address a cycle. Equal entries: the lowest index answers. Reset
//! empties the table.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::cell::equal::Equal;
use crate::prelude::*;

/// Entries of the table.
pub const GID_ENTRIES: usize = 16;

/// Sets an entry of the GID table (the command block to the receive front).
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct GidWrite {
    /// Entry; beyond the table nothing happens.
    pub index: Bits<8>,
    /// The GID, first byte in the lowest bits.
    pub gid: Bits<128>,
    /// The entry is in use.
    pub valid: Bit,
    /// It is an IPv6 address; else IPv4.
    pub ipv6: Bit,
}

/// The table.
#[derive(Clone, Debug, Block)]
pub struct GidTable {
    /// Clock and reset.
    pub clock: ClkRst,
    /// `entry` is written in this cycle.
    pub write: Signal<In, Bit>,
    /// What is written.
    pub entry: Signal<In, GidWrite>,
    /// The address to look up, as a GID.
    pub gid: Signal<In, Bits<128>>,
    /// It comes from an IPv6 header.
    pub ipv6: Signal<In, Bit>,
    /// The address is in the table.
    pub found: Signal<Out, Bit>,
    /// Its entry.
    pub index: Signal<Out, Bits<8>>,
    gids: [Dff<Bits<128>>; GID_ENTRIES],
    same: [Equal<128>; GID_ENTRIES],
    valid: Reg<Bits<16>>,
    is_ipv6: Reg<Bits<16>>,
    hit: Dff<Bits<16>>,
    found_q: Dff<Bit>,
    index_q: Dff<Bits<8>>,
    #[init(Constant::new(1.into()))]
    one: Constant<Bits<256>>,
    #[init(Constant::new(0xffff.into()))]
    ones: Constant<Bits<16>>,
    #[init(std::array::from_fn(|i| Constant::new(i.to_bits())))]
    number: [Constant<Bits<8>>; GID_ENTRIES],
}

impl Logic for GidTable {
    describe!(
        "gid_table",
        "IP addresses of the port, compared all at once."
    );

    #[kernel]
    fn update(&mut self) {
        // Write.
        let mut select: Bits<256> = bits::<256>(0);
        if write {
            select = one << entry.index;
        }
        for i in 0..16 {
            gids[i] = gids[i];
            if select.bit(i) {
                gids[i] = entry.gid;
            }
        }
        valid = valid & !select.low::<16>();
        if entry.valid {
            valid = valid | select.low::<16>();
        }
        is_ipv6 = is_ipv6 & !select.low::<16>();
        if entry.ipv6 {
            is_ipv6 = is_ipv6 | select.low::<16>();
        }
        // Compare.
        let mut kind = is_ipv6;
        if !ipv6 {
            kind = is_ipv6 ^ ones;
        }
        let mut equal: Bits<16> = bits::<16>(0);
        for i in 0..16 {
            same[i].a = gids[i];
            same[i].b = gid;
            equal = equal.replace_bit(i, same[i].equal);
        }
        hit = equal & kind & valid;
        // Encode.
        let mut lowest: Bits<8> = bits::<8>(0);
        for i in 0..16 {
            if hit.bit(15 - i) {
                lowest = number[15 - i];
            }
        }
        found_q = hit.any();
        index_q = lowest;
        found = found_q;
        index = index_q;
    }
}
