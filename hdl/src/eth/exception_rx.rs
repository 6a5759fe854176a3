//! Receive side of the exception queue: frames that are not RoCEv2 into the slots of a ring in host memory.
//!
//! [`ExceptionBuffer`] keeps the frames for the host. Of the frames that are not RoCEv2 each gives one pulse: `refused` if
//! the queue is off, `dropped` if there is no room or it is longer than a slot, `stored` when its head is in host memory.
//!
//! Kept frames are written one at a time: bursts of at most 2 KiB that end at multiples of that, then, when all of them
//! have their response, the head with length and phase, then its response. So the head is visible last, and `event`
//! comes when it is visible. A full ring holds frames back in the buffer.
//!
//! `notify` answers an `arm`: one cycle, when a frame stands behind `rx_consumer`.
//!
//! When the queue is turned off, the frame that is being written is finished, those in the buffer are forgotten, a beat
//! a cycle, and the producer index goes to 0; `busy` is 0 then.
//!
//! Holds 2^A beats and 32 frames. A frame takes its beats, two round trips of writes and 11 cycles; a beat a cycle.

use super::exception_buffer::ExceptionBuffer;
use super::exception_types::{ExceptionSetup, HEAD_BYTES, LARGE_SLOT_SHIFT, RawBeat, SLOT_SHIFT};
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// What the writer is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum ExceptionRxState {
    /// Waits for a frame and a slot.
    Idle,
    /// Forgets the oldest frame.
    Skip,
    /// Computes the place of the slot in the ring.
    Locate,
    /// Computes its address.
    Place,
    /// Computes the beats of a burst.
    Size,
    /// Offers it.
    Offer,
    /// Sends its beats.
    Send,
    /// Waits for the responses of the frame.
    Fence,
    /// Offers the head.
    OfferHead,
    /// Sends it.
    SendHead,
    /// Waits for its response.
    Settle,
    /// Lets comparisons catch up.
    Rest,
}

/// The block.
#[derive(Clone, Debug, LogicBlock)]
pub struct ExceptionRx<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ExceptionSetup>,
    /// A received beat.
    pub beat: Signal<In, RawBeat>,
    /// Its bytes.
    pub data: Signal<In, Bits<W>>,
    /// Bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Bursts that have their response, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// A frame stands behind the consumer index, as was asked.
    pub notify: Signal<Out, Bit>,
    /// A frame was handed to the host; one cycle.
    pub stored: Signal<Out, Bit>,
    /// A frame was dropped for lack of room; one cycle.
    pub dropped: Signal<Out, Bit>,
    /// A frame was dropped because the queue is off; one cycle.
    pub refused: Signal<Out, Bit>,
    /// Memory of the host is in use.
    pub busy: Signal<Out, Bit>,

    buffer: ExceptionBuffer<W, A>,
    state: Reg<ExceptionRxState>,
    producer: Reg<Bits<16>>,
    owner: Reg<Bit>,
    room: Reg<Bit>,
    offset: Dff<Bits<23>>,
    slot: Dff<Bits<64>>,
    addr: Dff<Bits<64>>,
    left: Dff<Bits<13>>,
    chunk: Dff<Bits<10>>,
    held: Reg<Bit>,
    sent: Reg<Bits<16>>,
    settled: Reg<Bit>,
    stored_q: Reg<Bit>,
    armed: Reg<Bit>,
    waiting: Reg<Bit>,
    event_q: Reg<Bit>,

    used: Signal<Local, Bits<16>>,
    slots: Signal<Local, Bits<16>>,
    /// Slots less one.
    mask: Signal<Local, Bits<16>>,
    index: Signal<Local, Bits<23>>,
    sum: Signal<Local, Bits<64>>,
    whole: Signal<Local, Bits<13>>,
    limit_chunk: Signal<Local, Bits<13>>,
    fetch: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    head_word: Signal<Local, Bits<64>>,
    head_strb: Constant<Bits<K>>,
    all_strb: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize, const A: usize> ExceptionRx<W, K, A> {
    const LOG_K: u64 = {
        assert!(
            W == 8 * K && K.is_power_of_two() && K >= 8 && K <= 64,
            "a beat has W = 8 * K bits, 8 to 64 bytes"
        );
        K.ilog2() as u64
    };
    const MORE: u64 = K as u64 - 1;
    /// Beats of 2 KiB, and of what of the first 2 KiB of a slot is frame.
    const CHUNK: u64 = (1 << SLOT_SHIFT) / K as u64;
    const FIRST_CHUNK: u64 = Self::CHUNK - HEAD_BYTES / K as u64;
}

