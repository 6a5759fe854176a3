//! Queue of placements on their way to `place_order`.
//!
//! What `place_order` decides by, [`PlaceNeeds`], stands in registers beside the queue: read out of LUT RAM and decoded there,
//! it came three LUT levels later.
//!
//! As `fifo`: a placement pushed in cycle n can be popped in cycle n + 1, one a cycle each way.
use crate::bus::types::{Place, PlaceNeeds, has_list};
use crate::prelude::*;

/// Queue of 2^A placements or more.
#[derive(Block)]
#[block(A = "LOG_DEPTH")]
pub struct PlaceQueue<const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements in; their `needs` are not looked at.
    pub s: StreamIn<Place>,
    /// Placements out, with their `needs`.
    pub m: StreamOut<Place>,
    /// Placements held, the one that is offered included.
    pub level: Signal<Out, Bits<16>>,
    places: Fifo<Place, A>,
    needs: Fifo<PlaceNeeds, A>,
}

impl<const A: usize> Logic for PlaceQueue<A> {
    describe!(
        "place_queue",
        format!("{}", 1usize << A),
        "Queue of placements; what they need stands in registers."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= places.s);
        needs.s.valid = s.valid;
        needs.s.payload.wqe = has_list(s.payload.kind) | s.payload.numbered;
        needs.s.payload.beats = s.payload.beats.any();
        m.valid = places.m.valid;
        m.payload = places.m.payload;
        m.payload.needs = needs.m.payload;
        places.m.ready = m.ready;
        needs.m.ready = m.ready;
        level = places.level;
        assert!(
            needs.m.valid == places.m.valid,
            "a placement stands apart from its needs"
        );
    }
}
