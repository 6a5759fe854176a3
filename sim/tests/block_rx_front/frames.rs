//! Frames to send.

use fastrand::Rng;
use ferroce_proto::wire::{
    BthRepr, EthRepr, Gid, Headers, Ip, Ipv4Repr, Ipv6Repr, Mac, Opcode, Psn, UdpRepr, icrc, ipv4,
};
use ferroce_sim::random::extensions;

use crate::filter::Port;

/// MAC address of the port.
pub(crate) const MAC: Mac = Mac([0x52, 0x54, 0, 0xa1, 0xb2, 0xc3]);
/// Its IPv4 address.
pub(crate) const IPV4: [u8; 4] = [10, 20, 30, 41];
/// Its IPv6 address.
pub(crate) const IPV6: [u8; 16] = [0xfd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

/// The port under test.
pub(crate) fn port() -> Port {
    Port {
        mac: MAC,
        promiscuous: false,
        gids: [
            (2, (Gid::from(std::net::Ipv6Addr::from(IPV6)), true)),
            (15, (Gid::from(std::net::Ipv4Addr::from(IPV4)), false)),
        ]
        .into(),
    }
}

/// What stands in front of the BTH.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub ipv6: bool,
    pub(crate) vlan: bool,
}

impl Layout {
    pub(crate) const ALL: [Self; 4] = [
        Self {
            ipv6: false,
            vlan: false,
        },
        Self {
            ipv6: false,
            vlan: true,
        },
        Self {
            ipv6: true,
            vlan: false,
        },
        Self {
            ipv6: true,
            vlan: true,
        },
    ];
}

fn bytes<const N: usize>(rng: &mut Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill(&mut bytes);
    bytes
}

/// A good packet for the port with random fields and payload.
pub(crate) fn packet(rng: &mut Rng, opcode: Opcode, layout: Layout, payload: usize) -> Vec<u8> {
    let ip = if layout.ipv6 {
        Ip::V6(Ipv6Repr {
            src: bytes::<16>(rng).into(),
            dst: IPV6.into(),
            traffic_class: rng.u8(..),
            flow_label: rng.u32(..1 << 20),
            hop_limit: rng.u8(..),
        })
    } else {
        Ip::V4(Ipv4Repr {
            src: bytes::<4>(rng).into(),
            dst: IPV4.into(),
            tos: rng.u8(..),
            ident: rng.u16(..),
            ttl: rng.u8(..),
        })
    };
    let ext = extensions(rng, opcode);
    let headers = Headers {
        eth: EthRepr {
            dst: MAC,
            src: Mac(bytes(rng)),
            vlan: layout.vlan.then(|| rng.u16(..)),
        },
        ip,
        udp: UdpRepr {
            src_port: rng.u16(..),
        },
        bth: BthRepr {
            solicited: rng.bool(),
            mig_req: rng.bool(),
            pkey: rng.u16(..),
            fecn: rng.bool(),
            becn: rng.bool(),
            ack_req: rng.bool(),
            ..BthRepr::new(opcode, rng.u32(..1 << 24), Psn::new(rng.u32(..)))
        },
        ext,
    };
    let payload: Vec<u8> = std::iter::repeat_with(|| rng.u8(..))
        .take(payload)
        .collect();
    let mut frame = vec![0; headers.frame_len(payload.len())];
    headers.build(&payload, &mut frame).expect("builds");
    frame
}

/// A random good packet of at most `longest` bytes of payload.
pub(crate) fn any_packet(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let opcode = *rng.choice(Opcode::ALL).expect("there are opcodes");
    let layout = *rng.choice(&Layout::ALL).expect("there are layouts");
    let payload = if opcode.has_payload() {
        rng.usize(..=longest)
    } else {
        0
    };
    packet(rng, opcode, layout, payload)
}

/// Bytes in front of the IP header of a packet made here.
pub(crate) fn ip_start(frame: &[u8]) -> usize {
    if frame[12..14] == [0x81, 0] { 18 } else { 14 }
}

/// Makes the IPv4 header checksum and the ICRC of a changed packet right again; the ICRC stands where the IP length
/// says, if that is within the frame.
pub(crate) fn seal(frame: &mut [u8]) {
    let start = ip_start(frame);
    let datagram = &mut frame[start..];
    let len = if datagram[0] >> 4 == 6 {
        40 + usize::from(u16::from_be_bytes([datagram[4], datagram[5]]))
    } else {
        let mut header = ipv4::Header::new_checked(&mut datagram[..20]).expect("20 bytes");
        header.set_checksum(header.computed_checksum());
        usize::from(header.total_len())
    };
    if let Some(datagram) = datagram.get_mut(..len) {
        // Too short for an ICRC is wrong enough.
        let _ = icrc::seal(datagram);
    }
}

/// A packet that is wrong, or just different, in one of many ways.
pub(crate) fn odd_packet(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let mut frame = any_packet(rng, longest);
    let ip = ip_start(&frame);
    let ipv6 = frame[ip] >> 4 == 6;
    let udp = ip + if ipv6 { 40 } else { 20 };
    match rng.u8(..16) {
        // Anywhere, ICRC left alone.
        0 => {
            let at = rng.usize(..frame.len());
            frame[at] ^= 1 << rng.u8(..8);
            return frame;
        }
        // Anywhere behind the Ethernet header, ICRC right.
        1..=4 => {
            let at = rng.usize(ip..(udp + 20).min(frame.len()));
            frame[at] = rng.u8(..);
        }
        // Opcode, flags with PadCnt and TVer.
        5 => frame[udp + 8] = rng.u8(..),
        6 => frame[udp + 9] = rng.u8(..),
        // Lengths: UDP, IP, both.
        7 => frame[udp + 5] = frame[udp + 5].wrapping_add(rng.u8(..)),
        8 => {
            let length = if ipv6 { ip + 5 } else { ip + 3 };
            frame[length] = frame[length].wrapping_add(rng.u8(..));
        }
        9 => {
            let (length, change) = (
                if ipv6 { ip + 4 } else { ip + 2 },
                rng.u16(..64).wrapping_sub(32),
            );
            for at in [length, udp + 4] {
                let value = u16::from_be_bytes([frame[at], frame[at + 1]]).wrapping_add(change);
                frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
        }
        // Cut.
        10 | 11 => {
            frame.truncate(rng.usize(1..frame.len()));
            return frame;
        }
        // Bytes behind the ICRC.
        12 | 13 => {
            let more = rng.usize(..300);
            frame.extend(std::iter::repeat_with(|| rng.u8(..)).take(more));
            return frame;
        }
        // Another receiver: MAC, IP.
        14 => frame[rng.usize(..6)] ^= 1 << rng.u8(..8),
        _ => {
            let last = udp - 1 - rng.usize(..4);
            frame[last] ^= 1 << rng.u8(..8);
        }
    }
    seal(&mut frame);
    frame
}

/// Bytes that are no packet at all, some of them with the start of one.
pub(crate) fn garbage(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let mut frame = vec![0; rng.usize(1..=longest)];
    rng.fill(&mut frame);
    if rng.bool() {
        let start = any_packet(rng, 64);
        let len = rng.usize(..=start.len()).min(frame.len());
        frame[..len].copy_from_slice(&start[..len]);
    }
    frame
}

/// An ARP request, which is for everybody.
pub(crate) const ARP: [u8; 42] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0, 0, 2, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1,
    0x52, 0x54, 0, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 20, 30, 41,
];
