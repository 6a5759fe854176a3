//! The responder's rules in plain Rust: IBA vol. 1, 9.6.1 (packet checks), 9.7.4 and 9.7.5 (responder), A17.
//!
//! Written on packets, opcodes and byte counts; knows nothing of how the blocks decide.

mod execute;
mod packet;
mod shared;
mod unreliable;

use std::collections::VecDeque;

use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{RqCtx, qp_type, state};
use ferroce_proto::wire::psn::Region;
use ferroce_proto::wire::{Mtu, Opcode, Operation, Psn};

pub(crate) use packet::{
    Packet, check, executed, is_atomic, length_fits, mtu, permitted, reason, wants,
};

pub(crate) use shared::Srqs;

/// A placement: the fields that mean something, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) Vec<(&'static str, u64)>);

/// A message under way.
#[derive(Clone, Debug)]
struct Message {
    write: bool,
    va: u64,
    rkey: u32,
    length: u32,
    done: u32,
    /// Receive WQE.
    recv: Option<u16>,
}

/// What an event leads to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) place: Option<Place>,
    /// Receive WQE to read, or its number.
    pub(crate) read: Option<Vec<(&'static str, u64)>>,
    /// READ or atomic to answer.
    pub(crate) reply: Option<Vec<(&'static str, u64)>>,
    /// Event and detail.
    pub(crate) failure: Option<(u8, u8)>,
    pub(crate) counts: Vec<&'static str>,
}

/// The receive side of a queue pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rq {
    pub(crate) ctx: RqCtx,
    pub(crate) qpn: u32,
    pub(crate) state: u8,
    pub(crate) known: bool,
    pub(crate) producer: u16,
    pub(crate) index: u16,
    pub(crate) psn: u32,
    /// A request was accepted.
    established: bool,
    /// PSN of the latest READ or atomic executed.
    asked: Option<u32>,
    pub(crate) msn: u32,
    pub(crate) incarnation: u8,
    /// READs and atomics accepted and not answered.
    pub(crate) replies: u8,
    /// A NAK for the PSN expected is out.
    nak_sent: bool,
    message: Option<Message>,
    /// Receive WQE of a message that was dropped.
    unused: Option<u16>,
    pub(crate) srqs: Srqs,
    /// Receive WQEs to be completed as flushed; `None`: of a shared queue there is none left.
    pub(crate) flushed: VecDeque<Option<u16>>,
    /// That was reported since the queue pair went into error.
    last_reported: bool,
}

impl Rq {
    /// As after reset, with an image of `mtu` 256 in place of none.
    pub(crate) fn new(qpn: u32, srqs: &Srqs) -> Self {
        let ctx = RqCtx {
            mtu: Mtu::Mtu256.code(),
            ..RqCtx::default()
        };
        Self {
            ctx,
            qpn,
            srqs: srqs.share(),
            ..Self::default()
        }
    }

    fn receives(&self) -> bool {
        matches!(
            self.state,
            state::RTR | state::RTS | state::SQD | state::SQE
        )
    }

    /// A packet, with what the static checks and the memory region check of its RETH found.
    pub(crate) fn packet(&mut self, p: &Packet, found: u8, rkey_ok: bool) -> Outcome {
        let mut out = Outcome::default();
        if let Some(counter) = self.dropped(found) {
            out.counts.extend(counter);
            out.place = self.place(p, 0, vec![], None);
            return out;
        }
        if self.ctx.qp_type != qp_type::RC {
            self.unreliable(p, rkey_ok, &mut out);
            return out;
        }
        let opcode = Opcode::from_code(p.opcode);
        match Psn::new(p.psn).region(Psn::new(self.psn)) {
            Region::Duplicate => {
                out.counts.push("duplicate_request");
                let again = opcode
                    .is_some_and(|o| matches!(o.operation(), Operation::Send | Operation::Write));
                let asked = self
                    .asked
                    .filter(|asked| Psn::new(*asked).since(Psn::new(p.psn)) >= 0);
                let last = asked.map_or(Psn::new(self.psn).prev().value(), |_| p.psn);
                out.reply = opcode.and_then(|o| self.answer_again(p, o));
                if out.reply.is_some() {
                    out.place = self.place(p, 0, vec![("reply", 1), ("runs", 0)], None);
                    return out;
                }
                out.place = self.place(p, 0, vec![], again.then_some((last, 0x1f)));
            }
            Region::Invalid => {
                out.counts.push("out_of_sequence");
                let nak = (!self.nak_sent).then_some((self.psn, 0x60));
                self.nak_sent = true;
                out.place = self.place(p, 0, vec![], nak);
            }
            Region::Expected => self.expected(p, rkey_ok, &mut out),
        }
        out
    }

