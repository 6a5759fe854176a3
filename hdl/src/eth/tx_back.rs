//! Transmit back end: descriptors and payload in, frames out (docs/blocks/transmit.md). Wiring only.
//!
//! ```text
//!  desc[0], desc[1] ─► header_tx ═╦═► assemble 0 ─┐
//!  token[0], payload[0] ──────────╫──────┘        ├─► frame_mux ─► icrc_insert ─► m_axis_tx
//!                                 ╠═► assemble 1 ─┤
//!  token[1], payload[1] ──────────╫──────┘        │
//!  cnp ─► header_tx               ╚═► bare_frame ─┘
//! ```
//!
//! Lane 0 carries requests, lane 1 responses and acknowledgements. Per lane: one `desc` a packet; for each packet with
//! payload one `token`, when all of its payload is there, and its `payload` beats, the first byte at lane (header length
//! modulo K). A beat a cycle; a packet a cycle; no pause within a frame while `m_axis_tx.tready` is 1. From `desc` to the
//! first beat of an acknowledgement 17 cycles. A CNP goes before all that waits: it leaves behind the frame under way.
use super::frame_mux::FrameMux;
use crate::bus::types::{Activity, Departure, PayloadToken, TxDesc, image};
use crate::egress::types::{ClassSetup, FrameMark};
use crate::ib::assemble::Assemble;
use crate::ib::bare_frame::BareFrame;
use crate::ib::header_tx::HeaderTx;
use crate::ib::icrc_insert::IcrcInsert;
use crate::ib::tx_entry::LANES;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifySetup;

/// Transmit back end for beats of `W` bits = `K` bytes and 2^Q queue pairs.
#[derive(Clone, Debug, Block)]
pub struct TxBack<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets, by lane.
    pub desc: [StreamIn<TxDesc>; LANES],
    /// Packets whose payload is there, by lane.
    pub token: [StreamIn<PayloadToken>; LANES],
    /// Their payload, by lane.
    pub payload: [PayloadIn<W>; LANES],
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamIn<Bits<16>>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
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
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Frames, without frame check sequence, not padded to the Ethernet minimum.
    pub m_axis_tx: AxisOut<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<Out, FrameMark>,
    /// Packets of which no frame started yet, by lane.
    pub activity: [Signal<Out, Activity>; LANES],
    /// CNPs of which no frame started yet.
    pub cnp_activity: Signal<Out, Activity>,
    /// No packet with payload is to start, by lane: a loss could not be reported.
    pub hold: [Signal<In, Bit>; LANES],
    /// A packet was dropped because its payload could not be read, by lane; one cycle.
    pub lost: [Signal<Out, Bit>; LANES],
    /// Its queue pair.
    pub lost_qpn: [Signal<Out, Bits<16>>; LANES],
    /// Its PSN.
    pub lost_psn: [Signal<Out, Bits<24>>; LANES],
    /// Its MSN.
    pub lost_msn: [Signal<Out, Bits<24>>; LANES],
    /// Incarnation of the queue pair of a request.
    pub lost_incarnation: [Signal<Out, Bits<2>>; LANES],
    /// The frame of a request is begun; one cycle.
    pub started_valid: Signal<Out, Bit>,
    /// What is known of it when it leaves.
    pub started: Signal<Out, Departure>,
    /// Packets stand between their headers and the merge of the lanes.
    pub assembling: Signal<Out, Bit>,
    /// A frame passes the merge; one cycle.
    pub enters: Signal<Out, Bit>,
    /// A frame was sent.
    pub tx_frames: Signal<Out, Bit>,
    /// With `tx_frames`: its bytes.
    pub tx_bytes: Signal<Out, Bits<13>>,
    /// It is a RoCEv2 packet: all are.
    pub tx_roce_packets: Signal<Out, Bit>,
    /// It is an acknowledgement.
    pub tx_acks: Signal<Out, Bit>,
    /// A CNP leaves.
    pub tx_cnps: Signal<Out, Bit>,
    headers: HeaderTx<Q>,
    assemble: [Assemble<W, K>; LANES],
    bare: BareFrame<W, K>,
    mux: FrameMux<W, K>,
    icrc: IcrcInsert<W, K>,
}

impl<const W: usize, const K: usize, const Q: usize> Logic for TxBack<W, K, Q> {
    describe!(
        "tx_back",
        format!("w{W}_q{Q}"),
        "Transmit back end: descriptors and payload in, frames out."
    );

    #[kernel]
    fn update(&mut self) {
        for i in 0..2 {
            forward!(desc[i] <= headers.s[i]);
            activity[i] = headers.activity[i];
            forward!(token[i] <= assemble[i].token);
            forward!(payload[i] <= assemble[i].payload);
            forward!(assemble[i].s <= headers.m[i]);
            forward!(mux.s[i] <= assemble[i].m);
            assemble[i].hold = hold[i];
            lost[i] = assemble[i].lost;
            lost_qpn[i] = assemble[i].lost_qpn;
            lost_psn[i] = assemble[i].lost_psn;
            lost_msn[i] = assemble[i].lost_msn;
            lost_incarnation[i] = assemble[i].lost_incarnation;
        }
        forward!(cnp <= headers.cnp);
        headers.notify = notify;
        cnp_activity = headers.cnp_activity;
        forward!(bare.s <= headers.bare);
        forward!(mux.first <= bare.m);
        tx_cnps = headers.cnp_activity.moved;
        forward!(icrc.s <= mux.m);
        enters = mux.m.valid & icrc.s.ready & (mux.m.beat.index == 0);
        assembling = assemble[0].busy | assemble[1].busy | bare.m.valid;
        forward!(m_axis_tx <= icrc.m_axis);
        headers.av_we = av_we;
        headers.ah_we = ah_we;
        headers.image_qpn = image_qpn;
        headers.av_image = av_image;
        headers.gid_we = gid_we;
        headers.gid_index = gid_index;
        headers.gid = gid;
        headers.mac = mac;
        headers.classes = classes;
        mark = icrc.mark;
        copy!(self <= assemble[0]; started_valid, started);
        tx_frames = icrc.frame;
        tx_bytes = icrc.frame_bytes;
        tx_roce_packets = icrc.frame;
        tx_acks = icrc.frame_ack;
    }
}
