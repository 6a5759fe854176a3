//! Completions wait until the payload of what was sent again, or is flushed, is read.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::random::Pauses;

use super::bench::{Peer, Q, Rig, mtu_bytes};
use super::failures::rig;
use super::{completions, ctx, one, opened, run_random, wqe};

#[test]
fn nothing_completes_before_all_of_it_is_read() {
    // acknowledgements come when packets were sent again, and reads take their time
    for (delay, read_delay) in [(2500, 400), (4000, 900), (6000, 3000)] {
        let peer = Peer {
            delay,
            loss: 0.005,
            ..Peer::default()
        };
        let mut rig = opened(peer, Pauses::new(0.2, 30), 3);
        rig.read_delay = read_delay;
        run_random(&mut rig, 200, 20 * mtu_bytes(3), 4_000_000);
    }
}

#[test]
fn a_flush_does_not_hold_up_the_reads_that_completions_wait_for() {
    let mut rig = Rig::new(20, Pauses::NONE);
    // packets sent again are acknowledged long before they are read
    rig.peer.delay = 4000;
    rig.read_delay = 3000;
    let queues = 0..1 << Q;
    let (steady, broken) = (0..4, 4..1 << Q);
    for qpn in queues.clone() {
        rig.open(qpn, ctx(3), 0xff_ff00);
    }
    for _ in 0..40 {
        for qpn in steady.clone() {
            rig.post(qpn, wqe(opcode::WRITE, 2000), one(2000));
        }
        for qpn in broken.clone() {
            rig.post(qpn, wqe(opcode::WRITE, 64), one(64));
        }
    }
    queues.clone().for_each(|qpn| rig.ring(qpn));
    rig.run(9_000);
    for qpn in broken.clone() {
        for _ in 0..60 {
            rig.post(qpn, wqe(opcode::WRITE, 64), one(64));
        }
        rig.ring(qpn);
        rig.fail(qpn);
    }
    rig.run(300_000);
    for qpn in steady {
        let good: Vec<_> = (0..40).map(|index| (index, 0)).collect();
        assert_eq!(rig.done(qpn), good, "queue pair {qpn}");
    }
    for qpn in broken {
        let indices = rig.done(qpn).iter().map(|done| done.0);
        assert!(indices.eq(0..100), "queue pair {qpn}: {:?}", rig.done(qpn));
        let (_, status) = rig.done(qpn)[99];
        assert_eq!(status, u64::from(status::WR_FLUSH_ERR), "queue pair {qpn}");
    }
}

/// Packets are acknowledged when they were sent again: what was read of them long ago is being read once more.
#[test]
fn an_acknowledgement_waits_for_what_was_sent_again() {
    let mut rig = rig(Peer {
        no_answer: true,
        ..Peer::default()
    });
    rig.read_delay = 100;
    for _ in 0..3 {
        rig.post(1, wqe(opcode::WRITE, 3000), one(3000));
    }
    rig.ring(1);
    rig.run(600);
    assert_eq!(rig.sent(1), 9);
    // until the timeout
    rig.read_delay = 3000;
    rig.run_until_sent(1, 2 * 9);
    rig.run(50);
    rig.answer(1, 108, 0);
    rig.run(1500);
    assert_eq!(rig.done(1), [], "nothing of it is read");
    rig.run(2000);
    let done = [0, 1, 2].map(|index| (index, status::SUCCESS));
    assert_eq!(rig.done(1), completions(done));
}
