//! Shared receive queues.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, Contexts, IP, MTU, open};
use super::event_queue::Eq;
use super::script::{QKEY, Script, syndromes};
use super::{RC, cases, check, check_bytes};

pub(super) const SRQ: u32 = RC | feature::SRQ;

cases! {
    srq_serves_all, SRQ, "IB1 10.2", "Queue pairs take the WQEs of a shared receive queue in the order of their messages.";
    srq_each_its_own, SRQ, "IB1 10.2.9", "Each queue pair takes from the shared receive queue it was made with.";
    srq_empty, SRQ, "IB1 9.7.5.2.8", "An empty shared receive queue is not ready: RNR NAK, and the message comes again.";
    srq_wraps, SRQ, "abi qpc", "A shared receive queue is a ring. The word above its doorbell is a hole.";
    srq_flush, SRQ, "IB1 10.3.1", "An error flushes the WQE of the message under way; the others are everyone's and stay.";
    srq_immediate, SRQ, "IB1 9.4.3", "A WRITE with immediate takes a WQE of the shared receive queue.";
    srq_buffer_too_short, SRQ | feature::UC | feature::UD, "IB1 9.9.3", "A message of UC or UD longer than its shared receive buffer completes it with a local length error; the queue pair goes on.";
    srq_uc_message_lost, SRQ | feature::UC, "IB1 9.8.2.2", "A UC message that loses a packet leaves its WQE of the shared receive queue to the next message.";
    srq_limit, SRQ | feature::EVENTS, "IB1 11.6", "A shared receive queue that falls below its limit is reported, once.";
    srq_limit_armed_again, SRQ | feature::EVENTS, "abi cmd", "A limit set again is reported again.";
    srq_limit_above_what_is_posted, SRQ | feature::EVENTS, "IB1 10.2.9", "A limit that is set above what is posted is reported at once, and is none then.";
    srq_limit_by_datagrams, SRQ | feature::UD | feature::EVENTS, "IB1 11.6", "Datagrams that are taken count for the limit, those that are dropped do not.";
    srq_limit_of_datagram_queues, SRQ | feature::UD | feature::EVENTS, "IB1 10.2.9", "Queue pairs of UD that share a receive queue count for one limit, which is reported once, for the queue.";
    srq_last_wqe, SRQ | feature::EVENTS, "IB1 11.6.3.1", "A queue pair in error that takes no WQE of its shared receive queue any more is reported, once in each time that it goes into error.";
    srq_last_wqe_comes_last, SRQ | feature::EVENTS, "IB1 11.6.3.1", "That event comes when the queue pair's last receive completion is there.";
}

/// Two connections between the hosts; those of B receive from one queue of eight.
pub(super) fn two(bench: &mut Bench) -> (Conn, u16, [(u32, u32); 2]) {
    let mut pair = bench.pair(IP);
    let srqn = pair.b.create_srq(3, 0, 0);
    let receiver = QpOptions {
        srq: Some(srqn),
        ..QpOptions::default()
    };
    let first = pair.connect(QpOptions::default(), receiver);
    let c = Conn::new(pair, QpOptions::default(), receiver);
    let second = (c.qa, c.qb);
    (c, srqn, [first, second])
}

fn srq_serves_all(bench: &mut Bench) {
    let (mut c, srqn, connections) = two(bench);
    let target = c.b.create_mr(&[0; 8 * 4096], Rights::ALL);
    for i in 0..8 {
        let index = c.b.post_srq(srqn, &[target.sge(4096 * i, 4096)]);
        check("index", u64::from(index), i);
    }
    for i in 0..8u16 {
        let (qa, qb) = connections[usize::from(i * i % 3 % 2)];
        let data = pattern(2500, i as u8);
        let source = c.a.create_mr(&data, Rights::NONE);
        c.a.post_send(qa, &Work::send(&[source.all()]));
        let cqe = c.succeeds(Side::B, i);
        check("CQE", (cqe.qpn, cqe.byte_len), (qb, 2500));
        let got = c.b.read(target.addr + 4096 * u64::from(i), 2500);
        check_bytes("data", &got, &data);
        check("at the sender", c.wait(Side::A).status, status::SUCCESS);
    }
}

