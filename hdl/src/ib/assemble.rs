//! Puts headers and payload of a lane together to frames (docs/architecture.md 3.4).
//!
//! ```text
//!  s (headers) ─► current ─► this beat of the headers ─┐
//!  token ─────────► start?                             ├─► m
//!  payload ─► skid buffer ─► beat ─────────────────────┘
//! ```
//!
//! A frame is headers, payload, 0 to 3 pad bytes of 0, and 4 bytes of 0 where the ICRC will stand. The payload comes at
//! its lanes: a beat that holds the end of the headers and the first payload bytes is the two put together, behind the
//! choice between the lanes of frames ([`FrameMux`](crate::eth::frame_mux::FrameMux)); here only is said which bytes are
//! payload.
//!
//! A packet with payload starts when its token and its first payload beat are there; from then on the frame does not
//! pause unless `m` does. Its payload is taken when its token says error too, but no frame leaves; `lost` tells. `sent`
//! tells of the start of a packet that is to be told of: from then on nothing can keep it from leaving. A beat
//! a cycle, no idle cycle between frames, two cycles from `s` to `m`.
//!
//! Assumes: tokens, payload and headers are those of the same packets in the same order; payload beats follow each
//! other without pause; the last beat of a frame is never full (frames are 2 modulo 4 bytes long).
use super::tx_types::TxHeader;
use crate::bus::frame::FrameBeat;
use crate::bus::types::PayloadToken;
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
#[derive(Clone, Debug, LogicBlock)]
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
    /// A packet was dropped because its payload could not be read; one cycle.
    pub lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<Out, Bits<24>>,
    /// Its MSN.
    pub lost_msn: Signal<Out, Bits<24>>,
    /// A packet with `notify` has all of its payload and leaves; one cycle.
    pub sent: Signal<Out, Bit>,
    /// Its queue pair.
    pub sent_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub sent_psn: Signal<Out, Bits<24>>,
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
    sent_q: Reg<Bit>,
    sent_psn_q: Dff<Bits<24>>,
    step: Signal<Local, Bit>,
    fire: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    drops: Signal<Local, Bit>,
    next: Signal<Local, Bits<10>>,
    first_payload: Signal<Local, Bits<10>>,
    last_payload: Signal<Local, Bits<10>>,
    last_covered: Signal<Local, Bits<10>>,
    last_beat: Signal<Local, Bits<10>>,
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

impl<const W: usize, const K: usize> Default for Assemble<W, K> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            token: StreamIn::default(),
            payload: PayloadIn::default(),
            m: PartsOut::default(),
            lost: Signal::default(),
            lost_qpn: Signal::default(),
            lost_psn: Signal::default(),
            lost_msn: Signal::default(),
            sent: Signal::default(),
            sent_qpn: Signal::default(),
            sent_psn: Signal::default(),
            payloads: SkidRam::default(),
            current: Dff::default(),
            turn: Reg::default(),
            merging: Reg::default(),
            header: Dff::default(),
            body: Dff::default(),
            span: Dff::default(),
            beat: Dff::default(),
            lanes: Lanes::default(),
            lost_q: Reg::default(),
            lost_qpn_q: Dff::default(),
            lost_msn_q: Dff::default(),
            sent_q: Reg::default(),
            sent_psn_q: Dff::default(),
            step: Signal::default(),
            fire: Signal::default(),
            load: Signal::default(),
            drops: Signal::default(),
            next: Signal::default(),
            first_payload: Signal::default(),
            last_payload: Signal::default(),
            last_covered: Signal::default(),
            last_beat: Signal::default(),
        }
    }
}

impl<const W: usize, const K: usize> Logic for Assemble<W, K> {
    describe!(
        "assemble",
        format!("w{W}"),
        "Puts headers and payload together to frames.";
        Self::LOG_K, Self::LANES, Self::BYTES, Self::BITS
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, payloads);
        dff_setup!(
            self, clock, current, turn, merging, header, body, span, beat
        );
        dff_setup!(
            self, clock, lost_q, lost_qpn_q, lost_msn_q, sent_q, sent_psn_q
        );
        self.payloads.s.payload.next = self.payload.data.val();
        self.payloads.s.valid.next = self.payload.valid.val();
        self.payload.ready.next = self.payloads.s.ready.val();

        // A beat goes on when what it is made of is there.
        self.step.next = !self.merging.q.val() | self.m.ready.val();
        self.fire.next = self.step.val()
            & self.turn.q.val().valid
            & (!self.turn.q.val().need | self.payloads.m.valid.val())
            & (!self.turn.q.val().fresh | (self.token.valid.val() & self.payloads.m.valid.val()));
        self.drops.next =
            self.turn.q.val().lost | (self.turn.q.val().fresh & self.token.payload.val().error);
        self.payloads.m.ready.next = self.fire.val() & self.turn.q.val().need;
        self.token.ready.next = self.fire.val() & self.turn.q.val().fresh;
        self.lost_q.d.next =
            self.fire.val() & self.turn.q.val().fresh & self.token.payload.val().error;
        self.lost_qpn_q.d.next = self.current.q.val().qpn;
        self.lost.next = self.lost_q.q.val();
        self.lost_qpn.next = self.lost_qpn_q.q.val();
        self.lost_psn.next = self.sent_psn_q.q.val();
        self.lost_msn_q.d.next = self.current.q.val().msn;
        self.lost_msn.next = self.lost_msn_q.q.val();
        self.sent_q.d.next = self.fire.val()
            & self.turn.q.val().front
            & self.current.q.val().notify
            & !self.drops.val();
        self.sent_psn_q.d.next = self.current.q.val().psn;
        self.sent.next = self.sent_q.q.val();
        self.sent_qpn.next = self.lost_qpn_q.q.val();
        self.sent_psn.next = self.sent_psn_q.q.val();

