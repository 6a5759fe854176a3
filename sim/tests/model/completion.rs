//! Completion queues: phase, overflow, events.

use ferroce_proto::abi::cq::status as wc;
use ferroce_sim::testhost::{QpOptions, Side, Work};

use crate::pair;

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
