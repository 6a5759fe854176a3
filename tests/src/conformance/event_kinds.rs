//! Kinds of event: what a responder reports of a request that it refuses, and what it does not report.
//!
//! IB1 11.6.3.2 has three. The NVIDIA manual (RDMA Aware Programming, Events) has an unsupported opcode and one out of
//! sequence under QP_REQ_ERR, bad keys under QP_ACCESS_ERR, and what keeps a completion from its queue under QP_FATAL.
//! It has misaligned atomics, READs beyond the limit and wrong lengths under QP_ACCESS_ERR too; here all that draws NAK
//! invalid request is QP_REQ_ERR (architecture 6).

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::{RecvWqe, Sge};
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Headers, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, pattern};

use super::bench::{Bench, Contexts, MTU, Sent};
use super::event_queue::Eq;
use super::script::{QKEY, Script, build, syndromes};
use super::shared_receive::SRQ;
use super::wqe::nowhere;
use super::{ATOMIC, EVENTS, INVALIDATE, READ, cases, check};

const ALL: u32 = EVENTS | READ | ATOMIC | INVALIDATE;
const UNRELIABLE: u32 = EVENTS | feature::UC | feature::UD;

cases! {
    event_of_an_invalid_request, ALL, "IB1 11.6.3.2", "A request that is invalid by its order, its right at the queue pair, its length or its address is reported once, as QP_REQ_ERR; the receive WQE in use is flushed.";
    event_of_a_bad_key, ALL, "IB1 11.6.3.2", "A request whose key does not give it what it asks for is reported once, as QP_ACCESS_ERR.";
    event_of_a_region_gone, ALL, "IB1 11.6.3.2", "So is a WRITE whose region goes away between its packets, and a READ whose region goes away while it is answered.";
    event_of_memory_unread, ALL, "IB1 11.6.3.2", "A READ or atomic of memory that cannot be read is reported once, as QP_FATAL.";
    event_of_a_placement, UNRELIABLE, "abi eq", "What could not be placed is reported once, with the status of its completion: QP_FATAL for a bad receive WQE, QP_REQ_ERR for a message too long for it, on RC.";
    event_of_a_shared_message, ALL | SRQ, "IB1 9.9.3", "A SEND that a packet out of order ends is reported as QP_REQ_ERR, and flushes the WQE that it took from a shared receive queue: that one alone.";
    error_again_keeps_the_nak, ALL, "IB1 9.7.5.2", "A command to ERR takes nothing away from a queue pair that its own responder failed: the READs before are answered, then the NAK leaves.";
    no_event_of_what_goes_on, ALL | UNRELIABLE, "IB1 9.9.3", "What leaves a queue pair in its state is not reported: gaps, RNR NAKs, duplicates, and on UC and UD whatever a peer sends.";
}

/// A script with an event queue.
fn watched(bench: &mut Bench, qp_type: u8) -> (Script, Eq) {
    let mut s = bench.script(QpOptions {
        qp_type,
        qkey: QKEY,
        ..QpOptions::default()
    });
    let eq = Eq::new(&mut s.host, 0, 4, 0);
    (s, eq)
}

/// The events since the last call are these, all of the script's queue pair.
#[track_caller]
fn reported(s: &Script, eq: &mut Eq, what: &str, expected: &[(u8, u8)]) {
    let events = expected.iter().map(|&(kind, detail)| (kind, s.qpn, detail));
    check(
        &format!("{what}: events"),
        eq.all(&s.host),
        events.collect(),
    );
    eq.give_back(&s.host);
}

/// Hands over a message up to its last packet but one, then the last one changed by `spoil`; its answers.
fn give(s: &mut Script, opcodes: &[Opcode], spoil: impl FnOnce(&mut Headers)) -> Vec<Sent> {
    let (last, before) = opcodes.split_last().expect("at least one");
    for opcode in before {
        let request = s.write(*opcode, 2000);
        s.next(&request, &[1; MTU]);
    }
    let mut request = s.request(*last);
    spoil(&mut request);
    let len = if last.has_payload() { 8 } else { 0 };
    s.next(&request, &vec![1; len])
}

