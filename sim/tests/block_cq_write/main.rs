//! The writer of completion queues as Verilog, against rings in plain Rust.
mod arm;
mod brim;
mod fences;
mod record;
mod reports_alone;
mod resize;
mod rig;

use ferroce_sim::random::{Chance, Delay, Pauses};

use rig::{C, RECV, Rig, SEND};

/// Random pauses.
fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

/// Tokens of both inputs over all queues, a host that is mostly quick, commands in between.
fn random<const W: usize, const K: usize>(idle: Pauses, back: Pauses, failure: f64, cycles: u64) {
    let mut rig = Rig::new::<W, K>(idle, back);
    rig.fenced_sends = true;
    rig.recorder.failure = Chance::new(failure);
    let mut rng = rig.bench.rng().fork();
    let queues = 1 << C;
    let (mut resizes, mut marks) = ([0; 2], 0);
    for cqn in 0..queues {
        rig.open(cqn, 1 + (cqn % 5) as u8);
    }
    for cycle in 0..cycles {
        while rig.pending() < 24 {
            rig.issued += rng.u64(..3);
            // some queues rest, so that commands find them drained
            let cqn = rng.u16(..queues);
            if cqn / 4 != (cycle / 400 % 4) as u16 {
                rig.push(rng.usize(..2), cqn);
            }
        }
        if rng.u8(..) < 4 && rig.pending() < 32 {
            rig.mark(rng.usize(..2));
            marks += 1;
        }
        if rng.u8(..) < 64 {
            rig.done += rng.u64(..=rig.issued - rig.done);
        }
        let cqn = rng.u16(..queues);
        // a host that sleeps now and then
        if cycle / 500 % 16 != u64::from(cqn) {
            let ring = &rig.rings[usize::from(cqn)];
            let there = ring.written - ring.consumed;
            rig.consume(cqn, rng.u32(..=there));
        }
        // a host that arms what it has seen, sometimes twice
        if rng.u8(..) < 20 && rig.doorbells() < 4 {
            let any = rng.bool();
            rig.arm(cqn, any, rig.rings[usize::from(cqn)].consumed);
        }
        if rig.rings[usize::from(cqn)].pending == 0 && rig.doorbells() == 0 && rng.u8(..) < 8 {
            if rng.u8(..) < 64 {
                rig.close(cqn);
            } else {
                rig.open(cqn, rng.u8(1..7));
            }
        }
        if rng.u8(..) < 6 {
            let resized = rig.resize(rng.u16(..queues), rng.u8(1..7));
            resizes[usize::from(resized)] += 1;
        }
        rig.step();
    }
    rig.settle();
    assert!(resizes.iter().all(|n| *n > 3), "refused, done: {resizes:?}");
    for cqn in 0..queues {
        rig.close(cqn);
    }
    assert_eq!(rig.drains, marks);
    assert!(rig.seen.len() > 500, "{} CQEs", rig.seen.len());
    assert!(
        rig.reports.seen.len() > 50,
        "{} events",
        rig.reports.seen.len()
    );
    assert!(rig.overflows > 3 && rig.losses > rig.overflows);
}

#[test]
fn random_tokens_at_full_rate() {
    random::<512, 64>(Pauses::NONE, Pauses::NONE, 0.0, 30_000);
    random::<64, 8>(Pauses::NONE, Pauses::NONE, 0.0, 30_000);
}

#[test]
fn random_tokens_with_pauses() {
    random::<512, 64>(uneven(), uneven(), 0.0, 40_000);
    random::<64, 8>(uneven(), uneven(), 0.0, 40_000);
}

#[test]
fn reads_of_consumer_records_fail() {
    random::<512, 64>(uneven(), uneven(), 0.3, 20_000);
    random::<64, 8>(Pauses::NONE, Pauses::NONE, 0.3, 20_000);
}

#[test]
fn widths_between() {
    random::<256, 32>(uneven(), uneven(), 0.0, 10_000);
    random::<128, 16>(uneven(), uneven(), 0.0, 10_000);
}

fn cycles_a_cqe<const W: usize, const K: usize>() -> f64 {
    let mut rig = Rig::new::<W, K>(Pauses::NONE, Pauses::NONE);
    rig.open(3, 12);
    rig.open(4, 12);
    for i in 0..1000 {
        rig.push(i % 2, 3 + (i % 3 == 0) as u16);
    }
    rig.settle();
    let (first, last) = (rig.seen[0].2, rig.seen[999].2);
    (last - first) as f64 / 999.0
}

/// Both inputs together, also into one ring.
#[test]
fn a_cqe_in_two_cycles() {
    assert!(cycles_a_cqe::<512, 64>() < 2.01);
    assert!(cycles_a_cqe::<64, 8>() < 4.01);
}

