//! READs and atomics under way: what every response means for them.
//!
//! Per queue pair a ring of 16 READs and atomics in the order of their PSNs, and how far the oldest has come. Of its
//! responses the one with the next PSN is *due*. What becomes of a response:
//!
//! | response | placement |
//! |---|---|
//! | data that is due, of the right kind and length, LAST exactly at the end | kind 3 at its offset; `answer`, `data` |
//! | data that is due, of another form | discarded; `answer`, BAD_RESP_ERR |
//! | data before the one due, or nothing under way | discarded; `answer`, BAD_RESP_ERR |
//! | anything beyond the one due; an ACK of it | discarded; `answer`, `implied`, `msn` = the PSN due |
//! | any other ACK, any other NAK | `answer` |
//!
//! Data with a NAK in its AETH is a NAK. Whether a PSN is in the window at all the send queue sees (`sq_state`): it hears
//! of each response. A send queue that went into error (`failed`) has nothing under way any more and is closed: its
//! responses are discarded, and a placement with `closed` tells it when those before are done. `reset` opens it.
//!
//! ```text
//!  cycle  A               B                  C                       D           E
//!  event ─► state, image ─► oldest entry ─► compare with its PSN ... ─► decide ─► m, reads
//!                                                                       └─► state, ring
//! ```
//!
//! Events are `failed` and `reset` in their order, then issues, then responses. An event waits while one before it that
//! may change its queue pair stands in B to D; an ACK or NAK changes nothing.
//!
//! Throughput: an event a cycle; of one queue pair a data response or issue every 4 cycles, also from one READ to the
//! next, and ACKs and NAKs behind each other one a cycle. Latency: 6 cycles from `s.valid` to `m.valid`. A placement of kind 3 has
//! its WQE on `reads`.
//!
//! Assumes: `failed` and `reset` come from the stage of the send queue that does them; at most 16 READs and atomics of a
//! queue pair are under way; an issue comes before its first response. Ready after a sweep of 2^Q cycles.
pub mod ring;
pub mod rules;
pub mod types;

use crate::bus::types::image::SqCtx;
use crate::bus::types::{Activity, Place, ReadIssue, Response, RqRead};
use crate::prelude::*;
use ring::ReadRing;
use rules::TrackRules;
use types::*;

/// Tracker of the READs and atomics of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct Track<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Responses (`rx_check`).
    pub s: StreamIn<Response>,
    /// READs and atomics about to be sent (segmenter).
    pub issue: StreamIn<ReadIssue>,
    /// The send queue of `control_qpn` went into error.
    pub failed: Signal<In, Bit>,
    /// The send queue of `control_qpn` starts afresh.
    pub reset: Signal<In, Bit>,
    /// See there.
    pub control_qpn: Signal<In, Bits<16>>,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, SqCtx>,
    /// Placements (`place_order`).
    pub m: StreamOut<Place>,
    /// WQEs of those of kind 3.
    pub reads: StreamOut<RqRead>,
    /// Responses that wait or are being looked at.
    pub activity: Signal<Out, Activity>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    responses: SkidRam<Response>,
    issues: SkidRam<ReadIssue>,
    controls: Fifo<TrackControl, Q>,
    places: Fifo<Place, 5>,
    wqes: Fifo<RqRead, 5>,
    states: Ram<TrackState, Q>,
    images: Ram<TrackImage, Q>,
    ring: ReadRing<Q>,
    sweep: Reg<Bits<Q>>,
    swept: Reg<Bit>,
    /// The output queues have room for all that is under way.
    room: Reg<Bit>,

    a: Signal<Local, TrackEvent>,
    none: Zero<TrackEvent>,
    a_valid: Signal<Local, Bit>,
    take: Signal<Local, Bits<3>>,
    clash: Signal<Local, Bits<3>>,
    control: Signal<Local, TrackControl>,
    at: Signal<Local, Bits<Q>>,
    b_valid: Reg<Bit>,
    b_changes: Reg<Bit>,
    b: Dff<TrackEvent>,
    b_changes_it: Signal<Local, Bit>,
    c_valid: Reg<Bit>,
    c_changes: Reg<Bit>,
    c: Dff<TrackEvent>,
    c_state: Dff<TrackState>,
    c_image: Dff<TrackImage>,
    c_slot: Dff<Bits<16>>,
    oldest: Signal<Local, ReadEntry>,
    expected: Signal<Local, Bits<24>>,
    left: Signal<Local, Bits<24>>,
    offset: Signal<Local, Bits<32>>,
    rest: Signal<Local, Bits<32>>,
    mtu: Signal<Local, Bits<13>>,
    distance: Signal<Local, Bits<24>>,
    good: Signal<Local, Bit>,
    d_valid: Reg<Bit>,
    d_changes: Reg<Bit>,
    d: Dff<TrackEvent>,
    d_state: Dff<TrackState>,
    d_slot: Dff<Bits<16>>,
    d_terms: Dff<TrackTerms>,
    rules: TrackRules,
    empty: Zero<TrackState>,
    e_valid: Reg<Bit>,
    e: Dff<Place>,
    e_read: Reg<Bit>,
    e_wqe: Dff<RqRead>,
}

