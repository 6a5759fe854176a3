//! RC: acknowledgements.

use ferroce_proto::wire::{Mtu, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::{PEER_PSN, build, syndromes};
use super::{RC, READ, cases, check, check_bytes};

cases! {
    ack_psn_and_msn, RC, "IB1 9.7.5.1", "An ACK has the PSN of the packet it answers and the number of messages completed.";
    ack_without_credits, RC, "IB1 9.7.7", "Credit code 31, no limit, stands in every positive acknowledgement.";
    ack_only_when_asked, RC, "IB1 9.7.5.1", "A packet without AckReq need not be answered; what comes is covered by the next ACK.";
    ack_within_a_message, RC, "IB1 9.7.5.1", "AckReq in the middle of a message is answered; the MSN does not count the message yet.";
    ack_coalesces, RC, "IB1 9.7.5.1", "ACKs may be fewer than requests: the last one has the PSN and the MSN of all.";
    ack_msn_in_a_nak, RC, "IB1 9.7.5", "A NAK carries the MSN too.";
    ack_req_in_the_last_packet, RC, "IB1 9.7.3", "A requester asks for an acknowledgement in the last packet of each message, at least.";
    ack_req_in_long_messages, RC, "IB1 9.7.3", "A requester asks for acknowledgements within long messages too, at least once in 128 packets.";
    ack_covers_all_before, RC, "IB1 9.7.5.1", "An ACK acknowledges every request before it: all of them complete, in order.";
    acks_in_a_burst, RC, "IB1 9.7.5.1", "Of ACKs that come one behind another each counts, and all that they acknowledge completes.";
    ack_of_a_part, RC, "IB1 9.7.5.1", "An ACK for packets of a message completes nothing; its last packet does.";
    ack_duplicate, RC, "IB1 9.7.5.1", "An ACK for what is acknowledged already changes nothing.";
    ack_ghost, RC, "IB1 9.7.5.1", "An ACK for a PSN never sent changes nothing.";
    ack_ghost_far, RC, "IB1 9.7.5.1", "Ghosts anywhere in the circle of PSNs change nothing.";
    ack_any_credits, RC, "IB1 9.7.7", "An ACK is good whatever credits it announces; a requester without flow control ignores them.";
    msn_of_reads, READ, "IB1 9.7.5.1", "A READ counts as a message completed in the AETH of its own responses.";
    msn_of_duplicates, RC, "IB1 9.7.5.1.5", "The acknowledgement of a duplicate has the current MSN.";
    ack_follows_the_data, RC, "IB1 9.7.5.1", "When the requester's CQE is there, the data is in memory.";
}

fn ack_psn_and_msn(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for i in 0..5 {
        let opcode = if i % 2 == 0 {
            Opcode::RcWriteOnly
        } else {
            Opcode::RcSendOnly
        };
        s.recv();
        let request = s.request(opcode);
        let answers = s.next(&request, &[1; 8]);
        let got: Vec<_> = answers
            .iter()
            .map(|p| (p.opcode(), p.psn(), p.aeth().msn, p.headers.bth.dest_qp))
            .collect();
        let expected = (Opcode::RcAck, PEER_PSN + i, i + 1, s.peer.qpn);
        check("opcode, PSN, MSN, queue pair", got, vec![expected]);
    }
}

fn ack_without_credits(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for _ in 0..2 {
        let request = s.request(Opcode::RcWriteOnly);
        let answers = s.next(&request, &[1; 8]);
        let expected = Syndrome::Ack { credits: 31 };
        check("syndrome", syndromes(&answers), vec![expected]);
    }
}

fn ack_only_when_asked(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for i in 0..3 {
        let mut request = s.request(Opcode::RcWriteOnly);
        request.bth.ack_req = i == 2;
        let answers = s.next(&request, &[i; 8]);
        if i == 2 {
            let last = answers.last().expect("AckReq is answered");
            let got = (last.psn(), last.aeth().msn);
            check("PSN and MSN", got, (PEER_PSN + 2, 3));
        }
        check_bytes("the target", &s.contents()[..8], &[i; 8]);
    }
}

fn ack_within_a_message(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    for (i, opcode) in [
        Opcode::RcSendFirst,
        Opcode::RcSendMiddle,
        Opcode::RcSendLast,
    ]
    .into_iter()
    .enumerate()
    {
        let request = s.request(opcode);
        let answers = s.next(&request, &pattern(MTU, 1));
        let got: Vec<_> = answers.iter().map(|p| (p.psn(), p.aeth().msn)).collect();
        let expected = (PEER_PSN + i as u32, u32::from(i == 2));
        check(&format!("PSN and MSN for {opcode:?}"), got, vec![expected]);
    }
}

fn ack_coalesces(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for i in 0..20 {
        let request = s.request(Opcode::RcWriteOnly);
        s.hand_next(&request, &[i; 8]);
    }
    let answers = s.quiet();
    assert!(
        (1..=20).contains(&answers.len()),
        "expected 1 to 20 ACKs, got {}",
        answers.len()
    );
    let mut last = PEER_PSN - 1;
    for answer in &answers {
        check("MSN", answer.aeth().msn, answer.psn() + 1 - PEER_PSN);
        check("syndrome", answer.aeth().syndrome, Syndrome::ACK);
        assert!(
            answer.psn() > last,
            "expected PSNs to rise, got {}",
            answer.psn()
        );
        last = answer.psn();
    }
    check("PSN of the last", last, PEER_PSN + 19);
}

fn ack_msn_in_a_nak(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for _ in 0..3 {
        let request = s.request(Opcode::RcWriteOnly);
        s.next(&request, &[1; 8]);
    }
    let mut request = s.request(Opcode::RcWriteOnly);
    request.bth.psn = s.psn.next();
    let answers = s.send(&request, &[1; 8]);
    let nak = Syndrome::Nak(NakCode::PsnSequence);
    check("syndrome", syndromes(&answers), vec![nak]);
    check("MSN", answers[0].aeth().msn, 3);
    let request = s.request(Opcode::RcSendOnly);
    let answers = s.send(&request, &[1; 8]);
    check("MSN of the RNR NAK", answers[0].aeth().msn, 3);
    let request = s.request(Opcode::RcSendMiddle);
    let answers = s.send(&request, &[1; MTU]);
    check("MSN of the NAK invalid request", answers[0].aeth().msn, 3);
}

fn ack_req_in_the_last_packet(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mr = s.target;
    let works = [
        Work::send(&[mr.sge(0, 2500)]),
        Work::write(&[mr.sge(0, 100)], &mr, 0),
        Work::write(&[mr.sge(0, 1025)], &mr, 0).imm(1),
    ];
    let sent = s.post_all(&works);
    let ends: Vec<_> = sent.iter().filter(|p| p.opcode().is_end()).collect();
    check("messages", ends.len(), 3);
    for end in ends {
        check("AckReq", end.headers.bth.ack_req, true);
    }
}

fn ack_req_in_long_messages(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        mtu: Mtu::Mtu256,
        timeout: 0,
        ..QpOptions::default()
    });
    let mr = s.host.create_mr(&[0; 256 * 300], Rights::ALL);
    let sent = s.post(&Work::write(&[mr.all()], &mr, 0));
    check("packets", sent.len(), 300);
    let asked: Vec<_> = (0..300).filter(|&i| sent[i].headers.bth.ack_req).collect();
    let mut before = 0;
    for at in asked {
        assert!(
            at - before <= 128,
            "expected AckReq in 128 packets, got none from {before} to {at}"
        );
        before = at;
    }
    check("the last that asks", before, 299);
}

