//! What armed queues report.

use ferroce_proto::abi::eq::event;
use ferroce_sim::random::Pauses;

use super::rig::{C, RECV, Rig, SEND};

fn quiet() -> Rig {
    Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE)
}

/// Pushes a token and waits until it landed. Its CQE is solicited, or failed, or neither.
fn complete(rig: &mut Rig, cqn: u16, solicited: bool, status: u8) {
    rig.push_as(RECV, cqn, Some((solicited, status)));
    rig.settle();
}

#[test]
fn a_queue_armed_before_reports_the_next_entry_once() {
    let mut rig = quiet();
    rig.open(3, 4);
    complete(&mut rig, 3, true, 0);
    assert_eq!(rig.reports.events(3), [0, 0], "not armed");
    rig.arm(3, true, 1);
    rig.settle();
    assert_eq!(rig.reports.events(3), [0, 0], "nothing is new");
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [1, 0]);
    complete(&mut rig, 3, true, 0);
    assert_eq!(rig.reports.events(3), [1, 0], "not armed again");
}

#[test]
fn a_queue_armed_late_reports_at_once() {
    let mut rig = quiet();
    rig.open(3, 4);
    for i in 0..3 {
        complete(&mut rig, 3, false, 0);
        rig.arm(3, true, i);
        rig.settle();
        assert_eq!(rig.reports.events(3), [i + 1, 0]);
    }
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [3, 0]);
}

#[test]
fn solicited_means_solicited_or_failed() {
    let mut rig = quiet();
    rig.open(3, 4);
    rig.arm(3, false, 0);
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [0, 0]);
    complete(&mut rig, 3, true, 0);
    assert_eq!(rig.reports.events(3), [1, 0]);
    rig.arm(3, false, 2);
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [1, 0]);
    complete(&mut rig, 3, false, 5);
    assert_eq!(rig.reports.events(3), [2, 0]);
    // of four entries the second and the fourth count
    complete(&mut rig, 3, false, 0);
    rig.arm(3, false, 4);
    rig.settle();
    assert_eq!(rig.reports.events(3), [2, 0]);
    rig.arm(3, false, 3);
    rig.settle();
    assert_eq!(rig.reports.events(3), [3, 0]);
}

/// An arm reports a solicited entry that the host has not taken, whatever a look at its record read since it was written, and
/// whatever the doorbell of another queue asked for before.
#[test]
fn a_look_leaves_solicited_entries_that_the_host_has_not_taken() {
    for taken in 0..3 {
        let mut rig = quiet();
        rig.open(3, 2);
        rig.arm(9, false, 100);
        complete(&mut rig, 3, true, 0);
        complete(&mut rig, 3, true, 0);
        rig.consume(3, taken);
        // the ring is half full: this one looks
        complete(&mut rig, 3, true, 0);
        rig.arm(3, false, taken);
        rig.settle();
        assert_eq!(rig.reports.events(3), [1, 0], "{taken} are taken");
    }
}

/// An order for any entry holds until it is met; no order at all changes nothing; both are the stronger.
#[test]
fn orders_add_up() {
    let mut rig = quiet();
    rig.open(3, 4);
    rig.arm(3, true, 0);
    rig.arm(3, false, 0);
    rig.settle();
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [1, 0], "any, then solicited");
    complete(&mut rig, 3, true, 0);
    assert_eq!(rig.reports.events(3), [1, 0], "both are met");
    rig.arm(3, false, 2);
    rig.arm(3, true, 2);
    rig.ring(3, false, false, 0);
    rig.settle();
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [2, 0], "solicited, then any");
    rig.ring(3, true, true, 3);
    rig.settle();
    complete(&mut rig, 3, false, 0);
    assert_eq!(rig.reports.events(3), [3, 0], "both at once");
}

/// Indices are compared modulo 2^24.
#[test]
fn an_index_ahead_of_the_entries_is_not_late() {
    let mut rig = quiet();
    rig.open(3, 4);
    complete(&mut rig, 3, true, 0);
    rig.arm(3, true, 2);
    rig.arm(3, false, 1 << 23);
    rig.settle();
    assert_eq!(rig.reports.events(3), [0, 0]);
    rig.open(3, 4);
    complete(&mut rig, 3, true, 0);
    rig.arm(3, true, 0xff_fff0);
    rig.settle();
    assert_eq!(rig.reports.events(3), [1, 0]);
}

