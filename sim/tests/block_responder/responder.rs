//! Decisions of the responder: rules one by one, and random traffic.

use fastrand::Rng;
use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::psn::MASK;
use ferroce_proto::wire::{Class, Opcode, Operation, Position, Suffix};
use ferroce_sim::bench::{Item, StreamSink};
use ferroce_sim::random::Pauses;

use super::drive::uneven;
use super::reference::{Command, Packet, Rq, mtu, reason};
use super::rig::{Counts, Event, Rig, allowed};

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

/// A queue pair of the directed tests: MTU 1024, ring of 4 receive WQEs of 2 slots at 0x1000.
const CTX: RqCtx = RqCtx {
    remote_gid: 0x1234,
    rq_base: 0x1000,
    mtu: 3,
    rq_log: 2,
    rq_stride: 1,
    min_rnr_timer: 12,
    remote_write: true,
    pkey: 0xffff,
    sgid_index: 3,
    pd: 7,
    cqn: 9,
    qp_type: 0,
    rsv0: 0,
    remote_read: false,
    remote_atomic: false,
    max_dest_rd_atomic: 0,
    srq_valid: false,
    srqn: 0,
    qkey: 0,
};

/// The queue pair of the directed tests.
const QPN: u32 = 5;

fn directed(psn: u32, posted: u16) -> Rig {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.connect(QPN, CTX, psn);
    rig.post(QPN, Event::Doorbell(posted));
    rig.settle();
    rig.seen.clear();
    rig
}

fn packet(opcode: Opcode, psn: u32, plen: u32) -> Packet {
    Packet {
        opcode: opcode.code(),
        qpn: QPN,
        psn,
        plen,
        beats: plen.div_ceil(64),
        ..Packet::default()
    }
}

fn asking(packet: Packet) -> Packet {
    Packet {
        ack_req: true,
        ..packet
    }
}

/// A WRITE of `dma_len` bytes whose rkey is good or not.
fn write(packet: Packet, dma_len: u32, good: bool) -> Packet {
    let keys = 0..10_000;
    let rkey = keys
        .into_iter()
        .find(|&key| allowed(key, CTX.pd, 0x5000, dma_len) == good);
    Packet {
        ext: 0x5000,
        rkey: rkey.expect("there are both kinds"),
        dma_len,
        ..packet
    }
}

/// Sends packets of the directed queue pair; the placements that follow.
fn send(rig: &mut Rig, packets: impl IntoIterator<Item = Packet>) -> Vec<Item> {
    for packet in packets {
        rig.push(packet, reason::GOOD);
    }
    rig.settle();
    rig.seen.drain(..).map(|(_, item)| item).collect()
}

/// Kind, PSN, MSN and syndrome of the acknowledgements among placements.
fn acks(places: &[Item]) -> Vec<[u64; 3]> {
    let with = places.iter().filter(|place| place.get("ack") == 1);
    with.map(|place| ["psn", "msn", "syndrome"].map(|field| place.get(field)))
        .collect()
}

#[test]
fn after_reset_a_queue_pair_does_not_exist() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.push(packet(Opcode::RcSendOnly, 0, 10), reason::GOOD);
    rig.post(QPN, Event::Command(Command::default()));
    rig.settle();
    let (_, place) = rig.seen.pop().expect("the beats are discarded");
    assert_eq!(
        ["kind", "beats", "ack"].map(|field| place.get(field)),
        [0, 1, 0]
    );
    rig.finish();
}

#[test]
fn a_reset_forgets_everything() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, 1));
    let open = |rig: &mut Rig| {
        rig.image(QPN, CTX);
        let command = Command {
            state: Some(state::RTR),
            reset: Some(7),
            image: true,
        };
        rig.post(QPN, Event::Command(command));
        rig.post(QPN, Event::Doorbell(9));
        (0..20).for_each(|_| rig.step());
    };
    open(&mut rig);
    for psn in 7..20 {
        rig.push(packet(Opcode::RcSendOnly, psn, 64), reason::GOOD);
    }
    (0..30).for_each(|_| rig.step());
    rig.restart(Pauses::NONE);
    rig.push(packet(Opcode::RcSendOnly, 7, 64), reason::GOOD);
    rig.settle();
    assert_eq!(rig.seen.len(), 1, "what stood in the queues is gone");
    open(&mut rig);
    rig.seen.clear();
    let places = send(&mut rig, [asking(packet(Opcode::RcSendOnly, 7, 64))]);
    assert_eq!(acks(&places), [[7, 1, 0x1f]]);
    rig.settle();
}

