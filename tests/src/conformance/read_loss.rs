//! READ responses that are lost or late, and bad ones.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, MTU, Sent};
use super::script::Script;
use super::{READ, cases, check, check_bytes};

cases! {
    read_request_lost, READ, "IB1 9.7.6.1.3", "A READ request that is lost is sent again after the timeout.";
    read_any_response_lost, READ, "IB1 9.7.6.1.3", "Whichever response is lost, the READ completes with all of its data.";
    read_lost_in_its_turn, READ, "IB1 9.7.5.1.4", "A response that is lost while later ones leave is asked for at once and comes, without a timer; those of READs behind it too.";
    read_lost_in_its_repeat, READ, "IB1 9.7.5.1.4", "A response of the repeat that is lost, too, is asked for at once and comes, without a timer.";
    read_lost_early, READ, "qib_rc.c", "A responder that is asked for READs again ends its first answers, and sends what is left once.";
    read_resumed_from_first_missing, READ, "IB1 9.7.5.1.4", "A READ goes on from the first response missing: PSN, address and length move on by what has arrived.";
    read_middle_after_resume, READ, "IB1 9.7.5.1", "Responses to a resumed READ may be First or Middle: only their PSN, length and end count.";
    implied_nak, READ, "IB1 9.7.5.1.4", "A response to a later request shows that a READ response was lost: the READ is sent again at once.";
    implied_nak_counts_once, READ, "IB1 9.7.5.1.4", "Further responses of the same flight are no further implied NAK.";
    implied_nak_before_a_timeout, READ, "qib_rc.c", "After an implied NAK and a timeout, late responses of the old flight are no second one.";
    ack_for_a_read_is_implied_nak, READ, "IB1 9.7.5.1.4", "An ACK alone does not complete a READ: its data is missing.";
    read_response_of_wrong_length, READ, "IB1 9.9.2", "A READ response that is shorter or longer than asked for is a local length error.";
    read_response_ends_too_early, READ, "IB1 9.9.2", "Last or Only before the end of the READ is a local length error, so is First or Middle at its end.";
    read_response_duplicate, READ, "IB1 9.7.5.1", "A READ response before the one expected is a ghost: it changes nothing.";
    read_response_unasked, READ, "IB1 9.7.6", "A READ response to a SEND is a bad response.";
    read_answered_by_an_atomic, READ, "IB1 9.7.6", "An ATOMIC Acknowledge to a READ is a bad response.";
}

fn quick() -> QpOptions {
    QpOptions {
        timeout: 2,
        ..QpOptions::default()
    }
}

/// With room for four READs.
fn without_timer() -> QpOptions {
    QpOptions {
        timeout: 0,
        max_rd_atomic: 4,
        ..QpOptions::default()
    }
}

/// Reads 3500 bytes and checks them.
fn read(c: &mut Conn, what: &str) {
    reads(c, 1, 3500, what);
}

/// Reads so many bytes so many times, behind one doorbell, and checks them.
fn reads(c: &mut Conn, count: usize, len: usize, what: &str) {
    let origin = c.b.create_mr(&pattern(len, 3), Rights::ALL);
    let sink = c.a.create_mr(&vec![0; len], Rights::ALL);
    c.post_all(&vec![Work::read(&[sink.all()], &origin, 0); count]);
    for _ in 0..count {
        check("status", c.wait(Side::A).status, status::SUCCESS);
    }
    check_bytes(what, &c.a.contents(&sink), &pattern(len, 3));
}

fn read_request_lost(bench: &mut Bench) {
    let mut c = bench.connect(quick());
    c.lose(Side::A, &[0]);
    read(&mut c, "after the request was lost");
    check("timeouts", c.a.stat("local_ack_timeout_err"), 1);
    let psns: Vec<_> = c.packets(Side::A).iter().map(Sent::psn).collect();
    check("PSNs of the requests", psns, vec![0x1000, 0x1000]);
}

fn read_any_response_lost(bench: &mut Bench) {
    let mut c = bench.connect(quick());
    for lost in 0..4 {
        c.lose(Side::B, &[lost]);
        read(&mut c, &format!("response {lost} lost"));
    }
}

fn read_lost_in_its_turn(bench: &mut Bench) {
    lost_in_turns(bench, 1);
}

fn read_lost_in_its_repeat(bench: &mut Bench) {
    lost_in_turns(bench, 2);
}

fn read_lost_early(bench: &mut Bench) {
    const READS: usize = 4;
    let mut c = bench.connect(without_timer());
    c.lose(Side::B, &[5]);
    reads(&mut c, READS, 2 * TURN * MTU, "data");
    // some leave until they are asked for again; all would be twice as many as are needed
    let sent = c.packets(Side::B).len();
    assert!(sent <= READS * 3 * TURN, "{sent} responses");
}

/// Packets of a READ that is answered in one turn.
const TURN: usize = 64;

