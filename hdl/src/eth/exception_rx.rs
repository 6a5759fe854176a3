//! Receive side of the exception queue: frames that are not RoCEv2 into the slots of a ring in host memory.
//!
//! [`ExceptionBuffer`] keeps the frames for the host. Of the frames that are not RoCEv2 each gives one pulse: `refused` if
//! the queue is off, `dropped` if there is no room or it is longer than a slot, `stored` when its head is in host memory.
//!
//! Kept frames are written one at a time: bursts of at most 2 KiB that end at multiples of that, then, when all of them
//! have their response, the head with length and phase, then its response. So the head is visible last, and `event`
//! comes when it is visible. A full ring holds frames back in the buffer. A frame of which host memory refuses a write is
//! `dropped`: its head does not become visible, and the next one takes its slot.
//!
//! `notify` answers an `arm`: one cycle, when a frame stands behind `rx_consumer`.
//!
//! When the queue is turned off, the frame that is being written is finished, those in the buffer are forgotten without a
//! pulse, a beat a cycle, and the producer index goes to 0; `busy` is 0 then.
//!
//! Holds 2^A beats and 32 frames. A frame takes its beats, two round trips of writes and 11 cycles; a beat a cycle.

use super::exception_arm::ExceptionArm;
use super::exception_buffer::ExceptionBuffer;
use super::exception_types::{ExceptionSetup, HEAD_BYTES, LARGE_SLOT_SHIFT, RawBeat, SLOT_SHIFT};
use super::exception_writes::ExceptionWrites;
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
#[derive(Clone, Debug, Block)]
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
    /// The last one was refused.
    pub write_refused: Signal<In, Bit>,
    /// A frame stands behind the consumer index, as was asked.
    pub notify: Signal<Out, Bit>,
    /// A frame was handed to the host; one cycle.
    pub stored: Signal<Out, Bit>,
    /// A frame was dropped for lack of room, or host memory refused it; one cycle.
    pub dropped: Signal<Out, Bit>,
    /// A frame was dropped because the queue is off; one cycle.
    pub refused: Signal<Out, Bit>,
    /// Memory of the host is in use.
    pub busy: Signal<Out, Bit>,

    buffer: ExceptionBuffer<W, A>,
    writes: ExceptionWrites,
    arm: ExceptionArm,
    #[init(Reg::new(ExceptionRxState::Idle))]
    state: Reg<ExceptionRxState>,
    producer: Reg<Bits<16>>,
    #[init(Reg::new(true))]
    owner: Reg<Bit>,
    room: Reg<Bit>,
    offset: Dff<Bits<23>>,
    slot: Dff<Bits<64>>,
    addr: Dff<Bits<64>>,
    left: Dff<Bits<13>>,
    chunk: Dff<Bits<10>>,
    held: Reg<Bit>,
    stored_q: Reg<Bit>,
    /// A frame was refused by host memory, and is not counted.
    lost: Reg<Bit>,

    #[init(Constant::new(Self::ones(8)))]
    head_strb: Constant<Bits<K>>,
    #[init(Constant::new(Self::ones(K)))]
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