#[test]
fn a_closed_queue_has_nothing_to_report() {
    let mut rig = quiet();
    for cqn in 0..1 << C {
        rig.arm(cqn, true, 0xff_ffff);
    }
    rig.settle();
    rig.open(2, 4);
    rig.push(SEND, 2);
    rig.settle();
    assert!(rig.reports.seen.is_empty(), "armed before it was opened");
    rig.arm(2, true, 1);
    rig.settle();
    rig.open(2, 4);
    rig.push(SEND, 2);
    rig.settle();
    assert!(rig.reports.seen.is_empty(), "opened afresh since");
}

#[test]
fn an_overflow_is_reported_once() {
    let mut rig = quiet();
    rig.open(1, 2);
    for _ in 0..7 {
        rig.push(SEND, 1);
    }
    rig.settle();
    assert_eq!(rig.reports.events(1), [0, 1]);
    assert_eq!(rig.reports.seen[0].1, event::CQ_ERROR);
    // what is there can be asked for still
    rig.arm(1, true, 3);
    rig.settle();
    assert_eq!(rig.reports.events(1), [1, 1]);
}

/// The host must find the CQE when it hears of it.
#[test]
fn a_report_waits_until_the_entry_is_in_memory() {
    let mut rig = quiet();
    rig.open(5, 4);
    rig.arm(5, true, 0);
    rig.reports.hold = true;
    rig.push(SEND, 5);
    (0..500).for_each(|_| rig.step());
    assert!(rig.reports.seen.is_empty() && rig.seen.len() == 1);
    // the counts may run on while it waits to be taken
    rig.reports.hold = false;
    rig.settle();
    assert_eq!(rig.reports.events(5), [1, 0]);
}

/// Reports that wait for their taker hold up neither CQEs nor doorbells, and are not repeated.
#[test]
fn reports_hold_up_nothing() {
    let mut rig = quiet();
    for cqn in 0..1 << C {
        rig.open(cqn, 12);
        rig.arm(cqn, true, 0);
    }
    rig.deafen(true);
    for round in 1..20 {
        for cqn in 0..1 << C {
            rig.push((cqn % 2).into(), cqn);
        }
        rig.settle();
        for cqn in 0..1 << C {
            rig.arm(cqn, true, round);
        }
        (0..100).for_each(|_| rig.step());
        assert_eq!(rig.doorbells(), 0);
    }
    rig.deafen(false);
    rig.settle();
    for cqn in 0..1 << C {
        let [events, _] = rig.reports.events(cqn);
        assert!((1..=2).contains(&events), "{events} events of {cqn}");
    }
}

/// A report goes where the queue points when it is taken, so that a new owner misses none.
#[test]
fn a_queue_opened_afresh_reports_to_its_new_event_queue() {
    let mut rig = quiet();
    rig.open(6, 4);
    rig.open(7, 4);
    rig.deafen(true);
    for cqn in [7, 6] {
        rig.arm(cqn, true, 0);
        rig.push(SEND, cqn);
    }
    rig.settle();
    (0..100).for_each(|_| rig.step());
    rig.open(6, 4);
    rig.arm(6, true, 0);
    rig.push(SEND, 6);
    rig.settle();
    rig.deafen(false);
    // the rig compares event queues
    rig.settle();
    let of_6 = rig.reports.seen.iter().filter(|seen| seen.2 == 6);
    assert!(of_6.count() >= 1);
}

/// Doorbells without end leave every second operation to completions.
#[test]
fn doorbells_do_not_stop_completions() {
    let mut rig = quiet();
    rig.open(3, 12);
    for _ in 0..2000 {
        rig.arm(9, true, 0);
    }
    for _ in 0..200 {
        rig.push(SEND, 3);
    }
    let start = rig.bench.cycle();
    while rig.seen.len() < 200 {
        rig.step();
        assert!(rig.bench.cycle() - start < 900, "{} CQEs", rig.seen.len());
    }
}

#[test]
fn an_event_comes_soon() {
    let mut rig = quiet();
    rig.open(3, 4);
    rig.push(SEND, 3);
    rig.settle();
    let start = rig.bench.cycle();
    rig.arm(3, true, 0);
    rig.settle();
    let latency = rig.reports.seen[0].3 - start;
    assert!(latency <= 16, "{latency} cycles from doorbell to event");
}
