//! Captured frames, and every reason to drop or to refuse.

extern crate std;

use std::{vec, vec::Vec};

use super::*;
use crate::wire::{AethRepr, Ext, NakCode, RethRepr, Syndrome, cnp, ipv4, samples};

pub(super) fn parse(frame: &[u8]) -> Packet {
    Packet::parse(frame).unwrap_or_else(|error| panic!("{error}: {frame:02x?}"))
}

pub(super) fn build(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xee; headers.frame_len(payload.len())];
    assert_eq!(headers.build(payload, &mut frame), Ok(frame.len()));
    frame
}

/// A captured frame after `change`, with IPv4 checksum and ICRC made right again.
fn changed(frame: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Result<Packet, Error> {
    let mut frame = frame.to_vec();
    change(&mut frame);
    if frame[14] == 0x45 {
        let mut ip = ipv4::Header::new_checked(&mut frame[14..34]).unwrap();
        ip.set_checksum(ip.computed_checksum());
    }
    icrc::seal(&mut frame[14..]).unwrap();
    Packet::parse(&frame)
}

#[test]
fn captured_frames_are_built_again_byte_for_byte() {
    for frame in samples::ALL {
        let packet = parse(frame);
        assert_eq!(build(&packet.headers, &frame[packet.payload]), frame);
    }
}

#[test]
fn captured_write_with_immediate() {
    let packet = parse(&samples::RC_WRITE_ONLY_IMM);
    let headers = packet.headers;
    assert_eq!(headers.bth.opcode, Opcode::RcWriteOnlyImm);
    assert_eq!(headers.udp.src_port, 0xc349);
    let ext = Extensions {
        reth: Some(RethRepr {
            va: 0x7f60_cb8d_8000,
            rkey: 0xe4c,
            dma_len: 0,
        }),
        imm: Some(0xdead_be00),
        ..Extensions::default()
    };
    assert_eq!(headers.ext, ext);
    assert_eq!(packet.payload, 74..74);
}

#[test]
fn captured_nak() {
    let packet = parse(&samples::RC_NAK_ACCESS);
    let aeth = AethRepr {
        syndrome: Syndrome::Nak(NakCode::RemoteAccess),
        msn: 0,
    };
    assert_eq!(packet.headers.ext.aeth, Some(aeth));
}

#[test]
fn pad_is_no_payload() {
    let packet = parse(&samples::RC_READ_RESPONSE_ONLY);
    assert_eq!(samples::RC_READ_RESPONSE_ONLY[packet.payload], [0xa5]);
}

#[test]
fn grh_of_a_datagram() {
    let (v4, v6) = (&samples::UD_SEND_ONLY, &samples::V6_UD_SEND_ONLY);
    let grh = parse(v4).grh(v4);
    assert_eq!((&grh[..20], &grh[20..]), (&[0; 20][..], &v4[14..34]));
    assert_eq!(parse(v6).grh(v6), v6[14..54]);
}

#[test]
fn padding_of_short_frames_is_ignored() {
    let mut frame = [0x55; 60];
    frame[..58].copy_from_slice(&samples::RC_SEND_ONLY_EMPTY);
    assert_eq!(parse(&frame), parse(&samples::RC_SEND_ONLY_EMPTY));
}

#[test]
fn vlan_tag_is_outside_the_icrc() {
    let mut headers = parse(&samples::UD_SEND_ONLY).headers;
    headers.eth.vlan = Some(0x2064);
    let frame = build(&headers, &[1, 2, 3]);
    let mut retagged = frame.clone();
    retagged[15] ^= 1;
    let packet = parse(&retagged);
    assert_eq!(packet.headers.eth.vlan, Some(0x2065));
    assert_eq!(retagged[packet.payload], [1, 2, 3]);
    assert_eq!(frame.len(), 14 + 4 + 20 + 8 + 12 + 8 + 4 + 4);
}

#[test]
fn congestion_notification() {
    let marked = parse(&samples::UD_SEND_ONLY).headers;
    let headers = Headers {
        bth: cnp::bth(0x2b, marked.bth.pkey),
        ext: Extensions::default(),
        ..marked
    };
    let frame = build(&headers, &[]);
    assert_eq!(frame.len(), 74);
    assert_eq!(frame[54..70], [0; 16]);
    assert_eq!(parse(&frame).headers, headers);
}

#[test]
fn reasons_to_drop_outside_ip() {
    let ack = &samples::RC_ACK;
    let truncated = |header, need, have| Error::Truncated { header, need, have };
    assert_eq!(
        Packet::parse(&ack[..13]),
        Err(truncated("Ethernet header", 14, 13))
    );
    assert_eq!(
        Packet::parse(&ack[..33]),
        Err(truncated("IPv4 header", 20, 19))
    );
    assert_eq!(
        Packet::parse(&samples::V6_ACK[..53]),
        Err(truncated("IPv6 header", 40, 39))
    );
    assert_eq!(
        Packet::parse(&ack[..61]),
        Err(Error::FrameTruncated { need: 48, have: 47 })
    );
    assert_eq!(
        changed(ack, |f| f[12..14].copy_from_slice(&[8, 6])),
        Err(Error::EtherType(0x0806))
    );
}

#[test]
fn reasons_to_drop_in_ip_and_udp() {
    let ack = &samples::RC_ACK;
    let mut frame = *ack;
    frame[22] = 1;
    assert!(matches!(
        Packet::parse(&frame),
        Err(Error::HeaderChecksum { .. })
    ));
    assert_eq!(
        changed(ack, |f| f[20] = 0x20),
        Err(Error::Fragment {
            offset: 0,
            more: true
        })
    );
    assert_eq!(changed(ack, |f| f[23] = 6), Err(Error::Protocol(6)));
    assert_eq!(changed(ack, |f| f[37] = 0xb8), Err(Error::Port(4792)));
    for udp in [24, 29] {
        assert_eq!(
            changed(ack, |f| f[39] = udp),
            Err(Error::UdpLength {
                udp: usize::from(udp),
                ip: 28
            })
        );
    }
    assert_eq!(
        changed(&samples::V6_ACK, |f| f[20] = 0),
        Err(Error::Protocol(0))
    );
    assert_eq!(
        changed(ack, |f| {
            f[17] = 20 + 7;
            f[39] = 7;
        }),
        Err(Error::Truncated {
            header: "UDP header",
            need: 8,
            have: 7
        })
    );
}

#[test]
fn reasons_to_drop_in_bth() {
    let ack = &samples::RC_ACK;
    assert_eq!(
        changed(ack, |f| f[43] = 0x01),
        Err(Error::TransportVersion(1))
    );
    assert_eq!(changed(ack, |f| f[42] = 0x15), Err(Error::Opcode(0x15)));
    let opcode = Opcode::RcAtomicAck;
    assert_eq!(
        changed(ack, |f| f[42] = opcode.code()),
        Err(Error::ExtensionTruncated {
            opcode,
            need: 28,
            have: 20
        })
    );
    let opcode = Opcode::RcAck;
    assert_eq!(
        changed(&samples::RC_ATOMIC_ACK, |f| f[42] = opcode.code()),
        Err(Error::UnexpectedPayload { opcode, have: 8 })
    );
    assert_eq!(
        changed(&samples::RC_SEND_ONLY_EMPTY, |f| f[43] = 0x10),
        Err(Error::Pad { pad: 1, have: 0 })
    );
    assert_eq!(
        changed(&samples::RC_READ_RESPONSE_ONLY, |f| {
            f.truncate(65);
            f[17] -= 1;
            f[39] -= 1;
        }),
        Err(Error::PayloadAlignment(3))
    );
}

#[test]
fn oversized_payload() {
    let headers = parse(&samples::UC_WRITE_ONLY).headers;
    let mut frame = build(&headers, &[0; 4096]);
    let (packet, end) = (parse(&frame), frame.len());
    assert_eq!(packet.payload.len(), 4096);
    frame.resize(end + 4, 0);
    for field in [16, 38] {
        let len = u16::from_be_bytes([frame[field], frame[field + 1]]) + 4;
        frame[field..field + 2].copy_from_slice(&len.to_be_bytes());
    }
    assert_eq!(changed(&frame, |_| ()), Err(Error::PayloadTooLong(4100)));
    assert_eq!(
        headers.build(&[0; 4097], &mut frame),
        Err(BuildError::PayloadTooLong(4097))
    );
}

#[test]
fn wrong_icrc() {
    let mut frame = samples::RC_FETCH_ADD;
    frame[60] ^= 4;
    assert!(matches!(Packet::parse(&frame), Err(Error::Icrc { .. })));
}

#[test]
fn build_refuses_headers_that_are_not_of_the_opcode() {
    let mut headers = parse(&samples::RC_ACK).headers;
    let opcode = Opcode::RcAck;
    assert_eq!(
        headers.build(&[1], &mut [0; 100]),
        Err(BuildError::UnexpectedPayload { opcode, len: 1 })
    );
    assert_eq!(
        headers.build(&[], &mut [0; 61]),
        Err(BuildError::Buffer { need: 62, have: 61 })
    );
    headers.ext.imm = Some(1);
    assert_eq!(
        headers.build(&[], &mut [0; 100]),
        Err(BuildError::UnexpectedExtension {
            opcode,
            ext: Ext::ImmDt
        })
    );
    headers.ext = Extensions::default();
    assert_eq!(
        headers.build(&[], &mut [0; 100]),
        Err(BuildError::MissingExtension {
            opcode,
            ext: Ext::Aeth
        })
    );
}
