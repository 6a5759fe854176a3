//! WQE fetch of the receive side: from [`RqRead`] to the slots of the WQEs, in order.
//!
//! Receive WQEs of the responder, and send WQEs whose scatter list a READ or atomic response needs. A WQE is one read of
//! 1 to 8 slots, or two when its ring wraps; up to 256 slots are in flight or wait to be taken. A read leaves when 8
//! slots have room, so its answer is never held up. [`RqNumber`] finds the WQEs of shared receive queues, by reads of their
//! numbers, which leave when no WQE does.
//! Rate: a slot a cycle at W = 512, a slot in 8 cycles at W = 64; a read a cycle. Latency: one cycle to the read, from its
//! last beat two cycles to the slot.
use ferroce_proto::abi::cq::NO_NUMBER;

use super::rq_number::RqNumber;
use crate::bus::types::{ReadReq, RqRead, RqSlot};
use crate::prelude::*;

/// A read of a WQE or of a part of it, or of a number.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Part {
    /// It is of a number.
    number: Bit,
    /// Which of the 64 bytes around it.
    lane: Bits<5>,
    /// Its slots count as failed.
    lost: Bit,
    /// It is the last of its WQE.
    last: Bit,
    /// Slots of the WQE.
    slots: Bits<4>,
}

/// WQE fetch on a data path of W bits, 2^Q queue pairs.
#[derive(Block)]
#[block(check)]
pub struct RqFetch<const W: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// WQEs to read.
    pub s: StreamIn<RqRead>,
    /// Reads for `dma_read`.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beats: ReadBeatIn<W>,
    /// The slots.
    pub m: StreamOut<RqSlot>,
    /// Numbers of the receive WQEs that are `numbered`, in order.
    pub numbers: StreamOut<Bits<16>>,
    number: RqNumber<Q>,
    skid: Skid<ReadReq>,
    buffer: Deep<RqSlot, 8>,
    /// Slots of the buffer that no read has claimed.
    #[init(Reg::new(bits::<9>(256)))]
    free: Reg<Bits<9>>,
    /// One a read under way.
    under_way: Fifo<Part, 9>,
    /// The head of the WQE is asked for.
    wrapped: Reg<Bit>,
    /// Slots behind it.
    rest: Dff<Bits<4>>,
    /// A slot left in the cycle before: the taker's ready is deep.
    freed: Reg<Bit>,
    slot: Dff<Bits<512>>,
    failed: Reg<Bit>,
    phase: Reg<Bits<3>>,
    #[init(Constant::new((512 / W as u64 - 1).to_bits()))]
    last_phase: Constant<Bits<3>>,
    #[init(Constant::new((W as u64).to_bits()))]
    beat_bits: Constant<Bits<10>>,
    #[init(Constant::new((512 - W as u64).to_bits()))]
    lift: Constant<Bits<10>>,
    /// Bits of the place of a number in a beat.
    #[init(Constant::new((W as u64 - 16).to_bits()))]
    lanes: Constant<Bits<9>>,
}

impl<const W: usize, const Q: usize> RqFetch<W, Q> {
    fn check() {
        assert!(
            (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
    }
}

impl<const W: usize, const Q: usize> Logic for RqFetch<W, Q> {
    describe!(
        "rq_fetch",
        format!("w{W}_q{Q}"),
        "Reads receive WQEs from host memory, in order."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= number.s);
        forward!(numbers <= number.numbers);
        let wqe = number.m.payload;
        let whole = wrapped | !wqe.wraps;
        let mut part = wqe.head;
        let mut addr = wqe.addr;
        if wrapped {
            part = rest;
            addr = wqe.base;
        }
        let needed = part.resize::<9>();
        // for the largest, whatever it is: a comparison with its size would not fit into the cycle
        let room = free.slice::<6>(3).any() & under_way.s.ready;
        let reads = number.m.valid & room;
        let go = reads & skid.s.ready;
        number.m.ready = skid.s.ready & room & whole;
        if go {
            wrapped = !whole;
            rest = wqe.slots - wqe.head;
        }
        // a number is read when no WQE is
        let asks = number.ask.valid & under_way.s.ready & !reads;
        number.ask.ready = under_way.s.ready & skid.s.ready & !reads;
        skid.s.valid = reads | asks;
        skid.s.payload.addr = addr;
        skid.s.payload.len = part.resize::<13>() << 6;
        if !reads {
            skid.s.payload.addr = number.ask.payload;
            skid.s.payload.len = 2;
        }
        under_way.s.valid = (reads | asks) & skid.s.ready;
        under_way.s.payload.number = !reads;
        under_way.s.payload.lane = number.ask.payload.slice::<5>(1);
        under_way.s.payload.lost = wqe.lost;
        under_way.s.payload.last = whole;
        under_way.s.payload.slots = wqe.slots;
        forward!(read <= skid.m);
        let mut claimed: Bits<9> = bits::<9>(0);
        if go {
            claimed = needed;
        }
        freed = buffer.m.valid & m.ready;
        free = free - claimed + bits::<9>(0).replace_bit(0, freed);

        // beats into numbers
        let of_wqe = beats.valid & !under_way.m.payload.number;
        let of_number = beats.valid & under_way.m.payload.number;
        let lane = (under_way.m.payload.lane.resize::<9>() << 4) & lanes;
        number.answer_valid = of_number;
        // what the host wrote is never taken for one that could not be read
        number.answer = (beats.data >> lane).low::<16>().replace_bit(15, false);
        if beats.error {
            number.answer = NO_NUMBER;
        }

        // beats into slots
        let slot_next = (beats.data.resize::<512>() << lift) | (slot >> beat_bits);
        let failed_next = failed | beats.error;
        let full_slot = of_wqe & (phase == last_phase);
        if of_wqe {
            slot = slot_next;
            failed = failed_next & !full_slot;
            phase = phase + 1;
            if full_slot {
                phase = bits::<3>(0);
            }
        }
        buffer.s.valid = full_slot;
        buffer.s.payload.slot = slot_next;
        under_way.m.ready = (full_slot | of_number) & beats.last;
        buffer.s.payload.last = beats.last & under_way.m.payload.last;
        buffer.s.payload.slots = under_way.m.payload.slots;
        buffer.s.payload.error = failed_next | under_way.m.payload.lost;
        forward!(m <= buffer.m);
    }
}
