//! Frames that are whole but whose transport headers make no sense, and anything at all.
//!
//! A request of a length that no opcode has is dropped, where IB1 9.7.5.2.4 has a NAK and implementations differ: see
//! docs/decisions/lengths.md. One beyond the path MTU, up to 4096 bytes, draws the NAK: `only_longer_than_the_mtu`.

use ferroce_proto::wire::{Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, pattern};

use super::bench::{Bench, MTU};
use super::malformed::{changed, cut, dropped, frame, run, seal};
use super::script::{Script, build, syndromes};
use super::{ATOMIC, RC, READ, cases, check};

cases! {
    pad_without_payload, RC, "architecture 6", "PadCnt beyond the payload there is, is malformed.";
    payload_not_of_words, RC, "IB1 9.2", "Payload and pad that are not a multiple of 4 bytes are malformed.";
    pad_in_a_first, RC, "IB1 9.7.4.1", "A First with pad is shorter than the path MTU: an invalid request.";
    payload_longer_than_4096, RC, "architecture 6", "More payload than the largest path MTU is malformed.";
    payload_of_an_ack, RC, "IB1 9.4", "An acknowledgement with payload is malformed.";
    payload_of_a_read_request, READ, "architecture 6", "A READ request with payload is malformed.";
    payload_of_an_atomic, ATOMIC, "architecture 6", "An atomic with payload is malformed.";
    transport_version, RC, "IB1 9.2", "A transport version that is not 0 is malformed.";
    opcode_reserved, RC, "architecture 6", "A reserved opcode is malformed: where its headers end is not known.";
    opcode_of_rd_and_xrc, RC, "architecture 6", "Opcodes of transports that the card does not have are malformed.";
    cnp_is_no_request, RC, "A17 CA17-45", "A congestion notification packet changes nothing at the responder.";
    anything_does_no_harm, RC, "A17 CA17-24", "Random headers with a right ICRC do no harm to memory or to the connection beside.";
}

fn pad_without_payload(bench: &mut Bench) {
    run(bench, |s| {
        for (opcode, pad) in [
            (Opcode::RcSendOnly, 1),
            (Opcode::RcSendOnly, 3),
            (Opcode::RcSendOnlyImm, 2),
        ] {
            let mut bad = build(&s.request(opcode), &[]);
            bad[43] |= pad << 4;
            dropped(
                s,
                &format!("{opcode:?} with {pad} bytes of pad"),
                "rx_malformed",
                &seal(bad),
            );
        }
    });
}

fn payload_not_of_words(bench: &mut Bench) {
    run(bench, |s| {
        let good = frame(s);
        for len in [33, 34, 35, 95] {
            dropped(
                s,
                &format!("{len} bytes of UDP"),
                "rx_malformed",
                &cut(&good, len),
            );
        }
    });
}

fn pad_in_a_first(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let request = s.write(Opcode::RcWriteFirst, 3000);
    let answers = s.send(&request, &pattern(MTU - 1, 1));
    let nak = Syndrome::Nak(ferroce_proto::wire::NakCode::InvalidRequest);
    check("answer", syndromes(&answers), vec![nak]);
}

fn payload_longer_than_4096(bench: &mut Bench) {
    run(bench, |s| {
        for opcode in [Opcode::RcWriteOnly, Opcode::RcSendOnly] {
            for len in [4097, 4100, 8000_usize] {
                let mut bad = build(&s.write(opcode, len as u32), &[]);
                let body = len.next_multiple_of(4);
                bad[43] |= ((body - len) as u8) << 4;
                let at = bad.len() - 4;
                bad.splice(at..at, vec![0; body]);
                let transport = bad.len() - 42;
                dropped(
                    s,
                    &format!("{opcode:?} of {len} bytes"),
                    "rx_malformed",
                    &cut(&bad, transport),
                );
            }
        }
    });
}

