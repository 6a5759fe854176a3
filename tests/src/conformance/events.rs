//! Event queues: their rings, several of them, and what closes them.

use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::{WAITING, event};
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::regs::{self, Params, feature};
use ferroce_proto::wire::Opcode;
use ferroce_sim::testhost::{QpOptions, Side, Work};

use super::bench::{Bench, Conn, Contexts, IP, open};
use super::event_queue::{Eq, Event};
use super::script::build;
use super::{EVENTS, cases, check};

cases! {
    event_ring_wraps, EVENTS, "abi eq", "Events alternate their phase with each pass over the ring.";
    event_ring_full, EVENTS, "abi eq", "Events that find their ring full wait until the host has taken some; none is lost.";
    event_ring_full_is_no_others, EVENTS, "abi eq", "A full event queue holds up no other one, though more events come for it than may wait.";
    event_queues_of_all_numbers, EVENTS, "abi eq", "Every event queue of the card reports, with the interrupt of its own vector.";
    event_queue_closed, EVENTS, "abi cmd", "A queue that is closed reports nothing; opened afresh it has no event of before.";
    event_queue_closed_while_full, EVENTS, "abi cmd", "What waits for room in a ring is forgotten when its queue is closed.";
    event_of_a_closed_cq, EVENTS, "abi cmd", "A completion queue that is closed while it is armed reports nothing, nor does one opened in its place.";
    event_before_the_end, EVENTS | feature::SRQ, "abi cmd", "What a queue pair reports is there when its RESET is answered, however many report with it.";
    event_moderation_is_long, EVENTS, "abi eq", "The first interrupt comes at once however long the moderation is.";
}

/// A connection, and completion queues of A that have a CQE each and report to event queues of these numbers.
fn reporting(bench: &mut Bench, eqns: &[u8]) -> (Conn, Vec<u16>) {
    let mut pair = bench.pair(IP);
    let mut cqns = Vec::new();
    for &eqn in eqns {
        let cqn = 1 + cqns.len() as u16;
        cqns.push(pair.a.create_cq_with(cqn, 4, |ctx| ctx.eqn = eqn));
    }
    let mut c = Conn::new(pair, QpOptions::default(), QpOptions::default());
    for &cqn in &cqns {
        let options = QpOptions {
            send_cq: cqn,
            ..QpOptions::default()
        };
        let (qa, qb) = c.pair.connect(options, QpOptions::default());
        c.b.post_recv(qb, &[]);
        c.a.post_send(qa, &Work::send(&[]));
    }
    c.settle();
    (c, cqns)
}

/// What a completion queue reports.
fn completion(cqn: u16) -> Event {
    (event::COMPLETION, cqn.into(), 0)
}

/// Arms a completion queue behind a CQE it has: it reports at once.
fn arm(c: &mut Conn, cqn: u16) {
    c.a.nic.write32(doorbell::cq(cqn.into()), doorbell::ARM_ANY);
    c.run(300);
}

fn event_ring_wraps(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0, 0]);
    let mut eq = Eq::new(&mut c.a, 0, 2, 3);
    for round in 0..9 {
        let cqn = cqns[round % 2];
        arm(&mut c, cqn);
        let expected = Some(completion(cqn));
        check("event", eq.take(&c.a), expected);
        check("another", eq.take(&c.a), None);
        eq.give_back(&c.a);
    }
}

/// Arms so often that the ring of two entries cannot hold it; the events in order.
fn fill(c: &mut Conn, cqns: &[u16]) -> Vec<Event> {
    let order: Vec<_> = [0, 1, 1, 0, 0, 1, 0].map(|i: usize| cqns[i]).into();
    for &cqn in &order {
        arm(c, cqn);
    }
    let events = order.into_iter();
    events.map(completion).collect()
}

fn event_ring_full(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0, 0]);
    let mut eq = Eq::new(&mut c.a, 0, 1, 3);
    let expected = fill(&mut c, &cqns);
    let mut found = Vec::new();
    while found.len() < expected.len() {
        let some = eq.all(&c.a);
        check("events there", (1..=2).contains(&some.len()), true);
        found.extend(some);
        eq.give_back(&c.a);
        c.run(2000);
    }
    check("events", found, expected);
    check("more", eq.all(&c.a), vec![]);
}

fn event_ring_full_is_no_others(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0, 0, 1]);
    let mut full = Eq::new(&mut c.a, 0, 1, 3);
    let mut other = Eq::new(&mut c.a, 1, 1, 4);
    let expected = fill(&mut c, &cqns);
    // with what waits already more than may
    for place in 0..WAITING {
        arm(&mut c, cqns[place % 2]);
    }
    for _ in 0..5 {
        arm(&mut c, cqns[2]);
        // The two take turns to have their consumer records read, and what waits is looked at again.
        let event = (0..100).find_map(|_| {
            c.run(200);
            other.take(&c.a)
        });
        check("event of the other", event, Some(completion(cqns[2])));
        other.give_back(&c.a);
    }
    check(
        "events of the full one",
        full.all(&c.a),
        expected[..2].to_vec(),
    );
}

