//! The writer of event queues as Verilog, against rings in plain Rust. `$FERROCE_SEED` seeds it.
mod irq;
mod qp_events;
#[path = "../block_cq_write/record.rs"]
mod record;
mod rig;

use ferroce_proto::abi::eq::WAITING;
use ferroce_sim::random::{Chance, Delay, Pauses};

use rig::{E, Rig};

/// Random pauses.
fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

/// A 512-bit block whose neighbours never pause.
fn quiet() -> Rig {
    Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE)
}

/// Events over all queues, a host that sleeps now and then, commands in between.
fn random<const W: usize, const K: usize>(idle: Pauses, back: Pauses, failure: f64, cycles: u64) {
    let mut rig = Rig::new::<W, K>(idle, back);
    rig.recorder.failure = Chance::new(failure);
    rig.irq.chance = Chance::new(0.1);
    let mut rng = rig.bench.rng().fork();
    let queues = 1 << E;
    for eqn in 0..queues {
        rig.open(eqn, 1 + eqn % 5, u16::from(eqn % 4));
    }
    let mut commands = 0;
    for cycle in 0..cycles {
        let eqn = rng.u8(..queues);
        if rig.events_waiting() < 8 && rig.rings[usize::from(eqn)].expected.len() < 40 {
            rig.push(eqn);
        }
        let eqn = rng.u8(..queues);
        let ring = &rig.rings[usize::from(eqn)];
        if ring.open && cycle / 2000 % 8 != u64::from(eqn) && rng.u8(..) < 40 {
            let n = rng.u32(..=ring.written - ring.consumed);
            rig.consume(eqn, n);
        }
        if cycle % 1500 == 1499 {
            let eqn = rng.u8(..queues);
            if rng.u8(..4) == 0 {
                rig.close(eqn);
            } else {
                rig.open(eqn, rng.u8(1..6), rng.u16(..4));
            }
            commands += 1;
        }
        rig.step();
    }
    rig.settle();
    let seen = rig.seen.len() as u64;
    assert!(seen > cycles / 100, "{seen} EQEs");
    assert!(rig.interrupts.len() > 50 && commands > 5);
}

#[test]
fn random_events_at_512_bits() {
    random::<512, 64>(Pauses::NONE, Pauses::NONE, 0.0, 30_000);
    random::<512, 64>(uneven(), uneven(), 0.3, 30_000);
}

#[test]
fn random_events_at_64_bits() {
    random::<64, 8>(Pauses::NONE, Pauses::NONE, 0.0, 30_000);
    random::<64, 8>(uneven(), uneven(), 0.3, 30_000);
}

#[test]
fn widths_between() {
    random::<256, 32>(uneven(), uneven(), 0.0, 12_000);
    random::<128, 16>(uneven(), uneven(), 0.0, 12_000);
}

#[test]
fn an_event_in_eight_cycles() {
    let mut rig = quiet();
    rig.open(2, 12, 0);
    for _ in 0..200 {
        rig.push(2);
    }
    rig.settle();
    let cycles = rig.seen[199].2 - rig.seen[0].2;
    assert!(cycles <= 8 * 199 + 8, "{cycles} cycles");
}

#[test]
fn an_event_takes_the_promised_cycles() {
    for delay in 0..9 {
        let mut rig = quiet();
        rig.response = Delay::fixed(20);
        rig.open(5, 4, 0);
        (0..delay).for_each(|_| rig.step());
        let start = rig.bench.cycle();
        rig.push(5);
        rig.settle();
        let latency = rig.seen[0].2 - start;
        assert!((5..=11).contains(&latency), "{latency} cycles to the EQE");
        let response = rig.rings[5].raised[0] - (rig.seen[0].2 + 20);
        assert!(response <= 4 * (1 << E) + 4, "{response} to the interrupt");
    }
}

#[test]
fn entries_wrap_with_their_phase() {
    let mut rig = quiet();
    rig.open(3, 1, 0);
    for _ in 0..30 {
        rig.push(3);
        rig.settle();
    }
    assert_eq!(rig.rings[3].written, 30);
}

