//! The exception queue in Verilog, against rings in plain Rust.

mod host;
mod pulses;
mod rig;
mod room;
mod sent;

use ferroce_proto::abi::exception::{Config, HEAD_BYTES, LARGE_SLOT_BYTES, SLOT_BYTES};
use ferroce_sim::random::Chance;

use host::BASE;
use rig::Rig;

const LONGEST: usize = SLOT_BYTES - HEAD_BYTES;
const LONGEST_LARGE: usize = LARGE_SLOT_BYTES - HEAD_BYTES;

/// Both widths, with a buffer of 32 KiB.
fn rigs(idle: f64, pause: f64) -> [Rig; 2] {
    [
        Rig::new::<512, 64, 9>(idle, pause),
        Rig::new::<64, 8, 12>(idle, pause),
    ]
}

#[test]
fn every_length_is_received() {
    for mut rig in rigs(0.1, 0.2) {
        rig.on(3, false);
        let edges = (14..=200).step_by(3).chain(LONGEST - 70..=LONGEST);
        for len in edges {
            let frame = rig.bytes(len);
            rig.receive(frame, true);
            while !rig.raw.queue.is_empty() || rig.expected.len() > 4 {
                if rig.poll() {
                    rig.give();
                }
                rig.run(1);
            }
        }
        rig.settle();
        assert_eq!((rig.dropped, rig.refused), (0, 0));
        assert_eq!(rig.stored, u64::from(rig.polled));
    }
}

#[test]
fn large_slots() {
    for mut rig in rigs(0.0, 0.1) {
        rig.on(1, true);
        for len in [60, 2000, 4032, 4096, 9018, LONGEST_LARGE - 1, LONGEST_LARGE] {
            let frame = rig.bytes(len);
            rig.receive(frame.clone(), true);
            rig.post(&frame, len as u16, true);
            rig.settle();
        }
        // One byte more fits neither way.
        let frame = rig.bytes(LONGEST_LARGE + 1);
        rig.receive(frame, true);
        let short = rig.bytes(20);
        rig.post(&short, LONGEST_LARGE as u16 + 1, false);
        rig.settle();
        assert_eq!((rig.stored, rig.dropped, rig.sent), (7, 1, 7));
    }
}

#[test]
fn only_frames_for_the_host_are_kept() {
    for mut rig in rigs(0.0, 0.0) {
        rig.on(4, false);
        let mut taken = 0;
        for i in 0..300 {
            // Bursts of other frames, longer than the buffer too, are forgotten at line rate.
            let len = match i % 50 {
                0 => 40_000,
                1..5 => 4000,
                _ => rig.rng().usize(14..200),
            };
            let frame = rig.bytes(len);
            let take = i % 9 == 7 && len < 200;
            taken += u64::from(take);
            rig.receive(frame, take);
        }
        rig.settle();
        assert_eq!((rig.stored, rig.dropped, rig.refused), (taken, 0, 0));
    }
}

#[test]
fn too_long_for_a_slot_is_dropped() {
    for mut rig in rigs(0.0, 0.0) {
        rig.on(2, false);
        for len in [LONGEST, LONGEST + 1, 9000, 40_000, 70_000, 60] {
            let frame = rig.bytes(len);
            rig.receive(frame, true);
            rig.settle();
        }
        assert_eq!((rig.stored, rig.dropped), (2, 4));
    }
}

#[test]
fn a_frame_as_long_as_the_buffer_is_dropped() {
    // The buffers of the engine hold 64 KiB: a length of 16 bits would be 0.
    let rigs = [
        Rig::new::<512, 64, 10>(0.0, 0.0),
        Rig::new::<64, 8, 13>(0.0, 0.0),
    ];
    for (mut rig, beat) in rigs.into_iter().zip([64, 8]) {
        rig.on(2, true);
        for len in [65_536 - beat, 65_536, 65_536 + beat, 60] {
            let frame = rig.bytes(len);
            rig.receive(frame, true);
            rig.settle();
        }
        assert_eq!((rig.stored, rig.dropped), (1, 3));
    }
}

