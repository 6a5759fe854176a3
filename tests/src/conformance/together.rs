//! RC: where two rules meet.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Work, pattern};

use super::bench::{Bench, MTU, Sent};
use super::malformed::seal;
use super::script::{Script, build, syndromes};
use super::{ATOMIC, RC, READ, cases, check, check_bytes};

cases! {
    nak_after_an_unanswered_read, READ, "IB1 9.7.5.1.4", "A NAK for a request behind a READ without its response is an implied NAK: the READ goes first, the NAK counts when it comes again.";
    rnr_for_a_read, READ, "IB1 9.7.5.2.8", "A READ or an atomic that draws an RNR NAK is sent again after the wait, and completes.";
    rnr_within_a_message, RC, "IB1 9.7.5.2.8", "An RNR NAK for a packet in the middle of a message: it goes on from there, not from its beginning.";
    implied_nak_costs_a_retry, READ, "IB1 9.7.5.1.4", "An implied NAK costs one of retry_cnt: with none left the READ completes with retry exceeded.";
    rnr_naks_use_no_retry, RC, "IB1 9.7.5.2.8", "RNR NAKs do not count against retry_cnt.";
    ack_inside_a_read, READ, "IB1 9.7.5.1.4", "An ACK of a PSN inside a READ completes nothing and acknowledges no response: the READ is asked for again.";
    duplicate_atomic_of_other_operands, ATOMIC, "IB1 9.7.5.1.5", "A repeated atomic is known by its PSN: other operands, another kind or another place change nothing, and draw the saved result.";
    duplicate_immediate, RC, "IB1 9.7.5.1.5", "A repeated WRITE with immediate takes no receive WQE and has no second CQE.";
    duplicate_of_two_kinds, READ, "IB1 9.7.5.1.5", "A SEND repeated as a WRITE of the same PSN is a duplicate: acknowledged, no byte written.";
    read_of_no_bytes_without_resources, READ, "IB1 9.7.4.1", "max_dest_rd_atomic 0 refuses a READ of no bytes too.";
    write_of_no_bytes_not_permitted, RC, "IB1 9.7.4.1", "A queue pair that does not permit WRITEs refuses one of no bytes too.";
    retries_through_sqd, RC, "IB1 10.3.1", "SQD and back bring no retry back: retry_cnt and rnr_retry count on from where they were.";
    immediate_refused_without_a_wqe, RC, "IB1 9.7.5.2.8", "An RNR NAK is the answer to a good request: a WRITE with immediate of a bad key or a wrong length is refused for that, whether a receive WQE waits or not.";
    ack_beside_a_read, READ, "IB1 9.7.5.1", "A request and a READ at once behind it: the response acknowledges both; an ACK of the first may stand before it, and nowhere else.";
    completion_behind_a_read, READ, "IB1 10.8", "An unsignaled READ and a signaled SEND behind it: when the completion is there, so is the data of the READ.";
    udp_checksum_is_ignored, RC, "A17.3.2", "A UDP checksum is not looked at: the ICRC protects the packet.";
    ipv4_without_dont_fragment, RC, "RFC 6864 4", "A datagram that may be fragmented, with any identification, is taken if it is whole.";
    ipv4_fields_of_routers, RC, "RFC 1122 3.2.1.7", "A host takes a datagram whose TTL is 0, and does not look at the reserved flag.";
}

fn untimed() -> QpOptions {
    QpOptions {
        timeout: 0,
        ..QpOptions::default()
    }
}

fn psns(packets: &[Sent]) -> Vec<u32> {
    packets.iter().map(Sent::psn).collect()
}

/// A READ of 8 bytes at PSN p and a SEND behind it; PSN p.
fn read_and_send(s: &mut Script) -> u32 {
    let read = Work::read(&[s.target.sge(0, 8)], &s.target, 0);
    let sent = s.post_all(&[read, Work::send(&[])]);
    check("packets", sent.len(), 2);
    sent[0].psn()
}

