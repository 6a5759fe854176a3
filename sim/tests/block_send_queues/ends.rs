//! Queue pairs that fail, are drained, or end.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{SqCtx, qp_type, state};

use super::directed::{FLUSHED, good, post_all, rig};
use super::rig::{Post, Wire};
use super::{ctx, read, send};

#[test]
fn a_command_to_err_flushes_when_nothing_is_on_its_way() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    rig.hold = true;
    post_all(&mut rig, &[read(1000), send(10), read(10)]);
    rig.run(100);
    rig.modify(1, state::ERR, None);
    rig.run(5000);
    assert!(rig.done(1).is_empty());
    rig.hold = false;
    rig.run(300);
    assert_eq!(rig.done(1), [(0, FLUSHED), (1, FLUSHED), (2, FLUSHED)]);
    assert!(rig.failures.is_empty(), "the driver knows");
    assert_eq!(
        rig.counts["local_ack_timeout_err"], 0,
        "the timer was stopped"
    );
}

/// Queue pairs end when they are acknowledged, and completions of another hold up theirs.
#[test]
fn a_message_that_succeeded_has_no_syndrome() {
    let mut rig = rig(Wire::default());
    let other = SqCtx {
        qp_type: qp_type::UC,
        ..ctx()
    };
    rig.open(2, other, 0);
    let mut succeeded = 0;
    for (qpn, cycles) in (3..16).cycle().zip((100..260).step_by(3)) {
        rig.open(qpn, ctx(), 100);
        rig.post(qpn, send(10));
        for _ in 0..24 {
            rig.post(2, send(10));
        }
        rig.ring(qpn);
        rig.ring(2);
        rig.run(cycles);
        rig.modify(qpn, state::ERR, None);
        rig.run(600);
        for done in rig.qps[qpn as usize]
            .done
            .iter()
            .filter(|done| done.status == 0)
        {
            assert_eq!(done.syndrome, 0, "{cycles}");
            succeeded += 1;
        }
    }
    assert!(succeeded > 0);
}

/// The syndrome of a completion is that of the NAK behind its failure, else 0: retries that are used up have none.
#[test]
fn retries_that_are_used_up_have_no_syndrome() {
    let ctx = SqCtx {
        retry_cnt: 0,
        ..ctx()
    };
    let mut rig = rig(Wire::default());
    rig.open(1, ctx, 100);
    post_all(&mut rig, &[send(10)]);
    rig.finish(3000);
    // behind an acknowledgement, which has a syndrome too
    rig.wire.no_answer = true;
    post_all(&mut rig, &[send(10)]);
    rig.finish(5000);
    assert_eq!(rig.done(1), [(0, 0), (1, status::RETRY_EXC_ERR)]);
    assert_eq!(rig.qps[1].done[1].syndrome, 0);
    // and behind a life that ended with a NAK
    rig.wire = Wire {
        refuse: Some((0, 0x62)),
        ..Wire::default()
    };
    rig.reopen(1, ctx, 200);
    post_all(&mut rig, &[send(10)]);
    rig.finish(3000);
    assert_eq!(rig.done(1), [(0, status::REM_ACCESS_ERR)]);
    assert_eq!(rig.qps[1].done[0].syndrome, 0x62);
    rig.wire.no_answer = true;
    rig.reopen(1, ctx, 300);
    post_all(&mut rig, &[send(10)]);
    rig.finish(5000);
    assert_eq!(rig.done(1), [(0, status::RETRY_EXC_ERR)]);
    assert_eq!(rig.qps[1].done[0].syndrome, 0);
}

#[test]
fn the_cause_is_kept_until_the_flush() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    rig.hold = true;
    post_all(&mut rig, &[read(1000), send(10)]);
    rig.run(100);
    rig.unread(1, 100);
    rig.run(50);
    rig.modify(1, state::ERR, None);
    rig.run(50);
    rig.hold = false;
    rig.run(300);
    assert_eq!(rig.done(1), [(0, status::GENERAL_ERR), (1, FLUSHED)]);
    assert_eq!(rig.failures.len(), 1);
}

#[test]
fn the_cause_is_kept_whatever_command_comes_before_the_flush() {
    for state in [state::SQD, state::RTS] {
        let mut rig = rig(Wire {
            refuse: Some((0, 0x62)),
            ..Wire::default()
        });
        rig.hold = true;
        post_all(&mut rig, &[send(10), send(10)]);
        rig.run(600);
        assert_eq!(rig.failures.len(), 1);
        rig.modify(1, state, None);
        rig.run(50);
        rig.hold = false;
        rig.run(300);
        let done = [(0, status::REM_ACCESS_ERR), (1, FLUSHED)];
        assert_eq!(rig.done(1), done);
        assert_eq!(rig.down, [1]);
    }
}

