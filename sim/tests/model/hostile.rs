//! Packets that no healthy peer sends.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{
    AethRepr, AtomicEthRepr, Class, Error, Extensions, Gid, Headers, Ip, Mac, NakCode, Opcode,
    Operation, Packet, Position, Psn, RethRepr, Syndrome,
};
use ferroce_sim::testhost::{Mr, Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

/// A connection whose A side is played by the test: headers of a SEND Only of A's next PSN, target of B.
struct Forger {
    pair: Pair,
    qa: u32,
    qb: u32,
    headers: Headers,
    target: Mr,
}

impl Forger {
    fn new() -> Self {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
        pair.b.post_recv(qb, &[]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        assert_success(&pair.wait(Side::A, 0), index);
        assert_success(&pair.wait(Side::B, 0), 0);
        let mut headers = pair.packets(Side::A)[0].headers;
        headers.bth.psn = headers.bth.psn.next();
        pair.sent.clear();
        Self {
            pair,
            qa,
            qb,
            headers,
            target,
        }
    }

    /// Hands a frame to B and gives B's answers.
    fn receive(&mut self, frame: &[u8]) -> Vec<Packet> {
        self.pair.sent.clear();
        self.pair.b.nic.receive(frame);
        self.pair.run(300);
        self.pair.packets(Side::B)
    }

    /// Hands B a packet, answers the syndromes of what comes back.
    fn send(&mut self, headers: &Headers, payload: &[u8]) -> Vec<Syndrome> {
        let answers = self.receive(&build(headers, payload));
        answers
            .iter()
            .map(|p| p.headers.ext.aeth.unwrap().syndrome)
            .collect()
    }

    /// Headers of another opcode with the extension headers it needs.
    fn of(&self, opcode: Opcode) -> Headers {
        let mut headers = self.headers;
        headers.bth.opcode = opcode;
        let (va, rkey) = (self.target.addr, self.target.key);
        headers.ext = Extensions {
            reth: opcode.has_reth().then_some(RethRepr {
                va,
                rkey,
                dma_len: 8,
            }),
            atomic: opcode.has_atomic_eth().then_some(AtomicEthRepr {
                va,
                rkey,
                swap_add: 1,
                compare: 0,
            }),
            imm: opcode.has_imm().then_some(7),
            ieth: opcode.has_ieth().then_some(rkey),
            ..Extensions::default()
        };
        headers
    }

    /// B is as it was: it still takes the packet that is due.
    fn assert_untouched(&mut self, what: &str) {
        assert_eq!(
            self.pair.b.query(self.qb).rq_psn,
            self.headers.bth.psn.value(),
            "{what}"
        );
        assert_eq!(self.pair.b.query(self.qb).rq_state, state::RTS, "{what}");
        assert_eq!(self.pair.b.contents(&self.target), [0; 4096], "{what}");
        self.pair.assert_no_faults();
    }
}

fn build(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers.frame_len(payload.len())];
    headers.build(payload, &mut frame).unwrap();
    frame
}

#[test]
fn silent_drops_are_counted() {
    type Spoil = fn(&mut Headers);
    let cases: [(&str, Spoil); 11] = [
        ("rx_not_roce", |h| h.eth.dst = Mac([0x52, 0x54, 0, 0, 0, 9])),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 77),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0x10002),
        ("rx_unknown_qp", |h| h.bth.dest_qp = 0xff_ffff),
        ("rx_wrong_transport", |h| h.bth.opcode = Opcode::UcSendOnly),
        ("rx_pkey_violations", |h| h.bth.pkey = 0x7ffe),
        ("rx_pkey_violations", |h| h.bth.pkey = 0x0000),
        ("rx_wrong_address", |h| {
            change_ip(h, |ip| ip[0] ^= 1, |_| {})
        }),
        ("rx_wrong_address", |h| {
            change_ip(h, |_| {}, |ip| ip[3] ^= 4)
        }),
        ("rx_ghost_acks", |h| {
            h.bth.opcode = Opcode::RcAck;
            h.ext.aeth = Some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: 1,
            });
        }),
    ];
    for (name, spoil) in cases {
        let mut forger = Forger::new();
        forger.pair.b.post_recv(forger.qb, &[]);
        let mut headers = forger.headers;
        spoil(&mut headers);
        assert_eq!(forger.send(&headers, &[]), [], "{name} is silent");
        assert_eq!(forger.pair.b.stat(name), 1, "{name}");
        forger.assert_untouched(name);
    }
}