fn nak_after_an_unanswered_read(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let psn = read_and_send(&mut s);
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    let nak = s.response(Opcode::RcAck, psn + 1, nak);
    let sent = s.counts("implied_nak_seq_err", 1, |s| s.send(&nak, &[]));
    check("sent again", psns(&sent), vec![psn, psn + 1]);
    check("completions", s.results(), vec![]);
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&data, &[5; 8]);
    s.send(&nak, &[]);
    let expected = vec![(0, status::SUCCESS), (1, status::REM_ACCESS_ERR)];
    check("completions", s.results(), expected);
}

/// What the card sends after the wait of an RNR NAK of `psn`, timer code 1 (10 us).
fn after_rnr(s: &mut Script, psn: u32) -> Vec<u32> {
    let nak = s.response(Opcode::RcAck, psn, Syndrome::RnrNak { timer: 1 });
    let sent = s.counts("rnr_nak_received", 1, |s| s.send(&nak, &[]));
    check("packets sent in the wait", sent.len(), 0);
    psns(&s.run(5_000))
}

fn rnr_for_a_read(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let psn = read_and_send(&mut s);
    check("sent again", after_rnr(&mut s, psn), vec![psn, psn + 1]);
    let data = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    s.send(&data, &[5; 8]);
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0), (1, 0)]);
    check_bytes("data", &s.contents()[..8], &[5; 8]);
    let atomic = Work::fetch_add(s.target.sge(0, 8), &s.target, 0, 1);
    let psn = s.post(&atomic)[0].psn();
    check("sent again", after_rnr(&mut s, psn), vec![psn]);
    let answer = s.response(Opcode::RcAtomicAck, psn, Syndrome::ACK);
    s.send(&answer, &[]);
    check("completions", s.results().len(), 1);
}

fn rnr_within_a_message(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let source = s.host.create_mr(&pattern(3 * MTU, 1), Rights::NONE);
    let psn = s.post(&Work::send(&[source.all()]))[0].psn();
    let again = after_rnr(&mut s, psn + 1);
    check("sent again", again, vec![psn + 1, psn + 2]);
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0)]);
}

fn implied_nak_costs_a_retry(bench: &mut Bench) {
    let failed = vec![(0, status::RETRY_EXC_ERR), (1, status::WR_FLUSH_ERR)];
    for (retry_cnt, sent_again, results) in [(0, 0, failed), (1, 2, vec![])] {
        let mut s = bench.script(QpOptions {
            retry_cnt,
            ..untimed()
        });
        let psn = read_and_send(&mut s);
        let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
        check("sent again", s.send(&ack, &[]).len(), sent_again);
        check("completions", s.results(), results);
    }
}

fn rnr_naks_use_no_retry(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 1,
        rnr_retry: 7,
        ..untimed()
    });
    let psn = s.post(&Work::send(&[]))[0].psn();
    for _ in 0..4 {
        check("sent again", after_rnr(&mut s, psn), vec![psn]);
    }
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    check("one retry is left", psns(&s.send(&nak, &[])), vec![psn]);
    check("completions", s.results(), vec![]);
}

fn ack_inside_a_read(bench: &mut Bench) {
    let mut s = bench.script(untimed());
    let len = 3 * MTU as u32;
    let read = Work::read(&[s.target.sge(0, len)], &s.target, 0);
    let psn = s.post(&read)[0].psn();
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    let sent = s.counts("implied_nak_seq_err", 1, |s| s.send(&ack, &[]));
    let reth = sent[0].headers.ext.reth.map(|reth| reth.dma_len);
    let asked = (sent.len(), sent[0].psn(), reth);
    check("asked for again", asked, (1, psn, Some(len)));
    check("completions", s.results(), vec![]);
}

fn duplicate_atomic_of_other_operands(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write(s.target.addr, &[7, 0, 0, 0, 0, 0, 0, 0]);
    let request = s.request(Opcode::RcFetchAdd);
    s.send(&request, &[]);
    let after = s.contents();
    for kind in [Opcode::RcFetchAdd, Opcode::RcCmpSwap] {
        let mut other = s.request(kind);
        if let Some(atomic) = &mut other.ext.atomic {
            (atomic.va, atomic.swap_add) = (atomic.va + 8, 0x5555);
        }
        let answers = s.send(&other, &[]);
        let answer = answers[0].headers.ext.atomic_ack.map(|ack| ack.original);
        check("saved result", (answers.len(), answer), (1, Some(7)));
    }
    check_bytes("the target", &s.contents(), &after);
}

