//! Command ring: brings the entries of the ring one by one, and writes their completions.
//!
//! An entry of `CMD_BYTES` is read as one request; it stands at `entry` from `start` until the next `start`. The owner
//! carries it out and says `finish`, in any later cycle, with `status` and `value`; then the completion leaves as one
//! burst whose last beat holds the owner bit. An entry that cannot be read is not handed over: it is answered with
//! BAD_PARAM and all other fields 0. `done` comes when the last beat of a completion is taken; CMD_CI counts those that are in host memory.
//!
//! Bits 5:0 of both ring addresses are taken as 0. The phase is that of `ferroce_proto::abi::cmd::CmdCpl`.
//!
//! ```text
//!  Idle ─► Locate ─► Ask ─► Fetch ─► Execute (start ... finish) ─► Answer ─► Offer ─► Send ─► Idle
//! ```
use ferroce_proto::abi::cmd::status::{BAD_PARAM, OK};
use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl};

use crate::bus::types::image::{self, CmdHead};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::bus::unpack::Unpack;
use crate::prelude::*;

/// Bits of an entry.
pub const ENTRY_BITS: usize = 8 * CMD_BYTES;
const ENTRY_BYTES: u64 = CMD_BYTES as u64;
/// Log2 of the bytes of an entry and of a completion.
const ENTRY_SHIFT: u64 = CMD_BYTES.ilog2() as u64;
const CPL_SHIFT: u64 = CmdCpl::BYTES.ilog2() as u64;

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
#[derive(Block)]
#[block(check)]
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
    result: Dff<Bits<8>>,
    answer: Dff<Bits<128>>,
    shift: Dff<Bits<512>>,
    left: Dff<Bits<3>>,
    done_q: Reg<Bit>,
    failed_q: Reg<Bit>,
    no_cpl: Zero<image::CmdCpl>,
    #[init(Constant::new((W as u64).to_bits()))]
    beat_bits: Constant<Bits<12>>,
    #[init(Constant::new(((ENTRY_BITS - W) as u64).to_bits()))]
    other_bits: Constant<Bits<12>>,
    #[init(Constant::new(((CmdCpl::BYTES / K).max(1) as u64).to_bits()))]
    beats_each: Constant<Bits<3>>,
    #[init(Self::half(false))]
    lower_half: Constant<Bits<K>>,
    #[init(Self::half(true))]
    upper_half: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> CommandRing<W, K> {
    fn check() {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits, {K} bytes: 64, 128, 256 or 512 bits can be built"
        );
    }

    /// Strobes of a completion in the upper or lower half of a beat.
    fn half(upper: bool) -> Constant<Bits<K>> {
        let strobe =
            |mask: Bits<K>, i| mask.replace_bit(i, K <= CmdCpl::BYTES || (i >= 32) == upper);
        Constant::new((0..K).fold(Bits::default(), strobe))
    }
}

impl<const W: usize, const K: usize> Logic for CommandRing<W, K> {
    describe!(
        "command_ring",
        format!("w{W}"),
        "Reads the entries of the command ring and writes their completions."
    );

    #[kernel]
    fn update(&mut self) {
        starts = false;
        done_q = false;
        failed_q = false;

        // the entry shifts in from the top, so that its first byte ends in bits 7:0
        let late = beat.data.resize::<ENTRY_BITS>() << other_bits;
        head.word = word.low::<512>();

        // the completion
        let mut cpl = no_cpl;
        if !unread {
            copy!(cpl <= head.image; token, opcode, index);
        }
        cpl.status = result;
        cpl.value = answer;
        cpl.owner = owner;
        let cpl_bits: Bits<256> = cpl.into();
        let cmd_ring = (cmd_base >> 6) << 6;
        let cpl_ring = (cpl_base >> 6) << 6;

        match state {
            RingState::Idle => {
                slot = ci.low::<8>() & ((bits::<9>(1) << cmd_log_size) - 1).low::<8>();
                owner = !ci.bit(cmd_log_size);
                unread = false;
                if enable & (ci != cmd_pi) {
                    state = RingState::Locate;
                }
            }
            RingState::Locate => {
                entry_addr = cmd_ring + (slot.resize::<64>() << ENTRY_SHIFT);
                cpl_addr = cpl_ring + (slot.resize::<64>() << CPL_SHIFT);
                state = RingState::Ask;
            }
            RingState::Ask => {
                if read.ready {
                    state = RingState::Fetch;
                }
            }
            RingState::Fetch => {
                if beat.valid {
                    word = (word >> beat_bits) | late;
                    unread = unread | beat.error;
                    if beat.last {
                        state = RingState::Execute;
                        starts = !(unread | beat.error);
                    }
                }
            }
            RingState::Execute => {
                result = status;
                answer = value;
                if unread {
                    result = bits::<8>(BAD_PARAM);
                    answer = bits::<128>(0);
                }
                if unread | finish {
                    state = RingState::Answer;
                }
            }
            RingState::Answer => {
                // at W = 512 the strobes choose the half
                shift = (cpl_bits.resize::<512>() << 256) | cpl_bits.resize::<512>();
                left = beats_each;
                state = RingState::Offer;
            }
            RingState::Offer => {
                if write.ready {
                    state = RingState::Send;
                }
            }
            // Send: beside a default that no state reaches each register bit would have an enable of its own
            _ => {
                if beats.ready {
                    shift = shift >> beat_bits;
                    left = left - 1;
                    if left == 1 {
                        ci = ci + 1;
                        done_q = true;
                        failed_q = result != OK;
                        state = RingState::Idle;
                    }
                }
            }
        }

        read.valid = state == RingState::Ask;
        read.payload.addr = entry_addr;
        read.payload.len = bits::<13>(ENTRY_BYTES);
        start = starts;
        entry = word;
        write.valid = state == RingState::Offer;
        write.payload.addr = cpl_addr;
        write.payload.len = (beats_each - 1).resize::<8>();
        beats.valid = state == RingState::Send;
        beats.data = shift.low::<W>();
        beats.last = left == 1;
        beats.strb = lower_half;
        if cpl_addr.bit(5) {
            beats.strb = upper_half;
        }
        done = done_q;
        failed = failed_q;
    }
}
