//! RC: packet sequence numbers as a responder sees them.

use ferroce_proto::wire::{Mtu, NakCode, Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::{Script, build, syndromes};
use super::{ATOMIC, RC, READ, cases, check, check_bytes};

cases! {
    psn_wraps_between_messages, RC, "IB1 9.7.2", "Behind PSN 2^24 - 1 comes 0, on both sides.";
    psn_wraps_in_a_message, RC, "IB1 9.7.2", "The PSN may wrap between packets of one message.";
    psn_wraps_with_loss, RC, "IB1 9.7.2", "Retransmission works across the wrap of the PSN.";
    psn_wraps_in_a_read, READ, "IB1 9.7.2", "The PSN may wrap between responses to one READ.";
    psn_after_most_responses, READ, "IB1 9.7.2", "Behind a READ that takes 2^23 - 1 PSNs comes the PSN that is as many later, over the wrap too; the READ's own are duplicates.";
    duplicate_send, RC, "IB1 9.7.5.1.5", "A repeated SEND is acknowledged again and not executed: no receive WQE, no data, no MSN.";
    duplicate_write, RC, "IB1 9.7.5.1.5", "A repeated WRITE is acknowledged again and not executed.";
    duplicate_of_a_middle, RC, "IB1 9.7.5.1.5", "A repeated packet in the middle of a message does not disturb the message.";
    duplicate_ack_names_the_latest, RC, "IB1 9.7.5.1.5", "The ACK of a duplicate has the PSN of the latest request executed, and its MSN.";
    duplicate_before_a_read, READ, "IB1 9.7.5.1.2", "The ACK of a duplicate SEND or WRITE covers no READ that was executed behind it: that has a response of its own.";
    duplicate_before_an_atomic, ATOMIC, "IB1 9.7.5.1.2", "Nor does it cover an atomic.";
    duplicate_after_a_read, READ, "IB1 9.7.5.1.5", "A READ before the duplicate changes nothing: the ACK has the PSN of the latest request executed.";
    duplicate_oldest, RC, "IB1 9.7", "The 2^23 PSNs before the one expected are duplicates.";
    gap_draws_nak, RC, "IB1 9.7.4.1", "A PSN beyond the expected one draws a NAK PSN sequence error that names the expected one.";
    gap_draws_one_nak, RC, "IB1 9.7.4.1", "Further packets behind the gap draw no further NAK until the expected one arrives.";
    gap_then_duplicate, RC, "IB1 9.7.5.2.2", "A duplicate between packets behind the gap is answered; it draws no further NAK.";
    gap_after_gap, RC, "IB1 9.7.4.1", "When the expected packet has arrived, a new gap draws a new NAK.";
    gap_executes_nothing, RC, "IB1 9.7.4.1", "What stands behind a gap is not executed, whatever it is.";
    gap_farthest, RC, "IB1 9.7", "The 2^23 - 1 PSNs behind the expected one are gaps.";
    gap_of_reads, READ, "IB1 9.7.4.1", "A READ behind a gap is not answered.";
    gap_is_filled, RC, "IB1 9.7.4.1", "The packet expected is executed when it comes, after any number behind it.";
}

fn wrap(bench: &mut Bench, psn: u32, lost: &[usize]) {
    let mut c = bench.connect(QpOptions {
        psn,
        timeout: 2,
        ..QpOptions::default()
    });
    let source = c.a.create_mr(&pattern(3000, 5), Rights::NONE);
    let target = c.b.create_mr(&[0; 3000], Rights::ALL);
    c.lose(Side::A, lost);
    for _ in 0..3 {
        c.b.write(target.addr, &[0; 3000]);
        let taken = c.recv(&[target.all()]);
        c.execute(&Work::send(&[source.all()]));
        c.succeeds(Side::B, taken);
        check_bytes("the message", &c.b.contents(&target), &pattern(3000, 5));
    }
    let end = Psn::new(psn).add(9).value();
    let (a, b) = (c.query(Side::A), c.query(Side::B));
    let got = (a.sq_psn, a.una_psn, b.rq_psn, b.msn);
    check("PSNs and MSN in the end", got, (end, end, end, 3));
    if lost.is_empty() {
        let psns: Vec<_> = c.packets(Side::A).iter().map(Sent::psn).collect();
        let expected: Vec<_> = (0..9).map(|i| Psn::new(psn).add(i).value()).collect();
        check("PSNs sent", psns, expected);
    }
}

fn psn_wraps_between_messages(bench: &mut Bench) {
    wrap(bench, 0xff_fffd, &[]);
}

fn psn_wraps_in_a_message(bench: &mut Bench) {
    wrap(bench, 0xff_ffff, &[]);
    wrap(bench, 0xff_fffb, &[]);
}

fn psn_wraps_with_loss(bench: &mut Bench) {
    wrap(bench, 0xff_fffe, &[0]);
    wrap(bench, 0xff_fffe, &[2]);
}

fn psn_wraps_in_a_read(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        psn: 0xff_fffe,
        ..QpOptions::default()
    });
    let origin = c.b.create_mr(&pattern(4000, 5), Rights::ALL);
    let sink = c.a.create_mr(&[0; 4000], Rights::ALL);
    for _ in 0..2 {
        c.a.write(sink.addr, &[0; 4000]);
        c.execute(&Work::read(&[sink.all()], &origin, 0));
        check_bytes("read", &c.a.contents(&sink), &pattern(4000, 5));
    }
    check("next PSN", c.query(Side::A).sq_psn, 6);
}

