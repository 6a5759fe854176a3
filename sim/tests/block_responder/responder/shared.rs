//! Shared receive queues: which queue pair takes which receive WQE, and the report when few are left.

use ferroce_proto::abi::qpc::{RqCtx, SrqCtx, qp_type, state};
use ferroce_proto::wire::Opcode;
use ferroce_sim::bench::Item;
use ferroce_sim::random::Pauses;

use super::{CTX, QPN, acks, asking, packet, send, write};
use crate::reference::{Command, Packet};
use crate::rig::{Event, Rig};

const SRQN: u16 = 2;
/// A ring of 4 receive WQEs of 4 slots at 0x8000, their numbers at 0xc000.
const SRQ: SrqCtx = SrqCtx {
    base: 0x8000,
    numbers: 0xc000,
    log_size: 2,
    stride: 2,
    rsv0: 0,
    eqn: 5,
    limit: 0,
    pd: 0x99,
    rsv1: 0,
};
/// Receives from it.
const SHARED: RqCtx = RqCtx {
    srq_valid: true,
    srqn: SRQN,
    ..CTX
};
/// The other queue pair that does.
const OTHER: u32 = 6;

fn rig(ctx: RqCtx, srq: SrqCtx, posted: u16) -> Rig {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    rig.create_srq(SRQN, srq);
    post(&mut rig, posted);
    rig.connect(QPN, ctx, 0);
    rig.connect(OTHER, ctx, 0);
    rig.seen.clear();
    rig
}

fn post(rig: &mut Rig, producer: u16) {
    rig.post(SRQN.into(), Event::SrqDoorbell(producer));
    rig.settle();
}

fn other(packet: Packet) -> Packet {
    Packet {
        qpn: OTHER,
        ..packet
    }
}

fn only(psn: u32) -> Packet {
    packet(Opcode::RcSendOnly, psn, 8)
}

/// Queue pair, ordinal and status of the completions.
fn completed(places: &[Item]) -> Vec<[u64; 3]> {
    let done = places.iter().filter(|place| place.get("complete") == 1);
    done.map(|place| ["qpn", "wqe_index", "status"].map(|field| place.get(field)))
        .collect()
}

#[test]
fn messages_of_two_queue_pairs_take_receive_wqes_in_their_order() {
    let mut rig = rig(SHARED, SRQ, 4);
    let places = send(
        &mut rig,
        [
            packet(Opcode::RcSendFirst, 0, 1024),
            other(only(0)),
            other(packet(Opcode::RcSendFirst, 1, 1024)),
            packet(Opcode::RcSendLast, 1, 4),
            other(packet(Opcode::RcSendLast, 2, 4)),
        ],
    );
    assert!(places.iter().all(|place| place.get("pd") == 0x99));
    let of = |name: &str| rig.fetched.iter().map(|read| read.get(name)).collect();
    let (queues, takes): (Vec<_>, Vec<_>) = (of("qpn"), of("takes"));
    assert_eq!(queues, [5, 6, 6, 5, 6]);
    assert_eq!(takes, [1, 1, 1, 0, 0]);
    assert_eq!(
        rig.fetched[..3]
            .iter()
            .map(|read| read.get("addr"))
            .collect::<Vec<_>>(),
        [0xc000, 0xc002, 0xc004]
    );
    assert_eq!(completed(&places), [[6, 1, 0], [5, 0, 0], [6, 2, 0]]);
    rig.finish();
}

#[test]
fn packets_that_follow_each_other_do_not_take_the_same() {
    let mut rig = rig(SHARED, SRQ, 1000);
    let both = (0..50).flat_map(|psn| [only(psn), other(only(psn))]);
    let places = send(&mut rig, both);
    let taken: Vec<_> = places.iter().map(|p| p.get("wqe_index")).collect();
    assert_eq!(taken, (0..100).collect::<Vec<_>>());
    rig.finish();
}

#[test]
fn the_ring_wraps() {
    let mut rig = rig(SHARED, SRQ, 4);
    for psn in 0..9 {
        let places = send(&mut rig, [only(psn)]);
        let read = rig.fetched.pop().expect("its number is read");
        assert_eq!(read.get("addr"), 0xc000 + u64::from(psn % 4) * 2);
        assert_eq!(places[0].get("wqe_index"), u64::from(psn));
        post(&mut rig, psn as u16 + 5);
    }
    rig.finish();
}