/// Three READs of a turn each. Of the first an early response is lost, and with `times` 2 a later one of its repeat.
fn lost_in_turns(bench: &mut Bench, times: usize) {
    let mut c = bench.connect(without_timer());
    for lost in [1, 5, 20] {
        let (mut first, mut sent) = (None, [0; 3 * TURN]);
        c.pair.wire = Box::new(move |from, frame| {
            let mut is_lost = false;
            if from == Side::B {
                let psn = Sent::parse(frame).psn();
                let number = (psn - *first.get_or_insert(psn)) as usize;
                sent[number] += 1;
                is_lost = (1..=times).any(|nth| number == nth * lost && sent[number] == nth);
            }
            match is_lost {
                true => vec![],
                false => vec![frame.to_vec()],
            }
        });
        reads(
            &mut c,
            3,
            TURN * MTU,
            &format!("data, response {lost} lost"),
        );
    }
}

fn read_resumed_from_first_missing(bench: &mut Bench) {
    let mut s = bench.script(quick());
    let remote = 0x1_0000_0000;
    let sent = s.post(&read_work(&s, remote));
    check("requests", sent.len(), 1);
    let psn = sent[0].psn();
    for i in 0..2 {
        let opcode = [Opcode::RcReadResponseFirst, Opcode::RcReadResponseMiddle][i];
        let answer = s.response(opcode, psn + i as u32, Syndrome::ACK);
        s.send(&answer, &pattern(4096, 3)[i * MTU..][..MTU]);
    }
    let again = resumed(&mut s);
    let reth = again.headers.ext.reth.expect("a READ has a RETH");
    check(
        "opcode, PSN, address and length",
        (again.opcode(), again.psn(), reth.va, reth.dma_len),
        (Opcode::RcReadRequest, psn + 2, remote + 2048, 3500 - 2048),
    );
    for (i, opcode) in [Opcode::RcReadResponseFirst, Opcode::RcReadResponseLast]
        .into_iter()
        .enumerate()
    {
        let at = (i + 2) * MTU;
        let answer = s.response(opcode, psn + 2 + i as u32, Syndrome::ACK);
        s.send(&answer, &pattern(4096, 3)[at..3500.min(at + MTU)]);
    }
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
    check_bytes("data", &s.contents()[..3500], &pattern(4096, 3)[..3500]);
}

/// A READ of 3500 bytes to the target of a script.
fn read_work(s: &Script, remote: u64) -> Work {
    let mut work = Work::read(&[s.target.sge(0, 3500)], &s.target, 0);
    work.head.remote_addr = remote;
    work
}

/// The request that the card sends after the timeout.
fn resumed(s: &mut Script) -> Sent {
    let sent = s.until_sent(5 * 4096).map(|(_, sent)| sent);
    sent.expect("the READ goes on after the timeout").remove(0)
}

fn read_middle_after_resume(bench: &mut Bench) {
    let mut s = bench.script(quick());
    let psn = s.post(&read_work(&s, 0x1_0000))[0].psn();
    let first = s.response(Opcode::RcReadResponseFirst, psn, Syndrome::ACK);
    s.send(&first, &pattern(4096, 3)[..MTU]);
    check("resumed", resumed(&mut s).psn(), psn + 1);
    for (i, opcode) in [
        (1, Opcode::RcReadResponseMiddle),
        (2, Opcode::RcReadResponseFirst),
        (3, Opcode::RcReadResponseLast),
    ] {
        let answer = s.response(opcode, psn + i as u32, Syndrome::ACK);
        s.send(&answer, &pattern(4096, 3)[i * MTU..3500.min((i + 1) * MTU)]);
    }
    check("completions", s.results(), vec![(0, status::SUCCESS)]);
    check_bytes("data", &s.contents()[..3500], &pattern(4096, 3)[..3500]);
}

/// A READ of 8 bytes at PSN p and two SENDs behind it; PSN p.
fn read_and_two_sends(s: &mut Script) -> u32 {
    let read = Work::read(&[s.target.sge(0, 8)], &s.target, 0);
    let sent = s.post_all(&[read, Work::send(&[]), Work::send(&[])]);
    check("packets", sent.len(), 3);
    sent[0].psn()
}

fn untimed() -> QpOptions {
    QpOptions {
        timeout: 0,
        ..QpOptions::default()
    }
}

fn implied_nak(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let psn = read_and_two_sends(&mut s);
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    let sent = s.counts("implied_nak_seq_err", 1, |s| s.send(&ack, &[]));
    let psns: Vec<_> = sent.iter().map(Sent::psn).collect();
    check("sent again", psns, vec![psn, psn + 1, psn + 2]);
    check("completions", s.results(), vec![]);
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.counts("rx_acks", 0, |s| s.send(&data, &[5; 8]));
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    s.counts("rx_acks", 1, |s| s.send(&ack, &[]));
    check("completions", s.results(), vec![(0, 0), (1, 0), (2, 0)]);
    check_bytes("data", &s.contents()[..8], &[5; 8]);
}

