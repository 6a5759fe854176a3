//! Decisions of the responder: rules one by one, and random traffic.

mod failures;
mod random;
mod replies;
mod shared;
mod unreliable;

use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::psn::MASK;
use ferroce_sim::bench::{Item, StreamSink};
use ferroce_sim::random::Pauses;

use super::reference::{Command, Packet, reason};
use super::rig::{Event, Rig, rkey_ok};
use random::{foresee, next_packet};

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
    check_vlan: false,
    vlan: 0,
};

/// The queue pair of the directed tests.
const QPN: u32 = 5;

fn directed(psn: u32, posted: u16) -> Rig {
    directed_as(CTX, psn, posted)
}

fn directed_as(ctx: RqCtx, psn: u32, posted: u16) -> Rig {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.connect(QPN, ctx, psn);
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

/// A WRITE, READ or atomic of `dma_len` bytes whose rkey is good or not.
fn write(packet: Packet, dma_len: u32, good: bool) -> Packet {
    let mut packet = Packet {
        ext: 0x5000,
        dma_len,
        ..packet
    };
    let rkey = (0..10_000).find(|&rkey| {
        packet.rkey = rkey;
        rkey_ok(&packet, CTX.pd) == good
    });
    rkey.expect("there are both kinds");
    packet
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
    let fetched: Vec<_> = rig.fetched.iter().map(|read| read.get("addr")).collect();
    assert_eq!(fetched, [0x1000, 0x1000, 0x1000, 0x1080]);
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
        let read = rig.fetched.pop().expect("it is read");
        assert_eq!(read.get("addr"), 0x1000 + u64::from(psn % 4) * 128);
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
        [[10, 1, 0x1f]],
        "a duplicate is acknowledged again and does not"
    );
    rig.finish();
}

#[test]
fn half_of_the_psns_are_duplicates() {
    let mut rig = directed(5, 9);
    let far = |distance: u32| packet(Opcode::RcSendOnly, 5u32.wrapping_add(distance) & MASK, 0);
    let duplicates = send(&mut rig, [far(1 << 23), far(MASK)]);
    assert_eq!(acks(&duplicates), [[4, 0, 0x1f]; 2]);
    let far_ahead = send(&mut rig, [far((1 << 23) - 1)]);
    assert_eq!(acks(&far_ahead), [[5, 0, 0x60]]);
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

#[test]
fn packets_of_one_queue_pair_pass_in_every_cycle() {
    let mut rig = directed(MASK - 100, 60_000);
    let mut rng = rig.bench.rng().clone();
    let mut ahead = rig.qps[QPN as usize].clone();
    for _ in 0..2000 {
        let mut packet = next_packet(&mut rng, &ahead);
        packet.beats += 1;
        foresee(&mut ahead, &packet, reason::GOOD);
        rig.push(packet, reason::GOOD);
    }
    let start = rig.bench.cycle();
    rig.step();
    while rig.waiting().0 > 0 {
        rig.step();
    }
    assert_eq!(rig.bench.cycle() - start, 2000, "a packet a cycle");
    rig.settle();
    assert_eq!(rig.seen[0].0 - start, 8, "cycles to the placement");
    assert_eq!(rig.seen[1999].0 - start, 2007);
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

/// No placement is taken from now on.
fn stand(rig: &mut Rig) {
    rig.places = StreamSink::new(rig.bench.dut(), "m", Pauses::new(1.0, 1)).expect("a stream out");
}

/// They are again.
fn go_on(rig: &mut Rig) {
    rig.places = StreamSink::new(rig.bench.dut(), "m", Pauses::NONE).expect("a stream out");
}

/// Packets until nothing more has room, as no placement is taken.
fn stuck() -> Rig {
    let mut rig = directed(0, 100);
    stand(&mut rig);
    for psn in 0..100 {
        rig.push(packet(Opcode::RcSendOnly, psn, 64), reason::GOOD);
    }
    (0..200).for_each(|_| rig.step());
    assert!(rig.waiting().0 > 20, "no room for more");
    rig
}

#[test]
fn failed_placements_do_not_wait_for_placements() {
    let mut rig = stuck();
    rig.fail_place(QPN, rig.qps[QPN as usize].incarnation, 0x62, 4);
    rig.step();
    rig.step();
    assert_eq!(rig.waiting().1, 0, "scatter goes on");
    go_on(&mut rig);
    rig.finish();
}

#[test]
fn doorbells_wait_for_no_placement() {
    let mut rig = stuck();
    for producer in 101..109 {
        rig.post(QPN, Event::Doorbell(producer));
        rig.post(1, Event::SrqDoorbell(producer));
    }
    (0..20).for_each(|_| rig.step());
    assert_eq!(rig.waiting().1, 0, "what the host writes is taken");
    go_on(&mut rig);
    rig.finish();
}
