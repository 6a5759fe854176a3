//! The placements of responder and requester in the order of the packets.
//!
//! The packet buffer gives the payload beats of all packets in one order; the placements come from two sides. For each
//! packet with beats `rx_check` names the side that decides on it (`order`: 0 = responder `s[0]`, 1 = requester
//! `s[1]`). A placement with beats leaves when the next bit of `order` names its side, and takes the bit. One without
//! beats leaves at any time. Within a side the order stays.
//!
//! The WQE of a placement with a list, and the number that its completion names, are read in the order of the placements.
//! So its [`RqRead`] comes beside it (`reads`, the same side) and leaves for `rq_fetch` when the placement is chosen. The placement then waits in a queue
//! as long as the slots under way.
//!
//! ```text
//!  s[0], reads[0] ─┐                ┌─► queue of 256 ─► m (scatter)
//!  s[1], reads[1] ─┼─► round robin ─┤
//!  order ─► queue ─┘                └─► read (rq_fetch)
//! ```
//!
//! Latency: none to `m`, a cycle to `read`; a cycle more from `order`. Throughput: a placement a cycle. `order` holds 64
//! bits. `rx_check` may wait for `order`, not the other way round: what is under way always has its bits.
use crate::bus::types::{Activity, Place, PlaceNeeds, RqRead};
use crate::prelude::*;

/// Merge of placements.
#[derive(Block)]
pub struct PlaceOrder {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements: of the responder, of the requester.
    pub s: [StreamIn<Place>; 2],
    /// WQEs of their placements with a list or a number, in order.
    pub reads: [StreamIn<RqRead>; 2],
    /// The side of each packet with beats.
    pub order: StreamIn<Bit>,
    /// Placements for `scatter`.
    pub m: StreamOut<Place>,
    /// WQEs to read.
    pub read: StreamOut<RqRead>,
    /// Placements that wait here; of its level those at the inputs are not.
    pub activity: Signal<Out, Activity>,
    bits: Fifo<Bit, 6>,
    places: Bypass<Place, 8>,
    wqe: SkidRam<RqRead>,
    arbiter: Arbiter<2>,
    no_needs: Zero<PlaceNeeds>,
}

impl Logic for PlaceOrder {
    describe!(
        "place_order",
        "Puts the placements of responder and requester into the order of the packets."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(order <= bits.s);

        let needs_0 = s[0].payload.needs;
        let needs_1 = s[1].payload.needs;
        let may_0 = s[0].valid
            & (!needs_0.wqe | reads[0].valid)
            & (!needs_0.beats | (bits.m.valid & !bits.m.payload));
        let may_1 = s[1].valid
            & (!needs_1.wqe | reads[1].valid)
            & (!needs_1.beats | (bits.m.valid & bits.m.payload));
        let room = places.s.ready & wqe.s.ready;
        arbiter.request = bits::<2>(0).replace_bit(0, may_0).replace_bit(1, may_1);
        arbiter.take = room;
        let grant = arbiter.grant;

        s[0].ready = room & grant.bit(0);
        s[1].ready = room & grant.bit(1);
        reads[0].ready = room & grant.bit(0) & needs_0.wqe;
        reads[1].ready = room & grant.bit(1) & needs_1.wqe;
        bits.m.ready = room & ((grant.bit(0) & needs_0.beats) | (grant.bit(1) & needs_1.beats));
        places.s.valid = room & grant.any();
        wqe.s.valid = room & ((grant.bit(0) & needs_0.wqe) | (grant.bit(1) & needs_1.wqe));
        places.s.payload = s[0].payload;
        wqe.s.payload = reads[0].payload;
        if grant.bit(1) {
            places.s.payload = s[1].payload;
            wqe.s.payload = reads[1].payload;
        }
        places.s.payload.needs = no_needs;
        forward!(m <= places.m);
        forward!(read <= wqe.m);

        activity.busy = s[0].valid | s[1].valid | (places.level != 0);
        activity.moved = places.m.valid & m.ready;
        activity.level = places.level;
    }
}