        // The next beat of this packet, or the first of the next one.
        self.next.next = self.turn.q.val().index + 1;
        self.first_payload.next = bit_cast::<10, 7>(self.current.q.val().header_len >> Self::LOG_K);
        self.last_payload.next =
            bit_cast::<10, 13>(self.current.q.val().payload_last >> Self::LOG_K);
        self.last_covered.next = bit_cast::<10, 13>(self.current.q.val().covered >> Self::LOG_K);
        self.last_beat.next = bit_cast::<10, 13>(self.current.q.val().length >> Self::LOG_K);
        self.load.next = !self.turn.q.val().valid | (self.fire.val() & self.turn.q.val().last);
        self.s.ready.next = self.load.val();
        if self.load.val() {
            self.current.d.next = self.s.payload.val();
            self.turn.d.next.valid = self.s.valid.val();
            self.turn.d.next.fresh = self.s.payload.val().payload;
            self.turn.d.next.lost = false;
            self.turn.d.next.front = true;
            self.turn.d.next.index = bits::<10>(0);
            self.turn.d.next.need = self.s.payload.val().payload
                & ((self.s.payload.val().header_len >> Self::LOG_K) == 0);
            self.turn.d.next.last = (self.s.payload.val().length >> Self::LOG_K) == 0;
            self.turn.d.next.whole = (self.s.payload.val().covered >> Self::LOG_K) != 0;
            self.turn.d.next.partial = (self.s.payload.val().covered >> Self::LOG_K) == 0;
        } else if self.fire.val() {
            self.current.d.next.bytes = self.current.q.val().bytes >> Self::BITS;
            self.turn.d.next.fresh = false;
            self.turn.d.next.lost = self.drops.val();
            self.turn.d.next.front = false;
            self.turn.d.next.index = self.next.val();
            self.turn.d.next.need = self.current.q.val().payload
                & (self.next.val() >= self.first_payload.val())
                & (self.next.val() <= self.last_payload.val());
            self.turn.d.next.last = self.next.val() == self.last_beat.val();
            self.turn.d.next.whole = self.next.val() < self.last_covered.val();
            self.turn.d.next.partial = self.next.val() == self.last_covered.val();
        }

        // The beat.
        if self.step.val() {
            self.merging.d.next = self.fire.val() & !self.drops.val();
            self.header.d.next = self.current.q.val().bytes.get_bits::<W>(0);
            self.body.d.next = self.payloads.m.payload.val();
            self.span.d.next.from = bits::<6>(0);
            if self.turn.q.val().index == self.first_payload.val() {
                self.span.d.next.from =
                    bit_cast::<6, 7>(self.current.q.val().header_len & Self::LANES);
            }
            self.span.d.next.to = bits::<7>(0);
            if self.turn.q.val().need {
                self.span.d.next.to = bits::<7>(Self::BYTES);
                if self.turn.q.val().index == self.last_payload.val() {
                    self.span.d.next.to =
                        bit_cast::<7, 13>(self.current.q.val().payload_last & Self::LANES) + 1;
                }
            }
            self.beat.d.next.index = self.turn.q.val().index;
            self.beat.d.next.last = self.turn.q.val().last;
            self.beat.d.next.whole = self.turn.q.val().whole;
            self.beat.d.next.partial = self.turn.q.val().partial;
            self.beat.d.next.tail = bit_cast::<6, 13>(self.current.q.val().covered & Self::LANES);
            self.beat.d.next.bytes = bit_cast::<6, 13>(self.current.q.val().length & Self::LANES);
            self.beat.d.next.ipv6 = self.current.q.val().ipv6;
            self.beat.d.next.vlan = self.current.q.val().vlan;
            self.beat.d.next.ack = self.current.q.val().ack;
            self.beat.d.next.length = self.current.q.val().length;
        }
        self.lanes.from.next = self.span.q.val().from;
        self.lanes.to.next = self.span.q.val().to;
        self.m.header.next = self.header.q.val();
        self.m.payload.next = self.body.q.val();
        self.m.lanes.next = self.lanes.lanes.val();
        self.m.beat.next = self.beat.q.val();
        self.m.valid.next = self.merging.q.val();
    }
}

/// Lanes from `from` on, below `to`; no register.
#[derive(Clone, Debug, Default, LogicBlock)]
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