#[test]
fn a_full_ring_holds_frames_back_and_then_drops_the_newest() {
    for mut rig in rigs(0.0, 0.0) {
        rig.on(1, false);
        rig.may_drop = true;
        for _ in 0..60 {
            let frame = rig.bytes(1000);
            rig.receive(frame, true);
        }
        rig.run(20_000);
        assert_eq!(rig.stored, 2, "slots of the ring");
        // The buffer has 32 KiB.
        let kept = rig.stored + 60 - rig.dropped - 2;
        assert!((30..=34).contains(&kept), "{kept} kept");
        rig.settle();
        assert_eq!(rig.stored, kept);
        assert_eq!(rig.missing, rig.dropped, "the others were the newest");
        // Short ones: more than the queue of lengths holds.
        let before = rig.dropped;
        for _ in 0..60 {
            let frame = rig.bytes(60);
            rig.receive(frame, true);
        }
        rig.run(20_000);
        assert!(
            rig.dropped - before >= 20,
            "{} dropped",
            rig.dropped - before
        );
        rig.settle();
        assert_eq!(rig.stored + rig.dropped, 120);
    }
}

#[test]
fn off_refuses() {
    for mut rig in rigs(0.2, 0.2) {
        for _ in 0..5 {
            let frame = rig.bytes(60);
            rig.receive(frame, true);
        }
        rig.settle();
        assert_eq!((rig.refused, rig.stored, rig.dropped), (5, 0, 0));
        // On with frames in the buffer, off, and on again: indices and phase are those of the start.
        for round in 0..4 {
            rig.on(1, false);
            rig.may_drop = true;
            for _ in 0..3 + round {
                let frame = rig.bytes(700);
                rig.receive(frame, true);
                let frame = rig.bytes(500);
                if rig.room() > 0 {
                    rig.post(&frame, 500, true);
                }
            }
            let cycles = rig.rng().u64(200..900);
            rig.run(cycles);
            while !rig.raw.queue.is_empty() {
                rig.run(1);
            }
            // What was not read yet stays.
            rig.off();
            rig.run(600);
            rig.to_send.clear();
            rig.expected.clear();
            rig.config = Config::default();
            rig.settle();
        }
        rig.may_drop = false;
        rig.on(2, false);
        let frame = rig.bytes(99);
        rig.receive(frame, true);
        rig.settle();
        assert_eq!(rig.polled, 1);
    }
}

#[test]
fn an_armed_queue_gives_one_event() {
    for mut rig in rigs(0.0, 0.1) {
        rig.on(3, false);
        let arm = |rig: &mut Rig, consumer: u16| {
            rig.set("setup.rx_consumer", consumer.into());
            rig.set("setup.arm", 1);
            rig.run(1);
            rig.set("setup.arm", 0);
        };
        let receive = |rig: &mut Rig| {
            let frame = rig.bytes(60);
            rig.receive(frame, true);
        };
        // Not armed: none.
        receive(&mut rig);
        rig.run(600);
        assert_eq!((rig.events, rig.stored), (0, 1));
        // Armed with a frame there: at once, and once.
        arm(&mut rig, 0);
        rig.run(5);
        assert_eq!(rig.events, 1);
        receive(&mut rig);
        rig.run(600);
        assert_eq!((rig.events, rig.stored), (1, 2));
        // Armed behind all that is there: with the next, when that is visible.
        while rig.poll() {}
        let consumer = rig.polled;
        arm(&mut rig, consumer);
        rig.run(300);
        assert_eq!(rig.events, 1);
        receive(&mut rig);
        while rig.events == 1 {
            rig.run(1);
        }
        assert!(rig.poll(), "the frame is there when the event is");
        receive(&mut rig);
        rig.run(600);
        assert_eq!(rig.events, 2);
        // Turned off it forgets.
        let consumer = rig.polled.wrapping_add(1);
        rig.polled = consumer;
        rig.expected.clear();
        arm(&mut rig, consumer);
        rig.off();
        rig.on(3, false);
        receive(&mut rig);
        rig.run(600);
        assert_eq!((rig.events, rig.stored), (2, 5));
    }
}

