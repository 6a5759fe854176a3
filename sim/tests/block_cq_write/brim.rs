//! Queues at their brim: each look at a record finds an entry more.

use ferroce_sim::random::{Chance, Delay, Pauses};

use crate::rig::{C, RECV, Rig, SEND};
use crate::uneven;

/// Cycles of a look.
const LOOK: u32 = 300;

/// Queues 1 to `n` of four entries are full; queue 0 has room.
fn brim(n: u16) -> Rig {
    let mut rig = Rig::new::<512, 64>(Pauses::NONE, Pauses::NONE);
    rig.recorder.latency = Delay::fixed(LOOK);
    rig.open(0, 9);
    for cqn in 1..=n {
        rig.open(cqn, 2);
        (0..4).for_each(|_| _ = rig.push(SEND, cqn));
    }
    rig.settle();
    rig
}

/// The host takes an entry of each ring that is full; a step.
fn step(rig: &mut Rig) {
    for cqn in 1..1 << C {
        if rig.rings[usize::from(cqn)].is_full() {
            rig.consume(cqn, 1);
        }
    }
    rig.step();
}

/// Cycles until all tokens are done.
fn cycles(rig: &mut Rig) -> u64 {
    let start = rig.bench.cycle();
    while rig.pending() > 0 {
        step(rig);
        assert!(rig.bench.cycle() - start < 100_000, "tokens are stuck");
    }
    rig.bench.cycle() - start
}

/// What came before a look and has no room then is lost, and holds up nothing: of however many queues.
#[test]
fn others_are_held_up_by_one_look() {
    for (input, n) in [(RECV, 1), (SEND, 1), (RECV, 5), (SEND, 15)] {
        let mut rig = brim(n);
        for _ in 0..12 {
            (0..=n).for_each(|cqn| _ = rig.push(input, cqn));
        }
        let took = cycles(&mut rig);
        // the token in front begins a round before all are there, which have the next one
        let most = 2 * u64::from(n) * u64::from(LOOK + 30) + 100;
        assert!(took < most, "{n} queues, {took} cycles");
        assert_eq!(rig.rings[0].written, 12);
        assert_eq!(rig.overflows, u64::from(n));
        rig.settle();
    }
}

/// One input brings a completion a look for a queue at its brim: what waits at the other stands in front of it.
#[test]
fn the_other_input_is_not_held_up_by_what_comes_later() {
    for input in [RECV, SEND] {
        let mut rig = brim(1);
        rig.push(input, 1);
        (0..200).for_each(|_| _ = rig.push(1 - input, 0));
        let (start, reading) = (rig.bench.cycle(), |rig: &Rig| rig.recorder.is_reading());
        let mut was_reading = false;
        while rig.rings[0].written < 200 {
            // the next one comes while the look for this one is under way
            if reading(&rig) && !was_reading {
                rig.push(input, 1);
            }
            was_reading = reading(&rig);
            step(&mut rig);
            assert!(rig.bench.cycle() - start < 5 * u64::from(LOOK), "held up");
        }
        cycles(&mut rig);
        rig.settle();
        assert_eq!(rig.losses, 0);
    }
}

/// What comes after a look has one of its own.
#[test]
fn a_token_that_comes_later_is_not_lost() {
    for input in [RECV, SEND] {
        for gap in [LOOK / 2, LOOK, 2 * LOOK + 30, 5 * LOOK] {
            let mut rig = brim(1);
            for _ in 0..20 {
                let next = rig.bench.cycle() + u64::from(gap);
                rig.push(input, 1);
                rig.push(1 - input, 0);
                while rig.bench.cycle() < next || rig.rings[1].pending > 0 {
                    step(&mut rig);
                }
            }
            rig.settle();
            assert_eq!((rig.losses, rig.rings[0].written), (0, 20), "gap {gap}");
        }
    }
}

