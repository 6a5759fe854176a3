//! Frames of the host.

use super::rig::Rig;
use super::{LONGEST, rigs};

#[test]
fn every_length_is_sent_among_frames_of_the_transport() {
    for mut rig in rigs(0.1, 0.1) {
        rig.on(2, false);
        for len in (14..=200).step_by(3).chain(LONGEST - 70..=LONGEST) {
            while rig.room() == 0 {
                rig.run(1);
            }
            let frame = rig.bytes(len);
            rig.post(&frame, len as u16, true);
            let len = rig.rng().usize(60..400);
            rig.send_transport(len);
        }
        rig.settle();
        assert!(rig.seen > 100);
    }
}

#[test]
fn slots_that_are_no_frame_are_passed_over() {
    for mut rig in rigs(0.0, 0.0) {
        rig.on(3, false);
        for length in [0, 1, 13, LONGEST as u16 + 1, u16::MAX] {
            rig.post(&[1; 20], length, false);
            let frame = rig.bytes(64);
            rig.post(&frame, 64, true);
            rig.settle();
        }
        // An unreadable head, and an unreadable second beat.
        for part in [0..64, 128..192] {
            let slot = rig.tx_slot();
            rig.reader.unreadable = slot + part.start..slot + part.end;
            let frame = rig.bytes(300);
            rig.post(&frame, 300, false);
            rig.settle();
            rig.reader.unreadable = 0..0;
            let frame = rig.bytes(300);
            rig.post(&frame, 300, true);
            rig.settle();
        }
        assert_eq!(rig.sent, 7);
        assert_eq!(rig.room(), 8, "the host has all slots back");
    }
}

#[test]
fn frames_start_only_while_enabled() {
    for mut rig in rigs(0.0, 0.0) {
        rig.set("enable", 0);
        rig.on(1, false);
        let frame = rig.bytes(100);
        rig.post(&frame, 100, true);
        rig.run(500);
        assert_eq!(rig.seen, 0);
        rig.set("enable", 1);
        rig.settle();
        assert_eq!(rig.seen, 1);
    }
}

#[test]
fn a_frame_without_room_holds_up_no_packets() {
    for mut rig in rigs(0.0, 0.0) {
        rig.host_room.shut = true;
        rig.on(1, false);
        let frame = rig.bytes(100);
        rig.post(&frame, 100, true);
        rig.run(500);
        assert!(rig.host_room.waiting, "a frame asks for room");
        for _ in 0..20 {
            rig.send_transport(100);
        }
        rig.run(1000);
        assert_eq!((rig.from_transport.len(), rig.seen), (0, 0));
        rig.host_room.shut = false;
        rig.settle();
        assert_eq!(rig.seen, 1);
    }
}

#[test]
fn a_frame_leaves_without_pause() {
    let mut rig = Rig::new::<512, 64, 9>(0.0, 0.0);
    rig.on(0, true);
    let frame = rig.bytes(9000);
    rig.post(&frame, 9000, true);
    let valid = rig.bench.dut().output("m_axis_tvalid").expect("a port");
    let mut beats = Vec::new();
    for cycle in 0..3000 {
        rig.run(1);
        if rig.bench.dut().is_set(valid) {
            beats.push(cycle);
        }
    }
    rig.settle();
    let gaps = beats.windows(2).filter(|w| w[1] != w[0] + 1).count();
    assert_eq!((beats.len(), gaps), (9000_usize.div_ceil(64), 0));
}
