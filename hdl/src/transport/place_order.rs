//! The placements of responder and requester in the order of the packets.
//!
//! The packet buffer gives the payload beats of all packets in one order; the placements come from two sides. `rx_check`
//! tells for each packet with beats who decides on it (`order`: 0 = responder `s[0]`, 1 = requester `s[1]`). A placement
//! with beats leaves when the next bit of `order` names its side, and takes the bit; one without beats leaves at any
//! time. Within a side the order stays. The WQE of a placement of kind 2 or 3 is read in the order of the placements, so
//! its [`RqRead`] comes beside it (`reads`, the same side) and leaves for `rq_fetch` when the placement is chosen; the
//! placement then waits in a queue as long as the slots under way.
//!
//! ```text
//!  s[0], reads[0] ─┐                ┌─► queue of 256 ─► m (scatter)
//!  s[1], reads[1] ─┼─► round robin ─┤
//!  order ─► queue ─┘                └─► read (rq_fetch)
//! ```
//!
//! Latency: none to `m`, a cycle to `read`; a cycle more from `order`. Throughput: a placement a cycle. `order` holds 64
//! bits. `rx_check` may wait for `order`, not the other way round: what is under way always has its bits.
use crate::bus::types::{Activity, Place, RqRead};
use crate::prelude::*;

/// Merge of placements.
#[derive(LogicBlock, Default)]
pub struct PlaceOrder {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements: of the responder, of the requester.
    pub s: [StreamIn<Place>; 2],
    /// WQEs of their placements of kind 2 and 3, in order.
    pub reads: [StreamIn<RqRead>; 2],
    /// The side of each packet with beats.
    pub order: StreamIn<Bit>,
    /// Placements for `scatter`.
    pub m: StreamOut<Place>,
    /// WQEs to read.
    pub read: StreamOut<RqRead>,
    /// Placements that wait here.
    pub activity: Signal<Out, Activity>,
    bits: Fifo<Bit, 6>,
    places: Bypass<Place, 8>,
    wqe: SkidRam<RqRead>,
    arbiter: Arbiter<2>,
    listed_0: Signal<Local, Bit>,
    listed_1: Signal<Local, Bit>,
    beats_0: Signal<Local, Bit>,
    beats_1: Signal<Local, Bit>,
    may_0: Signal<Local, Bit>,
    may_1: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    grant: Signal<Local, Bits<2>>,
}

impl Logic for PlaceOrder {
    describe!(
        "place_order",
        "Puts the placements of responder and requester into the order of the packets."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, bits, places, wqe, arbiter);
        StreamIn::<Bit>::link(&mut self.order, &mut self.bits.s);

        self.listed_0.next = self.s[0].payload.val().kind.get_bit(1);
        self.listed_1.next = self.s[1].payload.val().kind.get_bit(1);
        self.beats_0.next = self.s[0].payload.val().beats.any();
        self.beats_1.next = self.s[1].payload.val().beats.any();
        self.may_0.next = self.s[0].valid.val()
            & (!self.listed_0.val() | self.reads[0].valid.val())
            & (!self.beats_0.val() | (self.bits.m.valid.val() & !self.bits.m.payload.val()));
        self.may_1.next = self.s[1].valid.val()
            & (!self.listed_1.val() | self.reads[1].valid.val())
            & (!self.beats_1.val() | (self.bits.m.valid.val() & self.bits.m.payload.val()));
        self.room.next = self.places.s.ready.val() & self.wqe.s.ready.val();
        self.arbiter.request.next = bits::<2>(0)
            .replace_bit(0, self.may_0.val())
            .replace_bit(1, self.may_1.val());
        self.arbiter.take.next = self.room.val();
        self.grant.next = self.arbiter.grant.val();

        self.s[0].ready.next = self.room.val() & self.grant.val().get_bit(0);
        self.s[1].ready.next = self.room.val() & self.grant.val().get_bit(1);
        self.reads[0].ready.next =
            self.room.val() & self.grant.val().get_bit(0) & self.listed_0.val();
        self.reads[1].ready.next =
            self.room.val() & self.grant.val().get_bit(1) & self.listed_1.val();
        self.bits.m.ready.next = self.room.val()
            & ((self.grant.val().get_bit(0) & self.beats_0.val())
                | (self.grant.val().get_bit(1) & self.beats_1.val()));
        self.places.s.valid.next = self.room.val() & self.grant.val().any();
        self.wqe.s.valid.next = self.room.val()
            & ((self.grant.val().get_bit(0) & self.listed_0.val())
                | (self.grant.val().get_bit(1) & self.listed_1.val()));
        self.places.s.payload.next = self.s[0].payload.val();
        self.wqe.s.payload.next = self.reads[0].payload.val();
        if self.grant.val().get_bit(1) {
            self.places.s.payload.next = self.s[1].payload.val();
            self.wqe.s.payload.next = self.reads[1].payload.val();
        }
        StreamOut::<Place>::link(&mut self.m, &mut self.places.m);
        StreamOut::<RqRead>::link(&mut self.read, &mut self.wqe.m);

        self.activity.next.busy =
            self.s[0].valid.val() | self.s[1].valid.val() | (self.places.level.val() != 0);
        self.activity.next.moved = self.places.m.valid.val() & self.m.ready.val();
    }
}
