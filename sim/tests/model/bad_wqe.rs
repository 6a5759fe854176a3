//! Work queue entries that make no sense.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::RecvWqe;
use ferroce_sim::testhost::{Host, Mr, QpOptions, Rights, Side, Work};

use crate::{assert_status, connected};

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
        pair.settle();
        let cqe = pair.b.poll(0).expect("a completion");
        assert_status(&cqe, 0, expected);
        assert_eq!(pair.b.poll(0), None);
    }
}

/// A region over memory that is not there: its key is good, its bytes cannot be read.
fn unreadable(host: &mut Host) -> Mr {
    host.register(0x7ead_0000_0000, 4096, Rights::ALL)
}

#[test]
fn payload_that_cannot_be_read_is_no_protection_error() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let target = pair.b.create_mr(&[0; 64], Rights::ALL);
    pair.b.post_recv(qb, &[target.all()]);
    let bad = unreadable(&mut pair.a);
    let index = pair.a.post_send(qa, &Work::send(&[bad.sge(0, 64)]));
    assert_status(&pair.wait(Side::A, 0), index, status::GENERAL_ERR);
    pair.settle();
    assert_eq!(pair.b.poll(0), None, "nothing was sent");
}

#[test]
fn what_cannot_be_read_for_a_peer_is_an_operational_error() {
    for atomic in [false, true] {
        let (mut pair, qa, _) = connected(QpOptions::default());
        let result = pair.a.create_mr(&[7; 64], Rights::ALL);
        let bad = unreadable(&mut pair.b);
        let work = if atomic {
            Work::fetch_add(result.sge(0, 8), &bad, 0, 1)
        } else {
            Work::read(&[result.sge(0, 64)], &bad, 0)
        };
        let index = pair.a.post_send(qa, &work);
        assert_status(&pair.wait(Side::A, 0), index, status::REM_OP_ERR);
        pair.settle();
        assert_eq!(pair.b.stat("operational_errors"), 1);
        assert_eq!(pair.a.contents(&result), [7; 64]);
    }
}
