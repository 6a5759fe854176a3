//! The second implementation of the ICRC on captured frames, checks of sent frames, and records.

use std::net::Ipv4Addr;

use ferroce_proto::wire::{
    AethRepr, BthRepr, EthRepr, Extensions, Headers, Ip, Ipv4Repr, Mac, NakCode, Opcode, Psn,
    Syndrome, UdpRepr,
};
use ferroce_sim::nic::Nic;
use ferroce_sim::scoreboard::icrc::Roce;
use ferroce_sim::scoreboard::{Difference, Packets, Record, Scoreboard};
use ferroce_sim::world::{Direction, Event, Observer, World};

/// RC ACK of Linux soft-RoCE over IPv4.
#[rustfmt::skip]
const ACK: [u8; 62] = [
    0x52, 0x54, 0x00, 0x00, 0x00, 0x02, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0x00,
    0x00, 0x30, 0x18, 0xc6, 0x40, 0x00, 0x40, 0x11, 0x0d, 0xf5, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00,
    0x00, 0x02, 0xcc, 0xb1, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0x00, 0x00,
    0x00, 0x39, 0x00, 0x00, 0x10, 0x02, 0x1f, 0x00, 0x00, 0x01, 0x49, 0xf2, 0xd7, 0x22,
];

/// RC READ request of Linux soft-RoCE over IPv6.
#[rustfmt::skip]
const V6_READ: [u8; 94] = [
    0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x52, 0x54, 0x00, 0x00, 0x00, 0x02, 0x86, 0xdd, 0x60, 0x00,
    0x00, 0x00, 0x00, 0x28, 0x11, 0x40, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54,
    0x00, 0xff, 0xfe, 0x00, 0x00, 0x02, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54,
    0x00, 0xff, 0xfe, 0x00, 0x00, 0x01, 0xce, 0x10, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x0c, 0x00,
    0xff, 0xff, 0x00, 0x00, 0x00, 0x3c, 0x80, 0x00, 0x10, 0x00, 0x00, 0x00, 0x7f, 0x82, 0x38, 0x57,
    0xb0, 0x00, 0x00, 0x00, 0x2d, 0xbd, 0x00, 0x00, 0x13, 0x88, 0x8e, 0x33, 0x9a, 0x16,
];

fn sealed(frame: &[u8]) -> Option<bool> {
    let roce = Roce::locate(frame)?;
    Some(roce.expected(frame) == roce.carried(frame))
}

#[test]
fn captured_frames_carry_the_icrc_computed_here() {
    assert_eq!(sealed(&ACK), Some(true));
    assert_eq!(sealed(&V6_READ), Some(true));
    assert_eq!(Roce::locate(&ACK).unwrap().dest_qp(&ACK), 0x39);
    let mut tagged = ACK.to_vec();
    tagged.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
    tagged.extend([0; 6]);
    assert_eq!(
        sealed(&tagged),
        Some(true),
        "VLAN tag and padding are not covered"
    );
}

#[test]
fn every_bit_counts_but_those_that_change_on_the_way() {
    // Ethernet; then traffic class, time to live, header checksum, UDP checksum, FECN and BECN.
    let v4: &[usize] = &[15, 22, 24, 25, 40, 41, 46];
    let v6: &[usize] = &[15, 16, 17, 21, 60, 61, 66];
    for (frame, ip, variant) in [(&ACK[..], 14, v4), (&V6_READ[..], 14, v6)] {
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let byte = bit / 8;
            let class = variant == v6 && byte == ip && bit % 8 < 4;
            let free = byte < 12 || variant.contains(&byte) || class;
            // Elsewhere the frame is found wrong, or is no RoCEv2 frame any more.
            assert_eq!(
                sealed(&flipped) == Some(true),
                free,
                "byte {byte} bit {}",
                bit % 8
            );
        }
    }
}

#[test]
fn what_is_not_roce_is_not_located() {
    for len in 0..ACK.len() {
        assert_eq!(Roce::locate(&ACK[..len]), None, "cut at {len}");
    }
    let mut arp = ACK;
    arp[13] = 6;
    assert_eq!(Roce::locate(&arp), None);
}

fn frame(opcode: Opcode, psn: u32, ext: Extensions, payload: &[u8]) -> Vec<u8> {
    let headers = Headers {
        eth: EthRepr {
            dst: Mac([2; 6]),
            src: Mac([4; 6]),
            vlan: None,
        },
        ip: Ip::V4(Ipv4Repr {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            tos: 2,
            ident: 7,
            ttl: 64,
        }),
        udp: UdpRepr { src_port: 0xc000 },
        bth: BthRepr {
            opcode,
            solicited: false,
            mig_req: false,
            pkey: 0xffff,
            fecn: false,
            becn: false,
            dest_qp: 0x11,
            ack_req: false,
            psn: Psn::new(psn),
        },
        ext,
    };
    let mut frame = vec![0; headers.frame_len(payload.len())];
    headers.build(payload, &mut frame).unwrap();
    frame
}

fn ack(psn: u32, syndrome: Syndrome) -> Vec<u8> {
    let aeth = Some(AethRepr { syndrome, msn: psn });
    let ext = Extensions {
        aeth,
        ..Extensions::default()
    };
    frame(Opcode::RcAck, psn, ext, &[])
}

fn send(psn: u32, payload: &[u8]) -> Vec<u8> {
    frame(Opcode::RcSendOnly, psn, Extensions::default(), payload)
}

/// A card that does nothing; its world gives events their nodes.
struct Idle;

