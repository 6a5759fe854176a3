//! A wire that stands: what was checked is accessed all the same, so that a completion may wait for it.

use ferroce_sim::bench::StreamSink;
use ferroce_sim::random::Pauses;

use super::request::{Kind, Request, answer};
use super::rig::{BASE, Rig, uneven};

/// A rig whose packets do not leave.
fn standing() -> Rig {
    let mut rig = Rig::new(uneven(), Pauses::NONE);
    leave(&mut rig, Pauses::new(1.0, 1));
    rig
}

pub(crate) fn leave(rig: &mut Rig, pauses: Pauses) {
    rig.desc = StreamSink::new(rig.bench.dut(), "desc", pauses).expect("a stream out");
}

#[test]
fn a_read_that_was_checked_is_read() {
    let mut rig = standing();
    rig.store.patience = 40;
    rig.store.roomy = 100;
    let mut requests = Vec::new();
    for (qpn, len) in [(1, 9000), (2, 64), (3, 700), (4, 20_000), (5, 1), (6, 0)] {
        let key = if qpn == 3 { 0x99 } else { super::rig::KEY };
        requests.push(Request::read(qpn, 0, len).with_key(key));
    }
    requests.iter().for_each(|request| rig.request(request));
    rig.run(2000);
    let [begun, over, ..] = rig.store.accesses;
    assert!(begun > 8, "{begun} packets are read though none leaves");
    assert_eq!(over, begun);
    assert!(rig.packets().is_empty());
    // the others come when the wire takes them
    leave(&mut rig, Pauses::NONE);
    rig.run(3000);
    let sent = rig.packets();
    for request in requests.iter().filter(|request| request.qpn != 3) {
        let of: Vec<_> = sent
            .iter()
            .filter(|packet| packet.qpn == request.qpn)
            .copied()
            .collect();
        assert_eq!(of, answer(request, 0));
    }
    let [begun, over, ..] = rig.store.accesses;
    assert_eq!(begun, 9 + 1 + 1 + 20 + 1, "a packet of 1024 bytes each");
    assert_eq!(over, begun);
}

#[test]
fn atomics_of_one_address_do_not_wait_for_each_others_answers() {
    let mut rig = standing();
    for qpn in 0..12 {
        rig.request(&Request::new(qpn, 5, Kind::Add(1 << qpn)).at(BASE));
    }
    rig.run(12 * 160);
    assert!(rig.packets().is_empty());
    assert_eq!(rig.memory.values[&BASE], (1 << 12) - 1);
    assert_eq!(rig.store.accesses[2..], [12, 12]);
    leave(&mut rig, Pauses::NONE);
    rig.run(100);
    let mut sum = 0;
    for packet in rig.packets() {
        assert_eq!(packet.value, sum);
        sum += 1 << packet.qpn;
    }
    assert_eq!(sum, (1 << 12) - 1);
}

/// Each runs once its fence is passed: behind a READ of its own, behind READs of others, behind answers that do not leave.
#[test]
fn atomics_do_not_wait_for_what_is_answered_before_them() {
    let mut rig = standing();
    let place = |qpn: u32, number: u32| BASE + u64::from(16 * qpn + number) * 8;
    let mut requests = Vec::new();
    for qpn in 0..16 {
        if qpn % 2 == 0 {
            requests.push(Request::read(qpn, 0, 20_000));
        }
    }
    for number in 0..15 {
        for qpn in 0..16 {
            let request = Request::new(qpn, 20 + number, Kind::Add(1));
            requests.push(request.at(place(qpn, number)));
        }
    }
    requests.iter().for_each(|request| rig.request(request));
    rig.run(10_000);
    assert!(rig.packets().is_empty() && rig.finished().is_empty());
    assert_eq!(rig.memory.writes, 15 * 16);
    assert_eq!(rig.store.accesses[2..], [15 * 16; 2]);
    assert!((0..16).all(|qpn| rig.over(qpn) == 15));
    // the answers come when the wire takes them
    leave(&mut rig, Pauses::NONE);
    rig.run(6000);
    let sent = rig.packets();
    for qpn in 0..16 {
        let of: Vec<_> = sent.iter().filter(|p| p.qpn == qpn).copied().collect();
        let due = requests.iter().filter(|request| request.qpn == qpn);
        let due: Vec<_> = due.flat_map(|request| answer(request, 0)).collect();
        assert_eq!(of, due);
    }
    assert_eq!(rig.finished().len(), requests.len());
}

/// As many acknowledgements of others as tokens allow, while one packet in 33 cycles leaves.
#[test]
fn responses_leave_beside_acknowledgements() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    leave(&mut rig, Pauses::new(0.97, 1));
    for psn in 0..20_000 {
        rig.ack(4 + psn % 12, psn, psn, 0x1f);
        if psn % 500 == 400 {
            rig.ack(3, 10 * psn, 1, 0x1f);
            rig.request(&Request::read(3, 10 * psn + 1, 3000));
        }
    }
    rig.run(10_000);
    let of_3 = rig.packets().into_iter().filter(|packet| packet.qpn == 3);
    let psns: Vec<_> = of_3.map(|packet| packet.psn).collect();
    assert!(psns.len() > 12, "{psns:?}");
    assert!(psns.is_sorted(), "{psns:?}");
}