#[test]
fn an_empty_queue_is_not_ready() {
    let mut rig = rig(SHARED, SRQ, 1);
    // the own receive queue is not looked at
    rig.post(QPN, Event::Doorbell(3));
    rig.settle();
    let places = send(&mut rig, [other(only(0)), asking(only(0))]);
    assert_eq!(acks(&places), [[0, 0, 0x2c]]);
    post(&mut rig, 2);
    let places = send(&mut rig, [asking(only(0))]);
    assert_eq!(acks(&places), [[0, 1, 0x1f]]);
    assert_eq!(completed(&places), [[5, 1, 0]]);
    rig.finish();
}

#[test]
fn immediate_data_of_a_write_takes_one_and_has_its_own_domain() {
    let mut rig = rig(SHARED, SRQ, 1);
    let with_imm = |psn| write(packet(Opcode::RcWriteOnlyImm, psn, 8), 8, true);
    let places = send(&mut rig, [with_imm(0), asking(with_imm(1))]);
    assert_eq!(places[0].get("pd"), u64::from(CTX.pd));
    assert_eq!(completed(&places), [[5, 0, 0]]);
    assert_eq!(acks(&places), [[1, 1, 0x2c]]);
    let read = &rig.fetched[0];
    assert_eq!(
        ["takes", "list", "numbered"].map(|name| read.get(name)),
        [1, 0, 1]
    );
    rig.finish();
}

#[test]
fn an_error_flushes_only_the_message_under_way() {
    let mut rig = rig(SHARED, SRQ, 3);
    let first = || packet(Opcode::RcSendFirst, 0, 1024);
    let places = send(&mut rig, [first(), packet(Opcode::RcSendOnly, 1, 1)]);
    assert_eq!(acks(&places), [[1, 0, 0x61]]);
    assert_eq!(completed(&places), [[5, 0, 5]], "the others are everyone's");
    let places = send(&mut rig, [other(only(0))]);
    assert_eq!(completed(&places), [[6, 1, 0]]);
    // a command does as much, and nothing of a queue pair without a message
    rig.post(OTHER, set(state::ERR));
    rig.settle();
    assert_eq!(rig.srqs.get(SRQN).consumer, 2);
    assert!(rig.seen.drain(..).all(|(_, p)| p.get("complete") == 0));
    rig.finish();
}

/// A command that sets the state.
fn set(state: u8) -> Event {
    Event::Command(Command {
        state: Some(state),
        ..Command::default()
    })
}

#[test]
fn the_last_wqe_is_reported_once_after_its_completion() {
    let mut rig = rig(SHARED, SRQ, 3);
    let last_wqes = |rig: &mut Rig| {
        rig.settle();
        let of = |p: &Item| (p.get("last_wqe") == 1).then_some(p.get("qpn"));
        let found: Vec<u64> = rig.seen.drain(..).filter_map(|(_, p)| of(&p)).collect();
        found
    };
    send(&mut rig, [packet(Opcode::RcSendFirst, 0, 1024)]);
    rig.post(QPN, Event::SqFailed);
    rig.settle();
    let places: Vec<_> = rig.seen.drain(..).map(|(_, p)| p).collect();
    assert_eq!(completed(&places), [[5, 0, 5]]);
    assert_eq!(places.last().expect("it is the last").get("last_wqe"), 1);
    // neither the doorbell of the own receive queue nor a second command has it reported again
    rig.post(QPN, Event::Doorbell(2));
    rig.post(QPN, set(state::ERR));
    assert!(last_wqes(&mut rig).is_empty());
    // one that took none has it too
    rig.post(OTHER, set(state::INIT));
    rig.post(OTHER, set(state::ERR));
    assert_eq!(last_wqes(&mut rig), [u64::from(OTHER)]);
    // from RESET on there is none, and the next time there is
    rig.post(OTHER, set(state::RESET));
    rig.post(OTHER, set(state::ERR));
    assert!(last_wqes(&mut rig).is_empty());
    rig.connect(OTHER, SHARED, 0);
    rig.post(OTHER, set(state::ERR));
    assert_eq!(last_wqes(&mut rig), [u64::from(OTHER)]);
    rig.finish();
}

