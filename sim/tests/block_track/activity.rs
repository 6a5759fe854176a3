//! `track`: it is busy from the first cycle of what comes to the last one of its placement, and at no other time.

use super::rig::{Change, Rig};
use super::track::{ACK, ack, rig};

/// Runs until all is placed: it is busy in every cycle from `from` on, and not behind the last placement.
fn busy_from(rig: &mut Rig, from: u64) {
    rig.settle();
    let last = *rig.cycles.last().expect("a placement");
    let cycles: Vec<_> = (from..=last).collect();
    assert_eq!(rig.busy_cycles(), cycles);
}

#[test]
fn busy_while_responses_are_here() {
    let mut rig = rig();
    rig.settle();
    assert!(rig.busy_cycles().is_empty(), "nothing came");
    // alone, and back to back
    for count in [1, 2, 7] {
        let from = rig.bench.cycle();
        for psn in 0..count {
            rig.respond(3, ack(psn, ACK));
        }
        busy_from(&mut rig, from);
    }
}

/// A failure is a pulse, and waits from the next cycle on.
#[test]
fn busy_while_failures_are_here() {
    let mut rig = rig();
    // alone, back to back, and one that waits for the one before it
    for qpns in [&[3][..], &[4, 5], &[6, 6]] {
        let from = rig.bench.cycle() + 1;
        for &qpn in qpns {
            rig.control(qpn, Change::Fails);
        }
        busy_from(&mut rig, from);
    }
}

#[test]
fn busy_while_a_response_waits_for_a_failure() {
    let mut rig = rig();
    let from = rig.bench.cycle();
    rig.control(3, Change::Fails);
    rig.respond(4, ack(1, ACK));
    busy_from(&mut rig, from);
}
