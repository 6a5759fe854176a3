//! UC and UD: what was sent is complete, nothing is timed, and a local error is that of the send queue alone.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{SqCtx, qp_type, state};
use ferroce_sim::random::Pauses;

use super::directed::post_all;
use super::rig::{Failure, Kind, Post, Rig};
use super::{ctx, send};

const FLUSHED: u8 = status::WR_FLUSH_ERR;

fn rig(qp_type: u8, delay: u64) -> Rig {
    let mut rig = Rig::new(20, Pauses::NONE);
    rig.open(1, SqCtx { qp_type, ..ctx() }, 0xff_fffd);
    rig.wire.delay = delay;
    rig
}

/// Queue pair 1 goes from SQE to RTS, and sends what is posted then, `next` PSNs behind its first one.
fn leave_sqe(rig: &mut Rig, next: u32, post: Post) {
    rig.qps[1].next = next;
    rig.modify(1, state::RTS, None);
    rig.run(30);
    rig.post(1, post);
    rig.ring(1);
    rig.run(500);
}

fn bad() -> Post {
    Post {
        bad: status::LOC_PROT_ERR,
        ..send(10)
    }
}

/// A request of queue pair 1 fails, with so many posted behind it; runs until it completes.
fn fail(rig: &mut Rig, later: usize) {
    rig.post(1, bad());
    for _ in 0..later {
        rig.post(1, send(10));
    }
    rig.ring(1);
    while rig.done(1).is_empty() {
        rig.run(1);
    }
}

#[test]
fn messages_complete_when_they_are_sent() {
    for qp_type in [qp_type::UC, qp_type::UD] {
        let mut rig = rig(qp_type, 10_000);
        for n in 0..40 {
            let quiet = n % 3 == 1;
            rig.post(1, Post { quiet, ..send(100) });
        }
        rig.ring(1);
        rig.run(5000);
        assert!(rig.done(1).is_empty());
        rig.finish(20_000);
        assert_eq!(rig.done(1).len(), 27);
        assert!(
            rig.counts.values().all(|&n| n == 0),
            "nothing is acknowledged or timed"
        );
    }
}

#[test]
fn a_long_message_needs_no_window() {
    let mut rig = rig(qp_type::UC, 100);
    rig.post(1, send(256 * 30_000));
    rig.post(1, send(256));
    rig.ring(1);
    rig.finish(100_000);
    assert_eq!(rig.done(1), [(0, 0), (1, 0)]);
}

#[test]
fn a_local_error_is_that_of_the_send_queue_alone() {
    let mut rig = rig(qp_type::UC, 100);
    for post in [send(10), send(600), bad(), send(10)] {
        rig.post(1, post);
    }
    rig.ring(1);
    rig.run(1000);
    let mut done = vec![(0, 0), (1, 0), (2, status::LOC_PROT_ERR), (3, FLUSHED)];
    assert_eq!(rig.done(1), done);
    let failure = Failure {
        qpn: 1,
        status: status::LOC_PROT_ERR,
    };
    assert_eq!(rig.failures, [failure]);
    // in SQE it flushes
    rig.post(1, send(10));
    rig.ring(1);
    rig.run(300);
    done.push((4, FLUSHED));
    assert_eq!(rig.done(1), done);
    // and goes on with the PSN where it stopped
    leave_sqe(&mut rig, 4, send(600));
    done.push((5, 0));
    assert_eq!(rig.done(1), done);
    assert_eq!(rig.failures.len(), 1);
    assert!(rig.down.is_empty(), "the responder goes on");
}

/// Completions of others hold up the report that nothing of the queue pair is left.
#[test]
fn a_late_report_does_not_take_back_what_was_flushed() {
    for others in 20..28 {
        let mut rig = rig(qp_type::UD, 60);
        let quick = SqCtx {
            qp_type: qp_type::UC,
            ..ctx()
        };
        rig.open(2, quick, 0);
        rig.hold = true;
        rig.post(1, bad());
        rig.ring(1);
        rig.run(200);
        for _ in 0..others {
            rig.post(2, send(10));
        }
        rig.ring(2);
        rig.post(1, send(10));
        rig.ring(1);
        rig.run(60 + 2 * others);
        rig.hold = false;
        rig.run(500);
        let mut done = vec![(0, status::LOC_PROT_ERR), (1, FLUSHED)];
        assert_eq!(rig.done(1), done, "{others}");
        leave_sqe(&mut rig, 0, send(10));
        done.push((2, 0));
        assert_eq!(rig.done(1), done, "{others}");
    }
}

