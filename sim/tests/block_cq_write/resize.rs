//! Queues that change their ring while completions come.

use ferroce_sim::random::{Delay, Pauses};

use super::rig::{RECV, Rig, SEND};

fn quiet() -> Rig {
    Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE)
}

/// The bench compares each place and phase with those of the ring that the entry belongs to.
#[test]
fn entries_go_on_in_the_new_ring() {
    for [from, to] in [[2, 4], [4, 2], [1, 6], [6, 1], [3, 3]] {
        let mut rig = quiet();
        rig.open(3, from);
        let mut written = 0;
        for round in 0..40 {
            rig.push(round % 2, 3);
            rig.settle();
            written += 1;
            rig.consume(3, u32::from(round % 3 > 0));
            if rig.rings[3].written - rig.rings[3].consumed > 1 {
                rig.consume(3, 1);
            }
            if round % 7 == 6 {
                let size = if round % 2 == 0 { to } else { from };
                assert!(rig.resize(3, size));
            }
        }
        assert_eq!((rig.rings[3].written, rig.losses), (written, 0));
    }
}

#[test]
fn exactly_what_fits_is_taken() {
    let mut rig = quiet();
    rig.open(1, 4);
    for _ in 0..9 {
        rig.push(SEND, 1);
    }
    rig.settle();
    assert!(!rig.resize(1, 3), "9 wait");
    assert!(rig.resize(1, 4), "a refused one has changed nothing");
    rig.consume(1, 1);
    assert!(rig.resize(1, 3), "8 wait");
    // it is full, and the host that takes one has room for one
    rig.consume(1, 1);
    rig.push(RECV, 1);
    rig.settle();
    assert_eq!((rig.rings[1].written, rig.losses), (10, 0));
    rig.push(RECV, 1);
    rig.settle();
    assert_eq!(
        (rig.rings[1].written, rig.losses, rig.overflows),
        (10, 1, 1)
    );
    assert!(!rig.resize(1, 5), "it has overflowed");
}

#[test]
fn a_queue_that_is_not_there_is_not_resized() {
    let mut rig = quiet();
    assert!(!rig.resize(2, 5));
    rig.push(SEND, 2);
    rig.settle();
    assert_eq!((rig.losses, rig.overflows), (1, 0));
}

/// A token that waits at a full ring for a look at the record goes on in the longer ring.
#[test]
fn room_comes_with_the_ring() {
    for delay in [0, 1, 2, 3, 20, 80] {
        let mut rig = quiet();
        rig.recorder.latency = Delay::fixed(60);
        rig.open(0, 2);
        for _ in 0..6 {
            rig.push(SEND, 0);
        }
        while rig.rings[0].written < 4 {
            rig.step();
        }
        (0..delay).for_each(|_| rig.step());
        if rig.resize(0, 3) {
            rig.settle();
            assert_eq!((rig.rings[0].written, rig.losses), (6, 0));
        }
    }
}

/// Armed before, reported after.
#[test]
fn what_was_armed_stays_so() {
    for any in [true, false] {
        let mut rig = quiet();
        rig.open(5, 3);
        rig.push_as(RECV, 5, Some((false, 0)));
        rig.settle();
        rig.arm(5, any, 1);
        (0..20).for_each(|_| rig.step());
        assert!(rig.resize(5, 5));
        rig.push_as(RECV, 5, Some((true, 0)));
        rig.settle();
        assert_eq!(rig.reports.events(5), [1, 0]);
        // an earlier solicited completion counts for a later arm
        assert!(rig.resize(5, 2));
        rig.arm(5, false, 1);
        rig.settle();
        assert_eq!(rig.reports.events(5), [2, 0]);
    }
}
