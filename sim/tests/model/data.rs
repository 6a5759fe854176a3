//! Data of SEND and WRITE arrives, at every path MTU and in every shape.

use ferroce_proto::abi::cq::opcode;
use ferroce_proto::wire::{Mtu, Opcode};
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
