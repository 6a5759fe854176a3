//! A request with the PSN expected: executed, refused, or answered by an RNR NAK.

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::{Opcode, Operation, Psn};

use super::{Message, Outcome, Packet, Rq, executed, length_fits};

impl Rq {
    pub(super) fn expected(&mut self, p: &Packet, rkey_ok: bool, out: &mut Outcome) {
        let opcode = match executed(p) {
            Some(opcode) if self.is_valid(p, opcode) => opcode,
            _ => return self.refuse(p, 0x61, event::QP_REQ_ERR, "invalid_request_errors", out),
        };
        let write = opcode.operation() == Operation::Write;
        if write && opcode.is_start() && !rkey_ok {
            return self.refuse(p, 0x62, event::QP_ACCESS_ERR, "access_errors", out);
        }
        let takes = if write {
            opcode.has_imm()
        } else {
            opcode.is_start()
        };
        if takes && self.producer == self.index {
            out.counts.push("rnr_nak_sent");
            self.silent = true;
            let syndrome = 0x20 | u64::from(self.ctx.min_rnr_timer);
            out.place = self.place(p, 0, vec![], Some((self.psn, syndrome)));
            return;
        }
        self.silent = false;
        if opcode.is_start() {
            out.counts.push(if write {
                "rx_write_requests"
            } else {
                "rx_send_requests"
            });
        }
        let mut message = self.message.take().unwrap_or(Message {
            write,
            va: p.ext,
            rkey: p.rkey,
            length: p.dma_len,
            done: 0,
        });
        // A SEND took its receive WQE with its first packet.
        let wqe = if write || opcode.is_start() {
            self.index
        } else {
            self.index.wrapping_sub(1)
        };
        let expected = self.psn;
        self.psn = Psn::new(self.psn).next().value();
        self.index = self.index.wrapping_add(takes.into());
        self.msn = (self.msn + u32::from(opcode.is_end())) & 0xff_ffff;
        let mut fields = vec![("pd", u64::from(self.ctx.pd))];
        let kind = match (write, p.plen) {
            (true, 0) => 0,
            (true, _) => {
                let addr = message.va.wrapping_add(message.done.into());
                fields.extend([("addr", addr), ("key", message.rkey.into())]);
                1
            }
            (false, _) => {
                let entry = u64::from(wqe) & ((1 << self.ctx.rq_log) - 1);
                let addr = self
                    .ctx
                    .rq_base
                    .wrapping_add(entry << (6 + self.ctx.rq_stride));
                fields.extend([("addr", addr), ("offset", message.done.into())]);
                out.read = Some((addr, self.ctx.rq_stride.into()));
                2
            }
        };
        message.done += p.plen;
        if opcode.is_end() && (!write || opcode.has_imm()) {
            let opcode_of_cqe = if write {
                cqe_opcode::RECV_WRITE_IMM
            } else {
                cqe_opcode::RECV
            };
            fields.extend([
                ("complete", 1),
                ("cqn", self.ctx.cqn.into()),
                ("cqe_opcode", opcode_of_cqe.into()),
                ("status", 0),
                ("wqe_index", wqe.into()),
                ("byte_len", message.done.into()),
                ("with_imm", opcode.has_imm().into()),
                ("with_inv", 0),
                ("solicited", p.solicited.into()),
            ]);
            if opcode.has_imm() {
                fields.push(("imm", p.imm.into()));
            }
        }
        fields.push(("end", opcode.is_end().into()));
        if kind != 0 {
            // for the NAK of a placement that fails
            fields.extend([("psn", expected.into()), ("msn", self.msn.into())]);
            fields.push(("incarnation", self.incarnation.into()));
        }
        out.place = self.place(p, kind, fields, p.ack_req.then_some((expected, 0x1f)));
        if !opcode.is_end() {
            self.message = Some(message);
        }
    }

    /// Order of opcodes, rights and lengths.
    fn is_valid(&self, p: &Packet, opcode: Opcode) -> bool {
        let write = opcode.operation() == Operation::Write;
        let in_order = match &self.message {
            None => opcode.is_start(),
            Some(message) => !opcode.is_start() && message.write == write,
        };
        let (length, done) = match &self.message {
            Some(message) if !opcode.is_start() => (message.length, message.done),
            _ => (p.dma_len, 0),
        };
        let received = u64::from(done) + u64::from(p.plen);
        let sum_fits = match (write, opcode.is_end()) {
            (false, _) => received <= u64::from(MAX_MSG),
            (true, true) => received == u64::from(length),
            (true, false) => received < u64::from(length) && length <= MAX_MSG,
        };
        in_order
            && (!write || self.ctx.remote_write)
            && length_fits(&self.ctx, p, opcode.position())
            && sum_fits
    }

    fn refuse(
        &mut self,
        p: &Packet,
        nak: u64,
        event: u8,
        counter: &'static str,
        out: &mut Outcome,
    ) {
        out.counts.push(counter);
        out.place = self.place(p, 0, vec![], Some((self.psn, nak)));
        out.failure = Some((event, status::GENERAL_ERR));
        self.fail();
    }
}