#[test]
fn a_dropped_message_leaves_its_wqe_to_the_next_of_its_queue_pair() {
    let uc = RqCtx {
        qp_type: qp_type::UC,
        ..SHARED
    };
    let mut rig = rig(uc, SRQ, 3);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 0, 1024),
            packet(Opcode::UcSendLast, 4, 1),
            other(packet(Opcode::UcSendOnly, 0, 1)),
            packet(Opcode::UcSendOnly, 5, 1),
            packet(Opcode::UcSendOnly, 6, 1),
        ],
    );
    assert_eq!(completed(&places), [[6, 1, 0], [5, 0, 0], [5, 2, 0]]);
    let places = send(&mut rig, [packet(Opcode::UcSendOnly, 7, 1)]);
    assert!(completed(&places).is_empty(), "none is left");
    post(&mut rig, 5);
    // what it left to itself is flushed
    send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 8, 1024),
            packet(Opcode::UcSendLast, 20, 1),
        ],
    );
    rig.post(QPN, Event::SqFailed);
    rig.settle();
    let flushed: Vec<_> = rig.seen.drain(..).map(|(_, item)| item).collect();
    assert_eq!(completed(&flushed), [[5, 3, 5]]);
    rig.finish();
}

#[test]
fn a_datagram_takes_one() {
    let ud = RqCtx {
        qp_type: qp_type::UD,
        ..SHARED
    };
    let mut rig = rig(ud, SRQ, 1);
    let datagram = || Packet {
        beats: 1,
        ..packet(Opcode::UdSendOnly, 0, 8)
    };
    let places = send(&mut rig, [other(datagram()), datagram()]);
    assert_eq!(completed(&places), [[6, 0, 0]]);
    assert_eq!(rig.fetched[0].get("base"), 0x8000);
    assert_eq!(places[0].get("pd"), 0x99);
    rig.finish();
}

#[test]
fn the_limit_is_reported_once() {
    let srq = SrqCtx { limit: 2, ..SRQ };
    let mut rig = rig(SHARED, srq, 4);
    let low = |rig: &mut Rig, psn| {
        let before = rig.limits_seen;
        send(rig, [only(psn)]);
        rig.limits_seen - before
    };
    let reports: Vec<_> = (0..4).map(|psn| low(&mut rig, psn)).collect();
    assert_eq!(reports, [0, 0, 1, 0], "one left, of a limit of two");
    post(&mut rig, 8);
    rig.post(SRQN.into(), Event::SrqArm(4));
    rig.settle();
    assert_eq!([low(&mut rig, 4), low(&mut rig, 5)], [1, 0]);
    // above what is there it is reported at once, and is none then
    let before = rig.limits_seen;
    rig.post(SRQN.into(), Event::SrqArm(2));
    rig.post(SRQN.into(), Event::SrqArm(3));
    rig.settle();
    assert_eq!(rig.limits_seen - before, 1, "two left");
    rig.post(SRQN.into(), Event::SrqArm(2));
    rig.post(SRQN.into(), Event::SrqArm(0));
    rig.settle();
    assert_eq!(low(&mut rig, 6), 0, "a limit of 0 is none");
    rig.finish();
}

#[test]
fn a_queue_that_does_not_exist_has_nothing() {
    let mut rig = rig(SHARED, SRQ, 4);
    send(&mut rig, [only(0)]);
    rig.post(SRQN.into(), Event::SrqDestroy);
    rig.settle();
    assert_eq!(acks(&send(&mut rig, [only(1)])), [[1, 1, 0x2c]]);
    // created again it starts at 0; the producer index is the host's
    rig.create_srq(SRQN, SRQ);
    let places = send(&mut rig, [only(1)]);
    assert_eq!(completed(&places), [[5, 0, 0]]);
    // a doorbell beyond the build is ignored: 4 + 2 is not 2
    rig.post(u32::from(SRQN) + 4, Event::SrqDoorbell(1));
    rig.settle();
    assert_eq!(completed(&send(&mut rig, [only(2)])), [[5, 1, 0]]);
    rig.finish();
}