impl<const Q: usize> Logic for Track<Q> {
    describe!(
        "track",
        format!("q{Q}"),
        "Tracks READs and atomics under way and decides on responses."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, responses, issues, controls, places, wqes, states, images, ring
        );
        dff_setup!(self, clock, sweep, swept, room, b_valid, b_changes, b);
        dff_setup!(self, clock, c_valid, c_changes, c, c_state, c_image, c_slot);
        dff_setup!(self, clock, d_valid, d_changes, d, d_state, d_slot, d_terms);
        dff_setup!(self, clock, e_valid, e, e_read, e_wqe);
        StreamIn::<Response>::link(&mut self.s, &mut self.responses.s);
        StreamIn::<ReadIssue>::link(&mut self.issue, &mut self.issues.s);
        self.control.next.qpn = self.control_qpn.val();
        self.control.next.reset = self.reset.val() & !self.failed.val();
        self.controls.s.payload.next = self.control.val();
        self.controls.s.valid.next = self.failed.val() | self.reset.val();

        // A: an event enters if nothing before it may change its queue pair
        self.room.d.next = self.swept.q.val()
            & !self.places.level.val().get_bits::<2>(4).any()
            & !self.wqes.level.val().get_bits::<2>(4).any();
        self.clash.next = bits::<3>(0)
            .replace_bit(
                0,
                (self.b_changes.q.val()
                    & (self.b.q.val().qpn == self.responses.m.payload.val().qpn))
                    | (self.c_changes.q.val()
                        & (self.c.q.val().qpn == self.responses.m.payload.val().qpn))
                    | (self.d_changes.q.val()
                        & (self.d.q.val().qpn == self.responses.m.payload.val().qpn)),
            )
            .replace_bit(
                1,
                (self.b_valid.q.val() & (self.b.q.val().qpn == self.issues.m.payload.val().qpn))
                    | (self.c_valid.q.val()
                        & (self.c.q.val().qpn == self.issues.m.payload.val().qpn))
                    | (self.d_valid.q.val()
                        & (self.d.q.val().qpn == self.issues.m.payload.val().qpn)),
            )
            .replace_bit(
                2,
                (self.b_valid.q.val() & (self.b.q.val().qpn == self.controls.m.payload.val().qpn))
                    | (self.c_valid.q.val()
                        & (self.c.q.val().qpn == self.controls.m.payload.val().qpn))
                    | (self.d_valid.q.val()
                        & (self.d.q.val().qpn == self.controls.m.payload.val().qpn)),
            );
        self.take.next = bits::<3>(0);
        self.a.next = self.none.val();
        self.a.next.kind = TrackKind::Response;
        self.a.next.qpn = self.responses.m.payload.val().qpn;
        self.a.next.psn = self.responses.m.payload.val().psn;
        self.a.next.syndrome = self.responses.m.payload.val().syndrome;
        self.a.next.read = self.responses.m.payload.val().read;
        self.a.next.atomic = self.responses.m.payload.val().atomic;
        self.a.next.last = self.responses.m.payload.val().last;
        self.a.next.plen = self.responses.m.payload.val().plen;
        self.a.next.lane = self.responses.m.payload.val().lane;
        self.a.next.beats = self.responses.m.payload.val().beats;
        self.a.next.packets = self.issues.m.payload.val().packets;
        self.a.next.length = self.issues.m.payload.val().length;
        self.a.next.index = self.issues.m.payload.val().index;
        self.a.next.slots = self.issues.m.payload.val().slots;
        self.b_changes_it.next =
            self.responses.m.payload.val().read | self.responses.m.payload.val().atomic;
        if self.controls.m.valid.val() {
            self.take.next =
                bits::<3>(0).replace_bit(2, self.room.q.val() & !self.clash.val().get_bit(2));
            self.a.next.kind = TrackKind::Failed;
            if self.controls.m.payload.val().reset {
                self.a.next.kind = TrackKind::Reset;
            }
            self.a.next.qpn = self.controls.m.payload.val().qpn;
            self.b_changes_it.next = true;
        } else if self.issues.m.valid.val() {
            self.take.next =
                bits::<3>(0).replace_bit(1, self.room.q.val() & !self.clash.val().get_bit(1));
            self.a.next.kind = TrackKind::Issue;
            self.a.next.qpn = self.issues.m.payload.val().qpn;
            self.a.next.psn = self.issues.m.payload.val().psn;
            self.a.next.atomic = self.issues.m.payload.val().atomic;
            self.b_changes_it.next = true;
        } else if self.responses.m.valid.val() {
            self.take.next =
                bits::<3>(0).replace_bit(0, self.room.q.val() & !self.clash.val().get_bit(0));
        }
        self.a_valid.next = self.take.val().any();
        self.responses.m.ready.next = self.take.val().get_bit(0);
        self.issues.m.ready.next = self.take.val().get_bit(1);
        self.controls.m.ready.next = self.take.val().get_bit(2);
        self.at.next = self.a.val().qpn.get_bits::<Q>(0);
        self.states.re.next = true;
        self.states.raddr.next = self.at.val();
        self.images.re.next = true;
        self.images.raddr.next = self.at.val();
        self.b_valid.d.next = self.a_valid.val();
        self.b_changes.d.next = self.a_valid.val() & self.b_changes_it.val();
        self.b.d.next = self.a.val();

