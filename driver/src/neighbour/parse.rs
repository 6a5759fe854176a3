//! What a frame says about neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ferroce_proto::wire::Mac;
use ferroce_proto::wire::eth::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv4Packet, Icmpv4Repr, Icmpv6Message,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv4Packet, Ipv6Packet, NdiscNeighborFlags, NdiscRepr,
};

/// EtherType of ARP.
pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
/// Hop limit of neighbour discovery: nothing from beyond a router (RFC 4861, 7.1).
pub(super) const ND_HOP_LIMIT: u8 = 255;

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// ARP (RFC 826): `sender` asks for `target`, or says where `sender` is.
    Arp {
        request: bool,
        sender: Ipv4Addr,
        mac: Mac,
        target: Ipv4Addr,
    },
    /// Neighbour solicitation (RFC 4861, 4.3); without `from` the test of an address for being free.
    Solicit {
        from: Option<(Ipv6Addr, Option<Mac>)>,
        target: Ipv6Addr,
    },
    /// Neighbour advertisement (RFC 4861, 4.4).
    Advertise {
        target: Ipv6Addr,
        mac: Option<Mac>,
        solicited: bool,
        overrides: bool,
    },
    /// Echo request or reply.
    Echo(Echo<'a>),
}

/// An echo request or reply (RFC 792, RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo<'a> {
    pub(super) request: bool,
    /// Both of one family.
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) ident: u16,
    pub(super) seq: u16,
    pub(super) data: &'a [u8],
}

/// A frame that breaks a rule of its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<smoltcp::wire::Error> for Malformed {
    fn from(_: smoltcp::wire::Error) -> Self {
        Self
    }
}

/// The address of one station.
pub(super) fn is_station(Mac(octets): Mac) -> bool {
    octets != [0; 6] && octets[0] & 1 == 0
}

/// The address of one host.
pub(super) fn is_host(ip: IpAddr) -> bool {
    let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || broadcast)
}

/// The Ethernet header of a frame, and what it says; `None`: nothing about neighbours.
pub(super) fn parse(frame: &[u8]) -> Result<(eth::Repr, Option<Message<'_>>), Malformed> {
    let (link, ethertype) = eth::Repr::parse(frame).map_err(|_| Malformed)?;
    if !is_station(link.src) {
        return Err(Malformed);
    }
    let packet = &frame[link.header_len()..];
    let message = match ethertype {
        ETHERTYPE_ARP => Some(arp(packet)?),
        ETHERTYPE_IPV4 => ipv4(packet)?,
        ETHERTYPE_IPV6 => ipv6(packet)?,
        _ => None,
    };
    Ok((link, message))
}

fn arp(packet: &[u8]) -> Result<Message<'_>, Malformed> {
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(mac),
        source_protocol_addr: sender,
        target_protocol_addr: target,
        ..
    } = ArpRepr::parse(&ArpPacket::new_checked(packet)?)?
    else {
        return Err(Malformed);
    };
    let request = match operation {
        ArpOperation::Request => true,
        ArpOperation::Reply => false,
        ArpOperation::Unknown(_) => return Err(Malformed),
    };
    let mac = Mac(mac);
    // A sender of 0.0.0.0 tests whether the address is free (RFC 5227).
    let probe = request && sender.is_unspecified();
    if !is_station(mac) || !(probe || is_host(sender.into())) {
        return Err(Malformed);
    }
    Ok(Message::Arp {
        request,
        sender,
        mac,
        target,
    })
}

fn ipv4(packet: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    let packet = Ipv4Packet::new_checked(packet)?;
    if packet.next_header() != IpProtocol::Icmp || packet.more_frags() || packet.frag_offset() > 0 {
        return Ok(None);
    }
    if packet.header_len() < 20 || !packet.verify_checksum() {
        return Err(Malformed);
    }
    let (src, dst) = (packet.src_addr().into(), packet.dst_addr().into());
    let message = Icmpv4Packet::new_checked(packet.payload())?;
    if !message.verify_checksum() {
        return Err(Malformed);
    }
    let sums = ChecksumCapabilities::ignored();
    let (request, ident, seq, data) = match Icmpv4Repr::parse(&message, &sums) {
        Ok(Icmpv4Repr::EchoRequest {
            ident,
            seq_no,
            data,
        }) => (true, ident, seq_no, data),
        Ok(Icmpv4Repr::EchoReply {
            ident,
            seq_no,
            data,
        }) => (false, ident, seq_no, data),
        _ => return Ok(None),
    };
    Ok(Some(Message::Echo(Echo {
        request,
        src,
        dst,
        ident,
        seq,
        data,
    })))
}

