//! The responder's rules in plain Rust: IBA vol. 1, 9.6.1 (packet checks), 9.7.4 and 9.7.5 (responder), A17.
//!
//! Written on packets, opcodes and byte counts; knows nothing of how the blocks decide.

use std::collections::VecDeque;

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::bth::pkey_matches;
use ferroce_proto::wire::psn::Region;
use ferroce_proto::wire::{Class, Mtu, Opcode, Operation, Position, Psn, Suffix};

/// A received packet, as `RxMeta` tells of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) opcode: u8,
    pub(crate) solicited: bool,
    pub(crate) ack_req: bool,
    pub(crate) pkey: u16,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) src_gid: u128,
    pub(crate) gid_index: u8,
    pub(crate) ext: u64,
    pub(crate) rkey: u32,
    pub(crate) dma_len: u32,
    pub(crate) imm: u32,
    pub(crate) plen: u32,
    pub(crate) lane: u32,
    pub(crate) beats: u32,
}

/// `reason` of `RqRequest`.
pub(crate) mod reason {
    pub(crate) const GOOD: u8 = 0;
    pub(crate) const NO_QP: u8 = 1;
    pub(crate) const TRANSPORT: u8 = 2;
    pub(crate) const PKEY: u8 = 3;
    pub(crate) const ADDRESS: u8 = 4;
    pub(crate) const NO_REQUEST: u8 = 5;
}

/// What the static checks find, for a card of 2^`log_qps` queue pairs.
pub(crate) fn check(ctx: &RqCtx, packet: &Packet, log_qps: u32) -> u8 {
    let opcode = Opcode::from_code(packet.opcode);
    if opcode == Some(Opcode::Cnp) {
        reason::NO_REQUEST
    } else if packet.qpn == 0 || packet.qpn >> log_qps != 0 {
        reason::NO_QP
    } else if packet.opcode >> 5 != Class::Rc as u8 || ctx.qp_type != Class::Rc as u8 {
        reason::TRANSPORT
    } else if !pkey_matches(packet.pkey, ctx.pkey) {
        reason::PKEY
    } else if packet.src_gid != ctx.remote_gid || packet.gid_index != ctx.sgid_index {
        reason::ADDRESS
    } else if opcode.is_some_and(Opcode::is_response) {
        reason::NO_REQUEST
    } else {
        reason::GOOD
    }
}

pub(crate) fn mtu(ctx: &RqCtx) -> u32 {
    Mtu::from_code(ctx.mtu).expect("an MTU").bytes() as u32
}

/// The opcode when the engine executes it: SEND and WRITE, without invalidate.
pub(crate) fn executed(packet: &Packet) -> Option<Opcode> {
    let places = |o: &Opcode| matches!(o.operation(), Operation::Send | Operation::Write);
    Opcode::from_code(packet.opcode)
        .filter(places)
        .filter(|o| o.suffix() != Suffix::Inv)
}

/// What the length of the packet alone says.
pub(crate) fn length_fits(ctx: &RqCtx, packet: &Packet, position: Position) -> bool {
    match position {
        Position::First | Position::Middle => packet.plen == mtu(ctx),
        Position::Last => packet.plen >= 1 && packet.plen <= mtu(ctx),
        Position::Only => packet.plen <= mtu(ctx),
    }
}

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
}

/// What an event leads to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) place: Option<Place>,
    /// Address and log2 slots of the receive WQE to read.
    pub(crate) read: Option<(u64, u64)>,
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
    pub(crate) msn: u32,
    pub(crate) incarnation: u8,
    /// A NAK for the PSN expected is out.
    silent: bool,
    message: Option<Message>,
    /// Receive WQEs to be completed as flushed.
    pub(crate) flushed: VecDeque<u16>,
}

impl Rq {
    /// As after reset, with an image of `mtu` 256 in place of none.
    pub(crate) fn new(qpn: u32) -> Self {
        let ctx = RqCtx {
            mtu: Mtu::Mtu256.code(),
            ..RqCtx::default()
        };
        Self {
            ctx,
            qpn,
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
        let opcode = Opcode::from_code(p.opcode);
        match Psn::new(p.psn).region(Psn::new(self.psn)) {
            Region::Duplicate => {
                out.counts.push("duplicate_request");
                self.silent = false;
                let again = opcode
                    .is_some_and(|o| matches!(o.operation(), Operation::Send | Operation::Write));
                let last = Psn::new(self.psn).prev().value();
                out.place = self.place(p, 0, vec![], again.then_some((last, 0x1f)));
            }
            Region::Invalid => {
                out.counts.push("out_of_sequence");
                let nak = (!self.silent).then_some((self.psn, 0x60));
                self.silent = true;
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
            _ => None,
        }
    }

    fn expected(&mut self, p: &Packet, rkey_ok: bool, out: &mut Outcome) {
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

    /// A placement of `kind`; `None` if it has no effect.
    fn place(
        &self,
        p: &Packet,
        kind: u64,
        mut fields: Vec<(&'static str, u64)>,
        ack: Option<(u32, u64)>,
    ) -> Option<Place> {
        let complete = fields.contains(&("complete", 1));
        if kind == 0 && p.beats == 0 && ack.is_none() && !complete {
            return None;
        }
        fields.extend([
            ("kind", kind),
            ("qpn", (p.qpn & 0xffff).into()),
            ("beats", p.beats.into()),
            ("plen", p.plen.into()),
            ("lane", p.lane.into()),
            ("reset", 0),
            ("ack", ack.is_some().into()),
        ]);
        if !complete {
            fields.push(("complete", 0));
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
        if self.message.take().is_some_and(|message| !message.write) {
            self.index = self.index.wrapping_sub(1);
        }
        self.flush();
    }

    fn flush(&mut self) {
        while self.known && self.state == state::ERR && self.index != self.producer {
            self.flushed.push_back(self.index);
            self.index = self.index.wrapping_add(1);
        }
    }

    /// The doorbell was rung.
    pub(crate) fn doorbell(&mut self, producer: u16) {
        self.producer = producer;
        self.flush();
    }

    /// A placement of `incarnation` failed.
    pub(crate) fn place_error(&mut self, incarnation: u8, syndrome: u8, status: u8) -> Outcome {
        let mut out = Outcome::default();
        if self.receives() && incarnation == self.incarnation {
            let (event, counter) = match syndrome {
                0x61 => (event::QP_REQ_ERR, "invalid_request_errors"),
                0x62 => (event::QP_ACCESS_ERR, "access_errors"),
                _ => (event::QP_FATAL, "operational_errors"),
            };
            out.failure = Some((event, status));
            out.counts.push(counter);
            self.fail();
        }
        out
    }

    /// The send queue failed.
    pub(crate) fn sq_failed(&mut self) {
        if !matches!(self.state, state::RESET | state::ERR) {
            self.fail();
        }
    }

    /// A command.
    pub(crate) fn command(&mut self, command: &Command) -> Outcome {
        self.known |= command.image;
        if let Some(state) = command.state {
            self.known &= state != state::RESET;
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
                ..Self::default()
            };
            let fields = [("qpn", self.qpn.into()), ("reset", 1), ("kind", 0)];
            let nothing = [("beats", 0), ("ack", 0), ("complete", 0)];
            out.place = Some(Place([fields, nothing].concat()));
        }
        if self.state == state::ERR && command.state.is_some() {
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
