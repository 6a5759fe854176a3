//! WQE fetch of the receive side: from [`RqRead`] to the slots of the WQEs, in order.
//!
//! Receive WQEs of the responder, and send WQEs whose scatter list a READ or atomic response needs. A WQE is one read of
//! 1 to 8 slots, or two when its ring wraps; up to 256 slots are in flight or wait to be taken. A read leaves when 8
//! slots have room, so its answer is never held up.
//! Rate: a slot a cycle at W = 512, a slot in 8 cycles at W = 64; a read a cycle. Latency: one cycle to the read, from its
//! last beat one cycle to the slot.
use crate::bus::types::{ReadReq, RqRead, RqSlot};
use crate::prelude::*;

/// A read of a WQE, or of a part of it.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Part {
    /// It is the last of its WQE.
    last: Bit,
    /// Slots of the WQE.
    slots: Bits<4>,
}

/// WQE fetch on a data path of W bits.
#[derive(LogicBlock)]
pub struct RqFetch<const W: usize> {
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
    skid: Skid<ReadReq>,
    buffer: Fifo<RqSlot, 8>,
    /// Slots of the buffer that no read has claimed.
    free: Reg<Bits<9>>,
    /// One a read under way.
    under_way: Fifo<Part, 8>,
    /// The head of the WQE is asked for.
    wrapped: Reg<Bit>,
    whole: Signal<Local, Bit>,
    part: Signal<Local, Bits<4>>,
    needed: Signal<Local, Bits<9>>,
    room: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    claimed: Signal<Local, Bits<9>>,
    /// A slot left in the cycle before: the taker's ready is deep.
    freed: Reg<Bit>,
    slot: Dff<Bits<512>>,
    slot_next: Signal<Local, Bits<512>>,
    failed: Reg<Bit>,
    failed_next: Signal<Local, Bit>,
    phase: Reg<Bits<3>>,
    full_slot: Signal<Local, Bit>,
    last_phase: Constant<Bits<3>>,
    beat_bits: Constant<Bits<10>>,
    lift: Constant<Bits<10>>,
}

impl<const W: usize> Default for RqFetch<W> {
    fn default() -> Self {
        assert!(
            (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            read: StreamOut::default(),
            beats: ReadBeatIn::default(),
            m: StreamOut::default(),
            skid: Skid::default(),
            buffer: Fifo::new(Style::Block),
            free: Reg::new(bits::<9>(256)),
            under_way: Fifo::default(),
            wrapped: Reg::default(),
            whole: Signal::default(),
            part: Signal::default(),
            needed: Signal::default(),
            room: Signal::default(),
            go: Signal::default(),
            claimed: Signal::default(),
            freed: Reg::default(),
            slot: Dff::default(),
            slot_next: Signal::default(),
            failed: Reg::default(),
            failed_next: Signal::default(),
            phase: Reg::default(),
            full_slot: Signal::default(),
            last_phase: Constant::new((512 / W as u64 - 1).to_bits()),
            beat_bits: Constant::new((W as u64).to_bits()),
            lift: Constant::new((512 - W as u64).to_bits()),
        }
    }
}

impl<const W: usize> Logic for RqFetch<W> {
    describe!(
        "rq_fetch",
        format!("w{W}"),
        "Reads receive WQEs from host memory, in order."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, skid, buffer, under_way);
        dff_setup!(self, clock, free, freed, wrapped, slot, failed, phase);

        self.whole.next =
            self.wrapped.q.val() | (self.s.payload.val().slots == self.s.payload.val().head);
        self.part.next = self.s.payload.val().head;
        self.skid.s.payload.next.addr = self.s.payload.val().addr;
        if self.wrapped.q.val() {
            self.part.next = self.s.payload.val().slots - self.s.payload.val().head;
            self.skid.s.payload.next.addr = self.s.payload.val().base;
        }
        self.needed.next = bit_cast::<9, 4>(self.part.val());
        // for the largest, whatever it is: a comparison with its size would not fit into the cycle
        self.room.next = self.free.q.val().get_bits::<6>(3).any() & self.under_way.s.ready.val();
        self.go.next = self.s.valid.val() & self.skid.s.ready.val() & self.room.val();
        self.s.ready.next = self.skid.s.ready.val() & self.room.val() & self.whole.val();
        if self.go.val() {
            self.wrapped.d.next = !self.whole.val();
        }
        self.skid.s.valid.next = self.s.valid.val() & self.room.val();
        self.skid.s.payload.next.len = bit_cast::<13, 4>(self.part.val()) << 6;
        self.under_way.s.valid.next = self.go.val();
        self.under_way.s.payload.next.last = self.whole.val();
        self.under_way.s.payload.next.slots = self.s.payload.val().slots;
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.skid.m);
        self.claimed.next = bits::<9>(0);
        if self.go.val() {
            self.claimed.next = self.needed.val();
        }
        self.freed.d.next = self.buffer.m.valid.val() & self.m.ready.val();
        self.free.d.next = self.free.q.val() - self.claimed.val()
            + bits::<9>(0).replace_bit(0, self.freed.q.val());

        // beats into slots
        self.slot_next.next = (bit_cast::<512, W>(self.beats.data.val()) << self.lift.val())
            | (self.slot.q.val() >> self.beat_bits.val());
        self.failed_next.next = self.failed.q.val() | self.beats.error.val();
        self.full_slot.next =
            self.beats.valid.val() & (self.phase.q.val() == self.last_phase.val());
        if self.beats.valid.val() {
            self.slot.d.next = self.slot_next.val();
            self.failed.d.next = self.failed_next.val() & !self.full_slot.val();
            self.phase.d.next = self.phase.q.val() + 1;
            if self.full_slot.val() {
                self.phase.d.next = bits::<3>(0);
            }
        }
        self.buffer.s.valid.next = self.full_slot.val();
        self.buffer.s.payload.next.slot = self.slot_next.val();
        self.under_way.m.ready.next = self.full_slot.val() & self.beats.last.val();
        self.buffer.s.payload.next.last =
            self.beats.last.val() & self.under_way.m.payload.val().last;
        self.buffer.s.payload.next.slots = self.under_way.m.payload.val().slots;
        self.buffer.s.payload.next.error = self.failed_next.val();
        StreamOut::<RqSlot>::link(&mut self.m, &mut self.buffer.m);
    }
}