        // B: state and image are there; the oldest entry is read
        self.ring.rqpn.next = self.b.q.val().qpn.get_bits::<Q>(0);
        self.ring.rslot.next = self.states.rdata.val().head;
        self.c_valid.d.next = self.b_valid.q.val();
        self.c_changes.d.next = self.b_changes.q.val();
        self.c.d.next = self.b.q.val();
        self.c_state.d.next = self.states.rdata.val();
        self.c_image.d.next = self.images.rdata.val();
        self.c_slot.d.next =
            self.b.q.val().index & !(bits::<16>(0xffff) << self.images.rdata.val().sq_log);

        // C: the response due, and how the one that came compares with it
        self.oldest.next = self.ring.rdata.val();
        self.expected.next = self.oldest.val().psn;
        self.left.next = self.oldest.val().packets;
        self.offset.next = bits::<32>(0);
        self.rest.next = self.oldest.val().length;
        if self.c_state.q.val().begun {
            self.expected.next = self.c_state.q.val().due;
            self.left.next = self.c_state.q.val().left;
            self.offset.next = self.c_state.q.val().offset;
            self.rest.next = self.c_state.q.val().rest;
        }
        self.mtu.next = bits::<13>(128) << self.c_image.q.val().mtu;
        self.distance.next = self.c.q.val().psn - self.expected.val();
        self.good.next = !self.c.q.val().syndrome.get_bits::<3>(5).any();
        self.d_terms.d.next.has = self.c_state.q.val().count.any();
        self.d_terms.d.next.at = self.c.q.val().psn == self.expected.val();
        self.d_terms.d.next.behind = self.distance.val().get_bit(23);
        self.d_terms.d.next.good = self.good.val();
        self.d_terms.d.next.data = self.good.val() & (self.c.q.val().read | self.c.q.val().atomic);
        self.d_terms.d.next.single = self.left.val() == 1;
        self.d_terms.d.next.fits = self.c.q.val().plen == self.rest.val().get_bits::<13>(0);
        self.d_terms.d.next.full = self.c.q.val().plen == self.mtu.val();
        self.d_terms.d.next.expected = self.expected.val();
        self.d_terms.d.next.due = self.expected.val() + 1;
        self.d_terms.d.next.left = self.left.val() - 1;
        self.d_terms.d.next.offset = self.offset.val();
        self.d_terms.d.next.offset_next = self.offset.val() + bit_cast::<32, 13>(self.mtu.val());
        self.d_terms.d.next.rest = self.rest.val() - bit_cast::<32, 13>(self.mtu.val());
        self.d_terms.d.next.addr =
            self.c_image.q.val().sq_base + (bit_cast::<64, 16>(self.oldest.val().slot) << 6);
        self.d_terms.d.next.base = self.c_image.q.val().sq_base;
        self.d_terms.d.next.pd = self.c_image.q.val().pd;
        self.d_terms.d.next.slots = self.oldest.val().slots;
        self.d_terms.d.next.head = self.oldest.val().head;
        self.d_terms.d.next.atomic = self.oldest.val().atomic;
        self.d_terms.d.next.to_end = (bits::<17>(1) << self.c_image.q.val().sq_log)
            - bit_cast::<17, 16>(self.c_slot.q.val());
        self.d_valid.d.next = self.c_valid.q.val();
        self.d_changes.d.next = self.c_changes.q.val();
        self.d.d.next = self.c.q.val();
        self.d_state.d.next = self.c_state.q.val();
        self.d_slot.d.next = self.c_slot.q.val();

