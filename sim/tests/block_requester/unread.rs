//! Packets whose payload could not be read: each fails its message when those before are acknowledged.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::opcode;

use super::bench::{Peer, Rig};
use super::failures::rig;
use super::{completions, one, wqe};

/// Three messages of three packets, of PSN 100, 103 and 106 on, none acknowledged.
fn three_messages() -> Rig {
    let mut rig = rig(Peer {
        no_answer: true,
        ..Peer::default()
    });
    for _ in 0..3 {
        rig.post(1, wqe(opcode::WRITE, 3000), one(3000));
    }
    rig.ring(1);
    rig.run(200);
    rig
}

#[test]
fn a_packet_that_cannot_be_read_fails_its_message_after_those_before() {
    let (failed, flushed) = (status::GENERAL_ERR, status::WR_FLUSH_ERR);
    // what the peer says: an ACK of the first message, a NAK for the packet that is missing
    for (psn, syndrome) in [(102, 0), (104, 0x60)] {
        let mut rig = three_messages();
        rig.unread(1, 106, 1);
        rig.unread(1, 104, 1);
        rig.run(300);
        assert_eq!(rig.done(1), []);
        assert!(rig.failed().is_empty());
        rig.answer(1, psn, syndrome);
        rig.run(300);
        let expected = [(0, status::SUCCESS), (1, failed), (2, flushed)];
        assert_eq!(rig.done(1), completions(expected));
        assert_eq!(rig.failed(), [1]);
    }
    let mut rig = three_messages();
    rig.unread(1, 101, 1);
    rig.run(300);
    let expected = [(0, failed), (1, flushed), (2, flushed)];
    assert_eq!(rig.done(1), completions(expected));
}

/// Of an earlier life of the queue pair, acknowledged meanwhile, or sent again and read.
#[test]
fn a_packet_that_cannot_be_read_and_is_not_missed() {
    for (psn, incarnation) in [(101, 0), (99, 1), (109, 1)] {
        let mut rig = three_messages();
        rig.unread(1, psn, incarnation);
        rig.run(300);
        rig.answer(1, 108, 0);
        rig.run(300);
        let done = [0, 1, 2].map(|index| (index, status::SUCCESS));
        assert_eq!(rig.done(1), completions(done), "PSN {psn}");
    }
    // a NAK for an earlier packet has it sent again
    let mut rig = three_messages();
    rig.unread(1, 107, 1);
    rig.run(300);
    rig.peer.no_answer = false;
    rig.answer(1, 100, 0x60);
    rig.run(3000);
    let done = [0, 1, 2].map(|index| (index, status::SUCCESS));
    assert_eq!(rig.done(1), completions(done));
    // it was sent before, and arrived; what is posted now is sent
    let mut rig = three_messages();
    rig.unread(1, 104, 1);
    rig.run(300);
    rig.post(1, wqe(opcode::WRITE, 64), one(64));
    rig.ring(1);
    rig.run(300);
    assert_eq!(rig.sent(1), 9);
    rig.answer(1, 108, 0);
    rig.run(300);
    assert_eq!(rig.sent(1), 10);
    rig.answer(1, 109, 0);
    rig.run(300);
    let done = [0, 1, 2, 3].map(|index| (index, status::SUCCESS));
    assert_eq!(rig.done(1), completions(done));
    assert!(rig.failed().is_empty());
}

/// The acknowledgement of its message comes in any cycle behind the report: the message fails, or it and all others succeed.
#[test]
fn a_packet_that_cannot_be_read_is_acknowledged_meanwhile() {
    let (failed, flushed) = (status::GENERAL_ERR, status::WR_FLUSH_ERR);
    let fails = completions([(0, failed), (1, flushed), (2, flushed)]);
    let succeeds = completions([0, 1, 2].map(|index| (index, status::SUCCESS)));
    let mut succeeded = 0;
    for cycles in 0..60 {
        let mut rig = three_messages();
        rig.unread(1, 101, 1);
        rig.run(cycles);
        rig.answer(1, 102, 0);
        rig.run(300);
        rig.answer(1, 108, 0);
        rig.run(300);
        let done = rig.done(1);
        assert!(done == fails || done == succeeds, "{cycles}: {done:?}");
        succeeded += u32::from(done == succeeds);
    }
    assert!((1..60).contains(&succeeded), "{succeeded} of 60 succeeded");
}
