//! Random traffic: good, spoilt and hostile, with doorbells, failures and commands among it.

use fastrand::Rng;
use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::psn::MASK;
use ferroce_proto::wire::{Class, Opcode, Operation, Position, Suffix};
use ferroce_sim::random::Pauses;

use crate::drive::uneven;
use crate::reference::{Command, Packet, Rq, mtu, reason};
use crate::rig::{Counts, Event, Rig, allowed};

fn context(rng: &mut Rng) -> RqCtx {
    RqCtx {
        remote_gid: rng.u128(..),
        rq_base: rng.u64(..) & !63,
        mtu: rng.u8(1..=5),
        rq_log: rng.u8(0..=6),
        rq_stride: rng.u8(0..=3),
        min_rnr_timer: rng.u8(0..32),
        remote_write: rng.u8(..8) != 0,
        pkey: 0xffff,
        sgid_index: 3,
        pd: rng.u32(..1 << 24),
        cqn: rng.u16(..),
        ..RqCtx::default()
    }
}

/// The next packet of a well-behaved requester.
pub(super) fn next_packet(rng: &mut Rng, qp: &Rq) -> Packet {
    let full = mtu(&qp.ctx);
    let (write, position, plen, dma_len) = match qp.under_way() {
        Some((true, left)) if left > full => (true, Position::Middle, full, 0),
        Some((true, left)) => (true, Position::Last, left, 0),
        Some((false, _)) if rng.u8(..3) != 0 => (false, Position::Middle, full, 0),
        Some((false, _)) => (false, Position::Last, rng.u32(1..=full), 0),
        None => {
            let write = rng.bool() && qp.ctx.remote_write;
            if rng.bool() {
                let plen = [0, 1, full, rng.u32(..full)][rng.usize(..4)];
                (write, Position::Only, plen, plen)
            } else {
                let more = [1, full, rng.u32(1..5 * full)][rng.usize(..3)];
                (write, Position::First, full, full + more)
            }
        }
    };
    let operation = if write {
        Operation::Write
    } else {
        Operation::Send
    };
    let ends = matches!(position, Position::Last | Position::Only);
    let suffix = if ends && rng.bool() {
        Suffix::Imm
    } else {
        Suffix::None
    };
    let opcode = Opcode::compose(Class::Rc, operation, position, suffix).expect("an RC opcode");
    let mut packet = Packet {
        opcode: opcode.code(),
        solicited: rng.bool(),
        ack_req: rng.bool(),
        qpn: qp.qpn,
        psn: qp.psn,
        ext: rng.u64(..),
        rkey: rng.u32(..),
        dma_len: if opcode.has_reth() {
            dma_len
        } else {
            rng.u32(..)
        },
        imm: rng.u32(..),
        plen,
        lane: rng.u32(..64),
        beats: plen.div_ceil(64),
        ..Packet::default()
    };
    while opcode.has_reth() && !allowed(packet.rkey, qp.ctx.pd, packet.ext, dma_len) {
        packet.rkey = rng.u32(..);
    }
    packet
}

/// Makes a packet wrong, or come at the wrong time.
fn spoil(rng: &mut Rng, packet: &mut Packet, full: u32) {
    match rng.u8(..14) {
        0..=3 => packet.psn = packet.psn.wrapping_sub(rng.u32(1..200)) & MASK,
        4 => packet.psn = rng.u32(..=MASK),
        5..=8 => packet.psn = (packet.psn + rng.u32(1..20)) & MASK,
        9 => packet.opcode = rng.u8(..0x20),
        10 => packet.plen = [0, 1, full - 1, full, full + 1][rng.usize(..5)].min(4096),
        11 => packet.dma_len = [0, full, full + 1, 1 << 31, u32::MAX][rng.usize(..5)],
        12 => packet.dma_len = packet.dma_len.wrapping_add([1, u32::MAX][rng.usize(..2)]),
        _ => packet.rkey = rng.u32(..),
    }
}

/// Random traffic over a few queue pairs, with doorbells, failures, commands and errors among it.
fn random_traffic(idle: Pauses, back: Pauses, cycles: u64, spoilt: f64) -> Counts {
    let mut rig = Rig::new(idle, back);
    let mut rng = rig.bench.rng().clone();
    let qpns = [1, 2, 6];
    for qpn in qpns {
        let ctx = context(&mut rng);
        rig.connect(qpn, ctx, rng.u32(MASK - 50..=MASK));
    }
    let mut ahead: Vec<Rq> = rig.qps.clone();
    for _ in 0..cycles {
        let qpn = qpns[rng.usize(..3)];
        let qp = &rig.qps[qpn as usize];
        if !rig.has_packets(qpn) {
            ahead[qpn as usize] = qp.clone();
        }
        let dead = !matches!(qp.state, state::RTR | state::RTS | state::SQD | state::SQE);
        let (producer, posted) = (qp.producer, qp.producer.wrapping_sub(qp.index));
        let (incarnation, room) = (qp.incarnation, posted < 1 << qp.ctx.rq_log);
        let (packets, others) = rig.waiting();
        if dead && !rig.is_busy(qpn) && rng.u8(..4) == 0 {
            let ctx = context(&mut rng);
            rig.connect(qpn, ctx, rng.u32(..=MASK));
        } else if others == 0 && rng.u8(..12) == 0 && room {
            let more = rng.u16(1..4);
            rig.post(qpn, Event::Doorbell(producer.wrapping_add(more)));
        } else if others < 2 && rng.f64() < spoilt / 20.0 {
            let syndrome = rng.u8(0x61..=0x63);
            rig.fail_place(qpn, rng.u8(..4).min(incarnation), syndrome, rng.u8(..));
        } else if others < 2 && rng.f64() < spoilt / 40.0 {
            rig.post(qpn, Event::SqFailed);
        } else if (packets, others) == (0, 0) && !dead && rng.u8(..50) == 0 {
            // nothing else under way: out of error leads a reset only
            let states = [state::RTS, state::SQD, state::SQE, state::ERR];
            let command = Command {
                state: Some(states[rng.usize(..4)]),
                ..Command::default()
            };
            rig.post(qpn, Event::Command(command));
            rig.settle();
        }
        if packets < 6 {
            let next = &mut ahead[qpn as usize];
            let mut packet = next_packet(&mut rng, next);
            let mut found = reason::GOOD;
            if rng.f64() < spoilt {
                spoil(&mut rng, &mut packet, mtu(&next.ctx));
                if rng.u8(..8) == 0 {
                    found = rng.u8(..=5);
                }
            }
            let ok = allowed(packet.rkey, next.ctx.pd, packet.ext, packet.dma_len);
            next.packet(&packet, found, ok);
            rig.push(packet, found);
        }
        rig.step();
    }
    rig.finish();
    assert!(rig.seen.len() as u64 > cycles / 8, "traffic flowed");
    rig.counts().clone()
}

#[test]
fn random_traffic_at_full_rate() {
    random_traffic(Pauses::NONE, Pauses::NONE, 30_000, 0.1);
}

#[test]
fn random_traffic_with_pauses() {
    random_traffic(uneven(), uneven(), 30_000, 0.1);
}

#[test]
fn random_traffic_well_behaved() {
    random_traffic(Pauses::NONE, uneven(), 20_000, 0.005);
}

#[test]
fn random_traffic_hostile() {
    let counts = random_traffic(uneven(), Pauses::NONE, 30_000, 0.6);
    for (name, count) in counts {
        assert!(count > 0, "{name} never counted");
    }
}
