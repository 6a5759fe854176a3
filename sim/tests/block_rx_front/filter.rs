//! Handling of a frame, by the rules of the receive parser, in plain Rust over `proto::wire`.

use std::collections::BTreeMap;

use ferroce_proto::wire::{Error, Gid, Ip, Mac, Packet, eth, ip, ipv4, udp};

/// A port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Its MAC address.
    pub(crate) mac: Mac,
    /// It takes frames for any MAC address.
    pub(crate) promiscuous: bool,
    /// Its GID table: entry, address, and whether that is an IPv6 address; in the order of the entries.
    pub(crate) gids: BTreeMap<u8, (Gid, bool)>,
}

/// Handling of a frame, when there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Handed on, addressed to this entry of the GID table.
    Good(Box<Packet>, u8),
    /// Dropped, by the counter of this name.
    Dropped(&'static str),
}

impl Port {
    /// The fate of a frame; `bad`: it is marked.
    pub(crate) fn filter(&self, frame: &[u8], bad: bool) -> Outcome {
        if bad {
            return Outcome::Dropped("rx_bad_frames");
        }
        if frame.len() < eth::LEN + ipv4::LEN + udp::LEN {
            return Outcome::Dropped("rx_malformed");
        }
        let (link, ethertype) = eth::Repr::parse(frame).expect("long enough for a tag");
        let datagram = &frame[link.header_len()..];
        let ip_len = match ethertype {
            eth::ETHERTYPE_IPV6 => 40,
            _ => 20,
        };
        if datagram.len() < ip_len + udp::LEN {
            return Outcome::Dropped("rx_malformed");
        }
        let ours = link.dst.0[0] & 1 == 1 || link.dst == self.mac;
        if !ours && !self.promiscuous {
            return Outcome::Dropped("rx_wrong_address");
        }
        if !ours || !is_roce(ethertype, datagram) {
            return Outcome::Dropped("rx_not_roce");
        }
        let packet = match Packet::parse(frame) {
            Ok(packet) => Some(packet),
            Err(Error::Icrc { .. }) => None,
            Err(_) => return Outcome::Dropped("rx_malformed"),
        };
        let (ip, _) = Ip::parse(ethertype, datagram).expect("well formed");
        let dst = (ip.dst_gid(), matches!(ip, Ip::V6(_)));
        let Some((index, _)) = self.gids.iter().find(|(_, gid)| **gid == dst) else {
            return Outcome::Dropped("rx_wrong_address");
        };
        match packet {
            Some(packet) => Outcome::Good(packet.into(), *index),
            None => Outcome::Dropped("rx_icrc_errors"),
        }
    }
}

/// UDP to port 4791 in an IPv4 datagram without options that is no fragment, or right behind an IPv6 header.
fn is_roce(ethertype: u16, ip: &[u8]) -> bool {
    let (protocol, udp) = match ethertype {
        eth::ETHERTYPE_IPV4 if ip[0] == 0x45 && ip[6] & 0x3f == 0 && ip[7] == 0 => {
            (ip[9], &ip[20..])
        }
        eth::ETHERTYPE_IPV6 if ip[0] >> 4 == 6 => (ip[6], &ip[40..]),
        _ => return false,
    };
    protocol == ip::PROTOCOL_UDP && udp[2..4] == udp::ROCE_PORT.to_be_bytes()
}
