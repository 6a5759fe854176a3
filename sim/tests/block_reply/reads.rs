//! READ: the packets, their memory, duplicates, fences, turns.

use ferroce_proto::wire::psn::MASK;
use ferroce_sim::random::Pauses;

use super::request::{Packet, Request, answer};
use super::rig::{BASE, Rig, UNDER_WAY, uneven};

/// Pieces to fetch for a request.
fn pieces(request: &Request, lane: u32) -> Vec<(u64, u32, u32)> {
    let count = request.packets();
    let piece = |number| {
        let aeth = number == 0 || number + 1 == count;
        let addr = request.va + u64::from(number * request.mtu_bytes());
        let lane = (lane + if aeth { 4 } else { 0 }) % 64;
        (addr, request.plen(number), lane)
    };
    (0..count).map(piece).filter(|piece| piece.1 > 0).collect()
}

#[test]
fn packets_of_all_lengths_and_mtus() {
    let mut rig = Rig::new(Pauses::NONE, uneven());
    let mut psn = MASK - 40;
    for mtu in 1..=5 {
        let bytes = 128 << mtu;
        let lengths = [
            0,
            1,
            63,
            bytes - 1,
            bytes,
            bytes + 1,
            2 * bytes,
            2 * bytes + 5,
            9 * bytes,
        ];
        for len in lengths.into_iter().chain([300 * bytes + 17]) {
            let read = Request::read(5, psn, len)
                .mtu(mtu)
                .at(BASE + u64::from(len) * 3);
            psn += read.packets();
            rig.request(&read);
            rig.run(u64::from(read.packets()) * 12 + 200);
            assert_eq!(rig.packets(), answer(&read, 0), "{read:?}");
            assert_eq!(rig.pieces(), pieces(&read, 54), "{read:?}");
            assert_eq!(rig.finished(), [(5, 0)]);
        }
    }
    assert!(rig.failures().is_empty());
}

#[test]
fn the_lane_follows_the_path() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    for (qpn, ipv6, vlan, lane) in [
        (1, false, false, 54),
        (2, true, false, 10),
        (3, false, true, 58),
        (4, true, true, 14),
    ] {
        rig.path(qpn, ipv6, vlan);
        let read = Request::read(qpn, 100, 3 * 1024);
        rig.request(&read);
        rig.run(100);
        assert_eq!(rig.pieces(), pieces(&read, lane));
        assert_eq!(rig.packets(), answer(&read, 0));
    }
}

#[test]
fn memory_is_not_read_before_the_fence() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.set_done(0xfff0);
    let (first, second) = (Request::read(1, 0, 64), Request::read(2, 0, 64));
    rig.request_after(&first, 5, false);
    rig.request_after(&second, 6, false);
    for done in [0xfff1, 0xffff, 0, 4] {
        rig.set_done(done);
        rig.run(40);
        assert!(rig.packets().is_empty() && rig.pieces().is_empty());
    }
    rig.set_done(5);
    rig.run(40);
    assert_eq!(rig.packets(), answer(&first, 0));
    rig.set_done(600);
    rig.run(40);
    assert_eq!(rig.packets(), answer(&second, 0));
}

/// Its token waited for a completion, longer than the count of writes takes to come half round.
#[test]
fn a_fence_may_be_of_any_age() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.set_done(500);
    for age in [1, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff - UNDER_WAY] {
        let read = Request::read(1, age.into(), 64);
        rig.request_after(&read, 500_u16.wrapping_sub(age), false);
        rig.run(60);
        assert_eq!(rig.packets(), answer(&read, 0), "{age} writes ago");
    }
}

#[test]
fn fenced_replies_are_counted_until_they_may_run() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    assert_eq!(rig.activity("fenced"), (0, false));
    for qpn in 0..12 {
        rig.request_after(&Request::read(qpn, 0, 64), 1 + qpn as u16, false);
    }
    rig.run(100);
    assert_eq!(rig.activity("fenced").0, 12);
    for left in (0..12).rev() {
        rig.set_done(12 - left);
        let mut moved = 0;
        for _ in 0..40 {
            rig.step();
            moved += u16::from(rig.activity("fenced").1);
        }
        assert_eq!((rig.activity("fenced").0, moved), (left.into(), 1));
    }
}

#[test]
fn replies_of_a_queue_pair_keep_their_order() {
    let mut rig = Rig::new(uneven(), uneven());
    let mut psn = 1000;
    let requests: Vec<_> = (0..16)
        .map(|i| {
            let read = Request::read(7, psn, i * 700).at(BASE + u64::from(i) * 8192);
            psn += read.packets();
            read
        })
        .collect();
    requests.iter().for_each(|read| rig.request(read));
    rig.run(4000);
    let expected: Vec<_> = requests.iter().flat_map(|read| answer(read, 0)).collect();
    assert_eq!(rig.packets(), expected);
    assert_eq!(rig.finished().len(), 16);
}

