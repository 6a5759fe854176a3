//! Atomics: what they do to memory, their order, results kept for duplicates.

use ferroce_sim::random::Pauses;

use super::request::{Kind, Request, answer};
use super::rig::{BASE, Rig, uneven};

fn add(qpn: u32, psn: u32, addr: u64, value: u64) -> Request {
    Request::new(qpn, psn, Kind::Add(value)).at(addr)
}

fn swap(qpn: u32, psn: u32, addr: u64, compare: u64, swap: u64) -> Request {
    Request::new(qpn, psn, Kind::Swap { compare, swap }).at(addr)
}

fn operations<const W: usize, const K: usize>() {
    let mut rig = Rig::of::<W, K>(Pauses::NONE, Pauses::NONE);
    for lane in 0..8 {
        let addr = BASE + 64 * 5 + 8 * lane;
        rig.memory.values.insert(addr, u64::MAX - 2);
        let requests = [
            (add(1, 10, addr, 5), u64::MAX - 2, 2),
            (swap(1, 11, addr, 3, 99), 2, 2),
            (
                swap(1, 12, addr, 2, 0x0123_4567_89ab_cdef),
                2,
                0x0123_4567_89ab_cdef,
            ),
            (
                add(1, 13, addr, 1),
                0x0123_4567_89ab_cdef,
                0x0123_4567_89ab_cdf0,
            ),
        ];
        for (request, original, left) in requests {
            let writes = rig.memory.writes;
            rig.request(&request);
            rig.run(400);
            assert_eq!(rig.packets(), answer(&request, original));
            assert_eq!(rig.memory.values[&addr], left);
            assert_eq!(rig.memory.writes - writes, u64::from(left != original));
            assert_eq!(rig.finished(), [(1, 0)]);
        }
    }
}

#[test]
fn operations_in_all_lanes() {
    operations::<512, 64>();
}

#[test]
fn operations_on_a_narrow_data_path() {
    operations::<64, 8>();
}

#[test]
fn atomics_of_one_address_come_one_after_the_other() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    for i in 0..48 {
        rig.request(&add(i % 12, 10 + i / 12, BASE, 1 << i));
    }
    rig.run(48 * 140);
    let sent = rig.packets();
    assert_eq!(sent.len(), 48);
    assert_eq!(rig.memory.values[&BASE], (1 << 48) - 1);
    assert_eq!(rig.memory.most, 1);
    // each sees all that were answered before
    let mut sum = 0;
    for packet in sent {
        assert_eq!(packet.value, sum);
        sum += 1 << (packet.qpn + 12 * (packet.psn - 10));
    }
}

#[test]
fn atomics_of_different_addresses_run_together() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (250, 250);
    for i in 0..16 {
        rig.request(&add(i % 8, 10 + i, BASE + 8 * u64::from(i), 1));
    }
    rig.run(800);
    assert_eq!(rig.packets().len(), 16, "they overlap");
    assert_eq!(rig.memory.most, 16);
    assert_eq!(rig.finished().len(), 16);
}

#[test]
fn more_than_sixteen_wait_their_turn() {
    let mut rig = Rig::new(Pauses::NONE, uneven());
    rig.memory.latency = (100, 300);
    rig.memory.gaps = 100;
    for i in 0..16 {
        for qpn in 0..8 {
            let addr = BASE + 8 * u64::from(i * 8 + qpn);
            rig.request(&add(qpn, 10 + i, addr, 1));
        }
    }
    // meanwhile the others are served
    rig.request(&Request::read(9, 0, 64));
    rig.run(700);
    let early = rig.packets();
    assert!(early.iter().any(|packet| packet.qpn == 9));
    rig.run(8000);
    assert_eq!(early.len() + rig.packets().len(), 129);
    assert!(rig.memory.most <= 16);
    assert!((0..128).all(|i| rig.memory.values[&(BASE + 8 * i)] == 1));
}