        // D: the decision
        self.rules.track_event.next = self.d.q.val();
        self.rules.state.next = self.d_state.q.val();
        self.rules.terms.next = self.d_terms.q.val();
        self.rules.slot.next = self.d_slot.q.val();
        self.e_valid.d.next = self.d_valid.q.val() & self.rules.place_valid.val();
        self.e_read.d.next = self.d_valid.q.val() & self.rules.read_valid.val();
        self.e.d.next = self.rules.place.val();
        self.e_wqe.d.next = self.rules.read.val();
        self.ring.we.next = self.d_valid.q.val() & (self.d.q.val().kind == TrackKind::Issue);
        self.ring.wqpn.next = self.d.q.val().qpn.get_bits::<Q>(0);
        self.ring.wslot.next =
            self.d_state.q.val().head + self.d_state.q.val().count.get_bits::<4>(0);
        self.ring.wdata.next = self.rules.entry.val();
        self.states.we.next = self.d_changes.q.val();
        self.states.waddr.next = self.d.q.val().qpn.get_bits::<Q>(0);
        self.states.wdata.next = self.rules.next_state.val();
        if !self.swept.q.val() {
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.swept.d.next = self.sweep.q.val().all();
            self.states.we.next = true;
            self.states.waddr.next = self.sweep.q.val();
            self.states.wdata.next = self.empty.val();
        }
        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next.sq_base = self.image.val().sq_base;
        self.images.wdata.next.sq_log = self.image.val().sq_log;
        self.images.wdata.next.pd = self.image.val().pd;
        self.images.wdata.next.mtu = self.image.val().mtu;

        // E: to the queues
        self.places.s.valid.next = self.e_valid.q.val();
        self.places.s.payload.next = self.e.q.val();
        self.wqes.s.valid.next = self.e_read.q.val();
        self.wqes.s.payload.next = self.e_wqe.q.val();
        StreamOut::<Place>::link(&mut self.m, &mut self.places.m);
        StreamOut::<RqRead>::link(&mut self.reads, &mut self.wqes.m);
        self.activity.next.busy = self.s.valid.val()
            | self.responses.m.valid.val()
            | self.controls.m.valid.val()
            | self.b_valid.q.val()
            | self.c_valid.q.val()
            | self.d_valid.q.val()
            | self.e_valid.q.val()
            | (self.places.level.val() != 0);
        self.activity.next.moved = self.places.m.valid.val() & self.m.ready.val();
        self.ready.next = self.swept.q.val();
    }
}