#[test]
fn a_send_takes_a_receive_wqe_at_its_first_packet() {
    let mut rig = directed(MASK, 6);
    let places = send(
        &mut rig,
        [
            packet(Opcode::RcSendFirst, MASK, 1024),
            packet(Opcode::RcSendMiddle, 0, 1024),
            asking(packet(Opcode::RcSendLast, 1, 1)),
            packet(Opcode::RcSendOnly, 2, 0),
        ],
    );
    let field = |name: &str| places.iter().map(|p| p.get(name)).collect::<Vec<_>>();
    assert_eq!(field("kind"), [2, 2, 2, 2]);
    assert_eq!(field("addr"), [0x1000, 0x1000, 0x1000, 0x1080]);
    assert_eq!(field("offset"), [0, 1024, 2048, 0]);
    assert_eq!(field("complete"), [0, 0, 1, 1]);
    assert_eq!(places[2].get("byte_len"), 2049);
    assert_eq!(field("wqe_index"), [0, 0, 0, 1]);
    assert_eq!(acks(&places), [[1, 1, 0x1f]], "PSN wrapped, one message");
    rig.finish();
}

#[test]
fn receive_wqes_wrap_around_their_ring() {
    let mut rig = directed(0, 3);
    for psn in 0..6 {
        let places = send(&mut rig, [packet(Opcode::RcSendOnly, psn, 1)]);
        rig.post(QPN, Event::Doorbell(psn as u16 + 4));
        rig.settle();
        assert_eq!(places[0].get("addr"), 0x1000 + u64::from(psn % 4) * 128);
        assert_eq!(places[0].get("wqe_index"), u64::from(psn));
    }
    rig.finish();
}

#[test]
fn a_gap_draws_one_nak() {
    let mut rig = directed(10, 9);
    let ahead = |psn| packet(Opcode::RcSendOnly, psn, 8);
    let places = send(&mut rig, [ahead(11), ahead(12), asking(ahead(13))]);
    assert_eq!(acks(&places), [[10, 0, 0x60]]);
    assert!(
        places
            .iter()
            .all(|p| p.get("kind") == 0 && p.get("beats") == 1)
    );
    assert_eq!(
        acks(&send(&mut rig, [asking(ahead(10)), ahead(12)])),
        [[10, 1, 0x1f], [11, 1, 0x60]],
        "the expected PSN ends the silence"
    );
    assert_eq!(
        acks(&send(&mut rig, [ahead(13), ahead(9), ahead(12)])),
        [[10, 1, 0x1f], [11, 1, 0x60]],
        "so does a duplicate, which is acknowledged again"
    );
    rig.finish();
}

#[test]
fn half_of_the_psns_are_duplicates() {
    let mut rig = directed(5, 9);
    let far = |distance: u32| packet(Opcode::RcSendOnly, 5u32.wrapping_add(distance) & MASK, 0);
    let duplicates = send(&mut rig, [far(1 << 23), far(MASK)]);
    assert_eq!(acks(&duplicates), [[4, 0, 0x1f]; 2]);
    let beyond = send(&mut rig, [far((1 << 23) - 1)]);
    assert_eq!(acks(&beyond), [[5, 0, 0x60]]);
    rig.finish();
}

