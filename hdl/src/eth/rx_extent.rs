//! Payload extent: where the payload of a packet stands in its frame, and whether its lengths agree.
//!
//! Works on every beat of a frame, from the beats so far: the answers for a beat need no later beat, those about the
//! frame are good in its last beat. Four cycles from a beat to its answer, a beat a cycle.
//!
//! A packet is well formed when all of this holds, as in `ferroce_proto::wire::Packet::parse`:
//!
//! * the IP and UDP lengths agree and end within the frame;
//! * TVer is 0, and the opcode is known;
//! * payload and pad together are whole words, and there is no more pad than there are bytes;
//! * there is no payload where the opcode has none, and at most 4096 bytes of it.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use ferroce_proto::wire::{Mtu, bth, eth, icrc, ipv4, udp};

use super::rx_fields::RxFields;
use crate::bus::layout::Layout;
use crate::ib::opcode_decode::OpcodeDecode;
use crate::prelude::*;

/// Payload of a packet.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct PayloadPlace {
    /// This beat holds payload.
    pub store: Bit,
    /// It holds the last byte of it.
    pub payload_end: Bit,
    /// Payload bytes.
    pub plen: Bits<13>,
    /// Lane of the first payload byte.
    pub lane: Bits<6>,
    /// Beats that hold payload.
    pub beats: Bits<10>,
    /// Immediate data or the rkey to invalidate; 0 when the opcode has neither.
    pub imm: Bits<32>,
    /// The packet is well formed (last beat of the frame).
    pub formed: Bit,
}

/// One cycle on: lengths without the extension headers.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Lengths {
    index: Bits<10>,
    length: Bits<14>,
    icrc_end: Bits<17>,
    ip_payload: Bits<17>,
    udp_length: Bits<16>,
    // Bytes between BTH and ICRC, negative with bit 16.
    after_bth: Bits<17>,
    // Byte of the frame behind the BTH.
    start: Bits<7>,
    pad_cnt: Bits<2>,
    sound: Bit,
    imm_0: Bits<32>,
    imm_2: Bits<32>,
    imm_4: Bits<32>,
}

/// Two cycles on: the payload.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Payload {
    index: Bits<10>,
    // Negative with bit 16.
    plen: Bits<17>,
    start: Bits<7>,
    imm: Bits<32>,
    may_be_there: Bit,
    sound: Bit,
}

/// Three cycles on: its last byte.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Ends {
    index: Bits<10>,
    plen: Bits<13>,
    start: Bits<7>,
    last: Bits<13>,
    imm: Bits<32>,
    store: Bit,
    sound: Bit,
}

/// The block. `K` is the bytes of a beat.
#[derive(Clone, Debug, Block)]
pub struct RxExtent<const K: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Fields of the frame.
    pub fields: Signal<In, RxFields>,
    /// It is IPv6.
    pub ipv6: Signal<In, Bit>,
    /// It has an 802.1Q tag.
    pub vlan: Signal<In, Bit>,
    /// Number of the beat in the frame; stops counting at the last number.
    pub index: Signal<In, Bits<10>>,
    /// Bytes of the frame so far; from 8192 on any number not below that.
    pub length: Signal<In, Bits<14>>,
    /// One cycle later: the byte of the frame behind the ICRC.
    pub icrc_end: Signal<Out, Bits<17>>,
    /// Four cycles later.
    pub place: Signal<Out, PayloadPlace>,
    opcode: OpcodeDecode,
    lengths: Dff<Lengths>,
    payload: Dff<Payload>,
    ends: Dff<Ends>,
    place_q: Dff<PayloadPlace>,
}

/// What the length field of the IP header does not count, in bytes from the start of the frame.
const BEFORE_IPV4: u64 = Layout::ALL[0].ip() as u64;
const BEFORE_IPV6: u64 = Layout::ALL[2].udp() as u64;
/// Byte behind the BTH.
const START_IPV4: u64 = Layout::ALL[0].ext() as u64;
const START_IPV6: u64 = Layout::ALL[2].ext() as u64;
/// What a tag adds.
const TAG: u64 = eth::tag::LEN as u64;
const IPV4_HEADER: u64 = ipv4::LEN as u64;
/// What of a UDP datagram is neither extension header nor payload nor pad.
const UDP_BTH_ICRC: u64 = (udp::LEN + bth::LEN + icrc::LEN) as u64;
const MAX_PAYLOAD: u64 = Mtu::MAX.bytes() as u64;

