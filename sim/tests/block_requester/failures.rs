//! Failures, their status, and the handling of the other requests.

use ferroce_proto::abi::cq::{opcode as cqe, status};
use ferroce_proto::abi::qpc::{SqCtx, state};
use ferroce_proto::abi::wqe::{MAX_MSG, SendWqe, Sge, opcode};
use ferroce_sim::random::Pauses;

use super::bench::{Peer, Q, Rig, sge};
use super::{completions, ctx, one, wqe};

/// Queue pair 1 with few retries, from PSN 100 on.
pub(super) fn rig(peer: Peer) -> Rig {
    let mut rig = Rig::new(20, Pauses::NONE);
    let ctx = SqCtx {
        retry_cnt: 2,
        rnr_retry: 1,
        ..ctx(3)
    };
    rig.open(1, ctx, 100);
    rig.peer = peer;
    rig
}

/// A WRITE that asks for no completion.
fn quiet(length: u32) -> SendWqe {
    SendWqe {
        signaled: false,
        ..wqe(opcode::WRITE, length)
    }
}

/// Posts `before` good WQEs of 3 packets and three of a packet, the second without completion.
fn failing(before: usize, peer: Peer, cycles: u64) -> Rig {
    let mut rig = rig(peer);
    for _ in 0..before {
        rig.post(1, quiet(3000), one(3000));
    }
    for wqe in [wqe(opcode::WRITE, 64), quiet(64), wqe(opcode::WRITE, 64)] {
        rig.post(1, wqe, one(64));
    }
    rig.ring(1);
    rig.run(cycles);
    rig
}