#[test]
fn payload_that_cannot_be_read_fails_its_message() {
    let mut rig = rig(qp_type::UD, 1000);
    rig.post(1, send(10));
    rig.post(1, send(10));
    rig.ring(1);
    rig.run(200);
    // of the second, before the first has left
    rig.unread(1, 0xff_fffe);
    rig.unread(1, 0xff_fffe);
    rig.run(300);
    assert_eq!(rig.done(1), []);
    rig.run(2000);
    assert_eq!(rig.done(1), [(0, 0), (1, status::GENERAL_ERR)]);
    let failure = Failure {
        qpn: 1,
        status: status::GENERAL_ERR,
    };
    assert_eq!(rig.failures, [failure]);
    rig.run(2000);
    assert!(
        rig.counts.values().all(|&n| n == 0),
        "word of packets of before is nothing"
    );
    // the responder fails: now all of the queue pair
    assert!(rig.down.is_empty());
    rig.fail(1);
    rig.run(300);
    assert_eq!(rig.failures.len(), 2);
    assert_eq!(rig.down, [1]);
}

#[test]
fn a_failure_of_the_responder_is_that_of_the_queue_pair() {
    let mut rig = rig(qp_type::UC, 1000);
    rig.post(1, send(10));
    rig.ring(1);
    rig.run(100);
    rig.fail(1);
    rig.run(300);
    assert_eq!(rig.done(1), [(0, FLUSHED)]);
    assert_eq!(rig.down, [1]);
}

#[test]
fn a_drained_queue_is_reported() {
    let mut rig = rig(qp_type::UC, 500);
    rig.post(1, send(10));
    rig.ring(1);
    rig.run(100);
    rig.modify(1, state::SQD, None);
    rig.run(200);
    assert!(rig.drained.is_empty());
    rig.run(500);
    assert_eq!(rig.drained, [1]);
}

#[test]
fn wqes_after_an_error_are_flushed_although_the_host_goes_on() {
    for qp_type in [qp_type::UC, qp_type::UD] {
        // WQEs are read slowly
        let mut rig = Rig::new(250, Pauses::NONE);
        rig.open(1, SqCtx { qp_type, ..ctx() }, 100);
        fail(&mut rig, 20);
        rig.run(100);
        assert_eq!(rig.done(1).len(), 1, "the others are still to be read");
        rig.modify(1, state::RTS, None);
        rig.run(30);
        // what is flushed takes no PSN
        rig.qps[1].next = 0;
        rig.post(1, send(10));
        rig.ring(1);
        rig.run(20_000);
        let mut done = vec![(0, status::LOC_PROT_ERR)];
        done.extend((1..21).map(|i| (i, FLUSHED)));
        done.push((21, 0));
        assert_eq!(rig.done(1), done);
    }
}

#[test]
fn what_failed_is_not_revived() {
    let mut rig = rig(qp_type::UC, 100);
    rig.hold = true;
    for _ in 0..2 {
        rig.post(1, send(10));
    }
    rig.ring(1);
    rig.run(40);
    rig.unread(1, 0xff_fffe);
    rig.run(400);
    assert_eq!(rig.failures.len(), 1);
    rig.modify(1, state::SQD, None);
    rig.hold = false;
    rig.run(300);
    rig.modify(1, state::RTS, None);
    rig.run(300);
    assert_eq!(rig.done(1), [(0, 0), (1, status::GENERAL_ERR)]);
}

