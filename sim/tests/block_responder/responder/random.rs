//! Random traffic: good, spoilt and hostile, with doorbells, failures and commands among it.

use fastrand::Rng;
use ferroce_proto::abi::qpc::{RqCtx, SrqCtx, state};
use ferroce_proto::wire::psn::MASK;
use ferroce_proto::wire::{Class, Opcode, Operation, Position, Suffix};
use ferroce_sim::random::Pauses;

use crate::drive::uneven;
use crate::reference::{Command, Packet, Rq, mtu, reason};
use crate::rig::{Counts, Event, Rig, rkey_ok};

/// Shared receive queues, the first of `SHARED_BY`.
const SRQNS: [u16; 2] = [1, 3];
/// Queue pairs that receive from the first, and from the second.
const SHARED_BY: [[u32; 3]; 2] = [[3, 10, 12], [4, 8, 15]];

fn context(rng: &mut Rng, qpn: u32, qp_type: u8) -> RqCtx {
    let shared = SHARED_BY.iter().position(|qpns| qpns.contains(&qpn));
    RqCtx {
        srq_valid: shared.is_some(),
        srqn: shared.map_or(rng.u16(..), |i| SRQNS[i]),
        remote_gid: rng.u128(..),
        rq_base: rng.u64(..) & !63,
        qp_type,
        mtu: rng.u8(1..=5),
        rq_log: rng.u8(0..=6),
        rq_stride: rng.u8(0..=3),
        min_rnr_timer: rng.u8(0..32),
        remote_write: rng.u8(..8) != 0,
        remote_read: rng.u8(..8) != 0,
        remote_atomic: rng.u8(..8) != 0,
        max_dest_rd_atomic: rng.u8(0..=16),
        pkey: 0xffff,
        sgid_index: 3,
        pd: rng.u32(..1 << 24),
        cqn: rng.u16(..),
        ..RqCtx::default()
    }
}

/// Transports that a queue pair may have.
const TRANSPORTS: [Class; 3] = [Class::Rc, Class::Uc, Class::Ud];

