//! Completions: what they say, and those of nothing.

use ferroce_driver::{RecvWr, SendOp, SendWr, Wc, WcFlags, WcOpcode, WcStatus};
use ferroce_proto::abi::cq::{self, Cqe, status};

use crate::fake::ALL;
use crate::setup::Connected;

#[test]
fn a_completion_says_everything() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b);
    qp.post_recv(&[
        RecvWr::new(0xfeed, &[]),
        RecvWr::new(0xbeef, &[]),
        RecvWr::new(1, &[]),
    ])
    .unwrap();
    let base = Cqe {
        qpn: qp.qpn(),
        opcode: cq::opcode::RECV_WRITE_IMM,
        recv: true,
        ..Cqe::default()
    };
    let cqes = [
        Cqe {
            byte_len: 4096,
            imm: 0xdead,
            with_imm: true,
            solicited: true,
            ..base
        },
        Cqe {
            wqe_index: 1,
            opcode: cq::opcode::RECV,
            imm: 55,
            with_inv: true,
            ..base
        },
        Cqe {
            wqe_index: 2,
            status: status::LOC_LEN_ERR,
            vendor_err: 0x61,
            ..base
        },
    ];
    for cqe in cqes {
        assert!(fake.put_cqe(cq.cqn(), cqe));
    }
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), 3);
    assert_eq!(
        wcs[0],
        Wc {
            wr_id: 0xfeed,
            opcode: WcOpcode::RecvRdmaWithImm,
            byte_len: 4096,
            imm: 0xdead,
            qp_num: qp.qpn(),
            flags: WcFlags::WITH_IMM | WcFlags::SOLICITED,
            ..Wc::default()
        }
    );
    assert_eq!(
        (wcs[0].imm_data(), wcs[0].invalidated_rkey()),
        (Some(0xdead), None)
    );
    assert_eq!(
        (wcs[1].imm_data(), wcs[1].invalidated_rkey()),
        (None, Some(55))
    );
    assert!(wcs[1].ok().is_ok());
    let e = wcs[2].ok().unwrap_err();
    assert!(
        e.to_string()
            .contains("work request 0x1 of queue pair 2: local length error"),
        "{e}"
    );
    assert!(e.to_string().contains("syndrome 0x61"), "{e}");
}

#[test]
fn statuses_are_displayed_as_in_libibverbs() {
    for (code, text) in [
        (0, "success"),
        (1, "local length error"),
        (2, "local QP operation error"),
        (4, "local protection error"),
        (5, "Work Request Flushed Error"),
        (7, "bad response error"),
        (9, "remote invalid request error"),
        (10, "remote access error"),
        (11, "remote operation error"),
        (12, "transport retry counter exceeded"),
        (13, "RNR retry counter exceeded"),
        (16, "aborted error"),
        (21, "general error"),
        (200, "unknown"),
    ] {
        assert_eq!(WcStatus::from(code).to_string(), text);
    }
}

#[test]
fn completions_of_nothing_posted_are_counted_and_dropped() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b);
    qp.post_send(&[SendWr::new(SendOp::Send, &[]).signaled()])
        .unwrap();
    for index in [1, 7, 0xffff, 0] {
        assert!(fake.complete_send(qp.qpn(), index, 0));
    }
    assert!(!fake.complete_send(qp.qpn(), 0, 0), "the ring is full");
    let mut wcs = [Wc::default(); 8];
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(cq.unknown_cqes(), 3);
    // A second completion of the same request.
    assert!(fake.complete_send(qp.qpn(), 0, 0));
    assert_eq!(cq.poll(&mut wcs), 0);
    assert_eq!(cq.unknown_cqes(), 4);
}

#[test]
fn wait_returns_with_a_completion_or_after_the_limit() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b);
    qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(4).signaled()])
        .unwrap();
    let mut wcs = [Wc::default(); 1];
    let before = fake.state().now_ns;
    assert_eq!(cq.wait(&mut wcs, 1_000_000), 0);
    assert!((1_000_000..1_100_000).contains(&(fake.state().now_ns - before)));
    assert!(fake.complete_send(qp.qpn(), 0, 0));
    assert_eq!(cq.wait(&mut wcs, 1_000_000), 1);
    assert_eq!(wcs[0].wr_id, 4);
}
