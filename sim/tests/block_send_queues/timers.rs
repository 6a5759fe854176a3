//! The ACK timer: from when it counts, and what ends it (IB1 9.7.6.1.3).

use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::random::Pauses;

use super::directed::{good, post_all, rig};
use super::rig::{Rig, Wire};
use super::{ctx, send};

/// Cycles of a tick.
const TICK: u64 = 256;
/// Cycles of the ACK timeout of code 1.
const SHORTEST: u64 = 8 * TICK;
/// The timer lasts two ticks more, and its report is a moment on its way.
const LONGEST: u64 = 10 * TICK + 100;

/// Queue pair 1 with two retries, whose peer answers nothing.
fn unanswered() -> Rig {
    rig(Wire {
        no_answer: true,
        ..Wire::default()
    })
}

fn timeouts(rig: &Rig) -> u64 {
    rig.counts["local_ack_timeout_err"]
}

/// Cycles until `is_so`.
fn cycles_until(rig: &mut Rig, is_so: impl Fn(&Rig) -> bool) -> u64 {
    let begin = rig.bench.cycle();
    while !is_so(rig) {
        rig.step();
        assert!(rig.bench.cycle() < begin + 4 * LONGEST, "it does not come");
    }
    rig.bench.cycle() - begin
}

#[test]
fn what_left_at_once_is_late_after_one_timeout() {
    let mut rig = unanswered();
    post_all(&mut rig, &[send(10)]);
    for n in 1..=3 {
        cycles_until(&mut rig, |rig| rig.qps[1].parts.len() == n);
        let late = cycles_until(&mut rig, |rig| timeouts(rig) == n as u64);
        assert!((SHORTEST..=LONGEST).contains(&late), "{n}: {late} cycles");
    }
}

/// The timer runs out when a packet has just left: it begins anew. Once, as a slow queue pair may send something all the time.
#[test]
fn a_packet_that_has_just_left_is_given_a_timeout_more() {
    let mut rig = unanswered();
    post_all(&mut rig, &[send(10)]);
    cycles_until(&mut rig, |rig| rig.qps[1].parts.len() == 1);
    let begin = rig.bench.cycle();
    rig.run(2000);
    post_all(&mut rig, &[send(10)]);
    rig.run(1000);
    assert_eq!((timeouts(&rig), rig.qps[1].parts.len()), (0, 2));
    rig.run(1000);
    post_all(&mut rig, &[send(10)]);
    cycles_until(&mut rig, |rig| timeouts(rig) == 1);
    let late = rig.bench.cycle() - begin;
    assert!(
        (2 * SHORTEST..=2 * LONGEST).contains(&late),
        "{late} cycles"
    );
}

/// Of three packets the last cannot be read, and the second waits for the wire: no retry is used up until that one has left, and
/// then one is, wherever in the PSNs they are.
#[test]
fn what_stands_before_a_packet_that_cannot_be_read_is_late_when_it_has_left() {
    for psn in [100, 0x40_0000] {
        let mut rig = Rig::new(20, Pauses::NONE);
        rig.open(1, ctx(), psn);
        rig.wire.no_answer = true;
        post_all(&mut rig, &[send(10)]);
        rig.run(200);
        rig.stands = true;
        post_all(&mut rig, &[send(10), send(10)]);
        rig.run(200);
        assert_eq!(rig.qps[1].parts.len(), 3);
        rig.unread(1, psn + 2);
        rig.run(2 * LONGEST);
        assert_eq!(timeouts(&rig), 0, "PSN {psn:#x}");
        rig.leave_only(1);
        rig.stands = false;
        rig.wire.no_answer = false;
        // the timer that runs, and one more as it has just left
        let late = cycles_until(&mut rig, |rig| timeouts(rig) == 1);
        assert!(late <= 2 * LONGEST, "PSN {psn:#x}: {late} cycles");
        rig.finish(3000);
        assert_eq!(rig.done(1), good(3));
        assert_eq!(timeouts(&rig), 1);
    }
}

/// The timer of a queue pair ends with its life: it does not run out in the next one, nor does that one go without.
#[test]
fn a_timer_ends_with_the_life_of_its_queue_pair() {
    for (former, own, expected) in [(1, 0, 0), (8, 1, 1)] {
        let mut rig = unanswered();
        let with = |timeout| SqCtx { timeout, ..ctx() };
        rig.open(1, with(former), 100);
        post_all(&mut rig, &[send(10)]);
        rig.run(300);
        assert_eq!(rig.qps[1].parts.len(), 1);
        rig.reopen(1, with(own), 200);
        post_all(&mut rig, &[send(10)]);
        // one timeout of code 1, not two
        rig.run(3500);
        assert_eq!(timeouts(&rig), expected, "code {own} after {former}");
    }
}
