//! What ends a queue pair: invalid requests, failed placements, a failed send queue. The receive queue is flushed.

use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::Opcode;

use super::{QPN, acks, directed, packet, send, write};
use crate::reference::{Command, Packet};
use crate::rig::Event;

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
fn a_failed_write_of_an_unreliable_queue_pair_is_counted_alone() {
    let mut rig = directed(0, 2);
    let incarnation = rig.qps[QPN as usize].incarnation;
    rig.spare_place(QPN, incarnation);
    rig.spare_place(QPN, incarnation.wrapping_sub(1) & 3);
    rig.settle();
    assert_eq!(rig.qps[QPN as usize].state, state::RTR);
    assert_eq!(rig.counts()["access_errors"], 1);
    let places = send(&mut rig, [packet(Opcode::RcSendOnly, 0, 8)]);
    assert_eq!(places.len(), 1, "it goes on");
    rig.finish();
}

#[test]
fn a_failed_send_queue_flushes_the_receive_queue() {
    let mut rig = directed(0, 2);
    rig.post(QPN, Event::SqFailed);
    rig.settle();
    let places: Vec<_> = rig.seen.drain(..).map(|(_, place)| place).collect();
    assert_eq!(places.len(), 3);
    assert_eq!(places[0].get("rsp_flush"), 1, "nothing more is answered");
    assert!(send(&mut rig, [packet(Opcode::RcSendOnly, 0, 0)]).is_empty());
    // it is in error already
    rig.post(QPN, Event::SqFailed);
    rig.settle();
    assert!(rig.seen.is_empty());
    rig.finish();
}

#[test]
fn error_by_command_halts_the_answers() {
    let mut rig = directed(0, 0);
    let command = Command {
        state: Some(state::ERR),
        ..Command::default()
    };
    rig.post(QPN, Event::Command(command));
    rig.settle();
    let halts: Vec<_> = rig
        .seen
        .drain(..)
        .map(|(_, p)| p.get("rsp_flush"))
        .collect();
    assert_eq!(halts, [1]);
    rig.finish();
}