/// A queue that the host does not empty loses none of 64 events, keeps its order and holds up no other.
#[test]
fn a_full_ring_waits_for_the_host_alone() {
    let mut rig = quiet();
    rig.open(0, 2, 0);
    rig.open(1, 2, 0);
    for _ in 0..60 {
        rig.push(0);
        rig.push(1);
    }
    for _ in 0..60_000 {
        rig.consume(1, rig.rings[1].written - rig.rings[1].consumed);
        rig.step();
    }
    assert_eq!((rig.rings[0].written, rig.rings[1].written), (4, 60));
    // one at a time; the bench compares the order
    while rig.rings[0].written < 60 {
        rig.consume(0, 1);
        let before = rig.rings[0].written;
        for _ in 0..2000 {
            rig.step();
        }
        assert_eq!(rig.rings[0].written, before + 1);
    }
    rig.settle();
}

/// Of a queue that the host does not empty 64 events wait, and later ones are lost; other queues are not affected.
#[test]
fn a_queue_that_is_not_emptied_loses_its_own_events() {
    let mut rig = quiet();
    rig.open(4, 5, 0);
    rig.open(5, 8, 0);
    for _ in 0..700 {
        rig.push(4);
    }
    for _ in 0..100 {
        rig.push(5);
    }
    (0..20_000).for_each(|_| rig.step());
    assert_eq!((rig.rings[4].written, rig.rings[5].written), (32, 100));
    rig.rings[4].expected.truncate(WAITING);
    rig.settle();
    assert_eq!(rig.rings[4].written as usize, 32 + WAITING);
    // and goes on
    rig.push(4);
    rig.settle();
}

/// A host that sleeps is asked once in 256 cycles.
#[test]
fn records_are_not_read_in_a_hurry() {
    let mut rig = quiet();
    rig.recorder.latency = Delay::fixed(10);
    rig.open(4, 1, 0);
    for _ in 0..10 {
        rig.push(4);
    }
    let mut reads = 0;
    let mut reading = false;
    for _ in 0..256 * 100 {
        rig.step();
        reads += u32::from(rig.recorder.is_reading() && !reading);
        reading = rig.recorder.is_reading();
    }
    assert!(
        (90..=101).contains(&reads),
        "{reads} reads in 100 * 256 cycles"
    );
    rig.settle();
}

/// An event that finds its ring half full has the record read once.
#[test]
fn a_record_is_read_once_for_an_event() {
    let mut rig = quiet();
    rig.open(4, 2, 0);
    // the third of four finds two
    (0..3).for_each(|_| _ = rig.push(4));
    (0..2000).for_each(|_| rig.step());
    assert_eq!((rig.rings[4].written, rig.reads), (3, 1));
    // that the host took them is not known before the next one
    rig.consume(4, 3);
    rig.push(4);
    (0..2000).for_each(|_| rig.step());
    assert_eq!((rig.rings[4].written, rig.reads), (4, 2));
    // and now is: this one finds one
    rig.push(4);
    (0..2000).for_each(|_| rig.step());
    assert_eq!((rig.rings[4].written, rig.reads), (5, 2));
    rig.settle();
}

#[test]
fn a_queue_that_is_not_open_forgets() {
    let mut rig = quiet();
    for eqn in 0..1 << E {
        rig.push(eqn);
    }
    rig.quiesce();
    assert!(rig.seen.is_empty() && rig.interrupts.is_empty());
    rig.open(6, 2, 0);
    rig.push(6);
    rig.settle();
    rig.close(6);
    rig.push(6);
    rig.push(5);
    rig.quiesce();
    assert_eq!((rig.seen.len(), rig.interrupts.len()), (1, 1));
}

