//! Transmit side of the exception queue: frames from the slots of a ring in host memory to the wire.
//!
//! One frame at a time: its head is read, then the frame, in reads of at most 4096 bytes, into a buffer that holds the
//! longest one; then it leaves, when its class has room for it ([`host_gate`](crate::egress::host_gate)), a beat a cycle, without a
//! pause of this block's. A slot whose length is not that of a
//! frame (14 bytes up to what a slot holds), or that cannot be read, is passed over.
//!
//! `consumer` counts the slots that are read or passed over; it moves before the frame leaves, so that the host may
//! fill the slot again. When the queue is turned off a frame that has begun still leaves, one that waits for room does not; then
//! the count goes to 0 and `busy` is 0. Frames start only while `enable` is 1.
//!
//! `sent` tells of a frame in a cycle in which `other` is 0, so that both can count into one counter that takes one frame
//! a cycle: the next frame waits for such a cycle, which comes because this one took the wire from others.
//!
//! The buffer has 2^A beats, at least those of 16 KiB. A frame takes two round trips of reads, twice its beats and 12
//! cycles.

use ferroce_proto::abi::exception::{LARGE_SLOT_BYTES, MIN_FRAME};

use super::exception_class::ExceptionClass;
use super::exception_types::{
    ExceptionSetup, HEAD_BYTES, LARGE_SLOT_SHIFT, LONGEST, LONGEST_LARGE, SLOT_SHIFT,
};
use crate::bus::types::ReadReq;
use crate::egress::types::ClassSetup;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum ExceptionTxState {
    /// Waits for a slot.
    Idle,
    /// Computes the place of the slot in the rings.
    Locate,
    /// Computes its address.
    Place,
    /// Asks for the head.
    AskHead,
    /// Takes it.
    TakeHead,
    /// Looks at it.
    Check,
    /// Asks for a part of the frame.
    Ask,
    /// Takes it.
    Take,
    /// The slot is the host's again.
    Give,
    /// Waits for room for the frame.
    Wait,
    /// Sends it.
    Send,
    /// Lets comparisons catch up.
    Rest,
}

/// The block.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct ExceptionTx<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ExceptionSetup>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Frames may start.
    pub enable: Signal<In, Bit>,
    /// Reads.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Frames.
    pub m_axis: AxisOut<W, K>,
    /// Class of the frame.
    pub packet_class: Signal<Out, Bits<2>>,
    /// A frame waits for room, or takes it.
    pub waits: Signal<Out, Bit>,
    /// Its beats that have not left.
    pub beats: Signal<Out, Bits<13>>,
    /// It may leave.
    pub may_leave: Signal<In, Bit>,
    /// A frame is counted elsewhere in this cycle.
    pub other: Signal<In, Bit>,
    /// A frame has left; one cycle.
    pub sent: Signal<Out, Bit>,
    /// With `sent`: its bytes.
    pub sent_bytes: Signal<Out, Bits<14>>,
    /// Slots that are the host's again, modulo 2^16.
    pub consumer: Signal<Out, Bits<16>>,
    /// Memory of the host is in use.
    pub busy: Signal<Out, Bit>,

    #[init(Ram::new(Style::Block))]
    ram: Ram<Bits<W>, A>,
    class: ExceptionClass<W, K>,
    #[init(Reg::new(ExceptionTxState::Idle))]
    state: Reg<ExceptionTxState>,
    done: Reg<Bits<16>>,
    posted: Reg<Bit>,
    offset: Dff<Bits<23>>,
    addr: Dff<Bits<64>>,
    length: Dff<Bits<16>>,
    rest: Dff<Bits<16>>,
    /// Bytes of the next read.
    asked: Dff<Bits<13>>,
    failed: Reg<Bit>,
    // beats of the frame that are written, and read
    fill: Reg<Bits<A>>,
    drain: Reg<Bits<A>>,
    left: Dff<Bits<13>>,
    last_keep: Dff<Bits<K>>,
    held: Reg<Bit>,
    owed: Reg<Bit>,
    owed_bytes: Dff<Bits<14>>,

    #[init(Constant::new( (0..K).fold(Bits::default(), |m: Bits<K>, i| m.replace_bit(i, true)), ))]
    all: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize, const A: usize> ExceptionTx<W, K, A> {
    const LOG_K: u64 = {
        assert!(
            W == 8 * K && K.is_power_of_two() && K >= 8 && K <= 64,
            "a beat has W = 8 * K bits, 8 to 64 bytes"
        );
        K.ilog2() as u64
    };
    const MORE: u64 = K as u64 - 1;
}

/// Bytes of a read.
const PART: u64 = 4096;
const SHORTEST: u64 = MIN_FRAME as u64;
const HEAD_READ: u64 = 8;

/// Bytes of the next read.
#[kernel_fn]
fn part_of(rest: Bits<16>) -> Bits<13> {
    let part: Bits<13> = if rest > PART {
        PART
    } else {
        rest.resize::<13>()
    };
    part
}

