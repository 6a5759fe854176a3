//! WQE fetch: from granted slot ranges to a stream of slots.
//!
//! A grant of 1 to 8 slots (each holds at least one slot of the buffer, so there are at most 2^B) becomes one read of 64
//! bytes a slot, or two if it wraps around the ring; many reads are in flight and their answers come in order. Room for the slots was reserved by the scheduler, so the answers are never held up. `credit` reports the
//! slots that are free again: those a grant did not use, and each slot taken out of the buffer.
//! Rate: a slot a cycle at W = 512, a slot in 8 cycles at W = 64.
use crate::bus::dma::ReadBeatIn;
use crate::bus::types::{Activity, FetchedWqe, ReadReq};
use crate::prelude::*;
use crate::transport::requester::event::FetchGrant;

/// WQE fetch with a buffer of 2^B slots.
#[derive(LogicBlock)]
pub struct WqeFetch<const W: usize, const B: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, FetchGrant>,
    /// Reads.
    pub read: StreamOut<ReadReq>,
    /// Beats of the answers.
    pub beat: ReadBeatIn<W>,
    /// Slots out.
    pub m: StreamOut<FetchedWqe>,
    /// Slots that became free.
    pub credit: Signal<Out, Bits<5>>,
    /// Slots asked for and not taken.
    pub activity: Signal<Out, Activity>,
    requests: Bypass<FetchGrant, B>,
    /// The read from the start of the ring is due.
    wrapped: Reg<Bit>,
    wraps: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    pending: Fifo<FetchGrant, B>,
    buffer: Bypass<FetchedWqe, B>,
    slot: Dff<Bits<512>>,
    slot_next: Signal<Local, Bits<512>>,
    failed: Reg<Bit>,
    failed_next: Signal<Local, Bit>,
    phase: Reg<Bits<3>>,
    done: Reg<Bits<4>>,
    full_slot: Signal<Local, Bit>,
    unused: Signal<Local, Bits<5>>,
    taken: Signal<Local, Bits<5>>,
    returned: Reg<Bits<5>>,
    last_phase: Constant<Bits<3>>,
    beat_bits: Constant<Bits<10>>,
    lift: Constant<Bits<10>>,
}

impl<const W: usize, const B: usize> Default for WqeFetch<W, B> {
    fn default() -> Self {
        assert!(
            W >= 64 && W <= 512 && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
        Self {
            clock: ClkRst::default(),
            grant_valid: Signal::default(),
            grant: Signal::default(),
            read: StreamOut::default(),
            beat: ReadBeatIn::default(),
            m: StreamOut::default(),
            credit: Signal::default(),
            activity: Signal::default(),
            requests: Bypass::default(),
            wrapped: Reg::default(),
            wraps: Signal::default(),
            ends: Signal::default(),
            pending: Fifo::default(),
            buffer: Bypass::new(Style::Block),
            slot: Dff::default(),
            slot_next: Signal::default(),
            failed: Reg::default(),
            failed_next: Signal::default(),
            phase: Reg::default(),
            done: Reg::default(),
            full_slot: Signal::default(),
            unused: Signal::default(),
            taken: Signal::default(),
            returned: Reg::default(),
            last_phase: Constant::new((512 / W as u64 - 1).to_bits()),
            beat_bits: Constant::new((W as u64).to_bits()),
            lift: Constant::new((512 - W as u64).to_bits()),
        }
    }
}

impl<const W: usize, const B: usize> Logic for WqeFetch<W, B> {
    describe!(
        "wqe_fetch",
        format!("w{W}_b{B}"),
        "Reads granted send WQE slots from host memory, in order."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, requests, pending, buffer);
        dff_setup!(self, clock, slot, failed, phase, done, returned, wrapped);

        self.requests.s.payload.next = self.grant.val();
        self.requests.s.valid.next = self.grant_valid.val() & self.grant.val().count.any();

        // the first read goes out when the place of the grant in `pending` is taken at the same time
        self.wraps.next = self.requests.m.payload.val().tail.any();
        self.read.valid.next =
            self.requests.m.valid.val() & (self.pending.s.ready.val() | self.wrapped.q.val());
        self.read.payload.next.addr = self.requests.m.payload.val().addr;
        self.read.payload.next.len = bit_cast::<13, 4>(self.requests.m.payload.val().head) << 6;
        if self.wrapped.q.val() {
            self.read.payload.next.addr = self.requests.m.payload.val().base;
            self.read.payload.next.len = bit_cast::<13, 4>(self.requests.m.payload.val().tail) << 6;
        }
        self.requests.m.ready.next = self.read.ready.val()
            & ((self.pending.s.ready.val() & !self.wraps.val()) | self.wrapped.q.val());
        self.pending.s.valid.next =
            self.requests.m.valid.val() & self.read.ready.val() & !self.wrapped.q.val();
        self.pending.s.payload.next = self.requests.m.payload.val();
        if self.requests.m.valid.val() & self.read.ready.val() {
            if self.wrapped.q.val() {
                self.wrapped.d.next = false;
            } else {
                self.wrapped.d.next = self.wraps.val() & self.pending.s.ready.val();
            }
        }

        // beats into slots
        self.slot_next.next = (bit_cast::<512, W>(self.beat.data.val()) << self.lift.val())
            | (self.slot.q.val() >> self.beat_bits.val());
        self.failed_next.next = self.failed.q.val() | self.beat.error.val();
        self.full_slot.next = self.beat.valid.val() & (self.phase.q.val() == self.last_phase.val());
        if self.beat.valid.val() {
            self.slot.d.next = self.slot_next.val();
            self.failed.d.next = self.failed_next.val() & !self.full_slot.val();
            self.phase.d.next = self.phase.q.val() + 1;
            if self.full_slot.val() {
                self.phase.d.next = bits::<3>(0);
            }
        }
        self.buffer.s.valid.next = self.full_slot.val();
        self.buffer.s.payload.next.qpn = self.pending.m.payload.val().qpn;
        self.buffer.s.payload.next.epoch = self.pending.m.payload.val().epoch;
        self.buffer.s.payload.next.index =
            self.pending.m.payload.val().index + bit_cast::<16, 4>(self.done.q.val());
        self.ends.next = self.done.q.val() + 1 == self.pending.m.payload.val().count;
        self.buffer.s.payload.next.first = self.done.q.val() == 0;
        self.buffer.s.payload.next.last = self.ends.val();
        self.buffer.s.payload.next.error = self.failed_next.val();
        self.buffer.s.payload.next.slot = self.slot_next.val();
        self.pending.m.ready.next = false;
        if self.full_slot.val() {
            self.done.d.next = self.done.q.val() + 1;
            if self.ends.val() {
                self.done.d.next = bits::<4>(0);
                self.pending.m.ready.next = true;
            }
        }
        StreamOut::<FetchedWqe>::link(&mut self.m, &mut self.buffer.m);

        self.unused.next = bits::<5>(0);
        if self.grant_valid.val() {
            self.unused.next = bits::<5>(8) - bit_cast::<5, 4>(self.grant.val().count);
        }
        self.taken.next = bits::<5>(0);
        if self.m.ready.val() & self.buffer.m.valid.val() {
            self.taken.next = bits::<5>(1);
        }
        self.activity.next.busy =
            self.requests.m.valid.val() | self.pending.m.valid.val() | self.buffer.m.valid.val();
        self.activity.next.moved = self.m.ready.val() & self.buffer.m.valid.val();
        self.returned.d.next = self.unused.val() + self.taken.val();
        self.credit.next = self.returned.q.val();
    }
}
