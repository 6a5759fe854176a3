//! Completions that wait: for payload writes, for accesses of peers.

use ferroce_sim::random::{Delay, Pauses};

use super::rig::{OLD, RECV, Rig, SEND};
use super::uneven;

/// The count of bursts done may run on by more than its window while a completion that is due is not taken.
#[test]
fn a_fence_once_passed_stays_so() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::new(1.0, 1));
    rig.open(0, 10);
    for _ in 0..400 {
        rig.push(SEND, 0);
    }
    (0..1000).for_each(|_| rig.step());
    assert!(rig.sources[SEND].sent() < 400, "CQEs are not taken");
    rig.push(RECV, 0);
    for _ in 0..40 {
        rig.step();
        rig.issued += 1000;
        rig.done = rig.issued;
    }
    rig.slow(Pauses::NONE);
    rig.settle();
    assert_eq!(rig.seen.len(), 401);
}

/// A queue pair may complete its next request any number of bursts after its READ.
#[test]
fn a_fence_is_passed_however_old_it_is() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.open(0, 6);
    for age in [0, 1, 100, 0x7fff, 0x8000, 0x8001, 0xff00, 0xffff] {
        rig.issued += 0x1_0000;
        rig.done = rig.issued;
        let before = rig.seen.len();
        rig.push_old(0, rig.issued - age);
        (0..60).for_each(|_| rig.step());
        assert_eq!(rig.seen.len(), before + 1, "{age} bursts ago");
        rig.consume(0, 1);
    }
    rig.settle();
}

/// Accesses of peers under the key, begun before its invalidation, are over by the completion.
#[test]
fn a_completion_that_invalidates_waits_for_accesses() {
    for ending in [255, 40, 3] {
        let mut rig = Rig::new::<512, 64>(uneven(), uneven());
        rig.open(0, 10);
        rig.accessing = 30;
        rig.ending = ending;
        for _ in 0..700 {
            rig.push(RECV, 0);
            rig.step();
        }
        rig.accessing = 0;
        rig.settle();
        assert_eq!(rig.seen.len(), 700);
    }
    // what invalidates nothing does not wait
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.open(0, 6);
    rig.accesses[1][0] += 1;
    rig.ending = 0;
    rig.push_invalidating(0, false);
    rig.push_invalidating(0, true);
    (0..200).for_each(|_| rig.step());
    assert_eq!((rig.seen.len(), rig.pending()), (1, 1));
    assert!(rig.is_busy());
    rig.ending = 255;
    rig.settle();
    assert_eq!(rig.seen.len(), 2);
}

/// Atomics of its queue pair before a completion are over by then.
#[test]
fn a_completion_behind_atomics_waits_for_them() {
    for ending in [255, 100, 30] {
        let mut rig = Rig::new::<512, 64>(uneven(), uneven());
        rig.open(0, 10);
        rig.ending_atomics = ending;
        for _ in 0..300 {
            let rng = rig.bench.rng();
            let (before, more) = (rng.u64(..100), rng.u64(..17));
            if rng.u8(..4) == 0 {
                rig.set_atomics(before + more, before);
            }
            rig.push(RECV, 0);
            rig.step();
        }
        rig.settle();
        assert_eq!(rig.seen.len(), 300);
    }
    // sends go on, and what is behind nothing waits for no answer
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.open(0, 6);
    rig.ending_atomics = 0;
    rig.push(RECV, 0);
    (0..100).for_each(|_| rig.step());
    assert_eq!(rig.seen.len(), 1);
    rig.set_atomics(33, 32);
    rig.push(RECV, 0);
    rig.push(SEND, 0);
    (0..200).for_each(|_| rig.step());
    assert_eq!((rig.seen.len(), rig.pending()), (2, 1));
    assert!(rig.is_busy());
    rig.ending_atomics = 255;
    rig.settle();
    assert_eq!(rig.seen.len(), 3);
}

#[test]
fn payload_that_is_not_there_holds_only_what_has_a_fence() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.open(0, 6);
    rig.issued += 1;
    rig.push(RECV, 0);
    for _ in 0..20 {
        rig.push(SEND, 0);
    }
    (0..200).for_each(|_| rig.step());
    assert_eq!((rig.seen.len(), rig.pending()), (20, 1));
    assert!(rig.is_busy());
    rig.settle();
    assert_eq!(rig.seen.len(), 21);
}

/// Completions behind the count from which on payload of their queue pair was refused are in error, and are reported.
#[test]
fn refused_payload() {
    let mut rig = Rig::new::<512, 64>(uneven(), uneven());
    rig.fenced_sends = true;
    let mut rng = rig.bench.rng().fork();
    rig.open(3, 12);
    for _ in 0..800 {
        rig.issued += rng.u64(..3);
        let near = rig.issued - 2 + rng.u64(..4);
        let since = near + if rng.u8(..4) == 0 { OLD } else { 0 };
        rig.push_refused(rng.usize(..2), 3, since);
        rig.done += rng.u64(..=rig.issued - rig.done);
        (0..3).for_each(|_| rig.step());
    }
    rig.settle();
    assert!(rig.spoiled.len() == 800 && rig.due_refusals.is_empty());
    assert_eq!(rig.losses, 0);
}

/// Also those that wait for room in their ring.
#[test]
fn refused_payload_at_a_full_ring() {
    for input in [RECV, SEND] {
        let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
        rig.recorder.latency = Delay::fixed(60);
        rig.open(1, 2);
        (0..4).for_each(|_| _ = rig.push(SEND, 1));
        rig.settle();
        rig.fenced_sends = true;
        for _ in 0..40 {
            // the card hears of the room by the look that the completion waits for
            rig.consume(1, 1);
            rig.push_refused(input, 1, rig.issued);
            while rig.pending() > 0 {
                rig.step();
            }
        }
        rig.settle();
        assert_eq!((rig.losses, rig.rings[1].written), (0, 44));
        assert!(rig.due_refusals.is_empty(), "{:?}", rig.due_refusals);
    }
}
