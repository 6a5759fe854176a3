//! Messages of the communication manager (IB1 12.6), as MADs of 256 bytes (IB1 13.4).

mod bytes;
mod ip;
mod req;
#[cfg(test)]
mod tests;

use bytes::Bytes;
pub use bytes::MAD_BYTES;
pub use ip::{IP_BYTES, IpHeader, PortSpace, gid};
pub use req::Req;

/// Where a message starts, behind the head of every MAD.
const HEAD: usize = 24;
const BASE_VERSION: u8 = 1;
const CLASS_CM: u8 = 7;
const CLASS_VERSION: u8 = 2;
/// Nothing answers a Send by itself.
const METHOD_SEND: u8 = 3;

/// Attribute IDs.
mod attribute {
    pub(super) const REQ: u16 = 0x10;
    pub(super) const MRA: u16 = 0x11;
    pub(super) const REJ: u16 = 0x12;
    pub(super) const REP: u16 = 0x13;
    pub(super) const RTU: u16 = 0x14;
    pub(super) const DREQ: u16 = 0x15;
    pub(super) const DREP: u16 = 0x16;
    pub(super) const SIDR_REQ: u16 = 0x17;
    pub(super) const SIDR_REP: u16 = 0x18;
}

/// Reasons of a REJ (IB1 12.6.7.2).
pub mod reason {
    /// The peer did not answer in time.
    pub const TIMEOUT: u16 = 4;
    /// A communication ID that is not known.
    pub const INVALID_COMM_ID: u16 = 6;
    /// There is no listener.
    pub const INVALID_SERVICE_ID: u16 = 8;
    /// A transport that is not offered.
    pub const INVALID_TRANSPORT: u16 = 9;
    /// The queue pair of the sender has a connection here, which the sender has forgotten.
    pub const STALE_CONNECTION: u16 = 10;
    /// An address that is not the sender's.
    pub const INVALID_GID: u16 = 12;
    /// The program said no.
    pub const CONSUMER: u16 = 28;
}

/// Which message a REJ or an MRA is about.
pub mod about {
    /// The REQ.
    pub const REQ: u8 = 0;
    /// The REP.
    pub const REP: u8 = 1;
    /// Of a REJ only: none in particular.
    pub const OTHER: u8 = 2;
}

/// A message received (IB1 12.6.6): more time is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mra {
    /// Communication ID of the sender.
    pub local: u32,
    /// Communication ID of the receiver.
    pub remote: u32,
    /// Which message it is about, see [`about`].
    pub about: u8,
    /// Code of the time until an answer, 4.096 us * 2^code.
    pub service_timeout: u8,
}

/// A refusal (IB1 12.6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rej {
    /// Communication ID of the sender.
    pub local: u32,
    /// Communication ID of the receiver.
    pub remote: u32,
    /// Which message it is about, see [`about`].
    pub about: u8,
    /// Why, see [`reason`].
    pub reason: u16,
    /// The GUID of the sender's channel adapter. The message has it (ARI of 8 bytes) with [`reason::TIMEOUT`] alone, where a peer that
    /// has not answered knows the connection by it; 0 in one that came without.
    pub guid: u64,
    /// Data of the program.
    pub private: [u8; 148],
}

/// An answer to a REQ (IB1 12.6.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rep {
    /// Communication ID of the sender.
    pub local: u32,
    /// Communication ID of the receiver.
    pub remote: u32,
    /// Q_Key of the queue pair of datagrams.
    pub qkey: u32,
    /// Queue pair of the sender, 24 bits.
    pub qpn: u32,
    /// PSN that the sender expects first (IB1 12.7.31).
    pub psn: u32,
    /// READs and atomics that the sender takes at a time.
    pub responder_resources: u8,
    /// READs and atomics that the sender starts at a time.
    pub initiator_depth: u8,
    /// Code of the time the card takes to acknowledge.
    pub ack_delay: u8,
    /// End-to-end credits.
    pub flow_control: bool,
    /// Retries after an RNR NAK, 3 bits; 7 for ever.
    pub rnr_retry: u8,
    /// The queue pair has a shared receive queue.
    pub srq: bool,
    /// GUID of the card of the sender.
    pub guid: u64,
    /// Data of the program.
    pub private: [u8; 196],
}