impl<const W: usize, const K: usize, const A: usize> ExceptionRx<W, K, A> {
    /// Strobes of the first bytes.
    fn ones(n: usize) -> Bits<K> {
        (0..n.min(K)).fold(Bits::default(), |m: Bits<K>, i| m.replace_bit(i, true))
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for ExceptionRx<W, K, A> {
    describe!(
        "exception_rx",
        format!("w{W}_{}", 1usize << A),
        "Frames that are not RoCEv2 into the slots of a ring in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        buffer.on = setup.on;
        buffer.jumbo = setup.large;
        copy!(buffer <= self; beat, data);

        // the ring
        let slots = bits::<16>(1) << setup.log_slots;
        let mask = !(bits::<16>(0xffff) << setup.log_slots);
        room = producer - setup.rx_consumer < slots;
        copy!(arm <= self; setup, producer);
        let index = (producer & mask).resize::<23>();
        let sum = setup.base + offset.resize::<64>();

        // the writer
        let mut pop = false;
        stored_q = false;
        lost = lost & buffer.dropped;
        let mut limit_chunk = bits::<13>(Self::CHUNK);
        if addr.low::<11>().any() {
            limit_chunk = bits::<13>(Self::FIRST_CHUNK);
        }
        let fetch = (state == ExceptionRxState::Send) & chunk.any() & (beats.ready | !held);
        match state {
            ExceptionRxState::Idle => {
                left = ((buffer.lengths.payload + Self::MORE) >> Self::LOG_K).resize::<13>();
                if !setup.on {
                    producer = bits::<16>(0);
                    owner = true;
                    if buffer.lengths.valid {
                        state = ExceptionRxState::Skip;
                    }
                } else if buffer.lengths.valid & room {
                    state = ExceptionRxState::Locate;
                }
            }
            ExceptionRxState::Skip => {
                left = left - 1;
                if left == 1 {
                    pop = true;
                    state = ExceptionRxState::Rest;
                }
            }
            ExceptionRxState::Locate => {
                offset = index << SLOT_SHIFT;
                if setup.large {
                    offset = index << LARGE_SLOT_SHIFT;
                }
                state = ExceptionRxState::Place;
            }
            ExceptionRxState::Place => {
                slot = sum;
                addr = sum | HEAD_BYTES;
                state = ExceptionRxState::Size;
            }
            ExceptionRxState::Size => {
                chunk = limit_chunk.resize::<10>();
                if left < limit_chunk {
                    chunk = left.resize::<10>();
                }
                state = ExceptionRxState::Offer;
            }
            ExceptionRxState::Offer => {
                if write.ready {
                    state = ExceptionRxState::Send;
                }
            }
            ExceptionRxState::Send => {
                if fetch {
                    chunk = chunk - 1;
                    left = left - 1;
                    held = true;
                } else if beats.ready & held {
                    held = false;
                    addr = ((addr >> SLOT_SHIFT) + 1) << SLOT_SHIFT;
                    state = ExceptionRxState::Size;
                    if !left.any() {
                        state = ExceptionRxState::Fence;
                    }
                }
            }
            ExceptionRxState::Fence => {
                addr = slot;
                if writes.settled {
                    pop = writes.spoiled;
                    lost = writes.spoiled;
                    state = ExceptionRxState::OfferHead;
                    if writes.spoiled {
                        state = ExceptionRxState::Rest;
                    }
                }
            }
            ExceptionRxState::OfferHead => {
                if write.ready {
                    state = ExceptionRxState::SendHead;
                }
            }
            ExceptionRxState::SendHead => {
                if beats.ready {
                    pop = true;
                    state = ExceptionRxState::Settle;
                }
            }
            ExceptionRxState::Settle => {
                if writes.settled {
                    lost = writes.spoiled;
                    stored_q = !writes.spoiled;
                    if !writes.spoiled {
                        producer = producer + 1;
                        if !(!producer & mask).any() {
                            owner = !owner;
                        }
                    }
                    state = ExceptionRxState::Rest;
                }
            }
            _ => {
                state = ExceptionRxState::Idle;
            }
        }
        buffer.step = fetch | (state == ExceptionRxState::Skip);
        buffer.lengths.ready = pop;

        let offers = (state == ExceptionRxState::Offer) | (state == ExceptionRxState::OfferHead);
        write.valid = offers;
        writes.starts = state == ExceptionRxState::Locate;
        writes.sent = offers & write.ready;
        writes.written = written;
        writes.refused = write_refused;
        write.payload.addr = addr;
        write.payload.len = (chunk - 1).resize::<8>();
        let head_word = buffer.lengths.payload.resize::<64>().replace_bit(63, owner);
        beats.data = buffer.rdata;
        beats.strb = all_strb;
        beats.last = !chunk.any();
        beats.valid = held;
        if (state == ExceptionRxState::OfferHead) | (state == ExceptionRxState::SendHead) {
            write.payload.len = bits::<8>(0);
            // what stands above is not written
            beats.data = ((buffer.rdata >> 64) << 64) | head_word.resize::<W>();
            beats.strb = head_strb;
            beats.last = true;
            beats.valid = state == ExceptionRxState::SendHead;
        }

        notify = arm.notify;
        stored = stored_q;
        dropped = buffer.dropped | lost;
        refused = buffer.refused;
        busy = setup.on | (state != ExceptionRxState::Idle) | buffer.lengths.valid | producer.any();
    }
}