/// A script to whose card so many SENDs were posted; PSN of the first.
fn sends(bench: &mut Bench, count: usize) -> (super::script::Script, u32) {
    let mut s = bench.script(QpOptions {
        timeout: 0,
        ..QpOptions::default()
    });
    let sent = s.post_all(&vec![Work::send(&[]); count]);
    check("packets", sent.len(), count);
    let psn = sent[0].psn();
    (s, psn)
}

fn acks_in_a_burst(bench: &mut Bench) {
    const SENDS: u32 = 12;
    let (mut s, psn) = sends(bench, SENDS as usize);
    s.counts("rx_acks", SENDS.into(), |s| {
        for i in 0..SENDS {
            let ack = s.response(Opcode::RcAck, psn + i, Syndrome::ACK);
            s.hand(&build(&ack, &[]));
        }
        s.quiet()
    });
    let expected = (0..SENDS as u16).map(|index| (index, 0)).collect();
    check("completions", s.results(), expected);
}

fn ack_covers_all_before(bench: &mut Bench) {
    let (mut s, psn) = sends(bench, 3);
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0), (1, 0)]);
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(2, 0)]);
}

fn ack_of_a_part(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        timeout: 0,
        ..QpOptions::default()
    });
    let mr = s.target;
    let sent = s.post(&Work::send(&[mr.sge(0, 3000)]));
    for packet in &sent {
        check("completions before", s.results(), vec![]);
        let ack = s.response(Opcode::RcAck, packet.psn(), Syndrome::ACK);
        s.send(&ack, &[]);
        check(
            "PSN acknowledged",
            s.host.query(s.qpn).una_psn,
            packet.psn() + 1,
        );
    }
    check("completions", s.results(), vec![(0, 0)]);
}

