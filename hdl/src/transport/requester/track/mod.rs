//! READs and atomics under way: what every response means for them.
//!
//! Per queue pair a ring of 16 READs and atomics in the order of their PSNs, and how far the oldest has come. Of its
//! responses the one with the next PSN is *due*. Handling of a response:
//!
//! | response | placement |
//! |---|---|
//! | data that is due, of the right kind and length, LAST exactly at the end | kind 3 at its offset; `answer`, `data` |
//! | data of a READ that is due, of another length | discarded; `answer`, LOC_LEN_ERR |
//! | data that is due, of another kind | discarded; `answer`, BAD_RESP_ERR |
//! | data before the one due, or nothing under way | discarded; `answer`, BAD_RESP_ERR |
//! | anything beyond the one due; an ACK of it | discarded; `answer`, `implied`, `msn` = the PSN due |
//! | any other ACK, any other NAK | `answer` |
//!
//! Data with a NAK in its AETH is a NAK. Whether a PSN is in the window at all the send queue sees (`sq_state`): it hears
//! of each response. A send queue that went into error (`failed`) has nothing under way any more and is closed: its
//! responses are discarded, and a placement with `closed` tells it when those before are done. `reset` with
//! `starts` opens it; without, it closes it: READs of before may still come from the segmenter.
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
use crate::transport::place_queue::PlaceQueue;
use ring::ReadRing;
use rules::TrackRules;
use types::*;

/// Tracker of the READs and atomics of 2^Q queue pairs.
#[derive(Block)]
pub struct Track<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Responses (`rx_check`).
    pub s: StreamIn<Response>,
    /// READs and atomics about to be sent (segmenter).
    pub issue: StreamIn<ReadIssue>,
    /// The send queue of `control_qpn` went into error.
    pub failed: Signal<In, Bit>,
    /// The send queue of `control_qpn` is reset.
    pub reset: Signal<In, Bit>,
    /// With `reset`: and starts.
    pub starts: Signal<In, Bit>,
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
    /// Responses that wait or are being looked at; of its level those that are decided.
    pub activity: Signal<Out, Activity>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    responses: SkidRam<Response>,
    issues: SkidRam<ReadIssue>,
    controls: Fifo<TrackControl, Q>,
    places: PlaceQueue<5>,
    wqes: Fifo<RqRead, 5>,
    states: SweptRam<TrackState, Q>,
    images: Ram<TrackImage, Q>,
    ring: ReadRing<Q>,
    /// The output queues have room for all that is under way.
    room: Reg<Bit>,

    none: Zero<TrackEvent>,
    control: Signal<Local, TrackControl>,
    b_valid: Reg<Bit>,
    b_changes: Reg<Bit>,
    b: Dff<TrackEvent>,
    c_valid: Reg<Bit>,
    c_changes: Reg<Bit>,
    c: Dff<TrackEvent>,
    c_state: Dff<TrackState>,
    c_image: Dff<TrackImage>,
    c_slot: Dff<Bits<16>>,
    d_valid: Reg<Bit>,
    d_changes: Reg<Bit>,
    d: Dff<TrackEvent>,
    d_state: Dff<TrackState>,
    d_slot: Dff<Bits<16>>,
    d_terms: Dff<TrackTerms>,
    rules: TrackRules,
    e_valid: Reg<Bit>,
    e: Dff<Place>,
    e_read: Reg<Bit>,
    e_wqe: Dff<RqRead>,
}

/// State of a queue pair with the response that is due, also if it is the first of the oldest READ or atomic.
#[kernel_fn]
fn with_due(state: TrackState, oldest: ReadEntry) -> TrackState {
    let mut with = state;
    if !state.begun {
        with.due = oldest.psn;
        with.left = oldest.packets;
        with.offset = bits::<32>(0);
        with.rest = oldest.length;
    }
    with
}

impl<const Q: usize> Logic for Track<Q> {
    describe!(
        "track",
        format!("q{Q}"),
        "Tracks READs and atomics under way and decides on responses."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= responses.s);
        forward!(issue <= issues.s);
        control.qpn = control_qpn;
        control.reset = reset & !failed;
        control.starts = starts;
        controls.s.payload = control;
        let ends = failed | reset;
        controls.s.valid = ends;
        assert!(
            !ends | controls.s.ready,
            "a failure or a reset of a queue pair is lost"
        );

