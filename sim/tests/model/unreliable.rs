//! Unreliable connection: no answers, a loss costs its message only.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::wire::Class;
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

fn options() -> QpOptions {
    QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    }
}

/// Five SENDs of three packets; answers which arrived (by their first byte).
fn sends(pair: &mut Pair, (qa, qb): (u32, u32)) -> Vec<u8> {
    let target = pair.b.create_mr(&[0; 5 * 4096], Rights::ALL);
    for i in 0..5 {
        pair.b.post_recv(qb, &[target.sge(4096 * i, 4096)]);
    }
    for i in 0..5 {
        let source = pair.a.create_mr(&pattern(3000, i), Rights::NONE);
        let index = pair.a.post_send(qa, &Work::send(&[source.all()]));
        assert_success(&pair.wait(Side::A, 0), index);
    }
    pair.settle();
    let mut arrived = Vec::new();
    while let Some(cqe) = pair.b.poll(0) {
        assert_success(&cqe, arrived.len() as u16);
        let bytes = pair.b.read(target.addr + 4096 * arrived.len() as u64, 3000);
        assert_eq!(bytes, pattern(3000, bytes[0]));
        arrived.push(bytes[0]);
    }
    assert!(pair.packets(Side::B).is_empty(), "nothing is answered");
    assert!(
        pair.packets(Side::A)
            .iter()
            .all(|p| p.headers.bth.opcode.class() == Class::Uc)
    );
    arrived
}

#[test]
fn loss_costs_its_message_only() {
    let (mut pair, qa, qb) = connected(options());
    assert_eq!(sends(&mut pair, (qa, qb)), [0, 1, 2, 3, 4]);
    for lost in 0..15 {
        let (mut pair, qa, qb) = connected(options());
        let mut n = 0;
        pair.fate = Box::new(move |_, frame| {
            n += 1;
            if n == lost + 1 {
                vec![]
            } else {
                vec![frame.to_vec()]
            }
        });
        let expected: Vec<u8> = (0..5).filter(|i| *i != lost / 3).collect();
        assert_eq!(sends(&mut pair, (qa, qb)), expected, "frame {lost} lost");
    }
}

#[test]
fn write_and_refused_write() {
    let (mut pair, qa, qb) = connected(options());
    let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
    let source = pair.a.create_mr(&pattern(3000, 7), Rights::NONE);
    pair.b.post_recv(qb, &[]);
    pair.a
        .post_send(qa, &Work::write(&[source.all()], &target, 4096 - 2999));
    pair.a
        .post_send(qa, &Work::write(&[source.all()], &target, 1).imm(9));
    assert_success(&pair.wait(Side::A, 0), 0);
    assert_success(&pair.wait(Side::A, 0), 1);
    let cqe = pair.wait(Side::B, 0);
    assert_eq!((cqe.opcode, cqe.imm), (opcode::RECV_WRITE_IMM, 9));
    let mut expected = vec![0; 4096];
    expected[1..3001].copy_from_slice(&pattern(3000, 7));
    assert_eq!(
        pair.b.contents(&target),
        expected,
        "the refused one is not there"
    );
    assert_eq!(pair.b.stat("access_errors"), 1);
}

#[test]
fn a_bad_request_stops_the_send_queue_only() {
    let (mut pair, qa, qb) = connected(options());
    let target = pair.b.create_mr(&[0; 64], Rights::ALL);
    let bad = pair.a.post_send(qa, &Work::read(&[], &target, 0));
    let flushed = pair.a.post_send(qa, &Work::send(&[]));
    assert_status(&pair.wait(Side::A, 0), bad, status::LOC_QP_OP_ERR);
    assert_status(&pair.wait(Side::A, 0), flushed, status::WR_FLUSH_ERR);
    let query = pair.a.query(qa);
    assert_eq!((query.sq_state, query.rq_state), (state::SQE, state::RTS));
    let mine = pair.a.create_mr(&[0; 64], Rights::ALL);
    pair.a.post_recv(qa, &[mine.all()]);
    pair.b.post_send(qb, &Work::send(&[]).inline(&[5; 9]));
    assert_eq!(pair.wait(Side::A, 0).byte_len, 9);
}