#[test]
fn a_turn_ends_with_its_quantum() {
    for (mtu, quantum) in [(1, 128), (2, 128), (3, 64), (4, 32), (5, 16)] {
        let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
        let len = (128 << mtu) * 400;
        for qpn in 0..3 {
            rig.request(&Request::read(qpn, 0, len).mtu(mtu));
        }
        rig.run(7000);
        let sent = rig.packets();
        assert_eq!(sent.len(), 1200);
        let turns: Vec<_> = sent
            .chunk_by(|a, b| a.qpn == b.qpn)
            .map(<[Packet]>::len)
            .collect();
        let whole = turns.iter().filter(|&&len| len == quantum).count();
        assert!(turns.iter().all(|&len| len <= quantum), "{turns:?}");
        assert!(whole >= 3 * (400 / quantum) - 3, "{turns:?}");
    }
}

#[test]
fn an_acknowledgement_passes_the_reads_of_others() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    for qpn in 0..4 {
        rig.request(&Request::read(qpn, 0, 4096 * 200).mtu(5));
    }
    rig.run(100);
    let mut waits = vec![];
    for psn in 0..50 {
        rig.ack(9, psn, psn, 0x1f);
        let asked = rig.bench.cycle();
        rig.run(25);
        while let Some((cycle, packet)) = rig.left() {
            if packet.is_ack() {
                waits.push(cycle - asked);
            }
        }
    }
    assert_eq!(waits.len(), 50);
    assert!(waits.iter().all(|&wait| wait < 16), "{waits:?}");
}

#[test]
fn a_duplicate_is_answered_again_and_not_counted() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let read = Request::read(3, 50, 5000);
    rig.request(&read);
    rig.run(100);
    rig.packets();
    assert_eq!(rig.finished(), [(3, 0)]);
    rig.request(&read.again());
    rig.run(100);
    assert_eq!(rig.packets(), answer(&read, 0));
    // from the middle on
    let rest = Request::read(3, 52, 5000 - 2048).at(BASE + 2048).again();
    rig.request(&rest);
    rig.run(100);
    assert_eq!(rig.packets(), answer(&rest, 0));
    assert!(rig.finished().is_empty());
}

#[test]
fn a_duplicate_with_its_answer_due_is_dropped() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let reads = [50, 60, 70].map(|psn| Request::read(3, psn, 5000));
    for read in reads {
        rig.request_after(&read, 1, false);
    }
    for read in reads {
        rig.request_after(&read.again(), 1, false);
    }
    rig.request_after(&Request::read(3, 62, 1000).again(), 1, false);
    // executed before: they are not due, then they are
    let old = [20, 30, 40].map(|psn| Request::read(3, psn, 5000).again());
    for read in old.into_iter().chain(old) {
        rig.request_after(&read, 1, false);
    }
    rig.run(60);
    rig.set_done(1);
    rig.run(300);
    let expected: Vec<_> = reads
        .iter()
        .chain(&old)
        .flat_map(|read| answer(read, 0))
        .collect();
    assert_eq!(rig.packets(), expected);
    assert_eq!(rig.finished().len(), 3);
    // nothing is due any more
    rig.request(&reads[1].again());
    rig.run(100);
    assert_eq!(rig.packets(), answer(&reads[1], 0));
}

#[test]
fn void_replies_leave_nothing() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let read = Request::read(3, 50, 5000);
    rig.request_after(&Request::read(3, 40, 100), 0, true);
    rig.request(&read);
    rig.request_after(&Request::read(3, 60, 100), 0, true);
    rig.ack(3, 59, 7, 0x62);
    rig.run(200);
    let sent = rig.packets();
    assert_eq!(sent[..5], answer(&read, 0));
    assert_eq!((sent.len(), sent[5].syndrome), (6, 0x62));
    assert_eq!(rig.finished().len(), 1);
}

#[test]
fn a_fresh_start_forgets_replies() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let other = Request::read(4, 9, 100);
    for i in 0..10 {
        rig.request_after(&Request::read(3, 40 + i, 100), 1, false);
    }
    rig.ack(3, 60, 7, 0x1f);
    rig.request_after(&other, 1, false);
    rig.start_afresh(3);
    rig.run(60);
    let mut read = Request::read(3, 7, 3000);
    read.incarnation = 1;
    rig.request_after(&read, 2, false);
    rig.run(30);
    rig.set_done(2);
    rig.run(300);
    let sent = rig.packets();
    let of = |qpn| sent.iter().filter(move |packet| packet.qpn == qpn).copied();
    assert_eq!(of(3).collect::<Vec<_>>(), answer(&read, 0));
    assert_eq!(of(4).collect::<Vec<_>>(), answer(&other, 0));
    let mut finished = rig.finished();
    finished.sort_unstable();
    assert_eq!(finished, [(3, 1), (4, 0)]);
}

#[test]
fn a_fresh_start_in_the_middle_of_a_read() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.request(&Request::read(3, 0, 4096 * 1000).mtu(5));
    rig.run(200);
    rig.start_afresh(3);
    let mut read = Request::read(3, 70_000, 300);
    read.incarnation = 2;
    rig.request(&read);
    rig.run(300);
    let sent = rig.packets();
    assert!(sent.len() < 300, "{} packets", sent.len());
    assert_eq!(sent.last(), answer(&read, 0).last());
    assert_eq!(rig.finished(), [(3, 2)], "the old one is not finished");
}
