//! The ends of a flow of cards, and what passes them on the wire.

use ferroce_proto::wire::ip::ECN_CE;
use ferroce_proto::wire::{Opcode, Packet, Psn};

use super::Flow;
use super::report::{Received, Sent};
use crate::fabric::Time;

/// What an end of a flow does for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Posts WRITEs.
    Writes,
    /// Posts READs, at the receiver.
    Reads,
    /// Has its card answer them.
    Serves,
}

impl Role {
    /// Packets of this kind bring data of the flow.
    fn sends(self, opcode: Opcode) -> bool {
        match self {
            Self::Writes => opcode.is_request(),
            Self::Reads => false,
            Self::Serves => opcode.is_response() && opcode != Opcode::RcAck,
        }
    }
}

/// A flow at an end that posts for it, or sends its data.
pub(super) struct Sender {
    pub(super) flow: Flow,
    pub(super) role: Role,
    pub(super) posted: u64,
    pub(super) completed: u64,
    /// The first PSN that was not sent yet.
    pub(super) fresh: Psn,
    pub(super) report: Sent,
}

impl Sender {
    /// A frame left of `len` bytes.
    pub(super) fn count(&mut self, now: Time, packet: &Packet, len: usize) {
        let bth = &packet.headers.bth;
        if !self.role.sends(bth.opcode) {
            return;
        }
        self.report.packets += 1;
        self.report.series.at(now).bytes += len as u64;
        if bth.psn.since(self.fresh) < 0 {
            self.report.repeated += 1;
        } else {
            self.fresh = bth.psn.add(1);
        }
    }
}

/// A flow at its receiver.
pub(super) struct Receiver {
    /// Bytes that it is to get.
    pub(super) bytes: u64,
    /// The PSN that is next in order.
    pub(super) due: Psn,
    pub(super) report: Received,
}

impl Receiver {
    /// A packet came.
    pub(super) fn count(&mut self, now: Time, packet: &Packet) {
        let marked = packet.headers.ip.ecn() == ECN_CE;
        self.report.marked += u64::from(marked);
        if packet.headers.bth.psn == self.due && !packet.payload.is_empty() {
            self.due = self.due.add(1);
            self.report.series.at(now).bytes += packet.payload.len() as u64;
        }
    }
}
