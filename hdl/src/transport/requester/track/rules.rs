//! The rules of `track`: what an event makes of the state of its queue pair, and what is placed. No state of its own.
use ferroce_proto::abi::cq::status;

use super::types::*;
use crate::bus::types::{Place, RqRead};
use crate::prelude::*;

const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;

/// The rules, combinational.
#[derive(Block)]
pub struct TrackRules {
    /// The event.
    pub track_event: Signal<In, TrackEvent>,
    /// State of its queue pair.
    pub state: Signal<In, TrackState>,
    /// How it compares with the oldest entry.
    pub terms: Signal<In, TrackTerms>,
    /// Issue: place of the WQE in its ring.
    pub slot: Signal<In, Bits<16>>,
    /// The state afterwards.
    pub next_state: Signal<Out, TrackState>,
    /// Issue: the new entry.
    pub entry: Signal<Out, ReadEntry>,
    /// A placement follows.
    pub place_valid: Signal<Out, Bit>,
    /// The placement.
    pub place: Signal<Out, Place>,
    /// It needs its WQE.
    pub read_valid: Signal<Out, Bit>,
    /// The WQE.
    pub read: Signal<Out, RqRead>,

    made: Signal<Local, ReadEntry>,
    no_place: Zero<Place>,
}

impl Logic for TrackRules {
    describe!(
        "track_rules",
        "What an event makes of the READs and atomics under way."
    );

    #[kernel]
    fn update(&mut self) {
        let t = terms;
        let r = track_event;
        let mut n = state;
        let kind = track_event.kind;
        let heard = !state.closed;
        let mut formed = r.atomic;
        if !t.atomic {
            formed = r.read & (r.last == t.single) & ((t.single & t.fits) | (!t.single & t.full));
        }
        let taken = heard & t.has & t.at & t.data & formed;
        let implied = t.has & !t.behind & (!t.at | (t.good & !t.data));
        let mut placed = no_place;
        placed.qpn = r.qpn;
        placed.pd = t.pd;
        placed.lane = r.lane;
        place_valid = false;
        read_valid = false;
        match kind {
            TrackKind::Response => {
                place_valid = heard | r.beats.any();
                copy!(placed <= r; beats, plen, psn, syndrome);
                placed.answer = heard;
                placed.implied = implied;
                if implied {
                    placed.msn = t.expected;
                    placed.data = t.data;
                } else if t.data & !taken {
                    placed.status = BAD_RESP_ERR;
                }
                if taken {
                    placed.data = true;
                    placed.offset = t.offset;
                    if r.plen.any() {
                        placed.kind = bits::<2>(3);
                        read_valid = true;
                    }
                    if t.single {
                        n.begun = false;
                        n.head = state.head + 1;
                        n.count = state.count - 1;
                    } else {
                        n.begun = true;
                        n.due = t.due;
                        n.left = t.left;
                        n.offset = t.offset_next;
                        n.rest = t.rest;
                    }
                }
            }
            TrackKind::Issue => {
                if heard {
                    n.count = state.count + 1;
                }
            }
            TrackKind::Failed => {
                n.closed = true;
                n.count = bits::<5>(0);
                n.begun = false;
                place_valid = true;
                placed.answer = true;
                placed.closed = true;
            }
            TrackKind::Reset => {
                n.closed = false;
                n.count = bits::<5>(0);
                n.begun = false;
            }
            _ => {}
        }
        next_state = n;
        place = placed;
        read.addr = t.addr;
        read.slots = t.slots.resize::<4>();
        read.head = t.head.resize::<4>();
        read.base = t.base;

        copy!(made <= r; psn, packets, length);
        made.slot = slot;
        made.slots = r.slots;
        made.head = r.slots;
        if t.to_end < r.slots.resize::<17>() {
            made.head = t.to_end.resize::<3>();
        }
        made.atomic = r.atomic;
        entry = made;
    }
}
