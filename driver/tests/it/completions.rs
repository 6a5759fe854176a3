//! Completions: what they say, and those of nothing.

use std::time::Duration;

use ferroce_driver::{
    CommandError, Cq, CqError, Qp, RecvWr, SendOp, SendWr, Wc, WcFlags, WcOpcode, WcStatus,
};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{self, Cqe, status};

use crate::fake::{ALL, Answer, BASIC};
use crate::setup::{Connected, REMOTE, open, peer, sges};

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
        (6, "memory bind operation error"),
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

/// Of a send WQE that it cannot read the card does not know the slots, and flushes one after the other. If it reads a later
/// one, what is there is no WQE, and the next may be passed over.
#[test]
fn each_request_completes_once_if_the_card_flushes_slots() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 64, |b| b.max_send_wr(8).max_send_sge(16));
    // Entries and slots.
    let kinds = [(16, 5), (1, 1), (6, 2), (2, 1), (10, 3)];
    let lists = kinds.map(|(entries, _)| sges(entries));
    let mut wcs = [Wc::default(); 64];
    let mut at = 0;
    for round in 0..40 {
        // Requests of many sizes come to stand at each place.
        let count = 1 + round % kinds.len();
        let list = lists[..count].iter();
        let write = list.map(|list| SendWr::new(SendOp::Write(REMOTE), list));
        let wrs: Vec<_> = (1..).zip(write).map(|(i, wr)| wr.wr_id(i)).collect();
        qp.post_send(&wrs).unwrap();
        for &(_, slots) in &kinds[..count] {
            let first = if round % 2 == 0 { 0 } else { slots - 1 };
            for slot in first..slots {
                let status = status::WR_FLUSH_ERR;
                assert!(fake.complete_send(qp.qpn(), at + slot, status));
            }
            at += slots;
        }
        let found = cq.poll(&mut wcs);
        let found: Vec<_> = wcs[..found].iter().map(|wc| wc.wr_id).collect();
        let posted: Vec<_> = wrs.iter().map(|wr| wr.wr_id).collect();
        assert_eq!(found, posted, "round {round}");
    }
}

/// What queue pairs that are gone left in a queue takes no room of it, and the others keep their order.
#[test]
fn completions_of_queue_pairs_that_are_gone_take_no_room() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let connected = |cq: &Cq<_>| {
        let mut qp = Qp::builder(&pd).cq(cq).build().unwrap();
        qp.connect(&peer()).unwrap();
        qp
    };
    let mut stays = connected(&cq);
    let send = |qp: &mut Qp<_>, wr_id| {
        qp.post_send(&[SendWr::new(SendOp::Send, &[]).signaled().wr_id(wr_id)])
            .unwrap();
    };
    let mut wcs = [Wc::default(); 8];
    let mut index = 0;
    for round in 0..20 {
        send(&mut stays, round);
        assert!(fake.complete_send(stays.qpn(), index, 0));
        for _ in 0..3 {
            let mut goes = connected(&cq);
            for place in 0..4 {
                send(&mut goes, 99);
                assert!(fake.complete_send(goes.qpn(), place, 0), "there is room");
            }
        }
        send(&mut stays, round + 100);
        assert!(fake.complete_send(stays.qpn(), index + 1, 0));
        index += 2;
        assert_eq!((cq.poll(&mut wcs), cq.unknown_cqes()), (2, 0));
        assert_eq!([wcs[0].wr_id, wcs[1].wr_id], [round, round + 100]);
    }
}

/// A count of CQEs in 32 bits is the same again after 2^32, and of two of them either may be the later one.
#[test]
fn completions_come_after_two_to_the_31() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b);
    let mut wcs = [Wc::default(); 2];
    for posted in 0..5u32 {
        let wr = SendWr::new(SendOp::Send, &[]).wr_id(posted.into());
        qp.post_send(&[wr.signaled()]).unwrap();
        assert!(fake.complete_send(qp.qpn(), posted, 0));
        assert_eq!((cq.poll(&mut wcs), wcs[0].wr_id), (1, posted.into()));
        // those of other queue pairs
        fake.skip_cqes(cq.cqn(), 1 << 31);
        cq.skip(1 << 31);
        cq.resize(4 << (posted % 2)).unwrap();
    }
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
    assert_eq!(cq.wait(&mut wcs, Duration::from_millis(1)), 0);
    assert!((1_000_000..1_100_000).contains(&(fake.state().now_ns - before)));
    assert!(fake.complete_send(qp.qpn(), 0, 0));
    assert_eq!(cq.wait(&mut wcs, Duration::from_millis(1)), 1);
    assert_eq!(wcs[0].wr_id, 4);
}