/// A failure while a bind is executed is complete, and reported once, after the completion of the bind.
#[test]
fn a_failure_waits_for_what_is_executed() {
    for qp_type in [qp_type::RC, qp_type::UC] {
        for by_command in [false, true] {
            let mut rig = rig(qp_type, 100);
            let kind = Kind::Bind;
            rig.post(1, Post { kind, ..send(0) });
            rig.post(1, send(10));
            rig.ring(1);
            rig.run(300);
            assert_eq!(rig.executing, [(1, 0)]);
            match by_command {
                false => rig.fail(1),
                true => rig.modify(1, state::ERR, None),
            }
            rig.run(1000);
            assert_eq!((rig.done(1), &rig.down), (vec![], &vec![]));
            assert!(rig.walks < 3, "{} walks", rig.walks);
            rig.executed();
            rig.run(300);
            assert_eq!(rig.done(1), [(0, 0), (1, FLUSHED)]);
            assert_eq!(rig.down, [1]);
        }
    }
}

/// A failure while a send queue goes on behind another one stays, whenever it comes.
#[test]
fn a_failure_before_it_goes_on_stays() {
    for (delay, gap) in [0, 20, 40, 80]
        .into_iter()
        .flat_map(|d| [0, 30, 60, 100, 1000].map(|g| (d, g)))
    {
        let mut rig = rig(qp_type::UD, 10);
        let mut posts = [send(10); 7];
        posts[0] = bad();
        rig.hold = true;
        post_all(&mut rig, &posts);
        rig.run(200);
        rig.modify(1, state::RTS, None);
        rig.run(delay);
        rig.hold = false;
        rig.run(gap);
        rig.fail(1);
        rig.run(500);
        let before = rig.done(1).len();
        for n in 1..=2 {
            post_all(&mut rig, &[send(10)]);
            rig.run(500);
            let done = rig.done(1);
            let last = done.last().map(|&(_, status)| status);
            assert_eq!(
                (done.len(), last),
                (before + n, Some(FLUSHED)),
                "{delay}, {gap}"
            );
        }
    }
}

/// Nothing of what was flushed is outstanding when a send queue goes on: what has no packet is complete at once.
#[test]
fn what_was_flushed_is_not_waited_for() {
    for kind in [
        bad(),
        Post {
            kind: Kind::Bind,
            ..send(0)
        },
    ] {
        let mut rig = rig(qp_type::UC, 100);
        post_all(&mut rig, &[send(600)]);
        rig.run(60);
        rig.unread(1, 0xff_fffd);
        rig.run(1000);
        assert_eq!(rig.done(1), [(0, status::GENERAL_ERR)]);
        rig.qps[1].next = 3;
        rig.modify(1, state::RTS, None);
        rig.run(100);
        post_all(&mut rig, &[kind]);
        rig.run(300);
        if !rig.executing.is_empty() {
            rig.executed();
        }
        rig.run(1000);
        assert_eq!(rig.done(1)[1..], [(1, kind.bad)]);
    }
}

#[test]
fn a_command_to_sqe_flushes_too() {
    let mut rig = rig(qp_type::UC, 1000);
    post_all(&mut rig, &[send(10), send(10)]);
    rig.run(300);
    rig.modify(1, state::SQE, None);
    rig.run(1500);
    assert_eq!(rig.done(1), [(0, FLUSHED), (1, FLUSHED)]);
    rig.modify(1, state::RTS, None);
    rig.run(100);
    post_all(&mut rig, &[send(10)]);
    rig.run(1500);
    assert_eq!(rig.done(1)[2..], [(2, 0)]);
}

/// SQD while SQE is left: the event comes behind all that is flushed, whatever comes of the host then, and if nothing does.
#[test]
fn sqd_while_sqe_is_left_needs_no_other_event() {
    for wait in (0..60).step_by(7) {
        let mut rig = rig(qp_type::UC, 100);
        fail(&mut rig, 11);
        // the failure itself comes behind its completion
        rig.run(10 + wait);
        rig.modify(1, state::RTS, None);
        rig.modify(1, state::SQD, None);
        while rig.drained.is_empty() {
            rig.run(1);
            assert!(
                rig.bench.cycle() < 20_000,
                "no SQ_DRAINED, {wait}: {:?}",
                rig.done(1)
            );
        }
        assert_eq!(rig.done(1).len(), 12, "{wait}");
    }
}
