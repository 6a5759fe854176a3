//! RC: what a requester makes of negative and of bad responses.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Work};

use super::bench::{Bench, MTU, Sent};
use super::script::Script;
use super::{ATOMIC, RC, cases, check, check_bytes};

cases! {
    nak_invalid_request, RC, "IB1 9.7.5", "NAK code 1 completes the request with a remote invalid request error.";
    nak_remote_access, RC, "IB1 9.7.5", "NAK code 2 completes the request with a remote access error.";
    nak_remote_operational, RC, "IB1 9.7.5", "NAK code 3 completes the request with a remote operation error.";
    nak_invalid_rd_request, RC, "IB1 9.7.5", "NAK code 4 is of no meaning on RC: bad response.";
    nak_of_reserved_code, RC, "IB1 9.7.5", "A reserved NAK code is a bad response.";
    syndrome_reserved, RC, "IB1 9.7.5", "A syndrome of the reserved class is a bad response.";
    nak_acknowledges_before, RC, "IB1 9.7.5", "A NAK acknowledges what came before it: that completes with success.";
    nak_psn_sequence, RC, "IB1 9.7.5", "NAK code 0 makes the requester send again from the PSN it names.";
    nak_psn_sequence_in_a_message, RC, "IB1 9.7.5", "A NAK code 0 inside a message makes it go on there, with the same packets.";
    nak_psn_sequence_old, RC, "IB1 9.7.5", "A NAK code 0 for what is acknowledged already is a ghost.";
    nak_of_a_middle, RC, "IB1 9.7.5", "A NAK for a packet in the middle of a message fails that message.";
    nak_stops_the_queue, RC, "IB1 9.9", "After a NAK that is no retry nothing more is sent, and later responses are ignored.";
    nak_in_a_response, ATOMIC, "IB1 9.7.5", "A NAK in a READ response or an ATOMIC Acknowledge is a NAK, and a reserved syndrome a bad response: the request fails, no byte of it arrives.";
    retry_in_a_response, ATOMIC, "IB1 9.7.5", "So are NAK code 0 and an RNR NAK: the request is sent again, at once or after the wait.";
    response_of_wrong_pkey, RC, "IB1 9.6.1", "A response with another P_Key is dropped.";
    response_of_wrong_class, RC, "IB1 9.6.1", "A response of another transport does not exist on this queue pair.";
}

fn options() -> QpOptions {
    QpOptions {
        timeout: 0,
        ..QpOptions::default()
    }
}

/// Three SENDs; PSN of the first.
fn three_sends(s: &mut Script) -> u32 {
    let sent = s.post_all(&[0; 3].map(|_| Work::send(&[])));
    check("packets", sent.len(), 3);
    sent[0].psn()
}

/// What the requests come to when the second of three draws `syndrome`.
fn answered(bench: &mut Bench, syndrome: Syndrome, expected: u8) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let nak = s.response(Opcode::RcAck, psn + 1, syndrome);
    check("packets sent for it", s.send(&nak, &[]).len(), 0);
    let cqes = s.cqes();
    let results: Vec<_> = cqes.iter().map(|cqe| (cqe.wqe_index, cqe.status)).collect();
    let flushed = status::WR_FLUSH_ERR;
    check(
        "completions",
        results,
        vec![(0, 0), (1, expected), (2, flushed)],
    );
    check("syndrome in the CQE", cqes[1].vendor_err, syndrome.bits());
    let query = s.host.query(s.qpn);
    check(
        "states",
        (query.sq_state, query.rq_state),
        (state::ERR, state::ERR),
    );
}

fn nak_invalid_request(bench: &mut Bench) {
    let nak = Syndrome::Nak(NakCode::InvalidRequest);
    answered(bench, nak, status::REM_INV_REQ_ERR);
}

fn nak_remote_access(bench: &mut Bench) {
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    answered(bench, nak, status::REM_ACCESS_ERR);
}

