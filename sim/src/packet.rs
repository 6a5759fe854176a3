//! Frames of packets.

use ferroce_proto::wire::{
    BthRepr, EthRepr, Extensions, Gid, Headers, Ip, Mac, Opcode, Psn, UdpRepr,
};

/// The frame of a packet, with pad and ICRC.
///
/// # Panics
/// If the headers lack an extension header of their opcode, or the payload does not fit it.
#[must_use]
pub fn frame(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers.frame_len(payload.len())];
    let built = headers.build(payload, &mut frame);
    built.expect("extension headers and payload follow the opcode");
    frame
}

/// Headers of a packet to queue pair `qpn` between two ports, each a MAC and an IP address, both of one kind: without a tag and
/// extension headers. A request asks for an ACK.
///
/// # Panics
/// If the addresses are not of one kind.
#[must_use]
pub fn headers(from: (Mac, Gid), to: (Mac, Gid), qpn: u32, opcode: Opcode, psn: Psn) -> Headers {
    Headers {
        eth: EthRepr {
            dst: to.0,
            src: from.0,
            vlan: None,
        },
        ip: Ip::between(from.1, to.1, 0, 0, 64).expect("addresses of one kind"),
        udp: UdpRepr { src_port: 0xc123 },
        bth: BthRepr {
            ack_req: opcode.is_request(),
            ..BthRepr::new(opcode, qpn, psn)
        },
        ext: Extensions::default(),
    }
}