fn srq_each_its_own(bench: &mut Bench) {
    let mut pair = bench.pair(IP);
    let queues = [(); 3].map(|()| pair.b.create_srq(3, 0, 0));
    let receiver = |srqn| QpOptions {
        srq: Some(srqn),
        ..QpOptions::default()
    };
    let one = pair.connect(QpOptions::default(), receiver(queues[1]));
    let mut c = Conn::new(pair, QpOptions::default(), receiver(queues[2]));
    let two = (c.qa, c.qb);
    let target = c.b.create_mr(&[0; 3 * 8], Rights::ALL);
    for (place, queue) in [(0, 1), (1, 2), (2, 2)] {
        c.b.post_srq(queues[queue], &[target.sge(8 * place, 8)]);
    }
    for (place, index, (qa, qb)) in [(1, 0, two), (0, 0, one), (2, 1, two)] {
        c.a.post_send(qa, &Work::send(&[]).inline(&[place + 1; 8]));
        check("CQE", c.succeeds(Side::B, index).qpn, qb);
        let got = c.b.read(target.addr + 8 * u64::from(place), 8);
        check_bytes("data", &got, &[place + 1; 8]);
        check("at the sender", c.wait(Side::A).status, status::SUCCESS);
    }
}

fn srq_empty(bench: &mut Bench) {
    let (mut c, srqn, [(qa, _), _]) = two(bench);
    let index = c.a.post_send(qa, &Work::send(&[]));
    c.run(1_200);
    check("RNR NAKs", c.b.stat("rnr_nak_sent"), 1);
    c.b.post_srq(srqn, &[]);
    c.succeeds(Side::A, index);
    c.succeeds(Side::B, 0);
}

fn srq_wraps(bench: &mut Bench) {
    let (mut c, srqn, [(qa, _), _]) = two(bench);
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    for i in 0..19 {
        c.b.post_srq(srqn, &[target.all()]);
        c.b.write32(doorbell::srq(srqn.into()) as u32 + 4, 0);
        c.a.post_send(qa, &Work::send(&[]).inline(&[i as u8; 8]));
        c.succeeds(Side::B, i % 8);
        check_bytes("data", &c.b.contents(&target), &[i as u8; 8]);
        check("at the sender", c.wait(Side::A).status, status::SUCCESS);
    }
}

/// A card whose queue pair receives from a shared queue with this limit.
pub(super) fn script(bench: &mut Bench, limit: u16) -> (Script, u16) {
    let mut s = bench.script(QpOptions::default());
    let srqn = s.host.create_srq(3, 0, limit);
    s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
    (s, srqn)
}

fn srq_flush(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let target = s.target;
    for _ in 0..3 {
        s.host.post_srq(srqn, &[target.all()]);
    }
    let first = s.request(Opcode::RcSendFirst);
    s.next(&first, &[1; MTU]);
    s.host.modify_state(s.qpn, state::ERR);
    s.quiet();
    check("completions", s.results(), vec![(0, status::WR_FLUSH_ERR)]);
    s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
    let only = s.request(Opcode::RcSendOnly);
    s.next(&only, &[1; 8]);
    check("completions", s.results(), vec![(1, status::SUCCESS)]);
}

