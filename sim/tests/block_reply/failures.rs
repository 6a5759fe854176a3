//! What ends a queue pair.

use ferroce_sim::random::Pauses;

use super::host::Region;
use super::request::{Kind, Request, answer};
use super::rig::{BASE, PD, Q, Rig};
use super::wire::leave;

const NAK_ACCESS: u8 = 0x62;
const NAK_OPERATIONAL: u8 = 0x63;

fn short_region() -> Region {
    Region {
        key: 0x77,
        pd: PD,
        base: BASE,
        last: BASE + 200 * 1024 - 1,
        read: true,
        atomic: false,
    }
}

#[test]
fn a_read_past_its_region_ends_at_the_packet() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.regions.list.push(short_region());
    let mut read = Request::read(3, 50, 300 * 1024).with_key(0x77);
    read.incarnation = 2;
    rig.request(&read);
    let mut next = Request::read(3, 350, 100);
    next.incarnation = 2;
    rig.request(&next);
    rig.ack(3, 351, 1, 0x1f);
    rig.run(1500);
    let sent = rig.packets();
    assert_eq!(sent[..200], answer(&read, 0)[..200]);
    assert_eq!(sent.len(), 201, "nothing follows");
    let nak = sent[200];
    assert!(nak.is_ack());
    assert_eq!(
        (nak.psn, nak.syndrome, nak.msn),
        (250, NAK_ACCESS, read.msn)
    );
    assert_eq!(rig.pieces().len(), 200);
    assert_eq!(rig.failures(), [(3, 2, NAK_ACCESS)]);
    assert!(rig.finished().is_empty());
    // nothing of it is answered any more
    rig.request(&Request::read(3, 351, 100));
    rig.ack(3, 352, 1, 0x60);
    rig.lose(3, 60, 1);
    rig.run(100);
    assert!(rig.packets().is_empty() && rig.failures().is_empty());
    // until it starts afresh
    rig.start_afresh(3);
    rig.request(&Request::read(3, 9, 100));
    rig.run(100);
    assert_eq!(rig.packets().len(), 1);
    assert_eq!(rig.finished().len(), 1);
}

#[test]
fn a_duplicate_read_without_its_region_is_dropped() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.request(&Request::read(3, 50, 3000).with_key(0x99).again());
    let next = Request::read(3, 60, 3000);
    rig.request(&next);
    rig.run(200);
    assert_eq!(rig.packets(), answer(&next, 0));
    assert!(rig.failures().is_empty());
}

#[test]
fn an_atomic_without_its_right_is_not_executed() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.regions.list.push(short_region());
    rig.request(&Request::new(3, 50, Kind::Add(1)).with_key(0x77));
    rig.request(&Request::new(3, 51, Kind::Add(1)));
    rig.run(300);
    let sent = rig.packets();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].is_ack());
    // the message that was not executed does not count
    let nak = (sent[0].psn, sent[0].syndrome, sent[0].msn);
    assert_eq!(nak, (50, NAK_ACCESS, 49));
    assert_eq!(rig.memory.reads, 0);
    assert_eq!(rig.failures(), [(3, 0, NAK_ACCESS)]);
    // its place is free again
    for i in 0..40 {
        rig.request(&Request::new(4, i, Kind::Add(1)).at(BASE + 8 * u64::from(i)));
        rig.run(40);
    }
    rig.run(600);
    assert_eq!(rig.packets().len(), 40);
}

/// The NAK waits for the answer of the atomic in front, and what is behind it does not run.
#[test]
fn an_atomic_without_its_right_is_answered_in_its_order() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (250, 250);
    rig.regions.list.push(short_region());
    let good = Request::new(3, 50, Kind::Add(1));
    let denied = Request::new(3, 51, Kind::Add(1)).with_key(0x77);
    let following = Request::new(3, 52, Kind::Add(1)).at(BASE + 8);
    for request in [&good, &denied, &following] {
        rig.request(request);
    }
    rig.request(&Request::read(3, 53, 64));
    rig.run(1000);
    let sent = rig.packets();
    assert_eq!(sent[..1], answer(&good, 0));
    let naks: Vec<_> = sent[1..]
        .iter()
        .map(|p| (p.psn, p.syndrome, p.msn))
        .collect();
    assert_eq!(naks, [(51, NAK_ACCESS, 50)]);
    assert_eq!((rig.memory.reads, rig.memory.writes), (1, 1));
    assert_eq!(rig.failures(), [(3, 0, NAK_ACCESS)]);
    assert_eq!(rig.finished().len(), 1);
    assert!(rig.pieces().is_empty());
    // a fresh start while the NAK waits: the next life is served
    rig.start_afresh(3);
    rig.request(&good);
    rig.request(&denied);
    rig.run(150);
    rig.start_afresh(3);
    let next = Request::new(3, 7, Kind::Add(1)).at(BASE + 16);
    rig.request(&next);
    rig.run(1000);
    assert_eq!(rig.packets().last(), answer(&next, 0).last());
    assert_eq!(rig.finished().len(), 1);
    assert!(rig.failures().is_empty());
}

