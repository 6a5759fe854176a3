//! READs, atomics and windows: limits, fences, lost and bad responses.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::random::Pauses;

use super::rig::{Failure, Post, Rig, Wire};
use super::{ctx, read, send};

pub(super) const FLUSHED: u8 = status::WR_FLUSH_ERR;

/// Queue pair 1 with two retries, from PSN 100 on.
pub(super) fn rig(wire: Wire) -> Rig {
    let mut rig = Rig::new(20, Pauses::NONE);
    let ctx = SqCtx {
        retry_cnt: 2,
        ..ctx()
    };
    rig.open(1, ctx, 100);
    rig.wire = wire;
    rig
}

pub(super) fn post_all(rig: &mut Rig, posts: &[Post]) {
    for post in posts {
        rig.post(1, *post);
    }
    rig.ring(1);
}

pub(super) fn good(count: u16) -> Vec<(u16, u8)> {
    (0..count).map(|i| (i, 0)).collect()
}

#[test]
fn a_fence_waits_for_reads_and_atomics() {
    for (fence, parts) in [(false, 4), (true, 2)] {
        let mut rig = rig(Wire {
            delay: 500,
            ..Wire::default()
        });
        let fenced = Post { fence, ..send(100) };
        post_all(&mut rig, &[send(100), read(2000), fenced, send(10)]);
        rig.run(300);
        assert_eq!(rig.qps[1].parts.len(), parts);
        rig.finish(5000);
        assert_eq!(rig.done(1), good(4));
    }
}

#[test]
fn a_fence_waits_for_host_memory() {
    let mut rig = rig(Wire {
        write_delay: 3000,
        ..Wire::default()
    });
    // the second fenced message comes when the READ is complete but for its responses
    post_all(
        &mut rig,
        &[
            read(2000),
            Post {
                fence: true,
                ..send(100)
            },
        ],
    );
    rig.run(1000);
    assert_eq!(rig.done(1), good(1));
    post_all(
        &mut rig,
        &[
            send(10),
            Post {
                fence: true,
                ..send(100)
            },
        ],
    );
    rig.run(1500);
    assert_eq!(rig.qps[1].parts.len(), 1);
    rig.finish(5000);
    assert_eq!(rig.done(1), good(4));
}

#[test]
fn no_more_reads_are_outstanding_than_the_peer_takes() {
    let mut rig = rig(Wire {
        delay: 1000,
        ..Wire::default()
    });
    rig.open(
        1,
        SqCtx {
            max_rd_atomic: 3,
            ..ctx()
        },
        100,
    );
    let mut posts = vec![read(300); 10];
    posts[1].kind = super::Kind::Atomic;
    posts[1].length = 8;
    posts.push(send(5));
    post_all(&mut rig, &posts);
    rig.run(600);
    assert_eq!(rig.qps[1].parts.len(), 3);
    rig.finish(20_000);
    assert_eq!(rig.qps[1].most_open, 3);
    assert_eq!(rig.done(1), good(11));
    let lengths: Vec<_> = rig.qps[1].done.iter().map(|d| d.byte_len).collect();
    assert_eq!(lengths[..3], [300, 8, 300]);
    assert_eq!(lengths[10], 0);
}

#[test]
fn a_window_bounds_what_is_outstanding() {
    for window in [1, 3, 8, 40] {
        let mut rig = rig(Wire {
            delay: 1000,
            ..Wire::default()
        });
        let ctx = SqCtx {
            window,
            timeout: 4,
            ..ctx()
        };
        rig.open(1, ctx, 100);
        post_all(&mut rig, &[send(60 * 256), send(10), send(10)]);
        rig.run(900);
        let granted: u32 = rig.qps[1].parts.iter().map(|part| part.3).sum();
        assert_eq!(granted, u32::from(window));
        rig.finish(200_000);
        assert_eq!(rig.done(1), good(3));
        assert_eq!(rig.counts["local_ack_timeout_err"], 0);
    }
}

#[test]
fn a_read_of_more_than_a_window_goes_alone() {
    let mut rig = rig(Wire {
        delay: 1000,
        ..Wire::default()
    });
    rig.open(1, SqCtx { window: 4, ..ctx() }, 100);
    post_all(&mut rig, &[read(2560), send(10)]);
    rig.run(900);
    assert_eq!(rig.qps[1].parts, [(0, 0, 1, 10)]);
    rig.finish(20_000);
    assert_eq!(rig.done(1), good(2));
}