    /// Counter of a silent drop; `None` if the packet is not dropped.
    fn dropped(&self, found: u8) -> Option<Option<&'static str>> {
        match found {
            reason::NO_REQUEST => Some(None),
            reason::NO_QP => Some(Some("rx_unknown_qp")),
            _ if !self.known => Some(Some("rx_unknown_qp")),
            _ if !self.receives() => Some(Some("rx_qp_state")),
            reason::TRANSPORT => Some(Some("rx_wrong_transport")),
            reason::PKEY => Some(Some("rx_pkey_violations")),
            reason::ADDRESS => Some(Some("rx_wrong_address")),
            reason::QKEY => Some(Some("rx_qkey_violations")),
            _ => None,
        }
    }

    /// A placement of `kind`; `None` if it has no effect.
    fn place(
        &self,
        p: &Packet,
        kind: u64,
        mut fields: Vec<(&'static str, u64)>,
        ack: Option<(u32, u64)>,
    ) -> Option<Place> {
        let complete = fields.contains(&("complete", 1));
        let reply = fields.contains(&("reply", 1));
        if kind == 0 && p.beats == 0 && ack.is_none() && !complete && !reply {
            return None;
        }
        fields.extend([
            ("kind", kind),
            ("qpn", (p.qpn & 0xffff).into()),
            ("beats", p.beats.into()),
            ("plen", p.plen.into()),
            ("lane", p.lane.into()),
            ("reset", 0),
            ("rsp_flush", 0),
            ("last_wqe", 0),
            ("ack", ack.is_some().into()),
        ]);
        if !complete {
            fields.push(("complete", 0));
        }
        if !reply {
            fields.push(("reply", 0));
        }
        if let Some((psn, syndrome)) = ack {
            fields.extend([
                ("psn", psn.into()),
                ("msn", self.msn.into()),
                ("syndrome", syndrome),
            ]);
        }
        Some(Place(fields))
    }

    fn fail(&mut self) {
        self.state = state::ERR;
        self.abandon();
        self.flush();
    }

    /// The next receive WQE: one left over, of the shared receive queue or of the own. It is taken.
    fn take(&mut self) -> Option<u16> {
        let unused = self.unused.take();
        if unused.is_some() {
            return unused;
        }
        if self.ctx.srq_valid {
            return self.srqs.take(self.ctx.srqn);
        }
        let next = (self.producer != self.index).then_some(self.index);
        self.index = self.index.wrapping_add(next.is_some().into());
        next
    }

    fn flush(&mut self) {
        if !self.known || self.state != state::ERR {
            return;
        }
        self.flushed.extend(self.unused.take().map(Some));
        while !self.ctx.srq_valid && self.index != self.producer {
            self.flushed.push_back(Some(self.index));
            self.index = self.index.wrapping_add(1);
        }
        if self.ctx.srq_valid && !self.last_reported {
            self.last_reported = true;
            self.flushed.push_back(None);
        }
    }

    /// The doorbell was rung.
    pub(crate) fn doorbell(&mut self, producer: u16) {
        self.producer = producer;
        self.flush();
    }

    /// A placement failed: its incarnation, syndrome and status, and whether the queue pair is spared.
    pub(crate) fn place_error(
        &mut self,
        [incarnation, syndrome, status, spared]: [u8; 4],
    ) -> Outcome {
        let mut out = Outcome::default();
        if self.receives() && incarnation == self.incarnation {
            let (event, counter) = match syndrome {
                0x61 => (event::QP_REQ_ERR, "invalid_request_errors"),
                0x62 => (event::QP_ACCESS_ERR, "access_errors"),
                _ => (event::QP_FATAL, "operational_errors"),
            };
            out.counts.push(counter);
            if spared == 0 {
                out.failure = Some((event, status));
                self.fail();
            }
        }
        out
    }

    /// A request is accepted; the first of a connection in RTR is reported.
    fn establish(&mut self, out: &mut Outcome) {
        if !self.established && self.state == state::RTR && self.ctx.qp_type != qp_type::UD {
            out.failure = Some((event::COMM_EST, 0));
        }
        self.established = true;
    }

    /// READ or atomic, of an incarnation, was answered.
    pub(crate) fn replied(&mut self, incarnation: u8) {
        if incarnation == self.incarnation {
            self.replies = self.replies.saturating_sub(1);
        }
    }

    /// The send queue failed.
    pub(crate) fn sq_failed(&mut self) -> Outcome {
        let mut out = Outcome::default();
        if !matches!(self.state, state::RESET | state::ERR) {
            out.place = Some(self.order("rsp_flush"));
            self.fail();
        }
        out
    }

    /// A placement that does nothing but tell.
    fn order(&self, what: &'static str) -> Place {
        let other = if what == "rsp_flush" {
            "reset"
        } else {
            "rsp_flush"
        };
        let nothing = ["kind", "beats", "ack", "complete", "reply", other].map(|field| (field, 0));
        Place([&nothing[..], &[("qpn", self.qpn.into()), (what, 1)]].concat())
    }

    /// A command.
    pub(crate) fn command(&mut self, command: &Command) -> Outcome {
        self.known |= command.image;
        let failed_before = self.state == state::ERR;
        if let Some(state) = command.state {
            self.known &= state != state::RESET;
            self.last_reported &= state == state::ERR;
            self.state = state;
        }
        let mut out = Outcome::default();
        if let Some(psn) = command.reset {
            *self = Self {
                ctx: self.ctx,
                qpn: self.qpn,
                state: self.state,
                known: self.known,
                producer: self.producer,
                psn,
                incarnation: (self.incarnation + 1) & 3,
                srqs: self.srqs.share(),
                ..Self::default()
            };
            out.place = Some(self.order("reset"));
        }
        if self.state == state::ERR && command.state.is_some() {
            // What is due before its own NAK still leaves.
            if command.reset.is_none() && !failed_before {
                out.place = Some(self.order("rsp_flush"));
            }
            self.fail();
        }
        out
    }

    /// A message is under way: is it a WRITE, and the bytes it still has (WRITE).
    pub(crate) fn under_way(&self) -> Option<(bool, u32)> {
        let message = self.message.as_ref()?;
        Some((message.write, message.length.wrapping_sub(message.done)))
    }
}

/// A command to the responder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    /// New state.
    pub(crate) state: Option<u8>,
    /// Start afresh with this PSN.
    pub(crate) reset: Option<u32>,
    /// The image was written.
    pub(crate) image: bool,
}