fn psn_after_most_responses(bench: &mut Bench) {
    let packets = (1 << 23) - 1;
    for first in [0, 0x80_0003, 0xff_fff0] {
        let mut s = bench.script(QpOptions {
            mtu: Mtu::Mtu256,
            ..QpOptions::default()
        });
        s.peer.psn = first;
        s.reopen(|_| {});
        // far more than is read until the case is over
        let source = s.host.create_mr(&vec![9; 1 << 23], Rights::ALL);
        let all = s.host.register(0x1000, u64::MAX - 0x2000, Rights::ALL);
        let mut read = s.request(Opcode::RcReadRequest);
        if let Some(reth) = &mut read.ext.reth {
            (reth.va, reth.rkey, reth.dma_len) = (source.addr, all.key, packets * 256);
        }
        s.hand(&build(&read, &[]));
        let (_, responses) = s.until_sent(20_000).expect("responses");
        let psns: Vec<_> = responses.iter().map(Sent::psn).collect();
        let expected: Vec<_> = (0..psns.len() as u32)
            .map(|i| s.psn.add(i).value())
            .collect();
        check("PSNs of the responses", psns, expected);
        let after = s.psn.add(packets);
        check("expected", s.host.query(s.qpn).rq_psn, after.value());
        for (psn, counter) in [
            (s.psn, "duplicate_request"),
            (after.prev(), "duplicate_request"),
            (after.next(), "out_of_sequence"),
            (after, "rx_write_requests"),
        ] {
            let mut write = s.request(Opcode::RcWriteOnly);
            write.bth.psn = psn;
            s.counts(counter, 1, |s| {
                s.hand(&build(&write, &[1; 8]));
                s.run(500);
            });
        }
        check_bytes("the target", &s.contents()[..8], &[1; 8]);
    }
}

/// The script's SEND or WRITE of 8 bytes with this PSN; the answers.
fn give(s: &mut Script, opcode: Opcode, psn: Psn, byte: u8) -> Vec<Sent> {
    let mut request = s.request(opcode);
    request.bth.psn = psn;
    s.send(&request, &[byte; 8])
}

const NAK: Syndrome = Syndrome::Nak(NakCode::PsnSequence);

fn duplicate_send(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    s.recv();
    s.recv();
    give(&mut s, Opcode::RcSendOnly, psn, 1);
    let again = s.counts("duplicate_request", 1, |s| {
        give(s, Opcode::RcSendOnly, psn, 2)
    });
    check("answer", syndromes(&again), vec![Syndrome::ACK]);
    check_bytes("data", &s.contents()[..8], &[1; 8]);
    check("completions", s.results(), vec![(0, 0)]);
    let query = s.host.query(s.qpn);
    check("MSN, WQEs taken", (query.msn, query.rq_index), (1, 1));
}

