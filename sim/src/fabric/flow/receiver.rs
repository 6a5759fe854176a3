//! The responder of one flow, and its notification point.

use std::collections::BTreeSet;

use ferroce_proto::wire::ip::ECN_CE;
use ferroce_proto::wire::{Packet, Psn};

use super::packets::{self, Packets};
use super::report::Received;
use super::{Flow, FlowId, Series};
use crate::fabric::{Frame, NEVER, Time};

/// One flow at its receiver.
pub(super) struct Receiver {
    packets: Packets,
    bytes: u64,
    expected: u64,
    /// A NAK for `expected` went out.
    asked: bool,
    /// Packets that came cut, before those that go before them: what is cut overtakes.
    cut: BTreeSet<u64>,
    cnp_interval: Time,
    /// When the next CNP may go out.
    cnp_at: Time,
    pub(super) report: Received,
}

/// What a packet calls for.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) ack: Option<Frame>,
    pub(super) cnp: Option<Frame>,
    /// The flow is complete now.
    pub(super) complete: bool,
}

impl Receiver {
    pub(super) fn new(id: FlowId, flow: &Flow, cnp_interval: Time, interval: Time) -> Self {
        Self {
            packets: Packets::new(id, flow.dst, flow.src),
            bytes: flow.bytes,
            expected: 0,
            asked: false,
            cut: BTreeSet::new(),
            cnp_interval,
            cnp_at: 0,
            report: Received {
                flow: id,
                finished: None,
                bytes: 0,
                marked: 0,
                series: Series::new(interval),
            },
        }
    }

    pub(super) fn packet(&mut self, now: Time, packet: &Packet) -> Answer {
        let mut answer = Answer::default();
        if packet.headers.ip.ecn() == ECN_CE {
            self.report.marked += 1;
            if self.cnp_at <= now {
                self.cnp_at = now + self.cnp_interval;
                self.report.series.at(now).cnps += 1;
                answer.cnp = Some(self.packets.cnp());
            }
        }
        let bth = &packet.headers.bth;
        let number = packets::number(bth.psn, self.expected).unwrap_or(NEVER);
        if number == self.expected {
            self.expected += 1;
            self.asked = false;
            self.report.bytes += packet.payload.len() as u64;
            self.report.series.at(now).bytes += packet.payload.len() as u64;
            if self.report.bytes == self.bytes {
                self.report.finished = Some(now);
                answer.complete = true;
            }
            if self.cut.remove(&self.expected) {
                answer.ack = self.ask();
                return answer;
            }
        } else if number > self.expected {
            answer.ack = self.ask();
            return answer;
        }
        if bth.ack_req && self.expected > 0 {
            answer.ack = Some(self.packets.ack(self.expected - 1));
        }
        answer
    }

    /// A packet was cut on its way. One that was asked for is asked for again.
    pub(super) fn trimmed(&mut self, psn: Psn) -> Option<Frame> {
        let number = packets::number(psn, self.expected)?;
        if number < self.expected {
            return None;
        }
        if number == self.expected {
            self.asked = false;
        } else {
            self.cut.insert(number);
        }
        self.ask()
    }

    /// Asks for the packet that is missing, once.
    fn ask(&mut self) -> Option<Frame> {
        let first = !self.asked;
        self.asked = true;
        first.then(|| self.packets.nak(self.expected))
    }
}
