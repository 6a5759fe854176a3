//! Data of SEND and WRITE arrives, at every path MTU and in every shape.

use ferroce_proto::abi::cq::opcode;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{Mtu, Opcode, Psn};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_success, connected};

/// One SEND of `data`, and its CQEs.
fn send(pair: &mut Pair, (qa, qb): (u32, u32), data: &[u8]) {
    let source = pair.a.create_mr(data, Rights::NONE);
    let target = pair.b.create_mr(&vec![0; data.len() + 16], Rights::ALL);
    let received = pair.b.post_recv(qb, &[target.all()]);
    let sent = pair
        .a
        .post_send(qa, &Work::send(&[source.sge(0, data.len() as u32)]));
    let cqe = pair.wait(Side::B, 0);
    assert_success(&cqe, received);
    assert_eq!((cqe.qpn, cqe.opcode, cqe.recv), (qb, opcode::RECV, true));
    assert_eq!(cqe.byte_len as usize, data.len());
    assert!(!cqe.with_imm && !cqe.solicited);
    let cqe = pair.wait(Side::A, 0);
    assert_success(&cqe, sent);
    assert_eq!((cqe.qpn, cqe.opcode, cqe.recv), (qa, opcode::SEND, false));
    let mut expected = data.to_vec();
    expected.resize(data.len() + 16, 0);
    assert_eq!(pair.b.contents(&target), expected);
}

#[test]
fn send_at_every_mtu_and_size() {
    for mtu in Mtu::ALL {
        let (mut pair, qa, qb) = connected(QpOptions {
            mtu,
            ..QpOptions::default()
        });
        let m = mtu.bytes();
        for len in [1, 3, 63, 64, m - 1, m, m + 1, 2 * m, 3 * m + 5] {
            pair.sent.clear();
            send(&mut pair, (qa, qb), &pattern(len, 0x31));
            let packets = pair.packets(Side::A);
            assert_eq!(packets.len(), len.div_ceil(m), "{mtu:?}, {len} bytes");
            for (i, packet) in packets.iter().enumerate() {
                assert_eq!(packet.headers.bth.ack_req, i + 1 == packets.len());
            }
        }
        pair.assert_no_faults();
    }
}

#[test]
fn write_at_every_mtu_and_size() {
    for mtu in Mtu::ALL {
        let (mut pair, qa, _) = connected(QpOptions {
            mtu,
            ..QpOptions::default()
        });
        let m = mtu.bytes();
        let target = pair.b.create_mr(&vec![0xee; 4 * m], Rights::ALL);
        for (len, offset) in [
            (1, 0),
            (5, 3),
            (m, 1),
            (m + 1, 2),
            (3 * m, 7),
            (2 * m - 1, 0),
        ] {
            pair.b.write(target.addr, &vec![0xee; 4 * m]);
            let data = pattern(len, offset as u8);
            let source = pair.a.create_mr(&data, Rights::NONE);
            let index = pair
                .a
                .post_send(qa, &Work::write(&[source.all()], &target, offset as u64));
            let cqe = pair.wait(Side::A, 0);
            assert_success(&cqe, index);
            assert_eq!(cqe.opcode, opcode::WRITE);
            let mut expected = vec![0xee; 4 * m];
            expected[offset..offset + len].copy_from_slice(&data);
            assert_eq!(
                pair.b.contents(&target),
                expected,
                "{mtu:?}, {len} bytes at {offset}"
            );
        }
        assert_eq!(pair.b.poll(0), None, "a WRITE takes no receive WQE");
        pair.assert_no_faults();
    }
}

#[test]
fn empty_messages_need_no_key() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let nowhere = ferroce_sim::testhost::Mr {
        addr: 0,
        len: 0,
        key: 0xdead_beef,
    };
    pair.b.post_recv(qb, &[]);
    pair.b.post_recv(qb, &[]);
    let works = [
        Work::send(&[]),
        Work::write(&[], &nowhere, 0),
        Work::write(&[], &nowhere, 7).imm(0x0102_0304),
        Work::read(&[], &nowhere, 0),
    ];
    for work in &works {
        let index = pair.a.post_send(qa, work);
        assert_success(&pair.wait(Side::A, 0), index);
    }
    let (first, second) = (pair.wait(Side::B, 0), pair.wait(Side::B, 0));
    assert_eq!((first.opcode, first.byte_len), (opcode::RECV, 0));
    assert_eq!(
        (second.opcode, second.byte_len),
        (opcode::RECV_WRITE_IMM, 0)
    );
    assert_eq!((second.with_imm, second.imm), (true, 0x0102_0304));
    pair.assert_no_faults();
}

