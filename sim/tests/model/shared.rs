//! Shared receive queues.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, pair};

/// Two connections between the hosts; those of B receive from one queue.
fn shared(options: QpOptions, limit: u16) -> (Pair, u16, [(u32, u32); 2]) {
    let mut pair = pair();
    let srqn = pair.b.create_srq(3, 0, limit);
    let receiver = QpOptions {
        srq: Some(srqn),
        ..options
    };
    let connections = [(); 2].map(|()| pair.connect(options, receiver));
    (pair, srqn, connections)
}

#[test]
fn queue_pairs_take_wqes_in_the_order_of_their_messages() {
    let (mut pair, srqn, connections) = shared(QpOptions::default(), 0);
    let target = pair.b.create_mr(&[0; 20 * 4096], Rights::ALL);
    for i in 0..20u16 {
        let (qa, qb) = connections[usize::from(i) % 2];
        let index = pair
            .b
            .post_srq(srqn, &[target.sge(4096 * u64::from(i), 4096)]);
        let data = pattern(2500, i as u8);
        let source = pair.a.create_mr(&data, Rights::NONE);
        pair.a.post_send(qa, &Work::send(&[source.all()]));
        let cqe = pair.wait(Side::B, 0);
        assert_success(&cqe, index);
        assert_eq!((cqe.qpn, cqe.byte_len), (qb, 2500));
        let at = target.addr + 4096 * u64::from(i);
        assert_eq!(pair.b.read(at, 2500), data);
        assert_eq!(pair.wait(Side::A, 0).status, status::SUCCESS);
    }
    pair.assert_no_faults();
}

#[test]
fn an_empty_queue_is_not_ready() {
    let (mut pair, srqn, connections) = shared(QpOptions::default(), 0);
    let index = pair.a.post_send(connections[0].0, &Work::send(&[]));
    pair.run(1000);
    assert_eq!(pair.b.stat("rnr_nak_sent"), 1);
    pair.b.post_srq(srqn, &[]);
    assert_success(&pair.wait(Side::A, 0), index);
}

#[test]
fn an_error_flushes_only_the_message_under_way() {
    let options = QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    };
    let (mut pair, srqn, [(qa, qb), _]) = shared(options, 0);
    let target = pair.b.create_mr(&[0; 8192], Rights::ALL);
    for _ in 0..3 {
        pair.b.post_srq(srqn, &[target.all()]);
    }
    let mut frames = 0;
    pair.wire = Box::new(move |_, frame| {
        frames += 1;
        if frames < 3 {
            vec![frame.to_vec()]
        } else {
            vec![]
        }
    });
    let source = pair.a.create_mr(&[1; 3000], Rights::NONE);
    pair.a.post_send(qa, &Work::send(&[source.all()]));
    pair.settle();
    pair.b.modify_state(qb, state::ERR);
    assert_status(&pair.wait(Side::B, 0), 0, status::WR_FLUSH_ERR);
    pair.settle();
    assert_eq!(pair.b.poll(0), None, "the others are everyone's");
}
