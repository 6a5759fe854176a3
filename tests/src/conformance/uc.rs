//! Unreliable connection.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::wire::Opcode;
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU, QUIET};
use super::script::Script;
use super::{UC, cases, check, check_bytes};

cases! {
    uc_send, UC, "IB1 9.8.2", "SEND works at every length with opcodes of UC and completes when it has left.";
    uc_write, UC, "IB1 9.8.2", "WRITE works with opcodes of UC, with immediate data too.";
    uc_is_not_answered, UC, "IB1 9.8.2", "Nothing is ever answered, AckReq or not.";
    uc_loss_costs_its_message, UC, "IB1 9.8.2", "A packet lost costs its message only.";
    uc_gap_drops_the_rest, UC, "IB1 9.8.2", "After a gap everything up to the next First or Only is dropped.";
    uc_wqe_is_used_again, UC, "IB1 9.8.2", "The receive WQE of a dropped message receives the next one.";
    uc_first_ends_a_message, UC, "IB1 9.8.2", "A First or Only inside a message drops that message and starts its own.";
    uc_any_psn_starts, UC, "IB1 9.8.2", "A First or Only is taken whatever its PSN; the next follows it.";
    uc_without_a_wqe, UC, "IB1 9.8.2", "A SEND without a receive WQE is dropped silently; the queue pair goes on.";
    uc_bad_length, UC, "IB1 9.8.2", "A First or Middle that is not of the path MTU drops its message.";
    uc_write_refused, UC, "IB1 9.8.2", "A WRITE without the right or beyond its region is dropped silently; nothing is written.";
    uc_write_region_gone, UC, "IB1 11.6.2", "A WRITE whose region goes away before its last packet is dropped; with immediate its receive WQE completes with a local access error. The queue pair goes on.";
    uc_write_sum, UC, "IB1 9.8.2", "A WRITE whose packets disagree with its RETH is dropped.";
    uc_read_does_not_exist, UC, "IB1 9.8", "READ and atomics are no operations of UC: a local error.";
    uc_error_stops_the_send_queue, UC, "IB1 10.3.1", "A local error puts the send queue into SQE; the receive queue goes on, and RTS starts it again.";
    uc_buffer_too_short, UC, "IB1 9.9.3", "A message longer than its receive buffer completes it with a local length error; the queue pair receives the next.";
    uc_buffer_too_short_and_loss, UC, "IB1 9.8.2", "When such a message loses its end, its receive WQE is that of the next one.";
}

fn options() -> QpOptions {
    QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    }
}

