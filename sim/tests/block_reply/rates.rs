//! Rates, in cycles.

use ferroce_sim::random::Pauses;

use super::request::{Kind, Request};
use super::rig::{BASE, Rig};

/// Cycles from the first packet to the last, and the packets.
fn span(rig: &mut Rig) -> (u64, u64) {
    let cycles: Vec<_> = std::iter::from_fn(|| rig.left())
        .map(|left| left.0)
        .collect();
    let (first, last) = (cycles[0], cycles[cycles.len() - 1]);
    (last - first, cycles.len() as u64)
}

#[test]
fn a_long_read_of_one_queue_pair() {
    for (mtu, packets, most) in [(1, 4000, 1.3), (5, 1000, 6.5)] {
        let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
        rig.request(&Request::read(1, 0, packets * (128 << mtu)).mtu(mtu));
        rig.run(7 * u64::from(packets));
        let (cycles, sent) = span(&mut rig);
        assert_eq!(sent, u64::from(packets));
        let rate = cycles as f64 / sent as f64;
        println!("path MTU {}: {rate:.2} cycles a packet", 128 << mtu);
        assert!(rate < most, "{rate} cycles a packet");
    }
}

#[test]
fn short_reads() {
    for (qps, most) in [(1, 32.0), (16, 5.0)] {
        let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
        for psn in 0..16 {
            for qpn in 0..qps {
                rig.request(&Request::read(qpn, psn, 64));
            }
        }
        rig.run(2000);
        let (cycles, sent) = span(&mut rig);
        assert_eq!(sent, 16 * u64::from(qps));
        let rate = cycles as f64 / (sent - 1) as f64;
        println!("{qps} queue pairs: {rate:.2} cycles a short READ");
        assert!(rate < most, "{rate} cycles a READ");
    }
}

#[test]
fn atomics_at_a_microsecond() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (250, 250);
    for psn in 0..16 {
        for qpn in 0..16 {
            let addr = BASE + 8 * u64::from(psn * 16 + qpn);
            rig.request(&Request::new(qpn, psn, Kind::Add(1)).at(addr));
        }
    }
    rig.run(16 * 700);
    let (cycles, sent) = span(&mut rig);
    assert_eq!(sent, 256);
    let rate = cycles as f64 / 255.0;
    println!("{rate:.2} cycles an atomic, 500 of memory");
    assert!(rate < 40.0, "{rate} cycles an atomic");
}