fn srq_immediate(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let request = s.request(Opcode::RcWriteOnlyImm);
    let answers = s.send(&request, &[1; 8]);
    let nak = Syndrome::RnrNak { timer: 1 };
    check("answer", syndromes(&answers), vec![nak]);
    s.host.post_srq(srqn, &[]);
    let answers = s.send(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
}

fn srq_buffer_too_short(bench: &mut Bench) {
    for (qp_type, opcode, head) in [
        (qp_type::UC, Opcode::UcSendOnly, 0),
        (qp_type::UD, Opcode::UdSendOnly, 40),
    ] {
        let mut s = bench.script(QpOptions {
            qp_type,
            qkey: QKEY,
            ..QpOptions::default()
        });
        let target = s.target;
        let srqn = s.host.create_srq(3, 0, 0);
        s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
        for room in [7, 8] {
            s.host.post_srq(srqn, &[target.sge(0, head + room)]);
        }
        for expected in [(0, status::LOC_LEN_ERR), (1, status::SUCCESS)] {
            let only = s.request(opcode);
            check("answers", s.next(&only, &[1; 8]).len(), 0);
            check("completions", s.results(), vec![expected]);
        }
        check("state", s.host.query(s.qpn).rq_state, state::RTS);
    }
}

/// SRQ_LIMIT events so far.
fn limits(s: &Script, eq: &Eq) -> usize {
    let events = eq.there(&s.host).into_iter();
    events.filter(|event| event.0 == event::SRQ_LIMIT).count()
}

/// Receives a message of no bytes.
fn receive(s: &mut Script) {
    let only = s.request(Opcode::RcSendOnly);
    let answers = s.next(&only, &[]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
}

fn srq_uc_message_lost(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    });
    let srqn = s.host.create_srq(3, 0, 0);
    s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
    let target = s.target;
    for at in [0, 2048] {
        s.host.post_srq(srqn, &[target.sge(at, 2048)]);
    }
    let first = s.request(Opcode::UcSendFirst);
    s.next(&first, &[1; MTU]);
    s.psn = s.psn.next();
    for value in [2, 3] {
        let only = s.request(Opcode::UcSendOnly);
        s.next(&only, &[value; 8]);
    }
    let lengths: Vec<_> = s
        .cqes()
        .iter()
        .map(|cqe| (cqe.status, cqe.byte_len))
        .collect();
    check("CQEs", lengths, vec![(0, 8), (0, 8)]);
    let data = s.contents();
    check_bytes("the WQE of the lost message", &data[..8], &[2; 8]);
    check_bytes("the next one", &data[2048..][..8], &[3; 8]);
}

fn srq_limit(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 3);
    let eq = Eq::new(&mut s.host, 0, 4, 0);
    for _ in 0..5 {
        s.host.post_srq(srqn, &[]);
    }
    for expected in [0, 0, 1, 1] {
        receive(&mut s);
        check("events", limits(&s, &eq), expected);
    }
}

/// As soft-RoCE has it: it looks at the limit when it takes a WQE (`get_srq_wqe`).
fn srq_limit_by_datagrams(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    });
    let eq = Eq::new(&mut s.host, 0, 4, 0);
    let target = s.target;
    let srqn = s.host.create_srq(3, 0, 3);
    s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
    for room in [64, 40, 64, 64] {
        s.host.post_srq(srqn, &[target.sge(0, room)]);
    }
    // the second is too long for its buffer
    let statuses = [status::SUCCESS, status::LOC_LEN_ERR, status::SUCCESS];
    for ((index, status), expected) in (0..).zip(statuses).zip([0, 1, 1]) {
        let mut other = s.request(Opcode::UdSendOnly);
        other.ext.deth.as_mut().expect("a datagram").qkey ^= 1;
        s.send(&other, &[1; 8]);
        check("dropped", s.results(), vec![]);
        let only = s.request(Opcode::UdSendOnly);
        s.next(&only, &[1; 8]);
        check("taken", s.results(), vec![(index, status)]);
        check("events", limits(&s, &eq), expected);
    }
}

fn srq_limit_of_datagram_queues(bench: &mut Bench) {
    let options = QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    };
    let mut s = bench.script(options);
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let (peer, target, first) = (s.peer, s.target, s.qpn);
    let srqn = s.host.create_srq(3, 0, 4);
    let shared = |contexts: &mut Contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn);
    s.reopen(shared);
    let second = s.host.create_qp(options);
    open(&mut s.host, second, &peer, shared);
    for _ in 0..6 {
        s.host.post_srq(srqn, &[target.sge(0, 64)]);
    }
    let below = (event::SRQ_LIMIT, u32::from(srqn), 0);
    for (qpn, expected) in [
        (first, vec![]),
        (second, vec![]),
        (second, vec![below]),
        (first, vec![]),
    ] {
        s.qpn = qpn;
        let only = s.request(Opcode::UdSendOnly);
        s.next(&only, &[1; 8]);
        let taken: Vec<_> = s.cqes().iter().map(|cqe| (cqe.qpn, cqe.status)).collect();
        check("taken", taken, vec![(qpn, status::SUCCESS)]);
        check("events", eq.all(&s.host), expected);
    }
}

