//! Errors: what completes, in which order, with which status.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, IP, MTU, Sent};
use super::event_queue::Eq;
use super::script::build;
use super::{EVENTS, RC, READ, cases, check, check_bytes};

cases! {
    flush_in_order, RC, "IB1 10.3.1", "Behind a failed WQE everything posted completes as flushed, in order, signaled or not.";
    flush_of_receives, RC, "IB1 10.3.1", "Receive WQEs that wait complete as flushed, in order.";
    failure_before_receives, RC, "IB1 10.3.1", "The completion of the request that failed comes before those of the receive WQEs that it has flushed.";
    flush_of_what_comes_later, RC, "IB1 10.3.1", "What is posted to a queue pair in error is flushed too.";
    flush_by_command, RC, "IB1 10.3.1", "A queue pair taken to the error state flushes what is under way and what waits.";
    flush_after_partial_message, RC, "IB1 10.3.1", "The receive WQE of a message that has arrived in part is flushed once.";
    flush_without_an_image, RC, "IB1 10.3.1", "A queue pair that goes to the error state without an image completes nothing: that of the former owner of its number is none of its own.";
    flush_of_a_read, READ, "IB1 10.3.1", "A READ under way is flushed; its later responses are ignored.";
    flush_counts_slots, RC, "IB1 10.8", "Flushed WQEs complete once each: no more CQEs than WQEs.";
    local_error_waits, RC, "IB1 10.8", "A local error completes after everything before it, even if that is sent again first.";
    flush_of_a_bad_wqe, RC, "IB1 10.3.1", "A bad WQE is flushed with those beside it when one before it fails, or by command.";
    reset_starts_afresh, RC, "IB1 10.3.1", "Through RESET a queue pair works again: PSNs, indices and MSN start anew.";
    reset_forgets_what_waits, RC, "IB1 10.3.1", "What was posted before RESET completes neither before nor after.";
    reset_ends_completions, RC, "IB1 10.3.1", "A completion of before RESET comes before RESET is answered, or never.";
    reset_forgets_reads, READ, "IB1 10.3.1", "READs that RESET cut short are none of those that max_dest_rd_atomic counts.";
    flush_beside_packets, RC, "IB1 10.3.1", "Receive WQEs are flushed, each once, while packets and doorbells go on.";
    error_of_one_queue_pair, RC, "IB1 9.9", "An error of one queue pair leaves the others alone.";
    cq_overflow_of_several, EVENTS, "IB1 11.6.3.2", "Of several queue pairs of a completion queue that overflows each fails and is reported, at the latest with its next completion; the queue is reported once.";
}

const FLUSHED: u8 = status::WR_FLUSH_ERR;

/// A request that the peer refuses.
fn refused(c: &mut Conn) -> Work {
    let readable = c.b.create_mr(&[0; 8], Rights::NONE);
    Work::write(&[], &readable, 0).inline(&[1; 8])
}

fn flush_in_order(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let bad = refused(&mut c);
    let mut works = vec![Work::send(&[]).unsignaled(), bad];
    works.extend((0..6).map(|i| {
        let work = Work::send(&[]).inline(&[i; 32]);
        if i % 2 == 0 { work } else { work.unsignaled() }
    }));
    c.recv(&[]);
    c.post_all(&works);
    c.ends(Side::A, 1, status::REM_ACCESS_ERR);
    for i in 2..8 {
        c.ends(Side::A, i, FLUSHED);
    }
    check("more", c.statuses(Side::A), vec![]);
}

fn flush_without_an_image(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    let qa = c.qa;
    c.a.reset_qp(qa);
    c.a.modify_state(qa, state::INIT);
    c.a.modify_state(qa, state::ERR);
    c.post(&Work::send(&[]));
    check("completions", c.statuses(Side::A), vec![]);
}

