//! RC: negative acknowledgements a responder sends for reasons of its own.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::{RecvWqe, Sge};
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{Host, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn};
use super::script::syndromes;
use super::{RC, cases, check, check_bytes};

cases! {
    receive_buffer_too_short, RC, "IB1 9.7.4.1", "A message longer than its receive buffer is an invalid request; the receive WQE completes with a local length error.";
    receive_buffer_too_short_later, RC, "IB1 9.7.4.1", "The same when a later packet does not fit; nothing is written behind the buffer.";
    receive_wqe_of_too_many_pieces, RC, "IB1 9.7.5", "A receive WQE of more than 16 pieces is a remote operational error; it completes with a local operation error.";
    receive_wqe_longer_than_its_slots, RC, "IB1 9.7.5", "So is one whose list is longer than its slots hold, at the latest when a message reaches that far.";
    receive_piece_not_writable, RC, "IB1 9.7.5", "A scatter entry without local write is a remote operational error; the WQE completes with a local protection error.";
    receive_piece_out_of_bounds, RC, "IB1 9.7.5", "A scatter entry beyond its region is a remote operational error; nothing is written there.";
    receive_piece_of_unknown_key, RC, "IB1 9.7.5", "A scatter entry with an unknown key is a remote operational error.";
    receive_piece_wraps, RC, "IB1 9.7.5", "A scatter entry that wraps round 2^64 is a remote operational error.";
    receive_wqe_counts_by_its_list, RC, "abi wqe", "What a receive WQE holds is what its list holds, not the length beside it.";
    nak_ends_both_sides, RC, "IB1 9.9", "A NAK puts both queue pairs into error; what waits there is flushed.";
    nak_after_good_messages, RC, "IB1 9.7.5", "Messages before the refused one complete.";
}

/// A SEND of `len` bytes to a receive WQE: statuses at the two sides, the responder's first two.
fn send(c: &mut Conn, len: usize, expected: [u8; 2]) {
    let local = c.a.create_mr(&pattern(len, 1), Rights::ALL);
    c.recv(&[]);
    let index = c.post(&Work::send(&[local.all()]));
    let cqe = c.ends(Side::A, index, expected[0]);
    let syndrome = match expected[0] {
        status::REM_INV_REQ_ERR => 0x61,
        _ => 0x63,
    };
    check("syndrome in the CQE", cqe.vendor_err, syndrome);
    let statuses = c.statuses(Side::B);
    check(
        "CQEs of the responder",
        statuses,
        vec![expected[1], status::WR_FLUSH_ERR],
    );
}

fn too_short(bench: &mut Bench, len: usize, room: u32) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    c.recv(&[target.sge(0, room)]);
    send(&mut c, len, [status::REM_INV_REQ_ERR, status::LOC_LEN_ERR]);
    let past =
        c.b.read(target.addr + u64::from(room), 4096 - room as usize);
    check_bytes("behind the buffer", &past, &vec![0; 4096 - room as usize]);
}

fn receive_buffer_too_short(bench: &mut Bench) {
    too_short(bench, 500, 499);
    too_short(bench, 1, 0);
}

fn receive_buffer_too_short_later(bench: &mut Bench) {
    too_short(bench, 3000, 2999);
    too_short(bench, 3000, 1024);
}

/// A SEND to three pieces of 8 bytes and a list that claims more must be refused, also if it takes the first piece alone.
fn too_many_pieces(bench: &mut Bench, claims: &[u8]) {
    for (num_sge, len) in claims.iter().flat_map(|&claim| [(claim, 30), (claim, 8)]) {
        let mut s = bench.script(QpOptions::default());
        let head = RecvWqe {
            num_sge,
            length: 8,
            ..RecvWqe::default()
        };
        let list = [0, 8, 16].map(|at| s.target.sge(at, 8));
        s.host.post_recv_wqe(s.qpn, head, &list);
        let answers = s.send(&s.request(Opcode::RcSendOnly), &vec![1; len]);
        let nak = Syndrome::Nak(NakCode::RemoteOperational);
        let what = format!("{len} bytes, {num_sge} pieces");
        check(&what, syndromes(&answers), vec![nak]);
        check(&what, s.results(), vec![(0, status::LOC_QP_OP_ERR)]);
    }
}

