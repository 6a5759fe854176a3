//! `gather`: payload packed byte by byte, announced when complete, at full rate.

mod ahead;
mod rig;

use ferroce_hdl::egress::class_gate::PAYLOAD;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Pauses;

use super::common::uneven;
use rig::{Lane, Packet, Setup};

fn random<const W: usize, const K: usize, const A: usize>(
    latency: u64,
    pauses: Pauses,
    packets: usize,
) {
    let mut setup = Setup::new::<W, K, A>(latency, pauses);
    for _ in 0..packets {
        let packet = setup.random(4096, 16);
        setup.send(packet);
    }
    setup.finish(400_000);
}

#[test]
fn pieces_are_packed() {
    random::<512, 64, 9>(1, Pauses::NONE, 300);
    random::<64, 8, 11>(1, Pauses::NONE, 100);
}

#[test]
fn lanes_share_the_rotator() {
    for pauses in [Pauses::NONE, uneven()] {
        let mut setup = Setup::new::<512, 64, 9>(20, pauses);
        setup.lane.reader.take_turns(false);
        setup.other.reader.take_turns(true);
        for _ in 0..300 {
            let packet = setup.random(4096, 4);
            setup.send(packet);
            setup.change();
        }
        setup.finish(400_000);
    }
}

#[test]
fn pieces_are_packed_whatever_waits() {
    random::<512, 64, 9>(100, uneven(), 300);
    random::<64, 8, 11>(300, uneven(), 100);
}

#[test]
fn what_is_not_wanted_is_forgotten() {
    for pauses in [Pauses::NONE, uneven()] {
        let mut setup = Setup::new::<512, 64, 7>(100, pauses);
        for number in 0..400 {
            let mut packet = setup.random(4096, 4);
            // never the last one, for whose end `finish` waits
            packet.forgotten = number < 399 && setup.bench.rng().bool();
            setup.send(packet);
        }
        setup.finish(400_000);
    }
}

#[test]
fn a_packet_is_forgotten_in_a_cycle() {
    let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
    for number in 0..12 {
        setup.send(Packet {
            lane: 0,
            pieces: vec![(0x1_0000 * number, 4096)],
            forgotten: (1..11).contains(&number),
        });
    }
    // All of them are there before the first one is taken.
    let Setup { bench, lane, .. } = &mut setup;
    let Lane {
        reader,
        command,
        wanted,
        ..
    } = lane;
    bench.run(&mut [reader, command, wanted], 1_000).unwrap();
    let cycles = setup.finish(1_000);
    assert!(cycles[1].1 - cycles[0].2 <= 12, "{cycles:?}");
}

#[test]
fn a_small_store_waits_for_room() {
    // 256 beats: hardly more than three packets.
    random::<512, 64, 7>(200, uneven(), 200);
}

#[test]
fn a_stalled_assembler_loses_nothing() {
    let mut setup = Setup::new::<512, 64, 9>(250, Pauses::NONE);
    for _ in 0..60 {
        let packet = setup.random(4096, 4);
        setup.send(packet);
    }
    // Nothing is taken for a long time: reads stop when the store is full.
    let Setup { bench, lane, .. } = &mut setup;
    let Lane {
        reader,
        command,
        wanted,
        ..
    } = lane;
    bench.run(&mut [reader, command, wanted], 5_000).unwrap();
    setup.finish(10_000);
}

#[test]
fn room_that_is_taken_ahead_holds_up_no_read() {
    for given_back in [0, 3000] {
        let mut setup = Setup::new::<512, 64, 9>(20, Pauses::NONE);
        setup.change();
        for number in 0..60 {
            setup.send(Packet {
                lane: 6,
                pieces: vec![(0x1_0000 * number, if number % 2 == 0 { 4096 } else { 256 })],
                forgotten: false,
            });
        }
        let ahead = setup.lane.command.ahead.as_mut().expect("lane 1 has it");
        ahead.spare = given_back;
        // no payload is taken: what has room is read all the same
        let Setup { bench, lane, .. } = &mut setup;
        let Lane {
            reader, command, ..
        } = lane;
        bench
            .run(&mut [reader, command], 2_000 + 6 * given_back as u64)
            .unwrap();
        assert_eq!(command.source.pending(), None, "a command waits");
        // room is given until it is crowded, and for 3 packets that are not seen by then; a pair of these has 70 beats
        let beats = command.source.sent() * 35;
        let crowded = PAYLOAD..=PAYLOAD + 3 * 66;
        assert!(crowded.contains(&beats), "{beats} beats");
        setup.change();
        setup.finish(20_000);
    }
}

#[test]
fn a_beat_a_cycle_without_pause() {
    for (lane, offset) in [(0, 0), (10, 0), (0, 1), (54, 33), (30, 33), (63, 63)] {
        let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
        for n in 0..40 {
            setup.send(Packet {
                lane,
                pieces: vec![(0x1_0000 * n + offset, 4096)],
                forgotten: false,
            });
        }
        let cycles = setup.finish(4_000);
        let beats = Packet {
            lane,
            pieces: vec![(0, 4096)],
            forgotten: false,
        }
        .beats(64) as u64;
        for (announced, first, last) in &cycles {
            assert_eq!(last - first + 1, beats, "a packet comes in one go");
            assert_eq!(first - announced, 2);
        }
        let took = cycles[39].2 - cycles[0].2;
        let memory = 64 + u64::from(offset > 0);
        assert_eq!(took, 39 * beats.max(memory), "lane {lane}, offset {offset}");
    }
}

#[test]
fn small_packets_one_a_cycle() {
    for (lane, offset, every) in [(0, 0, 1), (10, 0, 2), (0, 5, 2), (58, 60, 2)] {
        let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
        for n in 0..300 {
            setup.send(Packet {
                lane,
                pieces: vec![(0x1_0000 * n + offset, 64)],
                forgotten: false,
            });
        }
        let cycles = setup.finish(2_000);
        assert_eq!(
            cycles[299].2 - cycles[0].2,
            299 * every,
            "lane {lane}, offset {offset}"
        );
    }
}

#[test]
fn reads_under_way_hide_a_microsecond() {
    let mut setup = Setup::new::<512, 64, 9>(250, Pauses::NONE);
    for n in 0..600 {
        setup.send(Packet {
            lane: 6,
            pieces: vec![(0x1_0000 * n, 64)],
            forgotten: false,
        });
    }
    let cycles = setup.finish(10_000);
    let each = (cycles[599].2 - cycles[300].2) as f64 / 299.0;
    assert!(each < 2.2, "a packet of 64 bytes in {each} cycles");
}

#[test]
fn latency() {
    let mut setup = Setup::new::<512, 64, 9>(1, Pauses::NONE);
    setup.send(Packet {
        lane: 0,
        pieces: vec![(0x1000, 4096)],
        forgotten: false,
    });
    let start = setup.bench.cycle();
    let cycles = setup.finish(200);
    assert_eq!(setup.lane.reader.first_request, Some(start + 1));
    assert_eq!(cycles[0].0 - setup.lane.reader.last_beat, 2);
    assert_eq!(cycles[0].1 - setup.lane.reader.last_beat, 4);
}
