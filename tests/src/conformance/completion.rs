//! Completion queues and event queues.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cmd::status::BAD_STATE as STATE;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs::feature;
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work};

use super::bench::{Bench, Conn, IP};
use super::event_queue::{Eq, Event};
use super::{EVENTS, RC, RESIZE, cases, check};

cases! {
    cq_wraps_with_its_phase, RC, "abi cq", "CQEs alternate their phase with each pass over the ring.";
    cq_of_two_queues, RC, "IB1 10.2", "Send and receive queues may have completion queues of their own; each CQE names its queue pair.";
    cq_shared, RC, "IB1 10.2", "Queue pairs may share a completion queue; each keeps its order.";
    cq_overflow_of_the_requester, RC, "IB1 10.2", "A CQE that finds its queue full is lost, overwrites nothing and puts the queue pair into error.";
    cq_overflow_of_the_responder, RC, "IB1 10.2", "The queue pair whose receive CQE is lost goes into error; nothing is overwritten.";
    cq_overflow_counted, RC, "abi regs", "An overflow is counted once a queue.";
    cq_room_is_given_back, RC, "abi cq", "A queue whose entries are taken in time never overflows.";
    cq_resize_goes_on, RESIZE, "IB1 11.2.8.4", "A queue that is resized, longer or shorter, loses no CQE and writes none twice, also while they come.";
    cq_resize_wraps, RESIZE, "abi cmd", "In the new ring place and phase of an entry are those of its count.";
    cq_resize_too_small, RESIZE, "IB1 11.2.8.4", "A ring that does not hold what waits is refused, and nothing has changed; one that just holds it is taken.";
    cq_resize_is_full, RESIZE, "abi cmd", "What waits counts in the new ring: it overflows when one more comes.";
    cq_resize_after_overflow, RESIZE, "abi cmd", "A queue that has overflowed is not resized, nor is one that is not there.";
    event_after_resize, RESIZE | feature::EVENTS, "abi cmd", "A queue pair that sends to a queue which was resized reports as before.";
    event_armed_before_resize, RESIZE | feature::EVENTS, "abi cmd", "What was armed before a queue is resized is reported after it.";
    event_armed_twice, EVENTS, "IB1 11.4.2.2", "An order for the next CQE is not weakened by one for the next that is solicited.";
    event_when_armed, EVENTS, "IB1 10.8", "An armed completion queue reports its next CQE by one event and one interrupt.";
    event_moderation, EVENTS, "abi eq", "Moderation keeps two interrupts apart; what comes between is reported by the next one.";
    event_of_one_before, EVENTS, "abi doorbell", "Arming behind a CQE not seen yet reports at once.";
    event_solicited_only, EVENTS, "IB1 10.8", "Armed for solicited events only those and errors are reported.";
    event_of_an_error, EVENTS, "IB1 11.6", "A queue pair that goes into error is reported with the status that caused it.";
    event_of_an_overflow, EVENTS, "IB1 11.6", "A completion queue that overflows is reported.";
}

/// A connection whose queue pairs complete on queues of this size.
pub(super) fn small(bench: &mut Bench, side: Side, log_size: u8) -> (Conn, u16) {
    let mut pair = bench.pair(IP);
    let cqn = pair.host(side).create_cq(log_size);
    let (mut a, mut b) = (QpOptions::default(), QpOptions::default());
    match side {
        Side::A => a.send_cq = cqn,
        Side::B => b.recv_cq = cqn,
    }
    (Conn::new(pair, a, b), cqn)
}

fn cq_wraps_with_its_phase(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 1);
    for i in 0..7 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        let cqe = c.wait_on(Side::A, small);
        check(
            "index and phase",
            (cqe.wqe_index, cqe.owner),
            (i, i / 2 % 2 == 0),
        );
        check("a second", c.a.poll(small), None);
        c.wait(Side::B);
    }
}

fn cq_of_two_queues(bench: &mut Bench) {
    let mut pair = bench.pair(IP);
    let recv_cq = pair.b.create_cq(3);
    let options = QpOptions {
        recv_cq,
        ..QpOptions::default()
    };
    let mut c = Conn::new(pair, QpOptions::default(), options);
    let (qa, qb) = (c.qa, c.qb);
    c.a.post_recv(qa, &[]);
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    c.b.post_send(qb, &Work::send(&[]));
    let sent = c.wait(Side::B);
    check("send queue", (sent.recv, sent.qpn), (false, qb));
    let received = c.wait_on(Side::B, recv_cq);
    check("receive queue", (received.recv, received.qpn), (true, qb));
}

fn cq_shared(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let first = c.qa;
    let (second, _) = c.pair.connect(QpOptions::default(), QpOptions::default());
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    for _ in 0..6 {
        for qpn in [first, second] {
            c.a.post_send(qpn, &Work::write(&[], &target, 0).inline(&[1; 8]));
        }
    }
    let cqes: Vec<_> = (0..12).map(|_| c.wait(Side::A)).collect();
    for qpn in [first, second] {
        let of = cqes.iter().filter(|cqe| cqe.qpn == qpn);
        let order: Vec<_> = of.map(|cqe| cqe.wqe_index).collect();
        check("order of a queue pair", order, (0..6).collect());
    }
}