fn receive_wqe_of_too_many_pieces(bench: &mut Bench) {
    too_many_pieces(bench, &[17, 32, 255]);
}

fn receive_wqe_longer_than_its_slots(bench: &mut Bench) {
    too_many_pieces(bench, &[4, 16]);
}

/// A SEND of 72 bytes to 8 good ones and a bad piece.
fn bad_piece(bench: &mut Bench, bad: impl FnOnce(&mut Host, Sge) -> Sge) {
    let mut c = bench.connect(QpOptions::default());
    let good = c.b.create_mr(&[0; 64], Rights::ALL);
    let bad = bad(&mut c.b, good.all());
    c.recv(&[good.sge(0, 8), bad]);
    send(&mut c, 72, [status::REM_OP_ERR, status::LOC_PROT_ERR]);
    check_bytes(
        "the rest of the region",
        &c.b.read(good.addr + 8, 56),
        &[0; 56],
    );
}

fn receive_piece_not_writable(bench: &mut Bench) {
    bad_piece(bench, |host, _| {
        host.create_mr(&[0; 64], Rights::NONE).all()
    });
}

fn receive_piece_out_of_bounds(bench: &mut Bench) {
    bad_piece(bench, |_, sge| Sge {
        addr: sge.addr + 1,
        ..sge
    });
    bad_piece(bench, |_, sge| Sge {
        addr: sge.addr - 1,
        ..sge
    });
}

fn receive_piece_of_unknown_key(bench: &mut Bench) {
    bad_piece(bench, |_, sge| Sge {
        lkey: 0x3_0000,
        ..sge
    });
    bad_piece(bench, |_, sge| Sge {
        lkey: sge.lkey ^ 1,
        ..sge
    });
}

fn receive_piece_wraps(bench: &mut Bench) {
    bad_piece(bench, |_, sge| Sge {
        addr: u64::MAX - 3,
        ..sge
    });
}

fn receive_wqe_counts_by_its_list(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 16], Rights::ALL);
    for length in [0, 7, 9, u32::MAX] {
        let head = RecvWqe {
            num_sge: 1,
            length,
            ..RecvWqe::default()
        };
        let qb = c.qb;
        let taken = c.b.post_recv_wqe(qb, head, &[target.sge(4, 8)]);
        c.execute(&Work::send(&[]).inline(&[7; 8]));
        c.succeeds(Side::B, taken);
    }
    let expected = [vec![0; 4], vec![7; 8], vec![0; 4]].concat();
    check_bytes("the target", &c.b.contents(&target), &expected);
}

fn nak_ends_both_sides(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (qa, qb) = (c.qa, c.qb);
    for _ in 0..2 {
        c.a.post_recv(qa, &[]);
        c.b.post_recv(qb, &[]);
    }
    let nowhere = c.b.create_mr(&[0; 8], Rights::NONE);
    c.post_all(&[
        Work::write(&[], &nowhere, 0).inline(&[1; 8]),
        Work::send(&[]).unsignaled(),
    ]);
    let flushed = status::WR_FLUSH_ERR;
    // The two queues complete independently of each other.
    let mut cqes = c.drain(Side::A);
    cqes.sort_by_key(|cqe| cqe.recv);
    let statuses: Vec<_> = cqes.iter().map(|cqe| cqe.status).collect();
    let expected = vec![status::REM_ACCESS_ERR, flushed, flushed, flushed];
    check("CQEs of the requester", statuses, expected);
    check(
        "CQEs of the responder",
        c.statuses(Side::B),
        vec![flushed, flushed],
    );
    for query in [c.query(Side::A), c.query(Side::B)] {
        let error = ferroce_proto::abi::qpc::state::ERR;
        check("states", (query.sq_state, query.rq_state), (error, error));
    }
}

fn nak_after_good_messages(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    let write = |offset| Work::write(&[], &target, offset).inline(&[5; 8]);
    c.post_all(&[write(0), write(8), write(60), write(16)]);
    c.succeeds(Side::A, 0);
    c.succeeds(Side::A, 1);
    c.ends(Side::A, 2, status::REM_ACCESS_ERR);
    c.ends(Side::A, 3, status::WR_FLUSH_ERR);
    let expected = [vec![5; 16], vec![0; 48]].concat();
    check_bytes("the target", &c.b.contents(&target), &expected);
}
