//! READs and atomics: what they take, how many there may be, when they are answered again.

use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::psn::MASK;
use ferroce_sim::bench::Item;

use super::{CTX, QPN, acks, asking, directed_as, go_on, packet, send, stand, write};
use crate::reference::{Command, Packet, reason};
use crate::rig::{Event, Rig};

const READABLE: RqCtx = RqCtx {
    remote_read: true,
    remote_atomic: true,
    max_dest_rd_atomic: 2,
    ..CTX
};

fn rig(psn: u32) -> Rig {
    directed_as(READABLE, psn, 4)
}

fn read(psn: u32, length: u32) -> Packet {
    write(packet(Opcode::RcReadRequest, psn, 0), length, true)
}

fn add(psn: u32) -> Packet {
    write(packet(Opcode::RcFetchAdd, psn, 0), 0, true)
}

/// PSN, MSN and duplicate flag of the READs and atomics to answer since the last call.
fn asked(rig: &mut Rig) -> Vec<[u64; 3]> {
    let of = |item: &Item| ["psn", "msn", "duplicate"].map(|field| item.get(field));
    rig.asked.drain(..).map(|item| of(&item)).collect()
}

fn replied(rig: &mut Rig, incarnation: u8) {
    rig.post(QPN, Event::Replied(incarnation));
    rig.settle();
}

#[test]
fn a_read_takes_the_psns_of_its_response() {
    let mut rig = rig(MASK - 1);
    let places = send(&mut rig, [asking(read(MASK - 1, 2049))]);
    assert!(acks(&places).is_empty(), "the response is the answer");
    assert_eq!(places[0].get("reply"), 1);
    assert_eq!(rig.asked[0].get("len"), 2049);
    assert_eq!(asked(&mut rig), [[u64::from(MASK) - 1, 1, 0]]);
    send(&mut rig, [read(1, 0)]);
    assert_eq!(asked(&mut rig), [[1, 2, 0]], "one PSN for no bytes");
    let places = send(&mut rig, [asking(packet(Opcode::RcSendOnly, 2, 8))]);
    assert_eq!(acks(&places), [[2, 3, 0x1f]]);
    rig.finish();
}

#[test]
fn an_atomic_takes_one() {
    let mut rig = rig(7);
    let swap = Packet {
        opcode: Opcode::RcCmpSwap.code(),
        dma_len: 0x0102_0304,
        operands: 0x0506_0708_1112_1314_1516_1718,
        ..add(7)
    };
    send(&mut rig, [swap, add(8)]);
    let field = |name: &str| rig.asked.iter().map(|r| r.get(name)).collect::<Vec<_>>();
    assert_eq!(field("atomic"), [1, 1]);
    assert_eq!(field("add"), [0, 1]);
    assert_eq!(field("swap_add")[0], 0x0102_0304_0506_0708);
    assert_eq!(field("compare")[0], 0x1112_1314_1516_1718);
    assert_eq!(asked(&mut rig), [[7, 1, 0], [8, 2, 0]]);
    rig.finish();
}

#[test]
fn as_many_as_the_queue_pair_allows() {
    let mut rig = rig(0);
    let incarnation = rig.qps[QPN as usize].incarnation;
    send(&mut rig, [read(0, 8), add(1)]);
    replied(&mut rig, incarnation.wrapping_sub(1) & 3);
    replied(&mut rig, incarnation);
    send(&mut rig, [add(2)]);
    assert_eq!(asked(&mut rig).len(), 3, "one was answered");
    send(&mut rig, [read(0, 8), add(1), add(2)]);
    assert_eq!(asked(&mut rig).len(), 3, "duplicates do not count");
    let places = send(&mut rig, [read(3, 8)]);
    assert_eq!(
        acks(&places),
        [[3, 3, 0x61]],
        "of an earlier life, not counted"
    );
    rig.finish();
}

#[test]
fn answers_of_an_earlier_life_do_not_count() {
    let mut rig = rig(0);
    send(&mut rig, [read(0, 8), read(1, 8)]);
    let before = rig.qps[QPN as usize].incarnation;
    rig.connect(QPN, READABLE, 0);
    send(&mut rig, [read(0, 8)]);
    replied(&mut rig, before);
    replied(&mut rig, before);
    send(&mut rig, [read(1, 8)]);
    let places = send(&mut rig, [read(2, 8)]);
    assert_eq!(acks(&places), [[2, 2, 0x61]]);
    rig.finish();
}

