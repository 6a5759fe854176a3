//! Work queue entries that make no sense.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::wqe::{self, MAX_MSG, RecvWqe, SendWqe};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work};

use crate::errors::{drain, fails};
use crate::{assert_status, assert_success, connected};

#[test]
fn a_receive_wqe_that_makes_no_sense() {
    let sges = |n| RecvWqe {
        num_sge: n,
        length: 8,
        ..RecvWqe::default()
    };
    for (head, expected) in [
        (sges(4), status::LOC_QP_OP_ERR),
        (sges(17), status::LOC_QP_OP_ERR),
        (sges(255), status::LOC_QP_OP_ERR),
    ] {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = pair.b.create_mr(&[0; 8], Rights::ALL);
        pair.b.post_recv_wqe(qb, head, &[target.all()]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        assert_status(&pair.wait(Side::A, 0), index, status::REM_OP_ERR);
        let cqes = drain(&mut pair, Side::B);
        assert_eq!(cqes.len(), 1);
        assert_status(&cqes[0], 0, expected);
    }
}

/// `work` with its head changed after the slots were filled in.
fn spoilt(work: &Work, spoil: impl FnOnce(&mut SendWqe)) -> Vec<[u8; 64]> {
    let mut slots = work.slots();
    let mut head = SendWqe::parse(slots[0].first_chunk().unwrap());
    spoil(&mut head);
    slots[0][..SendWqe::BYTES].copy_from_slice(&head.emit());
    slots
}

#[test]
fn send_wqes_that_make_no_sense() {
    let (op, len) = (status::LOC_QP_OP_ERR, status::LOC_LEN_ERR);
    type Case = (&'static str, u8, fn(&mut SendWqe));
    let send_cases: [Case; 11] = [
        ("opcode", op, |h| h.opcode = 8),
        ("opcode", op, |h| h.opcode = 0xff),
        ("no slots", op, |h| h.slots = 0),
        ("six slots", op, |h| h.slots = 6),
        ("more slots than posted", op, |h| h.slots = 3),
        ("17 entries", op, |h| h.num_sge = 17),
        ("255 entries", op, |h| h.num_sge = 255),
        ("more entries than its slots hold", op, |h| h.num_sge = 3),
        ("length below the sum", op, |h| h.length = 63),
        ("length above the sum", op, |h| h.length = 65),
        ("length beyond 2^31", len, |h| h.length = MAX_MSG + 1),
    ];
    let other_cases: [Case; 4] = [
        ("inline data beyond its slots", op, |h| {
            h.inline_data = true;
            h.length = 33;
        }),
        ("inline READ", op, |h| {
            h.opcode = wqe::opcode::READ;
            h.inline_data = true;
        }),
        ("atomic of 64 bytes", len, |h| {
            h.opcode = wqe::opcode::CMP_SWAP
        }),
        ("atomic of two entries", op, |h| {
            h.opcode = wqe::opcode::FETCH_ADD;
            h.num_sge = 2;
        }),
    ];
    for (what, expected, spoil) in send_cases.into_iter().chain(other_cases) {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let local = pair.a.create_mr(&[1; 64], Rights::ALL);
        pair.b.post_recv(qb, &[]);
        pair.a.write_slots(qa, &Work::send(&[]).slots());
        let index = pair
            .a
            .post_slots(qa, &spoilt(&Work::send(&[local.all()]).unsignaled(), spoil));
        assert_success(&pair.wait(Side::A, 0), 0);
        assert_status(&pair.wait(Side::A, 0), index, expected);
        assert_eq!(
            pair.packets(Side::A).len(),
            1,
            "{what}: nothing was sent for it"
        );
        assert_eq!(pair.a.query(qa).sq_state, state::ERR, "{what}");
        pair.assert_no_faults();
    }
}

#[test]
fn read_without_resources_for_it() {
    let (mut pair, qa, qb) = connected(QpOptions {
        max_rd_atomic: 0,
        ..QpOptions::default()
    });
    let remote = pair.b.create_mr(&[1; 64], Rights::ALL);
    let local = pair.a.create_mr(&[0; 64], Rights::ALL);
    fails(
        &mut pair,
        (qa, qb),
        &Work::read(&[local.all()], &remote, 0),
        status::LOC_QP_OP_ERR,
    );
}

#[test]
fn a_receive_wqe_counts_by_its_list() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let target = pair.b.create_mr(&[0; 16], Rights::ALL);
    for length in [0, 7, 9, u32::MAX] {
        let head = RecvWqe {
            num_sge: 1,
            length,
            ..RecvWqe::default()
        };
        pair.b.post_recv_wqe(qb, head, &[target.sge(4, 8)]);
        let index = pair.a.post_send(qa, &Work::send(&[]).inline(&[7; 8]));
        assert_success(&pair.wait(Side::A, 0), index);
        assert_success(&pair.wait(Side::B, 0), index);
    }
    assert_eq!(
        pair.b.contents(&target)[..13],
        [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 0]
    );
}

/// A WRITE with immediate takes a receive WQE and nothing of what it says.
#[test]
fn immediate_data_of_a_write_ignores_the_scatter_list() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let target = pair.b.create_mr(&[0; 8], Rights::ALL);
    let head = RecvWqe {
        num_sge: 255,
        length: 1,
        ..RecvWqe::default()
    };
    pair.b.post_recv_wqe(qb, head, &[]);
    let work = Work::write(&[], &target, 0).inline(&[5; 8]).imm(3);
    let index = pair.a.post_send(qa, &work);
    assert_success(&pair.wait(Side::A, 0), index);
    let cqe = pair.wait(Side::B, 0);
    assert_success(&cqe, 0);
    assert_eq!((cqe.imm, cqe.byte_len), (3, 8));
    assert_eq!(pair.b.contents(&target), [5; 8]);
}
