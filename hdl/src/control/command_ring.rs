//! Command ring: brings the entries of the ring one by one, and writes their completions.
//!
//! An entry of `CMD_BYTES` is read as one request; it stands at `entry` from `start` until the next `start`. The owner
//! carries it out and says `finish`, in any later cycle, with `status` and `value`; then the completion leaves as one
//! burst whose last beat holds the owner bit. An entry that cannot be read is not handed over: it is answered with
//! BAD_PARAM and all other fields 0. `cmd_ci` moves when the last beat of a completion is taken: the owner bit in host
//! memory, not CMD_CI, tells that a completion can be read.
//!
//! Bits 5:0 of both ring addresses are taken as 0. The phase is that of `ferroce_proto::abi::cmd::CmdCpl`.
//!
//! ```text
//!  Idle ─► Locate ─► Ask ─► Fetch ─► Execute (start ... finish) ─► Answer ─► Offer ─► Send ─► Idle
//! ```
use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl, status};

use super::unpack::Unpack;
use crate::bus::types::image::{self, CmdHead};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::prelude::*;

/// Bits of an entry.
pub const ENTRY_BITS: usize = 8 * CMD_BYTES;
const ENTRY_BYTES: u64 = CMD_BYTES as u64;
/// Log2 of the bytes of an entry and of a completion.
const ENTRY_SHIFT: u64 = CMD_BYTES.ilog2() as u64;
const CPL_SHIFT: u64 = CmdCpl::BYTES.ilog2() as u64;
const OK: u64 = status::OK as u64;
const BAD_PARAM: u64 = status::BAD_PARAM as u64;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum RingState {
    /// Waits for a command.
    Idle,
    /// Computes addresses.
    Locate,
    /// Asks for the entry.
    Ask,
    /// Takes the entry.
    Fetch,
    /// The owner carries it out.
    Execute,
    /// Composes the completion.
    Answer,
    /// Offers its burst.
    Offer,
    /// Sends its beats.
    Send,
}

