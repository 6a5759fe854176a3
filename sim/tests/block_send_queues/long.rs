//! WQEs of several slots, in rings of every size.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::random::Pauses;

use super::rig::{Post, Rig};
use super::{ctx, send};

fn of_slots(slots: u8) -> Post {
    Post { slots, ..send(10) }
}

#[test]
fn wqes_wrap_around_small_rings() {
    for sq_log in 0..5 {
        let mut rig = Rig::new(30, Pauses::NONE);
        rig.open(2, SqCtx { sq_log, ..ctx() }, 5);
        let most = 5.min(1 << sq_log);
        for n in 0..60 {
            let slots = 1 + n % most;
            while rig.room(2) < slots.into() {
                rig.step();
            }
            rig.post(2, of_slots(slots));
            rig.ring(2);
        }
        rig.finish(50_000);
        assert_eq!(rig.done(2).len(), 60, "ring of 2^{sq_log}");
        assert!(rig.done(2).iter().all(|d| d.1 == 0));
    }
}

#[test]
fn a_wqe_cut_by_the_end_of_a_grant_is_fetched_again() {
    let mut rig = Rig::new(30, Pauses::NONE);
    for qpn in [2, 3] {
        rig.open(qpn, ctx(), 5);
        for _ in 0..30 {
            rig.post(qpn, of_slots(5));
        }
        rig.ring(qpn);
    }
    rig.finish(20_000);
    assert!(rig.refetches > 0);
    for qpn in [2, 3] {
        let indices: Vec<_> = rig.done(qpn).iter().map(|d| d.0).collect();
        assert!(indices.into_iter().eq((0..150).step_by(5)));
    }
}

#[test]
fn a_wqe_that_was_not_posted_whole_is_refused() {
    let mut rig = Rig::new(30, Pauses::NONE);
    rig.open(2, ctx(), 5);
    rig.post(2, of_slots(2));
    rig.post(2, of_slots(5));
    rig.ring_at(2, 5);
    rig.run(2000);
    assert_eq!(rig.done(2), [(0, 0), (2, status::LOC_QP_OP_ERR)]);
}

#[test]
fn long_wqes_that_were_not_sent_are_flushed() {
    let mut rig = Rig::new(30, Pauses::NONE);
    rig.open(2, ctx(), 5);
    rig.wire.no_answer = true;
    for n in 0..20 {
        rig.post(2, of_slots(1 + n % 5));
    }
    rig.ring(2);
    rig.run(45);
    rig.fail(2);
    rig.run(3000);
    let indices: Vec<_> = rig.done(2).iter().map(|d| d.0).collect();
    let mut at = 0;
    for (n, index) in (0..20).zip(indices) {
        assert_eq!(index, at);
        at += 1 + n % 5;
    }
    assert_eq!(rig.done(2).len(), 20);
    assert!(rig.done(2).iter().all(|d| d.1 == status::WR_FLUSH_ERR));
}