fn srq_limit_armed_again(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let eq = Eq::new(&mut s.host, 0, 4, 0);
    for _ in 0..6 {
        s.host.post_srq(srqn, &[]);
    }
    receive(&mut s);
    check("events without a limit", limits(&s, &eq), 0);
    for expected in [1, 2] {
        s.host.arm_srq(srqn, 5);
        receive(&mut s);
        check("events", limits(&s, &eq), expected);
        receive(&mut s);
        check("events", limits(&s, &eq), expected);
    }
}

fn srq_limit_above_what_is_posted(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let eq = Eq::new(&mut s.host, 0, 4, 0);
    for _ in 0..4 {
        s.host.post_srq(srqn, &[]);
    }
    for (limit, expected) in [(4, 0), (5, 1), (0, 1)] {
        s.host.arm_srq(srqn, limit);
        s.quiet();
        check("events", limits(&s, &eq), expected);
    }
    s.host.arm_srq(srqn, 5);
    s.quiet();
    check("events of the second time", limits(&s, &eq), 2);
    receive(&mut s);
    check("events behind it", limits(&s, &eq), 2);
}

/// LAST_WQE_REACHED events that are there and not taken; all others are taken and do not count.
fn last_wqes(s: &mut Script, eq: &mut Eq) -> usize {
    s.quiet();
    let events = eq.all(&s.host).into_iter();
    let reached = (event::LAST_WQE_REACHED, s.qpn, 0);
    events.filter(|event| *event == reached).count()
}

fn srq_last_wqe(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let shared = |contexts: &mut Contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn);
    for from in [state::INIT, state::RTR, state::RTS, state::SQD] {
        s.reopen(shared);
        s.host.modify_state(s.qpn, from);
        check("events before", last_wqes(&mut s, &mut eq), 0);
        s.host.modify_state(s.qpn, state::ERR);
        check("events of a command", last_wqes(&mut s, &mut eq), 1);
        s.host.modify_state(s.qpn, state::ERR);
        check("events of a second one", last_wqes(&mut s, &mut eq), 0);
    }
    // a message is under way, and the requester fails
    s.reopen(shared);
    s.host.post_srq(srqn, &[s.target.all()]);
    let first = s.request(Opcode::RcSendFirst);
    s.next(&first, &[1; MTU]);
    let psn = s.post(&Work::send(&[]))[0].psn();
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    s.send(&s.response(Opcode::RcAck, psn, nak), &[]);
    check("events of the requester", last_wqes(&mut s, &mut eq), 1);
    // a request is refused
    s.reopen(shared);
    s.next(&s.request(Opcode::RcSendLast), &[1; 8]);
    check("events of the responder", last_wqes(&mut s, &mut eq), 1);
    // in RESET it is over; with a receive queue of its own there is no such event
    s.reopen(shared);
    s.host.modify_state(s.qpn, state::ERR);
    s.host.modify_state(s.qpn, state::RESET);
    eq.all(&s.host);
    check("events in RESET", last_wqes(&mut s, &mut eq), 0);
    s.reopen(|_| {});
    s.host.modify_state(s.qpn, state::ERR);
    check("events of an own queue", last_wqes(&mut s, &mut eq), 0);
}

fn srq_last_wqe_comes_last(bench: &mut Bench) {
    let (mut s, srqn) = script(bench, 0);
    let mut eq = Eq::new(&mut s.host, 0, 4, 0);
    let target = s.target;
    for _ in 0..6 {
        s.host.post_srq(srqn, &[target.all()]);
    }
    for _ in 0..5 {
        let only = s.request(Opcode::RcSendOnly);
        s.hand_next(&only, &[1; MTU]);
    }
    for opcode in [Opcode::RcSendFirst, Opcode::RcWriteMiddle] {
        let request = s.request(opcode);
        s.hand_next(&request, &[1; MTU]);
    }
    let reached = (event::LAST_WQE_REACHED, s.qpn, 0);
    let found = (0..5000).any(|_| {
        s.run(1);
        eq.take(&s.host) == Some(reached)
    });
    check("the event is there", found, true);
    let mut expected = [status::SUCCESS; 6];
    expected[5] = status::WR_FLUSH_ERR;
    let there: Vec<_> = s.results().into_iter().map(|result| result.1).collect();
    check("completions at the event", there, expected.to_vec());
}