/// A request to be refused: contexts of its queue pair, its packets, a change of the last one.
type Refused = (fn(&mut Contexts), &'static [Opcode], fn(&mut Headers));

/// Requests that draw a NAK and are reported as `kind`.
fn refused(bench: &mut Bench, nak: NakCode, kind: u8, requests: &[Refused]) {
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    for (n, &(change, opcodes, spoil)) in requests.iter().enumerate() {
        let what = format!("request {n}, {opcodes:?}");
        s.reopen(change);
        s.recv();
        let answers = give(&mut s, opcodes, spoil);
        check(&what, syndromes(&answers), vec![Syndrome::Nak(nak)]);
        reported(&s, &mut eq, &what, &[(kind, status::GENERAL_ERR)]);
        let flushed = vec![(0, status::WR_FLUSH_ERR)];
        check(&format!("{what}: completions"), s.results(), flushed);
    }
}

use Opcode::{
    RcFetchAdd as FetchAdd, RcReadRequest as Read, RcSendFirst as SendFirst,
    RcSendLast as SendLast, RcSendMiddle as SendMiddle, RcSendOnly as SendOnly,
    RcWriteFirst as WriteFirst, RcWriteLast as WriteLast, RcWriteOnly as WriteOnly,
};

/// Changes the length in a RETH.
fn length(headers: &mut Headers, change: fn(&mut u32)) {
    change(&mut headers.ext.reth.as_mut().expect("a RETH").dma_len);
}

fn event_of_an_invalid_request(bench: &mut Bench) {
    let requests: &[Refused] = &[
        (|_| {}, &[SendMiddle], |_| {}),
        (|_| {}, &[SendFirst, SendFirst], |_| {}),
        (|_| {}, &[SendFirst, SendOnly], |_| {}),
        (|_| {}, &[SendFirst, WriteFirst], |_| {}),
        (|_| {}, &[SendFirst, WriteOnly], |_| {}),
        (|_| {}, &[SendFirst, Read], |_| {}),
        (|_| {}, &[SendFirst, FetchAdd], |_| {}),
        (|_| {}, &[WriteFirst, SendLast], |_| {}),
        (|c| c.rq.remote_write = false, &[WriteOnly], |_| {}),
        (|c| c.rq.remote_read = false, &[Read], |_| {}),
        (|c| c.rq.remote_atomic = false, &[FetchAdd], |_| {}),
        (|c| c.rq.max_dest_rd_atomic = 0, &[Read], |_| {}),
        (|_| {}, &[WriteOnly], |h| length(h, |len| *len += 1)),
        (|_| {}, &[Read], |h| length(h, |len| *len = 1 << 31 | 1)),
        (
            |_| {},
            &[FetchAdd],
            |h| h.ext.atomic.as_mut().expect("an AtomicETH").va += 4,
        ),
    ];
    refused(bench, NakCode::InvalidRequest, event::QP_REQ_ERR, requests);
}

fn event_of_a_bad_key(bench: &mut Bench) {
    const BAD_RETH: fn(&mut Headers) = |h| h.ext.reth.as_mut().expect("a RETH").rkey ^= 1;
    let requests: &[Refused] = &[
        (|_| {}, &[WriteOnly], BAD_RETH),
        (|_| {}, &[Read], BAD_RETH),
        (
            |_| {},
            &[FetchAdd],
            |h| h.ext.atomic.as_mut().expect("an AtomicETH").rkey ^= 1,
        ),
        (
            |_| {},
            &[Opcode::RcSendOnlyInv],
            |h| h.ext.ieth = h.ext.ieth.map(|key| key ^ 1),
        ),
    ];
    refused(bench, NakCode::RemoteAccess, event::QP_ACCESS_ERR, requests);
}

fn event_of_a_region_gone(bench: &mut Bench) {
    const LEN: usize = 1 << 18;
    let denied = [(event::QP_ACCESS_ERR, status::GENERAL_ERR)];
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    let request = s.write(WriteFirst, 2000);
    s.next(&request, &[1; MTU]);
    let target = s.target;
    s.host.deregister(&target);
    let request = s.request(WriteLast);
    let answers = s.next(&request, &[1; 2000 - MTU]);
    let nak = vec![Syndrome::Nak(NakCode::RemoteAccess)];
    check("answer to the WRITE", syndromes(&answers), nak);
    reported(&s, &mut eq, "WRITE", &denied);
    s.reopen(|_| {});
    let origin = s.host.create_mr(&pattern(LEN, 3), Rights::ALL);
    let mut request = s.request(Read);
    let reth = request.ext.reth.as_mut().expect("a RETH");
    (reth.va, reth.rkey, reth.dma_len) = (origin.addr, origin.key, LEN as u32);
    s.hand(&build(&request, &[]));
    s.run(1500);
    s.host.deregister(&origin);
    s.quiet();
    reported(&s, &mut eq, "READ", &denied);
}

fn error_again_keeps_the_nak(bench: &mut Bench) {
    const PACKETS: u32 = 64;
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    let len = PACKETS * MTU as u32;
    let origin = s.host.create_mr(&pattern(len as usize, 3), Rights::ALL);
    let mut request = s.request(Read);
    let reth = request.ext.reth.as_mut().expect("a RETH");
    (reth.va, reth.rkey, reth.dma_len) = (origin.addr, origin.key, len);
    s.hand(&build(&request, &[]));
    s.psn = s.psn.add(PACKETS);
    let mut bad = s.write(WriteOnly, 8);
    bad.ext.reth.as_mut().expect("a RETH").rkey ^= 1;
    s.hand_next(&bad, &[1; 8]);
    let mut sent = vec![];
    while eq.there(&s.host).is_empty() {
        sent.extend(s.run(16));
    }
    check("answered before the event", sent.len() < 60, true);
    let qpn = s.qpn;
    s.host.modify_state(qpn, state::ERR);
    sent.extend(s.quiet());
    check("packets", sent.len() as u32, PACKETS + 1);
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    check("the last", syndromes(&sent[PACKETS as usize..]), vec![nak]);
    let denied = [(event::QP_ACCESS_ERR, status::GENERAL_ERR)];
    reported(&s, &mut eq, "WRITE", &denied);
}

fn event_of_memory_unread(bench: &mut Bench) {
    bench.expect_refusals();
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    let bad = nowhere(&mut s.host);
    for opcode in [Read, FetchAdd] {
        s.reopen(|_| {});
        let answers = give(&mut s, &[opcode], |h| {
            if let Some(reth) = &mut h.ext.reth {
                (reth.va, reth.rkey) = (bad.addr, bad.key);
            }
            if let Some(atomic) = &mut h.ext.atomic {
                (atomic.va, atomic.rkey) = (bad.addr, bad.key);
            }
        });
        let nak = vec![Syndrome::Nak(NakCode::RemoteOperational)];
        check("answer", syndromes(&answers), nak);
        let fatal = [(event::QP_FATAL, status::GENERAL_ERR)];
        reported(&s, &mut eq, &format!("{opcode:?}"), &fatal);
    }
}

/// What the receive WQE of a placement that fails is.
#[derive(Debug)]
enum Bad {
    /// Its key is none.
    Key,
    /// It is too short for a SEND of 8 bytes behind the bytes before.
    Short,
    /// Its list is longer than its slots.
    List,
}

/// Posts a receive WQE that is good for `before` bytes and bad behind them.
fn post(s: &mut Script, bad: &Bad, before: u32) {
    let good = s.target.sge(0, before);
    let next = s.target.sge(before.into(), 8);
    let list = match bad {
        Bad::Key => [
            good,
            Sge {
                lkey: next.lkey ^ 1,
                ..next
            },
        ],
        Bad::Short => [good, Sge { length: 4, ..next }],
        Bad::List => [good, next],
    };
    let head = RecvWqe {
        num_sge: if matches!(bad, Bad::List) { 17 } else { 2 },
        length: before + 8,
        ..RecvWqe::default()
    };
    s.host.post_recv_wqe(s.qpn, head, &list);
}

fn event_of_a_placement(bench: &mut Bench) {
    let messages: [(u8, u32, &[Opcode]); 4] = [
        (qp_type::RC, 0, &[SendOnly]),
        (qp_type::RC, MTU as u32, &[SendFirst, SendLast]),
        (qp_type::UC, 0, &[Opcode::UcSendOnly]),
        (qp_type::UD, GRH_LEN as u32, &[Opcode::UdSendOnly]),
    ];
    for (qp_type, before, opcodes) in messages {
        for (bad, kind, status) in [
            (Bad::Key, event::QP_FATAL, status::LOC_PROT_ERR),
            (Bad::List, event::QP_FATAL, status::LOC_QP_OP_ERR),
            (Bad::Short, event::QP_REQ_ERR, status::LOC_LEN_ERR),
        ] {
            let what = format!("{opcodes:?}, {bad:?}");
            let (mut s, mut eq) = watched(bench, qp_type);
            post(&mut s, &bad, before);
            give(&mut s, opcodes, |_| {});
            check(&what, s.results(), vec![(0, status)]);
            // UC and UD go on behind a message that is too long
            let fails = qp_type == qp_type::RC || kind == event::QP_FATAL;
            reported(&s, &mut eq, &what, &[(kind, status)][..usize::from(fails)]);
        }
    }
}

fn event_of_a_shared_message(bench: &mut Bench) {
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    let target = s.target;
    let srqn = s.host.create_srq(3, 0, 0);
    let shared = |contexts: &mut Contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn);
    let opcodes = [SendFirst, SendOnly, WriteFirst, WriteOnly, Read, FetchAdd];
    for (index, opcode) in (0..).zip(opcodes) {
        s.reopen(shared);
        for _ in 0..2 {
            s.host.post_srq(srqn, &[target.all()]);
        }
        let what = format!("{opcode:?} in a SEND");
        let answers = give(&mut s, &[SendFirst, opcode], |_| {});
        let nak = vec![Syndrome::Nak(NakCode::InvalidRequest)];
        check(&what, syndromes(&answers), nak);
        let flushed = vec![(index % 8, status::WR_FLUSH_ERR)];
        check(&format!("{what}: completions"), s.results(), flushed);
        let failed = (event::QP_REQ_ERR, status::GENERAL_ERR);
        let last = (event::LAST_WQE_REACHED, status::SUCCESS);
        reported(&s, &mut eq, &what, &[failed, last]);
    }
}