fn duplicate_write(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    give(&mut s, Opcode::RcWriteOnly, psn, 1);
    let again = give(&mut s, Opcode::RcWriteOnly, psn, 2);
    check("answer", syndromes(&again), vec![Syndrome::ACK]);
    check_bytes("data", &s.contents()[..8], &[1; 8]);
    check("MSN", s.host.query(s.qpn).msn, 1);
}

fn duplicate_of_a_middle(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    let data = pattern(3 * MTU, 3);
    let mut packets = Vec::new();
    for opcode in [
        Opcode::RcSendFirst,
        Opcode::RcSendMiddle,
        Opcode::RcSendLast,
    ] {
        packets.push(s.request(opcode));
        s.psn = s.psn.next();
    }
    for i in [0, 1, 0, 1, 1, 2] {
        s.send(&packets[i], &data[i * MTU..][..MTU]);
    }
    check("completions", s.results(), vec![(0, 0)]);
    check_bytes("data", &s.contents()[..3 * MTU], &data);
}

fn duplicate_ack_names_the_latest(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for i in 0..3 {
        give(&mut s, Opcode::RcWriteOnly, psn.add(i), 1);
    }
    let again = give(&mut s, Opcode::RcWriteOnly, psn, 2);
    let last = again.last().expect("a duplicate is answered");
    check(
        "PSN and MSN",
        (last.psn(), last.aeth().msn),
        (psn.value() + 2, 3),
    );
}

/// Executes requests of these kinds, each of one PSN, and repeats one of them; PSN of the ACK from the first request on.
fn repeated(bench: &mut Bench, requests: &[Opcode], again: u32) -> i32 {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for (i, &opcode) in (0..).zip(requests) {
        if opcode == Opcode::RcSendOnly {
            s.recv();
        }
        let mut request = s.request(opcode);
        request.bth.psn = psn.add(i);
        let carries = !opcode.has_atomic_eth() && opcode != Opcode::RcReadRequest;
        s.send(&request, if carries { &[1; 8] } else { &[] });
    }
    let answers = give(&mut s, requests[again as usize], psn.add(again), 2);
    check("answers", syndromes(&answers), vec![Syndrome::ACK]);
    check("MSN", answers[0].aeth().msn, requests.len() as u32);
    answers[0].headers.bth.psn.since(psn)
}

/// The ACK of a repeated SEND or WRITE before a request of this kind names itself, or what is before that request.
fn not_covered(bench: &mut Bench, asks: Opcode) {
    const WRITE: Opcode = Opcode::RcWriteOnly;
    const SEND: Opcode = Opcode::RcSendOnly;
    for first in [WRITE, SEND] {
        check("the PSN before it", repeated(bench, &[first, asks], 0), 0);
        let between = [first, asks, WRITE];
        check("between two", repeated(bench, &between, 0), 0);
        let after = repeated(bench, &[first, SEND, asks, WRITE, asks], 0);
        assert!((0..2).contains(&after), "expected PSN 0 or 1, got {after}");
    }
}

fn duplicate_before_a_read(bench: &mut Bench) {
    not_covered(bench, Opcode::RcReadRequest);
}

fn duplicate_before_an_atomic(bench: &mut Bench) {
    not_covered(bench, Opcode::RcFetchAdd);
    not_covered(bench, Opcode::RcCmpSwap);
}

fn duplicate_after_a_read(bench: &mut Bench) {
    const WRITE: Opcode = Opcode::RcWriteOnly;
    let requests = [Opcode::RcReadRequest, WRITE, WRITE, WRITE];
    check("the latest", repeated(bench, &requests, 1), 3);
}

fn duplicate_oldest(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    give(&mut s, Opcode::RcWriteOnly, psn, 1);
    s.psn = psn.next();
    for back in [1, 2, 1 << 22, (1 << 23) - 1, 1 << 23] {
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.next().sub(back), 2);
        let what = format!("{back} before the expected");
        check(&what, syndromes(&answers), vec![Syndrome::ACK]);
        check(&what, answers[0].psn(), psn.value());
    }
    check_bytes("data", &s.contents()[..8], &[1; 8]);
}

