//! RC: receiver not ready.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::{PEER_PSN, Script, syndromes};
use super::{RC, cases, check, check_bytes};

cases! {
    rnr_without_a_wqe, RC, "IB1 9.7.5.2.8", "A SEND that finds no receive WQE draws an RNR NAK of its PSN; nothing is executed, the queue pair goes on.";
    rnr_for_immediate, RC, "IB1 9.7.5.2.8", "A WRITE with immediate that finds no receive WQE draws an RNR NAK; one without does not.";
    rnr_at_the_last_packet, RC, "IB1 9.7.5.2.8", "A long WRITE with immediate needs its WQE at the last packet only: that alone is refused and sent again.";
    rnr_timer_code, RC, "IB1 9.7.5.2.8", "The RNR NAK carries the timer code of the queue pair, each of 32.";
    rnr_silence_after, RC, "IB1 9.7.5.2.8", "What follows a refused packet is dropped without a NAK.";
    rnr_then_executed, RC, "IB1 9.7.5.2.8", "The refused packet is executed when it comes again and a WQE is there.";
    rnr_wait, RC, "IB1 9.7.5.2.8", "A requester waits at least the time of the timer code before it sends again.";
    rnr_no_timeout_while_waiting, RC, "IB1 9.7.5.2.8", "The acknowledgement timer does not run in the wait.";
    rnr_retries_run_out, RC, "IB1 9.7.5.2.8", "After rnr_retry retries the request completes with RNR retry exceeded.";
    rnr_retry_for_ever, RC, "IB1 9.7.5.2.8", "rnr_retry 7 never runs out.";
    rnr_retries_reload, RC, "IB1 9.7.5.2.8", "Progress reloads the RNR retry counter.";
    rnr_not_cut_short, RC, "IB1 9.7.5.2.8", "A NAK PSN sequence error in the wait does not cut it short and costs no retry.";
    rnr_again_in_the_wait, RC, "IB1 9.7.5.2.8", "A second RNR NAK in the wait costs no retry.";
    rnr_acknowledges_before, RC, "IB1 9.7.5.1", "An RNR NAK acknowledges what came before it.";
    rnr_ended_by_an_ack, RC, "IB1 9.7.5.1", "An ACK of the refused packet in the wait ends it: the packet was taken after all.";
}

fn refused(s: &mut Script, opcode: Opcode) -> Vec<Sent> {
    let request = s.request(opcode);
    s.counts("rnr_nak_sent", 1, |s| s.send(&request, &[1; 8]))
}

const NAK: Syndrome = Syndrome::RnrNak { timer: 1 };

fn rnr_without_a_wqe(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let answers = refused(&mut s, Opcode::RcSendOnly);
    check("answer", syndromes(&answers), vec![NAK]);
    let got = (answers[0].psn(), answers[0].aeth().msn);
    check("PSN and MSN", got, (PEER_PSN, 0));
    s.untouched("after the RNR NAK");
}

