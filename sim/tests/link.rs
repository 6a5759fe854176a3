//! Wires: time, rate, hardship by chance and by script.

use ferroce_sim::link::{Config, Impairment, Wire};
use ferroce_sim::random::Chance;
use ferroce_sim::rate::Rate;

/// A frame that knows its number.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = number.to_be_bytes().to_vec();
    frame.resize(len, 0x55);
    frame
}

/// Sends `count` frames of 100 bytes, ten cycles apart, and returns what arrives: (cycle, number).
fn run(wire: &mut Wire, count: u32) -> Vec<(u64, u32)> {
    let mut arrived = Vec::new();
    for now in 0..u64::from(count) * 10 + 20_000 {
        while let Some(frame) = wire.take(now) {
            arrived.push((now, u32::from_be_bytes(frame[..4].try_into().unwrap())));
        }
        if now % 10 == 0 && now / 10 < u64::from(count) {
            wire.send(now, frame((now / 10) as u32, 100));
        }
    }
    assert_eq!(wire.next_arrival(), None, "frames left on the wire");
    arrived
}

fn numbers(arrived: &[(u64, u32)]) -> Vec<u32> {
    arrived.iter().map(|(_, number)| *number).collect()
}

#[test]
fn a_plain_wire_delays_and_pads() {
    let mut wire = Wire::new(Config {
        latency: 7,
        ..Config::default()
    });
    assert_eq!(wire.next_arrival(), None);
    wire.send(3, vec![1; 42]);
    assert_eq!(wire.next_arrival(), Some(10));
    assert_eq!(wire.take(9), None);
    let padded = wire.take(10).unwrap();
    assert_eq!(
        (padded.len(), &padded[..42], &padded[42..]),
        (60, &[1; 42][..], &[0; 18][..])
    );
    assert_eq!(wire.take(10), None);
}

#[test]
fn a_rate_is_kept_to_the_byte() {
    let mut wire = Wire::new(Config {
        rate: Some(Rate::ethernet(100)),
        latency: 10,
        ..Config::default()
    });
    let (mut sent, mut last, mut arrived) = (0, 0, 0);
    for now in 0..100_000 {
        while wire.ready(now) && sent < 1000 {
            wire.send(now, frame(sent, 4096 + 70));
            sent += 1;
        }
        while wire.take(now).is_some() {
            (arrived, last) = (arrived + 1, now);
        }
    }
    assert_eq!(arrived, 1000);
    // 4190 bytes with preamble, FCS and gap, at 50 bytes a cycle.
    assert_eq!(last, 1000 * 4190 / 50 + 10);
}

#[test]
fn scripts_hit_the_frame_they_name() {
    let mut wire = Wire::new(Config::default());
    wire.script(1, Impairment::Drop);
    wire.script(3, Impairment::Duplicate);
    wire.script(5, Impairment::HoldBack(2));
    wire.script(9, Impairment::FlipBit { byte: 3, bit: 7 });
    wire.script(11, Impairment::HoldBack(1));
    wire.script(11, Impairment::Duplicate);
    wire.script(13, Impairment::HoldBack(100));
    let arrived = run(&mut wire, 15);
    let expected = [0, 2, 3, 3, 4, 6, 7, 5, 8, 9 + 128, 10, 11, 12, 11, 14, 13];
    assert_eq!(numbers(&arrived), expected);
    assert_eq!(
        arrived.last().unwrap().0,
        130 + 1 + 10_000,
        "a held frame is not held for ever"
    );
    let stats = wire.stats();
    assert_eq!((stats.frames, stats.bytes, stats.delivered), (15, 1500, 16));
    assert_eq!(
        (
            stats.lost,
            stats.duplicated,
            stats.reordered,
            stats.corrupted
        ),
        (1, 2, 3, 1)
    );
}

#[test]
fn chance_strikes_as_often_as_asked() {
    let hostile = |seed| {
        let mut wire = Wire::new(Config::hostile(0.1, seed));
        let arrived = run(&mut wire, 4000);
        (arrived, *wire.stats())
    };
    let (arrived, stats) = hostile(1);
    for count in [
        stats.lost,
        stats.duplicated,
        stats.reordered,
        stats.corrupted,
    ] {
        assert!((300..500).contains(&count), "{stats:?}");
    }
    assert_eq!(stats.delivered, arrived.len() as u64);
    assert!(
        arrived.windows(2).any(|w| w[0].1 > w[1].1),
        "nothing was reordered"
    );
    assert_eq!(hostile(1).0, arrived, "the same seed, the same run");
    assert_ne!(hostile(2).0, arrived);
}

#[test]
fn each_hardship_comes_alone_when_asked_alone() {
    let one = Chance::new(1.0);
    let run = |config| run(&mut Wire::new(config), 30);
    let calm = Config::default;
    assert!(
        run(Config {
            loss: one,
            ..calm()
        })
        .is_empty()
    );
    let twice = run(Config {
        duplication: one,
        ..calm()
    });
    assert!(numbers(&twice).into_iter().eq((0..30).flat_map(|n| [n, n])));
    let mut corrupted = Wire::new(Config {
        corruption: one,
        ..calm()
    });
    corrupted.send(0, vec![0; 200]);
    let flipped: u32 = corrupted
        .take(1)
        .unwrap()
        .iter()
        .map(|byte| byte.count_ones())
        .sum();
    assert_eq!(flipped, 1);
}
