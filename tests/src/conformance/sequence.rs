//! RC: packets of a message out of order, and of a size that cannot be. All draw NAK invalid request.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::wire::{Class, NakCode, Opcode, Operation, Position, Syndrome};
use ferroce_sim::testhost::{QpOptions, pattern};

use super::bench::{Bench, MTU};
use super::event_queue::Eq;
use super::script::{Script, TARGET, syndromes};
use super::{ATOMIC, EVENTS, RC, READ, cases, check, check_bytes};

cases! {
    first_after_first, RC, "IB1 9.7.4.1", "First after First is an invalid request.";
    only_after_first, RC, "IB1 9.7.4.1", "Only after First is an invalid request.";
    middle_without_first, RC, "IB1 9.7.4.1", "Middle without First is an invalid request.";
    last_without_first, RC, "IB1 9.7.4.1", "Last without First is an invalid request.";
    write_inside_a_send, RC, "IB1 9.7.4.1", "A packet of a WRITE inside a SEND is an invalid request.";
    send_inside_a_write, RC, "IB1 9.7.4.1", "A packet of a SEND inside a WRITE is an invalid request.";
    read_inside_a_message, READ, "IB1 9.7.4.1", "A READ request inside a message is an invalid request.";
    atomic_inside_a_message, ATOMIC, "IB1 9.7.4.1", "An atomic inside a message is an invalid request.";
    last_after_last, RC, "IB1 9.7.4.1", "Last after Last is an invalid request: the message is over.";
    every_opcode_after_every_start, RC, "IB1 9.7.4.1", "Every request that cannot follow, at the start or after a First, is an invalid request.";
    first_not_of_the_mtu, RC, "IB1 9.7.4.1", "A First whose payload is not the path MTU is an invalid request.";
    middle_not_of_the_mtu, RC, "IB1 9.7.4.1", "A Middle whose payload is not the path MTU is an invalid request.";
    last_of_no_bytes, RC, "IB1 9.7.4.1", "A Last without payload is an invalid request.";
    last_longer_than_the_mtu, RC, "IB1 9.7.4.1", "A Last longer than the path MTU is an invalid request.";
    only_longer_than_the_mtu, RC, "IB1 9.7.4.1", "An Only longer than the path MTU is an invalid request.";
    write_shorter_than_its_reth, RC, "IB1 9.7.4.1", "A WRITE that ends before the length of its RETH is an invalid request.";
    write_longer_than_its_reth, RC, "IB1 9.7.4.1", "A WRITE that goes on beyond the length of its RETH is an invalid request; nothing is written there.";
    write_longer_than_2_31, RC, "IB1 9.7.4.1", "A RETH of more than 2^31 bytes is an invalid request.";
    write_not_permitted, RC, "IB1 9.7.4.1", "A WRITE on a queue pair that does not permit WRITEs is an invalid request.";
    refusal_is_reported, EVENTS, "architecture 6", "A request that is refused as invalid is reported once, as QP_REQ_ERR; no WQE has its status.";
    silence_after_a_nak, RC, "IB1 9.9", "After a NAK that is no PSN sequence error the queue pair is in error and answers nothing any more.";
}

const INVALID: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);

/// Hands over packets in sequence, of which the last must be refused as invalid and none before. `dma_len` stands in
/// every RETH.
fn refused(s: &mut Script, packets: &[(Opcode, usize)], dma_len: u32) {
    let what = format!("{packets:?}, RETH {dma_len}");
    s.reopen(|_| {});
    s.recv();
    s.recv();
    let (last, before) = packets.split_last().expect("at least one");
    for (opcode, len) in before {
        let answers = s.write(*opcode, dma_len);
        let answers = s.next(&answers, &pattern(*len, 1));
        check(&what, syndromes(&answers), vec![Syndrome::ACK]);
    }
    let before = s.contents();
    let request = s.write(last.0, dma_len);
    let payload = pattern(last.1, 1);
    let answers = s.counts("invalid_request_errors", 1, |s| s.send(&request, &payload));
    check(&what, syndromes(&answers), vec![INVALID]);
    check(
        &format!("{what}: PSN of the NAK"),
        answers[0].psn(),
        s.psn.value(),
    );
    check_bytes(&format!("{what}: the target"), &s.contents(), &before);
    s.in_error(&what);
    // architecture 6: the receive WQE of a message that is refused is flushed like those behind it
    let sends = packets[..packets.len() - 1].iter();
    let whole = sends.filter(|(o, _)| o.is_end() && o.operation() == Operation::Send);
    let mut statuses = vec![status::SUCCESS; whole.count()];
    statuses.resize(2, status::WR_FLUSH_ERR);
    check(
        &format!("{what}: completions"),
        s.results(),
        (0..).zip(statuses).collect(),
    );
}