fn ipv6(packet: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    let packet = Ipv6Packet::new_checked(packet)?;
    if packet.next_header() != IpProtocol::Icmpv6 {
        return Ok(None);
    }
    let (src, dst) = (packet.src_addr(), packet.dst_addr());
    let Ok(message) = Icmpv6Packet::new_checked(packet.payload()) else {
        return Err(Malformed);
    };
    if !message.verify_checksum(&src, &dst) {
        return Err(Malformed);
    }
    let nd = match message.msg_type() {
        Icmpv6Message::EchoRequest | Icmpv6Message::EchoReply => false,
        Icmpv6Message::NeighborSolicit | Icmpv6Message::NeighborAdvert => true,
        _ => return Ok(None),
    };
    if nd && packet.hop_limit() != ND_HOP_LIMIT {
        return Err(Malformed);
    }
    let message = Icmpv6Repr::parse(&src, &dst, &message, &ChecksumCapabilities::ignored())?;
    let message = match message {
        Icmpv6Repr::EchoRequest {
            ident,
            seq_no,
            data,
        } => echo(true, (src, dst), ident, seq_no, data),
        Icmpv6Repr::EchoReply {
            ident,
            seq_no,
            data,
        } => echo(false, (src, dst), ident, seq_no, data),
        Icmpv6Repr::Ndisc(message) => neighbour(src, dst, &message)?,
        _ => return Ok(None),
    };
    Ok(Some(message))
}

fn echo(
    request: bool,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    ident: u16,
    seq: u16,
    data: &[u8],
) -> Message<'_> {
    let (src, dst) = (src.into(), dst.into());
    Message::Echo(Echo {
        request,
        src,
        dst,
        ident,
        seq,
        data,
    })
}

/// The rules of RFC 4861, 7.1.1 and 7.1.2, beyond those of every message.
fn neighbour(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    message: &NdiscRepr<'_>,
) -> Result<Message<'static>, Malformed> {
    let station = |lladdr: Option<smoltcp::wire::RawHardwareAddress>| {
        let Some(lladdr) = lladdr else {
            return Ok(None);
        };
        let mac = Mac(lladdr.as_bytes().try_into().map_err(|_| Malformed)?);
        is_station(mac).then_some(Some(mac)).ok_or(Malformed)
    };
    match *message {
        NdiscRepr::NeighborSolicit {
            target_addr: target,
            lladdr,
        } => {
            let mac = station(lladdr)?;
            let probe = src.is_unspecified();
            let right = if probe {
                mac.is_none() && dst == solicited_node(target)
            } else {
                is_host(src.into())
            };
            if !right || !is_host(target.into()) {
                return Err(Malformed);
            }
            let from = (!probe).then_some((src, mac));
            Ok(Message::Solicit { from, target })
        }
        NdiscRepr::NeighborAdvert {
            flags,
            target_addr: target,
            lladdr,
        } => {
            let mac = station(lladdr)?;
            let solicited = flags.contains(NdiscNeighborFlags::SOLICITED);
            if !is_host(target.into()) || (dst.is_multicast() && solicited) {
                return Err(Malformed);
            }
            let overrides = flags.contains(NdiscNeighborFlags::OVERRIDE);
            Ok(Message::Advertise {
                target,
                mac,
                solicited,
                overrides,
            })
        }
        _ => Err(Malformed),
    }
}

/// The multicast address at which a host hears solicitations for `ip` (RFC 4291, 2.7.1).
pub(super) fn solicited_node(ip: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b] = ip.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | (a & 0xff), b)
}
