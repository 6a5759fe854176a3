//! RC: timeouts, retries, loss of single packets.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{Mtu, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn};
use super::script::build;
use super::{RC, cases, check, check_bytes};

cases! {
    local_ack_timeout, RC, "IB1 9.7.6.1.3", "Without an answer the requester sends again after 1 to 4 times 4.096 us * 2^n.";
    local_ack_timeout_zero, RC, "IB1 9.7.6.1.3", "Timeout code 0 waits for ever.";
    local_ack_timeout_retry_exceeded, RC, "IB1 9.7.6", "When retry_cnt retries are used up the request completes with transport retries exceeded; the rest is flushed.";
    nak_retry_exceeded, RC, "IB1 9.7.6", "NAK PSN sequence errors use up the same retries.";
    retry_count_zero, RC, "IB1 9.7.6", "retry_cnt 0 gives up at the first timeout and at the first NAK PSN sequence error.";
    progress_reloads_retries, RC, "IB1 9.7.6", "Progress reloads the retry counter.";
    progress_restarts_the_timer, RC, "IB1 9.7.6.1.3", "Each acknowledgement of something new starts the timer again.";
    timer_of_a_long_message, RC, "IB1 9.7.6.1.3", "A message that takes longer to send than the timeout, each acknowledgement of which is answered, is sent once.";
    timer_stops_when_all_is_acknowledged, RC, "IB1 9.7.6.1.3", "With nothing to be acknowledged no timer runs.";
    any_request_lost, RC, "IB1 9.7.5", "Whichever packet of a train of messages is lost, all arrive once and in order.";
    any_ack_lost, RC, "IB1 9.7.5.1", "Whichever acknowledgement is lost, all messages arrive once.";
    lost_ack_executes_once, RC, "IB1 9.7.5.1.5", "A request whose acknowledgement was lost is not executed again.";
    everything_twice, RC, "IB1 9.7.5.1.5", "On a wire that delivers each packet twice all messages arrive once.";
    neighbours_swapped, RC, "IB1 9.7.4.1", "On a wire that swaps packets all messages arrive once and in order.";
    resent_packets_are_the_same, RC, "IB1 9.7.5", "A packet sent again is the same but for AckReq.";
    several_lost_at_once, RC, "IB1 9.7.5", "Several losses in one train are made good.";
}

/// Timeout code of these cases: 16.384 us, 4096 cycles.
const CODE: u8 = 2;
const PERIOD: u64 = 1024 << CODE;

fn options() -> QpOptions {
    QpOptions {
        timeout: CODE,
        ..QpOptions::default()
    }
}

fn local_ack_timeout(bench: &mut Bench) {
    for code in [1, 2, 3] {
        let mut s = bench.script(QpOptions {
            timeout: code,
            retry_cnt: 7,
            ..QpOptions::default()
        });
        s.host.post_send(s.qpn, &Work::send(&[]));
        let (_, first) = s.until_sent(2000).expect("the SEND leaves");
        let period = 1024 << code;
        for _ in 0..2 {
            let (waited, sent) = s.until_sent(5 * period).expect("it is sent again");
            assert!(
                (period - 100..=4 * period + 100).contains(&waited),
                "expected {period} to {} cycles to the timeout of code {code}, got {waited}",
                4 * period
            );
            check("PSN", sent[0].psn(), first[0].psn());
        }
    }
}

fn local_ack_timeout_zero(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 0,
        ..QpOptions::default()
    });
    check("packets", s.post(&Work::send(&[])).len(), 1);
    check("packets in 200 us", s.run(50_000).len(), 0);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 0);
}

fn local_ack_timeout_retry_exceeded(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 2,
        timeout: 1,
        ..QpOptions::default()
    });
    s.host
        .write_slots(s.qpn, &Work::send(&[]).unsignaled().slots());
    let mut sent = s.post(&Work::send(&[]).unsignaled());
    sent.extend(s.run(3 * 4 * 2048));
    check("packets: both, three times", sent.len(), 6);
    let expected = vec![(0, status::RETRY_EXC_ERR), (1, status::WR_FLUSH_ERR)];
    check("completions", s.results(), expected);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 3);
    check("retries exceeded", s.host.stat("retry_exceeded_err"), 1);
    s.in_error("after the last retry");
}

