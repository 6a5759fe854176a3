//! The rules of `track`: what an event makes of the state of its queue pair, and what is placed. No state of its own.
use ferroce_proto::abi::cq::status::{BAD_RESP_ERR, LOC_LEN_ERR};

use super::types::*;
use crate::bus::types::{Place, PlaceKind, RqRead};
use crate::prelude::*;

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
        let mut next = state;
        let kind = track_event.kind;
        let not_quiesced = !state.closed;
        let mut formed = track_event.atomic;
        if !terms.atomic {
            formed = track_event.read
                & (track_event.last == terms.single)
                & ((terms.single & terms.fits) | (!terms.single & terms.full));
        }
        let taken = not_quiesced & terms.has & terms.at & terms.data & formed;
        let implied = terms.has & !terms.before_expected & (!terms.at | (terms.good & !terms.data));
        let mut placed = no_place;
        placed.qpn = track_event.qpn;
        placed.pd = terms.pd;
        placed.lane = track_event.lane;
        place_valid = false;
        read_valid = false;
        match kind {
            TrackKind::Response => {
                place_valid = not_quiesced | track_event.beats.any();
                copy!(placed <= track_event; beats, plen, psn, syndrome);
                placed.answer = not_quiesced;
                placed.implied = implied;
                if implied {
                    placed.msn = terms.expected;
                    placed.data = terms.data;
                } else if terms.data & !taken {
                    placed.status = BAD_RESP_ERR;
                    if terms.has & terms.at & track_event.read & !terms.atomic {
                        placed.status = LOC_LEN_ERR;
                    }
                }
                if taken {
                    placed.data = true;
                    placed.offset = terms.offset;
                    if track_event.plen.any() {
                        placed.kind = PlaceKind::Response;
                        read_valid = true;
                    }
                    if terms.single {
                        next.begun = false;
                        next.head = state.head + 1;
                        next.count = state.count - 1;
                    } else {
                        next.begun = true;
                        next.due = terms.due;
                        next.left = terms.left;
                        next.offset = terms.offset_next;
                        next.rest = terms.rest;
                    }
                }
            }
            TrackKind::Issue => {
                if not_quiesced {
                    next.count = state.count + 1;
                }
            }
            TrackKind::Failed => {
                next.closed = true;
                next.count = bits::<5>(0);
                next.begun = false;
                place_valid = true;
                placed.answer = true;
                placed.closed = true;
            }
            TrackKind::Reset => {
                // until it starts: a READ that was granted before may still be issued
                next.closed = !track_event.starts;
                next.count = bits::<5>(0);
                next.begun = false;
            }
            _ => {}
        }
        next_state = next;
        place = placed;
        read.addr = terms.addr;
        read.slots = terms.slots.resize::<4>();
        read.head = terms.head.resize::<4>();
        read.wraps = terms.head != terms.slots;
        read.base = terms.base;
        read.list = true;
        read.shared = false;
        read.qpn = bits::<16>(0);
        read.log = bits::<4>(0);
        read.takes = false;
        read.numbered = false;

        copy!(made <= track_event; psn, packets, length);
        made.slot = slot;
        made.slots = track_event.slots;
        made.head = track_event.slots;
        if terms.to_end < track_event.slots.resize::<17>() {
            made.head = terms.to_end.resize::<3>();
        }
        made.atomic = track_event.atomic;
        entry = made;
    }
}
