//! Place: an event as the next entry of its ring, on its way to host memory.
//!
//! Takes an event in any cycle in which `room` was 1 three cycles before. Latency: 3 cycles from `valid` to `write.valid`.
use super::sender::EqSender;
use super::types::{EqEntry, EqEvent, EqFound};
use crate::bus::types::image::Eqe;
use crate::bus::types::{WriteCmd, if_there};
use crate::prelude::*;

/// Entries on a data path of `W` bits = `K` bytes.
#[derive(Block)]
pub struct EqPlace<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event is to be written.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub item: Signal<In, EqEvent>,
    /// Its queue, before it.
    pub queue: Signal<In, EqFound>,
    /// Bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Events can be taken.
    pub room: Signal<Out, Bit>,
    /// An entry is on its way.
    pub busy: Signal<Out, Bit>,
    /// No fewer are.
    pub level: Signal<Out, Bits<16>>,

    entries: Fifo<EqEntry, 4>,
    sender: EqSender<W, K>,
    free: Reg<Bit>,
    no_eqe: Zero<Eqe>,
}

impl<const W: usize, const K: usize> Logic for EqPlace<W, K> {
    describe!(
        "eq_place",
        format!("w{W}"),
        "Writes events as the next entries of their rings."
    );

    #[kernel]
    fn update(&mut self) {
        free = !entries.level.slice::<2>(3).any();
        room = free;
        let written = queue.state.written;
        let place = written & queue.mask;
        let mut eqe = no_eqe;
        eqe.event = item.event;
        eqe.detail = item.detail;
        eqe.object = item.object.resize::<32>();
        eqe.owner = !written.bit(queue.image.log_size);
        entries.s.valid = valid;
        entries.s.payload.addr = queue.image.base + (place.resize::<64>() << 4);
        entries.s.payload.eqe = eqe.into();
        forward!(sender.s <= entries.m);
        forward!(write <= sender.write);
        forward!(beats <= sender.beats);
        level = entries.level + if_there(sender.write.valid, bits::<16>(2));
        busy = entries.level.any() | sender.write.valid | sender.beats.valid;
    }
}
