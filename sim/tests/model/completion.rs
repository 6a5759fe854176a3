//! Completion queues: phase, overflow, events.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::status as wc;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::{EqCtx, Eqe, event};
use ferroce_proto::abi::qpc::state;
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work};

use crate::{assert_success, pair};

#[test]
fn a_full_completion_queue_stops_its_queue_pairs() {
    let mut pair = pair();
    let small = pair.a.create_cq(2);
    let options = QpOptions {
        send_cq: small,
        ..QpOptions::default()
    };
    let (qa, qb) = pair.connect(options, QpOptions::default());
    for _ in 0..6 {
        pair.b.post_recv(qb, &[]);
    }
    for _ in 0..4 {
        pair.a.post_send(qa, &Work::send(&[]));
        pair.settle();
    }
    assert_eq!(
        (pair.a.query(qa).sq_state, pair.a.stat("cq_overflows")),
        (state::RTS, 0)
    );
    pair.a.post_send(qa, &Work::send(&[]));
    pair.settle();
    assert_eq!(
        (pair.a.query(qa).sq_state, pair.a.stat("cq_overflows")),
        (state::ERR, 1)
    );
    for i in 0..4 {
        assert_success(&pair.a.poll(small).unwrap(), i);
    }
    assert_eq!(
        pair.a.poll(small),
        None,
        "what did not fit is lost, nothing was overwritten"
    );
}

#[test]
fn a_full_completion_queue_of_the_responder_is_an_operational_error() {
    let mut pair = pair();
    let small = pair.b.create_cq(1);
    let options = QpOptions {
        recv_cq: small,
        ..QpOptions::default()
    };
    let (qa, qb) = pair.connect(QpOptions::default(), options);
    for _ in 0..3 {
        pair.b.post_recv(qb, &[]);
        pair.a.post_send(qa, &Work::send(&[]));
    }
    let statuses: Vec<_> = (0..3).map(|_| pair.wait(Side::A, 0).status).collect();
    assert_eq!(statuses, [wc::SUCCESS, wc::SUCCESS, wc::REM_OP_ERR]);
}

#[test]
fn completion_queues_wrap_with_their_phase() {
    let mut pair = pair();
    let small = pair.a.create_cq(1);
    let options = QpOptions {
        send_cq: small,
        ..QpOptions::default()
    };
    let (qa, qb) = pair.connect(options, QpOptions::default());
    for _ in 0..9 {
        pair.b.post_recv(qb, &[]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        assert_success(&pair.wait(Side::A, small), index);
        assert_eq!(pair.a.poll(small), None);
        pair.wait(Side::B, 0);
    }
}

#[test]
fn armed_completion_queues_report_by_event_and_interrupt() {
    let mut pair = pair();
    let (base, record) = (pair.a.alloc(Eqe::BYTES << 4), pair.a.alloc(4));
    let eq = EqCtx {
        base,
        consumer: record,
        log_size: 4,
        vector: 5,
        moderation: 10,
    };
    pair.a.expect(opcode::CREATE_EQ, 0, &eq.emit());
    let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
    let event_at = |pair: &ferroce_sim::testhost::Pair, i: u64| {
        Eqe::parse(pair.a.read(base + 16 * i, 16).first_chunk().unwrap())
    };
    let send = |pair: &mut ferroce_sim::testhost::Pair| {
        pair.b.post_recv(qb, &[]);
        pair.a.post_send(qa, &Work::send(&[]));
        pair.wait(Side::A, 0);
        pair.settle();
    };
    send(&mut pair);
    assert_eq!(pair.a.nic.interrupt(), None, "not armed");
    pair.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY | 1);
    send(&mut pair);
    assert_eq!(pair.a.nic.interrupt(), Some(5));
    let eqe = event_at(&pair, 0);
    assert_eq!(
        (eqe.event, eqe.object, eqe.owner),
        (event::COMPLETION, 0, true)
    );
    send(&mut pair);
    assert_eq!(pair.a.nic.interrupt(), None, "armed for one");
    pair.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY | 2);
    pair.settle();
    assert_eq!(
        pair.a.nic.interrupt(),
        Some(5),
        "the third came before the doorbell"
    );
    pair.a
        .nic
        .write32(doorbell::cq(0), doorbell::ARM_SOLICITED | 3);
    send(&mut pair);
    assert_eq!(pair.a.nic.interrupt(), None, "not solicited");
    let fatal = pair.b.create_mr(&[0; 8], Rights::NONE);
    pair.a.post_send(qa, &Work::write(&[], &fatal, 0).imm(0));
    pair.run(1000);
    pair.a.modify_state(qa, state::ERR);
    pair.settle();
    assert_eq!(
        pair.a.nic.interrupt(),
        Some(5),
        "a failed completion counts as solicited"
    );
}