fn flush_of_receives(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for _ in 0..5 {
        c.recv(&[]);
    }
    c.execute(&Work::send(&[]));
    let bad = refused(&mut c);
    let index = c.post(&bad);
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
    c.succeeds(Side::B, 0);
    for i in 1..5 {
        let cqe = c.ends(Side::B, i, FLUSHED);
        check("of the receive queue", cqe.recv, true);
    }
    check("more", c.statuses(Side::B), vec![]);
}

fn failure_before_receives(bench: &mut Bench) {
    for local in [false, true] {
        let mut c = bench.connect(QpOptions::default());
        let qa = c.qa;
        for _ in 0..3 {
            c.a.post_recv(qa, &[]);
        }
        // The payload of what is flushed is long on its way, and holds its completion up.
        let data = c.a.create_mr(&pattern(40_000, 1), Rights::ALL);
        let target = c.b.create_mr(&[0; 40_000], Rights::ALL);
        let (bad, code) = if local {
            let outside = data.sge(39_999, 2);
            (Work::write(&[outside], &target, 0), status::LOC_PROT_ERR)
        } else {
            (refused(&mut c), status::REM_ACCESS_ERR)
        };
        c.post_all(&[bad, Work::write(&[data.all()], &target, 0)]);
        c.ends(Side::A, 0, code);
        let mut rest = c.drain(Side::A);
        rest.retain(|cqe| cqe.recv);
        let got: Vec<_> = rest.iter().map(|cqe| (cqe.wqe_index, cqe.status)).collect();
        check("receives", got, (0..3).map(|i| (i, FLUSHED)).collect());
    }
}

fn flush_of_what_comes_later(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let bad = refused(&mut c);
    let index = c.post(&bad);
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
    let qa = c.qa;
    for i in 1..4 {
        c.post(&Work::send(&[]).unsignaled());
        c.ends(Side::A, i, FLUSHED);
        c.a.post_recv(qa, &[]);
        let cqe = c.ends(Side::A, i - 1, FLUSHED);
        check("of the receive queue", cqe.recv, true);
    }
}

fn flush_by_command(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let qa = c.qa;
    c.cut();
    for _ in 0..3 {
        c.a.post_recv(qa, &[]);
        c.post(&Work::send(&[]).unsignaled());
    }
    c.settle();
    c.a.modify_state(qa, state::ERR);
    let cqes = c.drain(Side::A);
    for recv in [false, true] {
        let of: Vec<_> = cqes.iter().filter(|cqe| cqe.recv == recv).collect();
        let got: Vec<_> = of.iter().map(|cqe| (cqe.wqe_index, cqe.status)).collect();
        check("flushed", got, (0..3).map(|i| (i, FLUSHED)).collect());
    }
}

fn flush_after_partial_message(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    s.recv();
    let request = s.request(Opcode::RcSendFirst);
    s.next(&request, &[1; 1024]);
    s.host.modify_state(s.qpn, state::ERR);
    s.quiet();
    check("completions", s.results(), vec![(0, FLUSHED), (1, FLUSHED)]);
}

fn flush_of_a_read(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let read = Work::read(&[s.target.sge(0, 8)], &s.target, 0);
    let psn = s.post(&read)[0].psn();
    s.host.modify_state(s.qpn, state::ERR);
    s.quiet();
    check("completions", s.results(), vec![(0, FLUSHED)]);
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&data, &[7; 8]);
    check("completions", s.results(), vec![]);
    check_bytes("the buffer", &s.contents()[..8], &[0; 8]);
}

fn flush_counts_slots(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        sq_log: 3,
        ..QpOptions::default()
    });
    let bad = refused(&mut c);
    let mut works = vec![bad];
    works.extend(vec![Work::send(&[]).unsignaled(); 7]);
    c.post_all(&works);
    let expected = [vec![status::REM_ACCESS_ERR], vec![FLUSHED; 7]].concat();
    check("the ring once", c.statuses(Side::A), expected);
    c.post_all(&vec![Work::send(&[]).unsignaled(); 8]);
    check("the ring again", c.statuses(Side::A), vec![FLUSHED; 8]);
}

