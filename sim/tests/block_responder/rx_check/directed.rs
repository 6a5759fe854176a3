//! Rules of the receive checks one by one.

use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::wire::Opcode;
use ferroce_sim::random::Pauses;

use super::{Fields, Rig, packet};
use crate::reference::{Packet, reason};

#[test]
fn a_packet_takes_three_cycles() {
    let mut rig = Rig::new::<64, 1>(Pauses::NONE, Pauses::NONE);
    let mut rng = rig.bench.rng().clone();
    let mut packet = packet(&mut rng, &rig.contexts);
    packet.qpn = 0;
    packet.opcode = Opcode::RcSendOnly.code();
    rig.push(&packet);
    rig.finish();
    let sent = rig.packets.last_sent().expect("it was sent");
    assert_eq!(rig.arrived, [sent + 3]);
    assert_eq!(rig.reasons[usize::from(reason::NO_QP)], 1, "queue pair 0");
}

/// A rig with one queue pair of a transport that knows its peer, and a SEND of 64 bytes to it.
fn directed<const K: usize>(qp_type: u8) -> (Rig, Packet) {
    let mut rig = Rig::new::<K, 1>(Pauses::NONE, Pauses::NONE);
    let ctx = RqCtx {
        qp_type,
        remote_gid: 5,
        sgid_index: 3,
        pkey: 0x8001,
        qkey: 0x1234_5678,
        mtu: 1,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
        ..RqCtx::default()
    };
    rig.contexts[1] = ctx;
    rig.images.start(rig.bench.dut_mut(), 1, &ctx);
    rig.step();
    rig.images.end(rig.bench.dut_mut());
    let packet = Packet {
        opcode: qp_type << 5 | 4,
        pkey: 0x0001,
        qpn: 1,
        src_gid: 5,
        gid_index: 3,
        ext: 0x1234_5678 << 32 | 0x77,
        plen: 64,
        beats: 1,
        ..Packet::default()
    };
    (rig, packet)
}

#[test]
fn a_datagram_is_its_grh_and_its_payload() {
    fn one<const K: usize>() {
        let (mut rig, datagram) = directed::<K>(3);
        rig.push(&Packet {
            src_gid: 6,
            gid_index: 9,
            ..datagram.clone()
        });
        assert_eq!(rig.reasons[0], 1, "from anywhere, to any address");
        let grh = &rig.expected[0];
        assert!(grh.contains(&("beats", 40u64.div_ceil(K as u64))));
        assert_eq!(rig.expected_order, [0, 0]);
        rig.push(&Packet {
            plen: 0,
            beats: 0,
            ..datagram.clone()
        });
        assert_eq!(rig.expected_order, [0, 0, 0], "an empty one has its GRH");
        rig.push(&Packet {
            plen: 257,
            ..datagram.clone()
        });
        rig.push(&Packet {
            ext: 0x77,
            ..datagram
        });
        assert_eq!(rig.reasons[usize::from(reason::QKEY)], 1);
        let invalid = |fields: &Fields| fields.contains(&("invalid", 1));
        assert!(rig.expected.iter().skip(4).take(2).all(invalid), "MTU");
        rig.finish();
    }
    one::<64>();
    one::<8>();
}

#[test]
fn the_transport_is_that_of_the_queue_pair() {
    for qp_type in [0, 1, 3] {
        let (mut rig, packet) = directed::<64>(qp_type);
        for class in 0..4 {
            rig.push(&Packet {
                opcode: class << 5 | 4,
                ..packet.clone()
            });
        }
        assert_eq!(rig.reasons[0], 1);
        assert_eq!(rig.reasons[usize::from(reason::TRANSPORT)], 3);
        rig.finish();
    }
}

#[test]
fn data_for_the_requester_is_announced_in_order() {
    let (mut rig, packet) = directed::<64>(0);
    for opcode in [
        Opcode::RcSendOnly,
        Opcode::RcReadResponseFirst,
        Opcode::RcReadResponseMiddle,
        Opcode::RcSendOnlyInv,
        Opcode::RcReadResponseLast,
        Opcode::RcAtomicAck,
    ] {
        rig.push(&Packet {
            opcode: opcode.code(),
            ..packet.clone()
        });
    }
    rig.push(&Packet {
        opcode: Opcode::RcAck.code(),
        beats: 0,
        ..packet.clone()
    });
    // of another peer: dropped where requests are
    rig.push(&Packet {
        opcode: Opcode::RcReadResponseOnly.code(),
        src_gid: 6,
        ..packet
    });
    assert_eq!(rig.expected_order, [0, 1, 1, 0, 1, 1, 0]);
    assert_eq!(rig.expected_responses.len(), 5);
    rig.finish();
}

#[test]
fn reads_and_atomics_have_a_form() {
    let (mut rig, packet) = directed::<64>(0);
    let lengths = [0, 1, 256, 257, 1 << 31, (1 << 31) + 1];
    for dma_len in lengths {
        rig.push(&Packet {
            opcode: Opcode::RcReadRequest.code(),
            dma_len,
            plen: 0,
            beats: 0,
            ..packet.clone()
        });
    }
    for ext in [0, 8, 1, 4] {
        rig.push(&Packet {
            opcode: Opcode::RcFetchAdd.code(),
            ext,
            plen: 0,
            beats: 0,
            ..packet.clone()
        });
    }
    let of = |rig: &Rig, name: &str| -> Vec<_> {
        let fields = rig.expected.iter().flatten();
        fields.filter(|f| f.0 == name).map(|f| f.1).collect()
    };
    assert_eq!(of(&rig, "invalid"), [0, 0, 0, 0, 0, 1, 0, 0, 1, 1]);
    assert_eq!(of(&rig, "more"), [0, 0, 0, 1, (1 << 23) - 1]);
    rig.finish();
}

#[test]
fn thirty_two_responses_wait_for_the_requester() {
    let (mut rig, packet) = directed::<64>(0);
    rig.hear_responses(false);
    for _ in 0..60 {
        rig.push(&Packet {
            opcode: Opcode::RcAck.code(),
            beats: 0,
            ..packet.clone()
        });
    }
    (0..100).for_each(|_| rig.step());
    assert!(
        (32..40).contains(&rig.packets.sent()),
        "{}",
        rig.packets.sent()
    );
    rig.hear_responses(true);
    rig.finish();
}

#[test]
fn a_response_to_a_queue_pair_that_is_gone_is_for_none() {
    let (mut rig, packet) = directed::<64>(0);
    let ack = Packet {
        opcode: Opcode::RcAck.code(),
        plen: 0,
        beats: 0,
        ..packet.clone()
    };
    rig.push(&ack);
    rig.finish();
    rig.exists(1, false);
    let before = rig.reasons;
    rig.push(&ack);
    rig.push(&packet);
    rig.finish();
    assert_eq!(rig.arrived.len(), 2, "both go to the responder");
    rig.exists(1, true);
    rig.push(&ack);
    rig.finish();
    let more =
        rig.reasons[usize::from(reason::NO_REQUEST)] - before[usize::from(reason::NO_REQUEST)];
    assert_eq!((rig.arrived.len(), more), (2, 1));
}
