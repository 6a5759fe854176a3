//! Send WQEs that their owner rewrites after they were sent: the ring is its memory, and the card may read it again.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Work, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::Script;
use super::{RC, cases, check, check_bytes};

cases! {
    wqe_rewritten_shorter_list, RC, "IB1 9.9", "A WQE whose gather list is cut short after it was sent is sent again as it was, or fails its queue pair; another one sends its own bytes.";
    wqe_rewritten_fewer_packets, RC, "IB1 9.9", "A WQE that says fewer packets than were sent is sent again as it was, or fails its queue pair; another one completes.";
}

/// The owner rewrites the WQE of a message of 40 packets before its second half is asked for again. `beside` sends on another
/// queue pair, from a region that it is given, and says how many completions that has.
fn rewritten(
    bench: &mut Bench,
    rewrite: fn(&Mr) -> [u8; SLOT_BYTES],
    beside: fn(&mut Script, u32, &Mr) -> usize,
) {
    const PACKETS: usize = 40;
    let options = QpOptions {
        timeout: 0,
        ..QpOptions::default()
    };
    let mut s = bench.script(options);
    let mut ring = 0;
    s.reopen(|contexts| ring = contexts.sq.sq_base);
    let other = s.host.create_qp(options);
    let peer = s.peer;
    s.host.connect(other, &peer);
    let data = pattern(PACKETS * MTU, 1);
    let source = s.host.create_mr(&data, Rights::NONE);
    let other_source = s.host.create_mr(&pattern(2 * MTU, 2), Rights::NONE);
    let sent = s.post(&Work::send(&[source.all()]));
    check("packets", sent.len(), PACKETS);
    let first = sent[0].headers.bth.psn;
    s.host.write(ring, &rewrite(&source));
    let psn = first.add(PACKETS as u32 / 2).value();
    let nak = Syndrome::Nak(NakCode::PsnSequence);
    let again = s.send(&s.response(Opcode::RcAck, psn, nak), &[]);
    let count = beside(&mut s, other, &other_source);
    let (mut own, others): (Vec<_>, _) = s.cqes().into_iter().partition(|cqe| cqe.qpn == s.qpn);
    let statuses: Vec<_> = others.iter().map(|cqe| cqe.status).collect();
    check("completions beside", statuses, vec![status::SUCCESS; count]);
    for packet in &again {
        let at = packet.headers.bth.psn.since(first) as usize * MTU;
        check_bytes("what is sent again", &packet.payload, &data[at..at + MTU]);
    }
    let mut ends_as = (status::LOC_QP_OP_ERR, state::ERR);
    if let Some(last) = again.last() {
        let ack = s.response(Opcode::RcAck, last.psn(), Syndrome::ACK);
        s.send(&ack, &[]);
        own.extend(s.cqes());
        ends_as = (status::SUCCESS, state::RTS);
    }
    let statuses: Vec<_> = own.iter().map(|cqe| cqe.status).collect();
    check("completions", statuses, vec![ends_as.0]);
    check("state", s.host.query(s.qpn).sq_state, ends_as.1);
}

/// The peer's answer to a packet of a queue pair; what the card sends for it.
fn answer(s: &mut Script, qpn: u32, psn: u32, syndrome: Syndrome) -> Vec<Sent> {
    let mut headers = s.response(Opcode::RcAck, psn, syndrome);
    headers.bth.dest_qp = qpn;
    s.send(&headers, &[])
}

fn wqe_rewritten_shorter_list(bench: &mut Bench) {
    let rewrite = |mr: &Mr| {
        let mut work = Work::send(&[mr.all()]).slots()[0];
        let short = mr.sge(0, 30 * MTU as u32 + 100).emit();
        work[SLOT_BYTES / 2..][..short.len()].copy_from_slice(&short);
        work
    };
    rewritten(bench, rewrite, |s, qpn, source| {
        let pieces = [(0, 256), (256, 512), (768, 256)];
        for (at, len) in pieces {
            let piece = source.sge(at, len);
            s.host.post_send(qpn, &Work::send(&[piece]));
            let sent = s.quiet();
            check("packets beside", sent.len(), 1);
            let data = s.host.read(piece.addr, len as usize);
            check_bytes("a packet beside", &sent[0].payload, &data);
            answer(s, qpn, sent[0].psn(), Syndrome::ACK);
        }
        pieces.len()
    });
}

fn wqe_rewritten_fewer_packets(bench: &mut Bench) {
    let rewrite = |mr: &Mr| Work::send(&[mr.sge(0, 10 * MTU as u32)]).slots()[0];
    rewritten(bench, rewrite, |s, qpn, source| {
        s.host.post_send(qpn, &Work::send(&[source.all()]));
        let sent = s.quiet();
        check("packets beside", sent.len(), 2);
        let nak = Syndrome::Nak(NakCode::PsnSequence);
        let again = answer(s, qpn, sent[0].psn(), nak);
        check("packets beside again", &again, &sent);
        answer(s, qpn, sent[1].psn(), Syndrome::ACK);
        1
    });
}