/// The queue pair goes on, and nothing was reported of what it met.
#[track_caller]
fn goes_on(s: &mut Script, eq: &mut Eq, what: &str) {
    check(what, s.host.query(s.qpn).rq_state, state::RTS);
    reported(s, eq, what, &[]);
}

fn no_event_of_what_goes_on(bench: &mut Bench) {
    let (mut s, mut eq) = watched(bench, qp_type::RC);
    for (opcode, ahead) in [(WriteOnly, 1), (SendOnly, 0)] {
        let mut request = s.request(opcode);
        request.bth.psn = s.psn.add(ahead);
        check("a NAK", s.send(&request, &[1; 8]).len(), 1);
        goes_on(&mut s, &mut eq, &format!("a NAK of {opcode:?}"));
    }
    give(&mut s, &[Read], |_| {});
    let (target, executed) = (s.target, s.psn.sub(1));
    s.host.deregister(&target);
    for opcode in [Read, WriteOnly, SendMiddle] {
        let mut request = s.request(opcode);
        request.bth.psn = executed;
        let payload = vec![1; if opcode.has_payload() { 8 } else { 0 }];
        s.send(&request, &payload);
        goes_on(&mut s, &mut eq, &format!("{opcode:?} again"));
    }
    for (qp_type, opcodes) in [
        (
            qp_type::UC,
            &[
                Opcode::UcSendMiddle,
                Opcode::UcSendFirst,
                Opcode::UcSendOnly,
                Opcode::UcWriteOnly,
            ][..],
        ),
        (qp_type::UD, &[Opcode::UdSendOnly, Opcode::RcSendOnly]),
    ] {
        let (mut s, mut eq) = watched(bench, qp_type);
        let target = s.target;
        s.host.deregister(&target);
        s.host.post_recv(s.qpn, &[]);
        for &opcode in opcodes {
            give(&mut s, &[opcode], |_| {});
            goes_on(&mut s, &mut eq, &format!("{opcode:?}"));
        }
    }
}
