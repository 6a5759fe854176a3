//! Answers to a requester, forged: acknowledgements, NAKs, responses to another question.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, Extensions, Ip, Ipv4Repr, NakCode, Opcode, Syndrome,
};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work};

use crate::forger::build;
use crate::{assert_status, connected};

/// Plays B to A: answers A's only SEND with a forged AETH at `psn` behind the SEND's own.
fn answer(pair: &mut Pair, qa: u32, opcode: Opcode, syndrome: Syndrome, behind: u32) {
    let request = pair.packets(Side::A).pop().unwrap().headers;
    let (Ip::V4(ip), mut headers) = (request.ip, request) else {
        panic!("IPv4")
    };
    headers.ip = Ip::V4(Ipv4Repr {
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
            .then_some(AtomicAckEthRepr { original: 0 }),
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