fn cq_overflow_of_the_requester(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 2);
    for i in 0..5 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
        let expected = if i < 4 { state::RTS } else { state::ERR };
        check("state", c.query(Side::A).sq_state, expected);
    }
    for i in 0..4 {
        let cqe = c.wait_on(Side::A, small);
        check("CQE", (cqe.wqe_index, cqe.status), (i, 0));
    }
    check("more", c.a.poll(small), None);
}

fn cq_overflow_of_the_responder(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::B, 1);
    for _ in 0..4 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
    }
    check("state", c.query(Side::B).rq_state, state::ERR);
    for i in 0..2 {
        let cqe = c.wait_on(Side::B, small);
        check("CQE", (cqe.wqe_index, cqe.status), (i, 0));
    }
    check("more", c.b.poll(small), None);
}

fn cq_overflow_counted(bench: &mut Bench) {
    let (mut c, _) = small(bench, Side::A, 1);
    for _ in 0..2 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
        check("overflows", c.a.stat("cq_overflows"), 0);
    }
    for _ in 0..3 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
    }
    check("overflows", c.a.stat("cq_overflows"), 1);
}

fn cq_room_is_given_back(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 2);
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let work = Work::write(&[], &target, 0).inline(&[1; 8]);
    for round in 0..4 {
        c.post_all(&vec![work.clone(); 4]);
        for i in 0..4 {
            let cqe = c.wait_on(Side::A, small);
            check("CQE", (cqe.wqe_index, cqe.status), (4 * round + i, 0));
        }
    }
    check("overflows", c.a.stat("cq_overflows"), 0);
}

fn cq_resize_goes_on(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 4);
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let work = Work::write(&[], &target, 0).inline(&[1; 8]);
    let mut next = 0;
    for (round, size) in [6, 3, 5, 3, 4, 7].into_iter().enumerate() {
        for _ in 0..6 {
            c.post(&work);
        }
        // some are there, some are not
        c.run(40 * round as u64);
        check("status", c.a.resize_cq(small, size), 0);
        for _ in 0..6 {
            let cqe = c.wait_on(Side::A, small);
            check("CQE", (cqe.wqe_index, cqe.status), (next, 0));
            next += 1;
        }
        check("a second", c.a.poll(small), None);
    }
    check("overflows", c.a.stat("cq_overflows"), 0);
}

fn cq_resize_wraps(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 2);
    let mut size = 2;
    for i in 0..23 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        let cqe = c.wait_on(Side::A, small);
        c.wait(Side::B);
        let expected = (i, i >> size & 1 == 0);
        check("index and phase", (cqe.wqe_index, cqe.owner), expected);
        if i % 4 == 2 {
            size = 1 + (i as u8 / 4 * 3) % 5;
            check("status", c.a.resize_cq(small, size), 0);
        }
    }
}

/// A queue of 8 in which 5 wait.
fn five_wait(bench: &mut Bench) -> (Conn, u16) {
    let (mut c, small) = small(bench, Side::A, 3);
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let work = Work::write(&[], &target, 0).inline(&[1; 8]);
    c.post_all(&vec![work; 5]);
    c.settle();
    (c, small)
}

fn cq_resize_too_small(bench: &mut Bench) {
    let (mut c, small) = five_wait(bench);
    check("to 4", c.a.resize_cq(small, 2), STATE);
    let first = c.wait_on(Side::A, small);
    check("the first", first.wqe_index, 0);
    check("to 4, 4 wait", c.a.resize_cq(small, 2), 0);
    for i in 1..5 {
        check("CQE", c.wait_on(Side::A, small).wqe_index, i);
    }
    check("state", c.query(Side::A).sq_state, state::RTS);
}

fn cq_resize_is_full(bench: &mut Bench) {
    let (mut c, small) = five_wait(bench);
    c.wait_on(Side::A, small);
    check("to 4, 4 wait", c.a.resize_cq(small, 2), 0);
    c.recv(&[]);
    c.post(&Work::send(&[]));
    c.settle();
    check("state", c.query(Side::A).sq_state, state::ERR);
    check("overflows", c.a.stat("cq_overflows"), 1);
    for i in 1..5 {
        check("CQE", c.wait_on(Side::A, small).wqe_index, i);
    }
    check("more", c.a.poll(small), None);
}

fn cq_resize_after_overflow(bench: &mut Bench) {
    let (mut c, small) = small(bench, Side::A, 1);
    for _ in 0..3 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
    }
    check("overflows", c.a.stat("cq_overflows"), 1);
    check("status", c.a.resize_cq(small, 4), STATE);
    c.a.expect(opcode::DESTROY_CQ, small.into(), &[0; 64]);
    check("status", c.a.resize_cq(small, 4), STATE);
}

fn event_armed_before_resize(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    c.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY);
    c.settle();
    check("status", c.a.resize_cq(0, 3), 0);
    check("events, before", eq.there(&c.a), vec![]);
    send(&mut c, false);
    check("events", eq.there(&c.a), vec![COMPLETION]);
}