/// Ring of commands and ring of completions on a memory bus of W bits = K bytes.
#[derive(LogicBlock)]
pub struct CommandRing<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A command may begin.
    pub enable: Signal<In, Bit>,
    /// Address of the command ring.
    pub cmd_base: Signal<In, Bits<64>>,
    /// Address of the completion ring.
    pub cpl_base: Signal<In, Bits<64>>,
    /// Log2 of the entries of both, 0 to 8.
    pub cmd_log_size: Signal<In, Bits<4>>,
    /// Producer index.
    pub cmd_pi: Signal<In, Bits<16>>,
    /// Commands answered, modulo 2^16.
    pub cmd_ci: Signal<Out, Bits<16>>,
    /// Read of an entry.
    pub read: StreamOut<ReadReq>,
    /// Its answer.
    pub beat: ReadBeatIn<W>,
    /// A new entry stands at `entry`; one cycle.
    pub start: Signal<Out, Bit>,
    /// The entry.
    pub entry: Signal<Out, Bits<ENTRY_BITS>>,
    /// It was carried out.
    pub finish: Signal<In, Bit>,
    /// With `finish`: result, see `cmd::status`.
    pub status: Signal<In, Bits<8>>,
    /// With `finish`: answer of a query.
    pub value: Signal<In, Bits<128>>,
    /// Burst of a completion.
    pub write: StreamOut<WriteCmd>,
    /// Its beats.
    pub beats: WriteBeatOut<W, K>,
    /// A command was answered; one cycle.
    pub done: Signal<Out, Bit>,
    /// With `done`: it failed.
    pub failed: Signal<Out, Bit>,

    state: Reg<RingState>,
    ci: Reg<Bits<16>>,
    slot: Dff<Bits<8>>,
    owner: Dff<Bit>,
    entry_addr: Dff<Bits<64>>,
    cpl_addr: Dff<Bits<64>>,
    word: Dff<Bits<ENTRY_BITS>>,
    unread: Dff<Bit>,
    starts: Reg<Bit>,
    head: Unpack<CmdHead>,
    verdict: Dff<Bits<8>>,
    answer: Dff<Bits<128>>,
    shift: Dff<Bits<512>>,
    left: Dff<Bits<3>>,
    done_q: Reg<Bit>,
    failed_q: Reg<Bit>,
    cmd_ring: Signal<Local, Bits<64>>,
    cpl_ring: Signal<Local, Bits<64>>,
    late: Signal<Local, Bits<ENTRY_BITS>>,
    cpl: Signal<Local, image::CmdCpl>,
    cpl_bits: Signal<Local, Bits<256>>,
    no_cpl: Zero<image::CmdCpl>,
    beat_bits: Constant<Bits<12>>,
    other_bits: Constant<Bits<12>>,
    beats_each: Constant<Bits<3>>,
    lower_half: Constant<Bits<K>>,
    upper_half: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> Default for CommandRing<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits, {K} bytes: 64, 128, 256 or 512 bits can be built"
        );
        let half = |upper: bool| {
            let strobe =
                |mask: Bits<K>, i| mask.replace_bit(i, K <= CmdCpl::BYTES || (i >= 32) == upper);
            Constant::new((0..K).fold(Bits::default(), strobe))
        };
        Self {
            clock: Default::default(),
            enable: Default::default(),
            cmd_base: Default::default(),
            cpl_base: Default::default(),
            cmd_log_size: Default::default(),
            cmd_pi: Default::default(),
            cmd_ci: Default::default(),
            read: Default::default(),
            beat: Default::default(),
            start: Default::default(),
            entry: Default::default(),
            finish: Default::default(),
            status: Default::default(),
            value: Default::default(),
            write: Default::default(),
            beats: Default::default(),
            done: Default::default(),
            failed: Default::default(),
            state: Default::default(),
            ci: Default::default(),
            slot: Default::default(),
            owner: Default::default(),
            entry_addr: Default::default(),
            cpl_addr: Default::default(),
            word: Default::default(),
            unread: Default::default(),
            starts: Default::default(),
            head: Default::default(),
            verdict: Default::default(),
            answer: Default::default(),
            shift: Default::default(),
            left: Default::default(),
            done_q: Default::default(),
            failed_q: Default::default(),
            cmd_ring: Default::default(),
            cpl_ring: Default::default(),
            late: Default::default(),
            cpl: Default::default(),
            cpl_bits: Default::default(),
            no_cpl: Default::default(),
            beat_bits: Constant::new((W as u64).to_bits()),
            other_bits: Constant::new(((ENTRY_BITS - W) as u64).to_bits()),
            beats_each: Constant::new(((CmdCpl::BYTES / K).max(1) as u64).to_bits()),
            lower_half: half(false),
            upper_half: half(true),
        }
    }
}

impl<const W: usize, const K: usize> Logic for CommandRing<W, K> {
    describe!(
        "command_ring",
        format!("w{W}"),
        "Reads the entries of the command ring and writes their completions.";
        ENTRY_BYTES, ENTRY_SHIFT, CPL_SHIFT, OK, BAD_PARAM
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, ci, slot, owner, entry_addr, cpl_addr, word, unread, starts,
            verdict, answer
        );
        dff_setup!(self, clock, shift, left, done_q, failed_q);
        self.starts.d.next = false;
        self.done_q.d.next = false;
        self.failed_q.d.next = false;

        // the entry shifts in from the top, so that its first byte ends in bits 7:0
        self.late.next = bit_cast::<ENTRY_BITS, W>(self.beat.data.val()) << self.other_bits.val();
        self.head.word.next = self.word.q.val().get_bits::<512>(0);

        // the completion
        self.cpl.next = self.no_cpl.val();
        if !self.unread.q.val() {
            self.cpl.next.token = self.head.image.val().token;
            self.cpl.next.opcode = self.head.image.val().opcode;
            self.cpl.next.index = self.head.image.val().index;
        }
        self.cpl.next.status = self.verdict.q.val();
        self.cpl.next.value = self.answer.q.val();
        self.cpl.next.owner = self.owner.q.val();
        self.cpl_bits.next = self.cpl.val().into();
        self.cmd_ring.next = (self.cmd_base.val() >> 6) << 6;
        self.cpl_ring.next = (self.cpl_base.val() >> 6) << 6;