#[test]
fn immediate_and_solicited() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let source = pair.a.create_mr(&pattern(2500, 1), Rights::NONE);
    let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
    for i in 0..4 {
        pair.b.post_recv(qb, &[target.all()]);
        let mut work = Work::send(&[source.all()]).imm(0xa0b0_c0d0 + i);
        if i % 2 == 1 {
            work = Work::write(&[source.all()], &target, 0).imm(0xa0b0_c0d0 + i);
        }
        work.head.solicited = i >= 2;
        pair.a.post_send(qa, &work);
        let cqe = pair.wait(Side::B, 0);
        assert_success(&cqe, i as u16);
        assert_eq!((cqe.with_imm, cqe.imm), (true, 0xa0b0_c0d0 + i));
        assert_eq!((cqe.byte_len, cqe.solicited), (2500, i >= 2));
        assert_eq!(
            cqe.opcode,
            if i % 2 == 1 {
                opcode::RECV_WRITE_IMM
            } else {
                opcode::RECV
            }
        );
    }
    let solicited: Vec<_> = pair
        .packets(Side::A)
        .iter()
        .map(|p| p.headers.bth.solicited)
        .collect();
    let mut expected = [false; 12];
    (expected[8], expected[11]) = (true, true);
    assert_eq!(solicited, expected, "on last packets only");
}

#[test]
fn send_with_invalidate_takes_the_key() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let victim = pair.b.create_mr(&[0; 64], Rights::ALL);
    let source = pair.a.create_mr(&[1; 8], Rights::NONE);
    pair.b.post_recv(qb, &[]);
    let mut work = Work::new(ferroce_proto::abi::wqe::opcode::SEND_INV, &[]);
    work.head.imm = victim.key;
    let index = pair.a.post_send(qa, &work);
    let cqe = pair.wait(Side::B, 0);
    assert_eq!(
        (cqe.with_inv, cqe.with_imm, cqe.imm),
        (true, false, victim.key)
    );
    assert_success(&pair.wait(Side::A, 0), index);
    let index = pair
        .a
        .post_send(qa, &Work::write(&[source.all()], &victim, 0));
    let cqe = pair.wait(Side::A, 0);
    crate::assert_status(&cqe, index, ferroce_proto::abi::cq::status::REM_ACCESS_ERR);
}

#[test]
fn lists_and_inline_of_every_length() {
    let options = QpOptions {
        rq_stride: 3,
        ..QpOptions::default()
    };
    let (mut pair, qa, qb) = connected(options);
    let data = pattern(4096, 9);
    let source = pair.a.create_mr(&data, Rights::NONE);
    let target = pair.b.create_mr(&vec![0; 4096], Rights::ALL);
    // Pieces of uneven length at uneven addresses, with empty ones between them.
    let list = |mr: &ferroce_sim::testhost::Mr, n: u64, step: u64| -> Vec<Sge> {
        (0..n)
            .map(|i| mr.sge(i * step, if i == 1 { 0 } else { (step - 1) as u32 }))
            .collect()
    };
    for n in 1..=16 {
        let gather = list(&source, n, 251);
        let bytes: Vec<u8> = gather
            .iter()
            .flat_map(|sge| pair.a.read(sge.addr, sge.length as usize))
            .collect();
        pair.b.write(target.addr, &[0; 4096]);
        let scatter = list(&target, 16, 255);
        pair.b.post_recv(qb, &scatter);
        pair.a.post_send(qa, &Work::send(&gather));
        assert_eq!(pair.wait(Side::B, 0).byte_len as usize, bytes.len());
        pair.wait(Side::A, 0);
        let received: Vec<u8> = scatter
            .iter()
            .flat_map(|sge| pair.b.read(sge.addr, sge.length as usize))
            .collect();
        assert_eq!(received[..bytes.len()], bytes, "{n} entries");
        assert!(received[bytes.len()..].iter().all(|&b| b == 0));
    }
    for len in [0, 1, 31, 32, 33, 96, 97, 288] {
        let data = pattern(len, 3);
        pair.b.post_recv(qb, &[target.all()]);
        pair.a.post_send(qa, &Work::send(&[]).inline(&data));
        assert_eq!(pair.wait(Side::B, 0).byte_len as usize, len);
        pair.wait(Side::A, 0);
        assert_eq!(pair.b.read(target.addr, len), data);
    }
    pair.assert_no_faults();
}

#[test]
fn psn_wraps() {
    let options = QpOptions {
        psn: 0xff_fffa,
        ..QpOptions::default()
    };
    let (mut pair, qa, qb) = connected(options);
    for _ in 0..3 {
        send(&mut pair, (qa, qb), &pattern(5000, 5));
    }
    let psns: Vec<_> = pair
        .packets(Side::A)
        .iter()
        .map(|p| p.headers.bth.psn)
        .collect();
    let expected: Vec<_> = (0..15).map(|i| Psn::new(0xff_fffa + i)).collect();
    assert_eq!(psns, expected);
    let state = pair.a.query(qa);
    assert_eq!((state.sq_psn, state.una_psn), (9, 9));
    assert_eq!((pair.b.query(qb).rq_psn, pair.b.query(qb).msn), (9, 3));
}