/// Changes the IPv4 addresses of source and destination.
fn change_ip(headers: &mut Headers, src: fn(&mut [u8; 4]), dst: fn(&mut [u8; 4])) {
    let Ip::V4(ip) = &mut headers.ip else {
        panic!("IPv4")
    };
    let (mut from, mut to) = (ip.src.octets(), ip.dst.octets());
    src(&mut from);
    dst(&mut to);
    (ip.src, ip.dst) = (from.into(), to.into());
    assert!(Gid::from(ip.src).is_ipv4());
}

#[test]
fn frames_that_do_not_parse_are_counted() {
    let mut forger = Forger::new();
    let frame = build(&forger.headers, &pattern(64, 1));
    for i in 14..frame.len() {
        let mut bad = frame.clone();
        bad[i] ^= 0x40;
        let counter = match Packet::parse(&bad) {
            // TOS, TTL, the resv8a byte and the UDP checksum are not covered by the ICRC.
            Ok(_) => continue,
            Err(Error::Icrc { .. }) => "rx_icrc_errors",
            Err(Error::EtherType(_) | Error::Protocol(_) | Error::Port(_)) => "rx_not_roce",
            Err(_) => "rx_malformed",
        };
        let before = forger.pair.b.stat(counter);
        assert!(forger.receive(&bad).is_empty());
        assert_eq!(forger.pair.b.stat(counter), before + 1, "byte {i}");
    }
    for len in 0..frame.len() {
        assert!(forger.receive(&frame[..len]).is_empty());
    }
    forger.assert_untouched("after all that");
}

#[test]
fn queue_pairs_that_are_not_open() {
    let mut forger = Forger::new();
    for closed in [state::INIT, state::RESET] {
        forger.pair.b.modify_state(forger.qb, closed);
        let headers = forger.headers;
        assert_eq!(forger.send(&headers, &[]), []);
    }
    assert_eq!(forger.pair.b.stat("rx_qp_state"), 1);
    assert_eq!(
        forger.pair.b.stat("rx_unknown_qp"),
        1,
        "RESET forgets the context"
    );
}

#[test]
fn psn_far_from_the_expected() {
    let refused = Syndrome::Nak(NakCode::PsnSequence);
    let mut forger = Forger::new();
    let due = forger.headers.bth.psn;
    let at = |forger: &mut Forger, psn: Psn| {
        let mut headers = forger.headers;
        headers.bth.psn = psn;
        forger.send(&headers, &[])
    };
    assert_eq!(at(&mut forger, due.add(1)), [refused]);
    assert_eq!(at(&mut forger, due.add(2)), [], "one NAK for a gap");
    assert_eq!(at(&mut forger, due.add(0x7f_ffff)), []);
    assert_eq!(at(&mut forger, due.sub(1)), [Syndrome::ACK], "a duplicate");
    assert_eq!(
        at(&mut forger, due.add(0x7f_ffff)),
        [refused],
        "a duplicate ends the silence"
    );
    assert_eq!(
        at(&mut forger, due.sub(0x80_0000)),
        [Syndrome::ACK],
        "the oldest duplicate"
    );
    forger.assert_untouched("no PSN was due");
    let answers = forger.pair.packets(Side::B);
    assert_eq!(answers[0].headers.bth.psn, due.prev());
    assert_eq!(answers[0].headers.ext.aeth.unwrap().msn, 1);
}