impl Nic for Idle {
    fn write32(&mut self, _: u64, _: u32) {}
    fn start_read32(&mut self, _: u64) {}
    fn take_read32(&mut self) -> Option<u32> {
        None
    }
    fn step(&mut self) {}
    fn now(&self) -> u64 {
        0
    }
    fn receive(&mut self, _: &[u8]) {}
    fn transmit(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn interrupt(&mut self) -> Option<u16> {
        None
    }
    fn reset(&mut self) {}
}

/// A scoreboard that has seen `frames` go out.
fn scoreboard(frames: &[Vec<u8>]) -> Scoreboard {
    let node = World::new().add("a", Idle);
    let mut scoreboard = Scoreboard::new();
    for (cycle, frame) in (0..).zip(frames) {
        let mut event = Event {
            cycle,
            node,
            name: "a",
            direction: Direction::Transmit,
            frame,
        };
        scoreboard.frame(&event);
        event.direction = Direction::Receive;
        scoreboard.frame(&event);
    }
    scoreboard
}

#[test]
fn sent_frames_are_checked_and_collected() {
    let mut bad = send(2, &[3; 10]);
    *bad.last_mut().unwrap() ^= 1;
    let mut version = ACK.to_vec();
    version[43] |= 1;
    let roce = Roce::locate(&version).unwrap();
    let icrc = roce.expected(&version).to_le_bytes();
    version[58..].copy_from_slice(&icrc);
    let arp = vec![0xff; 60];
    let board = scoreboard(&[send(1, &[5; 9]), bad, version, arp, ACK.to_vec()]);
    assert_eq!(board.other_frames(), 1);
    let keys: Vec<u32> = board.packets().keys().map(|(_, qp)| *qp).collect();
    assert_eq!(keys, [0x11, 0x39]);
    let sent = &board.packets()[&("a".to_owned(), 0x11)];
    assert_eq!((sent.len(), sent[0].psn.value(), sent[0].len), (1, 1, 9));
    let failures = board.failures();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].starts_with("cycle 1: frame sent: by a: ICRC 0x"));
    assert!(failures[1].starts_with("cycle 2:") && !failures[1].contains("ICRC"));
}

fn record(frames: &[Vec<u8>]) -> Record<(u32, &'static str)> {
    let mut record = Record::new();
    record.packets(&scoreboard(frames));
    record
}

#[test]
fn acks_may_coalesce_but_not_lie() {
    let plain = |psn| ack(psn, Syndrome::ACK);
    let nak = |psn| ack(psn, Syndrome::Nak(NakCode::PsnSequence));
    let all = record(&[plain(1), plain(2), nak(3), plain(4)]);
    let few = record(&[plain(2), nak(3), plain(4)]);
    assert_eq!(all.differences(&few, Packets::WithoutAcks), []);
    assert_eq!(all.differences(&few, Packets::Exactly).len(), 1);
    let short = record(&[plain(1), nak(3), plain(3)]);
    let text = all.differences(&short, Packets::default())[0].to_string();
    assert!(text.contains("last ACK from `a` to QP 0x11"), "{text}");
    let without_nak = record(&[plain(4)]);
    let text = all.differences(&without_nak, Packets::WithoutAcks)[0].to_string();
    assert!(
        text.contains("PSN 0x000003") && text.contains("found    nothing"),
        "{text}"
    );
    assert_eq!(all.differences(&without_nak, Packets::Not), []);
    assert_eq!(all.differences(&all.clone(), Packets::Exactly), []);
}

#[test]
fn payload_is_compared() {
    let (a, b) = (
        record(&[send(1, &[1, 2, 3])]),
        record(&[send(1, &[1, 2, 4])]),
    );
    assert_eq!(a.differences(&b, Packets::Exactly).len(), 1);
}

#[test]
fn memory_and_completions_are_compared() {
    let mut expected = record(&[]);
    let mut actual = record(&[]);
    expected.memory("b recv", vec![7; 100]);
    let mut bytes = vec![7; 100];
    (bytes[40], bytes[99]) = (1, 2);
    actual.memory("b recv", bytes);
    expected.memory("same", [1]);
    actual.memory("same", [1]);
    expected.memory("longer", [1, 2]);
    actual.memory("longer", [1, 2, 3]);
    for (record, extra) in [(&mut expected, None), (&mut actual, Some((3, "flushed")))] {
        record.completion("a send", (1, "success"));
        record.completion("a send", (2, "success"));
        extra
            .into_iter()
            .for_each(|extra| record.completion("a send", extra));
    }
    expected.completion("b recv", (9, "success"));
    let found = expected.differences(&actual, Packets::Exactly);
    let entry =
        |sequence: &str, index, expected: Option<&str>, actual: Option<&str>| Difference::Entry {
            sequence: sequence.into(),
            index,
            expected: expected.map(Into::into),
            actual: actual.map(Into::into),
        };
    let memory = Difference::Memory {
        region: "b recv".into(),
        offset: 40,
        expected: vec![7; 16],
        actual: [&[1][..], &[7; 15]].concat(),
        count: 2,
    };
    let longer = Difference::Memory {
        region: "longer".into(),
        offset: 2,
        expected: vec![],
        actual: vec![3],
        count: 1,
    };
    assert_eq!(
        found,
        [
            memory,
            longer,
            entry("completions of `a send`", 2, None, Some("(3, \"flushed\")")),
            entry("completions of `b recv`", 0, Some("(9, \"success\")"), None),
        ]
    );
    let text = found[0].to_string();
    assert!(
        text.contains("`b recv` differs in 2 bytes, first at 0x28"),
        "{text}"
    );
}