#[test]
fn rings_wrap_and_unsignaled_work_stays_silent() {
    let options = QpOptions {
        sq_log: 3,
        rq_log: 2,
        ot_log: 1,
        ..QpOptions::default()
    };
    let (mut pair, qa, qb) = connected(options);
    let target = pair.b.create_mr(&[0; 64], Rights::ALL);
    for i in 0..40u16 {
        // Three slots each, so that a WQE stands across the end of the ring.
        let work = Work::send(&[]).inline(&pattern(100, i as u8));
        let work = if i % 3 == 2 { work } else { work.unsignaled() };
        pair.b
            .post_recv(qb, &[target.sge(0, 64), target.sge(0, 64)]);
        let index = pair.a.post_send(qa, &work);
        assert_eq!(index, 3 * i);
        assert_success(&pair.wait(Side::B, 0), i);
        if i % 3 == 2 {
            assert_success(&pair.wait(Side::A, 0), index);
        }
        pair.settle();
        assert_eq!(pair.a.poll(0), None);
    }
}

#[test]
fn many_messages_to_one_doorbell_keep_their_order() {
    let (mut pair, qa, qb) = connected(QpOptions {
        ot_log: 2,
        ..QpOptions::default()
    });
    let target = pair.b.create_mr(&[0; 64 * 16], Rights::ALL);
    for i in 0..16 {
        pair.b.post_recv(qb, &[target.sge(64 * i, 64)]);
    }
    for i in 0..15 {
        let work = Work::send(&[]).inline(&pattern(32, i));
        pair.a.write_slots(qa, &work.slots());
    }
    pair.a
        .post_send(qa, &Work::send(&[]).inline(&pattern(32, 15)));
    for i in 0..16 {
        assert_success(&pair.wait(Side::A, 0), i);
        assert_success(&pair.wait(Side::B, 0), i);
        assert_eq!(
            pair.b.read(target.addr + 64 * u64::from(i), 32),
            pattern(32, i as u8)
        );
    }
}

#[test]
fn acknowledgement_is_asked_for_within_long_messages() {
    let (mut pair, qa, qb) = connected(QpOptions {
        mtu: Mtu::Mtu256,
        ..QpOptions::default()
    });
    send(&mut pair, (qa, qb), &pattern(256 * 70, 5));
    let asked: Vec<_> = pair
        .packets(Side::A)
        .iter()
        .map(|p| p.headers.bth.ack_req)
        .collect();
    let expected: Vec<_> = (1..=70).map(|i| i % 32 == 0 || i == 70).collect();
    assert_eq!(asked, expected);
    let acks = pair.packets(Side::B);
    assert!(acks.iter().all(|p| p.headers.bth.opcode == Opcode::RcAck));
    assert_eq!(acks.len(), 3);
}

#[test]
fn ipv6_and_vlan() {
    use ferroce_sim::model::{DEFAULT_PARAMS, Model};
    let ip = ["fe80::5054:ff:fe00:1", "fe80::5054:ff:fe00:2"].map(|ip| ip.parse().unwrap());
    let mut pair = Pair::with_ip(|memory| Box::new(Model::new(DEFAULT_PARAMS, memory)), ip);
    let options = QpOptions {
        vlan: Some(0x2064),
        ..QpOptions::default()
    };
    let (qa, qb) = pair.connect(options, options);
    send(&mut pair, (qa, qb), &pattern(3000, 1));
    for packet in pair.packets(Side::A).iter().chain(&pair.packets(Side::B)) {
        assert_eq!(packet.headers.eth.vlan, Some(0x2064));
        assert_eq!(packet.headers.ip.ethertype(), 0x86dd);
    }
    assert_eq!(pair.b.stat("rx_wrong_address"), 0);
}

#[test]
fn queue_pairs_take_turns() {
    let (mut pair, first, _) = connected(QpOptions::default());
    let options = QpOptions::default();
    let (second, _) = pair.connect(options, options);
    let target = pair.b.create_mr(&[0; 64 * 1024], Rights::ALL);
    let source = pair.a.create_mr(&[1; 64 * 1024], Rights::NONE);
    for qpn in [first, second] {
        pair.a
            .post_send(qpn, &Work::write(&[source.all()], &target, 0));
    }
    pair.settle();
    let ports: Vec<_> = pair
        .packets(Side::A)
        .iter()
        .map(|p| p.headers.udp.src_port)
        .collect();
    assert_eq!(ports.len(), 128);
    assert!(
        ports.windows(2).skip(1).all(|pair| pair[0] != pair[1]),
        "packet by packet"
    );
}

#[test]
fn requests_do_not_starve_responses() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let target = pair.a.create_mr(&[0; 1 << 20], Rights::ALL);
    let source = pair.b.create_mr(&[1; 1 << 20], Rights::NONE);
    pair.b.post_recv(qb, &[]);
    let long = pair
        .b
        .post_send(qb, &Work::write(&[source.all()], &target, 0));
    pair.run(500);
    let short = pair.a.post_send(qa, &Work::send(&[]));
    assert_success(&pair.wait(Side::A, 0), short);
    pair.wait(Side::B, 0);
    assert_eq!(pair.b.poll(0), None, "the long message is still under way");
    assert_success(&pair.wait(Side::B, 0), long);
}