/// Sizes, completions before and after each, and how many are polled before the next.
#[test]
fn a_queue_that_is_resized_hands_out_all_in_order() {
    let mut made = Connected::new(ALL, 4, |b| b.max_send_wr(64));
    let (mut posted, mut completed, mut polled) = (0, 0, 0);
    let mut wcs = [Wc::default(); 32];
    for (size, before, after, take) in [
        (8, 3, 2, 4),
        (2, 0, 1, 0),
        (16, 0, 9, 3),
        (8, 0, 0, 2),
        (64, 2, 30, 16),
        (32, 0, 5, 32),
        (1, 0, 0, 16),
        (4, 1, 2, 16),
    ] {
        let mut complete = |fake: &crate::fake::Fake, qp: &mut ferroce_driver::Qp<_>, n| {
            for _ in 0..n {
                let wr = SendWr::new(SendOp::Send, &[]).wr_id(posted).signaled();
                qp.post_send(&[wr]).unwrap();
                assert!(fake.complete_send(qp.qpn(), posted as u32, 0));
                posted += 1;
                completed += 1;
            }
        };
        complete(&made.fake, &mut made.qp, before);
        made.cq.resize(size).unwrap();
        assert_eq!(made.cq.capacity(), size.next_power_of_two().max(2));
        complete(&made.fake, &mut made.qp, after);
        let expected = (completed - polled).min(take as u64);
        assert_eq!(made.cq.poll(&mut wcs[..take]) as u64, expected);
        for wc in &wcs[..expected as usize] {
            assert_eq!((wc.wr_id, wc.status), (polled, WcStatus::Success));
            polled += 1;
        }
    }
    assert_eq!(polled, posted);
    assert_eq!(made.cq.unknown_cqes(), 0);
}

/// It may write to either ring.
#[test]
fn a_queue_that_may_have_moved_is_given_up_with_its_card() {
    let mut made = Connected::new(ALL, 8, |b| b);
    made.fake
        .state()
        .answers
        .insert(opcode::RESIZE_CQ, Answer::Never);
    let e = made.cq.resize(4).unwrap_err();
    assert!(
        matches!(e, CqError::Command(CommandError::Timeout { .. })),
        "{e}"
    );
    assert!(made.fake.state().mapped.is_empty());
}

#[test]
fn what_the_card_refuses_leaves_a_queue_as_it_was() {
    let mut made = Connected::new(ALL, 8, |b| b);
    for (status, waits) in [
        (ferroce_proto::abi::cmd::status::BAD_STATE, true),
        (3, false),
    ] {
        let answer = Answer::Status(status);
        made.fake.state().answers.insert(opcode::RESIZE_CQ, answer);
        let e = made.cq.resize(4).unwrap_err();
        assert_eq!(matches!(e, CqError::Waiting { entries: 4 }), waits, "{e}");
        assert_eq!(made.cq.capacity(), 8);
    }
    made.fake.state().answers.clear();
    for entries in [0, (1 << 22) + 1] {
        let e = made.cq.resize(entries).unwrap_err();
        assert!(matches!(e, CqError::Entries { .. }), "{e}");
    }
    let resizes = |made: &Connected| {
        let state = made.fake.state();
        let all = state.commands.iter();
        all.filter(|head| head.opcode == opcode::RESIZE_CQ).count()
    };
    let before = resizes(&made);
    made.cq.resize(5).unwrap();
    assert_eq!(resizes(&made), before, "it has 8 already");
    let (_, context) = open(BASIC);
    let e = context.create_cq(4).unwrap().resize(8).unwrap_err();
    assert!(matches!(e, CqError::Unsupported), "{e}");
}