/// A queue that is resized while a look for it is under way, and then opened afresh.
#[test]
fn a_look_of_a_ring_that_changes() {
    for delay in (0..2 * LOOK).step_by(37) {
        let mut rig = brim(2);
        (0..3).for_each(|_| _ = rig.push(SEND, 1));
        (0..3).for_each(|_| _ = rig.push(RECV, 2));
        (0..delay).for_each(|_| rig.step());
        let resized = rig.resize(1, 4);
        rig.consume(2, 3);
        rig.settle();
        // refused if the queue had overflowed; queue 2 loses its tokens if its look came before the host
        let lost = if resized { 0 } else { 3 };
        assert_eq!(rig.rings[1].is_dead(), !resized);
        assert!(rig.losses >= lost && rig.losses <= lost + 3);
        rig.open(1, 2);
        (0..4).for_each(|_| _ = rig.push(SEND, 1));
        let losses = rig.losses;
        rig.settle();
        assert_eq!(rig.losses, losses);
    }
}

/// Numbers of rounds come again: the answer to a look of long ago is forgotten by then.
#[test]
fn a_round_of_the_same_number() {
    for rounds in 0..40 {
        let mut rig = brim(2);
        let mut push = |cqns: &[u16]| {
            cqns.iter().for_each(|cqn| _ = rig.push(SEND, *cqn));
            cycles(&mut rig);
            assert_eq!(rig.losses, 0, "{rounds} rounds");
        };
        push(&[2]);
        (0..rounds).for_each(|_| push(&[1]));
        push(&[1, 2]);
    }
}

/// A look that fails tells nothing: the token that waits for it is lost, and holds up nothing.
#[test]
fn a_look_that_fails_ends_the_wait() {
    let mut rig = brim(1);
    rig.recorder.failure = Chance::new(1.0);
    for _ in 0..12 {
        (0..2).for_each(|cqn| _ = rig.push(SEND, cqn));
    }
    let took = cycles(&mut rig);
    assert!(took < 2 * u64::from(LOOK), "{took} cycles");
    assert_eq!((rig.losses, rig.rings[0].written), (12, 12));
    rig.settle();
}

/// A host that posts no more than the rings hold, by what it has taken, loses nothing: whatever passes what.
#[test]
fn a_host_that_keeps_to_its_rings_loses_nothing() {
    for looks in [Delay::between(5, 60), Delay::fixed(LOOK)] {
        let mut rig = Rig::new::<512, 64>(uneven(), uneven());
        rig.recorder.latency = looks;
        rig.fenced_sends = true;
        let mut rng = rig.bench.rng().fork();
        for cqn in 0..1 << C {
            rig.open(cqn, 1 + (cqn % 3) as u8);
        }
        for cycle in 0..60_000 {
            // by turns few queues and all of them
            let cqn = rng.u16(..if cycle / 5000 % 2 == 0 { 4 } else { 1 << C });
            let ring = &rig.rings[usize::from(cqn)];
            let there = ring.written - ring.consumed;
            if there + ring.pending < ring.size() {
                rig.issued += rng.u64(..3);
                rig.push(rng.usize(..2), cqn);
            } else if rng.u8(..) < 128 {
                rig.consume(cqn, rng.u32(..=there.min(1)));
            }
            if rng.u8(..) < 20 {
                rig.done += rng.u64(..=rig.issued - rig.done);
            }
            rig.step();
        }
        rig.settle();
        assert_eq!((rig.losses, rig.overflows), (0, 0));
        assert!(rig.seen.len() > 500, "{} CQEs", rig.seen.len());
    }
}

/// When as many have left as the level says, what was here has: it is no fewer, and as the inputs take turns about twice as
/// many at most.
#[test]
fn the_level_covers_all_that_waits() {
    let mut rig = brim(1);
    rig.recorder.latency = Delay::fixed(1000);
    rig.consume(1, 1);
    // receives wait for their payload; in line sends wait behind one that waits for its look
    rig.issued += 1;
    (0..40).for_each(|_| _ = rig.push(RECV, 0));
    (0..61).for_each(|n| _ = rig.push(SEND, u16::from(n == 0)));
    (0..400).for_each(|_| rig.step());
    let waiting = rig.pending() as u64;
    assert_eq!((waiting, rig.recorder.is_reading()), (101, true));
    let dut = rig.bench.dut();
    let level = dut.get(dut.output("activity.level").expect("a port"));
    assert!(
        (waiting..=2 * waiting + 16).contains(&level),
        "{level} for {waiting}"
    );
    rig.settle();
    assert_eq!((rig.losses, rig.rings[0].written), (0, 100));
}
