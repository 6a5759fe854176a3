//! Captures: both forms, both byte orders, both resolutions, damage, and what tshark makes of ours.

use std::process::Command;

use ferroce_sim::pcap::{self, Capture, Error, Packet};
use ferroce_sim::pcapng::Writer;
use ferroce_sim::world::Direction;
use ferroce_system::or_skip;
use ferroce_system::packages::{TSHARK, check_present};

/// A capture in which every number has the byte order asked for.
#[derive(Default)]
struct Bytes {
    bytes: Vec<u8>,
    big: bool,
}

impl Bytes {
    fn u16(&mut self, value: u16) {
        self.bytes.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) {
        let mut inner = Self {
            bytes: Vec::new(),
            big: self.big,
        };
        body(&mut inner);
        let len = inner.bytes.len() as u32 + 12;
        self.u32(kind);
        self.u32(len);
        self.bytes.extend(inner.bytes);
        self.u32(len);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }
}

/// Two packets of 60 and 100 bytes, the second cut to 64.
fn classic(big: bool, magic: u32) -> Vec<u8> {
    let mut file = Bytes {
        big,
        ..Bytes::default()
    };
    file.u32(magic);
    file.u16(2);
    file.u16(4);
    [0, 0, 65535, 1].into_iter().for_each(|word| file.u32(word));
    for (fraction, kept, wire) in [(1, 60, 60), (999_999, 64, 100)] {
        [1_700_000_000, fraction, kept, wire]
            .into_iter()
            .for_each(|word| file.u32(word));
        file.bytes.extend(vec![fraction as u8; kept as usize]);
    }
    file.bytes
}

/// One packet on the second of two interfaces: microseconds, then 2^-10 s with an offset of 5 s.
fn next_generation(big: bool) -> Vec<u8> {
    let mut file = Bytes {
        big,
        ..Bytes::default()
    };
    file.block(0x0a0d_0d0a, |b| {
        b.u32(0x1a2b_3c4d);
        b.u16(1);
        b.u16(0);
        b.u32(u32::MAX);
        b.u32(u32::MAX);
    });
    file.block(1, |b| {
        b.u32(if big { 1 << 16 } else { 1 });
        b.u32(0);
    });
    file.block(0x0bad, |b| b.u32(0));
    file.block(1, |b| {
        b.u32(if big { 1 << 16 } else { 1 });
        b.u32(48);
        b.option(2, b"wire");
        b.option(9, &[0x80 | 10]);
        b.option(
            14,
            &if big {
                5u64.to_be_bytes()
            } else {
                5u64.to_le_bytes()
            },
        );
        b.u32(0);
    });
    file.block(6, |b| {
        [0, 0x0001_0000, 7, 61, 61]
            .into_iter()
            .for_each(|word| b.u32(word));
        b.padded(&[0x11; 61]);
        b.u32(0);
    });
    file.block(6, |b| {
        [1, 0, 512, 48, 60].into_iter().for_each(|word| b.u32(word));
        b.padded(&[0x22; 48]);
        b.option(1, b"cut");
        b.option(1, b"twice commented");
        b.u32(0);
    });
    file.block(3, |b| {
        b.u32(5);
        b.padded(&[0x33; 5]);
    });
    file.bytes
}

fn packet(ns: u64, interface: usize, data: &[u8], wire_len: usize) -> Packet {
    Packet {
        ns,
        interface,
        data: data.to_vec(),
        wire_len,
        comments: Vec::new(),
    }
}

#[test]
fn classic_captures_of_all_four_kinds_are_read() {
    const START: u64 = 1_700_000_000_000_000_000;
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        for big in [false, true] {
            let capture = pcap::parse(&classic(big, magic)).unwrap();
            assert_eq!(capture.interfaces, [""]);
            let expected = [
                packet(START + unit, 0, &[1; 60], 60),
                packet(START + 999_999 * unit, 0, &[0x3f; 64], 100),
            ];
            assert_eq!(capture.packets, expected);
            assert!(capture.packets[0].is_whole() && !capture.packets[1].is_whole());
        }
    }
}

#[test]
fn next_generation_captures_of_both_orders_are_read() {
    for big in [false, true] {
        let capture = pcap::parse(&next_generation(big)).unwrap();
        assert_eq!(capture.interfaces, ["", "wire"]);
        let mut expected = vec![
            packet(0x0001_0000_0000_0007 * 1000, 0, &[0x11; 61], 61),
            packet(5_500_000_000, 1, &[0x22; 48], 60),
            packet(0, 0, &[0x33; 5], 5),
        ];
        expected[1].comments = vec!["cut".into(), "twice commented".into()];
        assert_eq!(capture.packets, expected);
    }
}

#[test]
fn captures_cut_anywhere_are_refused_or_end_between_packets() {
    for file in [classic(false, 0xa1b2_c3d4), next_generation(true)] {
        let whole = pcap::parse(&file).unwrap().packets;
        for len in 0..file.len() {
            match pcap::parse(&file[..len]) {
                Ok(capture) => assert!(whole.starts_with(&capture.packets)),
                Err(Error::Truncated {
                    offset, need, have, ..
                }) => {
                    assert!(offset + have == len && have < need, "cut at {len}");
                }
                Err(Error::NotACapture(bytes)) => assert!(bytes.len() < 4),
                Err(other) => panic!("cut at {len}: {other}"),
            }
        }
    }
}