/// A packet that must not have payload, with 4 bytes of it.
fn with_payload(s: &mut Script, opcode: Opcode) {
    let headers = match opcode.is_request() {
        true => s.request(opcode),
        false => s.response(opcode, 0x1000, Syndrome::ACK),
    };
    let mut bad = build(&headers, &[]);
    let at = bad.len() - 4;
    bad.splice(at..at, [0; 4]);
    let transport = bad.len() - 42;
    dropped(
        s,
        &format!("{opcode:?}"),
        "rx_malformed",
        &cut(&bad, transport),
    );
}

fn payload_of_an_ack(bench: &mut Bench) {
    run(bench, |s| with_payload(s, Opcode::RcAck));
}

fn payload_of_a_read_request(bench: &mut Bench) {
    run(bench, |s| {
        with_payload(s, Opcode::RcReadRequest);
    });
}

fn payload_of_an_atomic(bench: &mut Bench) {
    run(bench, |s| {
        with_payload(s, Opcode::RcFetchAdd);
        with_payload(s, Opcode::RcCmpSwap);
    });
}

fn transport_version(bench: &mut Bench) {
    changed(
        bench,
        "rx_malformed",
        &[(43, 1), (43, 2), (43, 8), (43, 15)],
    );
}

/// Opcodes of the top three bits in `classes` that do not exist.
fn reserved(bench: &mut Bench, classes: &[u8]) {
    run(bench, |s| {
        let good = frame(s);
        for code in 0..=255 {
            if classes.contains(&(code >> 5)) && Opcode::from_code(code).is_none() {
                let mut bad = good.clone();
                bad[42] = code;
                dropped(s, &format!("opcode {code:#x}"), "rx_malformed", &seal(bad));
            }
        }
    });
}

fn opcode_reserved(bench: &mut Bench) {
    reserved(bench, &[0, 1]);
}

fn opcode_of_rd_and_xrc(bench: &mut Bench) {
    reserved(bench, &[2, 5]);
}

fn cnp_is_no_request(bench: &mut Bench) {
    run(bench, |s| {
        let mut cnp = s.request(Opcode::Cnp);
        (cnp.bth.psn, cnp.bth.becn, cnp.bth.ack_req) = (Psn::new(0), true, false);
        check("answers", s.send(&cnp, &[]).len(), 0);
    });
}

fn anything_does_no_harm(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let beside = s.host.create_qp(QpOptions::default());
    let peer = s.peer;
    s.host.connect(beside, &peer);
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..3 {
        s.reopen(|_| {});
        s.recv();
        for _ in 0..60 {
            let code = rng.u8(..0x18);
            let Some(opcode) = Opcode::from_code(code) else {
                continue;
            };
            let mut headers = match opcode.is_request() {
                true => s.request(opcode),
                false => s.response(
                    opcode,
                    0x1000 + rng.u32(..3),
                    Syndrome::from_bits(rng.u8(..)),
                ),
            };
            headers.bth.psn = headers.bth.psn.add(rng.u32(..4)).sub(1);
            headers.bth.ack_req = rng.bool();
            if let Some(reth) = &mut headers.ext.reth {
                reth.va = reth.va.wrapping_add(rng.u64(..5000)).wrapping_sub(400);
                reth.dma_len = rng.u32(..6000);
            }
            let len = match (opcode.has_payload(), rng.u8(..3)) {
                (false, _) => 0,
                (true, 0) => rng.usize(..=4096),
                (true, _) if opcode.is_end() => rng.usize(..=MTU),
                (true, _) => MTU,
            };
            s.hand(&build(&headers, &pattern(len, 3)));
        }
        s.quiet();
        let mut request = s.request(Opcode::RcWriteOnly);
        request.bth.dest_qp = beside;
        request.bth.psn = Psn::new(peer.psn).add(round);
        let answers = s.send(&request, &[1; 8]);
        check("answer beside", syndromes(&answers), vec![Syndrome::ACK]);
    }
}