fn nak_remote_operational(bench: &mut Bench) {
    let nak = Syndrome::Nak(NakCode::RemoteOperational);
    answered(bench, nak, status::REM_OP_ERR);
}

fn nak_invalid_rd_request(bench: &mut Bench) {
    let nak = Syndrome::Nak(NakCode::InvalidRdRequest);
    answered(bench, nak, status::BAD_RESP_ERR);
}

fn nak_of_reserved_code(bench: &mut Bench) {
    for bits in [0x65, 0x7f] {
        answered(bench, Syndrome::Reserved(bits), status::BAD_RESP_ERR);
    }
}

fn syndrome_reserved(bench: &mut Bench) {
    for bits in [0x40, 0x5f] {
        answered(bench, Syndrome::Reserved(bits), status::BAD_RESP_ERR);
    }
}

fn nak_acknowledges_before(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let nak = s.response(Opcode::RcAck, psn + 2, Syndrome::Nak(NakCode::PsnSequence));
    let again: Vec<_> = s.send(&nak, &[]).iter().map(Sent::psn).collect();
    check("completions", s.results(), vec![(0, 0), (1, 0)]);
    check("sent again", again, vec![psn + 2]);
}

fn nak_psn_sequence(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    let again = s.counts("packet_seq_err", 1, |s| s.send(&nak, &[]));
    let again: Vec<_> = again.iter().map(Sent::psn).collect();
    check("sent again", again, vec![psn, psn + 1, psn + 2]);
    check("completions", s.results(), vec![]);
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    s.send(&ack, &[]);
    check("completions", s.results(), vec![(0, 0), (1, 0), (2, 0)]);
}

fn nak_psn_sequence_in_a_message(bench: &mut Bench) {
    let mut s = bench.script(options());
    let mr = s.target;
    s.host
        .write(mr.addr, &ferroce_sim::testhost::pattern(4096, 3));
    let sent = s.post(&Work::write(&[mr.sge(3, 3 * MTU as u32 + 7)], &mr, 0));
    check("packets", sent.len(), 4);
    let nak = Syndrome::Nak(NakCode::PsnSequence);
    let nak = s.response(Opcode::RcAck, sent[1].psn(), nak);
    let again = s.send(&nak, &[]);
    check("packets sent again", again.len(), 3);
    for (again, first) in again.iter().zip(&sent[1..]) {
        let what = format!("payload at PSN {:#x}", first.psn());
        super::check_bytes(&what, &again.payload, &first.payload);
        check("PSN", again.psn(), first.psn());
        check("opcode", again.opcode(), first.opcode());
        check("extension headers", again.headers.ext, first.headers.ext);
    }
}

fn nak_psn_sequence_old(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let ack = s.response(Opcode::RcAck, psn + 1, Syndrome::ACK);
    s.send(&ack, &[]);
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::PsnSequence));
    let sent = s.counts("rx_ghost_acks", 1, |s| s.send(&nak, &[]));
    check("sent for it", sent.len(), 0);
}

fn nak_of_a_middle(bench: &mut Bench) {
    let mut s = bench.script(options());
    let mr = s.target;
    let work = Work::write(&[mr.sge(0, 3000)], &mr, 0);
    let sent = s.post_all(&[Work::send(&[]), work]);
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    let nak = s.response(Opcode::RcAck, sent[2].psn(), nak);
    s.send(&nak, &[]);
    let failed = (1, status::REM_ACCESS_ERR);
    check("completions", s.results(), vec![(0, 0), failed]);
}

fn nak_stops_the_queue(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let nak = s.response(Opcode::RcAck, psn, Syndrome::Nak(NakCode::RemoteAccess));
    s.send(&nak, &[]);
    check("CQEs", s.cqes().len(), 3);
    let ack = s.response(Opcode::RcAck, psn + 2, Syndrome::ACK);
    check("sent for an ACK", s.send(&ack, &[]).len(), 0);
    check("sent when posted", s.post(&Work::send(&[])).len(), 0);
    let flushed = (3, status::WR_FLUSH_ERR);
    check("completions", s.results(), vec![flushed]);
}

