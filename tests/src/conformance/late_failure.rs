//! Failures that show when the packet is placed already: a completion that finds no room, a write that memory refuses.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{AethRepr, NakCode, Opcode, RethRepr, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, IP, MTU, Sent};
use super::event_queue::Eq;
use super::script::{PEER_PSN, QKEY, Script};
use super::wqe::nowhere;
use super::{EVENTS, RC, UC, UD, cases, check, check_bytes};

cases! {
    cq_overflow_answered, RC, "IB1 9.7.5", "A message is acknowledged when its completion is there; the first whose completion finds no room is answered NAK remote operational error, and nothing behind it is answered.";
    cq_overflow_not_asked, RC, "IB1 9.7.5", "So is one that asked for no acknowledgement.";
    cq_overflow_behind_a_read, RC, "IB1 9.7.5", "A READ in front of it is answered first, one behind it never.";
    refused_receive, EVENTS, "IB1 9.9.3", "A message whose payload host memory refuses is answered NAK remote operational error; its WQE completes with a general error, and the queue pair fails.";
    refused_part, EVENTS, "IB1 9.9.3", "The same of a message of which a packet is refused: no completion tells of success.";
    refused_write, EVENTS, "IB1 9.9.3", "A WRITE that host memory refuses ends the queue pair.";
    refused_datagram, UD | UC | EVENTS, "IB1 9.9.3", "So does an unreliable message, whose WQE completes with a general error.";
    refused_read_data, EVENTS, "IB1 9.9.2", "A READ whose data host memory refuses completes with a general error.";
    refused_of_one, RC, "IB1 9.9.3", "Other queue pairs notice nothing, and the one that failed starts afresh.";
    reads_beside_receives, RC, "IB1 9.7.5", "READs of one queue pair beside those of another whose SENDs wait for their completion: each gets its own data.";
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
    // a refusal may come behind two accesses to slow host memory
    answers.extend(s.quiet());
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

fn reads_beside_receives(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (other, far) = c.pair.connect(QpOptions::default(), QpOptions::default());
    for round in 0..8 {
        let [one, two] = [1, 2].map(|n| c.b.create_mr(&pattern(512, 2 * round + n), Rights::ALL));
        let [first, second] = [0; 2].map(|_| c.a.create_mr(&[0; 512], Rights::ALL));
        let lists = [0, 1, 2].map(|_| c.b.create_mr(&[0; 2048], Rights::ALL));
        for list in &lists {
            c.recv(&[list.all()]);
            c.b.post_recv(far, &[list.all()]);
        }
        let long = c.a.create_mr(&[7; 2048], Rights::ALL);
        for n in 0..3 {
            c.post(&Work::send(&[long.all()]));
            c.post(&Work::read(&[first.sge(128 * n, 128)], &one, 128 * n));
            c.a.post_send(
                other,
                &Work::read(&[second.sge(128 * n, 128)], &two, 128 * n),
            );
        }
        for _ in 0..9 {
            check("status", c.pair.wait(Side::A, 0).status, status::SUCCESS);
        }
        check("receives", c.statuses(Side::B), vec![status::SUCCESS; 3]);
        for (read, from) in [(&first, &one), (&second, &two)] {
            let (read, from) = (c.a.contents(read), c.b.contents(from));
            check_bytes("data", &read[..384], &from[..384]);
        }
    }
}

/// The queue pair has failed for what its own host refused, which is reported once.
#[track_caller]
fn failed_for_memory(s: &mut Script, what: &str, eq: &Eq) {
    s.in_error(what);
    let fatal = (event::QP_FATAL, s.qpn, status::GENERAL_ERR);
    let events = eq.failures(&s.host);
    check(&format!("{what}: events"), events, vec![fatal]);
}

/// A script with an event queue.
fn watched(bench: &mut Bench, qp_type: u8) -> (Script, Eq) {
    bench.expect_refusals();
    let mut s = bench.script(QpOptions {
        qp_type,
        qkey: QKEY,
        ..QpOptions::default()
    });
    let eq = Eq::new(&mut s.host, 0, 4, 5);
    (s, eq)
}

fn refused_receive(bench: &mut Bench) {
    for opcode in [Opcode::RcSendOnly, Opcode::RcWriteOnlyImm] {
        for (at_once, ack_req) in [(false, true), (true, true), (true, false)] {
            let what = format!("{opcode:?}, at once: {at_once}, asked: {ack_req}");
            let (mut s, eq) = watched(bench, qp_type::RC);
            let bad = nowhere(&mut s.host);
            let good = s.target;
            for list in [
                good.sge(0, 8),
                bad.sge(0, 8),
                good.sge(8, 8),
                good.sge(8, 8),
            ] {
                s.host.post_recv(s.qpn, &[list]);
            }
            s.quiet();
            let answers = s.counts("operational_errors", 1, |s| {
                let mut answers = Vec::new();
                for region in [&good, &bad, &good] {
                    let mut headers = s.request(opcode);
                    headers.bth.ack_req = ack_req;
                    if let Some(reth) = &mut headers.ext.reth {
                        (reth.va, reth.rkey) = (region.addr, region.key);
                    }
                    s.hand_next(&headers, &[1; 8]);
                    if !at_once {
                        answers.extend(s.quiet());
                    }
                }
                answers.extend(s.quiet());
                answers
            });
            ends_refused(&what, &answers, 1, 1);
            let results = s.results();
            check(
                &what,
                results[..2].to_vec(),
                vec![(0, status::SUCCESS), (1, status::GENERAL_ERR)],
            );
            // the third may be placed before the second is known to have failed
            let none = results[2..].iter().all(|(_, s)| *s != status::SUCCESS);
            check(&what, (results.len(), none), (4, true));
            failed_for_memory(&mut s, &what, &eq);
        }
    }
}

fn refused_part(bench: &mut Bench) {
    for refused in 0..3 {
        let what = format!("packet {refused}");
        let (mut s, eq) = watched(bench, qp_type::RC);
        let bad = nowhere(&mut s.host);
        let good = s.target;
        let mut list = [0, 1, 2].map(|n| good.sge(n * MTU as u64, MTU as u32));
        list[refused] = bad.sge(0, MTU as u32);
        s.host.post_recv(s.qpn, &list);
        s.quiet();
        for opcode in [
            Opcode::RcSendFirst,
            Opcode::RcSendMiddle,
            Opcode::RcSendLast,
        ] {
            s.hand_next(&s.request(opcode), &[1; MTU]);
        }
        let answers = s.quiet();
        let nak = answers.last().map(|last| last.aeth().syndrome);
        check(&what, nak, Some(Syndrome::Nak(NakCode::RemoteOperational)));
        let results = s.results();
        check(&what, results.len(), 1);
        check(&what, results[0].1 == status::SUCCESS, false);
        failed_for_memory(&mut s, &what, &eq);
    }
}

fn refused_write(bench: &mut Bench) {
    let (mut s, eq) = watched(bench, qp_type::RC);
    let bad = nowhere(&mut s.host);
    s.recv();
    s.quiet();
    let mut headers = s.request(Opcode::RcWriteOnly);
    headers.ext.reth = headers.ext.reth.map(|reth| RethRepr {
        va: bad.addr,
        rkey: bad.key,
        ..reth
    });
    s.next(&headers, &[1; 8]);
    failed_for_memory(&mut s, "WRITE", &eq);
    check("completions", s.results(), vec![(0, status::WR_FLUSH_ERR)]);
    let answers = s.next(&s.request(Opcode::RcSendOnly), &[1; 8]);
    check("answers in error", answers, vec![]);
}

fn refused_datagram(bench: &mut Bench) {
    for (qp_type, opcode) in [
        (qp_type::UD, Opcode::UdSendOnly),
        (qp_type::UC, Opcode::UcSendOnly),
    ] {
        let what = format!("{opcode:?}");
        let (mut s, eq) = watched(bench, qp_type);
        let bad = nowhere(&mut s.host);
        let list = [s.target.sge(0, 40), bad.sge(0, 64)];
        let from = if qp_type == qp_type::UD { 0 } else { 1 };
        s.host.post_recv(s.qpn, &list[from..]);
        s.recv();
        s.quiet();
        let answers = s.next(&s.request(opcode), &[1; 8]);
        check(&what, answers, vec![]);
        check(
            &what,
            s.results(),
            vec![(0, status::GENERAL_ERR), (1, status::WR_FLUSH_ERR)],
        );
        failed_for_memory(&mut s, &what, &eq);
    }
}

fn refused_read_data(bench: &mut Bench) {
    let (mut s, eq) = watched(bench, qp_type::RC);
    let bad = nowhere(&mut s.host);
    let sent = s.post(&Work::read(&[bad.sge(0, 8)], &s.target, 0));
    let psn = sent[0].psn();
    let response = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&response, &[1; 8]);
    check("completions", s.results(), vec![(0, status::GENERAL_ERR)]);
    failed_for_memory(&mut s, "READ", &eq);
}

