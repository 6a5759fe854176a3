//! Requests, and the packets that answer them.

use ferroce_proto::wire::psn::MASK;

use super::rig::{BASE, KEY};

/// A READ or atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) qpn: u32,
    pub(crate) incarnation: u8,
    pub(crate) kind: Kind,
    pub(crate) duplicate: bool,
    pub(crate) psn: u32,
    pub(crate) msn: u32,
    pub(crate) mtu: u8,
    pub(crate) va: u64,
    pub(crate) rkey: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read(u32),
    Add(u64),
    Swap { compare: u64, swap: u64 },
}

impl Request {
    pub(crate) fn new(qpn: u32, psn: u32, kind: Kind) -> Self {
        Self {
            qpn,
            incarnation: 0,
            kind,
            duplicate: false,
            psn: psn & MASK,
            msn: psn & MASK,
            mtu: 3,
            va: BASE,
            rkey: KEY,
        }
    }

    pub(crate) fn read(qpn: u32, psn: u32, len: u32) -> Self {
        Self::new(qpn, psn, Kind::Read(len))
    }

    pub(crate) fn at(mut self, va: u64) -> Self {
        self.va = va;
        self
    }

    pub(crate) fn mtu(mut self, mtu: u8) -> Self {
        self.mtu = mtu;
        self
    }

    pub(crate) fn again(mut self) -> Self {
        self.duplicate = true;
        self
    }

    pub(crate) fn with_key(mut self, rkey: u32) -> Self {
        self.rkey = rkey;
        self
    }

    pub(crate) fn is_atomic(&self) -> bool {
        !matches!(self.kind, Kind::Read(_))
    }

    pub(crate) fn mtu_bytes(&self) -> u32 {
        128 << self.mtu
    }

    /// PSNs it takes.
    pub(crate) fn packets(&self) -> u32 {
        match self.kind {
            Kind::Read(len) => len.div_ceil(self.mtu_bytes()).max(1),
            _ => 1,
        }
    }

    /// Payload bytes of response packet `number`.
    pub(crate) fn plen(&self, number: u32) -> u32 {
        match self.kind {
            Kind::Read(len) => (len - number * self.mtu_bytes()).min(self.mtu_bytes()),
            _ => 0,
        }
    }

    /// Opcode of response packet `number`.
    pub(crate) fn opcode(&self, number: u32) -> u8 {
        match (self.kind, number == 0, number + 1 == self.packets()) {
            (Kind::Read(_), true, true) => 0x10,
            (Kind::Read(_), true, false) => 0x0d,
            (Kind::Read(_), false, false) => 0x0e,
            (Kind::Read(_), false, true) => 0x0f,
            _ => 0x12,
        }
    }
}

/// A packet as it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) qpn: u32,
    pub(crate) opcode: u8,
    pub(crate) psn: u32,
    pub(crate) msn: u32,
    pub(crate) syndrome: u8,
    pub(crate) plen: u32,
    pub(crate) value: u64,
}

impl Packet {
    pub(crate) fn is_ack(&self) -> bool {
        self.opcode == 0x11
    }
}

/// What a request is answered with, if all is well; `value` is the result of an atomic.
pub(crate) fn answer(request: &Request, value: u64) -> Vec<Packet> {
    let packet = |number| Packet {
        qpn: request.qpn,
        opcode: request.opcode(number),
        psn: (request.psn + number) & MASK,
        msn: request.msn,
        syndrome: 0x1f,
        plen: request.plen(number),
        value,
    };
    (0..request.packets()).map(packet).collect()
}
