//! Transmit side of the exception queue: frames from the slots of a ring in host memory to the wire.
//!
//! One frame at a time: its head is read, then the frame, in reads of at most 4096 bytes, into a buffer that holds the
//! longest one; then it leaves, a beat a cycle, without a pause of this block's. A slot whose length is not that of a
//! frame (14 bytes up to what a slot holds), or that cannot be read, is passed over.
//!
//! `consumer` counts the slots that are read or passed over; it moves before the frame leaves, so that the host may
//! fill the slot again. When the queue is turned off the frame under way still leaves; then the count goes to 0 and
//! `busy` is 0. Frames start only while `enable` is 1.
//!
//! `sent` tells of a frame in a cycle in which `other` is 0, so that both can count into one counter that takes one frame
//! a cycle: the next frame waits for such a cycle, which comes because this one took the wire from others.
//!
//! The buffer has 2^A beats, at least those of 16 KiB. A frame takes two round trips of reads, twice its beats and 12
//! cycles.

use ferroce_proto::abi::exception::{LARGE_SLOT_BYTES, MIN_FRAME};

use super::exception_types::{
    ExceptionSetup, HEAD_BYTES, LARGE_SLOT_SHIFT, LONGEST, LONGEST_LARGE, SLOT_SHIFT,
};
use crate::bus::types::ReadReq;
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
    /// Sends the frame.
    Send,
    /// Lets comparisons catch up.
    Rest,
}

/// The block.
#[derive(Clone, Debug, LogicBlock)]
pub struct ExceptionTx<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ExceptionSetup>,
    /// Frames may start.
    pub enable: Signal<In, Bit>,
    /// Reads.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Frames.
    pub m_axis: AxisOut<W, K>,
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

    ram: Ram<Bits<W>, A>,
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

    slots: Signal<Local, Bits<16>>,
    /// Slots less one.
    mask: Signal<Local, Bits<16>>,
    index: Signal<Local, Bits<23>>,
    longest: Signal<Local, Bits<16>>,
    fetch: Signal<Local, Bit>,
    is_last: Signal<Local, Bit>,
    /// Of the last byte.
    last_lane: Signal<Local, Bits<16>>,
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

