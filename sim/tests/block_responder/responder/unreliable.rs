//! UC and UD: nothing is answered, what is wrong is dropped.

use ferroce_proto::abi::qpc::{RqCtx, qp_type, state};
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::psn::MASK;
use ferroce_sim::bench::Item;

use super::{CTX, QPN, acks, asking, directed_as, packet, send, write};
use crate::reference::{Packet, reason};
use crate::rig::{Event, Rig};

const UC: RqCtx = RqCtx {
    qp_type: qp_type::UC,
    ..CTX
};

const UD: RqCtx = RqCtx {
    qp_type: qp_type::UD,
    ..CTX
};

/// Ordinals of the receive WQEs of the messages that completed.
fn completed(places: &[Item]) -> Vec<u64> {
    let done = places.iter().filter(|place| place.get("complete") == 1);
    done.map(|place| place.get("wqe_index")).collect()
}

fn kinds(places: &[Item]) -> Vec<u64> {
    places.iter().map(|place| place.get("kind")).collect()
}

/// It still runs, and no acknowledgement went out.
fn is_well(rig: &Rig, places: &[Item]) {
    assert_eq!(rig.qps[QPN as usize].state, state::RTR);
    assert!(acks(places).is_empty());
}

#[test]
fn uc_messages_complete_without_an_answer() {
    let mut rig = directed_as(UC, MASK, 2);
    let first = write(packet(Opcode::UcWriteFirst, 1, 1024), 1030, true);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, MASK, 1024),
            asking(packet(Opcode::UcSendLast, 0, 3)),
            first,
            asking(packet(Opcode::UcWriteLastImm, 2, 6)),
        ],
    );
    assert_eq!(kinds(&places), [2, 2, 1, 1]);
    assert_eq!(completed(&places), [0, 1]);
    assert!(places.iter().all(|place| place.get("unreliable") == 1));
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn a_uc_message_with_a_gap_is_dropped_and_its_wqe_used_again() {
    let mut rig = directed_as(UC, 0, 2);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 0, 1024),
            packet(Opcode::UcSendMiddle, 2, 1024),
            packet(Opcode::UcSendLast, 3, 1),
            packet(Opcode::UcSendOnly, 4, 1),
            // behind a gap a message starts
            packet(Opcode::UcSendOnly, 9, 1),
            packet(Opcode::UcSendLast, 10, 1),
        ],
    );
    assert_eq!(kinds(&places), [2, 0, 0, 2, 2, 0]);
    assert_eq!(completed(&places), [0, 1]);
    assert_eq!(rig.counts()["out_of_sequence"], 2);
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn a_uc_message_that_starts_drops_the_one_before() {
    let mut rig = directed_as(UC, 0, 1);
    let written = write(packet(Opcode::UcWriteOnly, 2, 8), 8, true);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 0, 1024),
            packet(Opcode::UcSendFirst, 1, 1024),
            written,
            packet(Opcode::UcSendOnly, 3, 8),
        ],
    );
    assert_eq!(kinds(&places), [2, 2, 1, 2]);
    let addresses: Vec<_> = rig.fetched.iter().map(|read| read.get("addr")).collect();
    assert_eq!(addresses, [0x1000; 3], "one receive WQE for all");
    assert_eq!(completed(&places), [0]);
    let with_imm = |psn| write(packet(Opcode::UcWriteOnlyImm, psn, 8), 8, true);
    rig.post(QPN, Event::Doorbell(2));
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 4, 1024),
            with_imm(5),
            with_imm(6),
        ],
    );
    assert_eq!(completed(&places), [1], "then there is none");
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn uc_counts_violations_and_goes_on() {
    let mut rig = directed_as(UC, 0, 1);
    let send_first = |psn| packet(Opcode::UcSendFirst, psn, 1024);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 0, 1000),
            packet(Opcode::UcSendLast, 1, 8),
            send_first(2),
            packet(Opcode::UcWriteLast, 3, 8),
            send_first(4),
            packet(Opcode::UcSendLast, 5, 0),
            write(packet(Opcode::UcWriteOnly, 6, 8), 8, false),
            write(packet(Opcode::UcWriteOnly, 7, 8), 9, true),
            packet(Opcode::UcSendOnly, 8, 8),
        ],
    );
    assert_eq!(kinds(&places), [0, 0, 2, 0, 2, 0, 0, 2]);
    assert_eq!(completed(&places), [0]);
    assert_eq!(rig.counts()["invalid_request_errors"], 4);
    assert_eq!(rig.counts()["access_errors"], 1);
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn uc_without_a_receive_wqe_drops_the_message() {
    let mut rig = directed_as(UC, 0, 0);
    let places = send(
        &mut rig,
        [
            packet(Opcode::UcSendFirst, 0, 1024),
            packet(Opcode::UcSendLast, 1, 8),
        ],
    );
    rig.post(QPN, Event::Doorbell(1));
    rig.settle();
    assert_eq!(kinds(&places), [0, 0]);
    assert_eq!(rig.counts()["rnr_nak_sent"], 0);
    let places = send(&mut rig, [packet(Opcode::UcSendOnly, 2, 8)]);
    assert_eq!(completed(&places), [0]);
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn a_uc_queue_pair_in_error_flushes_the_wqe_of_the_message_under_way() {
    let mut rig = directed_as(UC, 0, 3);
    send(&mut rig, [packet(Opcode::UcSendFirst, 0, 1024)]);
    let incarnation = rig.qps[QPN as usize].incarnation;
    rig.fail_place(QPN, incarnation, 0x61, 1);
    rig.settle();
    let flushed: Vec<_> = rig
        .seen
        .drain(..)
        .map(|(_, p)| p.get("wqe_index"))
        .collect();
    assert_eq!(flushed, [0, 1, 2]);
    rig.finish();
}

fn datagram(psn: u32, plen: u32) -> Packet {
    Packet {
        ext: 0x77_0000_1234,
        pkey: 0x8001,
        ..packet(Opcode::UdSendOnly, psn, plen)
    }
}

#[test]
fn a_datagram_takes_a_wqe_for_its_grh_and_its_payload() {
    let mut rig = directed_as(UD, 0, 2);
    let with_imm = Packet {
        opcode: Opcode::UdSendOnlyImm.code(),
        imm: 5,
        ..datagram(77, 1024)
    };
    let places = send(&mut rig, [with_imm, asking(datagram(3, 0))]);
    let field = |name: &str| places.iter().map(|p| p.get(name)).collect::<Vec<_>>();
    assert_eq!(field("kind"), [2; 4]);
    assert_eq!(field("offset"), [0, 40, 0, 40]);
    assert_eq!(field("plen"), [40, 1024, 40, 0]);
    assert_eq!(field("complete"), [0, 1, 0, 1]);
    assert_eq!(places[1].get("byte_len"), 1064);
    assert_eq!(places[3].get("byte_len"), 40);
    assert_eq!(places[1].get("src_qpn"), 0x1234);
    assert_eq!(places[1].get("pkey"), 0x8001);
    assert_eq!(places[1].get("imm"), 5);
    assert_eq!(places[1].get("grh"), 1);
    assert_eq!(completed(&places), [0, 1]);
    assert_eq!(rig.counts()["out_of_sequence"], 0, "whatever the PSN");
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn a_datagram_is_dropped_whole() {
    let mut rig = directed_as(UD, 0, 0);
    let places = send(&mut rig, [datagram(0, 64)]);
    assert_eq!(kinds(&places), [0, 0], "no receive WQE");
    assert_eq!(rig.counts()["rx_send_requests"], 0);
    rig.post(QPN, Event::Doorbell(1));
    rig.push(datagram(0, 64), reason::QKEY);
    let places = send(&mut rig, [datagram(0, 1025), datagram(0, 64)]);
    assert_eq!(kinds(&places), [0, 0, 0, 0, 2, 2]);
    assert_eq!(completed(&places), [0]);
    assert_eq!(rig.counts()["rx_qkey_violations"], 1);
    assert_eq!(rig.counts()["invalid_request_errors"], 1, "over the MTU");
    is_well(&rig, &places);
    rig.finish();
}

#[test]
fn the_end_of_a_queue_pair_between_grh_and_payload_drops_the_payload() {
    for seed in 0..12 {
        let mut rig = directed_as(UD, 0, 2);
        rig.push(datagram(0, 64), reason::GOOD);
        rig.push(datagram(0, 64), reason::GOOD);
        (0..seed / 2).for_each(|_| rig.step());
        rig.post(QPN, Event::SqFailed);
        rig.settle();
        let ended = rig.seen.drain(..).filter(|(_, p)| p.get("complete") == 1);
        assert_eq!(ended.count(), 2, "each receive WQE completes once");
        rig.finish();
    }
}
