//! Packets that no healthy peer sends.

use ferroce_proto::wire::{Error, Gid, Headers, Ip, Mac, Packet};
use ferroce_sim::testhost::pattern;

use crate::forger::{Forger, build};

/// Changes the IPv4 addresses of source and destination.
fn change_ip(headers: &mut Headers, src: fn(&mut [u8; 4]), dst: fn(&mut [u8; 4])) {
    let Ip::V4(ip) = &mut headers.ip else {
        panic!("IPv4")
    };
    let (mut from, mut to) = (ip.src.octets(), ip.dst.octets());
    src(&mut from);
    dst(&mut to);
    (ip.src, ip.dst) = (from.into(), to.into());
    assert!(Gid::from(ip.src).is_ipv4());
}

#[test]
fn frames_that_do_not_parse_are_counted() {
    let mut forger = Forger::new();
    let frame = build(&forger.headers, &pattern(64, 1));
    for i in 14..frame.len() {
        let mut bad = frame.clone();
        bad[i] ^= 0x40;
        let counter = match (i, Packet::parse(&bad)) {
            // version, fragment, protocol, port
            (14 | 21 | 23 | 36 | 37, _) => "rx_not_roce",
            // TTL, the resv8a byte and the UDP checksum are not covered by the ICRC.
            (_, Ok(_)) => continue,
            (_, Err(Error::Icrc { .. })) => "rx_icrc_errors",
            (_, Err(_)) => "rx_malformed",
        };
        let before = forger.pair.b.stat(counter);
        assert!(forger.receive(&bad).is_empty());
        assert_eq!(forger.pair.b.stat(counter), before + 1, "byte {i}");
    }
    for len in 0..frame.len() {
        assert!(forger.receive(&frame[..len]).is_empty());
    }
    forger.assert_untouched("after all that");
}

/// The first reason of a frame with several, in the order of the engine's receive parser.
#[test]
fn frames_are_screened_from_the_outside_in() {
    let frame = build(&Forger::new().headers, &pattern(64, 1));
    let last = frame.len() - 1;
    let spoil = |changes: &[(usize, u8)]| {
        let mut frame = frame.clone();
        changes.iter().for_each(|&(at, byte)| frame[at] = byte);
        frame
    };
    let foreign = (5, frame[5] ^ 1);
    let icrc = (last, !frame[last]);
    let opcode = (42, 0x1f);
    let address = (33, 77);
    let cases: [(&str, Vec<u8>); 14] = [
        ("rx_malformed", frame[..41].to_vec()),
        ("rx_malformed", spoil(&[foreign])[..30].to_vec()),
        ("rx_wrong_address", spoil(&[foreign])),
        ("rx_wrong_address", spoil(&[foreign, (23, 6)])),
        ("rx_not_roce", spoil(&[(13, 6)])),
        ("rx_not_roce", spoil(&[(14, 0x46)])),
        ("rx_not_roce", spoil(&[(20, 0x20)])),
        ("rx_not_roce", spoil(&[(21, 1), opcode])),
        ("rx_not_roce", spoil(&[(23, 6), icrc])),
        ("rx_malformed", spoil(&[opcode])),
        ("rx_malformed", spoil(&[address])),
        ("rx_icrc_errors", spoil(&[icrc])),
        ("rx_malformed", frame[..last].to_vec()),
        ("rx_malformed", spoil(&[icrc, opcode])),
    ];
    for (counter, frame) in cases {
        let mut forger = Forger::new();
        assert!(forger.receive(&frame).is_empty());
        assert_eq!(forger.pair.b.stat(counter), 1, "{counter}: {frame:02x?}");
        forger.assert_untouched(counter);
    }
}

/// A frame to a group address is taken; one to an address that is not in the GID table is not looked at further.
#[test]
fn group_and_unknown_addresses() {
    let mut forger = Forger::new();
    let mut headers = forger.headers;
    change_ip(&mut headers, |_| {}, |ip| ip[3] ^= 4);
    headers.bth.dest_qp = 77;
    let mut frame = build(&headers, &[]);
    *frame.last_mut().unwrap() ^= 1;
    assert!(forger.receive(&frame).is_empty());
    assert_eq!(forger.pair.b.stat("rx_wrong_address"), 1);
    assert_eq!(forger.pair.b.stat("rx_roce_packets"), 1, "the SEND before");
    let mut headers = forger.headers;
    headers.eth.dst = Mac([0x33, 0x33, 0, 0, 0, 1]);
    forger.pair.b.post_recv(forger.qb, &[]);
    assert_eq!(forger.send(&headers, &[]).len(), 1, "it is executed");
}
