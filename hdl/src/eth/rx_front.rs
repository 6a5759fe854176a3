//! Receive front: frames in, good RoCEv2 packets out. Wires the parser, the ICRC check, the packet buffer and the pauses that it
//! asks for.
//!
//! The input is never held up; what is not a good packet for this port is dropped as a whole and counted once, by the
//! first reason in the order of [`RxParse`], then ICRC, then overflow. Nothing leaves before the ICRC is known good.
//! A beat a cycle and a packet a cycle, without idle cycles between frames. The `RxMeta` of a packet is there
//! [`RxFront::LATENCY`] cycles after the last beat of its frame.

use super::exception_types::RawBeat;
use super::gid_table::GidWrite;
use super::packet_buffer::{PacketBuffer, RxStats};
use super::pause_out::PauseOut;
use super::rx_parse::RxParse;
use crate::bus::dma::PayloadOut;
use crate::bus::types::RxMeta;
use crate::cell::delay::Delay;
use crate::egress::types::{ClassSetup, PauseCounts};
use crate::ib::icrc_check::IcrcCheck;
use crate::prelude::*;

/// The receive front with a buffer of 2^A beats and 2^M packets.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct RxFront<const W: usize, const K: usize, const A: usize, const M: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames without preamble and FCS; `tuser` in the last beat marks a bad one; `tready` is constant 1.
    pub s_axis_rx: AxisIn<W, K>,
    /// Frames are accepted; looked at where a frame starts.
    pub enable: Signal<In, Bit>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Every destination MAC address is accepted.
    pub promiscuous: Signal<In, Bit>,
    /// `gid` is written into the GID table in this cycle.
    pub gid_write: Signal<In, Bit>,
    /// Entry of the GID table to write.
    pub gid: Signal<In, GidWrite>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Much waits in front of `s_axis_rx`: each class that sends pauses asks for one.
    pub rx_backlog: Signal<In, Bit>,
    /// Priorities that the peer is to pause.
    pub pause_send: Signal<Out, Bits<8>>,
    /// Counter pulses of these.
    pub pauses: Signal<Out, PauseCounts>,
    /// Good packets, in order.
    pub meta: StreamOut<RxMeta>,
    /// Their payload beats, `RxMeta::beats` each.
    pub beats: PayloadOut<W>,
    /// What became of each frame.
    pub stats: Signal<Out, RxStats>,
    /// Bytes that arrived, for the counter `rx_bytes`: 0 to K in every cycle.
    pub rx_bytes: Signal<Out, Bits<7>>,
    /// Every beat of every accepted frame as it came, for the exception queue, [`RxParse::LATENCY`] cycles later.
    pub raw: Signal<Out, RawBeat>,
    /// Its bytes.
    pub raw_data: Signal<Out, Bits<W>>,
    parse: RxParse<W, K>,
    icrc: IcrcCheck<W, K>,
    buffer: PacketBuffer<W, A, M>,
    asks: PauseOut<K>,
    raw_valid: Delay<Bit, RAW_BEAT>,
    raw_bytes: Delay<Bits<7>, RAW_BYTES>,
    raw_line: Delay<Bits<W>, RAW_BEAT>,
}

/// Cycles from the beat for the ICRC check, and from the count of its bytes, to the verdict.
const RAW_BEAT: usize = 5;
const RAW_BYTES: usize = 8;

impl<const W: usize, const K: usize, const A: usize, const M: usize> RxFront<W, K, A, M> {
    /// Cycles from the last beat of a frame to `meta.valid`, when nothing waits in front of it.
    pub const LATENCY: usize = RxParse::<W, K>::LATENCY;
}

impl<const W: usize, const K: usize, const A: usize, const M: usize> RxFront<W, K, A, M> {
    fn check() {
        const {
            assert!(
                RxParse::<W, K>::ICRC_LATENCY + IcrcCheck::<W, K>::LATENCY
                    == RxParse::<W, K>::LATENCY,
                "the ICRC check and the parser answer in the same cycle"
            );
            assert!(
                RxParse::<W, K>::ICRC_LATENCY + RAW_BEAT == RxParse::<W, K>::LATENCY
                    && 1 + RAW_BYTES == RxParse::<W, K>::LATENCY,
                "raw beats are in step with the verdict"
            );
        }
    }
}

impl<const W: usize, const K: usize, const A: usize, const M: usize> Logic for RxFront<W, K, A, M> {
    describe!(
        "rx_front",
        format!("w{W}_{}_{}", 1usize << A, 1usize << M),
        "Receive front: frames in, good RoCEv2 packets out."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s_axis_rx <= parse.s_axis);
        parse.enable = enable;
        parse.mac = mac;
        parse.promiscuous = promiscuous;
        parse.gid_write = gid_write;
        parse.gid = gid;
        parse.classes = classes;
        icrc.beat = parse.icrc_beat;
        icrc.data = parse.icrc_data;
        buffer.beat = parse.beat;
        buffer.data = icrc.masked;
        buffer.icrc_good = icrc.good;
        buffer.packet = parse.packet;
        buffer.extra = parse.extra;
        buffer.refuse = asks.refuse;
        asks.setup = classes;
        asks.backlog = rx_backlog;
        asks.moves = buffer.moves;
        pause_send = asks.pause_send;
        pauses = asks.counts;
        forward!(meta <= buffer.meta);
        forward!(beats <= buffer.beats);
        stats = buffer.stats;
        rx_bytes = parse.bytes;
        raw_valid.d = parse.icrc_beat.valid;
        raw_bytes.d = parse.bytes;
        raw_line.d = parse.icrc_data;
        raw.valid = raw_valid.q;
        raw.last = parse.beat.last;
        raw.not_roce = parse.beat.not_roce;
        raw.bytes = raw_bytes.q;
        raw_data = raw_line.q;
    }
}