/// Status and CQE opcode; the golden model says the same (`sim::model::wqe`).
#[test]
fn wqes_that_cannot_run() {
    const NONSENSE: u8 = status::LOC_QP_OP_ERR;
    let good = wqe(opcode::WRITE, 64);
    let with = |change: fn(&mut SendWqe)| {
        let mut wqe = good;
        change(&mut wqe);
        wqe
    };
    let mut cases = vec![];
    for (code, shown) in [
        (opcode::READ, cqe::READ),
        (opcode::CMP_SWAP, cqe::CMP_SWAP),
        (opcode::FETCH_ADD, cqe::FETCH_ADD),
        (opcode::LOCAL_INV + 1, cqe::SEND),
        (opcode::BIND_MW, cqe::BIND_MW),
        (opcode::LOCAL_INV, cqe::LOCAL_INV),
        (11, cqe::SEND),
        (0x80 | opcode::WRITE, cqe::SEND),
        (0xff, cqe::SEND),
    ] {
        let wqe = SendWqe {
            opcode: code,
            ..good
        };
        cases.push((wqe, one(64), NONSENSE, shown));
        let long = SendWqe {
            length: MAX_MSG + 1,
            ..wqe
        };
        cases.push((long, one(MAX_MSG + 1), NONSENSE, shown));
    }
    let none = SendWqe { slots: 0, ..good };
    cases.push((none, one(64), NONSENSE, cqe::WRITE));
    for num_sge in [0, 3, 4, 16, 17, 128, 255] {
        cases.push((SendWqe { num_sge, ..good }, one(64), NONSENSE, cqe::WRITE));
    }
    let two = [sge(0x1000, 60, true), sge(0x2000, 5, true)];
    let bad = [sge(0x1000, 64, false), Sge::default()];
    let bad_second = [sge(0x1000, 60, true), sge(0x2000, 4, false)];
    let around = [sge(0, 1 << 31, true), sge(0, (1 << 31) + 64, true)];
    cases.extend([
        (with(|w| w.length = 65), one(64), NONSENSE, cqe::WRITE),
        (with(|w| w.length = 0), one(64), NONSENSE, cqe::WRITE),
        (with(|w| w.num_sge = 2), two, NONSENSE, cqe::WRITE),
        (with(|w| w.num_sge = 2), around, NONSENSE, cqe::WRITE),
        (
            with(|w| (w.inline_data, w.length) = (true, 33)),
            one(64),
            NONSENSE,
            cqe::WRITE,
        ),
    ]);
    let send = wqe(opcode::SEND_IMM, 64);
    cases.extend([
        (good, bad, status::LOC_PROT_ERR, cqe::WRITE),
        (send, bad, status::LOC_PROT_ERR, cqe::SEND),
        (
            with(|w| w.num_sge = 2),
            bad_second,
            status::LOC_PROT_ERR,
            cqe::WRITE,
        ),
    ]);
    let changes: [fn(&mut SendWqe); 4] = [
        |w| w.num_sge = 1,
        |w| w.num_sge = 3,
        |w| w.num_sge = 0,
        |w| w.inline_data = true,
    ];
    for change in changes {
        let mut wqe = with(|w| w.length = MAX_MSG + 1);
        change(&mut wqe);
        let sges = [sge(0, MAX_MSG + 1, false), Sge::default()];
        cases.push((wqe, sges, status::LOC_LEN_ERR, cqe::WRITE));
    }

    let no_reads = SqCtx {
        max_rd_atomic: 0,
        ..ctx(3)
    };
    // a queue pair a case
    for cases in cases.chunks(1 << Q) {
        let mut rig = Rig::new(20, Pauses::NONE);
        for (qpn, (wqe, sges, ..)) in (0..).zip(cases) {
            rig.open(qpn, no_reads, 100);
            rig.post(qpn, quiet(3000), one(3000));
            rig.post_bad(qpn, *wqe, *sges);
            rig.post_bad(qpn, quiet(64), one(64));
            rig.post_bad(qpn, good, one(64));
            rig.ring(qpn);
        }
        rig.run(3000);
        for (qpn, (wqe, _, status, shown)) in (0..).zip(cases) {
            let flushed = status::WR_FLUSH_ERR;
            let expected = completions([(1, *status), (2, flushed), (3, flushed)]);
            assert_eq!(rig.done(qpn), expected, "{wqe:?}");
            let write = u64::from(cqe::WRITE);
            let details = [(u64::from(*shown), 0), (write, 0), (write, 0)];
            assert_eq!(rig.details(qpn), details, "{wqe:?}");
        }
        let mut failed = rig.failed().to_vec();
        failed.sort_unstable();
        assert!(failed.into_iter().eq(0..cases.len() as u64), "each once");
    }
}

/// A WQE takes the slots that are posted, five at most.
#[test]
fn a_wqe_with_more_slots_than_there_are_is_refused() {
    for (posted, slots) in [(1, 2), (3, 4), (3, 5), (4, 5), (5, 6), (5, 255), (6, 6)] {
        let mut rig = rig(Peer::default());
        rig.post(1, quiet(3000), one(3000));
        let long = SendWqe {
            slots,
            ..wqe(opcode::WRITE, 64)
        };
        for _ in 0..posted {
            rig.post_bad(1, long, one(64));
        }
        rig.ring(1);
        rig.run(3000);
        let mut expected = vec![(1, u64::from(status::LOC_QP_OP_ERR))];
        if posted == 6 {
            expected.push((6, u64::from(status::WR_FLUSH_ERR)));
        }
        assert_eq!(rig.done(1), expected, "{posted} of {slots} slots");
    }
}

/// The longest message, and the most a slot holds.
#[test]
fn wqes_at_the_limits_run() {
    let mut rig = rig(Peer::default());
    let inline = SendWqe {
        inline_data: true,
        num_sge: 200,
        ..wqe(opcode::SEND, 32)
    };
    rig.post(1, inline, one(64));
    let empty = SendWqe {
        num_sge: 0,
        ..wqe(opcode::WRITE_IMM, 0)
    };
    rig.post(1, empty, [Sge::default(); 2]);
    // entries without bytes need no region
    rig.post(1, wqe(opcode::SEND_IMM, 0), [sge(0, 0, false); 2]);
    rig.ring(1);
    rig.finish(10_000);
    let done = completions([0, 1, 2].map(|index| (index, status::SUCCESS)));
    assert_eq!(rig.done(1), done);
}

