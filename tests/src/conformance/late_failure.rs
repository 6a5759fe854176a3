//! Failures that show when the packet is placed already: a completion that finds no room.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{AethRepr, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Side, Work};

use super::bench::{Bench, Conn, IP, Sent};
use super::script::{PEER_PSN, Script};
use super::{RC, cases, check};

cases! {
    cq_overflow_answered, RC, "IB1 9.7.5", "A message is acknowledged when its completion is there; the first whose completion finds no room is answered NAK remote operational error, and nothing behind it is answered.";
    cq_overflow_not_asked, RC, "IB1 9.7.5", "So is one that asked for no acknowledgement.";
    cq_overflow_behind_a_read, RC, "IB1 9.7.5", "A READ in front of it is answered first, one behind it never.";
    cq_overflow_of_one, RC, "IB1 10.2", "Queue pairs that complete elsewhere notice nothing.";
}

/// A script whose messages complete on a queue of two entries, with four receive WQEs; and that queue.
fn two_entries(bench: &mut Bench) -> (Script, u16) {
    let mut s = bench.script(QpOptions::default());
    let cqn = s.host.create_cq(1);
    s.reopen(|contexts| contexts.rq.cqn = cqn);
    for _ in 0..4 {
        s.recv();
    }
    (s, cqn)
}

/// Hands the card a packet each, one after the other or all `at_once`; what it answers.
fn give(s: &mut Script, opcodes: &[Opcode], ack_req: bool, at_once: bool) -> Vec<Sent> {
    let mut answers = s.quiet();
    for &opcode in opcodes {
        let mut headers = s.request(opcode);
        headers.bth.ack_req = ack_req;
        let payload: &[u8] = match opcode {
            Opcode::RcReadRequest => &[],
            _ => &[1; 8],
        };
        s.hand_next(&headers, payload);
        if !at_once {
            answers.extend(s.quiet());
        }
    }
    answers.extend(s.quiet());
    answers
}

/// The last answer is NAK remote operational error of packet `number`, `msn` messages being complete; the others.
#[track_caller]
fn ends_refused(what: &str, answers: &[Sent], number: u32, msn: u32) -> Vec<Sent> {
    let (last, before) = answers.split_last().expect("an answer");
    let nak = AethRepr {
        syndrome: Syndrome::Nak(NakCode::RemoteOperational),
        msn,
    };
    check(
        &format!("{what}: PSN and AETH of the last answer"),
        (last.psn(), last.aeth()),
        (PEER_PSN + number, nak),
    );
    before.to_vec()
}

/// Two messages have their completion, which is all; the queue pair is in error.
#[track_caller]
fn two_complete(s: &mut Script, what: &str, cqn: u16) {
    let there: Vec<_> = std::iter::from_fn(|| s.host.poll(cqn)).collect();
    let results: Vec<_> = there
        .iter()
        .map(|cqe| (cqe.wqe_index, cqe.status))
        .collect();
    check(
        &format!("{what}: completions"),
        results,
        vec![(0, status::SUCCESS), (1, status::SUCCESS)],
    );
    s.in_error(what);
}

fn cq_overflow_answered(bench: &mut Bench) {
    for opcode in [Opcode::RcSendOnly, Opcode::RcWriteOnlyImm] {
        for at_once in [false, true] {
            let what = format!("{opcode:?}, at once: {at_once}");
            let (mut s, cqn) = two_entries(bench);
            let answers = s.counts("operational_errors", 1, |s| {
                give(s, &[opcode; 4], true, at_once)
            });
            let before = ends_refused(&what, &answers, 2, 2);
            let last = before.last().expect("an ACK");
            let ack = AethRepr {
                syndrome: Syndrome::ACK,
                msn: 2,
            };
            check(&what, (last.psn(), last.aeth()), (PEER_PSN + 1, ack));
            two_complete(&mut s, &what, cqn);
        }
    }
}

fn cq_overflow_not_asked(bench: &mut Bench) {
    for at_once in [false, true] {
        let what = format!("at once: {at_once}");
        let (mut s, cqn) = two_entries(bench);
        let answers = give(&mut s, &[Opcode::RcSendOnly; 4], false, at_once);
        let before = ends_refused(&what, &answers, 2, 2);
        check(&what, before, vec![]);
        two_complete(&mut s, &what, cqn);
    }
}

fn cq_overflow_behind_a_read(bench: &mut Bench) {
    let (send, read) = (Opcode::RcSendOnly, Opcode::RcReadRequest);
    for at_once in [false, true] {
        let what = format!("at once: {at_once}");
        let (mut s, cqn) = two_entries(bench);
        let answers = give(&mut s, &[send, send, read, send, read], true, at_once);
        let before = ends_refused(&what, &answers, 3, 3);
        let last = before.last().expect("a response");
        check(
            &what,
            (last.psn(), last.opcode()),
            (PEER_PSN + 2, Opcode::RcReadResponseOnly),
        );
        two_complete(&mut s, &what, cqn);
    }
}

fn cq_overflow_of_one(bench: &mut Bench) {
    let mut pair = bench.pair(IP);
    let recv_cq = pair.b.create_cq(1);
    let small = QpOptions {
        recv_cq,
        ..QpOptions::default()
    };
    let mut c = Conn::new(pair, QpOptions::default(), small);
    let (other, far) = c.pair.connect(QpOptions::default(), QpOptions::default());
    for _ in 0..4 {
        c.recv(&[]);
        c.b.post_recv(far, &[]);
    }
    for _ in 0..4 {
        c.post(&Work::send(&[]));
        c.a.post_send(other, &Work::send(&[]));
    }
    let (ends, others): (Vec<_>, Vec<_>) = c
        .drain(Side::A)
        .into_iter()
        .partition(|cqe| cqe.qpn != other);
    let statuses: Vec<_> = ends.iter().map(|cqe| cqe.status).collect();
    check(
        "statuses",
        statuses,
        vec![0, 0, status::REM_OP_ERR, status::WR_FLUSH_ERR],
    );
    let statuses: Vec<_> = others.iter().map(|cqe| cqe.status).collect();
    check("statuses of the other one", statuses, vec![0; 4]);
    check("its receives", c.statuses(Side::B), vec![0; 4]);
}