impl<const W: usize, const K: usize, const A: usize> ExceptionTx<W, K, A> {
    fn check() {
        assert!(
            A < 16 && K << A >= LARGE_SLOT_BYTES,
            "a buffer of 2^{A} beats of {K} bytes: {LARGE_SLOT_BYTES} bytes are needed"
        );
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for ExceptionTx<W, K, A> {
    describe!(
        "exception_tx",
        format!("w{W}_{}", 1usize << A),
        "Frames from the slots of a ring in host memory to the wire."
    );

    #[kernel]
    fn update(&mut self) {
        // the ring behind that for received frames
        let slots = bits::<16>(1) << setup.log_slots;
        // Slots less one.
        let mask = !(bits::<16>(0xffff) << setup.log_slots);
        let index = ((done & mask) | slots).resize::<23>();
        posted = setup.tx_producer != done;
        let mut longest: Bits<16> = bits::<16>(LONGEST);
        if setup.large {
            longest = bits::<16>(LONGEST_LARGE);
        }
        if owed & !other {
            owed = false;
        }

        ram.we = false;
        ram.waddr = fill;
        ram.wdata = beat.data;
        let is_last = !left.any();
        // Of the last byte.
        let last_lane = (length - 1) & Self::MORE;
        let fetch = (state == ExceptionTxState::Send) & left.any() & (m_axis.tready | !held);
        match state {
            ExceptionTxState::Idle => {
                failed = false;
                fill = bits::<A>(0);
                drain = bits::<A>(0);
                if !setup.on {
                    done = bits::<16>(0);
                } else if posted & enable & !owed {
                    state = ExceptionTxState::Locate;
                }
            }
            ExceptionTxState::Locate => {
                offset = index << SLOT_SHIFT;
                if setup.large {
                    offset = index << LARGE_SLOT_SHIFT;
                }
                state = ExceptionTxState::Place;
            }
            ExceptionTxState::Place => {
                addr = setup.base + offset.resize::<64>();
                asked = bits::<13>(HEAD_READ);
                state = ExceptionTxState::AskHead;
            }
            ExceptionTxState::AskHead => {
                if read.ready {
                    state = ExceptionTxState::TakeHead;
                }
            }
            ExceptionTxState::TakeHead => {
                length = beat.data.low::<16>();
                if beat.valid {
                    failed = beat.error;
                    state = ExceptionTxState::Check;
                }
            }
            ExceptionTxState::Check => {
                addr = addr | HEAD_BYTES;
                rest = length;
                asked = part_of(length);
                left = ((length + Self::MORE) >> Self::LOG_K).resize::<13>();
                last_keep = !((all << 1) << last_lane);
                state = ExceptionTxState::Ask;
                if failed | (length < SHORTEST) | (length > longest) {
                    failed = true;
                    state = ExceptionTxState::Give;
                }
            }
            ExceptionTxState::Ask => {
                if read.ready {
                    rest = rest - asked.resize::<16>();
                    addr = addr + PART;
                    state = ExceptionTxState::Take;
                }
            }
            ExceptionTxState::Take => {
                asked = part_of(rest);
                ram.we = beat.valid;
                if beat.valid {
                    fill = fill + 1;
                    if beat.error {
                        failed = true;
                    }
                    if beat.last {
                        state = ExceptionTxState::Ask;
                        if !rest.any() {
                            state = ExceptionTxState::Give;
                        }
                    }
                }
            }
            ExceptionTxState::Give => {
                done = done + 1;
                state = ExceptionTxState::Wait;
                if failed {
                    state = ExceptionTxState::Rest;
                }
            }
            ExceptionTxState::Wait => {
                if !setup.on {
                    state = ExceptionTxState::Rest;
                } else if may_leave & enable {
                    state = ExceptionTxState::Send;
                }
            }
            ExceptionTxState::Send => {
                if fetch {
                    left = left - 1;
                    drain = drain + 1;
                    held = true;
                } else if m_axis.tready & held {
                    held = false;
                    owed = true;
                    owed_bytes = length.low::<14>();
                    state = ExceptionTxState::Rest;
                }
            }
            _ => {
                state = ExceptionTxState::Idle;
            }
        }
        class.setup = classes;
        class.valid = beat.valid & (state == ExceptionTxState::Take);
        class.place = fill.resize::<16>();
        class.data = beat.data;
        packet_class = class.packet_class;
        waits = matches!(state, ExceptionTxState::Wait | ExceptionTxState::Send);
        beats = left;
        ram.re = fetch;
        ram.raddr = drain;

        read.valid = (state == ExceptionTxState::AskHead) | (state == ExceptionTxState::Ask);
        read.payload.addr = addr;
        read.payload.len = asked;
        m_axis.tdata = ram.rdata;
        m_axis.tkeep = all;
        if is_last {
            m_axis.tkeep = last_keep;
        }
        m_axis.tlast = is_last;
        m_axis.tuser = false;
        m_axis.tvalid = held;
        sent = owed & !other;
        sent_bytes = owed_bytes;
        consumer = done;
        busy = setup.on | (state != ExceptionTxState::Idle) | done.any();
    }
}
