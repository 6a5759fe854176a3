//! What a capture holds, and why one is refused.

use std::net::Ipv6Addr;

use ferroce_proto::wire::{self, Gid, Opcode, Packet, Psn, eth, ip, ipv4, ipv6, udp};

use crate::pcap::Capture;
use crate::scoreboard::icrc::Roce;

/// Why a capture is not replayed. That is no result of the device under test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A snapshot length cut a packet off.
    #[error(
        "packet {number} is cut short: {have} of its {wire} bytes were captured; \
         capture again with snapshot length 0"
    )]
    CutShort {
        /// Its number in the capture.
        number: usize,
        /// Bytes captured.
        have: usize,
        /// Bytes on the wire.
        wire: usize,
    },
    /// A packet was damaged.
    #[error(
        "packet {number} is damaged: its ICRC is {carried:#010x}, {expected:#010x} is right; \
         capture again, or leave the packet out if its receiver dropped it"
    )]
    Icrc {
        /// Its number in the capture.
        number: usize,
        /// The ICRC it has.
        carried: u32,
        /// The ICRC it should have.
        expected: u32,
    },
    /// A packet to the RoCEv2 port that is no RoCEv2 packet.
    #[error("packet {number} is malformed: {source}; leave it out if its receiver dropped it")]
    Malformed {
        /// Its number in the capture.
        number: usize,
        /// Reason.
        source: wire::Error,
    },
    /// No request.
    #[error(
        "no request{} among {packets} packets, {roce} of them RoCEv2; give a \
         capture of RC, UC or UD traffic, taken on the interface under the RDMA device",
        qpn.map(|qpn| format!(" to queue pair {qpn:#x}")).unwrap_or_default()
    )]
    NoRequest {
        /// The queue pair asked for.
        qpn: Option<u32>,
        /// Packets of the capture.
        packets: usize,
        /// Those of RoCEv2.
        roce: usize,
    },
    /// More than one connection.
    #[error("{} connections, to the queue pairs {}; choose one with --qp", .0.len(), list(.0))]
    Several(
        /// Queue pairs of the responders.
        Vec<u32>,
    ),
    /// Nothing to compare with.
    #[error("no answers to the requests to queue pair {0:#x}: there is nothing to compare with")]
    NoAnswer(
        /// Queue pair of the responder.
        u32,
    ),
    /// Answers to several queue pairs could be meant.
    #[error(
        "answers go to the queue pairs {}, and PSNs do not tell which one belongs to the requests; \
         cut one connection out of the capture", list(.0)
    )]
    Ambiguous(
        /// Queue pairs answered to.
        Vec<u32>,
    ),
    /// A request that was executed although it cannot follow the ones before it.
    #[error(
        "packet {number}, {opcode:?} PSN {psn}, is answered as executed but does not follow what was \
         captured before; the capture lacks packets or starts within a message: capture again"
    )]
    OutOfPlace {
        /// Its number in the capture.
        number: usize,
        /// Its opcode.
        opcode: Opcode,
        /// Its PSN.
        psn: Psn,
    },
    /// No message has all its packets.
    #[error("no message was captured whole, from its first packet to its last: capture again")]
    NotWhole,
    /// The capture does not show the set-up of the responder.
    #[error("packet {number}: {what}")]
    Underivable {
        /// Its number in the capture.
        number: usize,
        /// What cannot be derived.
        what: String,
    },
    /// The device under test lacks something.
    #[error("the device under test has no {0}, which the capture needs")]
    Lacking(
        /// What it lacks.
        String,
    ),
}

fn list(qpns: &[u32]) -> String {
    let words: Vec<_> = qpns.iter().map(|qpn| format!("{qpn:#x}")).collect();
    words.join(", ")
}

/// A RoCEv2 packet of the capture.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its number in the capture, from 1 as Wireshark counts.
    pub number: usize,
    /// The interface of the capture that saw it.
    pub interface: usize,
    /// From the destination MAC address on.
    pub bytes: Vec<u8>,
    /// What it proved to be.
    pub packet: Packet,
}

impl Frame {
    /// Its PSN.
    #[must_use]
    pub(super) fn psn(&self) -> Psn {
        self.packet.headers.bth.psn
    }

    /// Its opcode.
    #[must_use]
    pub(super) fn opcode(&self) -> Opcode {
        self.packet.headers.bth.opcode
    }

    /// Its payload.
    #[must_use]
    pub(super) fn payload(&self) -> &[u8] {
        &self.bytes[self.packet.payload.clone()]
    }
}

/// What one side tells the other out of band before the first packet.
///
/// Test programs that pair over TCP send a line `qpn psn rkey va gid`, numbers in hexadecimal. It tells
/// what no packet does: where a region starts, and a key that is good when the one used is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    /// Queue pair.
    pub qpn: u32,
    /// First PSN it sends.
    pub psn: Psn,
    /// Key of its region.
    pub rkey: u32,
    /// First address of its region.
    pub addr: u64,
    /// Its address.
    pub gid: Gid,
}

