//! The requester as Verilog: every packet, piece and completion against a reference, over good and bad wires.
#![allow(missing_docs)]

mod bench;
mod failures;
mod reads;
mod reread;
mod timer;
mod unread;

use bench::{Peer, Rig, sge};
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_proto::abi::wqe::{SendWqe, Sge};
use ferroce_sim::random::Pauses;

/// WQE index and status of completions.
fn completions<const N: usize>(of: [(u64, u8); N]) -> [(u64, u64); N] {
    of.map(|(index, status)| (index, status.into()))
}

fn ctx(mtu: u8) -> SqCtx {
    SqCtx {
        mtu,
        retry_cnt: 7,
        rnr_retry: 7,
        timeout: 1,
        ..SqCtx::default()
    }
}

fn wqe(opcode: u8, length: u32) -> SendWqe {
    SendWqe {
        opcode,
        signaled: true,
        num_sge: 1,
        slots: 1,
        remote_addr: 0x7000,
        rkey: 9,
        imm: 0x1234_5678,
        length,
        ..SendWqe::default()
    }
}

fn one(length: u32) -> [Sge; 2] {
    [sge(0x9_0001, length, true), Sge::default()]
}

/// Posts `count` random WQEs on random queue pairs.
fn post_random(rig: &mut Rig, count: usize, longest: u32) {
    let mut posted = [0; 1 << bench::Q];
    for _ in 0..count {
        let rng = rig.bench.rng();
        let qpn = rng.u64(0..1 << bench::Q);
        if posted[qpn as usize] == 200 {
            continue;
        }
        let length = if rng.u8(0..4) == 0 {
            rng.u32(0..longest)
        } else {
            rng.u32(0..200)
        };
        let split = rng.u32(0..=length);
        let mut w = wqe([0, 1, 3, 4][rng.usize(0..4)], length);
        w.solicited = rng.bool();
        w.signaled = rng.bool();
        let sges = match rng.u8(0..4) {
            0 if length <= 32 => {
                w.inline_data = true;
                w.num_sge = 0;
                [Sge::default(); 2]
            }
            1 => {
                w.num_sge = 2;
                [
                    sge(rng.u64(..1 << 40), split, true),
                    sge(rng.u64(..1 << 40), length - split, true),
                ]
            }
            _ => [sge(rng.u64(..1 << 40), length, true), Sge::default()],
        };
        posted[qpn as usize] += 1;
        rig.post(qpn, w, sges);
        if rig.bench.rng().bool() {
            rig.ring(qpn);
        }
        rig.step();
    }
    for qpn in 0..1 << bench::Q {
        // the last is signaled, so that its completion shows the end
        rig.post(qpn, wqe(3, 100), one(100));
        rig.ring(qpn);
    }
}

/// All queue pairs open, before `peer`.
fn opened(peer: Peer, pauses: Pauses, mtu: u8) -> Rig {
    let mut ctx = ctx(mtu);
    if pauses != Pauses::NONE {
        // with packets and answers held up the peer may take longer than 2048 cycles, eight times in a row
        ctx.timeout = 5;
    }
    let mut rig = Rig::new(60, pauses);
    for qpn in 0..1 << bench::Q {
        rig.open(qpn, ctx, 0xff_fff0 + qpn as u32);
    }
    rig.peer = peer;
    rig
}

/// Random WQEs of up to `longest` bytes, all of which complete in order.
fn run_random(rig: &mut Rig, count: usize, longest: u32, limit: u64) {
    post_random(rig, count, longest);
    rig.finish(limit);
    for qpn in 0..1 << bench::Q {
        let done = rig.done(qpn);
        assert!(done.iter().all(|d| d.1 == 0), "qp {qpn}: {done:?}");
        assert!(done.is_sorted_by(|a, b| a.0 < b.0), "qp {qpn}: {done:?}");
    }
}

fn random_run(peer: Peer, pauses: Pauses, mtu: u8, limit: u64) {
    let longest = 40 * bench::mtu_bytes(mtu);
    run_random(&mut opened(peer, pauses, mtu), 800, longest, limit);
}