#[test]
fn byte_len_is_that_of_the_message() {
    let mut rig = rig(Wire::default());
    let lengths = [0, 1, 255, 256, 257, 511, 512, 70_000];
    post_all(&mut rig, &lengths.map(read));
    rig.finish(20_000);
    let done: Vec<_> = rig.qps[1].done.iter().map(|d| d.byte_len).collect();
    assert_eq!(done, lengths);
}

#[test]
fn a_read_goes_on_where_a_response_was_lost() {
    let mut rig = rig(Wire {
        lose: Some(5),
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), read(2560), send(10)]);
    rig.finish(5000);
    // from its fourth response on; the other responses of the flight imply the same once more
    let parts = [(0, 0, 1, 1), (1, 0, 1, 10), (2, 0, 1, 1)];
    assert_eq!(rig.qps[1].parts[..3], parts);
    assert_eq!(rig.qps[1].parts[3..], [(1, 4, 1, 6), (2, 0, 1, 1)]);
    assert_eq!(rig.counts["implied_nak_seq_err"], 1);
    assert_eq!(
        (
            rig.counts["packet_seq_err"],
            rig.counts["local_ack_timeout_err"]
        ),
        (0, 0)
    );
    // of the first SEND, of the last and of the last again: READ responses that are dropped are no acknowledgements
    assert_eq!(rig.counts["rx_acks"], 3);
    assert_eq!(rig.done(1), good(3));
}

#[test]
fn an_acknowledgement_shows_a_lost_response() {
    let mut rig = rig(Wire {
        lose: Some(0),
        ..Wire::default()
    });
    post_all(&mut rig, &[read(100), send(10)]);
    rig.finish(1500);
    assert_eq!(
        (
            rig.counts["implied_nak_seq_err"],
            rig.counts["local_ack_timeout_err"]
        ),
        (1, 0)
    );
    assert_eq!(rig.done(1), good(2));
}

#[test]
fn implied_naks_use_up_the_retries() {
    let mut rig = rig(Wire {
        lose_always: Some(5),
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), read(2560), read(10)]);
    rig.run(20_000);
    let done = [(0, 0), (1, status::RETRY_EXC_ERR), (2, FLUSHED)];
    assert_eq!(rig.done(1), done);
    // one, and two timeouts: late responses of the old flight are no more
    assert_eq!(
        (
            rig.counts["implied_nak_seq_err"],
            rig.counts["local_ack_timeout_err"],
            rig.counts["retry_exceeded_err"]
        ),
        (1, 2, 1)
    );
}

#[test]
fn what_is_sent_again_uses_up_no_retries_before_it_leaves() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), send(10)]);
    while rig.counts["local_ack_timeout_err"] == 0 {
        rig.step();
    }
    // both are granted again, and wait
    rig.stands = true;
    rig.run(30_000);
    assert_eq!(rig.counts["local_ack_timeout_err"], 1);
    rig.wire.no_answer = false;
    rig.stands = false;
    rig.run(30_000);
    assert_eq!(rig.done(1), good(2));
}

/// Two packets that are sent again cannot be read, and the peer had the first of them: the second is read again.
#[test]
fn packets_that_follow_one_that_arrived_are_read_again() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), send(10), send(10)]);
    cannot_be_read(&mut rig, &[101, 102]);
    // nothing answers the third, which is sent until the retries are used up
    let done = [(0, 0), (1, 0), (2, status::RETRY_EXC_ERR)];
    assert_eq!(rig.done(1), done);
}

/// The same within a message.
#[test]
fn a_message_of_which_a_packet_arrived_and_is_not_read_again_is_sent() {
    let mut rig = rig(Wire {
        no_answer: true,
        ..Wire::default()
    });
    post_all(&mut rig, &[send(10), send(3000)]);
    cannot_be_read(&mut rig, &[101]);
    assert_eq!(rig.done(1), [(0, 0), (1, status::RETRY_EXC_ERR)]);
}

