//! The kind of a path: bit 0 is set if it is IPv6, bit 1 if it has an 802.1Q tag.
//!
//! It is read once, from the address vector of the queue pair or handle, when a packet with payload is cut; its payload is
//! aligned for headers of that kind, and its descriptor says so.
use crate::prelude::*;

/// Bytes of the headers without extension, modulo 64, by kind: Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12; a tag 4.
const IPV4: u8 = 54;
const IPV6: u8 = 74 - 64;
const IPV4_TAG: u8 = 58;
const IPV6_TAG: u8 = 78 - 64;

/// The kind of the path of an address vector, by its fields `ipv6` and `vlan_valid`.
#[kernel_fn]
pub fn kind_of(ipv6: Bit, tag: Bit) -> Bits<2> {
    bits::<2>(0).replace_bit(0, ipv6).replace_bit(1, tag)
}

/// Lane of the first byte behind the headers without extension, modulo 64.
#[kernel_fn]
pub fn lane_of(path: Bits<2>) -> Bits<6> {
    let lane: Bits<6> = match path {
        1 => IPV6,
        2 => IPV4_TAG,
        3 => IPV6_TAG,
        _ => IPV4,
    };
    lane
}