fn duplicate_immediate(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let taken = s.recv();
    s.recv();
    let request = s.request(Opcode::RcWriteOnlyImm);
    s.next(&request, &[1; 8]);
    let cqes = s.cqes();
    let first = cqes.first().map(|cqe| (cqe.wqe_index, cqe.opcode));
    check("CQE", first, Some((taken, opcode::RECV_WRITE_IMM)));
    s.host.write(s.target.addr, &[0; 8]);
    let answers = s.counts("duplicate_request", 1, |s| s.send(&request, &[1; 8]));
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check("CQEs of the duplicate", s.cqes().len(), 0);
    check_bytes("the target", &s.contents()[..8], &[0; 8]);
    let send = s.request(Opcode::RcSendOnly);
    s.send(&send, &[]);
    check("the second WQE is there", s.cqes().len(), 1);
}

fn duplicate_of_two_kinds(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    let psn = s.psn;
    let send = s.request(Opcode::RcSendOnly);
    s.next(&send, &[]);
    check("CQEs", s.cqes().len(), 1);
    let mut write = s.request(Opcode::RcWriteOnly);
    write.bth.psn = psn;
    let answers = s.counts("duplicate_request", 1, |s| s.send(&write, &[1; 8]));
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    s.untouched("after the duplicate");
}

fn read_of_no_bytes_without_resources(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.max_dest_rd_atomic = 0);
    let mut request = s.request(Opcode::RcReadRequest);
    if let Some(reth) = &mut request.ext.reth {
        reth.dma_len = 0;
    }
    refused(&mut s, &request);
}

fn write_of_no_bytes_not_permitted(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.remote_write = false);
    let request = s.write(Opcode::RcWriteOnly, 0);
    refused(&mut s, &request);
}

fn refused(s: &mut Script, request: &ferroce_proto::wire::Headers) {
    let answers = s.send(request, &[]);
    let nak = Syndrome::Nak(NakCode::InvalidRequest);
    check("answer", syndromes(&answers), vec![nak]);
    s.in_error("after the NAK");
}

/// In Linux, rxe and rdmavt, the counters are set with the attribute, whatever the state.
fn retries_through_sqd(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        retry_cnt: 3,
        rnr_retry: 2,
        ..untimed()
    });
    let there_and_back = [state::SQD, state::RTS];
    let psn = s.post(&Work::send(&[]))[0].psn();
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    check("sent again", psns(&s.send(&nak, &[])), vec![psn]);
    for state in there_and_back {
        s.host.modify_state(s.qpn, state);
        check("sent for the command", s.quiet().len(), 0);
        check("sent again", psns(&s.send(&nak, &[])), vec![psn]);
    }
    check("sent again", s.send(&nak, &[]).len(), 0);
    check("completions", s.results(), vec![(0, status::RETRY_EXC_ERR)]);

    s.reopen(|_| {});
    let psn = s.post(&Work::send(&[]))[0].psn();
    for state in there_and_back {
        check("sent again", after_rnr(&mut s, psn), vec![psn]);
        s.host.modify_state(s.qpn, state);
        check("sent for the command", s.quiet().len(), 0);
    }
    check("sent again", after_rnr(&mut s, psn), vec![]);
    let expected = vec![(0, status::RNR_RETRY_EXC_ERR)];
    check("completions", s.results(), expected);
}

/// So does qib with the key of an Only; rxe looks for the receive WQE first, and refuses the request when it comes again.
fn immediate_refused_without_a_wqe(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let invalid = NakCode::InvalidRequest;
    for (key, len, code) in [
        (0, 8, NakCode::RemoteAccess),
        (s.target.key, 9, invalid),
        (s.target.key, 7, invalid),
    ] {
        for posted in [false, true] {
            s.reopen(|_| {});
            if posted {
                s.recv();
            }
            let mut request = s.write(Opcode::RcWriteOnlyImm, len);
            if let Some(reth) = &mut request.ext.reth {
                reth.rkey = key;
            }
            let answers = s.send(&request, &[1; 8]);
            let what = format!("answer, {len} bytes announced, a WQE posted: {posted}");
            check(&what, syndromes(&answers), vec![Syndrome::Nak(code)]);
            check_bytes("the target", &s.contents()[..8], &[0; 8]);
            let successes = s
                .results()
                .iter()
                .filter(|(_, status)| *status == 0)
                .count();
            check("receives that succeed", successes, 0);
        }
    }
}

