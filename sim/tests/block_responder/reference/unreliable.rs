//! UC and UD: nothing is answered; what is wrong ends the message under way (IBA vol. 1, 9.8.2, 9.8.3).

use ferroce_proto::abi::cq::opcode as cqe_opcode;
use ferroce_proto::wire::{Opcode, Psn};

use super::{Message, Outcome, Packet, Rq, executed, mtu};

impl Rq {
    /// A packet of UC.
    pub(super) fn unreliable(&mut self, p: &Packet, rkey_ok: bool, out: &mut Outcome) {
        let starts = Opcode::from_code(p.opcode).is_some_and(Opcode::is_start);
        let in_sequence = p.psn == self.psn;
        if !in_sequence {
            out.counts.push("out_of_sequence");
        }
        if starts || !in_sequence {
            self.abandon();
        }
        self.psn = Psn::new(p.psn).next().value();
        if self.message.is_none() && !starts {
            out.place = self.place(p, 0, vec![], None);
        } else {
            self.expected(p, rkey_ok, out);
        }
    }

    /// The message under way is dropped; the next one takes its receive WQE.
    pub(super) fn abandon(&mut self) {
        if let Some(message) = self.message.take() {
            self.unused = message.recv.or(self.unused);
        }
    }

    /// The GRH of a datagram: it takes the receive WQE. `p` is the whole, `grh` the GRH as a packet.
    pub(crate) fn grh(&mut self, p: &Packet, grh: &Packet, found: u8) -> Outcome {
        let mut out = Outcome {
            place: self.place(grh, 0, vec![], None),
            ..Outcome::default()
        };
        if self.dropped(found).is_some() {
            return out;
        }
        if executed(p).is_none() || p.plen > mtu(&self.ctx) {
            out.counts.push("invalid_request_errors");
        } else if let (fresh, Some(index)) = (self.unused.is_none(), self.take()) {
            out.counts.push("rx_send_requests");
            self.establish(&mut out);
            self.message = Some(Message {
                write: false,
                va: 0,
                rkey: 0,
                length: 0,
                done: 40,
                recv: Some(index),
            });
            out.read = Some(self.wqe_read(index, [fresh, true, false]));
            self.fill(grh, vec![("offset", 0)], &mut out);
        }
        out
    }

    /// The payload of a datagram whose GRH was there before.
    pub(crate) fn payload(&mut self, p: &Packet, found: u8) -> Outcome {
        let mut out = Outcome {
            place: self.place(p, 0, vec![], None),
            ..Outcome::default()
        };
        if let Some(counter) = self.dropped(found) {
            out.counts.extend(counter);
        } else if let Some(index) = self.message.take().and_then(|message| message.recv) {
            let with_imm = executed(p).is_some_and(Opcode::has_imm);
            let mut fields = vec![
                ("offset", 40),
                ("complete", 1),
                ("cqn", self.ctx.cqn.into()),
                ("cqe_opcode", cqe_opcode::RECV.into()),
                ("status", 0),
                ("wqe_index", index.into()),
                ("numbered", self.ctx.srq_valid.into()),
                ("byte_len", u64::from(p.plen) + 40),
                ("with_imm", with_imm.into()),
                ("with_inv", 0),
                ("solicited", p.solicited.into()),
                ("src_qpn", p.ext & 0xff_ffff),
                ("pkey", p.pkey.into()),
                ("grh", 1),
            ];
            if with_imm {
                fields.push(("imm", p.imm.into()));
            }
            out.read = Some(self.wqe_read(index, [false, true, true]));
            self.fill(p, fields, &mut out);
        }
        out
    }

    /// Scatters by the receive WQE.
    fn fill(&self, p: &Packet, mut fields: Vec<(&'static str, u64)>, out: &mut Outcome) {
        fields.push(("pd", self.list_pd().into()));
        fields.push(("unreliable", 1));
        fields.push(("incarnation", self.incarnation.into()));
        out.place = self.place(p, 2, fields, None);
    }
}
