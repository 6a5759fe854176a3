//! Numbers of WQEs of shared receive queues.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{NO_NUMBER, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{SrqCtx, state};
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::{NakCode, Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU, open};
use super::script::{Script, syndromes};
use super::shared_receive::{SRQ, script, two};
use super::wqe::nowhere;
use super::{cases, check, check_bytes};

cases! {
    srq_numbers, SRQ, "abi qpc", "WQEs of a shared receive queue are used in the order of the numbers in its ring, and completions name those.";
    srq_dead_peer, SRQ, "IB1 10.2", "A queue pair whose peer is gone in the middle of a message keeps its WQE, and holds up no other.";
    srq_number_twice, SRQ, "abi qpc", "A number that is in the ring twice is received into twice. Of one that is too large the low bits count, also of 0xffff.";
    srq_flush_beside_a_small_ring, SRQ, "abi cq", "A flushed WQE is named by its whole number, whatever other queue pair had the latest packet.";
    srq_number_unreadable, SRQ, "abi cq", "A WQE whose number cannot be read ends its queue pair: local queue pair operation error, of WQE 0xffff.";
}

/// Messages of each kind, three times round the ring.
fn srq_numbers(bench: &mut Bench) {
    const ROOM: u64 = 2 * MTU as u64;
    const ORDER: [u16; 8] = [5, 2, 7, 0, 6, 1, 4, 3];
    let (mut s, srqn) = script(bench, 0);
    let buffer = s.host.create_mr(&[0; 8 * ROOM as usize], Rights::ALL);
    let post = |s: &mut Script, number: u16| {
        let sge = buffer.sge(ROOM * u64::from(number), ROOM as u32);
        s.host.post_srq_as(srqn, number, &[sge]);
    };
    ORDER.iter().for_each(|number| post(&mut s, *number));
    for (i, number) in (1..).zip(ORDER.iter().cycle()).take(24) {
        let data = [i as u8; MTU + 8];
        let (len, opcodes) = match i % 3 {
            0 => (0, vec![Opcode::RcWriteOnlyImm]),
            1 => (8, vec![Opcode::RcSendOnly]),
            _ => (MTU + 8, vec![Opcode::RcSendFirst, Opcode::RcSendLast]),
        };
        for opcode in opcodes {
            let request = s.request(opcode);
            let whole = opcode == Opcode::RcSendFirst;
            s.next(&request, &data[..if whole { MTU } else { 8 }]);
        }
        check("completions", s.results(), vec![(*number, status::SUCCESS)]);
        let got = s.host.read(buffer.addr + ROOM * u64::from(*number), len);
        check_bytes("data", &got, &data[..len]);
        post(&mut s, *number);
    }
    let first = s.request(Opcode::RcSendFirst);
    s.next(&first, &[1; MTU]);
    s.host.modify_state(s.qpn, state::ERR);
    s.quiet();
    let flushed = vec![(ORDER[0], status::WR_FLUSH_ERR)];
    check("completions", s.results(), flushed);
}

fn srq_dead_peer(bench: &mut Bench) {
    let (mut c, srqn, [(dead, held), (qa, qb)]) = two(bench);
    let target = c.b.create_mr(&[0; 8 * 4096], Rights::ALL);
    let list = |number: u16| [target.sge(4096 * u64::from(number), 4096)];
    for number in 0..8 {
        c.b.post_srq_as(srqn, number, &list(number));
    }
    let source = c.a.create_mr(&pattern(2500, 1), Rights::NONE);
    c.lose(Side::A, &(1..100).collect::<Vec<_>>());
    c.a.post_send(dead, &Work::send(&[source.all()]));
    c.run(2_000);
    c.a.modify_state(dead, state::ERR);
    check("ended", c.wait(Side::A).status, status::WR_FLUSH_ERR);
    c.mend();
    // five times what is left of the ring
    for i in 0..35 {
        let number = 1 + i % 7;
        c.a.post_send(qa, &Work::send(&[]).inline(&[i as u8; 8]));
        check("CQE", c.succeeds(Side::B, number).qpn, qb);
        let got = c.b.read(target.addr + 4096 * u64::from(number), 8);
        check_bytes("data", &got, &[i as u8; 8]);
        check("at the sender", c.wait(Side::A).status, status::SUCCESS);
        c.b.post_srq_as(srqn, number, &list(number));
    }
    c.b.modify_state(held, state::ERR);
    let cqe = c.ends(Side::B, 0, status::WR_FLUSH_ERR);
    check("the one that was held", cqe.qpn, held);
}

fn srq_number_twice(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let target = s.target;
    for number in [7, 3] {
        let sge = target.sge(8 * u64::from(number), 8);
        s.host.post_srq_as(srqn, number, &[sge]);
    }
    for number in [3, 8 + 3, 0x7ff7, NO_NUMBER] {
        s.host.post_number(srqn, number);
    }
    for (value, number) in (1..).zip([7, 3, 3, 3, 7, 7]) {
        let only = s.request(Opcode::RcSendOnly);
        s.next(&only, &[value; 8]);
        check("completions", s.results(), vec![(number, status::SUCCESS)]);
        let at = 8 * usize::from(number);
        check_bytes("data", &s.contents()[at..][..8], &[value; 8]);
    }
}

fn srq_number_unreadable(bench: &mut Bench) {
    bench.expect_refusals();
    for opcode in [
        Opcode::RcSendFirst,
        Opcode::RcSendOnly,
        Opcode::RcWriteOnlyImm,
    ] {
        let mut s = bench.script(QpOptions::default());
        let srq = SrqCtx {
            base: s.host.alloc_ring(SLOT_BYTES << 3),
            numbers: nowhere(&mut s.host).addr,
            log_size: 3,
            pd: s.host.pd,
            ..SrqCtx::default()
        };
        s.host.expect(opcode::CREATE_SRQ, 0, &srq.emit());
        s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, 0));
        s.host.write32(doorbell::srq(0) as u32, 3);
        let request = s.request(opcode);
        let whole = opcode == Opcode::RcSendFirst;
        let answers = s.next(&request, &[1; MTU][..if whole { MTU } else { 8 }]);
        let nak = Syndrome::Nak(NakCode::RemoteOperational);
        check("answer", syndromes(&answers), vec![nak]);
        let expected = vec![(NO_NUMBER, status::LOC_QP_OP_ERR)];
        check("completions", s.results(), expected);
        check_bytes("the target", &s.contents()[..8], &[0; 8]);
        s.in_error("the queue pair");
    }
}

fn srq_flush_beside_a_small_ring(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let other = s.host.create_qp(QpOptions {
        rq_log: 1,
        ..QpOptions::default()
    });
    let peer = s.peer;
    open(&mut s.host, other, &peer, |_| {});
    let target = s.target;
    s.host.post_srq_as(srqn, 5, &[target.all()]);
    let first = s.request(Opcode::RcSendFirst);
    s.next(&first, &[1; MTU]);
    let mut only = s.request(Opcode::RcSendOnly);
    (only.bth.dest_qp, only.bth.psn) = (other, Psn::new(peer.psn));
    s.send(&only, &[1; 8]);
    s.host.modify_state(s.qpn, state::ERR);
    s.quiet();
    check("completions", s.results(), vec![(5, status::WR_FLUSH_ERR)]);
}
