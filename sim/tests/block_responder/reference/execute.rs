//! A request with the PSN expected: executed, refused, or answered by an RNR NAK.

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::{Opcode, Operation, Psn};

use super::{
    Message, Outcome, Packet, Rq, executed, is_atomic, length_fits, mtu, permitted, wants,
};

impl Rq {
    /// Executes a request, or refuses it.
    pub(super) fn expected(&mut self, p: &Packet, rkey_ok: bool, out: &mut Outcome) {
        let reliable = self.ctx.qp_type == qp_type::RC;
        let opcode = match executed(p) {
            Some(opcode) if self.is_valid(p, opcode) => opcode,
            _ => return self.refuse(p, 0x61, event::QP_REQ_ERR, "invalid_request_errors", out),
        };
        let write = opcode.operation() == Operation::Write;
        if wants(p).is_some() && !rkey_ok {
            return self.refuse(p, 0x62, event::QP_ACCESS_ERR, "access_errors", out);
        }
        if !matches!(opcode.operation(), Operation::Send | Operation::Write) {
            return self.ask(p, opcode, out);
        }
        let takes = if write {
            opcode.has_imm()
        } else {
            opcode.is_start()
        };
        let fresh = takes && self.unused.is_none();
        let taken = if takes { self.take() } else { None };
        if takes && taken.is_none() && !reliable {
            self.abandon();
            out.place = self.place(p, 0, vec![], None);
            return;
        }
        if takes && taken.is_none() {
            out.counts.push("rnr_nak_sent");
            self.nak_sent = true;
            let syndrome = 0x20 | u64::from(self.ctx.min_rnr_timer);
            out.place = self.place(p, 0, vec![], Some((self.psn, syndrome)));
            return;
        }
        self.nak_sent = false;
        self.establish(out);
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
            recv: None,
        });
        // A SEND takes its receive WQE with its first packet.
        message.recv = taken.or(message.recv);
        let wqe = message.recv.unwrap_or(0);
        let completes = opcode.is_end() && (!write || opcode.has_imm());
        if !write || completes && self.ctx.srq_valid {
            out.read = Some(self.wqe_read(wqe, [fresh, !write, completes]));
        }
        let expected = self.psn;
        if reliable {
            self.psn = Psn::new(self.psn).next().value();
        }
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
                fields = vec![("pd", self.list_pd().into())];
                fields.push(("offset", message.done.into()));
                fields.push(("key", self.ctx.pd.into()));
                2
            }
        };
        message.done += p.plen;
        if completes {
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
                ("numbered", self.ctx.srq_valid.into()),
                ("byte_len", message.done.into()),
                ("with_imm", opcode.has_imm().into()),
                ("with_inv", opcode.has_ieth().into()),
                ("solicited", p.solicited.into()),
                ("src_qpn", 0),
                ("pkey", 0),
                ("grh", 0),
            ]);
            if opcode.has_imm() || opcode.has_ieth() {
                fields.push(("imm", p.imm.into()));
            }
        }
        fields.push(("end", opcode.is_end().into()));
        if kind != 0 {
            fields.push(("unreliable", (!reliable).into()));
            fields.push(("incarnation", self.incarnation.into()));
        }
        if kind != 0 && reliable {
            // for the NAK of a placement that fails
            fields.extend([("psn", expected.into()), ("msn", self.msn.into())]);
        }
        let ack = (reliable && p.ack_req).then_some((expected, 0x1f));
        out.place = self.place(p, kind, fields, ack);
        if !opcode.is_end() {
            self.message = Some(message);
        }
    }

    /// A READ or atomic is to be answered.
    fn ask(&mut self, p: &Packet, opcode: Opcode, out: &mut Outcome) {
        let packets = self.packets(p, opcode);
        out.counts.push(if is_atomic(opcode) {
            "rx_atomic_requests"
        } else {
            "rx_read_requests"
        });
        self.nak_sent = false;
        self.establish(out);
        self.asked = Some(p.psn);
        self.psn = Psn::new(self.psn).add(packets).value();
        self.msn = (self.msn + 1) & 0xff_ffff;
        self.replies += 1;
        out.reply = Some(self.answer(p, opcode, false));
        let runs = is_atomic(opcode).into();
        out.place = self.place(p, 0, vec![("reply", 1), ("runs", runs)], None);
    }

    /// Protection domain of the lists of receive WQEs.
    pub(super) fn list_pd(&self) -> u32 {
        if self.ctx.srq_valid {
            self.srqs.get(self.ctx.srqn).ctx.pd
        } else {
            self.ctx.pd
        }
    }

    /// What is to be read of the receive WQE of ordinal `index`. It is taken now or was before, its list is wanted or not,
    /// and it completes or not.
    pub(crate) fn wqe_read(
        &self,
        index: u16,
        [takes, list, completes]: [bool; 3],
    ) -> Vec<(&'static str, u64)> {
        let rq = &self.ctx;
        let entry = |log: u8| u64::from(index) & ((1 << log) - 1);
        let shape = |stride: u8| [("slots", 1 << stride), ("head", 1 << stride)];
        let mut fields = vec![
            ("list", u64::from(list)),
            ("shared", rq.srq_valid.into()),
            ("numbered", (rq.srq_valid && completes).into()),
        ];
        if !rq.srq_valid {
            let addr = rq
                .rq_base
                .wrapping_add(entry(rq.rq_log) << (6 + rq.rq_stride));
            fields.push(("addr", addr));
            fields.extend(shape(rq.rq_stride));
            return fields;
        }
        let srq = self.srqs.get(rq.srqn).ctx;
        fields.extend([("qpn", self.qpn.into()), ("takes", takes.into())]);
        if takes {
            let addr = srq.numbers.wrapping_add(entry(srq.log_size) << 1);
            fields.extend([("addr", addr), ("log", srq.log_size.into())]);
        }
        if list {
            fields.push(("base", srq.base));
            fields.extend(shape(srq.stride));
        }
        fields
    }

    /// PSNs that a request takes.
    fn packets(&self, p: &Packet, opcode: Opcode) -> u32 {
        if opcode.operation() == Operation::ReadRequest {
            p.dma_len.div_ceil(mtu(&self.ctx)).max(1)
        } else {
            1
        }
    }

    /// A READ or atomic that was executed before, if it is answered again.
    pub(super) fn answer_again(
        &self,
        p: &Packet,
        opcode: Opcode,
    ) -> Option<Vec<(&'static str, u64)>> {
        let executed = self.psn.wrapping_sub(p.psn) & 0xff_ffff;
        let again = match opcode.operation() {
            Operation::ReadRequest => {
                self.ctx.remote_read && p.dma_len <= MAX_MSG && self.packets(p, opcode) <= executed
            }
            _ => is_atomic(opcode),
        };
        again.then(|| self.answer(p, opcode, true))
    }

    fn answer(&self, p: &Packet, opcode: Opcode, again: bool) -> Vec<(&'static str, u64)> {
        let mut fields = vec![
            ("qpn", p.qpn.into()),
            ("incarnation", self.incarnation.into()),
            ("atomic", is_atomic(opcode).into()),
            ("duplicate", again.into()),
            ("psn", p.psn.into()),
            ("msn", self.msn.into()),
            ("mtu", self.ctx.mtu.into()),
            ("pd", self.ctx.pd.into()),
            ("va", p.ext),
            ("rkey", p.rkey.into()),
        ];
        if is_atomic(opcode) {
            let [swap_add, compare] = p.atomic_operands();
            fields.extend([("swap_add", swap_add), ("compare", compare)]);
            fields.push(("add", (opcode.operation() == Operation::FetchAdd).into()));
        } else {
            fields.push(("len", p.dma_len.into()));
        }
        fields
    }

    /// Order of opcodes, rights and lengths; how many READs and atomics there are.
    fn is_valid(&self, p: &Packet, opcode: Opcode) -> bool {
        let write = opcode.operation() == Operation::Write;
        let in_order = match &self.message {
            None => opcode.is_start(),
            Some(message) => !opcode.is_start() && message.write == write,
        };
        if is_atomic(opcode) || opcode.operation() == Operation::ReadRequest {
            let form = if is_atomic(opcode) {
                p.ext.is_multiple_of(8)
            } else {
                p.dma_len <= MAX_MSG
            };
            return in_order
                && form
                && permitted(&self.ctx, opcode)
                && self.replies < self.ctx.max_dest_rd_atomic;
        }
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
            && permitted(&self.ctx, opcode)
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
        if self.ctx.qp_type != qp_type::RC {
            self.abandon();
            out.place = self.place(p, 0, vec![], None);
            return;
        }
        out.place = self.place(p, 0, vec![], Some((self.psn, nak)));
        out.failure = Some((event, status::GENERAL_ERR));
        self.fail();
    }
}
