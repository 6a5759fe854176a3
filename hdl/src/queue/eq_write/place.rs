//! Place: an event as the next entry of its ring, on its way to host memory.
//!
//! Takes an event in any cycle in which `room` was 1 three cycles before. Latency: 3 cycles from `valid` to `write.valid`.
use super::sender::EqSender;
use super::types::{EqEntry, EqEvent};
use crate::bus::types::WriteCmd;
use crate::bus::types::image::{EqCtx, Eqe};
use crate::prelude::*;

/// Entries on a data path of `W` bits = `K` bytes.
#[derive(LogicBlock, Default)]
pub struct EqPlace<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event is to be written.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub item: Signal<In, EqEvent>,
    /// Its queue.
    pub image: Signal<In, EqCtx>,
    /// Size of the ring less one.
    pub mask: Signal<In, Bits<24>>,
    /// Entries written before.
    pub written: Signal<In, Bits<24>>,
    /// Bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Events can be taken.
    pub room: Signal<Out, Bit>,
    /// An entry is on its way.
    pub busy: Signal<Out, Bit>,

    entries: Fifo<EqEntry, 4>,
    sender: EqSender<W, K>,
    free: Reg<Bit>,
    place: Signal<Local, Bits<24>>,
    eqe: Signal<Local, Eqe>,
    no_eqe: Zero<Eqe>,
}

impl<const W: usize, const K: usize> Logic for EqPlace<W, K> {
    describe!(
        "eq_place",
        format!("w{W}"),
        "Writes events as the next entries of their rings."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, entries, sender);
        dff_setup!(self, clock, free);
        self.free.d.next = !self.entries.level.val().get_bits::<2>(3).any();
        self.room.next = self.free.q.val();
        self.place.next = self.written.val() & self.mask.val();
        self.eqe.next = self.no_eqe.val();
        self.eqe.next.event = self.item.val().event;
        self.eqe.next.detail = self.item.val().detail;
        self.eqe.next.object = bit_cast::<32, 16>(self.item.val().object);
        self.eqe.next.owner = !self
            .written
            .val()
            .get_bit(self.image.val().log_size.index());
        self.entries.s.valid.next = self.valid.val();
        self.entries.s.payload.next.addr =
            self.image.val().base + (bit_cast::<64, 24>(self.place.val()) << 4);
        self.entries.s.payload.next.eqe = self.eqe.val().into();
        StreamOut::<EqEntry>::join(&mut self.entries.m, &mut self.sender.s);
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.sender.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.sender.beats);
        self.busy.next = self.entries.level.val().any()
            | self.sender.write.valid.val()
            | self.sender.beats.valid.val();
    }
}