fn ack_duplicate(bench: &mut Bench) {
    let (mut s, psn) = sends(bench, 3);
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0), (1, 0)]);
    for again in [psn + 1, psn, psn - 1] {
        let ack = s.response(Opcode::RcAck, again, Syndrome::ACK);
        let sent = s.counts("rx_ghost_acks", 1, |s| s.send(&ack, &[]));
        check("sent for it", sent.len(), 0);
    }
    check("completions", s.results(), vec![]);
    check("PSN acknowledged", s.host.query(s.qpn).una_psn, psn + 2);
}

fn ghosts(bench: &mut Bench, ahead: &[u32]) {
    let (mut s, psn) = sends(bench, 3);
    for &ahead in ahead {
        for syndrome in [
            Syndrome::ACK,
            Syndrome::Nak(NakCode::RemoteAccess),
            Syndrome::RnrNak { timer: 1 },
        ] {
            let ack = s.response(Opcode::RcAck, psn.wrapping_add(ahead), syndrome);
            let sent = s.counts("rx_ghost_acks", 1, |s| s.send(&ack, &[]));
            check("sent for it", sent.len(), 0);
        }
    }
    check("completions", s.results(), vec![]);
    check("PSN acknowledged", s.host.query(s.qpn).una_psn, psn);
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0), (1, 0), (2, 0)]);
}

fn ack_ghost(bench: &mut Bench) {
    ghosts(bench, &[3, 4]);
}

fn ack_ghost_far(bench: &mut Bench) {
    ghosts(bench, &[0x7f_ffff, 0x80_0000, 0x80_0001, 0xff_ffff]);
}

fn ack_any_credits(bench: &mut Bench) {
    let (mut s, psn) = sends(bench, 3);
    for (i, credits) in [0, 1, 30].into_iter().enumerate() {
        let ack = s.response(Opcode::RcAck, psn + i as u32, Syndrome::Ack { credits });
        s.send(&ack, &[]);
        check("completions", s.results(), vec![(i as u16, 0)]);
    }
    check("sends on", s.post(&Work::send(&[])).len(), 1);
}

fn msn_of_reads(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let request = s.request(Opcode::RcWriteOnly);
    s.next(&request, &[1; 8]);
    for expected in [2, 3] {
        let request = s.request(Opcode::RcReadRequest);
        let answers = s.next(&request, &[]);
        check("MSN", answers[0].aeth().msn, expected);
    }
}

fn msn_of_duplicates(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let first = s.request(Opcode::RcWriteOnly);
    for n in 1..4 {
        let request = s.request(Opcode::RcWriteOnly);
        s.next(&request, &[1; 8]);
        let answers = s.send(&first, &[1; 8]);
        check("MSN", answers.last().map(|p| p.aeth().msn), Some(n));
    }
}

fn ack_follows_the_data(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    let source = c.a.create_mr(&pattern(4096, 1), Rights::NONE);
    for i in 0..4 {
        c.b.write(target.addr, &[0; 4096]);
        c.a.write(source.addr, &pattern(4096, i));
        c.execute(&Work::write(&[source.all()], &target, 0));
        check_bytes("the target", &c.b.contents(&target), &pattern(4096, i));
    }
    let psns: Vec<_> = c.packets(Side::B).iter().map(Sent::psn).collect();
    check("PSN of the last ACK", psns.last(), Some(&0x100f));
}
