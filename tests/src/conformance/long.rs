//! Long runs: counters that go round, messages of many packets.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::RecvWqe;
use ferroce_proto::wire::{Mtu, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::Bench;
use super::event_queue::Eq;
use super::script::syndromes;
use super::{EVENTS, READ, cases, check, check_bytes};

const BOTH: u32 = EVENTS | feature::SRQ;

cases! {
    indices_go_round, BOTH, "abi wqe", "WQE indices are counted modulo 2^16, those of the send and the receive queue; so is the producer index of a shared receive queue.";
    fence_goes_round, READ, "IB1 10.8", "A completion behind an unsignaled READ comes however much is written between the two.";
    messages_of_a_mebibyte, READ, "IB1 9.7.4.1", "A message may have thousands of packets.";
}

/// WQEs of one round, all at once.
const BATCH: u16 = 64;
/// Log2 of the entries of rings that hold two batches.
const LOG: u8 = 7;

/// 2^16 SENDs without bytes in both directions: B has a receive queue, A a shared one.
fn indices_go_round(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let mut eqs = [&mut c.pair.a, &mut c.pair.b].map(|host| Eq::new(host, 0, 4, 0));
    let cqns = [&mut c.pair.a, &mut c.pair.b].map(|host| host.create_cq(LOG + 1));
    let srqn = c.a.create_srq(LOG, 0, 0);
    let options = |side: usize| QpOptions {
        send_cq: cqns[side],
        recv_cq: cqns[side],
        sq_log: LOG,
        rq_log: LOG,
        ot_log: LOG,
        srq: (side == 0).then_some(srqn),
        ..QpOptions::default()
    };
    (c.qa, c.qb) = c.pair.connect(options(0), options(1));
    let (qa, qb) = (c.qa, c.qb);
    let rounds = (1 << 16) / u32::from(BATCH) + 1;
    for round in 0..rounds {
        let first = (round as u16).wrapping_mul(BATCH);
        for left in (0..BATCH).rev() {
            c.a.post_srq(srqn, &[]);
            c.b.write_recv_wqe(qb, RecvWqe::default(), &[]);
            if left > 0 {
                c.a.write_slots(qa, &Work::send(&[]).slots());
                c.b.write_slots(qb, &Work::send(&[]).slots());
            }
        }
        c.b.ring_recv(qb);
        c.a.post_send(qa, &Work::send(&[]));
        c.b.post_send(qb, &Work::send(&[]));
        let completions = 2 * u32::from(BATCH);
        for (side, cqn) in [Side::A, Side::B].into_iter().zip(cqns) {
            let (mut sent, mut received) = (first, first);
            for _ in 0..completions {
                let cqe = c.wait_on(side, cqn);
                let expected = if cqe.recv { &mut received } else { &mut sent };
                let number = match (side, cqe.recv) {
                    (Side::A, true) => *expected % (1 << LOG),
                    _ => *expected,
                };
                let found = (cqe.wqe_index, cqe.status);
                check("index and status", found, (number, status::SUCCESS));
                *expected = expected.wrapping_add(1);
            }
            let arm = doorbell::ARM_ANY | ((round + 1) * completions);
            c.host(side).nic.write32(doorbell::cq(cqn.into()), arm);
        }
        c.run(200);
        for ((eq, cqn), side) in eqs.iter_mut().zip(cqns).zip([Side::A, Side::B]) {
            let events = eq.all(c.host(side));
            let armed = usize::from(round > 0);
            check(
                "events",
                events,
                vec![(event::COMPLETION, cqn.into(), 0); armed],
            );
            eq.give_back(c.host(side));
        }
    }
    check("messages", c.query(Side::B).msn, rounds * u32::from(BATCH));
    // A new life counts from 0.
    c.start_again();
    c.recv(&[]);
    c.post(&Work::send(&[]));
    for (side, cqn) in [Side::A, Side::B].into_iter().zip(cqns) {
        let cqe = c.wait_on(side, cqn);
        check(
            "index and status",
            (cqe.wqe_index, cqe.status),
            (0, status::SUCCESS),
        );
    }
    check("messages", c.query(Side::B).msn, 1);
}

/// The card counts its writes of payload modulo 2^16, and compares them with the READ's.
fn fence_goes_round(bench: &mut Bench) {
    const BATCH: usize = 250;
    const BATCHES: usize = (1 << 15) / BATCH + 10;
    let mut s = bench.script(QpOptions {
        timeout: 0,
        ..QpOptions::default()
    });
    let read = Work::read(&[s.target.sge(0, 8)], &s.target, 0).unsignaled();
    let psn = s.post(&read)[0].psn();
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&data, &[1; 8]);
    for _ in 0..BATCHES {
        for left in (0..BATCH).rev() {
            let mut write = s.request(Opcode::RcWriteOnly);
            write.bth.ack_req = left == 0;
            s.hand_next(&write, &[2; 8]);
        }
        let (_, answers) = s.until_sent(100_000).expect("the acknowledgement");
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    }
    s.post(&Work::send(&[]));
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(1, status::SUCCESS)]);
}

fn messages_of_a_mebibyte(bench: &mut Bench) {
    const LEN: usize = 1 << 20;
    let mut c = bench.connect(QpOptions {
        mtu: Mtu::Mtu256,
        ..QpOptions::default()
    });
    for seed in 1..4 {
        let data = pattern(LEN + 5, seed);
        let own = c.a.create_mr(&data, Rights::ALL);
        let far = c.b.create_mr(&[0; LEN + 5], Rights::ALL);
        let work = match seed {
            1 => Work::write(&[own.all()], &far, 0),
            2 => {
                c.recv(&[far.all()]);
                Work::send(&[own.all()])
            }
            _ => {
                c.b.write(far.addr, &data);
                c.a.write(own.addr, &[0; LEN + 5]);
                Work::read(&[own.all()], &far, 0)
            }
        };
        c.execute(&work);
        check_bytes("at A", &c.a.contents(&own), &data);
        check_bytes("at B", &c.b.contents(&far), &data);
    }
}