impl Announcement {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        let &[qpn, psn, rkey, addr, gid] = words.as_slice() else {
            return None;
        };
        let hex = |word| u32::from_str_radix(word, 16).ok();
        Some(Self {
            qpn: hex(qpn)?,
            psn: Psn::new(hex(psn)?),
            rkey: hex(rkey)?,
            addr: u64::from_str_radix(addr, 16).ok()?,
            gid: gid.parse::<Ipv6Addr>().ok()?.into(),
        })
    }
}

/// The RoCEv2 packets of a capture, all of them whole and with a right ICRC, and the announcements.
///
/// # Errors
/// [`Refusal::CutShort`], [`Refusal::Icrc`], [`Refusal::Malformed`].
pub(super) fn read(capture: &Capture) -> Result<(Vec<Frame>, Vec<Announcement>), Refusal> {
    let (mut frames, mut announcements) = (Vec::new(), Vec::new());
    for (index, captured) in capture.packets.iter().enumerate() {
        let (number, bytes) = (index + 1, &captured.data);
        match Kind::of(bytes) {
            Kind::Roce | Kind::Unknown if !captured.is_whole() => {
                return Err(Refusal::CutShort {
                    number,
                    have: bytes.len(),
                    wire: captured.wire_len,
                });
            }
            Kind::Roce => frames.push(Frame {
                interface: captured.interface,
                ..check(number, bytes)?
            }),
            Kind::Tcp { payload } => {
                let text = bytes.get(payload..).and_then(|p| str::from_utf8(p).ok());
                announcements.extend(text.and_then(|text| {
                    Announcement::parse(text.trim_matches(|c: char| c == '\0' || c.is_whitespace()))
                }));
            }
            Kind::Unknown | Kind::Other => {}
        }
    }
    Ok((frames, announcements))
}

/// A RoCEv2 packet that both implementations of the ICRC accept.
fn check(number: usize, bytes: &[u8]) -> Result<Frame, Refusal> {
    if let Some(roce) = Roce::locate(bytes) {
        let (carried, expected) = (roce.carried(bytes), roce.expected(bytes));
        if carried != expected {
            return Err(Refusal::Icrc {
                number,
                carried,
                expected,
            });
        }
    }
    match Packet::parse(bytes) {
        Ok(packet) => Ok(Frame {
            number,
            interface: 0,
            bytes: bytes.to_vec(),
            packet,
        }),
        Err(source) => Err(Refusal::Malformed { number, source }),
    }
}

/// What a frame is, as far as replay cares.
enum Kind {
    Roce,
    /// TCP with its payload at a byte of the frame.
    Tcp {
        payload: usize,
    },
    Other,
    /// It ends before it tells.
    Unknown,
}

impl Kind {
    fn of(frame: &[u8]) -> Self {
        const PROTOCOL_TCP: u8 = 6;
        let Ok((header, ethertype)) = eth::Repr::parse(frame) else {
            return Self::Unknown;
        };
        let at = header.header_len();
        let (protocol, ip_len) = match ethertype {
            eth::ETHERTYPE_IPV4 => match ipv4::Header::new_checked(&frame[at..]) {
                Ok(header) => (header.protocol(), usize::from(header.ihl()) * 4),
                Err(_) => return Self::Unknown,
            },
            eth::ETHERTYPE_IPV6 => match ipv6::Header::new_checked(&frame[at..]) {
                Ok(header) => (header.next_header(), ipv6::LEN),
                Err(_) => return Self::Unknown,
            },
            _ => return Self::Other,
        };
        let transport = frame.get(at + ip_len..).unwrap_or_default();
        match protocol {
            ip::PROTOCOL_UDP => match udp::Header::new_checked(transport) {
                Ok(header) if header.dst_port() == udp::ROCE_PORT => Self::Roce,
                Ok(_) => Self::Other,
                Err(_) => Self::Unknown,
            },
            PROTOCOL_TCP => match transport.get(12) {
                Some(offset) => Self::Tcp {
                    payload: at + ip_len + usize::from(offset >> 4) * 4,
                },
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_a_line_of_five_words() {
        let found = Announcement::parse("2e 1800 1fcb 7f8e42a61000 ::ffff:10.0.0.1").unwrap();
        assert_eq!((found.qpn, found.psn.value()), (0x2e, 0x1800));
        assert_eq!((found.rkey, found.addr), (0x1fcb, 0x7f8e_42a6_1000));
        assert!(found.gid.is_ipv4());
        assert_eq!(Announcement::parse("ready"), None);
        assert_eq!(Announcement::parse("2e 1800 1fcb 7f8e42a61000 here"), None);
    }
}