fn nak_retry_exceeded(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 3,
        timeout: 0,
        ..QpOptions::default()
    });
    let psn = s.post(&Work::send(&[]))[0].psn();
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    for _ in 0..3 {
        check("sent again", s.send(&nak, &[]).len(), 1);
    }
    check("completions", s.results(), vec![]);
    check("sent again", s.send(&nak, &[]).len(), 0);
    check("completions", s.results(), vec![(0, status::RETRY_EXC_ERR)]);
}

fn retry_count_zero(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 0,
        timeout: 1,
        ..QpOptions::default()
    });
    s.post(&Work::send(&[]));
    check("sent again", s.run(4 * 2048).len(), 0);
    check("completions", s.results(), vec![(0, status::RETRY_EXC_ERR)]);
    s.reopen(|contexts| contexts.sq.timeout = 0);
    let psn = s.post(&Work::send(&[]))[0].psn();
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    check("sent again", s.send(&nak, &[]).len(), 0);
    check("completions", s.results(), vec![(0, status::RETRY_EXC_ERR)]);
}

fn progress_reloads_retries(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 1,
        timeout: 0,
        ..QpOptions::default()
    });
    let sent = s.post_all(&[0; 4].map(|_| Work::send(&[])));
    for i in 0..4 {
        let psn = sent[0].psn() + i;
        let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
        check("sent again", s.send(&nak, &[]).len(), 4 - i as usize);
    }
    check("completions", s.results(), vec![(0, 0), (1, 0), (2, 0)]);
}

fn progress_restarts_the_timer(bench: &mut Bench) {
    let mut s = bench.script(options());
    let sent = s.post_all(&[0; 4].map(|_| Work::send(&[])));
    for packet in &sent {
        // Less than a period from one to the next, more than four in all.
        check("sent again", s.run(PERIOD * 3 / 4 - 1000).len(), 0);
        let ack = s.response(Opcode::RcAck, packet.psn(), Syndrome::ACK);
        check("sent again", s.send(&ack, &[]).len(), 0);
    }
    check("timeouts", s.host.stat("local_ack_timeout_err"), 0);
}

/// qib starts the timer with a packet that asks for an acknowledgement, and only with one.
fn timer_of_a_long_message(bench: &mut Bench) {
    // 8 us, 33 us at most; 32 packets alone take 16,700 cycles, 67 us, on a data path of 64 bits
    const PACKETS: usize = 96;
    let mut s = bench.script(QpOptions {
        timeout: 1,
        retry_cnt: 0,
        mtu: Mtu::Mtu4096,
        ..QpOptions::default()
    });
    let source = s.host.create_mr(&pattern(PACKETS * 4096, 1), Rights::NONE);
    s.host.post_send(s.qpn, &Work::send(&[source.all()]));
    let mut sent = 0;
    while sent < PACKETS {
        let (_, packets) = s.until_sent(50_000).expect("the next packet");
        for packet in packets {
            check("PSN", packet.psn(), QpOptions::default().psn + sent as u32);
            sent += 1;
            if packet.headers.bth.ack_req {
                let ack = s.response(Opcode::RcAck, packet.psn(), Syndrome::ACK);
                s.hand(&build(&ack, &[]));
            }
        }
    }
    check("sent again", s.quiet().len(), 0);
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 0);
}

fn timer_stops_when_all_is_acknowledged(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = s.post(&Work::send(&[]))[0].psn();
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    check("sent", s.run(5 * PERIOD).len(), 0);
    check("timeouts", s.host.stat("local_ack_timeout_err"), 0);
    // nor goes the time of one message on into the next
    let mut s = bench.script(QpOptions {
        timeout: CODE + 2,
        ..QpOptions::default()
    });
    let psn = s.post(&Work::send(&[]))[0].psn();
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    s.run(2 * PERIOD);
    s.host.post_send(s.qpn, &Work::send(&[]));
    s.until_sent(2000).expect("the SEND leaves");
    check("sent again", s.run(4 * PERIOD - 200).len(), 0);
}

