//! Loss, duplication and delay: every message arrives once.

use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_success, connected};

const MESSAGES: u16 = 3;
const BYTES: usize = 256 * 4 + 17;

fn options() -> QpOptions {
    QpOptions {
        mtu: Mtu::Mtu256,
        ..QpOptions::default()
    }
}

/// Three SENDs, three WRITEs and three READs of five packets each; asserts that all arrive once.
/// Answers how many frames each side sent.
fn transfer(pair: &mut Pair, qa: u32, qb: u32, what: &str) -> [usize; 2] {
    let all = BYTES * usize::from(MESSAGES);
    let source = pair.a.create_mr(&pattern(2 * all, 1), Rights::NONE);
    let sink = pair.a.create_mr(&vec![0; all], Rights::ALL);
    let target = pair.b.create_mr(&vec![0; 2 * all], Rights::ALL);
    let origin = pair.b.create_mr(&pattern(all, 2), Rights::ALL);
    for i in 0..u64::from(MESSAGES) {
        let offset = i * BYTES as u64;
        let len = BYTES as u32;
        let after = offset + all as u64;
        pair.b.post_recv(qb, &[target.sge(offset, len)]);
        for work in [
            Work::send(&[source.sge(offset, len)]),
            Work::write(&[source.sge(after, len)], &target, after),
            Work::read(&[sink.sge(offset, len)], &origin, offset),
        ] {
            pair.a.write_slots(qa, &work.slots());
        }
    }
    pair.a
        .post_send(qa, &Work::send(&[]).inline(&[]).unsignaled());
    pair.b.post_recv(qb, &[]);
    for i in 0..3 * MESSAGES {
        assert_success(&pair.wait(Side::A, 0), i);
    }
    for i in 0..=MESSAGES {
        assert_success(&pair.wait(Side::B, 0), i);
    }
    assert_eq!(pair.b.contents(&target), pattern(2 * all, 1), "{what}");
    assert_eq!(pair.a.contents(&sink), pattern(all, 2), "{what}");
    pair.settle();
    assert_eq!((pair.a.poll(0), pair.b.poll(0)), (None, None), "{what}");
    pair.assert_no_faults();
    let count = |side| pair.sent.iter().filter(|(from, _)| *from == side).count();
    [count(Side::A), count(Side::B)]
}

#[test]
fn loss_of_any_single_frame() {
    let (mut pair, qa, qb) = connected(options());
    let sent = transfer(&mut pair, qa, qb, "no loss");
    for (side, frames) in [(Side::A, sent[0]), (Side::B, sent[1])] {
        for lost in 0..frames {
            let (mut pair, qa, qb) = connected(options());
            let mut n = 0;
            pair.wire = Box::new(move |from, frame| {
                n += usize::from(from == side);
                if from == side && n == lost + 1 {
                    vec![]
                } else {
                    vec![frame.to_vec()]
                }
            });
            transfer(&mut pair, qa, qb, &format!("frame {lost} of {side:?} lost"));
        }
    }
}

#[test]
fn duplication_of_every_frame() {
    let (mut pair, qa, qb) = connected(options());
    pair.wire = Box::new(|_, frame| vec![frame.to_vec(); 2]);
    transfer(&mut pair, qa, qb, "all duplicated");
    assert!(pair.b.stat("duplicate_request") > 0);
    assert!(pair.a.stat("rx_ghost_acks") > 0);
}

#[test]
fn random_loss_duplication_and_reordering() {
    let first = std::env::var("SEED")
        .ok()
        .map(|seed| seed.parse().expect("SEED is a number"));
    for seed in first.map_or(1..=200u64, |seed| seed..=seed) {
        let (mut pair, qa, qb) = connected(options());
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut held: [Option<Vec<u8>>; 2] = [None, None];
        pair.wire = Box::new(move |from, frame| {
            let held = &mut held[usize::from(from == Side::B)];
            match random(20) {
                0 => vec![],
                1 => vec![frame.to_vec(); 2],
                2 if held.is_none() => {
                    *held = Some(frame.to_vec());
                    vec![]
                }
                3..8 => std::iter::once(frame.to_vec()).chain(held.take()).collect(),
                _ => vec![frame.to_vec()],
            }
        });
        transfer(
            &mut pair,
            qa,
            qb,
            &format!("seed {seed}; run again with SEED={seed}"),
        );
    }
}

#[test]
fn a_gap_draws_one_nak() {
    let (mut pair, qa, qb) = connected(options());
    let mut n = 0;
    pair.wire = Box::new(move |from, frame| {
        n += usize::from(from == Side::A);
        if from == Side::A && n == 2 {
            vec![]
        } else {
            vec![frame.to_vec()]
        }
    });
    transfer(&mut pair, qa, qb, "second frame lost");
    assert_eq!(pair.a.stat("packet_seq_err"), 1);
    assert!(pair.b.stat("out_of_sequence") > 1);
    assert_eq!(pair.a.stat("local_ack_timeout_err"), 0);
}

#[test]
fn progress_reloads_the_retry_counter() {
    // Each packet is lost twice: more losses in all than retries.
    let (mut pair, qa, qb) = connected(QpOptions {
        timeout: 1,
        retry_cnt: 2,
        ..options()
    });
    let target = pair.b.create_mr(&[0; 1024], Rights::ALL);
    let source = pair.a.create_mr(&pattern(1024, 4), Rights::NONE);
    let mut seen = std::collections::BTreeMap::<Vec<u8>, u32>::new();
    pair.wire = Box::new(move |from, frame| {
        let times = seen.entry(frame.to_vec()).or_default();
        *times += 1;
        if from == Side::A && *times <= 2 {
            vec![]
        } else {
            vec![frame.to_vec()]
        }
    });
    for i in 0..4 {
        pair.b.post_recv(qb, &[target.all()]);
        let index = pair.a.post_send(qa, &Work::send(&[source.sge(0, 200 + i)]));
        assert_success(&pair.wait(Side::A, 0), index);
    }
    assert_eq!(pair.a.stat("local_ack_timeout_err"), 8);
}