        match self.state.q.val() {
            RingState::Idle => {
                self.slot.d.next = self.ci.q.val().get_bits::<8>(0)
                    & ((bits::<9>(1) << self.cmd_log_size.val()) - 1).get_bits::<8>(0);
                self.owner.d.next = !self.ci.q.val().get_bit(self.cmd_log_size.val().index());
                self.unread.d.next = false;
                if self.enable.val() & (self.ci.q.val() != self.cmd_pi.val()) {
                    self.state.d.next = RingState::Locate;
                }
            }
            RingState::Locate => {
                self.entry_addr.d.next =
                    self.cmd_ring.val() + (bit_cast::<64, 8>(self.slot.q.val()) << ENTRY_SHIFT);
                self.cpl_addr.d.next =
                    self.cpl_ring.val() + (bit_cast::<64, 8>(self.slot.q.val()) << CPL_SHIFT);
                self.state.d.next = RingState::Ask;
            }
            RingState::Ask => {
                if self.read.ready.val() {
                    self.state.d.next = RingState::Fetch;
                }
            }
            RingState::Fetch => {
                if self.beat.valid.val() {
                    self.word.d.next =
                        (self.word.q.val() >> self.beat_bits.val()) | self.late.val();
                    self.unread.d.next = self.unread.q.val() | self.beat.error.val();
                    if self.beat.last.val() {
                        self.state.d.next = RingState::Execute;
                        self.starts.d.next = !(self.unread.q.val() | self.beat.error.val());
                    }
                }
            }
            RingState::Execute => {
                self.verdict.d.next = self.status.val();
                self.answer.d.next = self.value.val();
                if self.unread.q.val() {
                    self.verdict.d.next = bits::<8>(BAD_PARAM);
                    self.answer.d.next = bits::<128>(0);
                }
                if self.unread.q.val() | self.finish.val() {
                    self.state.d.next = RingState::Answer;
                }
            }
            RingState::Answer => {
                // at W = 512 the strobes choose the half
                self.shift.d.next = (bit_cast::<512, 256>(self.cpl_bits.val()) << 256)
                    | bit_cast::<512, 256>(self.cpl_bits.val());
                self.left.d.next = self.beats_each.val();
                self.state.d.next = RingState::Offer;
            }
            RingState::Offer => {
                if self.write.ready.val() {
                    self.state.d.next = RingState::Send;
                }
            }
            // Send: beside a default that no state reaches each register bit would have an enable of its own
            _ => {
                if self.beats.ready.val() {
                    self.shift.d.next = self.shift.q.val() >> self.beat_bits.val();
                    self.left.d.next = self.left.q.val() - 1;
                    if self.left.q.val() == 1 {
                        self.ci.d.next = self.ci.q.val() + 1;
                        self.done_q.d.next = true;
                        self.failed_q.d.next = self.verdict.q.val() != OK;
                        self.state.d.next = RingState::Idle;
                    }
                }
            }
        }

        self.cmd_ci.next = self.ci.q.val();
        self.read.valid.next = self.state.q.val() == RingState::Ask;
        self.read.payload.next.addr = self.entry_addr.q.val();
        self.read.payload.next.len = bits::<13>(ENTRY_BYTES);
        self.start.next = self.starts.q.val();
        self.entry.next = self.word.q.val();
        self.write.valid.next = self.state.q.val() == RingState::Offer;
        self.write.payload.next.addr = self.cpl_addr.q.val();
        self.write.payload.next.len = bit_cast::<8, 3>(self.beats_each.val() - 1);
        self.beats.valid.next = self.state.q.val() == RingState::Send;
        self.beats.data.next = self.shift.q.val().get_bits::<W>(0);
        self.beats.last.next = self.left.q.val() == 1;
        self.beats.strb.next = self.lower_half.val();
        if self.cpl_addr.q.val().get_bit(5) {
            self.beats.strb.next = self.upper_half.val();
        }
        self.done.next = self.done_q.q.val();
        self.failed.next = self.failed_q.q.val();
    }
}