/// All packets are granted again and wait; one leaves, `psns` cannot be read, the first of them is acknowledged.
fn cannot_be_read(rig: &mut Rig, psns: &[u32]) {
    while rig.counts["local_ack_timeout_err"] == 0 {
        rig.step();
    }
    rig.stands = true;
    rig.run(1000);
    rig.leave_only(1);
    rig.stands = false;
    for &psn in psns {
        rig.unread(1, psn);
    }
    rig.run(100);
    let ack = rig.answer.item().with("qpn", 1).with("psn", psns[0].into());
    rig.answer.push(ack);
    rig.run(30_000);
}

#[test]
fn data_that_cannot_be_placed_fails_its_message() {
    for (at, code) in [(1, status::LOC_PROT_ERR), (3, status::BAD_RESP_ERR)] {
        let mut rig = rig(Wire {
            spoil: Some((at, code)),
            ..Wire::default()
        });
        rig.hold = true;
        post_all(&mut rig, &[send(10), read(1000), send(10), send(10)]);
        rig.run(600);
        // data may still be on its way to memory
        assert!(rig.done(1).iter().all(|d| d.1 == 0));
        let failure = Failure {
            qpn: 1,
            status: code,
        };
        assert_eq!(rig.failures, [failure]);
        rig.post(1, send(10));
        rig.ring(1);
        rig.run(300);
        assert!(rig.done(1).iter().all(|d| d.1 == 0));
        assert!(rig.down.is_empty());
        rig.hold = false;
        rig.run(600);
        let done = [(0, 0), (1, code), (2, FLUSHED), (3, FLUSHED), (4, FLUSHED)];
        assert_eq!(rig.done(1), done);
        assert_eq!(rig.failures.len(), 1);
        assert_eq!(rig.down[0], 1);
    }
}

#[test]
fn a_bad_response_out_of_the_window_is_a_ghost() {
    let mut rig = rig(Wire::default());
    post_all(&mut rig, &[send(10), send(10)]);
    rig.finish(3000);
    rig.wire.no_answer = true;
    post_all(&mut rig, &[read(100)]);
    rig.run(100);
    let answer = |rig: &mut Rig, psn: u64| {
        let item = rig.answer.item().with("qpn", 1).with("psn", psn);
        let status = status::BAD_RESP_ERR.into();
        rig.answer.push(item.with("status", status));
        rig.run(50);
    };
    for (ghosts, psn) in [(1, 101), (2, 103), (3, 99)] {
        answer(&mut rig, psn);
        assert_eq!(rig.counts["rx_ghost_acks"], ghosts);
    }
    assert!(rig.failures.is_empty());
    answer(&mut rig, 102);
    assert_eq!(rig.done(1)[2], (2, status::BAD_RESP_ERR));
}

#[test]
fn a_nak_fails_a_read() {
    for (syndrome, code) in [
        (0x61, status::REM_INV_REQ_ERR),
        (0x62, status::REM_ACCESS_ERR),
        (0x63, status::REM_OP_ERR),
    ] {
        let mut rig = rig(Wire {
            refuse: Some((4, syndrome)),
            ..Wire::default()
        });
        post_all(&mut rig, &[read(1000), read(1000), send(10)]);
        rig.run(2000);
        assert_eq!(rig.done(1), [(0, 0), (1, code), (2, FLUSHED)]);
        assert_eq!(rig.qps[1].done[1].syndrome, syndrome);
        assert_eq!(rig.counts["remote_errors"], 1);
    }
}

/// Less than half of all PSNs are outstanding.
#[test]
fn a_read_fits_in_the_window() {
    let mut rig = Rig::new(20, Pauses::NONE);
    rig.wire.no_answer = true;
    let most = (1 << 23) - 3;
    let long = read(most * 256);
    for (qpn, second, parts) in [
        (0, read(512), 2),
        (1, read(513), 1),
        (2, send(10), 1),
        (3, read(0), 2),
    ] {
        let ctx = SqCtx {
            timeout: 0,
            ..ctx()
        };
        rig.open(qpn, ctx, 0x12_3456);
        rig.post(qpn, long);
        rig.post(qpn, second);
        rig.ring(qpn);
        rig.run(300);
        assert_eq!(rig.qps[qpn as usize].parts.len(), parts, "{second:?}");
    }
    // a READ of more than 2^13 PSNs does not stop others
    rig.open(4, ctx(), 0);
    rig.post(4, read(256 * 20_000));
    rig.post(4, send(10));
    rig.ring(4);
    rig.run(300);
    assert_eq!(rig.qps[4].parts.len(), 2);
}
