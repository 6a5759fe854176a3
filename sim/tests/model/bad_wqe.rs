//! Work queue entries that make no sense.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::RecvWqe;
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work};

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