#[test]
fn an_atomic_on_memory_that_cannot_be_read() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.unmapped = BASE + 4096;
    let good = Request::new(3, 50, Kind::Add(1));
    rig.request(&good);
    rig.request(&Request::new(3, 51, Kind::Add(1)).at(BASE + 4096));
    rig.run(400);
    let sent = rig.packets();
    assert_eq!(sent[..1], answer(&good, 0));
    assert_eq!(sent.len(), 2);
    assert!(sent[1].is_ack());
    assert_eq!(
        (sent[1].psn, sent[1].syndrome, sent[1].msn),
        (51, NAK_OPERATIONAL, 50)
    );
    assert_eq!(rig.memory.writes, 1);
    assert_eq!(rig.failures(), [(3, 0, NAK_OPERATIONAL)]);
    assert_eq!(rig.finished().len(), 1);
}

/// Of a queue pair between others, whose atomics are as they were; and a compare that fails writes nothing.
#[test]
fn an_atomic_on_memory_that_cannot_be_written() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.read_only = BASE + 4096;
    let swap = Kind::Swap {
        compare: 1,
        swap: 2,
    };
    let good = [
        Request::new(2, 50, Kind::Add(1)),
        Request::new(3, 50, Kind::Add(1)).at(BASE + 8),
        Request::new(3, 51, swap).at(BASE + 4096),
        Request::new(4, 50, Kind::Add(1)).at(BASE + 16),
    ];
    for request in &good {
        rig.request(request);
    }
    rig.request(&Request::new(3, 52, Kind::Add(1)).at(BASE + 4096));
    rig.request(&Request::new(5, 50, Kind::Add(1)).at(BASE + 24));
    rig.run(600);
    let sent = rig.packets();
    let (ends, others): (Vec<_>, Vec<_>) = sent.into_iter().partition(|packet| packet.is_ack());
    assert_eq!(others.len(), 5);
    assert!(others.iter().all(|packet| packet.value == 0));
    let ends: Vec<_> = ends.iter().map(|p| (p.psn, p.syndrome, p.msn)).collect();
    assert_eq!(ends, [(52, NAK_OPERATIONAL, 51)]);
    assert_eq!(rig.failures(), [(3, 0, NAK_OPERATIONAL)]);
    assert_eq!(rig.finished().len(), 5);
}

#[test]
fn what_waits_is_dropped_at_the_end_of_the_queue_pair() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.request(&Request::read(3, 50, 4096 * 1000).mtu(5));
    rig.request_after(&Request::new(3, 1050, Kind::Add(1)), 1, false);
    rig.ack(3, 1051, 1, 0x1f);
    rig.run(100);
    rig.rsp_flush(3);
    rig.run(10);
    rig.set_done(1);
    // another queue pair goes on
    let other = Request::read(4, 9, 3000);
    rig.request(&other);
    rig.run(300);
    let sent = rig.packets();
    let (of_4, of_3): (Vec<_>, Vec<_>) = sent.into_iter().partition(|packet| packet.qpn == 4);
    assert_eq!(of_4, answer(&other, 0));
    assert!(of_3.len() < 200, "{} packets", of_3.len());
    rig.run(1500);
    assert!(rig.packets().is_empty());
    // nothing is answered any more, and no failure is reported
    rig.request(&Request::read(3, 1051, 100));
    rig.ack(3, 1052, 1, 0x1f);
    rig.run(100);
    assert!(rig.packets().is_empty() && rig.failures().is_empty());
    assert_eq!(rig.memory.reads, 0);
    rig.start_afresh(3);
    rig.ack(3, 7, 1, 0x1f);
    rig.run(100);
    assert_eq!(rig.packets().len(), 1);
}