        // A: an event enters if nothing before it may change its queue pair
        room = states.ready & !places.level.slice::<2>(4).any() & !wqes.level.slice::<2>(4).any();
        let b_at = b.qpn.low::<Q>();
        let c_at = c.qpn.low::<Q>();
        let d_at = d.qpn.low::<Q>();
        let response_at = responses.m.payload.qpn.low::<Q>();
        let issue_at = issues.m.payload.qpn.low::<Q>();
        let control_at = controls.m.payload.qpn.low::<Q>();
        let response_waits = (b_changes & (b_at == response_at))
            | (c_changes & (c_at == response_at))
            | (d_changes & (d_at == response_at));
        let issue_waits = (b_valid & (b_at == issue_at))
            | (c_valid & (c_at == issue_at))
            | (d_valid & (d_at == issue_at));
        let control_waits = (b_valid & (b_at == control_at))
            | (c_valid & (c_at == control_at))
            | (d_valid & (d_at == control_at));
        let mut take: Bits<3> = bits::<3>(0);
        let mut asked = none;
        asked.kind = TrackKind::Response;
        copy!(asked <= responses.m.payload; qpn, psn, syndrome, read, atomic, last, plen, lane, beats);
        copy!(asked <= issues.m.payload; packets, length, index, slots);
        let mut b_changes_it = responses.m.payload.read | responses.m.payload.atomic;
        if controls.m.valid {
            take = bits::<3>(0).replace_bit(2, room & !control_waits);
            asked.kind = TrackKind::Failed;
            if controls.m.payload.reset {
                asked.kind = TrackKind::Reset;
            }
            copy!(asked <= controls.m.payload; qpn, starts);
            b_changes_it = true;
        } else if issues.m.valid {
            take = bits::<3>(0).replace_bit(1, room & !issue_waits);
            asked.kind = TrackKind::Issue;
            copy!(asked <= issues.m.payload; qpn, psn, atomic);
            b_changes_it = true;
        } else if responses.m.valid {
            take = bits::<3>(0).replace_bit(0, room & !response_waits);
        }
        let a_valid = take.any();
        responses.m.ready = take.bit(0);
        issues.m.ready = take.bit(1);
        controls.m.ready = take.bit(2);
        let at = asked.qpn.low::<Q>();
        states.re = true;
        states.raddr = at;
        images.re = true;
        images.raddr = at;
        b_valid = a_valid;
        b_changes = a_valid & b_changes_it;
        b = asked;

        // B: state and image are there; the oldest entry is read
        ring.rqpn = b.qpn.low::<Q>();
        ring.rslot = states.rdata.head;
        c_valid = b_valid;
        c_changes = b_changes;
        c = b;
        c_state = states.rdata;
        c_image = images.rdata;
        c_slot = b.index & !(bits::<16>(0xffff) << images.rdata.sq_log);

        // C: the response due, and how the one that came compares with it
        let oldest = ring.rdata;
        let at = with_due(c_state, oldest);
        let mtu = bits::<13>(128) << c_image.mtu;
        let distance = c.psn - at.due;
        let good = !c.syndrome.slice::<3>(5).any();
        d_terms.has = c_state.count.any();
        d_terms.at = c.psn == at.due;
        d_terms.before_expected = distance.bit(23);
        d_terms.good = good;
        d_terms.data = good & (c.read | c.atomic);
        d_terms.single = at.left == 1;
        d_terms.fits = c.plen == at.rest.low::<13>();
        d_terms.full = c.plen == mtu;
        d_terms.expected = at.due;
        d_terms.due = at.due + 1;
        d_terms.left = at.left - 1;
        d_terms.offset = at.offset;
        d_terms.offset_next = at.offset + mtu.resize::<32>();
        d_terms.rest = at.rest - mtu.resize::<32>();
        d_terms.addr = c_image.sq_base + (oldest.slot.resize::<64>() << 6);
        d_terms.base = c_image.sq_base;
        d_terms.pd = c_image.pd;
        copy!(d_terms <= oldest; slots, head, atomic);
        d_terms.to_end = (bits::<17>(1) << c_image.sq_log) - c_slot.resize::<17>();
        d_valid = c_valid;
        d_changes = c_changes;
        d = c;
        d_state = c_state;
        d_slot = c_slot;

        // D: the decision
        rules.track_event = d;
        rules.state = d_state;
        rules.terms = d_terms;
        rules.slot = d_slot;
        e_valid = d_valid & rules.place_valid;
        e_read = d_valid & rules.read_valid;
        e = rules.place;
        e_wqe = rules.read;
        ring.we = d_valid & (d.kind == TrackKind::Issue);
        ring.wqpn = d.qpn.low::<Q>();
        ring.wslot = d_state.head + d_state.count.low::<4>();
        ring.wdata = rules.entry;
        states.we = d_changes;
        states.waddr = d.qpn.low::<Q>();
        states.wdata = rules.next_state;
        images.we = image_we;
        images.waddr = image_qpn;
        copy!(images.wdata <= image; sq_base, sq_log, pd, mtu);

        // E: to the queues
        places.s.valid = e_valid;
        places.s.payload = e;
        wqes.s.valid = e_read;
        wqes.s.payload = e_wqe;
        forward!(m <= places.m);
        forward!(reads <= wqes.m);
        let waits = s.valid | responses.m.valid | controls.m.valid;
        let moving = b_valid | c_valid | d_valid | e_valid;
        activity.busy = waits | moving | (places.level != 0);
        activity.moved = places.m.valid & m.ready;
        activity.level = places.level;
        ready = states.ready;
    }
}
