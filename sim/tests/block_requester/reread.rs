//! A message that is longer than its turn, or that is sent again, has its WQE read again. It may fail then, or say something
//! else: nothing more of it is sent, it fails once it is the oldest, and no other queue pair notices.
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{SqCtx, qp_type};
use ferroce_proto::abi::wqe::{SendWqe, opcode};
use ferroce_sim::random::Pauses;

use super::bench::{Peer, Rig, sge};
use super::{ctx, one, wqe};

/// Packets of a turn at the path MTU of 1024 bytes.
const QUANTUM: usize = 64;
/// A message of 100 packets.
const LONG: u32 = 100 * 1024;

fn rig(ctx: SqCtx) -> Rig {
    let mut rig = Rig::new(20, Pauses::NONE);
    rig.open(1, ctx, 100);
    rig
}

fn pairs(of: &[(u64, u8)]) -> Vec<(u64, u64)> {
    of.iter()
        .map(|(index, status)| (*index, (*status).into()))
        .collect()
}

#[test]
fn a_region_that_goes_between_two_turns_fails_the_message() {
    for class in [qp_type::RC, qp_type::UC] {
        let mut rig = rig(SqCtx {
            qp_type: class,
            ..ctx(3)
        });
        rig.post(1, wqe(opcode::WRITE, LONG), one(LONG));
        rig.post_bad(1, wqe(opcode::WRITE, 64), one(64));
        rig.ring(1);
        rig.run_until_sent(1, 8);
        rig.deregister();
        rig.run(20_000);
        assert!(rig.sent(1) <= QUANTUM, "nothing behind the turn");
        let done = [(0, status::LOC_PROT_ERR), (1, status::WR_FLUSH_ERR)];
        assert_eq!(rig.done(1), pairs(&done));
        assert_eq!(rig.failed(), [1]);
    }
}

/// What stands in front of it completes first, however late its acknowledgement is.
#[test]
fn it_fails_in_its_turn() {
    let mut rig = rig(SqCtx {
        timeout: 4,
        ..ctx(3)
    });
    rig.peer.delay = 3000;
    for _ in 0..3 {
        rig.post(1, wqe(opcode::SEND, 3000), one(3000));
    }
    rig.post(1, wqe(opcode::WRITE, LONG), one(LONG));
    rig.ring(1);
    rig.run_until_sent(1, 9 + 8);
    rig.deregister();
    rig.run(2000);
    assert_eq!(rig.done(1), []);
    rig.run(20_000);
    let good = |index| (index, status::SUCCESS);
    let done = [good(0), good(1), good(2), (3, status::LOC_PROT_ERR)];
    assert_eq!(rig.done(1), pairs(&done));
}

#[test]
fn a_region_that_goes_before_the_message_is_sent_again_fails_it() {
    let mut rig = rig(ctx(3));
    rig.peer = Peer {
        no_answer: true,
        ..Peer::default()
    };
    rig.post(1, wqe(opcode::SEND, 3000), one(3000));
    rig.ring(1);
    rig.run_until_sent(1, 3);
    rig.deregister();
    rig.run(20_000);
    assert_eq!(rig.sent(1), 3);
    assert_eq!(rig.done(1), pairs(&[(0, status::LOC_PROT_ERR)]));
}

/// The ring is the owner's memory. Another queue pair has its own packets and completions as if nothing had happened.
#[test]
fn a_wqe_that_is_rewritten_ends_its_own_queue_pair_alone() {
    let long = wqe(opcode::WRITE, LONG);
    let part = |length| SendWqe { length, ..long };
    let rewritten = [
        // as many packets as were sent, fewer, one, no list, less list than length, no WQE at all
        (part(64 * 1024), one(64 * 1024)),
        (part(10 * 1024), one(10 * 1024)),
        (part(1), one(1)),
        (SendWqe { num_sge: 0, ..long }, one(LONG)),
        (long, one(70 * 1024 + 100)),
        (SendWqe::default(), [sge(0, 0, true); 2]),
        (
            SendWqe {
                opcode: 0xff,
                ..long
            },
            one(LONG),
        ),
        // a key that is not its own
        (long, [sge(0x6000_0000, LONG, false), sge(0, 0, true)]),
    ];
    for (wqe_then, sges) in rewritten {
        let mut rig = rig(ctx(3));
        rig.open(2, ctx(3), 500);
        rig.post(1, long, one(LONG));
        rig.rewrite(1, 0, wqe_then, sges);
        rig.ring(1);
        rig.run_until_sent(1, 8);
        for length in [256, 512, 256, 5000] {
            rig.post(2, wqe(opcode::SEND, length), one(length));
        }
        rig.ring(2);
        rig.run(10_000);
        assert!(rig.sent(1) <= QUANTUM, "{wqe_then:?}");
        assert_eq!(rig.done(1).len(), 1, "{wqe_then:?}");
        assert_ne!(rig.done(1)[0].1, 0, "{wqe_then:?}");
        let good = [0, 1, 2, 3].map(|index| (index, status::SUCCESS));
        assert_eq!(rig.done(2), pairs(&good), "{wqe_then:?}");
        assert_eq!(rig.failed(), [1]);
    }
}