impl<const W: usize, const K: usize, const A: usize> Default for ExceptionRx<W, K, A> {
    fn default() -> Self {
        let ones =
            |n: usize| (0..n.min(K)).fold(Bits::default(), |m: Bits<K>, i| m.replace_bit(i, true));
        Self {
            clock: Default::default(),
            setup: Default::default(),
            beat: Default::default(),
            data: Default::default(),
            write: Default::default(),
            beats: Default::default(),
            written: Default::default(),
            notify: Default::default(),
            stored: Default::default(),
            dropped: Default::default(),
            refused: Default::default(),
            busy: Default::default(),
            buffer: Default::default(),
            state: Reg::new(ExceptionRxState::Idle),
            producer: Default::default(),
            owner: Reg::new(true),
            room: Default::default(),
            offset: Default::default(),
            slot: Default::default(),
            addr: Default::default(),
            left: Default::default(),
            chunk: Default::default(),
            held: Default::default(),
            sent: Default::default(),
            settled: Default::default(),
            stored_q: Default::default(),
            armed: Default::default(),
            waiting: Default::default(),
            event_q: Default::default(),
            used: Default::default(),
            slots: Default::default(),
            mask: Default::default(),
            index: Default::default(),
            sum: Default::default(),
            whole: Default::default(),
            limit_chunk: Default::default(),
            fetch: Default::default(),
            pop: Default::default(),
            head_word: Default::default(),
            head_strb: Constant::new(ones(8)),
            all_strb: Constant::new(ones(K)),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for ExceptionRx<W, K, A> {
    describe!(
        "exception_rx",
        format!("w{W}_{}", 1usize << A),
        "Frames that are not RoCEv2 into the slots of a ring in host memory.";
        HEAD_BYTES, SLOT_SHIFT, LARGE_SLOT_SHIFT,
        Self::LOG_K, Self::MORE, Self::CHUNK, Self::FIRST_CHUNK
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, buffer);
        dff_setup!(
            self, clock, state, producer, owner, room, offset, slot, addr, left, chunk
        );
        dff_setup!(
            self, clock, held, sent, settled, stored_q, armed, waiting, event_q
        );

        self.buffer.on.next = self.setup.val().on;
        self.buffer.jumbo.next = self.setup.val().large;
        self.buffer.beat.next = self.beat.val();
        self.buffer.data.next = self.data.val();

        // the ring
        self.slots.next = bits::<16>(1) << self.setup.val().log_slots;
        self.mask.next = !(bits::<16>(0xffff) << self.setup.val().log_slots);
        self.used.next = self.producer.q.val() - self.setup.val().rx_consumer;
        self.room.d.next = self.used.val() < self.slots.val();
        self.waiting.d.next = self.used.val().any();
        self.index.next = bit_cast::<23, 16>(self.producer.q.val() & self.mask.val());
        self.sum.next = self.setup.val().base + bit_cast::<64, 23>(self.offset.q.val());
        self.settled.d.next = self.written.val() == self.sent.q.val();
        self.event_q.d.next = self.armed.q.val() & self.waiting.q.val() & !self.setup.val().arm;
        if self.setup.val().arm {
            self.armed.d.next = true;
        } else if !self.setup.val().on | self.waiting.q.val() {
            self.armed.d.next = false;
        }

        // the writer
        self.pop.next = false;
        self.stored_q.d.next = false;
        self.whole.next =
            bit_cast::<13, 16>((self.buffer.lengths.payload.val() + Self::MORE) >> Self::LOG_K);
        self.limit_chunk.next = bits::<13>(Self::CHUNK);
        if self.addr.q.val().get_bits::<11>(0).any() {
            self.limit_chunk.next = bits::<13>(Self::FIRST_CHUNK);
        }
        self.fetch.next = (self.state.q.val() == ExceptionRxState::Send)
            & self.chunk.q.val().any()
            & (self.beats.ready.val() | !self.held.q.val());
        match self.state.q.val() {
            ExceptionRxState::Idle => {
                self.left.d.next = self.whole.val();
                if !self.setup.val().on {
                    self.producer.d.next = bits::<16>(0);
                    self.owner.d.next = true;
                    if self.buffer.lengths.valid.val() {
                        self.state.d.next = ExceptionRxState::Skip;
                    }
                } else if self.buffer.lengths.valid.val() & self.room.q.val() {
                    self.state.d.next = ExceptionRxState::Locate;
                }
            }
            ExceptionRxState::Skip => {
                self.left.d.next = self.left.q.val() - 1;
                if self.left.q.val() == 1 {
                    self.pop.next = true;
                    self.state.d.next = ExceptionRxState::Rest;
                }
            }
            ExceptionRxState::Locate => {
                self.offset.d.next = self.index.val() << SLOT_SHIFT;
                if self.setup.val().large {
                    self.offset.d.next = self.index.val() << LARGE_SLOT_SHIFT;
                }
                self.state.d.next = ExceptionRxState::Place;
            }
            ExceptionRxState::Place => {
                self.slot.d.next = self.sum.val();
                self.addr.d.next = self.sum.val() | HEAD_BYTES;
                self.state.d.next = ExceptionRxState::Size;
            }
            ExceptionRxState::Size => {
                self.chunk.d.next = bit_cast::<10, 13>(self.limit_chunk.val());
                if self.left.q.val() < self.limit_chunk.val() {
                    self.chunk.d.next = bit_cast::<10, 13>(self.left.q.val());
                }
                self.state.d.next = ExceptionRxState::Offer;
            }
            ExceptionRxState::Offer => {
                if self.write.ready.val() {
                    self.sent.d.next = self.sent.q.val() + 1;
                    self.state.d.next = ExceptionRxState::Send;
                }
            }
            ExceptionRxState::Send => {
                if self.fetch.val() {
                    self.chunk.d.next = self.chunk.q.val() - 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.held.d.next = true;
                } else if self.beats.ready.val() & self.held.q.val() {
                    self.held.d.next = false;
                    self.addr.d.next = ((self.addr.q.val() >> SLOT_SHIFT) + 1) << SLOT_SHIFT;
                    self.state.d.next = ExceptionRxState::Size;
                    if !self.left.q.val().any() {
                        self.state.d.next = ExceptionRxState::Fence;
                    }
                }
            }
            ExceptionRxState::Fence => {
                self.addr.d.next = self.slot.q.val();
                if self.settled.q.val() {
                    self.state.d.next = ExceptionRxState::OfferHead;
                }
            }
            ExceptionRxState::OfferHead => {
                if self.write.ready.val() {
                    self.sent.d.next = self.sent.q.val() + 1;
                    self.state.d.next = ExceptionRxState::SendHead;
                }
            }
            ExceptionRxState::SendHead => {
                if self.beats.ready.val() {
                    self.pop.next = true;
                    self.state.d.next = ExceptionRxState::Settle;
                }
            }
            ExceptionRxState::Settle => {
                if self.settled.q.val() {
                    self.producer.d.next = self.producer.q.val() + 1;
                    if !(!self.producer.q.val() & self.mask.val()).any() {
                        self.owner.d.next = !self.owner.q.val();
                    }
                    self.stored_q.d.next = true;
                    self.state.d.next = ExceptionRxState::Rest;
                }
            }
            _ => {
                self.state.d.next = ExceptionRxState::Idle;
            }
        }
        self.buffer.step.next = self.fetch.val() | (self.state.q.val() == ExceptionRxState::Skip);
        self.buffer.lengths.ready.next = self.pop.val();

        self.write.valid.next = (self.state.q.val() == ExceptionRxState::Offer)
            | (self.state.q.val() == ExceptionRxState::OfferHead);
        self.write.payload.next.addr = self.addr.q.val();
        self.write.payload.next.len = bit_cast::<8, 10>(self.chunk.q.val() - 1);
        self.head_word.next = bit_cast::<64, 16>(self.buffer.lengths.payload.val())
            .replace_bit(63, self.owner.q.val());
        self.beats.data.next = self.buffer.rdata.val();
        self.beats.strb.next = self.all_strb.val();
        self.beats.last.next = !self.chunk.q.val().any();
        self.beats.valid.next = self.held.q.val();
        if (self.state.q.val() == ExceptionRxState::OfferHead)
            | (self.state.q.val() == ExceptionRxState::SendHead)
        {
            self.write.payload.next.len = bits::<8>(0);
            // what stands above is not written
            self.beats.data.next =
                ((self.buffer.rdata.val() >> 64) << 64) | bit_cast::<W, 64>(self.head_word.val());
            self.beats.strb.next = self.head_strb.val();
            self.beats.last.next = true;
            self.beats.valid.next = self.state.q.val() == ExceptionRxState::SendHead;
        }

        self.notify.next = self.event_q.q.val();
        self.stored.next = self.stored_q.q.val();
        self.dropped.next = self.buffer.dropped.val();
        self.refused.next = self.buffer.refused.val();
        self.busy.next = self.setup.val().on
            | (self.state.q.val() != ExceptionRxState::Idle)
            | self.buffer.lengths.valid.val()
            | self.producer.q.val().any();
    }
}