#[test]
fn a_drained_queue_is_reported_once() {
    let mut rig = rig(Wire {
        delay: 400,
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), read(1000)]);
    rig.run(200);
    rig.modify(1, state::SQD, None);
    rig.run(100);
    assert!(rig.drained.is_empty());
    rig.run(1000);
    assert_eq!(rig.drained, [1]);
    assert_eq!(rig.done(1), good(2));
    post_all(&mut rig, &[send(10)]);
    rig.run(500);
    assert_eq!((rig.drained.len(), rig.done(1).len()), (1, 2));
    // nothing is outstanding, and it is entered again
    rig.modify(1, state::SQD, None);
    rig.run(100);
    assert_eq!(rig.drained, [1, 1]);
    rig.modify(1, state::RTS, None);
    rig.finish(3000);
    assert_eq!(rig.drained, [1, 1]);
}

#[test]
fn a_wqe_that_cannot_run_waits_for_its_turn_only() {
    let mut rig = rig(Wire::default());
    let bad = Post {
        bad: status::LOC_QP_OP_ERR,
        fence: true,
        ..read(100)
    };
    post_all(&mut rig, &[read(3000), bad, read(10)]);
    rig.run(3000);
    let done = [(0, 0), (1, status::LOC_QP_OP_ERR), (2, FLUSHED)];
    assert_eq!(rig.done(1), done);
    assert_eq!(rig.failures[0].status, status::LOC_QP_OP_ERR);
}

#[test]
fn a_queue_pair_in_error_without_an_image_reads_nothing() {
    let mut rig = rig(Wire::default());
    post_all(&mut rig, &[send(10)]);
    rig.finish(5000);
    rig.modify(1, state::RESET, Some(0));
    rig.run(100);
    // its number has another owner now, which fails before it has a ring
    rig.modify(1, state::INIT, None);
    rig.modify(1, state::ERR, None);
    rig.run(100);
    let before = rig.done(1).len();
    rig.ring(1);
    rig.run(1000);
    assert_eq!(rig.done(1).len(), before, "nothing of it is known");
}

#[test]
fn a_queue_pair_in_error_begins_no_new_round() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    rig.hold = true;
    post_all(&mut rig, &[send(10)]);
    rig.run(100);
    // what was granted in an earlier round would be sent when that one comes back: they have 2 bits
    let rounds: Vec<_> = (0..5)
        .map(|_| {
            rig.modify(1, state::ERR, None);
            while rig.output("recall_valid") == 0 {
                rig.step();
            }
            let round = rig.output("recall.round");
            rig.run(10);
            round
        })
        .collect();
    assert_eq!(rounds, [rounds[0]; 5]);
    rig.hold = false;
    rig.run(300);
    assert_eq!(rig.done(1), [(0, FLUSHED)]);
}

/// The PSNs of a message that is as long as can be span half of all.
#[test]
fn the_longest_message_is_flushed_too() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    post_all(&mut rig, &[send(64), send(1 << 31)]);
    rig.run(2000);
    rig.modify(1, state::ERR, None);
    rig.run(30_000);
    assert_eq!(rig.done(1), [(0, FLUSHED), (1, FLUSHED)]);
}

/// A message that was sent in part completes with what was sent: its slot is the host's then, and only what stands behind it
/// is read to be flushed.
#[test]
fn a_message_sent_in_part_is_not_read_again_to_be_flushed() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    let ctx = SqCtx {
        window: 4,
        timeout: 0,
        ..ctx()
    };
    rig.open(1, ctx, 100);
    post_all(&mut rig, &[send(2560), send(10), send(10)]);
    rig.run(900);
    let granted: u32 = rig.qps[1].parts.iter().map(|part| part.3).sum();
    assert_eq!(granted, 4);
    let before = rig.places_read(1).len();
    rig.modify(1, state::ERR, None);
    rig.run(600);
    assert_eq!(rig.done(1), [(0, FLUSHED), (1, FLUSHED), (2, FLUSHED)]);
    assert_eq!(rig.places_read(1)[before..], [1, 2]);
}

/// Each command to SQD has its event, however many wait behind completions that do not leave.
#[test]
fn each_command_to_sqd_is_reported() {
    const COMMANDS: usize = 120;
    let mut rig = rig(Wire::default());
    (2..4).for_each(|qpn| rig.open(qpn, ctx(), 100));
    rig.stuck = true;
    post_all(&mut rig, &[send(10); 40]);
    rig.run(100);
    rig.modify(1, state::ERR, None);
    rig.run(500);
    for n in 0..COMMANDS {
        rig.modify(2 + n as u64 % 2, state::SQD, None);
    }
    rig.run(1000);
    assert!(rig.drained.is_empty(), "completions stand in front");
    rig.stuck = false;
    rig.finish(3000);
    assert_eq!(rig.drained.len(), COMMANDS);
}