/// What was parked for a queue does not turn up in the next of its number, however often commands come.
#[test]
fn parked_events_go_with_their_queue() {
    for commands in 1..5 {
        let mut rig = quiet();
        rig.open(1, 1, 0);
        rig.open(7, 1, 0);
        for _ in 0..20 {
            rig.push(1);
            rig.push(7);
        }
        rig.quiesce();
        for i in 0..commands {
            if i % 2 == 1 {
                rig.close(1);
            } else {
                rig.open(1, 2, 0);
            }
        }
        rig.open(1, 3, 0);
        rig.push(1);
        rig.settle();
        assert_eq!((rig.rings[1].written, rig.rings[7].written), (1, 20));
    }
}

/// A record that is being read when its queue closes says nothing of the next, and holds the command's end up.
#[test]
fn a_look_from_before_does_not_count() {
    for delay in 0..10 {
        let mut rig = quiet();
        rig.recorder.latency = Delay::fixed(300);
        rig.open(2, 2, 0);
        for _ in 0..4 {
            rig.push(2);
        }
        while !rig.recorder.is_reading() {
            rig.step();
        }
        rig.consume(2, 4);
        (0..delay).for_each(|_| rig.step());
        rig.open(2, 2, 0);
        assert!(!rig.recorder.is_reading(), "the end was waited for");
        for _ in 0..6 {
            rig.push(2);
        }
        (0..2000).for_each(|_| rig.step());
        assert_eq!(rig.rings[2].written, 4, "the new ring is full");
        rig.settle();
    }
}

#[test]
fn moderation_spaces_interrupts() {
    for moderation in [0, 1, 3] {
        let mut rig = quiet();
        rig.open(0, 8, moderation);
        let length = 256 * u64::from(moderation.max(1));
        for _ in 0..20 * length / 64 {
            rig.push(0);
            (0..64).for_each(|_| rig.step());
            rig.consume_all();
        }
        rig.settle();
        let raised = &rig.rings[0].raised;
        // the rig checks that none is too early
        let longest = raised.windows(2).map(|w| w[1] - w[0]).max();
        let most = 256 * u64::from(moderation) + 64 + 150;
        assert!(longest.is_some_and(|gap| gap <= most), "{longest:?}");
        let expected = if moderation == 0 { 20 * 4 } else { 20 };
        let n = raised.len() as u64;
        assert!(n + 4 >= expected && n <= expected + 4, "{n} of {expected}");
    }
}

/// The first event after a long silence is not held back.
#[test]
fn moderation_does_not_hold_a_lone_event() {
    let mut rig = quiet();
    rig.open(0, 8, 40);
    for _ in 0..3 {
        (0..40 * 256).for_each(|_| rig.step());
        let start = rig.bench.cycle();
        rig.push(0);
        rig.settle();
        assert!(rig.bench.cycle() - start < 300);
    }
    assert_eq!(rig.rings[0].raised.len(), 3);
}

/// An interrupt that is not taken stands for all that comes; then one more at most, for what came after it was asked for.
#[test]
fn an_interrupt_that_waits_stands_for_all() {
    let mut rig = quiet();
    rig.open(0, 8, 0);
    rig.irq.chance = Chance::NEVER;
    for _ in 0..30 {
        rig.push(0);
    }
    (0..2000).for_each(|_| rig.step());
    assert_eq!(rig.rings[0].written, 30);
    assert_eq!((rig.rings[0].raised.len(), rig.interrupts.len()), (1, 0));
    rig.irq.chance = Chance::new(1.0);
    rig.settle();
    (0..500).for_each(|_| rig.step());
    assert_eq!(rig.interrupts.len(), 2);
}

/// No queue waits for another's turn at the port of interrupts for ever.
#[test]
fn every_queue_has_its_interrupt() {
    let mut rig = quiet();
    rig.irq.chance = Chance::new(0.02);
    for eqn in 0..1 << E {
        rig.open(eqn, 6, 0);
    }
    for _ in 0..30 {
        for eqn in 0..1 << E {
            rig.push(eqn);
        }
        rig.settle();
    }
    for eqn in 0..1 << E {
        assert!(rig.rings[eqn].raised.len() >= 2, "queue {eqn}");
    }
}