#[test]
fn a_read_waits_for_the_atomics_before_it() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (200, 200);
    let requests = [
        add(3, 10, BASE, 1),
        add(3, 11, BASE + 8, 1),
        Request::read(3, 12, 64),
        add(3, 13, BASE, 1),
    ];
    requests.iter().for_each(|request| rig.request(request));
    rig.ack(3, 14, 99, 0x1f);
    rig.run(300);
    assert!(rig.pieces().is_empty(), "memory is read too early");
    rig.run(1200);
    let psns: Vec<_> = rig.packets().iter().map(|packet| packet.psn).collect();
    assert_eq!(psns, [10, 11, 12, 13, 14]);
    assert_eq!(rig.finished().len(), 4);
}

#[test]
fn an_atomic_waits_for_its_fence() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.request_after(&add(3, 10, BASE, 1), 7, false);
    rig.run(100);
    assert_eq!(rig.memory.reads, 0);
    rig.set_done(7);
    rig.run(200);
    assert_eq!(rig.packets().len(), 1);
}

/// 16 run; each queue pair with more stands in the list: 8 at least.
#[test]
fn atomics_that_are_to_run_are_counted() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (3000, 3000);
    for qpn in 0..16 {
        for turn in 0..2 {
            let addr = BASE + u64::from(64 * (2 * qpn + turn));
            rig.request_after(&add(qpn, 10 + turn, addr, 1), 1, false);
        }
    }
    rig.run(400);
    assert_eq!(rig.activity("atomics"), (0, false));
    rig.set_done(1);
    rig.run(400);
    let (things, _) = rig.activity("atomics");
    assert_eq!(rig.memory.reads, 16);
    assert!((16 + 8..=32).contains(&things), "{things} of 32 left");
    let mut over = 0;
    for _ in 0..20_000 {
        rig.step();
        over += u64::from(rig.activity("atomics").1);
    }
    assert_eq!((over, rig.activity("atomics").0), (32, 0));
}

#[test]
fn the_last_sixteen_results_are_kept() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let requests: Vec<_> = (0..20).map(|i| add(3, 100 + 3 * i, BASE, 10)).collect();
    for request in &requests {
        rig.request(request);
        rig.run(250);
    }
    assert_eq!(rig.packets().len(), 20);
    assert_eq!(rig.finished().len(), 20);
    let (reads, writes) = (rig.memory.reads, rig.memory.writes);
    for (i, request) in requests.iter().enumerate() {
        rig.request(&request.again());
        rig.run(150);
        let sent = rig.packets();
        if i < 4 {
            assert_eq!(sent, [], "it is kept no more");
        } else {
            assert_eq!(sent, answer(request, 10 * i as u64));
        }
    }
    rig.request(&add(3, 101, BASE, 10).again());
    rig.request(&add(4, 157, BASE, 10).again());
    rig.run(200);
    assert!(rig.packets().is_empty(), "never executed");
    assert_eq!((rig.memory.reads, rig.memory.writes), (reads, writes));
    assert!(rig.finished().is_empty());
    // forgotten with the life of the queue pair
    rig.start_afresh(3);
    rig.request(&requests[19].again());
    rig.run(200);
    assert!(rig.packets().is_empty());
}

/// Its answer is due already; one that comes later finds the result.
#[test]
fn a_duplicate_of_an_atomic_that_is_not_answered_is_dropped() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (200, 200);
    let request = add(3, 10, BASE, 5);
    rig.request(&request);
    rig.run(100);
    rig.request(&request.again());
    rig.request(&add(3, 11, BASE, 5));
    rig.run(1500);
    rig.request(&request.again());
    rig.run(100);
    let values: Vec<_> = rig.packets().iter().map(|p| (p.psn, p.value)).collect();
    assert_eq!(values, [(10, 0), (11, 5), (10, 0)]);
    assert_eq!(rig.memory.values[&BASE], 10);
    assert_eq!(rig.finished().len(), 2);
}
