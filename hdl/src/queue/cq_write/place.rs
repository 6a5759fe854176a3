//! Place: a completion as the next entry of its ring, on its way to host memory.
//!
//! Takes a completion in any cycle in which `room` was 1 four cycles before. Latency: 5 cycles from `valid` to
//! `write.valid`. Rate: a completion in 2 cycles, in 4 at W = 64.
use super::sender::CqSender;
use super::types::CqEntry;
use crate::bus::types::image::{CqCtx, Cqe};
use crate::bus::types::{CqToken, WriteCmd, if_there};
use crate::prelude::*;

/// Entries on a data path of `W` bits = `K` bytes.
#[derive(Block)]
pub struct CqPlace<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A completion is to be written.
    pub valid: Signal<In, Bit>,
    /// The completion.
    pub token: Signal<In, CqToken>,
    /// Its queue.
    pub image: Signal<In, CqCtx>,
    /// Size of the ring less one.
    pub mask: Signal<In, Bits<24>>,
    /// Entries written before.
    pub written: Signal<In, Bits<24>>,
    /// CQE bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Completions can be taken.
    pub room: Signal<Out, Bit>,
    /// Entries are on their way.
    pub busy: Signal<Out, Bit>,
    /// No fewer are.
    pub level: Signal<Out, Bits<16>>,

    entries: Fifo<CqEntry, 4>,
    sender: CqSender<W, K>,
    // stage W: the place in the ring
    w_valid: Reg<Bit>,
    w_token: Dff<CqToken>,
    w_base: Dff<Bits<64>>,
    w_place: Dff<Bits<24>>,
    w_owner: Dff<Bit>,
    no_cqe: Zero<Cqe>,
    // stage V: the entry
    v_valid: Reg<Bit>,
    v_entry: Dff<CqEntry>,
}

impl<const W: usize, const K: usize> Logic for CqPlace<W, K> {
    describe!(
        "cq_place",
        format!("w{W}"),
        "Writes completions as the next entries of their rings."
    );

    #[kernel]
    fn update(&mut self) {
        room = !entries.level.slice::<2>(3).any();

        // stage W
        w_valid = valid;
        w_token = token;
        w_base = image.base;
        w_place = written & mask;
        w_owner = !written.bit(image.log_size);

        // stage V
        let mut cqe = no_cqe;
        cqe.qpn = w_token.qpn.resize::<24>();
        copy!(cqe <= w_token;
            opcode, wqe_index, byte_len, imm, status, vendor_err, with_imm, with_inv, src_qpn, pkey,
            grh, solicited, recv);
        cqe.owner = w_owner;
        v_valid = w_valid;
        v_entry.addr = w_base + (w_place.resize::<64>() << 5);
        v_entry.cqe = cqe.into();
        entries.s.valid = v_valid;
        entries.s.payload = v_entry;
        forward!(sender.s <= entries.m);
        forward!(write <= sender.write);
        forward!(beats <= sender.beats);
        let few = if_there(w_valid | v_valid | sender.write.valid, bits::<16>(3));
        level = entries.level + few;
        busy = w_valid | v_valid | entries.level.any() | sender.write.valid | sender.beats.valid;
    }
}
