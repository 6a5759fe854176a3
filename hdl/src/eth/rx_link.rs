//! Link layer of the receive parser: frames out of beats, and their Ethernet headers.
//!
//! Two cycles from a beat to `link` and `header`, four to `data`; a beat a cycle, nothing stalls. Assumes that `tkeep`
//! is all ones but in the last beat, and a run of ones from bit 0 there. A frame that starts while `enable` is 0 is
//! not seen at all.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use ferroce_proto::wire::eth;

use super::rx_header::HeaderWindow;
use crate::bus::layout::HEADER_BITS;
use crate::cell::delay::Delay;
use crate::prelude::*;

/// A beat, and its frame as far as it has arrived.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Link {
    /// There is a beat.
    pub valid: Bit,
    /// It is the last of the frame.
    pub last: Bit,
    /// With `last`: the frame is marked bad.
    pub bad: Bit,
    /// Number of the beat in the frame; stops counting at 1023.
    pub index: Bits<10>,
    /// Bytes of the frame so far; stops growing at the first number from 8192 on.
    pub length: Bits<14>,
    /// The frame has an 802.1Q tag.
    pub vlan: Bit,
    /// It is IPv4.
    pub ipv4: Bit,
    /// It is IPv6.
    pub ipv6: Bit,
    /// Its destination is the MAC address of the port, or that of a group.
    pub own: Bit,
    /// Its destination MAC address is accepted.
    pub mac_ok: Bit,
}

/// A beat as it came.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Arrived {
    valid: Bit,
    last: Bit,
    bad: Bit,
    index: Bits<10>,
    bytes: Bits<7>,
}

/// The block.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct RxLink<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames in; `tready` is constant 1.
    pub s_axis: AxisIn<W, K>,
    /// Frames are accepted.
    pub enable: Signal<In, Bit>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Every destination MAC address is accepted.
    pub promiscuous: Signal<In, Bit>,
    /// Bytes of accepted frames that arrived in the cycle before, 0 to K.
    pub bytes: Signal<Out, Bits<7>>,
    /// The beat.
    pub link: Signal<Out, Link>,
    /// The start of its frame, byte 0 in bits 7:0; ones where nothing has arrived.
    pub header: Signal<Out, Bits<HEADER_BITS>>,
    /// The bytes of the beat, two cycles after `link`.
    pub data: Signal<Out, Bits<W>>,
    in_frame: Reg<Bit>,
    taking: Reg<Bit>,
    count: Reg<Bits<10>>,
    arrived: Reg<Arrived>,
    window: HeaderWindow<W>,
    data_4: Delay<Bits<W>, 4>,
    length: Reg<Bits<14>>,
    link_q: Reg<Link>,
    header_q: Dff<Bits<HEADER_BITS>>,
    #[init(std::array::from_fn(Self::count_bit))]
    count_bits: [Constant<Bits<K>>; 7],
}

const TPID: u64 = eth::TPID_8021Q as u64;
const ETHERTYPE_IPV4: u64 = eth::ETHERTYPE_IPV4 as u64;
const ETHERTYPE_IPV6: u64 = eth::ETHERTYPE_IPV6 as u64;

impl<const W: usize, const K: usize> RxLink<W, K> {
    fn check() {
        assert!(
            W == 8 * K,
            "W = {W} bits and K = {K} bytes: W = 8 * K is expected"
        );
    }

    // A run of n ones has its upper edge at bit n - 1.
    fn count_bit(j: usize) -> Constant<Bits<K>> {
        let bit = |mask: Bits<K>, i: usize| mask.replace_bit(i, (i + 1) >> j & 1 == 1);
        Constant::new((0..K).fold(Bits::default(), bit))
    }
}

impl<const W: usize, const K: usize> Logic for RxLink<W, K> {
    describe!(
        "rx_link",
        format!("w{W}"),
        "Frames out of beats, and their Ethernet headers."
    );

    #[kernel]
    fn update(&mut self) {
        // Cycle 0: frames out of beats.
        s_axis.tready = true;
        let beat = s_axis.tvalid;
        let mut enter = beat & taking;
        if !in_frame {
            enter = beat & enable;
        }
        if beat {
            in_frame = !s_axis.tlast;
            taking = enter;
            if s_axis.tlast {
                count = bits::<10>(0);
            } else if !count.all() {
                count = count + 1;
            }
        }
        let top_byte = s_axis.tkeep & !(s_axis.tkeep >> 1);
        let mut kept: Bits<7> = bits::<7>(0);
        for i in 0..7 {
            kept = kept.replace_bit(i, (top_byte & count_bits[i]).any());
        }
        arrived.valid = enter;
        arrived.last = enter & s_axis.tlast;
        arrived.bad = s_axis.tuser;
        arrived.index = count;
        arrived.bytes = bits::<7>(0);
        if enter {
            arrived.bytes = kept;
        }
        window.valid = enter;
        window.index = count;
        window.data = s_axis.tdata;
        data_4.d = s_axis.tdata;
        data = data_4.q;
        bytes = arrived.bytes;
        // Cycle 1: length and Ethernet header.
        let mut longer = length;
        if arrived.index == 0 {
            longer = arrived.bytes.resize::<14>();
        } else if !length.bit(13) {
            longer = length + arrived.bytes.resize::<14>();
        }
        if arrived.valid {
            length = longer;
        }
        let has_tag = window.eth.ethertype == TPID;
        let mut ethertype = window.eth.ethertype;
        if has_tag {
            ethertype = window.eth.tag_ethertype;
        }
        copy!(link_q <= arrived; valid, last, bad, index);
        link_q.length = longer;
        link_q.vlan = has_tag;
        link_q.ipv4 = ethertype == ETHERTYPE_IPV4;
        link_q.ipv6 = ethertype == ETHERTYPE_IPV6;
        // The first bit on the wire marks a group address.
        let own = window.eth.dst.bit(0) | (window.eth.dst == mac);
        link_q.own = own;
        link_q.mac_ok = promiscuous | own;
        header_q = window.header;
        link = link_q;
        header = header_q;
    }
}