#[test]
fn all_messages_leave_and_complete_in_order() {
    random_run(Peer::default(), Pauses::NONE, 3, 200_000);
}

#[test]
fn back_pressure_changes_nothing() {
    random_run(Peer::default(), Pauses::new(0.4, 20), 1, 400_000);
}

#[test]
fn losses_are_made_good() {
    random_run(
        Peer {
            loss: 0.02,
            ..Peer::default()
        },
        Pauses::NONE,
        3,
        3_000_000,
    );
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    random_run(
        Peer {
            rnr: 0.05,
            loss: 0.01,
            ..Peer::default()
        },
        Pauses::NONE,
        2,
        6_000_000,
    );
}

#[test]
fn small_messages_leave_at_the_rate_promised() {
    // 64-byte writes over 16 queue pairs
    let mut rig = Rig::new(250, Pauses::NONE);
    for qpn in 0..16 {
        rig.open(qpn, ctx(5), 0);
    }
    for qpn in 0..16 {
        for _ in 0..100 {
            rig.post(qpn, wqe(3, 64), one(64));
        }
        rig.ring(qpn);
    }
    let start = rig.bench.cycle();
    rig.finish(20_000);
    let cycles = rig.bench.cycle() - start - 200 - 250 - 100;
    println!(
        "64-byte writes over 16 queue pairs: {:.2} cycles a message",
        cycles as f64 / 1600.0
    );
    assert!(cycles <= 4 * 1600, "{cycles}");

    // 8-byte inline writes on one
    let mut rig = Rig::new(250, Pauses::NONE);
    rig.open(3, ctx(5), 0);
    for _ in 0..250 {
        rig.post(
            3,
            SendWqe {
                inline_data: true,
                num_sge: 0,
                ..wqe(3, 8)
            },
            [Sge::default(); 2],
        );
    }
    rig.ring(3);
    let start = rig.bench.cycle();
    rig.finish(20_000);
    let cycles = rig.bench.cycle() - start - 200 - 250 - 100;
    println!(
        "8-byte writes on one queue pair: {:.2} cycles a message",
        cycles as f64 / 250.0
    );
    assert!(cycles <= 8 * 250, "{cycles}");
}

/// The end of a grant of 8 slots cuts WQEs of 3 and 5 slots: the next grant brings the rest of them.
#[test]
fn slots_are_read_once_however_many_a_wqe_has() {
    const WQES: u64 = 48;
    for slots in 1..=5 {
        let mut rig = Rig::new(250, Pauses::NONE);
        rig.open(1, ctx(3), 100);
        for _ in 0..WQES {
            let wqe = SendWqe {
                slots,
                ..wqe(0, 16)
            };
            rig.post_wide(1, wqe, one(16));
        }
        rig.ring(1);
        let begun = rig.bench.cycle();
        while rig.sent(1) < WQES as usize {
            rig.step();
        }
        let cycles = rig.bench.cycle() - begun;
        assert_eq!(rig.slots_read(), WQES * u64::from(slots), "{slots} slots");
        assert!(cycles < 1200, "{slots} slots: {cycles} cycles");
        rig.run(2000);
        assert_eq!(rig.done(1).len() as u64, WQES);
    }
}

/// Grants of two queue pairs alternate: what a grant cuts is read again.
#[test]
fn wqes_of_several_slots_of_two_queue_pairs() {
    let mut rig = Rig::new(250, Pauses::NONE);
    for qpn in [1, 2] {
        rig.open(qpn, ctx(3), 100);
        for _ in 0..48 {
            let wqe = SendWqe {
                slots: 3,
                ..wqe(0, 16)
            };
            rig.post_wide(qpn, wqe, one(16));
        }
        rig.ring(qpn);
    }
    rig.run(20_000);
    for qpn in [1, 2] {
        assert_eq!(rig.done(qpn).len(), 48);
    }
    let needed = 2 * 48 * 3;
    assert!(rig.slots_read() < 5 * needed, "{}", rig.slots_read());
}
