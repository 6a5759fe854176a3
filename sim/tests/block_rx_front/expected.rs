//! A packet that must come out of the receive front, and what of it.

use ferroce_proto::wire::{Class, Ip, Packet, eth};
use ferroce_sim::bench::Item;

/// A packet that must come out.
pub(crate) struct Expected {
    pub(crate) number: usize,
    pub(crate) frame: Vec<u8>,
    pub(crate) packet: Box<Packet>,
    pub(crate) gid_index: u8,
}

/// Bytes for the host in beats of their own.
pub(crate) struct Run {
    /// Lane of the first.
    pub(crate) lane: usize,
    /// Beats that hold them.
    pub(crate) beats: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    fn new(lane: usize, bytes: &[u8], lanes: usize) -> Self {
        Self {
            lane,
            beats: if bytes.is_empty() {
                0
            } else {
                (lane + bytes.len()).div_ceil(lanes)
            },
            bytes: bytes.to_vec(),
        }
    }
}

impl Expected {
    /// The packet is a datagram.
    fn has_grh(&self) -> bool {
        self.packet.headers.bth.opcode.class() == Class::Ud
    }

    /// The payload: that of the packet, or the original value of an atomic.
    fn payload(&self, lanes: usize) -> Run {
        if let Some(ack) = self.packet.headers.ext.atomic_ack {
            return Run::new(0, &ack.original.to_le_bytes(), lanes);
        }
        let place = self.packet.payload.clone();
        Run::new(place.start % lanes, &self.frame[place], lanes)
    }

    /// All that comes out: the GRH of a datagram, the payload.
    pub(crate) fn runs(&self, lanes: usize) -> Vec<Run> {
        let grh = self.has_grh().then(|| self.packet.grh(&self.frame));
        let grh = grh.map(|grh| Run::new(0, &grh, lanes));
        grh.into_iter().chain([self.payload(lanes)]).collect()
    }

    /// Where `meta` is not that of this packet.
    pub(crate) fn differs(&self, meta: &Item, lanes: usize, class: u8) -> Option<String> {
        let headers = &self.packet.headers;
        let bth = &headers.bth;
        let Run { lane, beats, bytes } = self.payload(lanes);
        let imm = headers.ext.imm.or(headers.ext.ieth).unwrap_or(0);
        let numbers = [
            ("opcode", bth.opcode.code().into()),
            ("solicited", bth.solicited.into()),
            ("ack_req", bth.ack_req.into()),
            ("becn", bth.becn.into()),
            ("ce", (headers.ip.ecn() == 3).into()),
            ("ipv6", matches!(headers.ip, Ip::V6(_)).into()),
            ("pkey", bth.pkey.into()),
            ("qpn", bth.dest_qp.into()),
            ("psn", u32::from(bth.psn).into()),
            ("gid_index", self.gid_index.into()),
            ("vid", eth::tag::vid(headers.eth.vlan).into()),
            ("imm", imm.into()),
            ("plen", bytes.len() as u64),
            ("lane", lane as u64),
            ("beats", beats as u64),
            ("grh", self.has_grh().into()),
            ("packet_class", class.into()),
        ];
        for (field, expected) in numbers {
            // The lane of no payload is of no use.
            if field != "lane" || beats > 0 {
                let found = meta.get(field);
                if found != expected {
                    return Some(format!("{field} is {found:#x}, expected {expected:#x}"));
                }
            }
        }
        let little =
            |words: Vec<u32>| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        if little(meta.words("src_gid")) != headers.ip.src_gid().0 {
            return Some("src_gid".into());
        }
        let ext: Vec<u8> = ["operands", "dma_len", "rkey", "ext"]
            .iter()
            .flat_map(|field| little(meta.words(field)))
            .rev()
            .collect();
        let len = bth.opcode.ext_len();
        let start = self.packet.payload.start - len;
        let expected = &self.frame[start..start + len];
        (ext[..len] != *expected).then(|| {
            format!(
                "extension headers {:02x?}, expected {expected:02x?}",
                &ext[..len]
            )
        })
    }
}