fn rnr_for_immediate(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let answers = refused(&mut s, Opcode::RcWriteOnlyImm);
    check("answer", syndromes(&answers), vec![NAK]);
    s.untouched("after the RNR NAK");
    let answers = s.send(&s.request(Opcode::RcWriteOnly), &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
}

fn rnr_at_the_last_packet(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        min_rnr_timer: 4,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    let source = c.a.create_mr(&pattern(3000, 1), Rights::NONE);
    let index = c.post(&Work::write(&[source.all()], &target, 5).imm(7));
    c.run(4000);
    let query = c.query(Side::B);
    check(
        "PSN expected and MSN",
        (query.rq_psn, query.msn),
        (0x1002, 0),
    );
    let taken = c.recv(&[]);
    c.succeeds(Side::A, index);
    let cqe = c.succeeds(Side::B, taken);
    check("CQE", (cqe.imm, cqe.byte_len), (7, 3000));
    check_bytes("data", &c.b.read(target.addr + 5, 3000), &pattern(3000, 1));
    let again = c.packets(Side::A)[3..].iter().all(|p| p.psn() == 0x1002);
    check("only the last packet is sent again", again, true);
}

fn rnr_timer_code(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for timer in 0..32 {
        s.reopen(|contexts| contexts.rq.min_rnr_timer = timer);
        let answers = refused(&mut s, Opcode::RcSendOnly);
        check(
            "answer",
            syndromes(&answers),
            vec![Syndrome::RnrNak { timer }],
        );
    }
}

fn rnr_silence_after(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    refused(&mut s, Opcode::RcSendOnly);
    s.recv();
    for ahead in 1..4 {
        let mut request = s.request(Opcode::RcSendOnly);
        request.bth.psn = s.psn.add(ahead);
        check("answers", s.send(&request, &[1; 8]).len(), 0);
    }
    s.untouched("after the RNR NAK");
}

fn rnr_then_executed(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    refused(&mut s, Opcode::RcSendOnly);
    refused(&mut s, Opcode::RcSendOnly);
    s.recv();
    let answers = s.send(&s.request(Opcode::RcSendOnly), &[3; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("completions", s.results(), vec![(0, 0)]);
    check_bytes("data", &s.contents()[..8], &[3; 8]);
}

/// A SEND posted to the card of a script that has answered it with an RNR NAK of this code; its PSN.
fn posted(s: &mut Script, timer: u8) -> u32 {
    let psn = s.post(&Work::send(&[]))[0].psn();
    let nak = s.response(Opcode::RcAck, psn, Syndrome::RnrNak { timer });
    let frame = super::script::build(&nak, &[]);
    s.hand(&frame);
    psn
}

fn rnr_wait(bench: &mut Bench) {
    // Codes and the cycles of 4 ns they stand for.
    for (timer, wait) in [(1, 2_500), (2, 5_000), (4, 10_000)] {
        let mut s = bench.script(QpOptions {
            timeout: 8,
            ..QpOptions::default()
        });
        let psn = posted(&mut s, timer);
        let what = format!("packets sent in the wait of code {timer}");
        check(&what, s.run(wait).len(), 0);
        // The engine rounds up to its ticks; twice the time is more than enough.
        let sent: Vec<_> = s.run(wait).iter().map(Sent::psn).collect();
        check(
            &format!("packets sent after it, code {timer}"),
            sent,
            vec![psn],
        );
    }
}

fn rnr_no_timeout_while_waiting(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 1,
        retry_cnt: 0,
        ..QpOptions::default()
    });
    // 60 us of wait against at most 32 us to the timeout.
    posted(&mut s, 5);
    s.counts("local_ack_timeout_err", 0, |s| s.run(14_000));
    check("completions", s.results(), vec![]);
}

/// A requester that is always refused.
fn always_refused(bench: &mut Bench, rnr_retry: u8, cycles: u64) -> (Vec<(u16, u8)>, u64) {
    let mut c = bench.connect(QpOptions {
        rnr_retry,
        ..QpOptions::default()
    });
    c.post_all(&[Work::send(&[]), Work::send(&[]).unsignaled()]);
    c.run(cycles);
    let cqes = std::iter::from_fn(|| c.a.poll(0));
    let results = cqes.map(|cqe| (cqe.wqe_index, cqe.status)).collect();
    (results, c.a.stat("rnr_nak_received"))
}

fn rnr_retries_run_out(bench: &mut Bench) {
    for rnr_retry in [0, 1, 3] {
        let (results, naks) = always_refused(bench, rnr_retry, 4_000 * u64::from(rnr_retry + 1));
        let expected = vec![(0, status::RNR_RETRY_EXC_ERR), (1, status::WR_FLUSH_ERR)];
        check("completions", results, expected);
        check("RNR NAKs", naks, u64::from(rnr_retry) + 1);
    }
}

fn rnr_retry_for_ever(bench: &mut Bench) {
    let (results, naks) = always_refused(bench, 7, 40_000);
    check("completions", results, vec![]);
    assert!(naks > 8, "expected more than 8 RNR NAKs, got {naks}");
}

fn rnr_retries_reload(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        rnr_retry: 1,
        ..QpOptions::default()
    });
    for i in 0..3 {
        let index = c.post(&Work::send(&[]));
        c.run(1_500);
        c.recv(&[]);
        c.succeeds(Side::A, index);
        check("RNR NAKs", c.a.stat("rnr_nak_received"), i + 1);
    }
}

fn rnr_not_cut_short(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 8,
        retry_cnt: 0,
        ..QpOptions::default()
    });
    let psn = posted(&mut s, 4);
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    check("sent at once", s.send(&nak, &[]).len(), 0);
    check("sent in the wait", s.run(8_000).len(), 0);
    let sent: Vec<_> = s.run(10_000).iter().map(Sent::psn).collect();
    check("sent after it", sent, vec![psn]);
    check("completions", s.results(), vec![]);
}

fn rnr_again_in_the_wait(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 8,
        rnr_retry: 1,
        ..QpOptions::default()
    });
    let psn = posted(&mut s, 4);
    let nak = s.response(Opcode::RcAck, psn, Syndrome::RnrNak { timer: 4 });
    for _ in 0..3 {
        check("sent", s.send(&nak, &[]).len(), 0);
    }
    check("completions", s.results(), vec![]);
    check("sent after the wait", s.run(18_000).len(), 1);
}

fn rnr_acknowledges_before(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 8,
        ..QpOptions::default()
    });
    let mr = s.target;
    let sent = s.post_all(&[
        Work::write(&[mr.sge(0, MTU as u32 + 1)], &mr, 0),
        Work::send(&[]),
    ]);
    let nak = s.response(Opcode::RcAck, sent[2].psn(), Syndrome::RnrNak { timer: 1 });
    s.send(&nak, &[]);
    check("completions", s.results(), vec![(0, 0)]);
    let again: Vec<_> = s.run(6_000).iter().map(Sent::psn).collect();
    check("sent again", again, vec![sent[2].psn()]);
}

fn rnr_ended_by_an_ack(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 8,
        ..QpOptions::default()
    });
    let psn = posted(&mut s, 10);
    let ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0)]);
    check("sends on at once", s.post(&Work::send(&[])).len(), 1);
}