#[test]
fn without_a_receive_wqe_the_answer_is_rnr() {
    let mut rig = directed(0, 0);
    let first = || packet(Opcode::RcSendFirst, 0, 1024);
    let places = send(
        &mut rig,
        [first(), packet(Opcode::RcSendLast, 1, 3), first()],
    );
    assert_eq!(
        acks(&places),
        [[0, 0, 0x2c], [0, 0, 0x2c]],
        "and silence on what follows"
    );
    let with_imm = write(packet(Opcode::RcWriteOnlyImm, 0, 8), 8, true);
    assert_eq!(acks(&send(&mut rig, [with_imm])), [[0, 0, 0x2c]]);
    rig.post(QPN, Event::Doorbell(1));
    rig.settle();
    let places = send(
        &mut rig,
        [first(), asking(packet(Opcode::RcSendLast, 1, 3))],
    );
    assert_eq!(acks(&places), [[1, 1, 0x1f]]);
    rig.finish();
}

#[test]
fn a_write_needs_its_rkey_at_its_first_packet_only() {
    let mut rig = directed(0, 1);
    let write_first = write(packet(Opcode::RcWriteFirst, 0, 1024), 1030, true);
    let last = asking(packet(Opcode::RcWriteLastImm, 1, 6));
    let places = send(&mut rig, [write_first, last]);
    let field = |name: &str| places.iter().map(|p| p.get(name)).collect::<Vec<_>>();
    assert_eq!(field("kind"), [1, 1]);
    assert_eq!(field("addr"), [0x5000, 0x5400]);
    assert_eq!(field("complete"), [0, 1]);
    assert_eq!(places[1].get("cqe_opcode"), 0x81);
    assert_eq!(places[1].get("byte_len"), 1030);
    let empty = Packet {
        rkey: 0xdead,
        ..asking(packet(Opcode::RcWriteOnly, 2, 0))
    };
    assert_eq!(
        acks(&send(&mut rig, [empty])),
        [[2, 2, 0x1f]],
        "zero bytes need none"
    );
    let bad = write(packet(Opcode::RcWriteOnly, 3, 8), 8, false);
    let places = send(&mut rig, [bad, packet(Opcode::RcSendOnly, 3, 8)]);
    assert_eq!(
        acks(&places),
        [[3, 2, 0x62]],
        "then the queue pair is in error"
    );
    rig.finish();
}

/// Packets of which the last is an invalid request.
fn invalid_requests() -> Vec<Vec<Packet>> {
    let send_first = || packet(Opcode::RcSendFirst, 0, 1024);
    let write_first = |len| write(packet(Opcode::RcWriteFirst, 0, 1024), len, true);
    let no_opcode = Packet {
        opcode: 0x15,
        ..packet(Opcode::RcSendOnly, 0, 8)
    };
    vec![
        vec![no_opcode],
        vec![packet(Opcode::RcReadRequest, 0, 0)],
        vec![packet(Opcode::RcSendOnlyInv, 0, 8)],
        vec![packet(Opcode::RcSendMiddle, 0, 1024)],
        vec![packet(Opcode::RcSendLast, 0, 8)],
        vec![packet(Opcode::RcSendFirst, 0, 1023)],
        vec![packet(Opcode::RcSendOnly, 0, 1025)],
        vec![send_first(), packet(Opcode::RcSendOnly, 1, 8)],
        vec![send_first(), packet(Opcode::RcWriteMiddle, 1, 1024)],
        vec![send_first(), packet(Opcode::RcSendMiddle, 1, 1020)],
        vec![send_first(), packet(Opcode::RcSendLast, 1, 0)],
        vec![write(packet(Opcode::RcWriteOnly, 0, 8), 9, true)],
        vec![write_first(1024)],
        vec![write_first((1 << 31) + 1)],
        vec![write_first(2048), packet(Opcode::RcWriteMiddle, 1, 1024)],
        vec![write_first(2049), packet(Opcode::RcWriteLast, 1, 1024)],
        vec![write_first(2047), packet(Opcode::RcWriteLast, 1, 1024)],
        vec![write_first(2048), packet(Opcode::RcSendLast, 1, 1024)],
    ]
}

