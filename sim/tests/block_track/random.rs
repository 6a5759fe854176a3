//! `track`: random streams of READs, atomics and responses near those that are due.

use fastrand::Rng;
use ferroce_sim::random::Pauses;

use super::reference::{Issue, PSN, QueuePair, Response};
use super::rig::{Change, QPS, Rig};
use super::track::{ACK, NAK_SEQUENCE, RNR, ack, due, read};
use super::uneven;

/// Any READ or atomic behind those under way.
fn random_issue(qp: &QueuePair, rng: &mut Rng) -> Issue {
    let after = match qp.under_way.back() {
        Some(last) => last.psn + last.packets,
        None => rng.u32(..=PSN),
    };
    let length = [0, 1, qp.mtu(), rng.u32(..2 * qp.mtu()), rng.u32(..20_000)][rng.usize(..5)];
    let mut issue = read(qp, after + [0, 0, 1, 7][rng.usize(..4)], length);
    if rng.u8(..4) == 0 {
        (issue.atomic, issue.packets, issue.length) = (true, 1, 8);
    }
    issue.index = rng.u16(..);
    issue.slots = rng.u8(1..=5).min(1 << qp.ctx.sq_log.min(3));
    issue
}

/// Mostly the response due, or something near it.
fn random_response(qp: &QueuePair, rng: &mut Rng) -> Response {
    let near = due(qp, rng).unwrap_or(Response {
        psn: rng.u32(..=PSN),
        read: true,
        last: true,
        plen: 64,
        beats: 1,
        ..Response::default()
    });
    let mut r = near;
    match rng.u8(..24) {
        0 => r.psn = r.psn.wrapping_add(rng.u32(1..40)) & PSN,
        1 => r.psn = r.psn.wrapping_sub(rng.u32(1..40)) & PSN,
        2 => r.plen = rng.u16(1..=4096),
        3 => r.last ^= true,
        4 => (r.read, r.atomic) = (r.atomic, r.read),
        5 => r.syndrome = [RNR, NAK_SEQUENCE, 0x62, 0x80][rng.usize(..4)],
        6..9 => {
            let delta = rng.u32(..20);
            let syndrome = [ACK, ACK, RNR, NAK_SEQUENCE, 0x61][rng.usize(..5)];
            return ack(r.psn.wrapping_sub(delta), syndrome);
        }
        9 => return ack(r.psn + rng.u32(..20), [ACK, NAK_SEQUENCE][rng.usize(..2)]),
        10 => r.psn = rng.u32(..=PSN),
        _ => {}
    }
    if r.plen > 0 && r.beats == 0 {
        r.beats = 1;
    }
    r
}

/// Half of the queue pairs hear responses while the other half issues, fails and starts afresh.
fn random(idle: Pauses, back: Pauses, turns: usize) {
    let mut rig = Rig::new(idle, back);
    let mut rng = rig.bench.rng().fork();
    let mut seen = [0; 5];
    for turn in 0..turns {
        for _ in 0..rng.usize(1..80) {
            let qpn = rng.usize(..QPS / 2) * 2 + turn % 2;
            let r = random_response(&rig.qps[qpn], &mut rng);
            let outcome = rig.respond(qpn, r);
            let kinds = [
                outcome.data.is_some(),
                outcome.implied.is_some(),
                outcome.status != 0,
                outcome.read.is_some_and(|read| read.head < read.slots),
                !outcome.answer,
            ];
            for (seen, kind) in seen.iter_mut().zip(kinds) {
                *seen += usize::from(kind);
            }
        }
        for qpn in (1 - turn % 2..QPS).step_by(2) {
            if rng.u8(..12) == 0 {
                let change = match rng.u8(..8) {
                    0 => Change::Resets,
                    1 | 2 => Change::Starts,
                    _ if rig.qps[qpn].closed => Change::Starts,
                    _ => Change::Fails,
                };
                rig.control(qpn, change);
            } else {
                while rig.qps[qpn].under_way.len() < 16 && !rig.qps[qpn].closed && rng.u8(..5) > 0 {
                    let issue = random_issue(&rig.qps[qpn], &mut rng);
                    rig.issue(qpn, issue);
                }
            }
        }
        rig.settle();
    }
    assert!(
        seen.iter().all(|&n| n > turns / 10),
        "{seen:?} in {turns} turns: the stimulus is lopsided"
    );
}

#[test]
fn random_responses_at_full_rate() {
    random(Pauses::NONE, Pauses::NONE, 400);
}

#[test]
fn random_responses_whatever_waits() {
    random(uneven(), uneven(), 300);
    random(Pauses::NONE, Pauses::new(0.8, 40), 100);
}