/// The next opcode of a well-behaved requester, with payload and RETH length.
fn next_opcode(rng: &mut Rng, qp: &Rq) -> (Opcode, u32, u32) {
    let full = mtu(&qp.ctx);
    let class = TRANSPORTS[usize::from(qp.ctx.qp_type).min(2)];
    let only = [0, 1, full, rng.u32(..full)][rng.usize(..4)];
    let asks =
        class == Class::Rc && qp.under_way().is_none() && qp.replies < qp.ctx.max_dest_rd_atomic;
    if asks && qp.ctx.remote_read && rng.u8(..4) == 0 {
        let length = [0, 1, full, full + 1, rng.u32(..20 * full)][rng.usize(..5)];
        return (Opcode::RcReadRequest, 0, length);
    }
    if asks && qp.ctx.remote_atomic && rng.u8(..4) == 0 {
        let opcode = [Opcode::RcCmpSwap, Opcode::RcFetchAdd][rng.usize(..2)];
        return (opcode, 0, rng.u32(..));
    }
    let (write, position, plen, dma_len) = match qp.under_way() {
        _ if class == Class::Ud => (false, Position::Only, only, 0),
        Some((true, left)) if left > full => (true, Position::Middle, full, 0),
        Some((true, left)) => (true, Position::Last, left, 0),
        Some((false, _)) if rng.u8(..3) != 0 => (false, Position::Middle, full, 0),
        Some((false, _)) => (false, Position::Last, rng.u32(1..=full), 0),
        None => {
            let write = rng.bool() && qp.ctx.remote_write;
            if rng.bool() {
                (write, Position::Only, only, only)
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
    let suffix = match (position, rng.u8(..3)) {
        (Position::First | Position::Middle, _) | (_, 0) => Suffix::None,
        (_, 1) if class == Class::Rc && !write => Suffix::Inv,
        _ => Suffix::Imm,
    };
    let opcode = Opcode::compose(class, operation, position, suffix).expect("an opcode");
    let dma_len = if opcode.has_reth() {
        dma_len
    } else {
        rng.u32(..)
    };
    (opcode, plen, dma_len)
}

/// The next packet of a well-behaved requester.
pub(super) fn next_packet(rng: &mut Rng, qp: &Rq) -> Packet {
    let (opcode, plen, dma_len) = next_opcode(rng, qp);
    let align = if opcode.has_atomic_eth() { 7 } else { 0 };
    let mut packet = Packet {
        opcode: opcode.code(),
        solicited: rng.bool(),
        ack_req: rng.bool(),
        pkey: rng.u16(..),
        qpn: qp.qpn,
        psn: qp.psn,
        ext: rng.u64(..) & !align,
        rkey: rng.u32(..),
        dma_len,
        operands: rng.u128(..1 << 96),
        imm: rng.u32(..),
        plen,
        lane: rng.u32(..64),
        beats: plen.div_ceil(64),
        ..Packet::default()
    };
    while !rkey_ok(&packet, qp.ctx.pd) {
        packet.rkey = rng.u32(..);
    }
    packet
}

/// Makes a packet wrong, or come at the wrong time.
fn spoil(rng: &mut Rng, packet: &mut Packet, full: u32) {
    let class = packet.opcode & 0xe0;
    match rng.u8(..15) {
        0..=3 => packet.psn = packet.psn.wrapping_sub(rng.u32(1..200)) & MASK,
        4 => packet.psn = rng.u32(..=MASK),
        5..=8 => packet.psn = (packet.psn + rng.u32(1..20)) & MASK,
        9 => packet.opcode = class | rng.u8(..0x20),
        10 => packet.plen = [0, 1, full - 1, full, full + 1][rng.usize(..5)].min(4096),
        11 => packet.dma_len = [0, full, full + 1, 1 << 31, u32::MAX][rng.usize(..5)],
        12 => packet.dma_len = packet.dma_len.wrapping_add([1, u32::MAX][rng.usize(..2)]),
        13 => packet.ext ^= 1 << rng.u8(..4),
        _ => packet.rkey = rng.u32(..),
    }
    if packet.is_datagram() {
        packet.opcode = [0x64, 0x65][rng.usize(..2)];
    }
}

/// What the reference makes of the packet, as the next one.
pub(super) fn foresee(qp: &mut Rq, packet: &Packet, found: u8) {
    if packet.is_datagram() {
        qp.grh(packet, &packet.grh(64), found);
        qp.payload(packet, found);
    } else {
        qp.packet(packet, found, rkey_ok(packet, qp.ctx.pd));
    }
}

/// Random traffic over a few queue pairs, with doorbells, failures, commands and errors among it.
fn random_traffic(idle: Pauses, back: Pauses, cycles: u64, spoilt: f64) -> Counts {
    let mut rig = Rig::new(idle, back);
    let mut rng = rig.bench.rng().clone();
    let qpns = [1, 2, 6, 7, 9, 3, 10, 12, 4, 8, 15];
    // RC, UC and UD, with a receive queue of their own and with shared ones
    let transports = [0, 0, 1, 1, 3, 0, 1, 3, 0, 0, 1];
    for srqn in SRQNS {
        let ctx = SrqCtx {
            base: rng.u64(..) & !63,
            numbers: rng.u64(..) & !63,
            log_size: rng.u8(2..=6),
            stride: rng.u8(0..=3),
            eqn: rng.u8(..),
            limit: rng.u16(..4),
            pd: rng.u32(..1 << 24),
            ..SrqCtx::default()
        };
        rig.create_srq(srqn, ctx);
    }
    for (qpn, qp_type) in qpns.into_iter().zip(transports) {
        let ctx = context(&mut rng, qpn, qp_type);
        rig.connect(qpn, ctx, rng.u32(MASK - 50..=MASK));
    }
    let mut ahead: Vec<Rq> = rig.qps.clone();
    for _ in 0..cycles {
        let qpn = qpns[rng.usize(..qpns.len())];
        let qp = &rig.qps[qpn as usize];
        if !rig.has_packets(qpn) {
            ahead[qpn as usize] = qp.clone();
        }
        let dead = !matches!(qp.state, state::RTR | state::RTS | state::SQD | state::SQE);
        let (producer, posted) = (qp.producer, qp.producer.wrapping_sub(qp.index));
        let (incarnation, room) = (qp.incarnation, posted < 1 << qp.ctx.rq_log);
        let waits = qp.replies > 0;
        let (packets, others) = rig.waiting();
        let srqn = SRQNS[rng.usize(..2)];
        let srq = rig.srqs.get(srqn).clone();
        let srq_posted = srq.producer.wrapping_sub(srq.consumer);
        if others == 0 && rng.u8(..8) == 0 && srq_posted < 1 << srq.ctx.log_size {
            let producer = srq.producer.wrapping_add(rng.u16(1..4));
            rig.post(srqn.into(), Event::SrqDoorbell(producer));
        } else if others == 0 && rng.u8(..40) == 0 {
            rig.post(srqn.into(), Event::SrqArm(rng.u16(..5)));
        } else if dead && !rig.is_busy(qpn) && rng.u8(..4) == 0 {
            let ctx = context(&mut rng, qpn, qp.ctx.qp_type);
            rig.connect(qpn, ctx, rng.u32(..=MASK));
        } else if others == 0 && rng.u8(..12) == 0 && room {
            let more = rng.u16(1..4);
            rig.post(qpn, Event::Doorbell(producer.wrapping_add(more)));
        } else if others < 2 && rng.u8(..8) == 0 && (waits || rng.u8(..8) == 0) {
            let incarnation = incarnation.wrapping_sub(u8::from(rng.u8(..8) == 0)) & 3;
            rig.post(qpn, Event::Replied(incarnation));
        } else if others < 2 && rng.f64() < spoilt / 20.0 {
            let syndrome = rng.u8(0x61..=0x63);
            rig.fail_place(qpn, rng.u8(..4).min(incarnation), syndrome, rng.u8(..));
        } else if others < 2 && rng.f64() < spoilt / 40.0 {
            rig.spare_place(qpn, incarnation);
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
                    found = rng.u8(..=6);
                }
            }
            foresee(next, &packet, found);
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