#[test]
fn a_nak_completes_what_came_before_fails_its_message_and_flushes_the_rest() {
    for (syndrome, status) in [
        (0x61, status::REM_INV_REQ_ERR),
        (0x62, status::REM_ACCESS_ERR),
        (0x63, status::REM_OP_ERR),
        // of a reliable datagram; reserved codes; reserved types
        (0x64, status::BAD_RESP_ERR),
        (0x65, status::BAD_RESP_ERR),
        (0x7f, status::BAD_RESP_ERR),
        (0x40, status::BAD_RESP_ERR),
        (0x80, status::BAD_RESP_ERR),
        (0xa1, status::BAD_RESP_ERR),
        (0xe1, status::BAD_RESP_ERR),
    ] {
        // two messages of 3 packets from PSN 100: the third starts at 106
        let peer = Peer {
            refuse: Some((106, syndrome)),
            ..Peer::default()
        };
        let rig = failing(2, peer, 6000);
        let flushed = status::WR_FLUSH_ERR;
        let expected = completions([(2, status), (3, flushed), (4, flushed)]);
        assert_eq!(rig.done(1), expected, "syndrome {syndrome:#x}");
        let codes: Vec<_> = rig.details(1).iter().map(|d| d.1).collect();
        assert_eq!(codes, [syndrome.into(), 0, 0]);
        assert_eq!(rig.failed(), [1]);
    }
}

#[test]
fn retries_run_out() {
    let peer = Peer {
        no_answer: true,
        ..Peer::default()
    };
    let rig = failing(0, peer, 20_000);
    let flushed = status::WR_FLUSH_ERR;
    let expected = [(0, status::RETRY_EXC_ERR), (1, flushed), (2, flushed)];
    assert_eq!(rig.done(1), completions(expected));
    assert_eq!(rig.details(1)[0].1, 0, "no syndrome");
}

#[test]
fn rnr_retries_run_out() {
    let peer = Peer {
        rnr: 1.0,
        ..Peer::default()
    };
    let rig = failing(0, peer, 20_000);
    let flushed = status::WR_FLUSH_ERR;
    let expected = [(0, status::RNR_RETRY_EXC_ERR), (1, flushed), (2, flushed)];
    assert_eq!(rig.done(1), completions(expected));
    assert_eq!(rig.details(1)[0].1, 0x21, "the syndrome");
}

/// As the golden model when the responder of the queue pair fails.
#[test]
fn a_failure_elsewhere_flushes_what_is_out_and_what_waits() {
    let mut rig = rig(Peer::default());
    for _ in 0..2 {
        rig.post(1, wqe(opcode::SEND, 3000), one(3000));
    }
    rig.ring(1);
    rig.run(600);
    let mut expected = completions([0, 1].map(|index| (index, status::SUCCESS))).to_vec();
    assert_eq!(rig.done(1), expected);

    // on the wire and not acknowledged; one asks for no completion
    rig.peer.no_answer = true;
    for signaled in [true, false, true] {
        let wqe = SendWqe {
            signaled,
            ..wqe(opcode::WRITE, 3000)
        };
        rig.post(1, wqe, one(3000));
    }
    rig.ring(1);
    rig.run(200);
    // not read when it happens
    for _ in 0..20 {
        rig.post(1, wqe(opcode::SEND, 10), one(10));
    }
    rig.ring(1);
    rig.fail(1);
    rig.fail(1);
    rig.run(800);
    let flushed = u64::from(status::WR_FLUSH_ERR);
    expected.extend((2..25).map(|index| (index, flushed)));
    assert_eq!(rig.done(1), expected);
    let opcodes: Vec<_> = rig.details(1).iter().map(|d| d.0).collect();
    assert_eq!(opcodes[2..5], [u64::from(cqe::WRITE); 3]);
    assert_eq!(opcodes[5..], [u64::from(cqe::SEND); 20]);

    // posted afterwards; a failure that comes again says nothing
    rig.post(1, wqe(opcode::WRITE, 10), one(10));
    rig.ring(1);
    rig.fail(1);
    rig.run(300);
    expected.push((25, flushed));
    assert_eq!(rig.done(1), expected);
    assert_eq!(rig.failed(), [1]);
}

