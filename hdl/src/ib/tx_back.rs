//! Transmit back end: descriptors and payload in, frames out (docs/architecture.md 3.4). Wiring only.
//!
//! ```text
//!  desc[0], desc[1] ─► header_tx ═╦═► assemble 0 ─┐
//!  token[0], payload[0] ──────────╫──────┘        ├─► frame_mux ─► icrc_insert ─► m_axis_tx
//!                                 ╚═► assemble 1 ─┘
//!  token[1], payload[1] ─────────────────┘
//! ```
//!
//! Lane 0 carries requests, lane 1 responses and acknowledgements. Per lane: one `desc` a packet; for each packet with
//! payload one `token`, when all of its payload is there, and its `payload` beats, the first byte at lane (header length
//! modulo K). A beat a cycle; a packet a cycle; no pause within a frame while `m_axis_tx.tready` is 1. From `desc` to the
//! first beat of an acknowledgement 17 cycles.
use super::assemble::Assemble;
use super::header_tx::{HeaderTx, LANES};
use super::icrc_insert::IcrcInsert;
use super::tx_types::TxHeader;
use crate::bus::types::{PayloadToken, TxDesc, image};
use crate::eth::frame_mux::FrameMux;
use crate::prelude::*;

/// Transmit back end for beats of `W` bits = `K` bytes and 2^Q queue pairs.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct TxBack<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets, by lane.
    pub desc: [StreamIn<TxDesc>; LANES],
    /// Packets whose payload is there, by lane.
    pub token: [StreamIn<PayloadToken>; LANES],
    /// Their payload, by lane.
    pub payload: [PayloadIn<W>; LANES],
    /// Writes `av_image` to the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Writes `av_image` to the address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle.
    pub image_qpn: Signal<In, Bits<16>>,
    /// Address vector.
    pub av_image: Signal<In, image::AvCtx>,
    /// Writes `gid` to the entry `gid_index` of the GID table.
    pub gid_we: Signal<In, Bit>,
    /// Entry, below 16.
    pub gid_index: Signal<In, Bits<8>>,
    /// GID, first byte in the lowest bits.
    pub gid: Signal<In, Bits<128>>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Frames, without frame check sequence, not padded to the Ethernet minimum.
    pub m_axis_tx: AxisOut<W, K>,
    /// A packet was dropped because its payload could not be read, by lane; one cycle.
    pub lost: [Signal<Out, Bit>; LANES],
    /// Its queue pair.
    pub lost_qpn: [Signal<Out, Bits<16>>; LANES],
    /// Its PSN.
    pub lost_psn: [Signal<Out, Bits<24>>; LANES],
    /// Its MSN.
    pub lost_msn: [Signal<Out, Bits<24>>; LANES],
    /// A request with `notify` has all of its payload: it leaves; one cycle.
    pub sent_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub sent_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub sent_psn: Signal<Out, Bits<24>>,
    /// A frame was sent.
    pub tx_frames: Signal<Out, Bit>,
    /// With `tx_frames`: its bytes.
    pub tx_bytes: Signal<Out, Bits<13>>,
    /// It is a RoCEv2 packet: all are.
    pub tx_roce_packets: Signal<Out, Bit>,
    /// It is an acknowledgement.
    pub tx_acks: Signal<Out, Bit>,
    headers: HeaderTx<Q>,
    assemble: [Assemble<W, K>; LANES],
    mux: FrameMux<W, K>,
    icrc: IcrcInsert<W, K>,
}

impl<const W: usize, const K: usize, const Q: usize> Logic for TxBack<W, K, Q> {
    describe!(
        "tx_back",
        format!("w{W}_q{Q}"),
        "Transmit back end: descriptors and payload in, frames out."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, headers, mux, icrc);
        for i in 0..2 {
            ClkRst::link(&mut self.clock, &mut self.assemble[i].clock);
            StreamIn::<TxDesc>::link(&mut self.desc[i], &mut self.headers.s[i]);
            StreamIn::<PayloadToken>::link(&mut self.token[i], &mut self.assemble[i].token);
            PayloadIn::<W>::link(&mut self.payload[i], &mut self.assemble[i].payload);
            StreamOut::<TxHeader>::join(&mut self.headers.m[i], &mut self.assemble[i].s);
            PartsOut::<W, K>::join(&mut self.assemble[i].m, &mut self.mux.s[i]);
            self.lost[i].next = self.assemble[i].lost.val();
            self.lost_qpn[i].next = self.assemble[i].lost_qpn.val();
            self.lost_psn[i].next = self.assemble[i].lost_psn.val();
            self.lost_msn[i].next = self.assemble[i].lost_msn.val();
        }
        FrameOut::<W>::join(&mut self.mux.m, &mut self.icrc.s);
        AxisOut::<W, K>::link(&mut self.m_axis_tx, &mut self.icrc.m_axis);
        self.headers.av_we.next = self.av_we.val();
        self.headers.ah_we.next = self.ah_we.val();
        self.headers.image_qpn.next = self.image_qpn.val();
        self.headers.av_image.next = self.av_image.val();
        self.headers.gid_we.next = self.gid_we.val();
        self.headers.gid_index.next = self.gid_index.val();
        self.headers.gid.next = self.gid.val();
        self.headers.mac.next = self.mac.val();
        self.sent_valid.next = self.assemble[0].sent.val();
        self.sent_qpn.next = self.assemble[0].sent_qpn.val();
        self.sent_psn.next = self.assemble[0].sent_psn.val();
        self.tx_frames.next = self.icrc.frame.val();
        self.tx_bytes.next = self.icrc.frame_bytes.val();
        self.tx_roce_packets.next = self.icrc.frame.val();
        self.tx_acks.next = self.icrc.frame_ack.val();
    }
}