fn local_error_waits(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        timeout: 2,
        ..QpOptions::default()
    });
    let local = c.a.create_mr(&pattern(4000, 1), Rights::ALL);
    let target = c.b.create_mr(&[0; 4000], Rights::ALL);
    // The last packet of the first message is lost once, when the error is known already.
    c.lose(Side::A, &[3]);
    c.recv(&[target.all()]);
    c.post_all(&[
        Work::send(&[local.all()]),
        Work::send(&[local.sge(3999, 2)]),
        Work::send(&[]).unsignaled(),
    ]);
    c.succeeds(Side::A, 0);
    c.ends(Side::A, 1, status::LOC_PROT_ERR);
    c.ends(Side::A, 2, FLUSHED);
    check("timeouts", c.a.stat("local_ack_timeout_err"), 1);
    check_bytes("the message", &c.b.contents(&target), &pattern(4000, 1));
}

fn flush_of_a_bad_wqe(bench: &mut Bench) {
    for by_command in [false, true] {
        let mut c = bench.connect(QpOptions {
            timeout: if by_command { 0 } else { 2 },
            retry_cnt: 0,
            ..QpOptions::default()
        });
        let local = c.a.create_mr(&[1; 8], Rights::ALL);
        c.lose(Side::A, &[0]);
        c.post_all(&[
            Work::send(&[]),
            Work::send(&[local.sge(7, 2)]),
            Work::send(&[]).unsignaled(),
        ]);
        let mut first = status::RETRY_EXC_ERR;
        if by_command {
            c.pair.run(3000);
            let qa = c.qa;
            c.a.modify_state(qa, state::ERR);
            first = FLUSHED;
        }
        c.ends(Side::A, 0, first);
        c.ends(Side::A, 1, FLUSHED);
        c.ends(Side::A, 2, FLUSHED);
        check("more", c.statuses(Side::A), vec![]);
    }
}

fn reset_starts_afresh(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let bad = refused(&mut c);
    c.recv(&[]);
    c.post_all(&[Work::send(&[]), bad]);
    c.drain(Side::A);
    c.drain(Side::B);
    c.start_again();
    for i in 0..2 {
        let taken = c.recv(&[]);
        let index = c.post(&Work::send(&[]));
        check("indices", (taken, index), (i, i));
        c.succeeds(Side::A, i);
        c.succeeds(Side::B, i);
    }
    let (a, b) = (c.query(Side::A), c.query(Side::B));
    check(
        "PSNs and MSN",
        (a.sq_psn, b.rq_psn, b.msn),
        (0x1002, 0x1002, 2),
    );
}

fn reset_forgets_what_waits(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let qa = c.qa;
    c.cut();
    c.a.post_recv(qa, &[]);
    c.post_all(&[Work::send(&[]), Work::send(&[])]);
    c.settle();
    c.a.reset_qp(qa);
    check("completions", c.statuses(Side::A), vec![]);
    c.mend();
    c.reconnect(Side::A, |_| {});
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    check("more", c.statuses(Side::A), vec![]);
    check("packets to the peer", c.query(Side::B).msn, 1);
}

fn reset_ends_completions(bench: &mut Bench) {
    const LOG: u8 = 10;
    let mut s = bench.script(QpOptions {
        sq_log: LOG,
        ot_log: LOG,
        ..QpOptions::default()
    });
    let mut works = vec![Work::send(&[]).unsignaled(); (1 << LOG) - 1];
    works.push(Work::send(&[]));
    let last = s.post_all(&works).last().map(Sent::psn);
    let ack = s.response(Opcode::RcAck, last.expect("they leave"), Syndrome::ACK);
    s.hand(&build(&ack, &[]));
    s.host.reset_qp(s.qpn);
    let in_time = s.cqes().len();
    check("one at most", in_time <= 1, true);
    s.quiet();
    s.quiet();
    check("completions behind the answer", s.results(), vec![]);
}