impl<const W: usize, const K: usize, const A: usize> Default for ExceptionTx<W, K, A> {
    fn default() -> Self {
        assert!(
            A < 16 && K << A >= LARGE_SLOT_BYTES,
            "a buffer of 2^{A} beats of {K} bytes: {LARGE_SLOT_BYTES} bytes are needed"
        );
        Self {
            clock: Default::default(),
            setup: Default::default(),
            enable: Default::default(),
            read: Default::default(),
            beat: Default::default(),
            m_axis: Default::default(),
            other: Default::default(),
            sent: Default::default(),
            sent_bytes: Default::default(),
            consumer: Default::default(),
            busy: Default::default(),
            ram: Ram::new(Style::Block),
            state: Reg::new(ExceptionTxState::Idle),
            done: Default::default(),
            posted: Default::default(),
            offset: Default::default(),
            addr: Default::default(),
            length: Default::default(),
            rest: Default::default(),
            asked: Default::default(),
            failed: Default::default(),
            fill: Default::default(),
            drain: Default::default(),
            left: Default::default(),
            last_keep: Default::default(),
            held: Default::default(),
            owed: Default::default(),
            owed_bytes: Default::default(),
            slots: Default::default(),
            mask: Default::default(),
            index: Default::default(),
            longest: Default::default(),
            fetch: Default::default(),
            is_last: Default::default(),
            last_lane: Default::default(),
            all: Constant::new(
                (0..K).fold(Bits::default(), |m: Bits<K>, i| m.replace_bit(i, true)),
            ),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for ExceptionTx<W, K, A> {
    describe!(
        "exception_tx",
        format!("w{W}_{}", 1usize << A),
        "Frames from the slots of a ring in host memory to the wire.";
        HEAD_BYTES, LONGEST, LONGEST_LARGE, SLOT_SHIFT, LARGE_SLOT_SHIFT, PART, SHORTEST, HEAD_READ,
        Self::LOG_K, Self::MORE
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram);
        dff_setup!(
            self, clock, state, done, posted, offset, addr, length, rest, asked, failed, fill,
            drain, left, last_keep
        );
        dff_setup!(self, clock, held, owed, owed_bytes);

        // the ring behind that for received frames
        self.slots.next = bits::<16>(1) << self.setup.val().log_slots;
        self.mask.next = !(bits::<16>(0xffff) << self.setup.val().log_slots);
        self.index.next =
            bit_cast::<23, 16>((self.done.q.val() & self.mask.val()) | self.slots.val());
        self.posted.d.next = self.setup.val().tx_producer != self.done.q.val();
        self.longest.next = bits::<16>(LONGEST);
        if self.setup.val().large {
            self.longest.next = bits::<16>(LONGEST_LARGE);
        }
        if self.owed.q.val() & !self.other.val() {
            self.owed.d.next = false;
        }

        self.ram.we.next = false;
        self.ram.waddr.next = self.fill.q.val();
        self.ram.wdata.next = self.beat.data.val();
        self.is_last.next = !self.left.q.val().any();
        self.last_lane.next = (self.length.q.val() - 1) & Self::MORE;
        self.fetch.next = (self.state.q.val() == ExceptionTxState::Send)
            & self.left.q.val().any()
            & (self.m_axis.tready.val() | !self.held.q.val());
        match self.state.q.val() {
            ExceptionTxState::Idle => {
                self.failed.d.next = false;
                self.fill.d.next = bits::<A>(0);
                self.drain.d.next = bits::<A>(0);
                if !self.setup.val().on {
                    self.done.d.next = bits::<16>(0);
                } else if self.posted.q.val() & self.enable.val() & !self.owed.q.val() {
                    self.state.d.next = ExceptionTxState::Locate;
                }
            }
            ExceptionTxState::Locate => {
                self.offset.d.next = self.index.val() << SLOT_SHIFT;
                if self.setup.val().large {
                    self.offset.d.next = self.index.val() << LARGE_SLOT_SHIFT;
                }
                self.state.d.next = ExceptionTxState::Place;
            }
            ExceptionTxState::Place => {
                self.addr.d.next = self.setup.val().base + bit_cast::<64, 23>(self.offset.q.val());
                self.asked.d.next = bits::<13>(HEAD_READ);
                self.state.d.next = ExceptionTxState::AskHead;
            }
            ExceptionTxState::AskHead => {
                if self.read.ready.val() {
                    self.state.d.next = ExceptionTxState::TakeHead;
                }
            }
            ExceptionTxState::TakeHead => {
                self.length.d.next = self.beat.data.val().get_bits::<16>(0);
                if self.beat.valid.val() {
                    self.failed.d.next = self.beat.error.val();
                    self.state.d.next = ExceptionTxState::Check;
                }
            }
            ExceptionTxState::Check => {
                self.addr.d.next = self.addr.q.val() | HEAD_BYTES;
                self.rest.d.next = self.length.q.val();
                self.asked.d.next = bit_cast::<13, 16>(self.length.q.val());
                if self.length.q.val() > PART {
                    self.asked.d.next = bits::<13>(PART);
                }
                self.left.d.next =
                    bit_cast::<13, 16>((self.length.q.val() + Self::MORE) >> Self::LOG_K);
                self.last_keep.d.next = !((self.all.val() << 1) << self.last_lane.val());
                self.state.d.next = ExceptionTxState::Ask;
                if self.failed.q.val()
                    | (self.length.q.val() < SHORTEST)
                    | (self.length.q.val() > self.longest.val())
                {
                    self.failed.d.next = true;
                    self.state.d.next = ExceptionTxState::Give;
                }
            }
            ExceptionTxState::Ask => {
                if self.read.ready.val() {
                    self.rest.d.next = self.rest.q.val() - bit_cast::<16, 13>(self.asked.q.val());
                    self.addr.d.next = self.addr.q.val() + PART;
                    self.state.d.next = ExceptionTxState::Take;
                }
            }
            ExceptionTxState::Take => {
                self.asked.d.next = bit_cast::<13, 16>(self.rest.q.val());
                if self.rest.q.val() > PART {
                    self.asked.d.next = bits::<13>(PART);
                }
                self.ram.we.next = self.beat.valid.val();
                if self.beat.valid.val() {
                    self.fill.d.next = self.fill.q.val() + 1;
                    if self.beat.error.val() {
                        self.failed.d.next = true;
                    }
                    if self.beat.last.val() {
                        self.state.d.next = ExceptionTxState::Ask;
                        if !self.rest.q.val().any() {
                            self.state.d.next = ExceptionTxState::Give;
                        }
                    }
                }
            }
            ExceptionTxState::Give => {
                self.done.d.next = self.done.q.val() + 1;
                self.state.d.next = ExceptionTxState::Send;
                if self.failed.q.val() {
                    self.state.d.next = ExceptionTxState::Rest;
                }
            }
            ExceptionTxState::Send => {
                if self.fetch.val() {
                    self.left.d.next = self.left.q.val() - 1;
                    self.drain.d.next = self.drain.q.val() + 1;
                    self.held.d.next = true;
                } else if self.m_axis.tready.val() & self.held.q.val() {
                    self.held.d.next = false;
                    self.owed.d.next = true;
                    self.owed_bytes.d.next = self.length.q.val().get_bits::<14>(0);
                    self.state.d.next = ExceptionTxState::Rest;
                }
            }
            _ => {
                self.state.d.next = ExceptionTxState::Idle;
            }
        }
        self.ram.re.next = self.fetch.val();
        self.ram.raddr.next = self.drain.q.val();

        self.read.valid.next = (self.state.q.val() == ExceptionTxState::AskHead)
            | (self.state.q.val() == ExceptionTxState::Ask);
        self.read.payload.next.addr = self.addr.q.val();
        self.read.payload.next.len = self.asked.q.val();
        self.m_axis.tdata.next = self.ram.rdata.val();
        self.m_axis.tkeep.next = self.all.val();
        if self.is_last.val() {
            self.m_axis.tkeep.next = self.last_keep.q.val();
        }
        self.m_axis.tlast.next = self.is_last.val();
        self.m_axis.tuser.next = false;
        self.m_axis.tvalid.next = self.held.q.val();
        self.sent.next = self.owed.q.val() & !self.other.val();
        self.sent_bytes.next = self.owed_bytes.q.val();
        self.consumer.next = self.done.q.val();
        self.busy.next = self.setup.val().on
            | (self.state.q.val() != ExceptionTxState::Idle)
            | self.done.q.val().any();
    }
}
