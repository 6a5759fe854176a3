//! A card with some of the features only.

use ferroce_proto::abi::cmd::{CmdHead, opcode as cmd_opcode, status as cmd_status};
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work};

use crate::{assert_status, assert_success};

/// A host with a card of few features, and one with all.
fn pair() -> Pair {
    let mut features = [feature::RC, ferroce_sim::model::FEATURES].into_iter();
    Pair::new(move |memory| {
        let features = features.next().expect("two cards");
        Box::new(Model::with_features(DEFAULT_PARAMS, features, memory))
    })
}

#[test]
fn the_register_says_what_there_is() {
    let mut pair = pair();
    assert_eq!(pair.a.read32(regs::FEATURES), feature::RC);
    assert_eq!(pair.b.read32(regs::FEATURES), ferroce_sim::model::FEATURES);
}

#[test]
fn operations_that_are_not_there_are_refused_at_both_ends() {
    for (from, expected) in [
        (Side::A, status::LOC_QP_OP_ERR),
        (Side::B, status::REM_INV_REQ_ERR),
    ] {
        for operation in [opcode::SEND_INV, opcode::READ, opcode::FETCH_ADD] {
            let mut pair = pair();
            let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
            let qpn = if from == Side::A { qa } else { qb };
            let (a, b) = (
                pair.a.create_mr(&[1; 8], Rights::ALL),
                pair.b.create_mr(&[2; 8], Rights::ALL),
            );
            let (local, remote) = if from == Side::A { (a, b) } else { (b, a) };
            let work = match operation {
                opcode::SEND_INV => Work::new(opcode::SEND_INV, &[local.all()]),
                opcode::READ => Work::read(&[local.all()], &remote, 0),
                _ => Work::fetch_add(local.all(), &remote, 0, 1),
            };
            let index = pair.host(from).post_send(qpn, &work);
            assert_status(&pair.wait(from, 0), index, expected);
            assert_eq!(
                (pair.a.contents(&a), pair.b.contents(&b)),
                (vec![1; 8], vec![2; 8])
            );
        }
    }
}

#[test]
fn long_wqes_count_as_one_slot() {
    let mut pair = pair();
    let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
    pair.b.post_recv(qb, &[]);
    let good = pair.a.post_send(qa, &Work::send(&[]));
    assert_success(&pair.wait(Side::A, 0), good);
    let long = Work::send(&[]).inline(&[1; 33]);
    let index = pair.a.post_send(qa, &long);
    assert_status(&pair.wait(Side::A, 0), index, status::LOC_QP_OP_ERR);
    assert_status(&pair.wait(Side::A, 0), index + 1, status::WR_FLUSH_ERR);
}

#[test]
fn event_queues_that_are_not_there_are_refused() {
    let mut pair = pair();
    for opcode in [cmd_opcode::CREATE_EQ, cmd_opcode::DESTROY_EQ] {
        let head = CmdHead {
            opcode,
            ..CmdHead::default()
        };
        let image = EqCtx {
            log_size: 4,
            ..EqCtx::default()
        };
        let status = pair.a.command(head, &[image.emit()]).status;
        assert_eq!(status, cmd_status::BAD_OPCODE);
        assert_eq!(pair.b.command(head, &[image.emit()]).status, cmd_status::OK);
    }
}

#[test]
fn transports_that_are_not_there_are_refused() {
    let mut pair = pair();
    let uc = QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    };
    let (qa, qb) = (pair.a.create_qp(uc), pair.b.create_qp(uc));
    let peer = pair.b.peer(qb);
    let images = pair.a.images(qa, &peer);
    for (qp_sq, qp_rq) in [(true, false), (false, true)] {
        let head = CmdHead {
            opcode: cmd_opcode::MODIFY_QP,
            index: qa,
            qp_sq,
            qp_rq,
            ..CmdHead::default()
        };
        assert_eq!(pair.a.command(head, &images).status, cmd_status::BAD_PARAM);
    }
}
