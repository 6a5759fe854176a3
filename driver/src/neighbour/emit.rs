//! The frames that the driver sends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ferroce_proto::wire::Mac;
use ferroce_proto::wire::eth::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet,
    Icmpv6Repr, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags,
    NdiscRepr,
};

use super::parse::{ETHERTYPE_ARP, Echo, ND_HOP_LIMIT, solicited_node};

/// Hop limit and TTL of echoes.
const HOP_LIMIT: u8 = 64;

/// The MAC address of an IPv6 multicast address (RFC 2464, 7).
fn multicast_mac(ip: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = ip.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// A frame of `link` around `len` bytes that `fill` writes.
fn frame(link: &eth::Repr, ethertype: u16, len: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = vec![0; link.header_len() + len];
    link.emit(ethertype, &mut frame);
    fill(&mut frame[link.header_len()..]);
    frame
}

/// An ARP packet of `sender`, at the source of `link`.
pub(super) fn arp(
    link: &eth::Repr,
    request: bool,
    sender: Ipv4Addr,
    (target, target_mac): (Ipv4Addr, Mac),
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation: if request {
            ArpOperation::Request
        } else {
            ArpOperation::Reply
        },
        source_hardware_addr: EthernetAddress(link.src.0),
        source_protocol_addr: sender,
        target_hardware_addr: EthernetAddress(target_mac.0),
        target_protocol_addr: target,
    };
    frame(link, ETHERTYPE_ARP, repr.buffer_len(), |bytes| {
        repr.emit(&mut ArpPacket::new_unchecked(bytes));
    })
}

fn icmpv6(
    link: &eth::Repr,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    message: &Icmpv6Repr<'_>,
) -> Vec<u8> {
    let header = Ipv6Repr {
        src_addr: src,
        dst_addr: dst,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.buffer_len(),
        hop_limit,
    };
    let len = header.buffer_len() + header.payload_len;
    frame(link, ETHERTYPE_IPV6, len, |bytes| {
        let mut packet = Ipv6Packet::new_unchecked(bytes);
        header.emit(&mut packet);
        let mut body = Icmpv6Packet::new_unchecked(packet.payload_mut());
        message.emit(&src, &dst, &mut body, &ChecksumCapabilities::default());
    })
}

/// A neighbour solicitation of `src` for `target`: to `to`, or to all stations that may have the address.
pub(super) fn solicit(
    link: eth::Repr,
    src: Ipv6Addr,
    target: Ipv6Addr,
    to: Option<Mac>,
) -> Vec<u8> {
    let (dst, mac) = match to {
        Some(mac) => (target, mac),
        None => (
            solicited_node(target),
            multicast_mac(solicited_node(target)),
        ),
    };
    let link = eth::Repr { dst: mac, ..link };
    let message = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
        target_addr: target,
        lladdr: Some(EthernetAddress(link.src.0).into()),
    });
    icmpv6(&link, (src, dst), ND_HOP_LIMIT, &message)
}

/// A neighbour advertisement of `target` at the source of `link`: to `to`, or unasked to all.
pub(super) fn advertise(link: eth::Repr, target: Ipv6Addr, to: Option<(Ipv6Addr, Mac)>) -> Vec<u8> {
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let (dst, mac) = to.unwrap_or((all_nodes, multicast_mac(all_nodes)));
    let link = eth::Repr { dst: mac, ..link };
    let mut flags = NdiscNeighborFlags::OVERRIDE;
    flags.set(NdiscNeighborFlags::SOLICITED, to.is_some());
    let message = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags,
        target_addr: target,
        lladdr: Some(EthernetAddress(link.src.0).into()),
    });
    icmpv6(&link, (target, dst), ND_HOP_LIMIT, &message)
}

/// An echo request or reply.
pub(super) fn echo(link: &eth::Repr, echo: &Echo<'_>) -> Vec<u8> {
    let (ident, seq_no, data) = (echo.ident, echo.seq, echo.data);
    match (echo.src, echo.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let message = if echo.request {
                Icmpv4Repr::EchoRequest {
                    ident,
                    seq_no,
                    data,
                }
            } else {
                Icmpv4Repr::EchoReply {
                    ident,
                    seq_no,
                    data,
                }
            };
            icmpv4(link, (src, dst), &message)
        }
        (src, dst) => {
            let v6 = |ip| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let message = if echo.request {
                Icmpv6Repr::EchoRequest {
                    ident,
                    seq_no,
                    data,
                }
            } else {
                Icmpv6Repr::EchoReply {
                    ident,
                    seq_no,
                    data,
                }
            };
            icmpv6(link, (v6(src), v6(dst)), HOP_LIMIT, &message)
        }
    }
}

fn icmpv4(link: &eth::Repr, (src, dst): (Ipv4Addr, Ipv4Addr), message: &Icmpv4Repr<'_>) -> Vec<u8> {
    let sums = ChecksumCapabilities::default();
    let header = Ipv4Repr {
        src_addr: src,
        dst_addr: dst,
        next_header: IpProtocol::Icmp,
        payload_len: message.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let len = header.buffer_len() + header.payload_len;
    frame(link, ETHERTYPE_IPV4, len, |bytes| {
        let mut packet = Ipv4Packet::new_unchecked(bytes);
        header.emit(&mut packet, &sums);
        message.emit(
            &mut Icmpv4Packet::new_unchecked(packet.payload_mut()),
            &sums,
        );
    })
}
