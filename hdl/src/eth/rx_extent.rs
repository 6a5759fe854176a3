//! Payload extent: where the payload of a packet stands in its frame, and whether its lengths agree.
//!
//! Works on every beat of a frame with what the beats so far have told: the answers for a beat need nothing behind it,
//! those about the frame are good in its last beat. Four cycles from a beat to its answer, a beat a cycle.
//!
//! A packet is well formed when the IP and UDP lengths agree and end within the frame, TVer is 0, the opcode is known,
//! payload and pad together are whole words, there is no more pad than there are bytes, no payload where the opcode
//! has none, and at most 4096 bytes of it. These are the rules of `ferroce_proto::wire::Packet::parse`.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use ferroce_proto::wire::{Mtu, bth, eth, icrc, ipv4, udp};

use super::rx_fields::{Layout, RxFields};
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
    behind_bth: Bits<17>,
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
#[derive(Clone, Debug, Default, LogicBlock)]
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
    before_length: Signal<Local, Bits<17>>,
    start: Signal<Local, Bits<7>>,
    ext_bytes: Signal<Local, Bits<7>>,
    ext_and_pad: Signal<Local, Bits<17>>,
    in_range: Signal<Local, Bit>,
    first_beat: Signal<Local, Bits<10>>,
    last_beat: Signal<Local, Bits<10>>,
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
        "Where the payload of a packet stands in its frame, and whether its lengths agree.";
        BEFORE_IPV4, BEFORE_IPV6, START_IPV4, START_IPV6, TAG, IPV4_HEADER, UDP_BTH_ICRC, MAX_PAYLOAD,
        Self::LOG_K, Self::LANES
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, opcode);
        dff_setup!(self, clock, lengths, payload, ends, place_q);
        // Lengths.
        self.opcode.opcode.next = self.fields.val().opcode;
        self.before_length.next = bits::<17>(BEFORE_IPV4);
        self.start.next = bits::<7>(START_IPV4);
        if self.ipv6.val() {
            self.before_length.next = bits::<17>(BEFORE_IPV6);
            self.start.next = bits::<7>(START_IPV6);
        }
        if self.vlan.val() {
            self.before_length.next = self.before_length.val() + TAG;
            self.start.next = self.start.val() + TAG;
        }
        self.lengths.d.next.index = self.index.val();
        self.lengths.d.next.length = self.length.val();
        self.lengths.d.next.icrc_end =
            bit_cast::<17, 16>(self.fields.val().ip_length) + self.before_length.val();
        self.lengths.d.next.ip_payload = bit_cast::<17, 16>(self.fields.val().ip_length);
        if !self.ipv6.val() {
            self.lengths.d.next.ip_payload =
                bit_cast::<17, 16>(self.fields.val().ip_length) - IPV4_HEADER;
        }
        self.lengths.d.next.udp_length = self.fields.val().udp_length;
        self.lengths.d.next.behind_bth =
            bit_cast::<17, 16>(self.fields.val().udp_length) - UDP_BTH_ICRC;
        self.lengths.d.next.start = self.start.val();
        self.lengths.d.next.pad_cnt = self.fields.val().pad_cnt;
        self.lengths.d.next.sound =
            (self.fields.val().tver == 0) & ((self.fields.val().udp_length & 3) == 0);
        self.lengths.d.next.imm_0 = self.fields.val().ext.get_bits::<32>(32);
        self.lengths.d.next.imm_2 = self.fields.val().rkey;
        self.lengths.d.next.imm_4 = self.fields.val().operands.get_bits::<32>(64);
        self.icrc_end.next = self.lengths.q.val().icrc_end;
        // Payload.
        self.ext_bytes.next = bit_cast::<7, 3>(self.opcode.info.val().ext_words) << 2;
        self.ext_and_pad.next = bit_cast::<17, 7>(self.ext_bytes.val())
            | bit_cast::<17, 2>(self.lengths.q.val().pad_cnt);
        self.payload.d.next.index = self.lengths.q.val().index;
        self.payload.d.next.plen = self.lengths.q.val().behind_bth - self.ext_and_pad.val();
        self.payload.d.next.start = self.lengths.q.val().start + self.ext_bytes.val();
        self.payload.d.next.may_be_there = self.opcode.info.val().payload
            | (self.lengths.q.val().behind_bth == bit_cast::<17, 7>(self.ext_bytes.val()));
        self.payload.d.next.sound = self.lengths.q.val().sound
            & self.opcode.info.val().known
            & (self.lengths.q.val().ip_payload
                == bit_cast::<17, 16>(self.lengths.q.val().udp_length))
            & (bit_cast::<17, 14>(self.lengths.q.val().length) >= self.lengths.q.val().icrc_end);
        self.payload.d.next.imm = bits::<32>(0);
        if self.opcode.info.val().imm {
            self.payload.d.next.imm = self.lengths.q.val().imm_0;
            if self.opcode.info.val().imm_word == 2 {
                self.payload.d.next.imm = self.lengths.q.val().imm_2;
            }
            if self.opcode.info.val().imm_word == 4 {
                self.payload.d.next.imm = self.lengths.q.val().imm_4;
            }
        }
        // Ends. A negative length is far above the limit.
        self.in_range.next = self.payload.q.val().plen <= MAX_PAYLOAD;
        self.ends.d.next.index = self.payload.q.val().index;
        self.ends.d.next.plen = bit_cast::<13, 17>(self.payload.q.val().plen);
        self.ends.d.next.start = self.payload.q.val().start;
        self.ends.d.next.last = bit_cast::<13, 17>(self.payload.q.val().plen)
            + bit_cast::<13, 7>(self.payload.q.val().start)
            - 1;
        self.ends.d.next.imm = self.payload.q.val().imm;
        self.ends.d.next.store = self.in_range.val() & (self.payload.q.val().plen != 0);
        self.ends.d.next.sound =
            self.in_range.val() & self.payload.q.val().may_be_there & self.payload.q.val().sound;
        // Beats.
        self.first_beat.next = bit_cast::<10, 7>(self.ends.q.val().start >> Self::LOG_K);
        self.last_beat.next = bit_cast::<10, 13>(self.ends.q.val().last >> Self::LOG_K);
        self.place_q.d.next.store = self.ends.q.val().store
            & (self.ends.q.val().index >= self.first_beat.val())
            & (self.ends.q.val().index <= self.last_beat.val());
        self.place_q.d.next.payload_end = self.ends.q.val().index == self.last_beat.val();
        self.place_q.d.next.plen = self.ends.q.val().plen;
        self.place_q.d.next.lane = bit_cast::<6, 7>(self.ends.q.val().start & Self::LANES);
        self.place_q.d.next.beats = bits::<10>(0);
        if self.ends.q.val().store {
            self.place_q.d.next.beats = self.last_beat.val() - self.first_beat.val() + 1;
        }
        self.place_q.d.next.imm = self.ends.q.val().imm;
        self.place_q.d.next.formed = self.ends.q.val().sound;
        self.place.next = self.place_q.q.val();
    }
}
