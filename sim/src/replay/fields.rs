//! The fields of a packet, and which of them may differ between two implementations.

use ferroce_proto::wire::{
    Ext, Field, Gid, Ip, Packet, Syndrome, aeth, atomic, bth, deth, eth, imm, ipv4, ipv6, reth, udp,
};

use crate::scoreboard::icrc::crc32;

/// A difference that does not count.
#[derive(Clone, Copy, Debug)]
pub struct Permitted {
    /// What may differ.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
}

/// IPv4 identification.
pub(super) const IDENTIFICATION: &str = "IPv4 identification";
const CHECKSUM: &str = "IPv4 header checksum";
const SOURCE_PORT: &str = "UDP source port";
const MIG_REQ: &str = "BTH MigReq";
const CREDITS: &str = "AETH credits";
/// MSN of an AETH.
pub(super) const MSN: &str = "AETH MSN";
/// AckReq of a BTH.
pub(super) const ACK_REQ: &str = "BTH AckReq";
/// What differs between a READ response with an AETH and one without.
pub(super) const FORM: [&str; 6] = [
    "BTH opcode",
    "AETH syndrome",
    CREDITS,
    MSN,
    "UDP length",
    "IPv4 total length",
];
/// NAK code of an AETH.
pub(super) const NAK_CODE: &str = "AETH NAK code";

/// Fields that may differ.
pub const PERMITTED_FIELDS: &[Permitted] = &[
    Permitted {
        what: IDENTIFICATION,
        why: "free in datagrams that are never fragmented (RFC 6864)",
    },
    Permitted {
        what: CHECKSUM,
        why: "covers the identification; it must be right",
    },
    Permitted {
        what: SOURCE_PORT,
        why: "free, fixed for a connection (A17.3.2.1)",
    },
    Permitted {
        what: MIG_REQ,
        why: "the device sends 1, the state MIGRATED of IB1 17.2.8; soft-RoCE sends 0",
    },
    Permitted {
        what: CREDITS,
        why: "a responder announces as many as it likes, or none (31)",
    },
];

/// Differences in behaviour that do not count.
pub const PERMITTED_BEHAVIOUR: &[Permitted] = &[
    Permitted {
        what: "ACK coalescing",
        why: "an ACK may stand for earlier ones, on either side; whenever the device is quiet it has \
              acknowledged exactly what was due",
    },
    Permitted {
        what: "NAK of a SEND longer than its receive buffer",
        why: "invalid request (0x61) as IB1 9.7.5 says, where soft-RoCE sends remote \
              operational error (0x63)",
    },
    Permitted {
        what: "NAK sequence error right behind an RNR NAK",
        why: "soft-RoCE sends one for the packets that follow; IB1 9.7.5 drops them silently",
    },
    Permitted {
        what: "AckReq of a request",
        why: "when to ask for an acknowledgement is the requester's choice; the last packet of a SEND or \
              WRITE must ask",
    },
    Permitted {
        what: "MSN in the answer to a repeated READ or atomic",
        why: "that of the request or the current one",
    },
    Permitted {
        what: "form of the answer to a READ that goes on from the middle",
        why: "soft-RoCE answers RESPONSE MIDDLE and LAST without a FIRST; the request is one of its own and \
              its answer FIRST or ONLY (IB1 9.7.5.1.5)",
    },
    Permitted {
        what: "answers around a loss",
        why: "where requests are repeated or missing, answers may be lost behind the capture point: those \
              of the device that were not recorded must be right for what was fed; a request repeated \
              while its answer is still due may be answered once",
    },
    Permitted {
        what: "when a requester repeats",
        why: "with losses, each packet of the device is compared with the recorded packet of its PSN, not \
              one by one: all of each message must be sent, repeats must be the same, and completions \
              and memory must be what the recorded answers make them",
    },
];

/// A field and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// Name.
    pub field: &'static str,
    /// Contents.
    pub text: String,
}

/// A field in which two packets differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// Name.
    pub field: &'static str,
    /// What was recorded.
    pub expected: String,
    /// What the device under test sent.
    pub found: String,
    /// The difference is one of [`PERMITTED_FIELDS`] or [`PERMITTED_BEHAVIOUR`].
    pub permitted: bool,
}

/// In what two lists of fields differ. A field that one of them lacks is `none` there.
#[must_use]
pub(super) fn differences(expected: &[Value], found: &[Value]) -> Vec<FieldDifference> {
    let text = |list: &[Value], field| {
        let value = list.iter().find(|value| value.field == field);
        value.map_or("none".to_owned(), |value| value.text.clone())
    };
    let added = found
        .iter()
        .filter(|f| !expected.iter().any(|e| e.field == f.field));
    let names = expected.iter().chain(added).map(|value| value.field);
    names
        .map(|field| FieldDifference {
            field,
            expected: text(expected, field),
            found: text(found, field),
            permitted: PERMITTED_FIELDS.iter().any(|p| p.what == field),
        })
        .filter(|difference| difference.expected != difference.found)
        .collect()
}