impl<const K: usize> RxExtent<K> {
    const LOG_K: u64 = {
        assert!(
            K.is_power_of_two() && K >= 8 && K <= 64,
            "a beat has 8, 16, 32 or 64 bytes"
        );
        K.ilog2() as u64
    };
    const LANES: u64 = K as u64 - 1;
}

impl<const K: usize> Logic for RxExtent<K> {
    describe!(
        "rx_extent",
        format!("k{K}"),
        "Where the payload of a packet stands in its frame, and whether its lengths agree."
    );

    #[kernel]
    fn update(&mut self) {
        // Lengths.
        opcode.opcode = fields.opcode;
        let mut before_length = bits::<17>(BEFORE_IPV4);
        let mut start = bits::<7>(START_IPV4);
        if ipv6 {
            before_length = bits::<17>(BEFORE_IPV6);
            start = bits::<7>(START_IPV6);
        }
        if vlan {
            before_length = before_length + TAG;
            start = start + TAG;
        }
        lengths.index = index;
        lengths.length = length;
        lengths.icrc_end = fields.ip_length.resize::<17>() + before_length;
        lengths.ip_payload = fields.ip_length.resize::<17>();
        if !ipv6 {
            lengths.ip_payload = fields.ip_length.resize::<17>() - IPV4_HEADER;
        }
        lengths.udp_length = fields.udp_length;
        lengths.after_bth = fields.udp_length.resize::<17>() - UDP_BTH_ICRC;
        lengths.start = start;
        lengths.pad_cnt = fields.pad_cnt;
        lengths.sound = (fields.tver == 0) & ((fields.udp_length & 3) == 0);
        lengths.imm_0 = fields.ext.slice::<32>(32);
        lengths.imm_2 = fields.rkey;
        lengths.imm_4 = fields.operands.slice::<32>(64);
        icrc_end = lengths.icrc_end;
        // Payload.
        let ext_bytes = opcode.info.ext_words.resize::<7>() << 2;
        let ext_and_pad = ext_bytes.resize::<17>() | lengths.pad_cnt.resize::<17>();
        payload.index = lengths.index;
        payload.plen = lengths.after_bth - ext_and_pad;
        payload.start = lengths.start + ext_bytes;
        payload.may_be_there =
            opcode.info.payload | (lengths.after_bth == ext_bytes.resize::<17>());
        payload.sound = lengths.sound
            & opcode.info.known
            & (lengths.ip_payload == lengths.udp_length.resize::<17>())
            & (lengths.length.resize::<17>() >= lengths.icrc_end);
        payload.imm = bits::<32>(0);
        if opcode.info.imm {
            payload.imm = lengths.imm_0;
            if opcode.info.imm_word == 2 {
                payload.imm = lengths.imm_2;
            }
            if opcode.info.imm_word == 4 {
                payload.imm = lengths.imm_4;
            }
        }
        // Ends. A negative length is far above the limit.
        let in_range = payload.plen <= MAX_PAYLOAD;
        ends.index = payload.index;
        ends.plen = payload.plen.resize::<13>();
        ends.start = payload.start;
        ends.last = payload.plen.resize::<13>() + payload.start.resize::<13>() - 1;
        ends.imm = payload.imm;
        ends.store = in_range & (payload.plen != 0);
        ends.sound = in_range & payload.may_be_there & payload.sound;
        // Beats.
        let first_beat = (ends.start >> Self::LOG_K).resize::<10>();
        let last_beat = (ends.last >> Self::LOG_K).resize::<10>();
        place_q.store = ends.store & (ends.index >= first_beat) & (ends.index <= last_beat);
        place_q.payload_end = ends.index == last_beat;
        place_q.plen = ends.plen;
        place_q.lane = (ends.start & Self::LANES).resize::<6>();
        place_q.beats = bits::<10>(0);
        if ends.store {
            place_q.beats = last_beat - first_beat + 1;
        }
        place_q.imm = ends.imm;
        place_q.formed = ends.sound;
        place = place_q;
    }
}
