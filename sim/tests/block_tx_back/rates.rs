//! Rates, fairness and latency, in cycles.

use ferroce_proto::wire::Opcode;
use ferroce_sim::random::Pauses;

use super::packets::Packet;
use super::setup::Setup;

fn steady() -> Setup<512, 64> {
    Setup::new(Pauses::NONE, Pauses::NONE)
}

/// Idle cycles on the wire between the first beat and the last.
fn idle(setup: &Setup<512, 64>) -> u64 {
    let watch = &setup.watch;
    watch.latest + 1 - watch.first.expect("a beat") - watch.beats
}

#[test]
fn a_message_at_mtu_4096_leaves_no_cycle_idle() {
    for qpn in 0..4 {
        let mut setup = steady();
        setup.send(Packet::new(qpn, Opcode::RcWriteFirst, 4096));
        for _ in 0..30 {
            setup.send(Packet::new(qpn, Opcode::RcWriteMiddle, 4096));
        }
        setup.send(Packet::new(qpn, Opcode::RcWriteLastImm, 4096));
        setup.finish();
        assert_eq!(idle(&setup), 0, "queue pair {qpn}");
        let per_cycle = 32.0 * 4096.0 / setup.watch.beats as f64;
        assert!(per_cycle >= 62.0, "{per_cycle} payload bytes a cycle");
    }
}

#[test]
fn an_acknowledgement_a_cycle() {
    let mut setup = steady();
    for _ in 0..300 {
        setup.send(Packet::new(0, Opcode::RcAck, 0));
    }
    setup.finish();
    assert_eq!((idle(&setup), setup.watch.beats), (0, 300));
}

#[test]
fn short_packets_leave_no_cycle_idle() {
    for len in [1, 8, 64, 65, 256] {
        let mut setup = steady();
        for _ in 0..150 {
            setup.send(Packet::new(0, Opcode::RcSendOnly, len));
        }
        setup.finish();
        assert_eq!(idle(&setup), 0, "{len} bytes of payload");
    }
}

#[test]
fn lanes_take_turns() {
    let mut setup = steady();
    for _ in 0..100 {
        setup.send(Packet::new(1, Opcode::RcSendOnly, 200));
        setup.send(Packet::new(0, Opcode::RcAck, 0));
    }
    let frames = setup.finish();
    assert_eq!(idle(&setup), 0);
    let turns = frames.windows(2).filter(|w| w[0].1 != w[1].1).count();
    assert!(turns >= 190, "{turns} turns in 200 frames");
}

#[test]
fn a_lane_without_payload_does_not_hold_up_the_other() {
    let mut setup = steady();
    setup.hold_tokens(true);
    for _ in 0..60 {
        setup.send(Packet::new(0, Opcode::RcSendOnly, 100));
    }
    for _ in 0..100 {
        setup.send(Packet::new(0, Opcode::RcAck, 0));
    }
    setup.run(250);
    assert_eq!(setup.watch.beats, 100);
    setup.hold_tokens(false);
    let frames = setup.finish();
    assert!(frames[..100].iter().all(|frame| frame.1 == 1));
}

#[test]
fn latency() {
    let mut setup = steady();
    setup.send(Packet::new(0, Opcode::RcAck, 0));
    let start = setup.cycle();
    setup.finish();
    let first = setup.watch.first.expect("a beat");
    assert_eq!(first - start, 17);
}