#[test]
fn opcodes_out_of_sequence_are_invalid_requests() {
    let invalid = [Syndrome::Nak(NakCode::InvalidRequest)];
    let full = pattern(1024, 1);
    let requests: Vec<_> = Opcode::ALL
        .iter()
        .copied()
        .filter(|o| o.class() == Class::Rc && o.is_request())
        .collect();
    // The first packet of a message, and what may follow it.
    for first in [None, Some(Opcode::RcSendFirst), Some(Opcode::RcWriteFirst)] {
        for &second in &requests {
            let goes_on = first
                .is_some_and(|first| first.operation() == second.operation() && !second.is_start());
            if (first.is_none() && second.is_start()) || goes_on {
                continue;
            }
            let mut forger = Forger::new();
            for _ in 0..2 {
                forger.pair.b.post_recv(forger.qb, &[forger.target.all()]);
            }
            if let Some(first) = first {
                let mut headers = forger.of(first);
                if let Some(reth) = &mut headers.ext.reth {
                    reth.dma_len = 2048;
                }
                headers.bth.ack_req = false;
                assert_eq!(forger.send(&headers, &full), []);
                forger.headers.bth.psn = forger.headers.bth.psn.next();
            }
            let headers = forger.of(second);
            let payload = match (second.has_payload(), second.position()) {
                (true, Position::First | Position::Middle) => &full[..],
                (true, _) => &full[..8],
                (false, _) => &[],
            };
            assert_eq!(
                forger.send(&headers, payload),
                invalid,
                "{second:?} after {first:?}"
            );
            assert_eq!(forger.pair.b.query(forger.qb).rq_state, state::ERR);
            assert_eq!(forger.pair.b.stat("invalid_request_errors"), 1);
        }
    }
}

#[test]
fn sizes_against_the_rules_are_invalid_requests() {
    let invalid = [Syndrome::Nak(NakCode::InvalidRequest)];
    let cases: [(Opcode, usize, u32); 13] = [
        (Opcode::RcSendFirst, 1020, 0),
        (Opcode::RcSendFirst, 1028, 0),
        (Opcode::RcSendFirst, 0, 0),
        (Opcode::RcSendOnly, 1028, 0),
        (Opcode::RcSendOnlyImm, 4096, 0),
        (Opcode::RcWriteFirst, 1024, 1024),
        (Opcode::RcWriteFirst, 1024, 8),
        (Opcode::RcWriteFirst, 1020, 2048),
        (Opcode::RcWriteFirst, 1024, (1 << 31) + 1),
        (Opcode::RcWriteOnly, 8, 9),
        (Opcode::RcWriteOnly, 8, 7),
        (Opcode::RcWriteOnly, 1028, 1028),
        (Opcode::RcReadRequest, 0, (1 << 31) + 1),
    ];
    for (opcode, len, dma_len) in cases {
        let mut forger = Forger::new();
        forger.pair.b.post_recv(forger.qb, &[forger.target.all()]);
        let mut headers = forger.of(opcode);
        if let Some(reth) = &mut headers.ext.reth {
            reth.dma_len = dma_len;
        }
        let answer = forger.send(&headers, &pattern(len, 1));
        assert_eq!(answer, invalid, "{opcode:?} of {len} bytes, RETH {dma_len}");
        assert_eq!(forger.pair.b.contents(&forger.target), [0; 4096]);
    }
    // Behind a first packet: last ones of no bytes, and sums that differ from the RETH.
    for (opcode, len) in [
        (Opcode::RcWriteLast, 0),
        (Opcode::RcWriteLast, 99),
        (Opcode::RcWriteLast, 101),
        (Opcode::RcWriteMiddle, 1024),
        (Opcode::RcWriteLastImm, 1024),
    ] {
        let mut forger = Forger::new();
        let mut headers = forger.of(Opcode::RcWriteFirst);
        headers.ext.reth.as_mut().unwrap().dma_len = 1124;
        headers.bth.ack_req = false;
        assert_eq!(forger.send(&headers, &pattern(1024, 1)), []);
        forger.headers.bth.psn = forger.headers.bth.psn.next();
        let headers = forger.of(opcode);
        assert_eq!(
            forger.send(&headers, &pattern(len, 1)),
            invalid,
            "{opcode:?} of {len} bytes"
        );
    }
}