#[test]
fn invalid_requests_end_the_queue_pair() {
    for packets in invalid_requests() {
        let mut rig = directed(0, 2);
        let psn = packets.len() as u64 - 1;
        let is_send = packets[0].opcode == Opcode::RcSendFirst.code();
        let what = format!("{packets:?}");
        let places = send(&mut rig, packets);
        assert_eq!(acks(&places), [[psn, 0, 0x61]], "{what}");
        let flushed: Vec<_> = places
            .iter()
            .filter(|place| place.get("status") == 5)
            .map(|place| place.get("wqe_index"))
            .collect();
        assert_eq!(flushed, [0, 1], "taken by the SEND: {is_send}; {what}");
        rig.post(QPN, Event::Doorbell(4));
        rig.settle();
        assert_eq!(
            rig.seen.drain(..).len(),
            2,
            "posted in error, flushed at once"
        );
        rig.finish();
    }
}

#[test]
fn a_failed_placement_ends_the_queue_pair_once() {
    let mut rig = directed(0, 3);
    send(&mut rig, [packet(Opcode::RcSendFirst, 0, 1024)]);
    let incarnation = rig.qps[QPN as usize].incarnation;
    rig.fail_place(QPN, incarnation.wrapping_sub(1) & 3, 0x63, 4);
    rig.settle();
    assert_eq!(rig.qps[QPN as usize].state, state::RTR, "of another life");
    rig.fail_place(QPN, incarnation, 0x63, 4);
    rig.fail_place(QPN, incarnation, 0x61, 1);
    rig.settle();
    let flushed: Vec<_> = rig.seen.iter().map(|(_, p)| p.get("wqe_index")).collect();
    assert_eq!(flushed, [0, 1, 2], "also the one of the SEND under way");
    rig.finish();
}

#[test]
fn a_failed_send_queue_flushes_the_receive_queue() {
    let mut rig = directed(0, 2);
    rig.post(QPN, Event::SqFailed);
    rig.settle();
    assert_eq!(rig.seen.drain(..).len(), 2);
    assert!(send(&mut rig, [packet(Opcode::RcSendOnly, 0, 0)]).is_empty());
    rig.finish();
}

#[test]
fn packets_of_one_queue_pair_pass_in_every_cycle() {
    let mut rig = directed(MASK - 100, 60_000);
    let mut rng = rig.bench.rng().clone();
    let mut ahead = rig.qps[QPN as usize].clone();
    for _ in 0..2000 {
        let mut packet = next_packet(&mut rng, &ahead);
        packet.beats += 1;
        let ok = allowed(packet.rkey, CTX.pd, packet.ext, packet.dma_len);
        ahead.packet(&packet, reason::GOOD, ok);
        rig.push(packet, reason::GOOD);
    }
    let start = rig.bench.cycle();
    rig.step();
    while rig.waiting().0 > 0 {
        rig.step();
    }
    assert_eq!(rig.bench.cycle() - start, 2000, "a packet a cycle");
    rig.settle();
    assert_eq!(rig.seen[0].0 - start, 9, "cycles to the placement");
    assert_eq!(rig.seen[1999].0 - start, 2008);
    assert_eq!(ahead.state, state::RTR);
    rig.finish();
}

#[test]
fn everything_waits_for_a_slow_placement() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(0.5, 60));
    rig.connect(QPN, CTX, 0);
    rig.post(QPN, Event::Doorbell(1000));
    for psn in 0..300 {
        rig.push(packet(Opcode::RcSendOnly, psn, 64), reason::GOOD);
    }
    rig.finish();
}

#[test]
fn failed_placements_do_not_wait_for_placements() {
    let mut rig = directed(0, 100);
    rig.places = StreamSink::new(rig.bench.dut(), "m", Pauses::new(1.0, 1)).expect("a stream out");
    for psn in 0..100 {
        rig.push(packet(Opcode::RcSendOnly, psn, 64), reason::GOOD);
    }
    (0..200).for_each(|_| rig.step());
    assert!(rig.waiting().0 > 20, "no room for more");
    rig.fail_place(QPN, rig.qps[QPN as usize].incarnation, 0x62, 4);
    rig.step();
    rig.step();
    assert_eq!(rig.waiting().1, 0, "scatter goes on");
    rig.places = StreamSink::new(rig.bench.dut(), "m", Pauses::NONE).expect("a stream out");
    rig.finish();
}

/// The next packet of a well-behaved requester.
fn next_packet(rng: &mut Rng, qp: &Rq) -> Packet {
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
