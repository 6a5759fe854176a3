//! Puts headers and payload of a lane together to frames (docs/blocks/transmit.md).
//!
//! ```text
//!  s (headers) ─► current ─► this beat of the headers ─┐
//!  token ─────────► start?                             ├─► m
//!  payload ─► skid buffer ─► beat ─────────────────────┘
//! ```
//!
//! A frame is headers, payload, 0 to 3 pad bytes of 0, and 4 bytes of 0 where the ICRC will stand. The payload comes at
//! its lanes: a beat that holds the end of the headers and the first payload bytes is the two put together, behind the
//! choice between the lanes of frames ([`FrameMux`](crate::eth::frame_mux::FrameMux)); this block only marks which
//! bytes are payload.
//!
//! A packet with payload starts when its token and its first payload beat are there; from then on the frame does not
//! pause unless `m` does. Its payload is taken when its token says error too, but no frame leaves; `lost` tells. `started`
//! tells of the start of a packet: from then on nothing can keep it from leaving. While `hold` says so no packet with
//! payload starts, as it might be lost: at most two more are lost from the cycle of `hold` on. A beat a cycle, no idle cycle between frames, two cycles from `s` to `m`.
//!
//! Assumes: tokens, payload and headers are those of the same packets in the same order; payload beats follow each
//! other without pause; the last beat of a frame is never full (frames are 2 modulo 4 bytes long).
use super::tx_types::TxHeader;
use crate::bus::frame::FrameBeat;
use crate::bus::types::{Departure, PayloadToken};
use crate::prelude::*;

// The accessors that the derive generates have no documentation.
#[allow(missing_docs)]
mod types {
    use crate::bus::payload::payload;
    use crate::prelude::*;

    payload! {
        /// What the coming beat of the current packet is.
        Turn {
            /// There is a packet.
            valid: Bit,
            /// It is not known yet whether its payload is there.
            fresh: Bit,
            /// It has no frame.
            lost: Bit,
            /// The first beat.
            front: Bit,
            /// Number of the beat.
            index: Bits<10>,
            /// The beat holds payload.
            need: Bit,
            /// Of [`FrameBeat`](crate::bus::frame::FrameBeat).
            last: Bit,
            /// Of [`FrameBeat`](crate::bus::frame::FrameBeat).
            whole: Bit,
            /// Of [`FrameBeat`](crate::bus::frame::FrameBeat).
            partial: Bit,
        }

        /// The lanes of a beat that hold payload: from `from`, below `to`.
        Span {
            /// First lane.
            from: Bits<6>,
            /// Behind the last lane; 0 for none.
            to: Bits<7>,
        }
    }
}
use types::{Span, Turn};

/// Assembler for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct Assemble<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Headers.
    pub s: StreamIn<TxHeader>,
    /// Packets whose payload is there.
    pub token: StreamIn<PayloadToken>,
    /// The payload.
    pub payload: PayloadIn<W>,
    /// Frames.
    pub m: PartsOut<W, K>,
    /// No packet with payload is to start.
    pub hold: Signal<In, Bit>,
    /// A packet was dropped because its payload could not be read; one cycle.
    pub lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<Out, Bits<24>>,
    /// Its MSN.
    pub lost_msn: Signal<Out, Bits<24>>,
    /// Incarnation of its queue pair.
    pub lost_incarnation: Signal<Out, Bits<2>>,
    /// The frame of a packet is begun; one cycle.
    pub started_valid: Signal<Out, Bit>,
    /// What is known of it when it leaves.
    pub started: Signal<Out, Departure>,
    /// A packet is here.
    pub busy: Signal<Out, Bit>,
    payloads: SkidRam<Bits<W>>,
    current: Dff<TxHeader>,
    turn: Reg<Turn>,
    merging: Reg<Bit>,
    header: Dff<Bits<W>>,
    body: Dff<Bits<W>>,
    span: Dff<Span>,
    beat: Dff<FrameBeat>,
    lanes: Lanes<K>,
    lost_q: Reg<Bit>,
    lost_qpn_q: Dff<Bits<16>>,
    lost_msn_q: Dff<Bits<24>>,
    lost_psn_q: Dff<Bits<24>>,
    lost_incarnation_q: Dff<Bits<2>>,
    started_valid_q: Reg<Bit>,
    started_q: Dff<Departure>,
}

impl<const W: usize, const K: usize> Assemble<W, K> {
    const LOG_K: u64 = {
        assert!(
            W == 8 * K && K.is_power_of_two() && K >= 8 && K <= 64,
            "a beat of W bits has K = W / 8 bytes: 8, 16, 32 or 64"
        );
        K.ilog2() as u64
    };
    const LANES: u64 = K as u64 - 1;
    const BYTES: u64 = K as u64;
    const BITS: u64 = W as u64;
}