impl Default for Rep {
    /// Without ends and data.
    fn default() -> Self {
        Self {
            local: 0,
            remote: 0,
            qkey: 0,
            qpn: 0,
            psn: 0,
            responder_resources: 1,
            initiator_depth: 1,
            ack_delay: 0,
            flow_control: false,
            rnr_retry: 7,
            srq: false,
            guid: 0,
            private: [0; 196],
        }
    }
}

/// What RTU, DREQ and DREP say (IB1 12.6.9 to 12.6.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Communication ID of the sender.
    pub local: u32,
    /// Communication ID of the receiver.
    pub remote: u32,
}

/// A question for the queue pair of a service (IB1 12.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrReq {
    /// Request ID.
    pub request: u32,
    /// Service ID.
    pub service: u64,
    /// Data of the program.
    pub private: [u8; 216],
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRep {
    /// Request ID.
    pub request: u32,
    /// 0 if there is one.
    pub status: u8,
    /// Queue pair of the sender, 24 bits.
    pub qpn: u32,
    /// Service ID.
    pub service: u64,
    /// Q_Key of the queue pair of datagrams.
    pub qkey: u32,
    /// Data of the program.
    pub private: [u8; 136],
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one is made at a time")]
pub enum Message {
    /// A request for a connection.
    Req(Req),
    /// More time is needed.
    Mra(Mra),
    /// A refusal.
    Rej(Rej),
    /// The answer to a request.
    Rep(Rep),
    /// The sender is ready.
    Rtu(Ends),
    /// A request to end the connection, with the queue pair at the receiver's end.
    Dreq(Ends, u32),
    /// The answer to it.
    Drep(Ends),
    /// A request for the queue pair of a service.
    SidrReq(SidrReq),
    /// The answer to it.
    SidrRep(SidrRep),
}

/// A message with its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mad {
    /// Transaction ID.
    pub tid: u64,
    /// What it says.
    pub message: Message,
}

impl Mad {
    /// Reads a MAD; `None` if it is none of the communication manager, or of a kind that is not known.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let b = Bytes(bytes.try_into().ok()?);
        if b.array(0) != [BASE_VERSION, CLASS_CM, CLASS_VERSION, METHOD_SEND] {
            return None;
        }
        let [first, second] = [b.u32(HEAD), b.u32(HEAD + 4)];
        let ends = Ends {
            local: first,
            remote: second,
        };
        let at = |offset| HEAD + offset;
        let message = match b.u16(16) {
            attribute::REQ => Message::Req(Req::parse(&b)),
            attribute::MRA => Message::Mra(Mra {
                local: first,
                remote: second,
                about: b.u8(at(8)) >> 6,
                service_timeout: b.u8(at(9)) >> 3,
            }),
            attribute::REJ => Message::Rej(Rej {
                local: first,
                remote: second,
                about: b.u8(at(8)) >> 6,
                reason: b.u16(at(10)),
                guid: match b.u16(at(10)) {
                    reason::TIMEOUT => b.u64(at(12)),
                    _ => 0,
                },
                private: b.array(at(84)),
            }),
            attribute::REP => Message::Rep(Rep {
                local: first,
                remote: second,
                qkey: b.u32(at(8)),
                qpn: b.u24(at(12)),
                psn: b.u24(at(20)),
                responder_resources: b.u8(at(24)),
                initiator_depth: b.u8(at(25)),
                ack_delay: b.u8(at(26)) >> 3,
                flow_control: b.u8(at(26)) & 1 != 0,
                rnr_retry: b.u8(at(27)) >> 5,
                srq: b.u8(at(27)) & 1 << 4 != 0,
                guid: b.u64(at(28)),
                private: b.array(at(36)),
            }),
            attribute::RTU => Message::Rtu(ends),
            attribute::DREQ => Message::Dreq(ends, b.u24(at(8))),
            attribute::DREP => Message::Drep(ends),
            attribute::SIDR_REQ => Message::SidrReq(SidrReq {
                request: first,
                service: b.u64(at(8)),
                private: b.array(at(16)),
            }),
            attribute::SIDR_REP => Message::SidrRep(SidrRep {
                request: first,
                status: b.u8(at(4)),
                qpn: b.u24(at(8)),
                service: b.u64(at(12)),
                qkey: b.u32(at(20)),
                private: b.array(at(96)),
            }),
            _ => return None,
        };
        let tid = b.u64(8);
        Some(Self { tid, message })
    }

    /// The bytes of the MAD.
    pub fn emit(&self) -> [u8; MAD_BYTES] {
        let mut b = Bytes([0; MAD_BYTES]);
        b.set(0, &[BASE_VERSION, CLASS_CM, CLASS_VERSION, METHOD_SEND]);
        b.set_u64(8, self.tid);
        let attribute = self.message.emit(&mut b);
        b.set(16, &attribute.to_be_bytes());
        b.0
    }
}