/// Two SENDs and two WRITEs of two or three packets each, which must arrive once.
fn train(c: &mut Conn, what: &str) {
    let data = pattern(8 * 1024, 3);
    let source = c.a.create_mr(&data, Rights::NONE);
    let target = c.b.create_mr(&vec![0; data.len()], Rights::ALL);
    let received: Vec<_> = (0..2)
        .map(|i| c.recv(&[target.sge(4096 * i, 2100)]))
        .collect();
    let first = c
        .pair
        .a
        .write_slots(c.qa, &Work::send(&[source.sge(0, 2100)]).slots());
    for work in [
        Work::write(&[source.sge(2100, 1990)], &target, 2100),
        Work::send(&[source.sge(4096, 2100)]),
    ] {
        c.pair.a.write_slots(c.qa, &work.slots());
    }
    c.post(&Work::write(&[source.sge(6196, 1990)], &target, 6196));
    for i in 0..4 {
        c.succeeds(Side::A, first + i);
    }
    for index in received {
        c.succeeds(Side::B, index);
    }
    c.nothing_completes();
    for half in [0, 4096] {
        let data = &data[half..half + 4090];
        let got = c.b.read(target.addr + half as u64, 4090);
        check_bytes(what, &got, data);
    }
    let (msn, index) = (c.query(Side::B).msn, first + 4);
    check(&format!("{what}: MSN"), msn, index.into());
}

fn any_lost(bench: &mut Bench, side: Side, packets: usize) {
    let mut c = bench.connect(options());
    for lost in 0..packets {
        c.lose(side, &[lost]);
        train(&mut c, &format!("packet {lost} of {side:?} lost"));
    }
}

fn any_request_lost(bench: &mut Bench) {
    any_lost(bench, Side::A, 10);
}

fn any_ack_lost(bench: &mut Bench) {
    any_lost(bench, Side::B, 4);
}

fn lost_ack_executes_once(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    c.lose(Side::B, &[0]);
    c.recv(&[target.all()]);
    c.recv(&[target.all()]);
    let index = c.post(&Work::send(&[]).inline(&[1; 8]));
    c.succeeds(Side::B, 0);
    c.b.write(target.addr, &[0; 8]);
    c.succeeds(Side::A, index);
    check_bytes("the buffer", &c.b.contents(&target), &[0; 8]);
    c.nothing_completes();
    check("MSN", c.query(Side::B).msn, 1);
}

fn everything_twice(bench: &mut Bench) {
    let mut c = bench.connect(options());
    c.wire = Box::new(|_, frame| vec![frame.to_vec(); 2]);
    train(&mut c, "everything twice");
    assert!(
        c.b.stat("duplicate_request") >= 10,
        "expected 10 duplicates or more, got {}",
        c.b.stat("duplicate_request")
    );
}

fn neighbours_swapped(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let mut held: Option<Vec<u8>> = None;
    let mut n = 0;
    c.wire = Box::new(move |from, frame| {
        if from == Side::B {
            return vec![frame.to_vec()];
        }
        n += 1;
        // Every fourth packet is overtaken by the next.
        if n % 4 == 0 && held.is_none() {
            held = Some(frame.to_vec());
            return vec![];
        }
        std::iter::once(frame.to_vec()).chain(held.take()).collect()
    });
    train(&mut c, "neighbours swapped");
}

fn resent_packets_are_the_same(bench: &mut Bench) {
    let mut c = bench.connect(options());
    c.lose(Side::A, &[1, 4]);
    train(&mut c, "two lost");
    let mut seen = std::collections::BTreeMap::new();
    let mut again = 0;
    for mut packet in c.packets(Side::A) {
        packet.headers.bth.ack_req = false;
        let psn = packet.psn();
        if let Some(first) = seen.insert(psn, packet.clone()) {
            again += 1;
            assert!(
                packet == first,
                "expected the same packet at PSN {psn:#x}, got {:?} and {:?}",
                first.headers,
                packet.headers
            );
        }
    }
    assert!(again > 0, "expected packets sent again, got none");
}

fn several_lost_at_once(bench: &mut Bench) {
    for lost in [&[0, 1][..], &[2, 5, 9], &[0, 3, 6, 8], &[8, 9, 10, 11]] {
        let mut c = bench.connect(options());
        c.lose(Side::A, lost);
        train(&mut c, &format!("packets {lost:?} lost"));
    }
}