/// qib sends the ACK as soon as a READ follows, rxe with it.
fn ack_beside_a_read(bench: &mut Bench) {
    for opcode in [Opcode::RcSendOnly, Opcode::RcWriteOnly] {
        let mut s = bench.script(QpOptions::default());
        s.recv();
        let psn = s.psn.value();
        let request = s.request(opcode);
        s.hand_next(&request, &[1; 8]);
        let read = s.request(Opcode::RcReadRequest);
        s.hand_next(&read, &[]);
        let answers = s.quiet();
        let got = |sent: &Sent| {
            (
                sent.opcode(),
                sent.psn(),
                sent.aeth().syndrome,
                sent.aeth().msn,
            )
        };
        let (last, before) = answers.split_last().expect("the response");
        let response = (Opcode::RcReadResponseOnly, psn + 1, Syndrome::ACK, 2);
        check("the last answer", got(last), response);
        check("one before it at most", before.len() <= 1, true);
        for ack in before {
            check("the ACK", got(ack), (Opcode::RcAck, psn, Syndrome::ACK, 1));
        }
    }
}

fn completion_behind_a_read(bench: &mut Bench) {
    const PACKETS: usize = 4;
    let mut s = bench.script(untimed());
    for round in 1..=16 {
        s.host.write(s.target.addr, &[0; PACKETS * MTU]);
        let read = Work::read(&[s.target.all()], &s.target, 0).unsignaled();
        let psn = s.post_all(&[read, Work::send(&[])])[0].psn();
        let opcodes = [
            Opcode::RcReadResponseFirst,
            Opcode::RcReadResponseMiddle,
            Opcode::RcReadResponseMiddle,
            Opcode::RcReadResponseLast,
        ];
        for (psn, opcode) in (psn..).zip(opcodes) {
            let data = s.response(opcode, psn, Syndrome::ACK);
            s.hand(&build(&data, &[round; MTU]));
        }
        let ack = s.response(Opcode::RcAck, psn + PACKETS as u32, Syndrome::ACK);
        s.hand(&build(&ack, &[]));
        let cqe = (0..20_000).find_map(|_| {
            s.run(1);
            s.host.poll(0)
        });
        check("status", cqe.map(|cqe| cqe.status), Some(status::SUCCESS));
        check_bytes("the buffer", &s.contents(), &[round; PACKETS * MTU]);
    }
}

/// WRITEs of a byte whose frames are changed: each is acknowledged.
fn taken(bench: &mut Bench, changes: &[(usize, [u8; 2])]) {
    let mut s = bench.script(QpOptions::default());
    for (i, &(at, bytes)) in changes.iter().enumerate() {
        let mut request = s.write(Opcode::RcWriteOnly, 1);
        if let Some(reth) = &mut request.ext.reth {
            reth.va += i as u64;
        }
        let mut frame = build(&request, &[9]);
        frame[at..][..2].copy_from_slice(&bytes);
        let answers = s.give(&seal(frame));
        let what = format!("answer, {bytes:02x?} at {at}");
        check(&what, syndromes(&answers), vec![Syndrome::ACK]);
        s.psn = s.psn.add(1);
    }
    check_bytes(
        "the target",
        &s.contents()[..changes.len()],
        &vec![9; changes.len()],
    );
}

fn udp_checksum_is_ignored(bench: &mut Bench) {
    taken(bench, &[(40, [0x12, 0x34]), (40, [0xff, 0xff])]);
}

fn ipv4_without_dont_fragment(bench: &mut Bench) {
    taken(bench, &[(18, [0x12, 0x34]), (20, [0, 0])]);
}

/// Linux has the same: `ip_rcv` looks at version, header length, checksum and length, and forwarding alone at the TTL.
fn ipv4_fields_of_routers(bench: &mut Bench) {
    taken(bench, &[(22, [0, 17]), (20, [0x80, 0]), (20, [0xc0, 0])]);
}