fn refused_of_one(bench: &mut Bench) {
    bench.expect_refusals();
    let mut c = bench.connect(QpOptions::default());
    let (other, far) = c.pair.connect(QpOptions::default(), QpOptions::default());
    let bad = nowhere(&mut c.b);
    let good = c.b.create_mr(&[0; 4096], Rights::ALL);
    let source = c.a.create_mr(&pattern(4096, 1), Rights::ALL);
    c.recv(&[bad.sge(0, 3000)]);
    for _ in 0..4 {
        c.b.post_recv(far, &[good.all()]);
    }
    c.post(&Work::send(&[source.sge(0, 3000)]));
    for _ in 0..4 {
        c.a.post_send(other, &Work::send(&[source.all()]));
    }
    c.pair.settle();
    let (ends, others): (Vec<_>, Vec<_>) = c
        .drain(Side::A)
        .into_iter()
        .partition(|cqe| cqe.qpn != other);
    check("status", ends[0].status, status::REM_OP_ERR);
    let statuses: Vec<_> = others.iter().map(|cqe| cqe.status).collect();
    check("statuses of the other one", statuses, vec![0; 4]);
    check_bytes("its data", &c.b.contents(&good), &pattern(4096, 1));
    let received = c.drain(Side::B).into_iter().filter(|cqe| cqe.qpn == far);
    check(
        "its receives",
        received.map(|cqe| cqe.status).collect::<Vec<_>>(),
        vec![0; 4],
    );
    c.start_again();
    c.recv(&[good.all()]);
    c.execute(&Work::send(&[source.all()]));
}