fn uc_send(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let source = c.a.create_mr(&pattern(4096, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    for len in [0, 1, 1023, 1024, 1025, 3500] {
        c.b.write(target.addr, &[0; 4096]);
        c.sent.clear();
        let taken = c.recv(&[target.all()]);
        c.execute(&Work::send(&[source.sge(0, len)]));
        let cqe = c.succeeds(Side::B, taken);
        check("CQE", (cqe.opcode, cqe.byte_len), (opcode::RECV, len));
        let got = c.b.read(target.addr, len as usize);
        check_bytes("data", &got, &pattern(4096, 1)[..len as usize]);
        let first = c.opcodes(Side::A)[0];
        let expected = if len > 1024 {
            Opcode::UcSendFirst
        } else {
            Opcode::UcSendOnly
        };
        check("opcode", first, expected);
    }
}

fn uc_write(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let source = c.a.create_mr(&pattern(3000, 7), Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    c.execute(&Work::write(&[source.all()], &target, 1));
    let taken = c.recv(&[]);
    c.execute(&Work::write(&[source.sge(0, 8)], &target, 4000).imm(9));
    let cqe = c.succeeds(Side::B, taken);
    let got = (cqe.opcode, cqe.imm, cqe.byte_len);
    check("CQE", got, (opcode::RECV_WRITE_IMM, 9, 8));
    let mut expected = vec![0; 4096];
    expected[1..3001].copy_from_slice(&pattern(3000, 7));
    expected[4000..4008].copy_from_slice(&pattern(3000, 7)[..8]);
    check_bytes("the target", &c.b.contents(&target), &expected);
    for counter in ["rx_acks", "packet_seq_err", "remote_errors"] {
        check(counter, c.a.stat(counter), 0);
    }
}

fn uc_is_not_answered(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for opcode in [
        Opcode::UcSendOnly,
        Opcode::UcWriteOnly,
        Opcode::UcSendOnly,
        Opcode::UcSendLast,
    ] {
        let request = s.request(opcode);
        check("AckReq", request.bth.ack_req, true);
        check(
            &format!("answers to {opcode:?}"),
            s.next(&request, &[1; 8]).len(),
            0,
        );
    }
}

/// Five SENDs of three packets of which the link loses some; the first bytes of those that arrive.
fn five(bench: &mut Bench, lost: &[usize]) -> Vec<u8> {
    let mut c = bench.connect(options());
    let target = c.b.create_mr(&[0; 5 * 4096], Rights::ALL);
    for i in 0..5 {
        c.recv(&[target.sge(4096 * i, 4096)]);
    }
    c.lose(Side::A, lost);
    for i in 0..5 {
        let source = c.a.create_mr(&pattern(3000, i), Rights::NONE);
        c.execute(&Work::send(&[source.all()]));
    }
    let cqes = c.drain(Side::B);
    let mut arrived = Vec::new();
    for (i, cqe) in cqes.iter().enumerate() {
        check(
            "CQE",
            (cqe.wqe_index, cqe.status, cqe.byte_len),
            (i as u16, 0, 3000),
        );
        let data = c.b.read(target.addr + 4096 * i as u64, 3000);
        check_bytes("data", &data, &pattern(3000, data[0]));
        arrived.push(data[0]);
    }
    check("answers", c.packets(Side::B).len(), 0);
    arrived
}

fn uc_loss_costs_its_message(bench: &mut Bench) {
    check("nothing lost", five(bench, &[]), vec![0, 1, 2, 3, 4]);
    check("a First", five(bench, &[3]), vec![0, 2, 3, 4]);
    check("a Middle", five(bench, &[7]), vec![0, 1, 3, 4]);
    check("a Last", five(bench, &[2]), vec![1, 2, 3, 4]);
    check("three", five(bench, &[0, 5, 13]), vec![2, 3]);
}

/// Hands over SEND packets of (opcode, steps of the PSN, payload bytes); CQEs of the responder.
fn give(s: &mut Script, packets: &[(Opcode, u32, usize)]) -> Vec<(u16, u8)> {
    for (i, (opcode, step, len)) in packets.iter().enumerate() {
        s.psn = s.psn.add(*step);
        let request = s.write(*opcode, 2000);
        let answers = s.send(&request, &vec![i as u8 + 1; *len]);
        check("answers", answers.len(), 0);
    }
    s.psn = s.psn.next();
    s.results()
}

use Opcode::{
    UcSendFirst as First, UcSendLast as Last, UcSendMiddle as Middle, UcSendOnly as Only,
};

fn uc_gap_drops_the_rest(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    let gap = [
        (First, 0, MTU),
        (Middle, 2, MTU),
        (Middle, 1, MTU),
        (Last, 1, 8),
    ];
    check("completions", give(&mut s, &gap), vec![]);
    check("completions", give(&mut s, &[(Only, 0, 8)]), vec![(0, 0)]);
}

fn uc_wqe_is_used_again(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    s.recv();
    let packets = [
        (First, 0, MTU),
        (Last, 2, 8),
        (First, 1, MTU),
        (First, 3, MTU),
        (Last, 1, 100),
    ];
    check("completions", give(&mut s, &packets), vec![(0, 0)]);
    check_bytes(
        "data",
        &s.contents()[..MTU + 100],
        &[[4; MTU].as_slice(), &[5; 100]].concat(),
    );
    check("WQEs taken", s.host.query(s.qpn).rq_index, 1);
    check("completions", give(&mut s, &[(Only, 0, 8)]), vec![(1, 0)]);
}

fn uc_first_ends_a_message(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    s.recv();
    let packets = [(First, 0, MTU), (First, 1, MTU), (Last, 1, 8)];
    check("completions", give(&mut s, &packets), vec![(0, 0)]);
    let packets = [(First, 0, MTU), (Only, 1, 8)];
    check("completions", give(&mut s, &packets), vec![(1, 0)]);
}

fn uc_any_psn_starts(bench: &mut Bench) {
    let mut s = bench.script(options());
    for (i, step) in [5, 1000, 0x80_0000, 0xff_fff0].into_iter().enumerate() {
        s.recv();
        let results = give(&mut s, &[(Only, step, 8)]);
        check(
            &format!("PSN {step:#x} further"),
            results,
            vec![(i as u16, 0)],
        );
        check("PSN expected", s.host.query(s.qpn).rq_psn, s.psn.value());
    }
}

fn uc_without_a_wqe(bench: &mut Bench) {
    let mut s = bench.script(options());
    check("completions", give(&mut s, &[(Only, 0, 8)]), vec![]);
    check(
        "completions",
        give(&mut s, &[(First, 0, MTU), (Last, 1, 8)]),
        vec![],
    );
    s.recv();
    check("completions", give(&mut s, &[(Only, 0, 8)]), vec![(0, 0)]);
}

fn uc_bad_length(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for packets in [
        [(First, 0, MTU - 4), (Last, 1, 8)],
        [(First, 0, MTU), (Middle, 1, 8)],
        [(First, 0, MTU), (Last, 1, 0)],
        [(First, 0, MTU), (Last, 1, MTU + 4)],
    ] {
        let what = format!("{packets:?}");
        check(&what, give(&mut s, &packets), vec![]);
    }
    check("completions", give(&mut s, &[(Only, 0, 8)]), vec![(0, 0)]);
}

fn uc_write_refused(bench: &mut Bench) {
    let mut s = bench.script(options());
    let readable = s.host.create_mr(&[0; 64], Rights::NONE);
    let target = s.target;
    for (addr, key) in [
        (readable.addr, readable.key),
        (target.addr, target.key ^ 1),
        (target.addr + 4089, target.key),
        (target.addr - 1, target.key),
    ] {
        let mut request = s.request(Opcode::UcWriteOnly);
        if let Some(reth) = &mut request.ext.reth {
            (reth.va, reth.rkey) = (addr, key);
        }
        let answers = s.counts("access_errors", 1, |s| s.next(&request, &[1; 8]));
        check("answers", answers.len(), 0);
    }
    s.untouched("after WRITEs that were refused");
    check_bytes("the other region", &s.host.contents(&readable), &[0; 64]);
}

fn uc_write_region_gone(bench: &mut Bench) {
    let ends: [(&[Opcode], &[(u16, u8)]); 4] = [
        (&[Opcode::UcWriteLastImm], &[(0, status::LOC_ACCESS_ERR)]),
        (
            &[Opcode::UcWriteMiddle, Opcode::UcWriteLastImm],
            &[(0, status::LOC_ACCESS_ERR)],
        ),
        (&[Opcode::UcWriteMiddle, Opcode::UcWriteLast], &[]),
        (&[Opcode::UcWriteMiddle], &[]),
    ];
    for (rest, expected) in ends {
        let mut s = bench.script(options());
        s.recv();
        s.recv();
        let gone = s.host.create_mr(&[0; 4096], Rights::ALL);
        let middles = rest
            .iter()
            .filter(|opcode| **opcode == Opcode::UcWriteMiddle);
        let len = MTU * (1 + middles.count()) + 8;
        let mut first = s.write(Opcode::UcWriteFirst, len as u32);
        let reth = first.ext.reth.as_mut().expect("a First");
        (reth.va, reth.rkey) = (gone.addr, gone.key);
        s.next(&first, &[1; MTU]);
        s.host.deregister(&gone);
        s.counts("access_errors", 1, |s| {
            for opcode in rest {
                let payload = if *opcode == Opcode::UcWriteMiddle {
                    MTU
                } else {
                    8
                };
                s.next(&s.request(*opcode), &vec![2; payload]);
            }
            check("answers", s.run(QUIET).len(), 0);
        });
        check("completions", s.results(), expected.to_vec());
        let taken_back = s.host.contents(&gone)[MTU..].to_vec();
        check_bytes(
            "what was taken back",
            &taken_back,
            &vec![0; taken_back.len()],
        );
        let next = (expected.len() as u16, 0);
        check("state", s.host.query(s.qpn).rq_state, state::RTS);
        check("the next", give(&mut s, &[(Only, 0, 8)]), vec![next]);
    }
}

fn uc_write_sum(bench: &mut Bench) {
    let mut s = bench.script(options());
    let (first, last) = (Opcode::UcWriteFirst, Opcode::UcWriteLastImm);
    s.recv();
    for len in [975, 977] {
        let packets = [(first, 0, MTU), (last, 1, len)];
        check(
            &format!("Last of {len} bytes"),
            give(&mut s, &packets),
            vec![],
        );
    }
    let packets = [(first, 0, MTU), (last, 1, 976)];
    check("completions", give(&mut s, &packets), vec![(0, 0)]);
}

fn uc_read_does_not_exist(bench: &mut Bench) {
    for atomic in [false, true] {
        let mut c = bench.connect(options());
        let mr = c.a.create_mr(&[0; 8], Rights::ALL);
        let work = match atomic {
            false => Work::read(&[mr.all()], &mr, 0),
            true => Work::fetch_add(mr.all(), &mr, 0, 1),
        };
        let index = c.post(&work);
        c.ends(Side::A, index, status::LOC_QP_OP_ERR);
        check("packets", c.packets(Side::A).len(), 0);
    }
}

fn uc_error_stops_the_send_queue(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let (qa, qb) = (c.qa, c.qb);
    let nowhere = Mr {
        addr: 0,
        len: 0,
        key: 0,
    };
    let bad = c.post(&Work::read(&[], &nowhere, 0));
    let flushed = c.post(&Work::send(&[]));
    c.ends(Side::A, bad, status::LOC_QP_OP_ERR);
    c.ends(Side::A, flushed, status::WR_FLUSH_ERR);
    let query = c.query(Side::A);
    check(
        "states",
        (query.sq_state, query.rq_state),
        (state::SQE, state::RTS),
    );
    c.a.post_recv(qa, &[]);
    c.b.post_send(qb, &Work::send(&[]));
    check("received at A", c.succeeds(Side::A, 0).recv, true);
    check("sent by B", c.succeeds(Side::B, 0).recv, false);
    c.a.modify_state(qa, state::RTS);
    let taken = c.recv(&[]);
    c.execute(&Work::send(&[]));
    check("received at B", c.succeeds(Side::B, taken).recv, true);
}

fn uc_buffer_too_short(bench: &mut Bench) {
    let messages: [(u32, &[(Opcode, u32, usize)]); 4] = [
        (7, &[(Only, 0, 8)]),
        (8, &[(First, 0, MTU), (Middle, 1, MTU), (Last, 1, 8)]),
        (1030, &[(First, 0, MTU), (Middle, 1, MTU), (Last, 1, 8)]),
        (1030, &[(First, 0, MTU), (Last, 1, 8)]),
    ];
    for (room, packets) in messages {
        let mut s = bench.script(options());
        let target = s.target;
        s.host.post_recv(s.qpn, &[target.sge(0, room)]);
        s.host.post_recv(s.qpn, &[target.sge(2000, 8)]);
        let results = s.counts("invalid_request_errors", 1, |s| give(s, packets));
        check("completions", results, vec![(0, status::LOC_LEN_ERR)]);
        let past = &s.contents()[room as usize..];
        check_bytes("behind the buffer", past, &vec![0; past.len()]);
        check("state", s.host.query(s.qpn).rq_state, state::RTS);
        check("the next", give(&mut s, &[(Only, 0, 8)]), vec![(1, 0)]);
        check_bytes("its data", &s.contents()[2000..2008], &[1; 8]);
    }
}

fn uc_buffer_too_short_and_loss(bench: &mut Bench) {
    let mut s = bench.script(options());
    let target = s.target;
    s.host.post_recv(s.qpn, &[target.sge(0, 8)]);
    let packets = [(First, 0, MTU), (Last, 2, 8), (Only, 1, 8)];
    check("completions", give(&mut s, &packets), vec![(0, 0)]);
    check_bytes("the data", &s.contents()[..16], &[[3; 8], [0; 8]].concat());
}
