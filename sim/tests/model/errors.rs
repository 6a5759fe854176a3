//! Errors end in the right completion on both sides, flush the rest, and move no byte.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::wqe::Sge;
use ferroce_sim::testhost::{Mr, PD, Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

/// All CQEs of queue 0 of a host, once the link is quiet.
pub(crate) fn drain(pair: &mut Pair, side: Side) -> Vec<Cqe> {
    pair.settle();
    std::iter::from_fn(|| pair.host(side).poll(0)).collect()
}

/// Receive WQEs wait on both sides, one WQE runs before `bad` and one behind it: what `bad` comes to, after checking
/// that everything behind it is flushed on both sides.
pub(crate) fn fails(pair: &mut Pair, (qa, qb): (u32, u32), bad: &Work, expected: u8) -> Cqe {
    for _ in 0..2 {
        pair.a.post_recv(qa, &[]);
        pair.b.post_recv(qb, &[]);
    }
    let good = pair.a.post_send(qa, &Work::send(&[]).unsignaled());
    let bad = pair.a.post_send(qa, bad);
    let behind = pair.a.post_send(qa, &Work::send(&[]).unsignaled());
    let cqes = drain(pair, Side::A);
    assert_eq!(good, 0);
    assert_eq!(cqes.len(), 4, "{cqes:?}");
    assert_status(&cqes[0], bad, expected);
    assert_status(&cqes[1], behind, status::WR_FLUSH_ERR);
    assert!(!cqes[0].recv && !cqes[1].recv);
    for i in 0..2 {
        assert_status(&cqes[2 + i], i as u16, status::WR_FLUSH_ERR);
        assert!(cqes[2 + i].recv);
    }
    let query = pair.a.query(qa);
    assert_eq!((query.sq_state, query.rq_state), (state::ERR, state::ERR));
    // What is posted from now on is flushed too.
    pair.a.post_send(qa, &Work::send(&[]).unsignaled());
    pair.a.post_recv(qa, &[]);
    let late = drain(pair, Side::A);
    assert_eq!(late.len(), 2);
    assert!(late.iter().all(|cqe| cqe.status == status::WR_FLUSH_ERR));
    cqes[0]
}

/// The remote side of a connection whose requester failed by a NAK.
fn assert_remote_flushed(pair: &mut Pair, qb: u32, first: u8) {
    let cqes = drain(pair, Side::B);
    assert_success(&cqes[0], 0);
    let statuses: Vec<_> = cqes[1..].iter().map(|cqe| cqe.status).collect();
    assert_eq!(statuses, [first], "the second receive WQE");
    assert_eq!(pair.b.query(qb).rq_state, state::ERR);
}

#[test]
fn remote_access_is_refused() {
    let region = |pair: &mut Pair, rights| pair.b.create_mr(&pattern(4096, 1), rights);
    let but = |f: fn(&mut Rights)| {
        let mut rights = Rights::ALL;
        f(&mut rights);
        rights
    };
    type Case = (&'static str, fn(&Mr, Sge) -> Work);
    let cases: [Case; 7] = [
        ("stale key", |mr, s| {
            Work::write(
                &[s],
                &Mr {
                    key: mr.key ^ 1,
                    ..*mr
                },
                0,
            )
        }),
        ("unknown key", |mr, s| {
            Work::write(
                &[s],
                &Mr {
                    key: 0x3_0000,
                    ..*mr
                },
                0,
            )
        }),
        ("one byte before", |mr, s| Work::write(&[s], mr, u64::MAX)),
        ("one byte behind", |mr, s| Work::write(&[s], mr, 4096 - 99)),
        ("wraps round 2^64", |mr, s| {
            Work::write(&[s], mr, 0u64.wrapping_sub(mr.addr).wrapping_sub(50))
        }),
        ("read behind", |mr, s| Work::read(&[s], mr, 4096 - 99)),
        ("read wraps", |mr, s| {
            Work::read(&[s], mr, 0u64.wrapping_sub(mr.addr).wrapping_sub(50))
        }),
    ];
    for (what, work) in cases {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = region(&mut pair, Rights::ALL);
        let local = pair.a.create_mr(&[0xee; 100], Rights::ALL);
        let cqe = fails(
            &mut pair,
            (qa, qb),
            &work(&target, local.all()),
            status::REM_ACCESS_ERR,
        );
        assert_eq!(cqe.vendor_err, 0x62, "{what}");
        assert_remote_flushed(&mut pair, qb, status::WR_FLUSH_ERR);
        assert_eq!(pair.b.contents(&target), pattern(4096, 1), "{what}");
        assert_eq!(pair.b.stat("access_errors"), 1, "{what}");
        pair.assert_no_faults();
    }
    for (what, rights, work) in [
        (
            "write",
            but(|r| r.remote_write = false),
            Work::write as fn(&[Sge], &Mr, u64) -> Work,
        ),
        ("read", but(|r| r.remote_read = false), Work::read),
        ("atomic", but(|r| r.remote_atomic = false), |s, mr, o| {
            Work::fetch_add(s[0], mr, o, 1)
        }),
    ] {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = region(&mut pair, rights);
        let local = pair.a.create_mr(&[0xee; 8], Rights::ALL);
        let work = work(&[local.all()], &target, 0);
        fails(&mut pair, (qa, qb), &work, status::REM_ACCESS_ERR);
        assert_eq!(pair.b.contents(&target), pattern(4096, 1), "{what}");
    }
}

#[test]
fn access_ends_with_the_last_address() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let top = u64::MAX - 4095;
    pair.b.memory.map(top, vec![0; 4096]).unwrap();
    let region = pair.b.register(top, 4096, Rights::ALL);
    let local = pair.a.create_mr(&pattern(4096, 1), Rights::ALL);
    let index = pair
        .a
        .post_send(qa, &Work::write(&[local.all()], &region, 0));
    assert_success(&pair.wait(Side::A, 0), index);
    assert_eq!(pair.b.contents(&region), pattern(4096, 1));
    pair.a
        .post_send(qa, &Work::write(&[local.all()], &region, 1));
    assert_eq!(pair.wait(Side::A, 0).status, status::REM_ACCESS_ERR);
    assert_eq!(pair.b.query(qb).msn, 1);
    pair.assert_no_faults();
}

#[test]
fn protection_domains_are_kept_apart() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let target = pair.b.create_mr(&[0; 64], Rights::ALL);
    let other = MrCtx {
        base: target.addr,
        last: target.addr + 63,
        key: target.key,
        pd: PD + 1,
        valid: true,
        local_write: true,
        remote_write: true,
        ..MrCtx::default()
    };
    pair.b
        .expect(opcode::WRITE_MR, target.key >> 8, &other.emit());
    let local = pair.a.create_mr(&[1; 8], Rights::ALL);
    fails(
        &mut pair,
        (qa, qb),
        &Work::write(&[local.all()], &target, 0),
        status::REM_ACCESS_ERR,
    );
    assert_eq!(pair.b.contents(&target), [0; 64]);
}

