//! Packets that no healthy peer sends.

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{
    AethRepr, Class, Error, Gid, Headers, Ip, Mac, NakCode, Opcode, Operation, Packet, Position,
    Psn, Syndrome,
};
use ferroce_sim::testhost::{Side, pattern};

use crate::forger::{Forger, build};

#[test]
fn silent_drops_are_counted() {
    type Spoil = fn(&mut Headers);
    let cases: [(&str, Spoil); 12] = [
        ("rx_wrong_address", |h| {
            h.eth.dst = Mac([0x52, 0x54, 0, 0, 0, 9])
        }),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 77),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0x10002),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0xff_ffff),
        ("rx_wrong_transport", |h| h.bth.opcode = Opcode::UcSendOnly),
        ("rx_pkey_violations", |h| h.bth.pkey = 0x7ffe),
        ("rx_pkey_violations", |h| h.bth.pkey = 0x0000),
        ("rx_wrong_address", |h| {
            change_ip(h, |ip| ip[0] ^= 1, |_| {})
        }),
        ("rx_wrong_address", |h| {
            change_ip(h, |_| {}, |ip| ip[3] ^= 4)
        }),
        // its partition key is looked at first
        ("rx_pkey_violations", |h| {
            h.bth.opcode = Opcode::RcAck;
            h.bth.pkey = 0;
            h.ext.aeth = Some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: 1,
            });
        }),
        ("rx_ghost_acks", |h| {
            h.bth.opcode = Opcode::RcAck;
            h.ext.aeth = Some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: 1,
            });
        }),
    ];
    for (name, spoil) in cases {
        let mut forger = Forger::new();
        forger.pair.b.post_recv(forger.qb, &[]);
        let mut headers = forger.headers;
        spoil(&mut headers);
        assert_eq!(forger.send(&headers, &[]), [], "{name} is silent");
        assert_eq!(forger.pair.b.stat(name), 1, "{name}");
        forger.assert_untouched(name);
    }
}

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
fn queue_pair_0_hears_nothing() {
    let mut forger = Forger::new();
    let peer = forger.pair.a.peer(forger.qa);
    let images = forger.pair.b.images(forger.qb, &peer);
    let head = CmdHead {
        opcode: opcode::MODIFY_QP,
        qp_sq: true,
        qp_av: true,
        qp_rq: true,
        qp_rq_state: true,
        rq_reset: true,
        rq_state: state::RTR,
        rq_psn: forger.headers.bth.psn.value(),
        ..CmdHead::default()
    };
    forger.pair.b.command(head, &images);
    let mut headers = forger.of(Opcode::RcWriteOnly);
    headers.bth.dest_qp = 0;
    assert_eq!(forger.send(&headers, &[1; 8]), []);
    forger.assert_untouched("queue pair 0");
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

#[test]
fn queue_pairs_that_are_not_open() {
    let mut forger = Forger::new();
    for closed in [state::INIT, state::RESET] {
        forger.pair.b.modify_state(forger.qb, closed);
        let headers = forger.headers;
        assert_eq!(forger.send(&headers, &[]), []);
    }
    assert_eq!(forger.pair.b.stat("rx_qp_state"), 1);
    assert_eq!(
        forger.pair.b.stat("rx_unknown_qp"),
        1,
        "RESET forgets the context"
    );
}

#[test]
fn psn_far_from_the_expected() {
    let refused = Syndrome::Nak(NakCode::PsnSequence);
    let mut forger = Forger::new();
    let due = forger.headers.bth.psn;
    let at = |forger: &mut Forger, psn: Psn| {
        let mut headers = forger.headers;
        headers.bth.psn = psn;
        forger.send(&headers, &[])
    };
    assert_eq!(at(&mut forger, due.add(1)), [refused]);
    assert_eq!(at(&mut forger, due.add(2)), [], "one NAK for a gap");
    assert_eq!(at(&mut forger, due.add(0x7f_ffff)), []);
    assert_eq!(at(&mut forger, due.sub(1)), [Syndrome::ACK], "a duplicate");
    assert_eq!(
        at(&mut forger, due.add(0x7f_ffff)),
        [refused],
        "a duplicate ends the silence"
    );
    assert_eq!(
        at(&mut forger, due.sub(0x80_0000)),
        [Syndrome::ACK],
        "the oldest duplicate"
    );
    forger.assert_untouched("no PSN was due");
    let answers = forger.pair.packets(Side::B);
    assert_eq!(answers[0].headers.bth.psn, due.prev());
    assert_eq!(answers[0].headers.ext.aeth.unwrap().msn, 1);
}

#[test]
fn opcodes_out_of_sequence_are_invalid_requests() {
    let invalid = [Syndrome::Nak(NakCode::InvalidRequest)];
    let full = pattern(1024, 1);
    let requests: Vec<_> = Opcode::ALL
        .iter()
        .copied()
        .filter(|o| o.class() == Class::Rc && o.is_request())
        .collect();
    // The first packet of a message, and what may follow it.
    for first in [None, Some(Opcode::RcSendFirst), Some(Opcode::RcWriteFirst)] {
        for &second in &requests {
            let goes_on = first
                .is_some_and(|first| first.operation() == second.operation() && !second.is_start());
            if (first.is_none() && second.is_start()) || goes_on {
                continue;
            }
            let mut forger = Forger::new();
            for _ in 0..2 {
                forger.pair.b.post_recv(forger.qb, &[forger.target.all()]);
            }
            if let Some(first) = first {
                let mut headers = forger.of(first);
                if let Some(reth) = &mut headers.ext.reth {
                    reth.dma_len = 2048;
                }
                headers.bth.ack_req = false;
                assert_eq!(forger.send(&headers, &full), []);
                forger.headers.bth.psn = forger.headers.bth.psn.next();
            }
            let headers = forger.of(second);
            let payload = match (second.has_payload(), second.position()) {
                (true, Position::First | Position::Middle) => &full[..],
                (true, _) => &full[..8],
                (false, _) => &[],
            };
            assert_eq!(
                forger.send(&headers, payload),
                invalid,
                "{second:?} after {first:?}"
            );
            assert_eq!(forger.pair.b.query(forger.qb).rq_state, state::ERR);
            assert_eq!(forger.pair.b.stat("invalid_request_errors"), 1);
        }
    }
}

#[test]
fn sizes_against_the_rules_are_invalid_requests() {
    let invalid = [Syndrome::Nak(NakCode::InvalidRequest)];
    let cases: [(Opcode, usize, u32); 13] = [
        (Opcode::RcSendFirst, 1020, 0),
        (Opcode::RcSendFirst, 1028, 0),
        (Opcode::RcSendFirst, 0, 0),
        (Opcode::RcSendOnly, 1028, 0),
        (Opcode::RcSendOnlyImm, 4096, 0),
        (Opcode::RcWriteFirst, 1024, 1024),
        (Opcode::RcWriteFirst, 1024, 8),
        (Opcode::RcWriteFirst, 1020, 2048),
        (Opcode::RcWriteFirst, 1024, (1 << 31) + 1),
        (Opcode::RcWriteOnly, 8, 9),
        (Opcode::RcWriteOnly, 8, 7),
        (Opcode::RcWriteOnly, 1028, 1028),
        (Opcode::RcReadRequest, 0, (1 << 31) + 1),
    ];
    for (opcode, len, dma_len) in cases {
        let mut forger = Forger::new();
        forger.pair.b.post_recv(forger.qb, &[forger.target.all()]);
        let mut headers = forger.of(opcode);
        if let Some(reth) = &mut headers.ext.reth {
            reth.dma_len = dma_len;
        }
        let answer = forger.send(&headers, &pattern(len, 1));
        assert_eq!(answer, invalid, "{opcode:?} of {len} bytes, RETH {dma_len}");
        assert_eq!(forger.pair.b.contents(&forger.target), [0; 4096]);
    }
    // Behind a first packet: last ones of no bytes, and sums that differ from the RETH.
    for (opcode, len) in [
        (Opcode::RcSendLast, 0),
        (Opcode::RcSendLast, 1028),
        (Opcode::RcWriteLast, 0),
        (Opcode::RcWriteLast, 99),
        (Opcode::RcWriteLast, 101),
        (Opcode::RcWriteMiddle, 1024),
        (Opcode::RcWriteLastImm, 1024),
    ] {
        let mut forger = Forger::new();
        forger.pair.b.post_recv(forger.qb, &[forger.target.all()]);
        let first = match opcode.operation() {
            Operation::Send => Opcode::RcSendFirst,
            _ => Opcode::RcWriteFirst,
        };
        let mut headers = forger.of(first);
        if let Some(reth) = &mut headers.ext.reth {
            reth.dma_len = 1124;
        }
        headers.bth.ack_req = false;
        assert_eq!(forger.send(&headers, &pattern(1024, 1)), []);
        forger.headers.bth.psn = forger.headers.bth.psn.next();
        let headers = forger.of(opcode);
        assert_eq!(
            forger.send(&headers, &pattern(len, 1)),
            invalid,
            "{opcode:?} of {len} bytes"
        );
    }
}

#[test]
fn operations_the_queue_pair_does_not_permit() {
    use ferroce_proto::abi::qpc::RqCtx;
    for opcode in [
        Opcode::RcWriteOnly,
        Opcode::RcReadRequest,
        Opcode::RcFetchAdd,
    ] {
        let mut forger = Forger::new();
        let peer = forger.pair.a.peer(forger.qa);
        let [sq, av, rq] = forger.pair.b.images(forger.qb, &peer);
        let mut rq = RqCtx::parse(&rq);
        (rq.remote_write, rq.remote_read, rq.remote_atomic) = (false, false, false);
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: forger.qb,
            qp_rq: true,
            ..CmdHead::default()
        };
        assert_eq!(
            forger.pair.b.command(head, &[sq, av, rq.emit()]).status,
            status::OK
        );
        let headers = forger.of(opcode);
        let payload = if opcode.has_payload() { 8 } else { 0 };
        let answer = forger.send(&headers, &pattern(payload, 1));
        assert_eq!(
            answer,
            [Syndrome::Nak(NakCode::InvalidRequest)],
            "{opcode:?}"
        );
    }
}
