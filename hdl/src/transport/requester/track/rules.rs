//! The rules of `track`: what an event makes of the state of its queue pair, and what is placed. No state of its own.
use ferroce_proto::abi::cq::status;

use super::types::*;
use crate::bus::types::{Place, RqRead};
use crate::prelude::*;

const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;

/// The rules, combinational.
#[derive(LogicBlock, Default)]
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

    t: Signal<Local, TrackTerms>,
    r: Signal<Local, TrackEvent>,
    n: Signal<Local, TrackState>,
    kind: Signal<Local, TrackKind>,
    made: Signal<Local, ReadEntry>,
    formed: Signal<Local, Bit>,
    implied: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    heard: Signal<Local, Bit>,
    placed: Signal<Local, Place>,
    no_place: Zero<Place>,
}

impl Logic for TrackRules {
    describe!(
        "track_rules",
        "What an event makes of the READs and atomics under way.";
        BAD_RESP_ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        self.t.next = self.terms.val();
        self.r.next = self.track_event.val();
        self.n.next = self.state.val();
        self.kind.next = self.track_event.val().kind;
        self.heard.next = !self.state.val().closed;
        self.formed.next = self.r.val().atomic;
        if !self.t.val().atomic {
            self.formed.next = self.r.val().read
                & (self.r.val().last == self.t.val().single)
                & ((self.t.val().single & self.t.val().fits)
                    | (!self.t.val().single & self.t.val().full));
        }
        self.taken.next = self.heard.val()
            & self.t.val().has
            & self.t.val().at
            & self.t.val().data
            & self.formed.val();
        self.implied.next = self.t.val().has
            & !self.t.val().behind
            & (!self.t.val().at | (self.t.val().good & !self.t.val().data));
        self.placed.next = self.no_place.val();
        self.placed.next.qpn = self.r.val().qpn;
        self.placed.next.pd = self.t.val().pd;
        self.placed.next.lane = self.r.val().lane;
        self.place_valid.next = false;
        self.read_valid.next = false;
        match self.kind.val() {
            TrackKind::Response => {
                self.place_valid.next = self.heard.val() | self.r.val().beats.any();
                self.placed.next.beats = self.r.val().beats;
                self.placed.next.plen = self.r.val().plen;
                self.placed.next.psn = self.r.val().psn;
                self.placed.next.syndrome = self.r.val().syndrome;
                self.placed.next.answer = self.heard.val();
                self.placed.next.implied = self.implied.val();
                if self.implied.val() {
                    self.placed.next.msn = self.t.val().expected;
                    self.placed.next.data = self.t.val().data;
                } else if self.t.val().data & !self.taken.val() {
                    self.placed.next.status = BAD_RESP_ERR.into();
                }
                if self.taken.val() {
                    self.placed.next.data = true;
                    self.placed.next.offset = self.t.val().offset;
                    if self.r.val().plen.any() {
                        self.placed.next.kind = bits::<2>(3);
                        self.read_valid.next = true;
                    }
                    if self.t.val().single {
                        self.n.next.begun = false;
                        self.n.next.head = self.state.val().head + 1;
                        self.n.next.count = self.state.val().count - 1;
                    } else {
                        self.n.next.begun = true;
                        self.n.next.due = self.t.val().due;
                        self.n.next.left = self.t.val().left;
                        self.n.next.offset = self.t.val().offset_next;
                        self.n.next.rest = self.t.val().rest;
                    }
                }
            }
            TrackKind::Issue => {
                if self.heard.val() {
                    self.n.next.count = self.state.val().count + 1;
                }
            }
            TrackKind::Failed => {
                self.n.next.closed = true;
                self.n.next.count = bits::<5>(0);
                self.n.next.begun = false;
                self.place_valid.next = true;
                self.placed.next.answer = true;
                self.placed.next.closed = true;
            }
            TrackKind::Reset => {
                self.n.next.closed = false;
                self.n.next.count = bits::<5>(0);
                self.n.next.begun = false;
            }
            _ => {}
        }
        self.next_state.next = self.n.val();
        self.place.next = self.placed.val();
        self.read.next.addr = self.t.val().addr;
        self.read.next.slots = bit_cast::<4, 3>(self.t.val().slots);
        self.read.next.head = bit_cast::<4, 3>(self.t.val().head);
        self.read.next.base = self.t.val().base;

        self.made.next.psn = self.r.val().psn;
        self.made.next.packets = self.r.val().packets;
        self.made.next.length = self.r.val().length;
        self.made.next.slot = self.slot.val();
        self.made.next.slots = self.r.val().slots;
        self.made.next.head = self.r.val().slots;
        if self.t.val().to_end < bit_cast::<17, 3>(self.r.val().slots) {
            self.made.next.head = bit_cast::<3, 17>(self.t.val().to_end);
        }
        self.made.next.atomic = self.r.val().atomic;
        self.entry.next = self.made.val();
    }
}