/// As [`refused`], each on the same card.
fn all_refused(bench: &mut Bench, cases: &[&[(Opcode, usize)]], dma_len: u32) {
    let mut s = bench.script(QpOptions::default());
    for case in cases {
        refused(&mut s, case, dma_len);
    }
}

use Opcode::{
    RcSendFirst as SendFirst, RcSendLast as SendLast, RcSendLastImm as SendLastImm,
    RcSendMiddle as SendMiddle, RcSendOnly as SendOnly, RcSendOnlyImm as SendOnlyImm,
    RcWriteFirst as WriteFirst, RcWriteLast as WriteLast, RcWriteLastImm as WriteLastImm,
    RcWriteMiddle as WriteMiddle, RcWriteOnly as WriteOnly, RcWriteOnlyImm as WriteOnlyImm,
};

fn first_after_first(bench: &mut Bench) {
    let cases: [&[_]; 3] = [
        &[(SendFirst, MTU), (SendFirst, MTU)],
        &[(WriteFirst, MTU), (WriteFirst, MTU)],
        &[(SendFirst, MTU), (SendMiddle, MTU), (SendFirst, MTU)],
    ];
    all_refused(bench, &cases, 3000);
}

fn only_after_first(bench: &mut Bench) {
    let cases: [&[_]; 4] = [
        &[(SendFirst, MTU), (SendOnly, 8)],
        &[(SendFirst, MTU), (SendOnlyImm, 8)],
        &[(WriteFirst, MTU), (WriteOnly, 8)],
        &[(WriteFirst, MTU), (WriteOnlyImm, 8)],
    ];
    all_refused(bench, &cases, 2000);
}

fn middle_without_first(bench: &mut Bench) {
    let cases: [&[_]; 3] = [
        &[(SendMiddle, MTU)],
        &[(WriteMiddle, MTU)],
        &[(SendOnly, 8), (SendMiddle, MTU)],
    ];
    all_refused(bench, &cases, 2000);
}

fn last_without_first(bench: &mut Bench) {
    let cases: [&[_]; 4] = [
        &[(SendLast, 8)],
        &[(SendLastImm, 8)],
        &[(WriteLast, 8)],
        &[(WriteLastImm, 8)],
    ];
    all_refused(bench, &cases, 2000);
}

fn write_inside_a_send(bench: &mut Bench) {
    let cases: [&[_]; 3] = [
        &[(SendFirst, MTU), (WriteFirst, MTU)],
        &[(SendFirst, MTU), (WriteMiddle, MTU)],
        &[(SendFirst, MTU), (WriteLast, 8)],
    ];
    all_refused(bench, &cases, 2000);
    let cases: [&[_]; 1] = [&[(SendFirst, MTU), (WriteOnly, 8)]];
    all_refused(bench, &cases, 8);
}

fn send_inside_a_write(bench: &mut Bench) {
    let cases: [&[_]; 4] = [
        &[(WriteFirst, MTU), (SendFirst, MTU)],
        &[(WriteFirst, MTU), (SendMiddle, MTU)],
        &[(WriteFirst, MTU), (SendLast, 976)],
        &[(WriteFirst, MTU), (SendOnly, 976)],
    ];
    all_refused(bench, &cases, 2000);
}

fn read_inside_a_message(bench: &mut Bench) {
    let cases: [&[_]; 2] = [
        &[(SendFirst, MTU), (Opcode::RcReadRequest, 0)],
        &[(WriteFirst, MTU), (Opcode::RcReadRequest, 0)],
    ];
    all_refused(bench, &cases, 2000);
}

fn atomic_inside_a_message(bench: &mut Bench) {
    let cases: [&[_]; 2] = [
        &[(SendFirst, MTU), (Opcode::RcFetchAdd, 0)],
        &[(WriteFirst, MTU), (Opcode::RcCmpSwap, 0)],
    ];
    all_refused(bench, &cases, 2000);
}

fn last_after_last(bench: &mut Bench) {
    let cases: [&[_]; 2] = [
        &[(SendFirst, MTU), (SendLast, 8), (SendLast, 8)],
        &[(WriteFirst, MTU), (WriteLast, 976), (WriteLast, 976)],
    ];
    all_refused(bench, &cases, 2000);
}

fn every_opcode_after_every_start(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let of_rc = |o: &&Opcode| o.class() == Class::Rc && o.is_request();
    for first in [None, Some(SendFirst), Some(WriteFirst)] {
        for &second in Opcode::ALL.iter().filter(of_rc) {
            let follows = match first {
                None => second.is_start(),
                Some(first) => !second.is_start() && second.operation() == first.operation(),
            };
            if follows {
                continue;
            }
            let len = match (second.has_payload(), second.position()) {
                (true, Position::First | Position::Middle) => MTU,
                (true, _) => 8,
                (false, _) => 0,
            };
            let mut packets: Vec<_> = first.map(|first| (first, MTU)).into_iter().collect();
            packets.push((second, len));
            refused(&mut s, &packets, 2000);
        }
    }
}