fn reset_forgets_reads(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        max_rd_atomic: 1,
        ..QpOptions::default()
    });
    let origin = s.host.create_mr(&pattern(1 << 16, 1), Rights::ALL);
    let mut request = s.request(Opcode::RcReadRequest);
    let reth = request.ext.reth.as_mut().expect("a READ has one");
    (reth.va, reth.rkey, reth.dma_len) = (origin.addr, origin.key, 1 << 16);
    for _ in 0..2 {
        s.hand(&build(&request, &[]));
        check("an answer", s.until_sent(20_000).is_some(), true);
        s.reopen(|_| {});
    }
    let answers = s.send(&request, &[]);
    check("packets of the last", answers.len(), (1 << 16) / MTU);
}

fn flush_beside_packets(bench: &mut Bench) {
    const WQES: u16 = 40;
    let mut s = bench.script(QpOptions::default());
    for _ in 0..WQES / 2 {
        s.recv();
    }
    for round in 0..60 {
        let request = s.request(Opcode::RcSendOnly);
        s.hand_next(&request, &[1; 8]);
        match round {
            5 => s.host.modify_state(s.qpn, state::ERR),
            20..40 => drop(s.recv()),
            _ => drop(s.run(round % 5)),
        }
    }
    s.quiet();
    let results = s.results();
    let good = results.iter().take_while(|(_, status)| *status == 0);
    let good = good.count() as u16;
    let status = |index| if index < good { 0 } else { FLUSHED };
    let expected = (0..WQES).map(|index| (index, status(index))).collect();
    check("completions", results, expected);
}

fn error_of_one_queue_pair(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let first = c.qa;
    let bad = refused(&mut c);
    let (second, peer) = c.pair.connect(QpOptions::default(), QpOptions::default());
    for _ in 0..2 {
        c.b.post_recv(peer, &[]);
    }
    let good = c.a.post_send(second, &Work::send(&[]));
    c.succeeds(Side::A, good);
    let index = c.a.post_send(first, &bad);
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
    let good = c.a.post_send(second, &Work::send(&[]));
    c.succeeds(Side::A, good);
    check("its state", c.a.query(second).sq_state, state::RTS);
    check("its peer's", c.b.query(peer).rq_state, state::RTS);
}

/// NVIDIA's manual has all of them fail at once, this card with a completion of their own.
fn cq_overflow_of_several(bench: &mut Bench) {
    let mut pair = bench.pair(IP);
    let options = QpOptions {
        send_cq: pair.a.create_cq(1),
        ..QpOptions::default()
    };
    let mut c = Conn::new(pair, options, QpOptions::default());
    let (other, _) = c.pair.connect(options, QpOptions::default());
    let eq = Eq::new(&mut c.a, 0, 4, 5);
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let work = Work::write(&[], &target, 0).inline(&[1; 8]);
    let first = c.qa;
    for qpn in [first, first, other, first] {
        c.a.post_send(qpn, &work);
        c.settle();
    }
    let mut events = eq.failures(&c.a);
    events.sort_unstable();
    let found: Vec<_> = events
        .iter()
        .map(|(kind, object, _)| (*kind, *object))
        .collect();
    let expected = vec![
        (event::CQ_ERROR, u32::from(options.send_cq)),
        (event::QP_FATAL, first),
        (event::QP_FATAL, other),
    ];
    check("events", found, expected);
    for qpn in [first, other] {
        check("state", c.a.query(qpn).sq_state, state::ERR);
    }
    for _ in 0..2 {
        let cqe = c.wait_on(Side::A, options.send_cq);
        check("CQE", (cqe.qpn, cqe.status), (first, status::SUCCESS));
    }
    check("more", c.a.poll(options.send_cq), None);
}