#[test]
fn operations_the_queue_pair_does_not_permit() {
    use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
    use ferroce_proto::abi::qpc::RqCtx;
    for opcode in [
        Opcode::RcWriteOnly,
        Opcode::RcReadRequest,
        Opcode::RcFetchAdd,
    ] {
        let mut forger = Forger::new();
        let peer = forger.pair.a.peer(forger.qa);
        let [sq, av, rq] = forger.pair.b.images(forger.qb, &peer);
        let mut rq = RqCtx::parse(&rq);
        (rq.remote_write, rq.remote_read, rq.remote_atomic) = (false, false, false);
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: forger.qb,
            qp_rq: true,
            ..CmdHead::default()
        };
        assert_eq!(
            forger.pair.b.command(head, &[sq, av, rq.emit()]).status,
            status::OK
        );
        let headers = forger.of(opcode);
        let payload = if opcode.has_payload() { 8 } else { 0 };
        let answer = forger.send(&headers, &pattern(payload, 1));
        assert_eq!(
            answer,
            [Syndrome::Nak(NakCode::InvalidRequest)],
            "{opcode:?}"
        );
    }
}

/// Plays B to A: answers A's only SEND with a forged AETH at `psn` behind the SEND's own.
fn answer(pair: &mut Pair, qa: u32, opcode: Opcode, syndrome: Syndrome, behind: u32) {
    let request = pair.packets(Side::A).pop().unwrap().headers;
    let (Ip::V4(ip), mut headers) = (request.ip, request) else {
        panic!("IPv4")
    };
    headers.ip = Ip::V4(ferroce_proto::wire::Ipv4Repr {
        src: ip.dst,
        dst: ip.src,
        ..ip
    });
    (headers.eth.src, headers.eth.dst) = (request.eth.dst, request.eth.src);
    headers.bth.opcode = opcode;
    headers.bth.dest_qp = qa;
    headers.bth.psn = request.bth.psn.add(behind);
    headers.ext = Extensions {
        aeth: opcode.has_aeth().then_some(AethRepr { syndrome, msn: 1 }),
        atomic_ack: opcode
            .has_atomic_ack()
            .then_some(ferroce_proto::wire::AtomicAckEthRepr { original: 0 }),
        ..Extensions::default()
    };
    pair.a.nic.receive(&build(&headers, &[]));
    pair.run(100);
}