fn event_queues_of_all_numbers(bench: &mut Bench) {
    let (mut c, _) = reporting(bench, &[]);
    let params = c.a.read32(regs::PARAMS);
    let count = 1 << Params::parse(&params.to_le_bytes()).log_eq.min(3);
    let numbers: Vec<u8> = (0..count).collect();
    let (mut c, cqns) = reporting(bench, &numbers);
    for vectors in [0x7ff, 0x2aa, 0x555] {
        for (&number, &cqn) in numbers.iter().zip(&cqns) {
            let vector = vectors ^ u16::from(number);
            let mut eq = Eq::new(&mut c.a, number, 3 + number, vector);
            arm(&mut c, cqn);
            let expected = Some(completion(cqn));
            check("event", eq.take(&c.a), expected);
            check("interrupts", c.interrupts(), vec![vector]);
            eq.close(&mut c.a);
        }
    }
}

fn event_queue_closed(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0]);
    let mut eq = Eq::new(&mut c.a, 0, 4, 3);
    arm(&mut c, cqns[0]);
    check("events", eq.all(&c.a).len(), 1);
    let base = eq.ctx.base;
    eq.close(&mut c.a);
    let before = c.a.read(base, 64);
    arm(&mut c, cqns[0]);
    check("the ring of a closed queue", c.a.read(base, 64), before);
    check("interrupts", c.interrupts(), vec![3]);
    let mut eq = Eq::new(&mut c.a, 0, 4, 5);
    c.run(1000);
    check("events of before", eq.all(&c.a), vec![]);
    arm(&mut c, cqns[0]);
    check("events", eq.all(&c.a).len(), 1);
    check("interrupts", c.interrupts(), vec![5]);
}

fn event_queue_closed_while_full(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0, 0]);
    for _ in 0..2 {
        let mut eq = Eq::new(&mut c.a, 0, 1, 3);
        let expected = fill(&mut c, &cqns);
        check("events", eq.all(&c.a), expected[..2].to_vec());
        eq.give_back(&c.a);
        eq.close(&mut c.a);
    }
    let mut eq = Eq::new(&mut c.a, 0, 4, 3);
    c.run(2000);
    check("events of before", eq.all(&c.a), vec![]);
}

fn event_of_a_closed_cq(bench: &mut Bench) {
    let (mut c, _) = reporting(bench, &[]);
    let mut eq = Eq::new(&mut c.a, 0, 4, 3);
    for _ in 0..3 {
        let cqn = c.a.create_cq_as(7, 3);
        let options = QpOptions {
            send_cq: cqn,
            ..QpOptions::default()
        };
        let (qa, qb) = c.pair.connect(options, QpOptions::default());
        c.a.nic.write32(doorbell::cq(cqn.into()), doorbell::ARM_ANY);
        c.run(100);
        c.a.reset_qp(qa);
        c.a.destroy_cq(cqn);
        c.a.create_cq_as(7, 3);
        let peer = c.b.peer(qb);
        c.a.connect(qa, &peer);
        c.b.post_recv(qb, &[]);
        c.a.post_send(qa, &Work::send(&[]));
        let cqe = c.wait_on(Side::A, cqn);
        check("status", cqe.status, 0);
        check("events", eq.all(&c.a), vec![]);
        c.a.reset_qp(qa);
        c.a.destroy_cq(cqn);
    }
}

fn event_moderation_is_long(bench: &mut Bench) {
    let (mut c, cqns) = reporting(bench, &[0]);
    for moderation in [0xffff, 0x5555, 0xaaaa] {
        let mut eq = Eq::moderated(&mut c.a, 0, 4, 6, moderation);
        for count in 1..4 {
            arm(&mut c, cqns[0]);
            check("events", eq.all(&c.a).len(), 1);
            let vectors = if count == 1 { vec![6] } else { vec![] };
            check("interrupts", c.interrupts(), vectors);
        }
        eq.close(&mut c.a);
    }
}

fn event_before_the_end(bench: &mut Bench) {
    const FAILING: u32 = 160;
    let mut s = bench.script(QpOptions::default());
    let mut eq = Eq::new(&mut s.host, 0, 10, 0);
    let srqn = s.host.create_srq(3, 0, 0);
    let qpns: Vec<_> = (0..FAILING)
        .map(|_| s.host.create_qp(QpOptions::default()))
        .collect();
    let peer = s.peer;
    for &qpn in &qpns {
        let shared =
            |contexts: &mut Contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn);
        open(&mut s.host, qpn, &peer, shared);
    }
    // a request that each refuses
    for &qpn in &qpns {
        s.qpn = qpn;
        let request = s.request(Opcode::RcSendLast);
        s.hand(&build(&request, &[]));
    }
    let last = qpns[qpns.len() - 1];
    while s.host.stat("invalid_request_errors") < u64::from(FAILING) {
        s.run(10);
    }
    s.host.modify_state(last, state::RESET);
    let seen = eq.all(&s.host);
    check("it has failed", seen.iter().any(|e| e.1 == last), true);
    s.quiet();
    let late: Vec<_> = eq
        .all(&s.host)
        .into_iter()
        .filter(|e| e.1 == last)
        .collect();
    check("events behind the answer", late, vec![]);
}
