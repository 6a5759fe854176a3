//! READs that come again while answers wait.

use ferroce_sim::random::Pauses;

use super::request::{Request, answer};
use super::rig::{BASE, Rig};

/// A READ of `packets`, of which `left` descriptors came.
fn answering(packets: u32, left: u64) -> (Rig, Request) {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(0.5, 8));
    let read = Request::read(3, 50, 1024 * packets);
    begin(&mut rig, &read, left);
    (rig, read)
}

/// A request, until `left` of its descriptors came.
fn begin(rig: &mut Rig, read: &Request, left: u64) {
    rig.request(read);
    let until = rig.desc.count() + left;
    while rig.desc.count() < until {
        rig.step();
    }
}

#[test]
fn a_later_duplicate_is_dropped_while_its_read_is_answered() {
    let (mut rig, read) = answering(300, 150);
    // behind the turn, and before the packet that is due next
    rig.request(&Request::read(3, 340, 1024).at(BASE + 290 * 1024).again());
    rig.request(&Request::read(3, 60, 1024).at(BASE + 10 * 1024).again());
    rig.run(30_000);
    let sent = rig.packets();
    assert_eq!(sent[..300], answer(&read, 0));
    assert_eq!(sent.len(), 301);
    assert_eq!(sent[300].psn, 60);
}

/// A response early in a turn is lost: its requester asks again before the turn is over.
#[test]
fn what_left_in_the_turn_under_way_is_answered_again() {
    // what else it has is left to the repeat
    for packets in [64, 300] {
        let (mut rig, read) = answering(packets, 10);
        let rest = Request::read(3, 51, 1024 * (packets - 1));
        rig.request(&rest.at(BASE + 1024).again());
        rig.run(30_000);
        let sent = rig.packets();
        assert_eq!(sent[..64], answer(&read, 0)[..64]);
        let psns: Vec<_> = sent[64..].iter().map(|packet| packet.psn).collect();
        assert_eq!(psns, Vec::from_iter(51..50 + packets));
        assert_eq!(rig.finished(), [(3, 0)]);
    }
}

/// Likewise of a repeat: three READs are answered; all but the first packet is asked for again, then all but 6. What is left of
/// the first repeats does not leave.
#[test]
fn what_left_of_a_repeat_is_answered_again() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(0.5, 8));
    let of =
        |psn: u32, packets| Request::read(3, psn, 1024 * packets).at(BASE + 1024 * u64::from(psn));
    let reads = [of(64, 64), of(128, 64), of(192, 64)];
    reads.iter().for_each(|read| rig.request(read));
    rig.run(10_000);
    assert_eq!(rig.packets().len(), 192);
    for (psn, left) in [(65, 10), (70, 0)] {
        begin(&mut rig, &of(psn, 128 - psn).again(), left);
        rig.request(&reads[1].again());
        rig.request(&reads[2].again());
    }
    rig.run(20_000);
    let psns: Vec<_> = rig.packets().iter().map(|packet| packet.psn).collect();
    assert_eq!(psns, Vec::from_iter((65..128).chain(70..256)));
}

/// Its requester goes back, and waits for the answer to the lost READ: what is asked for again is answered once.
#[test]
fn duplicates_are_answered_in_place_of_what_waits() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let reads: Vec<_> = (0..4).map(|i| Request::read(3, 50 + i, 64)).collect();
    rig.request_after(&reads[0], 0, false);
    for read in &reads[1..] {
        rig.request_after(read, 1, false);
    }
    rig.run(200);
    assert_eq!(rig.packets().len(), 1);
    for read in &reads {
        rig.request_after(&read.again(), 1, false);
    }
    rig.run(200);
    rig.set_done(1);
    rig.run(1500);
    let psns: Vec<_> = rig.packets().iter().map(|packet| packet.psn).collect();
    assert_eq!(psns, [50, 51, 52, 53]);
}

#[test]
fn duplicates_leave_room_for_new_requests() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    // each before the one before, so none is due
    for i in 0..40 {
        rig.request_after(&Request::read(3, 1000 - 10 * i, 64).again(), 1, false);
    }
    let reads: Vec<_> = (0..16).map(|i| Request::read(3, 1001 + i, 64)).collect();
    for read in &reads {
        rig.request_after(read, 1, false);
    }
    rig.run(200);
    rig.set_done(1);
    rig.run(1500);
    let sent = rig.packets();
    assert_eq!(sent.len(), 32, "16 duplicates and 16 new ones");
    let expected: Vec<_> = reads.iter().flat_map(|read| answer(read, 0)).collect();
    assert_eq!(sent[16..], expected);
}

/// A duplicate of what comes later leaves a READ what it has before that.
#[test]
fn what_is_not_asked_for_again_is_answered() {
    let (mut rig, _) = answering(300, 10);
    // the first turn ends with 113, the second with 177
    rig.request(&Request::read(3, 150, 1024 * 200).again());
    rig.run(30_000);
    let psns: Vec<_> = rig.packets().iter().map(|packet| packet.psn).collect();
    assert_eq!(psns, Vec::from_iter((50..178).chain(150..350)));
}