#[test]
fn a_failure_of_a_queue_pair_in_reset_is_no_failure() {
    let mut rig = rig(Peer::default());
    rig.modify(1, state::RESET, None);
    rig.run(20);
    rig.fail(1);
    rig.run(100);
    rig.modify(1, state::RTS, Some(100));
    rig.post(1, wqe(opcode::WRITE, 64), one(64));
    rig.ring(1);
    rig.finish(5000);
    assert_eq!(rig.done(1), completions([(0, status::SUCCESS)]));
    assert!(rig.failed().is_empty());
}

/// The producer index is the host's: the card accepts it in every state, and no command changes it.
#[test]
fn doorbells_count_in_every_state() {
    let mut rig = rig(Peer::default());
    for now in [state::RESET, state::INIT, state::RTR] {
        rig.modify(1, now, Some(100));
        rig.post(1, wqe(opcode::WRITE, 64), one(64));
        rig.ring(1);
        rig.run(300);
        assert!(rig.done(1).is_empty(), "state {now}");
    }
    rig.modify(1, state::RTS, Some(100));
    rig.finish(5000);
    let done = [0, 1, 2].map(|index| (index, status::SUCCESS));
    assert_eq!(rig.done(1), completions(done));
}

/// In SQD messages that were started come to their end, also if they have to be sent again, and no other starts.
#[test]
fn a_draining_queue_finishes_what_it_began() {
    for loss in [0.0, 0.02] {
        let mut rig = rig(Peer::default());
        rig.open(
            2,
            SqCtx {
                retry_cnt: 7,
                ..ctx(3)
            },
            500,
        );
        rig.peer.loss = loss;
        for _ in 0..10 {
            rig.post(2, wqe(opcode::WRITE, 100_000), one(100_000));
        }
        rig.ring(2);
        rig.run(300);
        rig.modify(2, state::SQD, None);
        rig.run(100_000);
        let drained = rig.done(2).len();
        assert!((1..10).contains(&drained), "{drained} messages completed");
        assert!(rig.done(2).iter().all(|done| done.1 == 0));
        rig.run(10_000);
        assert_eq!(rig.done(2).len(), drained);
        rig.modify(2, state::RTS, None);
        rig.finish(400_000);
        assert_eq!(rig.done(2).len(), 10);
        assert!(rig.failed().is_empty());
    }
}

/// A message that was sent in part, or is being sent again, stands in the outstanding ring: it is flushed from there, and
/// not once more when what was never sent is flushed.
#[test]
fn a_message_sent_in_part_completes_once() {
    const LONG: u32 = 500 * 256;
    let flushed = u64::from(status::WR_FLUSH_ERR);
    // when the failure comes: in parts, going back, gone back
    for cycles in (20..1200).step_by(97) {
        let mut rig = rig(Peer {
            loss: 0.1,
            ..Peer::default()
        });
        let ctx = SqCtx {
            retry_cnt: 7,
            ..ctx(1)
        };
        rig.open(2, ctx, 100);
        for length in [LONG, 256, LONG, 700, LONG] {
            rig.post(2, wqe(opcode::WRITE, length), one(length));
        }
        rig.ring(2);
        rig.run(cycles);
        rig.peer.no_answer = true;
        rig.fail(2);
        rig.run(1500);
        let done = rig.done(2);
        let indices: Vec<_> = done.iter().map(|d| d.0).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4], "failed after {cycles} cycles");
        assert_eq!(done[4].1, flushed);
    }
}