impl<const W: usize, const K: usize> Logic for Assemble<W, K> {
    describe!(
        "assemble",
        format!("w{W}"),
        "Puts headers and payload together to frames."
    );

    #[kernel]
    fn update(&mut self) {
        payloads.s.payload = payload.data;
        payloads.s.valid = payload.valid;
        payload.ready = payloads.s.ready;

        // A beat goes on when what it is made of is there.
        let step = !merging | m.ready;
        let fire = step
            & turn.valid
            & (!turn.need | payloads.m.valid)
            & (!turn.fresh | (token.valid & payloads.m.valid & !hold));
        let fails = turn.fresh & (token.payload.error | current.void);
        let drops = turn.lost | fails;
        payloads.m.ready = fire & turn.need;
        token.ready = fire & turn.fresh;
        lost_q = fire & fails;
        lost_qpn_q = current.qpn;
        lost = lost_q;
        lost_qpn = lost_qpn_q;
        lost_psn_q = current.psn;
        lost_psn = lost_psn_q;
        lost_msn_q = current.msn;
        lost_msn = lost_msn_q;
        lost_incarnation_q = current.incarnation;
        lost_incarnation = lost_incarnation_q;
        started_valid_q = fire & turn.front & !drops;
        copy!(started_q <= current; qpn, round, incarnation, next_psn, notify, ack_req);
        started_valid = started_valid_q;
        started = started_q;
        busy = turn.valid | merging;

        // The next beat of this packet, or the first of the next one.
        let next = turn.index + 1;
        let first_payload = (current.header_len >> Self::LOG_K).resize::<10>();
        let last_payload = (current.payload_last >> Self::LOG_K).resize::<10>();
        let last_covered = (current.covered >> Self::LOG_K).resize::<10>();
        let last_beat = (current.length >> Self::LOG_K).resize::<10>();
        let load = !turn.valid | (fire & turn.last);
        s.ready = load;
        if load {
            current = s.payload;
            turn.valid = s.valid;
            turn.fresh = s.payload.payload;
            turn.lost = false;
            turn.front = true;
            turn.index = bits::<10>(0);
            turn.need = s.payload.payload & ((s.payload.header_len >> Self::LOG_K) == 0);
            turn.last = (s.payload.length >> Self::LOG_K) == 0;
            turn.whole = (s.payload.covered >> Self::LOG_K) != 0;
            turn.partial = (s.payload.covered >> Self::LOG_K) == 0;
        } else if fire {
            current.bytes = current.bytes >> Self::BITS;
            turn.fresh = false;
            turn.lost = drops;
            turn.front = false;
            turn.index = next;
            turn.need = current.payload & (next >= first_payload) & (next <= last_payload);
            turn.last = next == last_beat;
            turn.whole = next < last_covered;
            turn.partial = next == last_covered;
        }

        // The beat.
        if step {
            merging = fire & !drops;
            header = current.bytes.low::<W>();
            body = payloads.m.payload;
            span.from = bits::<6>(0);
            if turn.index == first_payload {
                span.from = (current.header_len & Self::LANES).resize::<6>();
            }
            span.to = bits::<7>(0);
            if turn.need {
                span.to = bits::<7>(Self::BYTES);
                if turn.index == last_payload {
                    span.to = (current.payload_last & Self::LANES).resize::<7>() + 1;
                }
            }
            copy!(beat <= turn; index, last, whole, partial);
            beat.tail = (current.covered & Self::LANES).resize::<6>();
            beat.bytes = (current.length & Self::LANES).resize::<6>();
            copy!(beat <= current; ipv6, vlan, ack, packet_class, length);
            beat.cnp = false;
            beat.response = false;
        }
        lanes.from = span.from;
        lanes.to = span.to;
        m.header = header;
        m.payload = body;
        m.lanes = lanes.lanes;
        m.beat = beat;
        m.valid = merging;
    }
}

/// Lanes from `from` on, below `to`; no register.
#[derive(Clone, Debug, Block)]
struct Lanes<const K: usize> {
    pub from: Signal<In, Bits<6>>,
    pub to: Signal<In, Bits<7>>,
    pub lanes: Signal<Out, Bits<K>>,
}

impl<const K: usize> Logic for Lanes<K> {
    describe!(
        "payload_lanes",
        format!("k{K}"),
        "Lanes of a beat from one on, below another."
    );

    fn update(&mut self) {
        let mut lanes = Bits::<K>::default();
        for lane in self.from.val().index()..self.to.val().index() {
            lanes = lanes.replace_bit(lane, true);
        }
        self.lanes.next = lanes;
    }

    fn connect(&mut self) {
        self.lanes.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "assign lanes = ({{{K}{{1'b1}}}} << from) & ~({{{K}{{1'b1}}}} << to);\n",
        ))
    }
}