#[test]
fn damage_is_named() {
    let refuse = |file: &[u8], text: &str| {
        let error = pcap::parse(file).unwrap_err().to_string();
        assert!(error.contains(text), "expected `{text}` in `{error}`");
    };
    refuse(
        b"\x1f\x8b\x08\x00rest",
        "not a capture: it starts with [1f, 8b, 08, 00]",
    );
    let good = classic(false, 0xa1b2_c3d4);
    let mut file = good.clone();
    file[20] = 113;
    refuse(&file, "link type 113 is not supported");
    let mut file = good.clone();
    file[24 + 12] = 59;
    refuse(&file, "packet 1 has 60 bytes of 59 on the wire");
    refuse(
        &good[..good.len() - 1],
        "ends within packet 2 at byte 116: 64 bytes are needed and 63 left",
    );

    let good = next_generation(false);
    let mut file = good.clone();
    file[8] = 0;
    refuse(&file, "byte-order magic");
    let mut file = good.clone();
    file[4] = 30;
    refuse(&file, "a block of 30 bytes");
    let mut file = good.clone();
    file[24] = 99;
    refuse(&file, "says 99 at its end");
    let second = good.windows(4).position(|w| w == b"wire").unwrap();
    let mut file = good.clone();
    file[second - 2] = 200;
    refuse(&file, "option 2 of 200 bytes runs out of its block");
    let mut file = good.clone();
    file[second + 8] = 0x80 | 100;
    refuse(&file, "resolution of 2^-100 s");
    let mut file = Bytes {
        bytes: good[..28].to_vec(),
        big: false,
    };
    file.block(6, |b| (0..5).for_each(|_| b.u32(0)));
    refuse(&file.bytes, "a packet of interface 0; the section has 0");
}

#[test]
fn arbitrary_bytes_never_panic() {
    let mut rng = fastrand::Rng::with_seed(ferroce_sim::bench::seed());
    for _ in 0..20_000 {
        let mut file = match rng.u8(..2) {
            0 => classic(rng.bool(), 0xa1b2_c3d4),
            _ => next_generation(rng.bool()),
        };
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(..file.len());
            file[at] = rng.u8(..);
        }
        let _ = pcap::parse(&file);
    }
}

/// A capture of the simulation: an ACK and a frame of odd length.
fn simulated() -> Vec<u8> {
    let ack: [u8; 62] = [
        0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0x30, 0x18, 0xc6, 0x40,
        0, 0x40, 0x11, 0x0d, 0xf5, 10, 0, 0, 1, 10, 0, 0, 2, 0xcc, 0xb1, 0x12, 0xb7, 0, 0x1c, 0, 0,
        0x11, 0, 0xff, 0xff, 0, 0, 0, 0x39, 0, 0, 0x10, 2, 0x1f, 0, 0, 1, 0x49, 0xf2, 0xd7, 0x22,
    ];
    let mut writer = Writer::new(Vec::new()).unwrap();
    let a = writer.interface("alice").unwrap();
    let b = writer.interface("bob").unwrap();
    let second = 1_000_000_000;
    writer
        .packet(a, 4, Direction::Transmit, &ack, "alice tx QP 0x39 cycle 1")
        .unwrap();
    writer
        .packet(
            b,
            5 * second + 8,
            Direction::Receive,
            &[0xff; 61],
            "bob rx cycle 2",
        )
        .unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn what_is_written_is_read_again() {
    let Capture {
        interfaces,
        packets,
    } = pcap::parse(&simulated()).unwrap();
    assert_eq!(interfaces, ["alice", "bob"]);
    assert_eq!(
        (packets[0].ns, packets[0].interface, packets[0].data.len()),
        (4, 0, 62)
    );
    assert_eq!(packets[0].comments, ["alice tx QP 0x39 cycle 1"]);
    assert_eq!((packets[1].ns, packets[1].interface), (5_000_000_008, 1));
    assert_eq!(packets[1].data, [0xff; 61]);
}

#[test]
fn tshark_reads_what_is_written() {
    if or_skip(check_present(&[TSHARK])).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.pcapng");
    std::fs::write(&path, simulated()).unwrap();
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.packet_flags_direction",
        "frame.comment",
        "infiniband.bth.destqp",
        "infiniband.aeth.syndrome",
    ];
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&path)
        .args(["-T", "fields", "-E", "separator=;"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().unwrap();
    let (text, errors) = (
        output.stdout,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    let text = String::from_utf8(text).unwrap();
    assert!(output.status.success(), "{errors}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}{errors}");
    let ack: Vec<&str> = lines[0].split(';').collect();
    assert_eq!(ack[..2], ["alice", "0.000000004"]);
    assert_eq!(ack[3], "alice tx QP 0x39 cycle 1");
    assert_eq!(ack[4..], ["0x000039", "31"]);
    assert!(ack[2].ends_with('2'), "outbound: {}", ack[2]);
    let other: Vec<&str> = lines[1].split(';').collect();
    assert_eq!(other[..2], ["bob", "5.000000008"]);
    assert!(other[2].ends_with('1'), "inbound: {}", other[2]);
}