fn implied_nak_counts_once(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 1,
        ..untimed()
    });
    let psn = read_and_two_sends(&mut s);
    s.counts("implied_nak_seq_err", 1, |s| {
        for later in [1, 2, 1, 2] {
            let ack = s.response(Opcode::RcAck, psn + later, Syndrome::ACK);
            s.send(&ack, &[]);
        }
    });
    check("completions", s.results(), vec![]);
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&data, &[5; 8]);
    check("completions", s.results(), vec![(0, 0)]);
}

fn implied_nak_before_a_timeout(bench: &mut Bench) {
    let mut s = bench.script(quick());
    let psn = read_and_two_sends(&mut s);
    let later = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.counts("implied_nak_seq_err", 1, |s| {
        s.send(&later, &[]);
        check("sent again after the timeout", resumed(s).psn(), psn);
        s.send(&later, &[]);
    });
}

fn ack_for_a_read_is_implied_nak(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let read = Work::read(&[s.target.sge(0, 8)], &s.target, 0);
    let psn = s.post(&read)[0].psn();
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    let sent = s.send(&ack, &[]);
    check(
        "sent again",
        sent.iter().map(Sent::psn).collect(),
        vec![psn],
    );
    check("completions", s.results(), vec![]);
}

/// The CQE of a READ of 3500 bytes that is answered by these packets: opcode, bytes.
fn answered(bench: &mut Bench, answers: &[(Opcode, usize)]) -> Vec<(u16, u8)> {
    let mut s = bench.script(untimed());
    let psn = s.post(&read_work(&s, 0x1_0000))[0].psn();
    for (i, (opcode, len)) in answers.iter().enumerate() {
        let answer = s.response(*opcode, psn + i as u32, Syndrome::ACK);
        s.send(&answer, &pattern(*len, 1));
    }
    s.results()
}

fn read_response_of_wrong_length(bench: &mut Bench) {
    let (first, last) = (Opcode::RcReadResponseFirst, Opcode::RcReadResponseLast);
    let middle = Opcode::RcReadResponseMiddle;
    let bad = vec![(0, status::LOC_LEN_ERR)];
    check(
        "First too short",
        answered(bench, &[(first, 1020)]),
        bad.clone(),
    );
    check(
        "First too long",
        answered(bench, &[(first, 1028)]),
        bad.clone(),
    );
    for len in [427, 429, 1024] {
        let answers = [(first, MTU), (middle, MTU), (middle, MTU), (last, len)];
        check(
            &format!("Last of {len} bytes"),
            answered(bench, &answers),
            bad.clone(),
        );
    }
}

fn read_response_ends_too_early(bench: &mut Bench) {
    let (first, last) = (Opcode::RcReadResponseFirst, Opcode::RcReadResponseLast);
    let (middle, only) = (Opcode::RcReadResponseMiddle, Opcode::RcReadResponseOnly);
    let bad = vec![(0, status::LOC_LEN_ERR)];
    check(
        "Only at the start",
        answered(bench, &[(only, MTU)]),
        bad.clone(),
    );
    check(
        "Last in the middle",
        answered(bench, &[(first, MTU), (last, MTU)]),
        bad.clone(),
    );
    let answers = [(first, MTU), (middle, MTU), (middle, MTU), (middle, 428)];
    check("Middle at the end", answered(bench, &answers), bad);
}

fn read_response_duplicate(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let psn = s.post(&read_work(&s, 0x1_0000))[0].psn();
    let data = pattern(4096, 3);
    let first = s.response(Opcode::RcReadResponseFirst, psn, Syndrome::ACK);
    s.send(&first, &data[..MTU]);
    s.counts("rx_ghost_acks", 2, |s| {
        s.send(&first, &[0xff; MTU]);
        s.send(&first, &[0xff; MTU]);
    });
    for (i, opcode) in [
        (1, Opcode::RcReadResponseMiddle),
        (2, Opcode::RcReadResponseMiddle),
        (3, Opcode::RcReadResponseLast),
    ] {
        let answer = s.response(opcode, psn + i as u32, Syndrome::ACK);
        s.send(&answer, &data[i * MTU..3500.min((i + 1) * MTU)]);
    }
    check("completions", s.results(), vec![(0, 0)]);
    check_bytes("data", &s.contents()[..3500], &data[..3500]);
}

fn read_response_unasked(bench: &mut Bench) {
    for opcode in [
        Opcode::RcReadResponseOnly,
        Opcode::RcReadResponseMiddle,
        Opcode::RcAtomicAck,
    ] {
        let mut s = bench.script(untimed());
        let psn = s.post(&Work::send(&[]))[0].psn();
        let answer = s.response(opcode, psn, Syndrome::ACK);
        s.send(&answer, &[]);
        check(
            &format!("{opcode:?}"),
            s.results(),
            vec![(0, status::BAD_RESP_ERR)],
        );
    }
}

fn read_answered_by_an_atomic(bench: &mut Bench) {
    let bad = vec![(0, status::BAD_RESP_ERR)];
    check(
        "completions",
        answered(bench, &[(Opcode::RcAtomicAck, 0)]),
        bad,
    );
}