#[test]
fn a_receive_buffer_too_short() {
    for (len, short) in [(500, 499), (3000, 2999), (3000, 1024), (1, 0)] {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
        let local = pair.a.create_mr(&pattern(len, 1), Rights::ALL);
        pair.b.post_recv(qb, &[target.sge(0, short)]);
        pair.b.post_recv(qb, &[]);
        let index = pair.a.post_send(qa, &Work::send(&[local.all()]));
        let cqe = pair.wait(Side::A, 0);
        assert_status(&cqe, index, status::REM_INV_REQ_ERR);
        assert_eq!(cqe.vendor_err, 0x61);
        let cqes = drain(&mut pair, Side::B);
        assert_status(&cqes[0], 0, status::LOC_LEN_ERR);
        assert_status(&cqes[1], 1, status::WR_FLUSH_ERR);
        assert_eq!(cqes.len(), 2);
        let behind = pair
            .b
            .read(target.addr + u64::from(short), 4096 - short as usize);
        assert!(behind.iter().all(|&b| b == 0), "nothing behind the buffer");
    }
}

#[test]
fn a_scatter_list_that_is_not_permitted() {
    for bad in ["no write right", "out of bounds", "unknown key"] {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let good = pair.b.create_mr(&[0; 64], Rights::ALL);
        let readable = pair.b.create_mr(&[0; 64], Rights::NONE);
        let second = match bad {
            "no write right" => readable.all(),
            "out of bounds" => good.sge(1, 64),
            _ => Sge {
                lkey: 0x3_0000,
                ..good.all()
            },
        };
        pair.b.post_recv(qb, &[good.sge(0, 8), second]);
        let local = pair.a.create_mr(&[7; 72], Rights::ALL);
        let index = pair.a.post_send(qa, &Work::send(&[local.all()]));
        assert_status(&pair.wait(Side::A, 0), index, status::REM_OP_ERR);
        let cqes = drain(&mut pair, Side::B);
        assert_eq!(cqes.len(), 1);
        assert_status(&cqes[0], 0, status::LOC_PROT_ERR);
        assert_eq!(pair.b.contents(&readable), [0; 64]);
        pair.assert_no_faults();
    }
}

