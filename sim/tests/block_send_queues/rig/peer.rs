//! The wire, the peer's responder, and what keeps track of READs.

use ferroce_proto::abi::cq::status;
use ferroce_sim::random::Chance;

use super::{Kind, Rig};

/// What wire and peer do.
#[derive(Clone, Copy)]
pub(crate) struct Wire {
    /// Cycles from a packet to its answer.
    pub(crate) delay: u64,
    /// Cycles from data to the responses of its payload writes.
    pub(crate) write_delay: u64,
    /// Loss of packets and of answers.
    pub(crate) loss: f64,
    /// A SEND finds no receive buffer.
    pub(crate) rnr: f64,
    /// The class of a WQE that asks to start is closed.
    pub(crate) held: f64,
    /// Answers nothing at all.
    pub(crate) no_answer: bool,
    /// NAK with this syndrome for this PSN, counted from the first.
    pub(crate) refuse: Option<(u32, u8)>,
    /// The answer for this PSN is lost, once.
    pub(crate) lose: Option<u32>,
    /// The answer for this PSN is always lost.
    pub(crate) lose_always: Option<u32>,
    /// The data for this PSN cannot be placed: a status.
    pub(crate) spoil: Option<(u32, u8)>,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            delay: 100,
            write_delay: 0,
            loss: 0.0,
            rnr: 0.0,
            held: 0.0,
            no_answer: false,
            refuse: None,
            lose: None,
            lose_always: None,
            spoil: None,
        }
    }
}

/// A response; PSNs count from the first of the queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Response {
    Ack { at: u32, syndrome: u8 },
    Data { at: u32 },
}

impl Rig {
    fn respond(&mut self, qpn: u64, response: Response) {
        let (Response::Ack { at, .. } | Response::Data { at }) = response;
        let is_lost = self.wire.lose == Some(at);
        if is_lost {
            self.wire.lose = None;
        }
        let is_lost = is_lost || self.wire.lose_always == Some(at);
        if !is_lost && !Chance::new(self.wire.loss).hit(self.bench.rng()) {
            let due = self.bench.cycle() + self.wire.delay;
            self.responses.push_back((due, qpn, response));
        }
    }

    /// Packet `at` of message `place` arrives at the peer.
    pub(super) fn arrive(&mut self, qpn: u64, place: usize, at: u32, ack_req: bool) {
        let wire = self.wire;
        let rng = self.bench.rng();
        let lost = wire.no_answer || Chance::new(wire.loss).hit(rng);
        let rnr = Chance::new(wire.rnr).hit(rng);
        if lost {
            return;
        }
        let qp = &mut self.qps[qpn as usize];
        let m = &qp.messages[place];
        let (kind, end) = (m.post.kind, m.first + m.packets);
        let expected = qp.expected;
        let mut refused = None;
        if at > expected {
            if std::mem::replace(&mut qp.nak_sent, true) {
                return;
            }
            refused = Some((expected, 0x60));
        } else if at == expected {
            if rnr && kind == Kind::Send && at == m.first {
                qp.nak_sent = true;
                refused = Some((at, 0x21));
            } else if wire.refuse.is_some_and(|r| r.0 == at) {
                refused = wire.refuse;
            } else {
                qp.expected = if kind.is_answered() { end } else { at + 1 };
                qp.nak_sent = false;
            }
        }
        if let Some((at, syndrome)) = refused {
            return self.respond(qpn, Response::Ack { at, syndrome });
        }
        if kind.is_answered() {
            for at in at..end {
                self.respond(qpn, Response::Data { at });
            }
        } else if ack_req {
            let at = self.qps[qpn as usize].expected - 1;
            self.respond(qpn, Response::Ack { at, syndrome: 0x1f });
        }
    }

    /// A response arrives: what it means for READs under way.
    pub(super) fn track(&mut self, qpn: u64, response: Response) {
        let qp = &mut self.qps[qpn as usize];
        if qp.closed {
            return;
        }
        let oldest = qp.reads.front().copied();
        let missing = oldest.map(|place| {
            let m = &qp.messages[place];
            m.first + m.answered
        });
        let (Response::Ack { at, .. } | Response::Data { at }) = response;
        let psn = |at: u32| u64::from(qp.psn.wrapping_add(at) & 0xff_ffff);
        let mut item = self
            .answer
            .item()
            .with("qpn", qpn)
            .with("psn", psn(at))
            .with("fence", self.writes.into());
        let past_missing = missing.is_some_and(|m| at > m);
        match response {
            Response::Data { .. } if missing == Some(at) => {
                item = item.with("data", 1);
                if let Some((_, status)) = self.wire.spoil.filter(|s| s.0 == at) {
                    item = item.with("status", status.into());
                } else {
                    let place = oldest.expect("there is a READ");
                    let m = &mut qp.messages[place];
                    m.answered += 1;
                    self.writes = self.writes.wrapping_add(3);
                    m.writes = self.writes;
                    let due = self.bench.cycle() + self.wire.write_delay;
                    self.unwritten.push_back((due, self.writes));
                    item = item.with("fence", self.writes.into());
                    if m.answered == m.packets {
                        qp.reads.pop_front();
                    }
                }
            }
            Response::Ack { syndrome, .. }
                if past_missing || (missing == Some(at) && syndrome < 0x20) =>
            {
                let missing = psn(missing.expect("there is a READ"));
                item = item
                    .with("syndrome", syndrome.into())
                    .with("implied", 1)
                    .with("missing", missing);
            }
            Response::Data { .. } if past_missing => {
                let missing = psn(missing.expect("there is a READ"));
                item = item.with("data", 1).with("implied", 1);
                item = item.with("missing", missing);
            }
            Response::Data { .. } => {
                item = item
                    .with("data", 1)
                    .with("status", status::BAD_RESP_ERR.into());
            }
            Response::Ack { syndrome, .. } => item = item.with("syndrome", syndrome.into()),
        }
        self.answer.push(item);
    }
}