#[test]
fn answers_and_what_they_mean() {
    let nak = Syndrome::Nak;
    for (syndrome, expected) in [
        (Syndrome::ACK, status::SUCCESS),
        (Syndrome::Ack { credits: 0 }, status::SUCCESS),
        (nak(NakCode::InvalidRequest), status::REM_INV_REQ_ERR),
        (nak(NakCode::RemoteAccess), status::REM_ACCESS_ERR),
        (nak(NakCode::RemoteOperational), status::REM_OP_ERR),
        (nak(NakCode::InvalidRdRequest), status::BAD_RESP_ERR),
        (Syndrome::Reserved(0x7f), status::BAD_RESP_ERR),
    ] {
        let (mut pair, qa, _) = connected(QpOptions::default());
        pair.fate = Box::new(|_, _| vec![]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        pair.run(100);
        answer(&mut pair, qa, Opcode::RcAck, syndrome, 1);
        answer(&mut pair, qa, Opcode::RcAck, syndrome, 0xff_ffff);
        assert_eq!(pair.a.poll(0), None, "ghosts are ignored");
        assert_eq!(pair.a.stat("rx_ghost_acks"), 2);
        answer(&mut pair, qa, Opcode::RcAck, syndrome, 0);
        let cqe = pair.a.poll(0).expect("the answer counts");
        assert_status(&cqe, index, expected);
        let detail = if expected == status::SUCCESS {
            0
        } else {
            syndrome.bits()
        };
        assert_eq!(cqe.vendor_err, detail);
    }
}

#[test]
fn an_answer_to_another_question_is_a_bad_response() {
    for opcode in [
        Opcode::RcReadResponseOnly,
        Opcode::RcAtomicAck,
        Opcode::RcReadResponseMiddle,
    ] {
        let (mut pair, qa, _) = connected(QpOptions::default());
        pair.fate = Box::new(|_, _| vec![]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        pair.run(100);
        answer(&mut pair, qa, opcode, Syndrome::ACK, 0);
        assert_status(&pair.a.poll(0).unwrap(), index, status::BAD_RESP_ERR);
    }
    // An atomic response and a READ response of the wrong length, to a READ.
    for opcode in [
        Opcode::RcAtomicAck,
        Opcode::RcReadResponseOnly,
        Opcode::RcReadResponseFirst,
    ] {
        let (mut pair, qa, _) = connected(QpOptions::default());
        let remote = pair.b.create_mr(&[0; 8], Rights::ALL);
        let sink = pair.a.create_mr(&[0; 8], Rights::ALL);
        pair.fate = Box::new(|_, _| vec![]);
        let index = pair.a.post_send(qa, &Work::read(&[sink.all()], &remote, 0));
        pair.run(100);
        answer(&mut pair, qa, opcode, Syndrome::ACK, 0);
        assert_status(&pair.a.poll(0).unwrap(), index, status::BAD_RESP_ERR);
    }
}

/// Any headers with a right ICRC and any bytes behind them: no access outside of a region, no panic, and a
/// connection beside it still works.
#[test]
fn random_packets_do_no_harm() {
    let only = std::env::var("SEED")
        .ok()
        .map(|seed| seed.parse().expect("SEED is a number"));
    for seed in only.map_or(1..=300u64, |seed| seed..=seed) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut forger = Forger::new();
        let (qa, qb) = forger
            .pair
            .connect(QpOptions::default(), QpOptions::default());
        for _ in 0..4 {
            forger
                .pair
                .b
                .post_recv(forger.qb, &[forger.target.sge(0, 1500)]);
        }
        for _ in 0..60 {
            let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
            let mut headers = forger.of(opcode);
            if opcode.has_aeth() {
                let syndrome = Syndrome::from_bits(rng.u8(..));
                headers.ext.aeth = Some(AethRepr {
                    syndrome,
                    msn: rng.u32(..1 << 24),
                });
            }
            if opcode.has_atomic_ack() {
                headers.ext.atomic_ack =
                    Some(ferroce_proto::wire::AtomicAckEthRepr { original: 1 });
            }
            if opcode.has_deth() {
                headers.ext.deth = Some(ferroce_proto::wire::DethRepr { qkey: 1, src_qp: 2 });
            }
            headers.bth.psn = Psn::new(headers.bth.psn.value() + rng.u32(..6)).sub(2);
            headers.bth.ack_req = rng.bool();
            if rng.u8(..4) == 0 {
                headers.bth.dest_qp = [0, 1, forger.qb, 4, 300][rng.usize(..5)];
            }
            if let Some(reth) = &mut headers.ext.reth {
                reth.va = reth.va.wrapping_add(rng.u64(..5000)).wrapping_sub(400);
                reth.dma_len = rng.u32(..6000);
                reth.rkey ^= u32::from(rng.u8(..8) == 0);
            }
            let len = match (opcode.has_payload(), rng.u8(..4)) {
                (false, _) => 0,
                (true, 0) => rng.usize(..=4096),
                (true, _) if opcode.is_end() => rng.usize(..=1024),
                (true, _) => 1024,
            };
            forger.receive(&build(&headers, &pattern(len, 3)));
            let operation = opcode.operation();
            assert!(!matches!(operation, Operation::Cnp) || forger.pair.sent.is_empty());
        }
        forger.pair.assert_no_faults();
        forger.pair.b.post_recv(qb, &[]);
        while forger.pair.b.poll(0).is_some() {}
        forger.pair.a.post_send(qa, &Work::send(&[]));
        let cqe = forger.pair.wait(Side::B, 0);
        assert_eq!(
            (cqe.qpn, cqe.status),
            (qb, status::SUCCESS),
            "run again with SEED={seed}"
        );
    }
}
