//! Place: a completion as the next entry of its ring, on its way to host memory.
//!
//! Takes a completion in any cycle in which `room` was 1 four cycles before. Latency: 5 cycles from `valid` to
//! `write.valid`. Rate: a completion in 2 cycles, in 4 at W = 64.
use super::sender::CqSender;
use super::types::CqEntry;
use crate::bus::types::image::{CqCtx, Cqe};
use crate::bus::types::{CqToken, WriteCmd};
use crate::prelude::*;

/// Entries on a data path of `W` bits = `K` bytes.
#[derive(LogicBlock, Default)]
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

    entries: Fifo<CqEntry, 4>,
    sender: CqSender<W, K>,
    // stage W: the place in the ring
    w_valid: Reg<Bit>,
    w_token: Dff<CqToken>,
    w_base: Dff<Bits<64>>,
    w_place: Dff<Bits<24>>,
    w_owner: Dff<Bit>,
    cqe: Signal<Local, Cqe>,
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

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, entries, sender);
        dff_setup!(self, clock, w_valid, w_token, w_base, w_place, w_owner);
        dff_setup!(self, clock, v_valid, v_entry);
        self.room.next = !self.entries.level.val().get_bits::<2>(3).any();

        // stage W
        self.w_valid.d.next = self.valid.val();
        self.w_token.d.next = self.token.val();
        self.w_base.d.next = self.image.val().base;
        self.w_place.d.next = self.written.val() & self.mask.val();
        self.w_owner.d.next = !self
            .written
            .val()
            .get_bit(self.image.val().log_size.index());

        // stage V
        self.cqe.next = self.no_cqe.val();
        self.cqe.next.qpn = bit_cast::<24, 16>(self.w_token.q.val().qpn);
        self.cqe.next.opcode = self.w_token.q.val().opcode;
        self.cqe.next.wqe_index = self.w_token.q.val().wqe_index;
        self.cqe.next.byte_len = self.w_token.q.val().byte_len;
        self.cqe.next.imm = self.w_token.q.val().imm;
        self.cqe.next.status = self.w_token.q.val().status;
        self.cqe.next.vendor_err = self.w_token.q.val().vendor_err;
        self.cqe.next.with_imm = self.w_token.q.val().with_imm;
        self.cqe.next.with_inv = self.w_token.q.val().with_inv;
        self.cqe.next.src_qpn = self.w_token.q.val().src_qpn;
        self.cqe.next.pkey = self.w_token.q.val().pkey;
        self.cqe.next.grh = self.w_token.q.val().grh;
        self.cqe.next.solicited = self.w_token.q.val().solicited;
        self.cqe.next.recv = self.w_token.q.val().recv;
        self.cqe.next.owner = self.w_owner.q.val();
        self.v_valid.d.next = self.w_valid.q.val();
        self.v_entry.d.next.addr =
            self.w_base.q.val() + (bit_cast::<64, 24>(self.w_place.q.val()) << 5);
        self.v_entry.d.next.cqe = self.cqe.val().into();
        self.entries.s.valid.next = self.v_valid.q.val();
        self.entries.s.payload.next = self.v_entry.q.val();
        StreamOut::<CqEntry>::join(&mut self.entries.m, &mut self.sender.s);
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.sender.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.sender.beats);
        self.busy.next = self.w_valid.q.val()
            | self.v_valid.q.val()
            | self.entries.level.val().any()
            | self.sender.write.valid.val()
            | self.sender.beats.valid.val();
    }
}