fn first_not_of_the_mtu(bench: &mut Bench) {
    for len in [0, 4, MTU - 4, MTU + 4, 2048] {
        let cases: [&[_]; 2] = [&[(SendFirst, len)], &[(WriteFirst, len)]];
        all_refused(bench, &cases, 3000);
    }
}

fn middle_not_of_the_mtu(bench: &mut Bench) {
    for len in [0, MTU - 4, MTU + 4] {
        let cases: [&[_]; 2] = [
            &[(SendFirst, MTU), (SendMiddle, len)],
            &[(WriteFirst, MTU), (WriteMiddle, len)],
        ];
        all_refused(bench, &cases, 4000);
    }
}

fn last_of_no_bytes(bench: &mut Bench) {
    let cases: [&[_]; 3] = [
        &[(SendFirst, MTU), (SendLast, 0)],
        &[(SendFirst, MTU), (SendLastImm, 0)],
        &[(WriteFirst, MTU), (WriteLast, 0)],
    ];
    all_refused(bench, &cases, 2000);
}

fn last_longer_than_the_mtu(bench: &mut Bench) {
    let cases: [&[_]; 2] = [
        &[(SendFirst, MTU), (SendLast, MTU + 1)],
        &[(WriteFirst, MTU), (WriteLast, MTU + 1)],
    ];
    all_refused(bench, &cases, 2 * MTU as u32 + 1);
}

fn only_longer_than_the_mtu(bench: &mut Bench) {
    for len in [MTU + 1, 4096] {
        let cases: [&[_]; 2] = [&[(SendOnly, len)], &[(WriteOnly, len)]];
        all_refused(bench, &cases, len as u32);
    }
}

fn write_shorter_than_its_reth(bench: &mut Bench) {
    let cases: [&[_]; 4] = [
        &[(WriteOnly, 7)],
        &[(WriteOnly, 0)],
        &[(WriteOnlyImm, 7)],
        &[(WriteFirst, MTU), (WriteLast, 975)],
    ];
    for (case, dma_len) in cases.into_iter().zip([8, 8, 8, 2000]) {
        all_refused(bench, &[case], dma_len);
    }
}

fn write_longer_than_its_reth(bench: &mut Bench) {
    let cases: [(&[_], u32); 5] = [
        (&[(WriteOnly, 9)], 8),
        (&[(WriteFirst, MTU)], 1024),
        (&[(WriteFirst, MTU)], 8),
        (&[(WriteFirst, MTU), (WriteLast, 977)], 2000),
        (&[(WriteFirst, MTU), (WriteMiddle, MTU)], 2000),
    ];
    for (case, dma_len) in cases {
        all_refused(bench, &[case], dma_len);
    }
}

fn write_longer_than_2_31(bench: &mut Bench) {
    let cases: [&[_]; 1] = [&[(WriteFirst, MTU)]];
    all_refused(bench, &cases, (1 << 31) + 1);
    all_refused(bench, &cases, u32::MAX);
}

fn write_not_permitted(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.remote_write = false);
    let request = s.request(WriteOnly);
    let answers = s.send(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![INVALID]);
    check_bytes("the target", &s.contents(), &[0; TARGET]);
    check(
        "operation",
        request.bth.opcode.operation(),
        Operation::Write,
    );
}

fn refusal_is_reported(bench: &mut Bench) {
    let sequences: [&[_]; 4] = [
        &[(SendFirst, MTU), (SendFirst, MTU)],
        &[(SendFirst, MTU), (WriteOnly, 8)],
        &[(WriteFirst, MTU), (SendOnly, 8)],
        &[(SendFirst, MTU), (SendLast, 0)],
    ];
    let mut s = bench.script(QpOptions::default());
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    for packets in sequences {
        refused(&mut s, packets, 2000);
        let expected = (event::QP_REQ_ERR, s.qpn, status::GENERAL_ERR);
        check("events", eq.all(&s.host), vec![expected]);
    }
}

fn silence_after_a_nak(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let request = s.request(SendMiddle);
    let answers = s.send(&request, &[1; MTU]);
    check("answer", syndromes(&answers), vec![INVALID]);
    s.recv();
    for opcode in [SendMiddle, WriteOnly, SendOnly] {
        let request = s.request(opcode);
        let answers = s.counts("rx_qp_state", 1, |s| s.send(&request, &[1; 8]));
        check("answers", answers.len(), 0);
    }
    check_bytes("the target", &s.contents(), &[0; TARGET]);
}
