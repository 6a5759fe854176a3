//! Rates of responses: turns that wait until they may start.

use ferroce_proto::abi::qpc::RATE_HEADERS;
use ferroce_sim::random::Pauses;

use super::request::{Kind, Packet, Request, answer};
use super::rig::{Rig, uneven};

/// Cycles of 4 ns that bytes take at a rate.
fn cycles(bytes: u64, mbps: u64) -> u64 {
    bytes * 2000 / mbps
}

/// What a packet counts.
fn cost(packet: &Packet) -> u64 {
    u64::from(packet.plen + RATE_HEADERS)
}

/// The packets that left, with their cycles, by queue pair.
fn by_queue_pair(rig: &mut Rig) -> Vec<Vec<(u64, Packet)>> {
    let mut left = vec![Vec::new(); 16];
    while let Some((cycle, packet)) = rig.left() {
        left[packet.qpn as usize].push((cycle, packet));
    }
    left
}

#[test]
fn each_queue_pair_keeps_its_rate() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let rates = [
        100, 250, 333, 1000, 1001, 2500, 3000, 5000, 7000, 10_000, 12_000, 20_000, 25_000, 40_000,
    ];
    for (qpn, &rate) in rates.iter().enumerate() {
        rig.rate(qpn as u32, rate);
        rig.request(&Request::read(qpn as u32, 0, 8 << 20).mtu(1 + qpn as u8 % 5));
    }
    rig.run(300_000);
    let left = by_queue_pair(&mut rig);
    for (packets, rate) in left.iter().zip(rates) {
        let (first, last) = (packets[0].0, packets[packets.len() - 1].0);
        let sent: u64 = packets[1..].iter().map(|packet| cost(&packet.1)).sum();
        let took = last - first;
        let expected = cycles(sent, rate);
        println!("{rate} Mb/s: {sent} bytes in {took} cycles, expected {expected}");
        // a turn of 1024 cycles may begin or end the time that is measured
        assert!(took.abs_diff(expected) < 1100 + expected / 100);
    }
    assert!(left[14].is_empty() && left[15].is_empty());
}

#[test]
fn a_turn_is_what_the_rate_sends_in_1024_cycles() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(3, 10_000);
    rig.request(&Request::read(3, 0, 64 << 10));
    rig.run(20_000);
    let packets = &by_queue_pair(&mut rig)[3];
    assert_eq!(packets.len(), 64);
    // 5120 bytes: 4096 as a power of two
    for (number, pair) in packets.windows(2).enumerate() {
        let between = pair[1].0 - pair[0].0;
        let same_turn = number % 4 != 3;
        assert!(between < 20 || !same_turn, "packet {number}: {between}");
        assert!(between > 700 || same_turn, "packet {number}: {between}");
    }
}

#[test]
fn one_that_waits_holds_up_no_other() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1);
    let slow = Request::read(1, 0, 10 << 10);
    let fast = Request::read(2, 0, 10 << 10);
    rig.request(&slow);
    rig.request(&fast);
    rig.run(1000);
    let left = by_queue_pair(&mut rig);
    assert_eq!(left[1].len(), 1);
    let packets: Vec<_> = left[2].iter().map(|left| left.1).collect();
    assert_eq!(packets, answer(&fast, 0));
}

#[test]
fn a_rate_counts_for_those_that_wait() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1);
    rig.request(&Request::read(1, 0, 3000));
    rig.run(10_000);
    assert_eq!(rig.packets().len(), 1);
    // 1088 bytes of 100 Mb/s are 21,760 cycles, of which 10,000 have passed
    rig.rate(1, 100);
    rig.run(11_000);
    assert_eq!(rig.packets().len(), 0);
    rig.run(1000);
    assert_eq!(rig.packets().len(), 1);
    rig.rate(1, 0);
    rig.run(60);
    assert_eq!(rig.packets().len(), 1);
}

#[test]
fn idle_time_is_no_credit() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1000);
    rig.run(50_000);
    rig.request(&Request::read(1, 0, 8 << 10));
    rig.run(3 * cycles(1088, 1000) + 200);
    assert_eq!(rig.packets().len(), 4);
}

#[test]
fn an_acknowledgement_does_not_wait() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1);
    rig.request(&Request::read(1, 0, 1000));
    rig.run(100);
    assert_eq!(rig.packets().len(), 1);
    rig.ack(1, 1, 1, 0x1f);
    rig.run(20);
    let [ack] = rig.packets()[..] else {
        panic!("the acknowledgement left")
    };
    assert_eq!((ack.psn, ack.plen), (1, 0));
}

#[test]
fn atomics_count_as_headers() {
    let mut rig = Rig::new(uneven(), Pauses::NONE);
    rig.rate(4, 100);
    for psn in 0..8 {
        rig.request(&Request::new(4, psn, Kind::Add(1)));
    }
    rig.run(8 * cycles(64, 100));
    let cycles_of = &by_queue_pair(&mut rig)[4];
    assert_eq!(cycles_of.len(), 8);
    let took = cycles_of[7].0 - cycles_of[0].0;
    assert!(took.abs_diff(7 * cycles(64, 100)) < 200, "{took} cycles");
}

#[test]
fn one_that_starts_afresh_while_it_waits() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1);
    rig.request(&Request::read(1, 0, 3000));
    rig.run(200);
    assert_eq!(rig.packets().len(), 1);
    rig.start_afresh(1);
    rig.rate(1, 0);
    rig.run(100);
    let read = Request::read(1, 500, 3000);
    rig.request(&read);
    rig.run(200);
    assert_eq!(rig.packets(), answer(&read, 0));
}

/// A READ that comes between the end of the one before and the turn for an acknowledgement waits all the same.
#[test]
fn a_turn_for_an_acknowledgement_is_no_way_around() {
    for delay in 0..60 {
        let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
        rig.rate(1, 1);
        // turns of others, behind which the queue pair is due
        for qpn in 2..16 {
            rig.request(&Request::read(qpn, 0, 20 << 10));
        }
        rig.request(&Request::read(1, 0, 1000));
        rig.ack(1, 1, 1, 0x1f);
        rig.run(delay * 16);
        rig.request(&Request::read(1, 2, 1000));
        rig.run(6000);
        let packets = rig.packets();
        let reads = packets.iter().filter(|p| p.qpn == 1 && p.plen > 0);
        assert_eq!(reads.count(), 1, "{} cycles later", delay * 16);
    }
}

#[test]
fn what_is_owed_ends_with_the_rate() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(1, 1);
    rig.request(&Request::read(1, 0, 3000));
    rig.run(200);
    rig.start_afresh(1);
    rig.rate(1, 0);
    rig.run(20);
    rig.packets();
    // a turn without a rate is not owed either
    rig.request(&Request::read(1, 100, 4000));
    rig.run(100);
    assert_eq!(rig.packets().len(), 4);
    rig.rate(1, 1);
    rig.request(&Request::read(1, 500, 3000));
    rig.run(100);
    assert_eq!(rig.packets().len(), 1);
}