fn event_after_resize(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    check("status", c.a.resize_cq(0, 3), 0);
    let source = c.b.create_mr(&[1; 8], Rights::NONE);
    let nowhere = Mr { key: 0, ..source };
    let qb = c.qb;
    c.b.post_send(qb, &Work::write(&[source.all()], &nowhere, 0));
    c.settle();
    let refused = (event::QP_ACCESS_ERR, c.qa, status::GENERAL_ERR);
    check("events", eq.failures(&c.a), vec![refused]);
}

/// A connection whose A has an event queue.
fn with_events(bench: &mut Bench) -> (Conn, Eq) {
    moderated(bench, 0)
}

/// As [`with_events`], with this moderation.
fn moderated(bench: &mut Bench, moderation: u16) -> (Conn, Eq) {
    let mut c = bench.connect(QpOptions::default());
    let eq = Eq::moderated(&mut c.a, 0, 4, 5, moderation);
    (c, eq)
}

fn send(c: &mut Conn, solicited: bool) {
    let qb = c.qb;
    let qa = c.qa;
    c.a.post_recv(qa, &[]);
    let mut work = Work::send(&[]);
    work.head.solicited = solicited;
    c.b.post_send(qb, &work);
    c.settle();
}

const COMPLETION: Event = (event::COMPLETION, 0, 0);

fn event_when_armed(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    send(&mut c, false);
    check("events, not armed", eq.there(&c.a), vec![]);
    c.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY | 1);
    c.settle();
    check("events, armed", eq.there(&c.a), vec![]);
    send(&mut c, false);
    check("events", eq.there(&c.a), vec![COMPLETION]);
    check("interrupts", c.interrupts(), vec![5]);
    send(&mut c, false);
    check("events, armed for one", eq.there(&c.a), vec![COMPLETION]);
    check("interrupts", c.interrupts(), vec![]);
}

fn event_armed_twice(bench: &mut Bench) {
    let orders = [doorbell::ARM_ANY, doorbell::ARM_SOLICITED];
    for orders in [orders, [orders[1], orders[0]]] {
        let (mut c, eq) = with_events(bench);
        for order in orders {
            c.a.nic.write32(doorbell::cq(0), order);
        }
        send(&mut c, false);
        check("events", eq.there(&c.a), vec![COMPLETION]);
        send(&mut c, true);
        check("events of both", eq.there(&c.a), vec![COMPLETION]);
    }
}

fn event_moderation(bench: &mut Bench) {
    // 40 times 256 cycles.
    let (mut c, eq) = moderated(bench, 40);
    for consumer in 0..3 {
        c.a.nic
            .write32(doorbell::cq(0), doorbell::ARM_ANY | consumer);
        send(&mut c, false);
    }
    check("events", eq.there(&c.a), vec![COMPLETION; 3]);
    check("interrupts at first", c.interrupts(), vec![5]);
    c.run(11_000);
    check("interrupts then", c.interrupts(), vec![5]);
    c.run(11_000);
    check("interrupts after all", c.interrupts(), vec![]);
}

fn event_of_one_before(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    send(&mut c, false);
    c.a.nic.write32(doorbell::cq(0), doorbell::ARM_ANY);
    c.settle();
    check("events", eq.there(&c.a), vec![COMPLETION]);
    check("interrupts", c.interrupts(), vec![5]);
}

fn event_solicited_only(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    c.a.nic.write32(doorbell::cq(0), doorbell::ARM_SOLICITED);
    send(&mut c, false);
    check("events", eq.there(&c.a), vec![]);
    send(&mut c, true);
    check("events", eq.there(&c.a), vec![COMPLETION]);
    let qa = c.qa;
    c.a.nic
        .write32(doorbell::cq(0), doorbell::ARM_SOLICITED | 2);
    let mut bad = Work::send(&[]);
    bad.head.opcode = 0x40;
    c.a.post_send(qa, &bad);
    c.settle();
    let all = eq.there(&c.a);
    let completions = all.iter().filter(|event| **event == COMPLETION).count();
    check("events of completions with an error", completions, 2);
}

fn event_of_an_error(bench: &mut Bench) {
    let (mut c, eq) = with_events(bench);
    let qa = c.qa;
    let mut bad = Work::send(&[]);
    bad.head.opcode = 0x40;
    c.a.post_send(qa, &bad);
    c.settle();
    let expected = (event::QP_FATAL, qa, status::LOC_QP_OP_ERR);
    check("events", eq.there(&c.a), vec![expected]);
}

fn event_of_an_overflow(bench: &mut Bench) {
    let (mut c, cqn) = small(bench, Side::A, 1);
    let eq = Eq::new(&mut c.a, 0, 4, 5);
    for _ in 0..3 {
        c.recv(&[]);
        c.post(&Work::send(&[]));
        c.settle();
    }
    let all = eq.there(&c.a);
    let expected = (event::CQ_ERROR, u32::from(cqn), 0);
    check("CQ_ERROR among the events", all.contains(&expected), true);
}