fn gap_draws_nak(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    let answers = s.counts("out_of_sequence", 1, |s| {
        give(s, Opcode::RcWriteOnly, psn.next(), 1)
    });
    check("answer", syndromes(&answers), vec![NAK]);
    let got = (answers[0].psn(), answers[0].aeth().msn);
    check("PSN and MSN", got, (psn.value(), 0));
    s.untouched("after the gap");
}

fn gap_draws_one_nak(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    let answers = give(&mut s, Opcode::RcWriteOnly, psn.next(), 1);
    check("answer", syndromes(&answers), vec![NAK]);
    for i in [2, 3, 1, 100] {
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(i), 1);
        check("answers", answers.len(), 0);
    }
    s.untouched("after the gap");
}

fn gap_then_duplicate(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    give(&mut s, Opcode::RcWriteOnly, psn, 1);
    let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(2), 2);
    check("answer to the gap", syndromes(&answers), vec![NAK]);
    for _ in 0..3 {
        let answers = give(&mut s, Opcode::RcWriteOnly, psn, 1);
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(2), 2);
        check("answers to the gap", answers.len(), 0);
    }
    let answers = give(&mut s, Opcode::RcWriteOnly, psn.next(), 1);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    // nor does it while the requester waits for a receive WQE
    let answers = give(&mut s, Opcode::RcSendOnly, psn.add(2), 1);
    let not_ready = Syndrome::RnrNak { timer: 1 };
    check("answer", syndromes(&answers), vec![not_ready]);
    give(&mut s, Opcode::RcWriteOnly, psn, 1);
    let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(3), 1);
    check("answers in the wait", answers.len(), 0);
}

fn gap_after_gap(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for i in [0, 1, 2] {
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(i + 1), 1);
        check("answer", syndromes(&answers), vec![NAK]);
        check("PSN", answers[0].psn(), psn.value() + i);
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(i), 1);
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    }
}

fn gap_executes_nothing(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    let ahead = s.psn.add(3);
    for opcode in [
        Opcode::RcSendOnly,
        Opcode::RcSendFirst,
        Opcode::RcSendMiddle,
        Opcode::RcSendLastImm,
        Opcode::RcWriteOnlyImm,
        Opcode::RcWriteMiddle,
        Opcode::RcWriteFirst,
    ] {
        let mut request = s.write(opcode, 2048);
        request.bth.psn = ahead;
        let len = if opcode.is_end() { 8 } else { MTU };
        s.send(&request, &vec![1; len]);
    }
    s.untouched("after the gap");
    check("receive WQEs taken", s.host.query(s.qpn).rq_index, 0);
}

fn gap_farthest(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for ahead in [1, 1 << 22, (1 << 23) - 1] {
        s.reopen(|_| {});
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(ahead), 1);
        let what = format!("{ahead} behind the expected");
        check(&what, syndromes(&answers), vec![NAK]);
        check(&what, answers[0].psn(), psn.value());
        s.untouched(&what);
    }
}

fn gap_of_reads(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut request = s.request(Opcode::RcReadRequest);
    request.bth.psn = s.psn.next();
    let answers = s.send(&request, &[]);
    check("answer", syndromes(&answers), vec![NAK]);
    check("opcode", answers[0].opcode(), Opcode::RcAck);
    s.untouched("after the gap");
}

fn gap_is_filled(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for i in 1..6 {
        give(&mut s, Opcode::RcWriteOnly, psn.add(i), 9);
    }
    for i in 0..6 {
        let answers = give(&mut s, Opcode::RcWriteOnly, psn.add(i), i as u8);
        let got: Vec<_> = answers.iter().map(|p| (p.psn(), p.aeth().msn)).collect();
        check("PSN and MSN", got, vec![(psn.value() + i, i + 1)]);
        check_bytes("data", &s.contents()[..8], &[i as u8; 8]);
    }
}