impl Message {
    /// Writes the message behind the head; its attribute.
    fn emit(&self, b: &mut Bytes) -> u16 {
        let at = |offset| HEAD + offset;
        let ends = |b: &mut Bytes, local, remote| {
            b.set_u32(HEAD, local);
            b.set_u32(HEAD + 4, remote);
        };
        match self {
            Self::Req(req) => {
                req.emit(b);
                attribute::REQ
            }
            Self::Mra(mra) => {
                ends(b, mra.local, mra.remote);
                b.set(at(8), &[mra.about << 6, mra.service_timeout << 3]);
                attribute::MRA
            }
            Self::Rej(rej) => {
                ends(b, rej.local, rej.remote);
                let guid = rej.guid.to_be_bytes();
                let ari = match rej.reason {
                    reason::TIMEOUT => &guid[..],
                    _ => &[],
                };
                b.set(at(8), &[rej.about << 6, (ari.len() as u8) << 1]);
                b.set(at(10), &rej.reason.to_be_bytes());
                b.set(at(12), ari);
                b.set(at(84), &rej.private);
                attribute::REJ
            }
            Self::Rep(rep) => {
                ends(b, rep.local, rep.remote);
                b.set_u32(at(8), rep.qkey);
                b.set_u24(at(12), rep.qpn);
                b.set_u24(at(20), rep.psn);
                let sizes = [
                    rep.responder_resources,
                    rep.initiator_depth,
                    rep.ack_delay << 3 | u8::from(rep.flow_control),
                    rep.rnr_retry << 5 | u8::from(rep.srq) << 4,
                ];
                b.set(at(24), &sizes);
                b.set_u64(at(28), rep.guid);
                b.set(at(36), &rep.private);
                attribute::REP
            }
            Self::Rtu(e) => {
                ends(b, e.local, e.remote);
                attribute::RTU
            }
            Self::Dreq(e, qpn) => {
                ends(b, e.local, e.remote);
                b.set_u24(at(8), *qpn);
                attribute::DREQ
            }
            Self::Drep(e) => {
                ends(b, e.local, e.remote);
                attribute::DREP
            }
            Self::SidrReq(sidr) => {
                b.set_u32(HEAD, sidr.request);
                b.set(at(4), &req::PKEY.to_be_bytes());
                b.set_u64(at(8), sidr.service);
                b.set(at(16), &sidr.private);
                attribute::SIDR_REQ
            }
            Self::SidrRep(sidr) => {
                b.set_u32(HEAD, sidr.request);
                b.set(at(4), &[sidr.status]);
                b.set_u24(at(8), sidr.qpn);
                b.set_u64(at(12), sidr.service);
                b.set_u32(at(20), sidr.qkey);
                b.set(at(96), &sidr.private);
                attribute::SIDR_REP
            }
        }
    }
}