/// All fields of a frame that proved to be `packet`, from the Ethernet header to the payload. The ICRC
/// is not among them: it covers fields that may differ, and is checked by itself.
#[must_use]
pub(super) fn of(frame: &[u8], packet: &Packet) -> Vec<Value> {
    let mut values = Values(Vec::new());
    let headers = &packet.headers;
    let at_ip = headers.eth.header_len();
    let at_udp = at_ip + headers.ip.header_len();
    let at_bth = at_udp + udp::LEN;
    values.text("destination MAC", headers.eth.dst.to_string());
    values.text("source MAC", headers.eth.src.to_string());
    if headers.eth.vlan.is_some() {
        values.add("VLAN tag", eth::tag::field::TCI, &frame[eth::LEN..]);
    }
    values.ip(&headers.ip, &frame[at_ip..]);
    for (name, field) in [
        (SOURCE_PORT, udp::field::SRC_PORT),
        ("UDP destination port", udp::field::DST_PORT),
        ("UDP length", udp::field::LENGTH),
        ("UDP checksum", udp::field::CHECKSUM),
    ] {
        values.add(name, field, &frame[at_udp..]);
    }
    values.text("BTH opcode", format!("{:?}", headers.bth.opcode));
    for (name, field) in [
        ("BTH SE", bth::field::SE),
        (MIG_REQ, bth::field::MIG_REQ),
        ("BTH PadCnt", bth::field::PAD_CNT),
        ("BTH TVer", bth::field::TVER),
        ("BTH P_Key", bth::field::P_KEY),
        ("BTH FECN", bth::field::FECN),
        ("BTH BECN", bth::field::BECN),
        ("BTH reserved bits behind BECN", bth::field::RESV6),
        ("BTH destination QP", bth::field::DEST_QP),
        (ACK_REQ, bth::field::ACK_REQ),
        ("BTH reserved bits behind AckReq", bth::field::RESV7),
        ("BTH PSN", bth::field::PSN),
    ] {
        values.add(name, field, &frame[at_bth..]);
    }
    values.extensions(packet, &frame[at_bth..]);
    let payload = &frame[packet.payload.clone()];
    let digest = crc32(payload);
    values.text(
        "payload",
        format!("{} bytes (CRC {digest:08x})", payload.len()),
    );
    values.0
}

/// Fields as they are collected.
struct Values(Vec<Value>);

impl Values {
    fn text(&mut self, field: &'static str, text: String) {
        self.0.push(Value { field, text });
    }

    fn add(&mut self, name: &'static str, place: Field, header: &[u8]) {
        self.text(name, format!("{:#x}", place.get(header)));
    }

    fn ip(&mut self, ip: &Ip, header: &[u8]) {
        let gid = |gid: Gid| gid.ip().to_string();
        self.text("source IP address", gid(ip.src_gid()));
        self.text("destination IP address", gid(ip.dst_gid()));
        let fields: &[(&'static str, Field)] = match ip {
            Ip::V4(_) => &[
                ("IPv4 type of service", ipv4::field::TOS),
                ("IPv4 total length", ipv4::field::TOTAL_LEN),
                (IDENTIFICATION, ipv4::field::IDENT),
                ("IPv4 reserved flag", ipv4::field::FLAG_RESERVED),
                ("IPv4 DF", ipv4::field::DF),
                ("IPv4 TTL", ipv4::field::TTL),
                (CHECKSUM, ipv4::field::CHECKSUM),
            ],
            Ip::V6(_) => &[
                ("IPv6 traffic class", ipv6::field::TRAFFIC_CLASS),
                ("IPv6 flow label", ipv6::field::FLOW_LABEL),
                ("IPv6 payload length", ipv6::field::PAYLOAD_LEN),
                ("IPv6 hop limit", ipv6::field::HOP_LIMIT),
            ],
        };
        for &(name, field) in fields {
            self.add(name, field, header);
        }
    }

    fn extensions(&mut self, packet: &Packet, transport: &[u8]) {
        let opcode = packet.headers.bth.opcode;
        let tables: [(Ext, &[(&'static str, Field)]); 7] = [
            (
                Ext::Deth,
                &[
                    ("DETH Q_Key", deth::field::Q_KEY),
                    ("DETH source QP", deth::field::SRC_QP),
                ],
            ),
            (
                Ext::Reth,
                &[
                    ("RETH virtual address", reth::field::VA),
                    ("RETH rkey", reth::field::R_KEY),
                    ("RETH DMA length", reth::field::DMA_LEN),
                ],
            ),
            (
                Ext::AtomicEth,
                &[
                    ("AtomicETH virtual address", atomic::field::VA),
                    ("AtomicETH rkey", atomic::field::R_KEY),
                    ("AtomicETH swap or add", atomic::field::SWAP_ADD),
                    ("AtomicETH compare", atomic::field::COMPARE),
                ],
            ),
            (Ext::Aeth, &[(MSN, aeth::field::MSN)]),
            (
                Ext::AtomicAckEth,
                &[("AtomicAckETH original", atomic::ack::field::ORIGINAL)],
            ),
            (Ext::ImmDt, &[("immediate data", imm::field::IMM)]),
            (Ext::Ieth, &[("IETH rkey", imm::ieth::field::R_KEY)]),
        ];
        for (ext, fields) in tables {
            let Some(at) = opcode.ext_offset(ext) else {
                continue;
            };
            if let (Ext::Aeth, Some(aeth)) = (ext, packet.headers.ext.aeth) {
                self.syndrome(aeth.syndrome);
            }
            for &(name, field) in fields {
                self.add(name, field, &transport[at..]);
            }
        }
    }

    fn syndrome(&mut self, syndrome: Syndrome) {
        let (kind, value) = match syndrome {
            Syndrome::Ack { credits } => ("ACK", Some((CREDITS, format!("{credits}")))),
            Syndrome::RnrNak { timer } => ("RNR NAK", Some(("AETH RNR timer", format!("{timer}")))),
            Syndrome::Nak(code) => ("NAK", Some((NAK_CODE, format!("{code:?}")))),
            Syndrome::Reserved(_) => ("reserved", None),
        };
        self.text("AETH syndrome", kind.to_owned());
        if let Some((field, text)) = value {
            self.text(field, text);
        }
    }
}