#[test]
fn a_gather_list_that_is_not_permitted() {
    for (list, what) in [
        (
            (|mr: &Mr| vec![mr.sge(0, 65)]) as fn(&Mr) -> Vec<Sge>,
            "behind the end",
        ),
        (
            |mr| vec![mr.sge(0, 8), mr.sge(u64::MAX, 1)],
            "before the start",
        ),
        (
            |mr| {
                vec![Sge {
                    lkey: mr.key ^ 1,
                    ..mr.all()
                }]
            },
            "stale key",
        ),
        (
            |mr| {
                vec![Sge {
                    addr: u64::MAX - 3,
                    length: 8,
                    lkey: mr.key,
                }]
            },
            "wraps",
        ),
    ] {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let local = pair.a.create_mr(&[1; 64], Rights::ALL);
        fails(
            &mut pair,
            (qa, qb),
            &Work::send(&list(&local)),
            status::LOC_PROT_ERR,
        );
        assert_eq!(
            pair.b.query(qb).rq_state,
            state::RTS,
            "{what}: the peer does not know"
        );
        pair.assert_no_faults();
    }
}

#[test]
fn a_local_error_waits_for_what_came_before() {
    let (mut pair, qa, qb) = connected(QpOptions {
        timeout: 2,
        ..QpOptions::default()
    });
    let local = pair.a.create_mr(&pattern(4000, 1), Rights::ALL);
    let target = pair.b.create_mr(&[0; 4000], Rights::ALL);
    // The last packet of the first message is lost once, when the error is known already.
    let mut n = 0;
    pair.fate = Box::new(move |from, frame| {
        n += usize::from(from == Side::A);
        if from == Side::A && n == 4 {
            vec![]
        } else {
            vec![frame.to_vec()]
        }
    });
    pair.b.post_recv(qb, &[target.all()]);
    pair.a.write_slots(qa, &Work::send(&[local.all()]).slots());
    pair.a.post_send(qa, &Work::send(&[local.sge(3999, 2)]));
    pair.a.post_send(qa, &Work::send(&[]).unsignaled());
    assert_success(&pair.wait(Side::A, 0), 0);
    assert_eq!(pair.a.stat("local_ack_timeout_err"), 1);
    assert_status(&pair.wait(Side::A, 0), 1, status::LOC_PROT_ERR);
    assert_status(&pair.wait(Side::A, 0), 2, status::WR_FLUSH_ERR);
    assert_eq!(pair.b.contents(&target), pattern(4000, 1));
}

#[test]
fn error_by_command_flushes_and_reset_starts_afresh() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let local = pair.a.create_mr(&pattern(64, 1), Rights::ALL);
    pair.fate = Box::new(|_, _| vec![]);
    for _ in 0..3 {
        pair.a.post_recv(qa, &[local.all()]);
        pair.a
            .post_send(qa, &Work::send(&[local.all()]).unsignaled());
    }
    pair.settle();
    pair.a.modify_state(qa, state::ERR);
    let cqes = drain(&mut pair, Side::A);
    assert_eq!(cqes.len(), 6);
    for (i, cqe) in cqes.iter().enumerate() {
        assert_status(cqe, (i % 3) as u16, status::WR_FLUSH_ERR);
        assert_eq!(cqe.recv, i >= 3);
    }
    let peers = (pair.a.peer(qa), pair.b.peer(qb));
    pair.a.connect(qa, &peers.1);
    pair.b.connect(qb, &peers.0);
    pair.fate = Box::new(|_, frame| vec![frame.to_vec()]);
    pair.b.post_recv(qb, &[]);
    let index = pair.a.post_send(qa, &Work::send(&[]));
    assert_eq!(index, 0);
    assert_success(&pair.wait(Side::A, 0), 0);
    assert_success(&pair.wait(Side::B, 0), 0);
    assert_eq!(pair.a.query(qa).sq_psn, 0x1001);
}

#[test]
fn a_drained_send_queue_finishes_what_it_began() {
    let (mut pair, qa, qb) = connected(QpOptions::default());
    let local = pair.a.create_mr(&pattern(64 * 1024, 1), Rights::ALL);
    let target = pair.b.create_mr(&[0; 64 * 1024], Rights::ALL);
    pair.b.post_recv(qb, &[]);
    pair.a
        .write_slots(qa, &Work::write(&[local.all()], &target, 0).slots());
    pair.a.post_send(qa, &Work::send(&[]));
    pair.run(100);
    pair.a.modify_state(qa, state::SQD);
    assert_success(&pair.wait(Side::A, 0), 0);
    pair.settle();
    assert_eq!(pair.a.poll(0), None, "the second was not begun");
    pair.a.modify_state(qa, state::RTS);
    assert_success(&pair.wait(Side::A, 0), 1);
}
