//! The send queues as Verilog: every grant and completion against the rules, over good and bad wires.
#![allow(missing_docs)]

mod directed;
mod ends;
mod long;
mod merged;
mod rig;
mod timers;
mod unreliable;

use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::random::Pauses;
use rig::{Kind, Post, Q, Rig};

/// Kinds of events for congestion control.
const ACK: u64 = 3;
const TIMEOUT: u64 = 5;

/// A reliable queue pair with a ring of 256 slots.
fn ctx() -> SqCtx {
    SqCtx {
        mtu: 1,
        retry_cnt: 7,
        rnr_retry: 7,
        timeout: 1,
        sq_log: 8,
        max_rd_atomic: 4,
        ..SqCtx::default()
    }
}

fn send(length: u32) -> Post {
    Post {
        length,
        ..Post::default()
    }
}

fn read(length: u32) -> Post {
    Post {
        kind: Kind::Read,
        length,
        ..Post::default()
    }
}

fn random_post(rng: &mut fastrand::Rng) -> Post {
    let kind = [Kind::Send, Kind::Send, Kind::Read, Kind::Atomic][rng.usize(0..4)];
    let longest = if rng.u8(0..6) == 0 { 20_000 } else { 600 };
    Post {
        kind,
        length: if kind == Kind::Atomic {
            8
        } else {
            rng.u32(0..longest)
        },
        slots: rng.u8(1..6),
        quiet: rng.u8(0..3) == 0,
        fence: rng.u8(0..8) == 0,
        bad: 0,
    }
}

/// Posts random messages on all queue pairs, with rings of different sizes, and waits for them.
fn random_run(wire: rig::Wire, pauses: Pauses, messages: usize, limit: u64) -> Rig {
    let mut rig = Rig::new(60, pauses);
    for qpn in 0..1 << Q {
        let ctx = SqCtx {
            sq_log: 3 + qpn as u8 % 6,
            max_rd_atomic: 1 + qpn as u8 % 16,
            window: [0, 1, 3, 8, 40][qpn as usize % 5],
            ..ctx()
        };
        rig.open(qpn, ctx, 0xff_fff0 + qpn as u32);
    }
    rig.wire = wire;
    let mut left = [messages; 1 << Q];
    let end = rig.bench.cycle() + limit;
    while left.iter().any(|n| *n > 0) {
        assert!(rig.bench.cycle() < end, "{left:?} to be posted");
        let qpn = rig.bench.rng().u64(0..1 << Q);
        let mut post = random_post(rig.bench.rng());
        // a ring empties by completions
        post.quiet &= left[qpn as usize] > 1 && qpn % 6 > 1 && rig.qps[qpn as usize].is_calm();
        if left[qpn as usize] > 0 && rig.room(qpn) >= post.slots.into() {
            rig.post(qpn, post);
            left[qpn as usize] -= 1;
            if !post.quiet || rig.bench.rng().bool() {
                rig.ring(qpn);
            }
        }
        let cycles = rig.bench.rng().u64(0..8);
        rig.run(cycles);
    }
    for qpn in 0..1 << Q {
        rig.ring(qpn);
    }
    rig.finish(limit);
    for qp in &rig.qps {
        let signaled = qp.messages.iter().filter(|m| !m.post.quiet).count();
        assert_eq!(qp.done.len(), signaled);
        assert!(qp.done.iter().all(|d| d.status == 0), "{:?}", qp.done);
        assert!(qp.most_open > 0);
    }
    assert!(rig.failures.is_empty());
    rig
}

fn lossy(loss: f64, rnr: f64) -> rig::Wire {
    rig::Wire {
        loss,
        rnr,
        write_delay: 200,
        ..rig::Wire::default()
    }
}

#[test]
fn all_messages_complete() {
    let rig = random_run(lossy(0.0, 0.0), Pauses::NONE, 60, 400_000);
    assert!(rig.refetches > 0, "WQEs were cut by the ends of grants");
    assert_eq!(rig.counts["implied_nak_seq_err"], 0);
    // all PSNs of 256 bytes are acknowledged once, and some packets are measured
    for (qpn, qp) in rig.qps.iter().enumerate() {
        let of = rig.feedback.iter().filter(|event| event[1] == qpn as u64);
        let [mut bytes, mut samples] = [0; 2];
        for &[kind, _, acked, rtt] in of {
            assert_eq!(kind, ACK);
            bytes += acked;
            samples += u64::from(rtt > 0);
        }
        assert_eq!(bytes, u64::from(qp.next) << 8, "queue pair {qpn}");
        assert!(samples > 0, "queue pair {qpn}");
    }
}

#[test]
fn back_pressure_changes_nothing() {
    random_run(lossy(0.0, 0.0), Pauses::new(0.4, 20), 40, 800_000);
}

#[test]
fn what_a_closed_class_refuses_starts_later() {
    let wire = rig::Wire {
        held: 0.1,
        ..lossy(0.01, 0.0)
    };
    let rig = random_run(wire, Pauses::NONE, 40, 3_000_000);
    assert!(rig.drops > 500, "{} refused", rig.drops);
}

/// While its class is closed a queue pair with much to send is read again now and then, and goes on when it is open.
#[test]
fn a_closed_class_is_not_read_over_and_over() {
    let mut rig = Rig::new(20, Pauses::NONE);
    rig.open(1, SqCtx { sq_log: 6, ..ctx() }, 100);
    rig.wire.held = 1.0;
    rig.set("closed", 1);
    for _ in 0..40 {
        rig.post(1, send(100));
    }
    rig.ring(1);
    let cycles = 50_000;
    rig.run(cycles);
    assert!(rig.qps[1].parts.is_empty());
    // all that was read ahead asks, then the 8 slots of each FETCH
    let most = 40 + 8 * (cycles / 4096 + 1);
    assert!((41..=most).contains(&rig.drops), "{} refused", rig.drops);
    rig.wire.held = 0.0;
    rig.set("closed", 0);
    rig.finish(5000);
    assert_eq!(rig.qps[1].done.len(), 40);
}

#[test]
fn losses_are_made_good() {
    let rig = random_run(lossy(0.02, 0.0), Pauses::NONE, 40, 3_000_000);
    assert!(rig.counts["implied_nak_seq_err"] > 0, "implied NAKs");
    assert!(rig.counts["local_ack_timeout_err"] > 0, "timeouts");
    let timeouts = rig.feedback.iter().filter(|event| event[0] == TIMEOUT);
    assert_eq!(timeouts.count() as u64, rig.counts["local_ack_timeout_err"]);
    let resumed = |p: &&rig::Part| p.3 > p.2 && p.1 > 0;
    let resumed = rig
        .qps
        .iter()
        .flat_map(|q| &q.parts)
        .filter(resumed)
        .count();
    assert!(resumed > 0, "READs that go on from the middle");
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let rig = random_run(lossy(0.01, 0.1), Pauses::NONE, 40, 6_000_000);
    assert!(rig.counts["rnr_nak_received"] > 0);
}