#[test]
fn a_lost_response_ends_its_queue_pair() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.lose(3, 49, 7);
    rig.run(20);
    assert!(rig.failures().is_empty(), "nothing was sent in this life");
    assert!(rig.packets().is_empty());
    let mut read = Request::read(3, 50, 4096 * 1000).mtu(5);
    read.incarnation = 1;
    rig.request(&read);
    rig.run(200);
    (0..3).for_each(|i| rig.lose(3, 55 + i, 8));
    rig.run(200);
    let sent = rig.packets();
    assert!(sent.len() < 400, "{} packets", sent.len());
    let naks: Vec<_> = sent.iter().filter(|packet| packet.is_ack()).collect();
    assert_eq!(naks.len(), 1, "one NAK");
    assert_eq!(
        (naks[0].psn, naks[0].syndrome, naks[0].msn),
        (55, NAK_OPERATIONAL, 8)
    );
    assert_eq!(rig.failures(), [(3, 1, NAK_OPERATIONAL)], "once");
    rig.run(500);
    assert!(rig.packets().is_empty());
}

/// While no packet leaves, and turns wait.
#[test]
fn losses_of_one_leave_room_for_those_of_others() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    leave(&mut rig, Pauses::new(1.0, 1));
    let qpns = 1..1 << Q;
    for qpn in qpns.clone() {
        let mut read = Request::read(qpn, 50, 4096 * 100).mtu(5);
        read.incarnation = 1;
        rig.request(&read);
    }
    rig.run(400);
    for _ in 0..40 {
        rig.lose(1, 55, 8);
    }
    qpns.clone().for_each(|qpn| rig.lose(qpn, 55, 8));
    leave(&mut rig, Pauses::NONE);
    rig.run(4000);
    let mut failed: Vec<_> = rig
        .failures()
        .into_iter()
        .map(|failure| failure.0)
        .collect();
    failed.sort_unstable();
    assert_eq!(failed, qpns.collect::<Vec<_>>());
}

/// A NAK that ends the queue pair leaves behind what was due before it; what comes behind it is dropped.
#[test]
fn nothing_follows_a_nak_that_ends_the_queue_pair() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let read = Request::read(3, 50, 3000);
    rig.request_after(&read, 1, false);
    rig.ack(3, 53, 6, NAK_OPERATIONAL);
    rig.request(&Request::read(3, 54, 100));
    rig.ack(3, 55, 8, 0x1f);
    rig.run(100);
    rig.set_done(1);
    rig.run(200);
    let sent = rig.packets();
    assert_eq!(sent[..3], answer(&read, 0)[..]);
    let last: Vec<_> = sent[3..].iter().map(|p| (p.psn, p.syndrome)).collect();
    assert_eq!(last, [(53, NAK_OPERATIONAL)]);
    rig.start_afresh(3);
    rig.ack(3, 7, 1, 0x1f);
    rig.run(100);
    assert_eq!(rig.packets().len(), 1);
}

/// Each atomic is over once, whether it ran or not, and those that do not run behind those that do.
#[test]
fn each_atomic_is_over_once() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.memory.latency = (200, 200);
    let add = |psn: u32| Request::new(3, psn, Kind::Add(1)).at(BASE + 8 * u64::from(psn));
    rig.request(&add(50));
    rig.request(&add(51).with_key(0x99));
    rig.request(&add(52));
    rig.request_after(&add(53), 1, false);
    rig.run(100);
    rig.set_done(1);
    rig.run(100);
    assert_eq!(
        (rig.over(3), rig.memory.reads),
        (0, 1),
        "the first one runs"
    );
    rig.run(400);
    assert_eq!(rig.over(3), 4);
    assert_eq!(rig.failures(), [(3, 0, NAK_ACCESS)]);
    // of a queue pair that is dead
    rig.request(&add(54));
    rig.run(20);
    assert_eq!(rig.over(3), 5);
    // a void token is none
    rig.request_after(&add(55), 1, true);
    rig.run(20);
    assert_eq!(rig.over(3), 5);
    // what waits at a fresh start, and at an end: one runs, 16 may run at most
    for halts in [false, true] {
        rig.start_afresh(3);
        rig.run(20);
        let before = rig.over(3);
        for i in 0..16 {
            let request = Request::new(4, 100 + i, Kind::Add(1));
            rig.request(&request.at(BASE + 4096));
        }
        rig.run(1000);
        rig.request(&add(7));
        rig.request_after(&add(8), 2, false);
        rig.run(100);
        let writes = rig.memory.writes;
        assert_eq!(rig.over(3), before, "no place is free");
        if halts {
            rig.rsp_flush(3);
        } else {
            rig.start_afresh(3);
        }
        rig.run(20);
        rig.set_done(2);
        rig.run(8000);
        assert_eq!(rig.over(3), (before + 2) % 32);
        assert_eq!(rig.over(4) % 16, 0);
        assert!(!rig.memory.values.contains_key(&(BASE + 64)));
        assert!(rig.memory.writes > writes);
        rig.set_done(1);
    }
}