fn response_of_wrong_pkey(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    for pkey in [0x8001, 0x0000] {
        let mut ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
        ack.bth.pkey = pkey;
        s.counts("rx_pkey_violations", 1, |s| s.send(&ack, &[]));
    }
    check("completions", s.results(), vec![]);
}

fn response_of_wrong_class(bench: &mut Bench) {
    let mut s = bench.script(options());
    let psn = three_sends(&mut s);
    let mut frame = super::script::build(&s.response(Opcode::RcAck, psn, Syndrome::ACK), &[]);
    // Opcode 0x31 would be the Acknowledge of UC, which has none.
    frame[42] |= 0x20;
    ferroce_proto::wire::icrc::seal(&mut frame[14..]).expect("whole");
    s.counts("rx_malformed", 1, |s| s.give(&frame));
    check("completions", s.results(), vec![]);
}

/// Responses that have an AETH and are no acknowledgement, with what they answer and bring.
fn responses(s: &Script) -> [(Opcode, Work, Vec<u8>); 3] {
    let read = |len| Work::read(&[s.target.sge(0, len)], &s.target, 0);
    let atomic = Work::fetch_add(s.target.sge(0, 8), &s.target, 0, 1);
    [
        (Opcode::RcReadResponseOnly, read(8), vec![5; 8]),
        (
            Opcode::RcReadResponseFirst,
            read(2 * MTU as u32),
            vec![5; MTU],
        ),
        (Opcode::RcAtomicAck, atomic, vec![]),
    ]
}

/// qib reads the syndrome of every AETH so; rxe fails the request whatever it is.
fn nak_in_a_response(bench: &mut Bench) {
    let mut s = bench.script(options());
    for (syndrome, expected) in [
        (
            Syndrome::Nak(NakCode::InvalidRequest),
            status::REM_INV_REQ_ERR,
        ),
        (Syndrome::Nak(NakCode::RemoteAccess), status::REM_ACCESS_ERR),
        (
            Syndrome::Nak(NakCode::RemoteOperational),
            status::REM_OP_ERR,
        ),
        (Syndrome::Reserved(0x45), status::BAD_RESP_ERR),
    ] {
        for (opcode, work, data) in responses(&s) {
            s.reopen(|_| {});
            let before = vec![7; 2 * MTU];
            s.host.write(s.target.addr, &before);
            let psn = s.post(&work)[0].psn();
            let response = s.response(opcode, psn, syndrome);
            check("packets sent for it", s.send(&response, &data).len(), 0);
            let what = format!("completions, {syndrome:?} in {opcode:?}");
            check(&what, s.results(), vec![(0, expected)]);
            check_bytes("the buffer", &s.contents()[..2 * MTU], &before);
        }
    }
}

fn retry_in_a_response(bench: &mut Bench) {
    let mut s = bench.script(options());
    let sequence = Syndrome::Nak(NakCode::PsnSequence);
    for (syndrome, counter, at_once) in [
        (sequence, "packet_seq_err", 1),
        (Syndrome::RnrNak { timer: 1 }, "rnr_nak_received", 0),
    ] {
        for (opcode, work, data) in responses(&s) {
            s.reopen(|_| {});
            let psn = s.post(&work)[0].psn();
            let response = s.response(opcode, psn, syndrome);
            let mut sent = s.counts(counter, 1, |s| s.send(&response, &data));
            let what = format!("packets at once, {syndrome:?} in {opcode:?}");
            check(&what, sent.len(), at_once);
            sent.extend(s.run(5_000));
            let again: Vec<_> = sent.iter().map(Sent::psn).collect();
            check("sent again", again, vec![psn]);
            check("completions", s.results(), vec![]);
        }
    }
}