/// A peer that has the response may send the next READ at once, whatever else waits for room.
#[test]
fn answers_count_while_placements_stand() {
    let one = RqCtx {
        max_dest_rd_atomic: 1,
        ..READABLE
    };
    let mut rig = directed_as(one, 0, 4);
    send(&mut rig, [read(0, 8)]);
    rig.connect(3, CTX, 0);
    rig.post(3, Event::Doorbell(100));
    rig.settle();
    stand(&mut rig);
    let to_error = Command {
        state: Some(state::ERR),
        ..Command::default()
    };
    rig.post(3, Event::Command(to_error));
    // its flush fills the placements
    (0..1000).for_each(|_| rig.step());
    rig.post(1, Event::Command(Command::default()));
    rig.post(QPN, Event::Replied(rig.qps[QPN as usize].incarnation));
    (0..20).for_each(|_| rig.step());
    rig.push(read(1, 8), reason::GOOD);
    (0..20).for_each(|_| rig.step());
    assert_eq!(rig.waiting(), (1, 1), "the packet and the command");
    go_on(&mut rig);
    rig.settle();
    assert_eq!(asked(&mut rig), [[0, 1, 0], [1, 2, 0]]);
    rig.finish();
}

#[test]
fn what_is_refused() {
    let no_read = RqCtx {
        remote_read: false,
        ..READABLE
    };
    let no_atomic = RqCtx {
        remote_atomic: false,
        ..READABLE
    };
    let none = RqCtx {
        max_dest_rd_atomic: 0,
        ..READABLE
    };
    let misaligned = Packet {
        ext: 0x5004,
        ..add(0)
    };
    let denied = |packet| write(packet, 8, false);
    for (ctx, packets, nak) in [
        (no_read, vec![read(0, 8)], 0x61),
        (no_atomic, vec![add(0)], 0x61),
        (none, vec![read(0, 0)], 0x61),
        (READABLE, vec![read(0, (1 << 31) + 1)], 0x61),
        (READABLE, vec![misaligned], 0x61),
        (
            READABLE,
            vec![packet(Opcode::RcSendFirst, 0, 1024), read(1, 8)],
            0x61,
        ),
        (READABLE, vec![denied(read(0, 8))], 0x62),
        (READABLE, vec![denied(add(0))], 0x62),
    ] {
        let mut rig = directed_as(ctx, 0, 1);
        let psn = packets.len() as u64 - 1;
        let what = format!("{packets:?}");
        let places = send(&mut rig, packets);
        assert_eq!(acks(&places), [[psn, 0, nak]], "{what}");
        assert!(asked(&mut rig).is_empty());
        assert_eq!(rig.qps[QPN as usize].state, state::ERR);
        rig.finish();
    }
}

#[test]
fn a_read_is_answered_again_as_far_as_it_was_executed() {
    let mut rig = rig(10);
    send(&mut rig, [read(10, 3 * 1024), add(13)]);
    asked(&mut rig);
    send(&mut rig, [read(10, 3 * 1024), read(12, 5), add(13)]);
    assert_eq!(asked(&mut rig), [[10, 2, 1], [12, 2, 1], [13, 2, 1]]);
    send(&mut rig, [read(10, 4 * 1024)]);
    assert_eq!(asked(&mut rig), [[10, 2, 1]]);
    send(
        &mut rig,
        [read(10, 4 * 1024 + 1), read(10, u32::MAX), read(13, 1025)],
    );
    assert!(asked(&mut rig).is_empty(), "more than there was");
    rig.image(
        QPN,
        RqCtx {
            remote_read: false,
            ..READABLE
        },
    );
    send(&mut rig, [read(10, 8), add(13)]);
    assert_eq!(asked(&mut rig), [[13, 2, 1]], "the saved result alone");
    assert_eq!(rig.qps[QPN as usize].state, state::RTR);
    rig.finish();
}

#[test]
fn the_peer_invalidates_with_a_send() {
    let mut rig = rig(0);
    let last = Packet {
        imm: 0x0000_0442,
        ..packet(Opcode::RcSendLastInv, 1, 8)
    };
    let places = send(&mut rig, [packet(Opcode::RcSendFirst, 0, 1024), last]);
    let field = |name: &str| places.iter().map(|p| p.get(name)).collect::<Vec<_>>();
    assert_eq!(field("with_inv"), [0, 1]);
    assert_eq!(places[1].get("imm"), 0x442);
    assert_eq!(places[1].get("with_imm"), 0);
    rig.finish();
}