/// The host takes a frame, and arms, before the response to the write of its head is there.
#[test]
fn a_frame_that_is_taken_early_gives_no_event() {
    for mut rig in rigs(0.0, 0.0) {
        rig.writer.latency = 200;
        rig.on(3, false);
        for taken in 1..30 {
            let frame = rig.bytes(60);
            rig.receive(frame, true);
            while !rig.poll() {
                rig.run(1);
            }
            rig.set("setup.rx_consumer", taken);
            rig.set("setup.arm", 1);
            rig.run(1);
            rig.set("setup.arm", 0);
            rig.run(500);
            assert_eq!((rig.events, rig.stored), (0, taken));
        }
    }
}

#[test]
fn a_frame_of_which_a_write_is_refused_is_dropped() {
    for mut rig in rigs(0.0, 0.1) {
        rig.on(3, true);
        // Four bursts, and the head.
        for refused in 0..5 {
            rig.writer.refuse = Some(refused);
            let frame = rig.bytes(8000);
            rig.raw.queue.push_back((frame, true));
            rig.run(3000);
            assert_eq!(
                (rig.dropped, rig.stored),
                (refused as u64 + 1, refused as u64)
            );
            assert!(!rig.poll());
            let frame = rig.bytes(8000);
            rig.receive(frame, true);
            rig.settle();
        }
        assert_eq!((rig.dropped, rig.stored), (5, 5));
    }
}

#[test]
fn at_random() {
    for mut rig in rigs(0.3, 0.3) {
        rig.may_drop = true;
        for round in 0..6 {
            let large = round % 2 == 1;
            let log_slots = rig.rng().u8(..=5);
            rig.on(log_slots, large);
            rig.writer.latency = rig.rng().u64(1..150);
            rig.reader.latency = rig.rng().u64(1..150);
            let busy = rig.rng().bool();
            for _ in 0..8000 {
                if rig.raw.queue.len() < 4 && rig.rng().u8(..) < if busy { 128 } else { 8 } {
                    let longest = if large { 6000 } else { 2100 };
                    let len = rig.rng().usize(14..longest);
                    let (frame, take) = (rig.bytes(len), rig.rng().bool());
                    rig.receive(frame, take);
                }
                if rig.room() > 0 && rig.rng().u8(..) < 16 {
                    let longest = rig.config.max_frame().min(5000);
                    let len = rig.rng().usize(14..longest);
                    let frame = rig.bytes(len);
                    rig.post(&frame, len as u16, true);
                }
                if rig.from_transport.len() < 3 {
                    let len = rig.rng().usize(60..1500);
                    rig.send_transport(len);
                }
                if rig.rng().u8(..) < 60 && rig.poll() && rig.rng().bool() {
                    rig.give();
                }
                rig.run(1);
            }
            rig.settle();
            rig.off();
            rig.config = Config::default();
        }
        assert!(
            rig.stored > 20 && rig.seen > 20,
            "{} {}",
            rig.stored,
            rig.seen
        );
    }
}

#[test]
fn the_last_slot_of_the_largest_rings() {
    // 2^8 slots of 16 KiB each way are 8 MiB.
    let mut rig = Rig::new::<512, 64, 9>(0.0, 0.0);
    rig.raw.idle = Chance::new(0.5);
    rig.writer.latency = 2;
    rig.reader.latency = 2;
    rig.on(8, true);
    for i in 0..520_u32 {
        let frame = rig.bytes(70);
        rig.post(&frame, 70, true);
        rig.receive(frame, true);
        while rig.stored < u64::from(i) {
            rig.run(1);
        }
        while rig.poll() {
            rig.give();
        }
    }
    rig.settle();
    assert_eq!(rig.tx_slot(), BASE + (256 + 8) * LARGE_SLOT_BYTES as u64);
}
