//! Classes that are closed: what of them waits, and for what.

use ferroce_sim::random::Pauses;

use super::request::{Packet, Request, answer};
use super::rig::{Rig, uneven};

/// Bits of all classes.
const ALL: u64 = 15;

fn of(packets: &[Packet], qpn: u32) -> Vec<Packet> {
    let of = packets.iter().filter(|packet| packet.qpn == qpn);
    of.cloned().collect()
}

#[test]
fn a_turn_of_a_class_that_closes_ends() {
    let mut rig = Rig::new(Pauses::NONE, uneven());
    let reads = [1, 2, 3, 5].map(|qpn| Request::read(qpn, 100, 60 * 1024));
    for wait in (0..140).step_by(7) {
        reads.iter().for_each(|read| rig.request(read));
        rig.run(wait);
        rig.close(ALL, 0);
        // what is cut leaves
        rig.run(200);
        let mut packets = rig.packets();
        rig.run(5000);
        assert_eq!(rig.packets(), [], "the classes are closed");
        rig.close(0, 0);
        rig.run(4000);
        packets.extend(rig.packets());
        for read in &reads {
            assert_eq!(of(&packets, read.qpn), answer(read, 0));
        }
        assert_eq!(rig.pieces().len(), packets.len());
        assert_eq!(rig.finished().len(), reads.len());
        for read in &reads {
            rig.start_afresh(read.qpn);
        }
        rig.run(100);
    }
}

#[test]
fn a_closed_class_holds_up_no_other() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let [closed, other] = [1, 2].map(|qpn| Request::read(qpn, 100, 200 * 1024));
    rig.close(1 << 1, 1 << 1);
    rig.request(&closed);
    rig.run(100);
    rig.request(&other);
    rig.ack(6, 5, 1, 0);
    rig.ack(5, 5, 1, 0);
    rig.run(2000);
    let packets = rig.packets();
    assert_eq!(of(&packets, 2), answer(&other, 0));
    assert_eq!(of(&packets, 6).len(), 1);
    assert_eq!(packets.len(), answer(&other, 0).len() + 1);
    rig.close(0, 0);
    rig.run(2000);
    let packets = rig.packets();
    assert_eq!(of(&packets, 1), answer(&closed, 0));
    assert_eq!(of(&packets, 5).len(), 1);
}

#[test]
fn acknowledgements_of_a_class_that_waits_coalesce() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.close(ALL, ALL);
    for psn in 0..100 {
        rig.ack(3, psn, psn, 0);
        rig.ack(4, psn, psn, 0);
    }
    rig.run(1000);
    assert_eq!(rig.packets(), []);
    rig.close(ALL, 0);
    rig.run(200);
    let packets = rig.packets();
    let mut last: Vec<_> = packets.iter().map(|p| (p.qpn, p.psn)).collect();
    last.sort_unstable();
    assert_eq!(last, [(3, 99), (4, 99)]);
}

#[test]
fn an_acknowledgement_waits_behind_a_response_that_waits() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let read = Request::read(3, 100, 5000);
    rig.close(ALL, 0);
    rig.request(&read);
    rig.ack(3, 100 + read.packets(), 2, 0);
    rig.run(1000);
    assert_eq!(rig.packets(), []);
    rig.close(0, 0);
    rig.run(300);
    let packets = rig.packets();
    assert_eq!(packets[..packets.len() - 1], answer(&read, 0));
    assert!(packets[packets.len() - 1].is_ack());
}

#[test]
fn a_number_that_waits_may_start_afresh_in_another_class() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.close(1 << 3, 1 << 3);
    rig.request(&Request::read(3, 100, 5000));
    rig.run(100);
    rig.start_afresh(3);
    // to the port itself: in no class
    rig.set_mac(0);
    rig.path(3, false, false);
    rig.set_mac(1);
    let read = Request::read(3, 700, 5000);
    rig.request(&read);
    rig.run(4300);
    assert_eq!(rig.packets(), answer(&read, 0));
    assert_eq!(rig.finished().len(), 1);
}

#[test]
fn a_turn_that_waits_keeps_its_rate() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.rate(3, 1000);
    let read = Request::read(3, 100, 20 * 1024);
    rig.close(ALL, ALL);
    rig.request(&read);
    rig.run(100_000);
    assert_eq!(rig.packets(), []);
    rig.close(0, 0);
    let mut left = Vec::new();
    for _ in 0..60_000 {
        rig.step();
        left.extend(rig.left());
    }
    let took = left[left.len() - 1].0 - left[0].0;
    // 1 Gb/s: 2 cycles a byte; a turn may begin or end the time that is measured
    let expected = 2 * (read.packets() - 1) as u64 * (1024 + 64);
    assert!(
        took.abs_diff(expected) < 4500,
        "{took} cycles, expected {expected}"
    );
}