#[test]
fn a_token_takes_nine_cycles() {
    for input in [SEND, RECV] {
        let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
        rig.open(0, 4);
        (0..20).for_each(|_| rig.step());
        let start = rig.bench.cycle();
        rig.push(input, 0);
        rig.settle();
        assert_eq!(rig.seen[0].2 - start, 9, "input {input}");
    }
}

#[test]
fn entries_wrap_with_their_phase() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.open(7, 2);
    for round in 0..50 {
        rig.push(round % 2, 7);
        rig.settle();
        rig.consume(7, 1);
    }
    assert_eq!(rig.rings[7].written, 50);
    assert_eq!(rig.losses, 0);
}

/// The bench compares address and phase; a ring that is never read fills once.
#[test]
fn an_overflow_ends_a_queue_and_no_other() {
    let mut rig = Rig::new::<64, 8>(Pauses::NONE, Pauses::NONE);
    rig.open(1, 3);
    rig.open(2, 3);
    for _ in 0..11 {
        rig.push(SEND, 1);
    }
    rig.push(SEND, 2);
    rig.settle();
    assert_eq!((rig.rings[1].written, rig.losses, rig.overflows), (8, 3, 1));
    rig.consume(1, 8);
    rig.push(RECV, 1);
    rig.push(RECV, 2);
    rig.settle();
    assert_eq!((rig.rings[1].written, rig.losses, rig.overflows), (8, 4, 1));
    assert_eq!(rig.rings[2].written, 2);
    rig.open(1, 3);
    rig.push(RECV, 1);
    rig.settle();
    assert_eq!((rig.rings[1].written, rig.losses, rig.overflows), (1, 4, 1));
}

/// A full ring waits for the host as long as one look takes.
#[test]
fn a_host_that_makes_room_in_time_loses_nothing() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.recorder.latency = Delay::fixed(300);
    rig.open(1, 2);
    for _ in 0..6 {
        rig.push(SEND, 1);
    }
    // the first look, at two of four entries, is answered and finds the ring full; the second is under way
    loop {
        let reading = rig.recorder.is_reading();
        rig.step();
        if reading && !rig.recorder.is_reading() {
            break;
        }
    }
    rig.consume(1, 2);
    rig.settle();
    assert_eq!((rig.rings[1].written, rig.losses), (6, 0));
}

/// Also where the CQE itself waits for room in its ring.
#[test]
fn a_marker_follows_the_cqes_before_it() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.recorder.latency = Delay::fixed(300);
    rig.open(1, 2);
    rig.reports.hold = true;
    (0..5).for_each(|_| _ = rig.push(SEND, 1));
    rig.mark(SEND);
    (0..200).for_each(|_| rig.step());
    rig.consume(1, 2);
    (0..1000).for_each(|_| rig.step());
    assert_eq!(
        (rig.seen.len(), rig.drains),
        (5, 0),
        "no CQE has its response"
    );
    rig.reports.hold = false;
    rig.settle();
    (0..100).for_each(|_| rig.step());
    assert_eq!((rig.losses, rig.drains), (0, 1));
}

#[test]
fn a_closed_queue_loses_without_overflow() {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    for cqn in 0..1 << C {
        rig.push(RECV, cqn);
        rig.push(SEND, cqn);
    }
    rig.settle();
    assert_eq!((rig.losses, rig.overflows, rig.seen.len()), (32, 0, 0));
    rig.open(5, 4);
    rig.push(SEND, 5);
    rig.settle();
    rig.close(5);
    rig.push(SEND, 5);
    rig.settle();
    assert_eq!((rig.losses, rig.overflows, rig.seen.len()), (33, 0, 1));
}

/// What a record said before its queue was opened afresh says nothing of the new ring.
#[test]
fn a_look_from_before_does_not_count() {
    for delay in 0..8 {
        let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
        rig.recorder.latency = Delay::fixed(200);
        rig.open(6, 4);
        for _ in 0..8 {
            rig.push(SEND, 6);
        }
        rig.settle();
        rig.consume(6, 7);
        // the ring is half full: this one looks
        rig.push(SEND, 6);
        while rig.pending() > 0 {
            rig.step();
        }
        (0..delay).for_each(|_| rig.step());
        rig.open(6, 4);
        (0..14).for_each(|_| _ = rig.push(SEND, 6));
        (0..250).for_each(|_| rig.step());
        (0..4).for_each(|_| _ = rig.push(SEND, 6));
        rig.settle();
        assert_eq!((rig.rings[6].written, rig.losses), (16, 2));
    }
}
