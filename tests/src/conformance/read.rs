//! RC RDMA READ.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::wire::{Mtu, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU};
use super::script::{PEER_PSN, syndromes};
use super::{LONG, READ, cases, check, check_bytes};

cases! {
    read_of_no_bytes, READ, "IB1 9.7.4.1.5", "A READ of no bytes is answered by one Only response; its key and address are not checked.";
    read_mtu_256, READ, "IB1 9.7.2", "At a path MTU of 256 bytes a READ takes a PSN for each response packet, at least one.";
    read_mtu_512, READ, "IB1 9.7.2", "The same at a path MTU of 512 bytes.";
    read_mtu_1024, READ, "IB1 9.7.2", "The same at a path MTU of 1024 bytes.";
    read_mtu_2048, READ, "IB1 9.7.2", "The same at a path MTU of 2048 bytes.";
    read_mtu_4096, READ, "IB1 9.7.2", "The same at a path MTU of 4096 bytes.";
    read_responses, READ, "IB1 9.7.5.1", "Responses are First, Middle, Last or Only with the PSNs of the request; all but Middle have an AETH.";
    read_scatters_two_pieces, READ, "IB1 10.7", "The data fills the pieces of the scatter list of the READ in order.";
    read_scatters_sixteen_pieces, LONG | READ, "IB1 10.7", "A READ may have a scatter list of up to 16 pieces.";
    reads_under_way_within_max_rd_atomic, READ, "IB1 9.7.4.1", "A requester has no more READs and atomics under way than max_rd_atomic.";
    reads_over_max_dest_rd_atomic, READ, "IB1 9.7.4.1", "READs beyond max_dest_rd_atomic that wait for their answer are an invalid request.";
    read_without_resources, READ, "IB1 10.2", "A READ on a queue pair with max_rd_atomic 0 is a local error and is not sent.";
    read_longer_than_2_31, READ, "IB1 9.7.4.1", "A READ of more than 2^31 bytes is an invalid request.";
    read_not_permitted, READ, "IB1 9.7.4.1", "A READ on a queue pair that does not permit READs is an invalid request.";
    read_rights, READ, "IB1 9.7.4.1.5", "A READ of a region without the right is a remote access error.";
    read_bounds, READ, "IB1 9.7.4.1.5", "A READ that starts before, ends behind or wraps round a region is a remote access error.";
    read_data_needs_local_write, READ, "IB1 10.7", "Data for a region without local write is a local protection error; nothing is written.";
    read_region_gone, READ, "IB1 10.6", "A region deregistered while it is read is not read any more: remote access error.";
    read_fence, READ, "IB1 10.8", "A fenced request starts when the READs before it have completed.";
    read_between_sends, READ, "IB1 9.5", "Requests behind a READ are executed, and complete after it.";
    reads_beside_writes, READ, "IB1 9.7.5.1", "READs of one queue pair and WRITEs of another are answered at the same time, each request once.";
    read_answer_acknowledges, READ, "IB1 9.7.5.1", "A READ response acknowledges the requests before it.";
}

fn options(mtu: Mtu) -> QpOptions {
    QpOptions {
        mtu,
        ..QpOptions::default()
    }
}

fn at_mtu(bench: &mut Bench, mtu: Mtu) {
    let mut c = bench.connect(options(mtu));
    let m = mtu.bytes();
    let data = pattern(4 * m, 3);
    let origin = c.b.create_mr(&data, Rights::ALL);
    let sink = c.a.create_mr(&vec![0; 4 * m], Rights::ALL);
    let mut psn = c.query(Side::A).sq_psn;
    for (len, offset) in [(1, 0), (m - 1, 5), (m, 1), (m + 1, 2), (3 * m + 2, 3)] {
        let what = format!("{len} bytes at MTU {m} from offset {offset}");
        c.sent.clear();
        c.a.write(sink.addr, &vec![0; 4 * m]);
        let work = Work::read(&[sink.sge(1, len as u32)], &origin, offset as u64);
        let cqe = c.execute(&work);
        check(
            &what,
            (cqe.opcode, cqe.byte_len as usize),
            (opcode::READ, len),
        );
        let mut expected = vec![0];
        expected.extend(&data[offset..offset + len]);
        expected.resize(4 * m, 0);
        check_bytes(&what, &c.a.contents(&sink), &expected);
        check(&format!("{what}: PSN"), c.packets(Side::A)[0].psn(), psn);
        psn += len.div_ceil(m) as u32;
        check(&format!("{what}: PSNs taken"), c.query(Side::A).sq_psn, psn);
        check(
            &format!("{what}: PSN expected"),
            c.query(Side::B).rq_psn,
            psn,
        );
    }
}

fn read_mtu_256(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu256);
}

fn read_mtu_512(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu512);
}

fn read_mtu_1024(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu1024);
}

fn read_mtu_2048(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu2048);
}

fn read_mtu_4096(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu4096);
}

fn read_of_no_bytes(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let nowhere = Mr {
        addr: 0,
        len: 0,
        key: 0xdead_beef,
    };
    let cqe = c.execute(&Work::read(&[], &nowhere, 5));
    check("CQE", (cqe.opcode, cqe.byte_len), (opcode::READ, 0));
    let only = Opcode::RcReadResponseOnly;
    check("response", c.opcodes(Side::B), vec![only]);
    check("messages completed", c.query(Side::B).msn, 1);
}

fn read_responses(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let data = pattern(4096, 5);
    s.host.write(s.target.addr, &data);
    use Opcode::{
        RcReadResponseFirst as First, RcReadResponseLast as Last, RcReadResponseMiddle as Middle,
        RcReadResponseOnly as Only,
    };
    let cases: [(usize, &[Opcode]); 4] = [
        (100, &[Only]),
        (1024, &[Only]),
        (1025, &[First, Last]),
        (3500, &[First, Middle, Middle, Last]),
    ];
    for (n, (len, opcodes)) in cases.into_iter().enumerate() {
        let what = format!("{len} bytes");
        let mut request = s.request(Opcode::RcReadRequest);
        if let Some(reth) = &mut request.ext.reth {
            (reth.va, reth.dma_len) = (s.target.addr + 7, len as u32);
        }
        let answers = s.send(&request, &[]);
        let got: Vec<_> = answers.iter().map(|p| p.opcode()).collect();
        check(&what, got, opcodes.to_vec());
        for (i, answer) in answers.iter().enumerate() {
            let psn = s.psn.value() + i as u32;
            check(&format!("{what}: PSN of response {i}"), answer.psn(), psn);
            let end = len.min((i + 1) * MTU);
            let expected = &data[7 + i * MTU..7 + end];
            check_bytes(&format!("{what}: response {i}"), &answer.payload, expected);
            if opcodes[i] != Middle {
                let aeth = answer.aeth();
                let expected = (Syndrome::ACK, n as u32 + 1);
                check(
                    &format!("{what}: AETH {i}"),
                    (aeth.syndrome, aeth.msn),
                    expected,
                );
            }
        }
        s.psn = s.psn.add(opcodes.len() as u32);
    }
}

fn read_scatters_two_pieces(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let origin = c.b.create_mr(&pattern(3000, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 4096], Rights::ALL);
    c.execute(&Work::read(
        &[sink.sge(2000, 1300), sink.sge(3, 1700)],
        &origin,
        0,
    ));
    let mut data = c.a.read(sink.addr + 2000, 1300);
    data.extend(c.a.read(sink.addr + 3, 1700));
    check_bytes("the two pieces", &data, &pattern(3000, 3));
}

fn read_scatters_sixteen_pieces(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let origin = c.b.create_mr(&pattern(3000, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 4096], Rights::ALL);
    for n in [3, 7, 16] {
        c.a.write(sink.addr, &[0; 4096]);
        let list: Vec<_> = (0..n).map(|i| sink.sge(251 * i + 1, 183)).collect();
        c.execute(&Work::read(&list, &origin, 0));
        let mut expected = vec![0; 4096];
        for i in 0..n as usize {
            expected[251 * i + 1..][..183].copy_from_slice(&pattern(3000, 3)[183 * i..][..183]);
        }
        check_bytes(&format!("{n} pieces"), &c.a.contents(&sink), &expected);
    }
}

fn reads_under_way_within_max_rd_atomic(bench: &mut Bench) {
    for limit in [1, 2, 4] {
        let mut s = bench.script(QpOptions {
            max_rd_atomic: limit,
            timeout: 0,
            ..QpOptions::default()
        });
        let sink = s.target;
        let works: Vec<_> = (0..6)
            .map(|i| Work::read(&[sink.sge(8 * i, 8)], &sink, 0))
            .collect();
        let mut sent = s.post_all(&works).len();
        check(&format!("sent at once, limit {limit}"), sent, limit.into());
        for i in 0..6 {
            let psn = s.host.peer(s.qpn).psn + i;
            let answer = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
            sent += s.send(&answer, &[i as u8; 8]).len();
            let expected = 6.min(limit as usize + i as usize + 1);
            check(
                &format!("sent after {} answers, limit {limit}", i + 1),
                sent,
                expected,
            );
        }
        check("completions", s.cqes().len(), 6);
    }
}

fn reads_over_max_dest_rd_atomic(bench: &mut Bench) {
    let responder = QpOptions {
        max_rd_atomic: 1,
        ..QpOptions::default()
    };
    let mut c = bench.connect_each(QpOptions::default(), responder);
    let origin = c.b.create_mr(&pattern(32768, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 32768], Rights::ALL);
    c.post_all(&[
        Work::read(&[sink.all()], &origin, 0),
        Work::read(&[sink.sge(0, 8)], &origin, 0),
    ]);
    c.succeeds(Side::A, 0);
    c.ends(Side::A, 1, status::REM_INV_REQ_ERR);
}

fn read_without_resources(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        max_rd_atomic: 0,
        ..QpOptions::default()
    });
    let sink = c.a.create_mr(&[0; 8], Rights::ALL);
    let index = c.post(&Work::read(&[sink.all()], &sink, 0));
    c.ends(Side::A, index, status::LOC_QP_OP_ERR);
    check("packets sent", c.packets(Side::A).len(), 0);
}

/// The syndrome a READ draws with its RETH changed; the responder is in error then.
fn refused(bench: &mut Bench, rights: Rights, change: fn(&mut u64, &mut u32), nak: NakCode) {
    let mut s = bench.script(QpOptions::default());
    let region = s.host.create_mr(&[0; 64], rights);
    let mut request = s.request(Opcode::RcReadRequest);
    if let Some(reth) = &mut request.ext.reth {
        (reth.va, reth.rkey) = (region.addr, region.key);
        change(&mut reth.va, &mut reth.dma_len);
    }
    let answers = s.send(&request, &[]);
    check("answer", syndromes(&answers), vec![Syndrome::Nak(nak)]);
    check("PSN of the NAK", answers[0].psn(), PEER_PSN);
    s.in_error("after the NAK");
}

fn read_longer_than_2_31(bench: &mut Bench) {
    refused(
        bench,
        Rights::ALL,
        |_, len| *len = (1 << 31) + 1,
        NakCode::InvalidRequest,
    );
}

fn read_not_permitted(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.remote_read = false);
    let answers = s.send(&s.request(Opcode::RcReadRequest), &[]);
    let nak = Syndrome::Nak(NakCode::InvalidRequest);
    check("answer", syndromes(&answers), vec![nak]);
}

fn read_rights(bench: &mut Bench) {
    let rights = Rights {
        remote_read: false,
        ..Rights::ALL
    };
    refused(bench, rights, |_, _| {}, NakCode::RemoteAccess);
}

fn read_bounds(bench: &mut Bench) {
    let changes: [fn(&mut u64, &mut u32); 4] = [
        |va, _| *va -= 1,
        |va, _| *va += 57,
        |_, len| *len = 65,
        |va, _| *va = u64::MAX - 3,
    ];
    for change in changes {
        refused(bench, Rights::ALL, change, NakCode::RemoteAccess);
    }
}

fn read_data_needs_local_write(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let origin = c.b.create_mr(&pattern(64, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 64], Rights::NONE);
    let index = c.post(&Work::read(&[sink.all()], &origin, 0));
    c.ends(Side::A, index, status::LOC_PROT_ERR);
    check_bytes("the region", &c.a.contents(&sink), &[0; 64]);
}

fn read_region_gone(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let origin = c.b.create_mr(&pattern(1 << 18, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 1 << 18], Rights::ALL);
    let index = c.post(&Work::read(&[sink.all()], &origin, 0));
    c.run(1500);
    c.b.deregister(&origin);
    // From here on any access to it is a fault.
    c.b.memory.unmap(origin.addr);
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
}

fn read_fence(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mr = s.target;
    let mut fenced = Work::write(&[mr.sge(0, 8)], &mr, 0);
    fenced.head.fence = true;
    let sent = s.post_all(&[Work::read(&[mr.sge(0, 8)], &mr, 0), fenced]);
    let opcodes: Vec<_> = sent.iter().map(|p| p.opcode()).collect();
    check("sent at first", opcodes, vec![Opcode::RcReadRequest]);
    let psn = sent[0].psn();
    let answer = s.response(Opcode::RcReadResponseOnly, psn, Syndrome::ACK);
    let sent = s.send(&answer, &[9; 8]);
    let opcodes: Vec<_> = sent.iter().map(|p| p.opcode()).collect();
    check("sent then", opcodes, vec![Opcode::RcWriteOnly]);
    check_bytes("what the READ brought", &sent[0].payload, &[9; 8]);
}

fn read_between_sends(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let origin = c.b.create_mr(&pattern(3000, 3), Rights::ALL);
    let sink = c.a.create_mr(&[0; 3000], Rights::ALL);
    let data = c.b.create_mr(&[0; 16], Rights::ALL);
    for i in 0..2 {
        c.recv(&[data.sge(8 * i, 8)]);
    }
    c.post_all(&[
        Work::send(&[]).inline(&[1; 8]),
        Work::read(&[sink.all()], &origin, 0),
        Work::send(&[]).inline(&[2; 8]),
    ]);
    for i in 0..3 {
        c.succeeds(Side::A, i);
    }
    check_bytes("read", &c.a.contents(&sink), &pattern(3000, 3));
    let sent = [[1; 8], [2; 8]].concat();
    check_bytes("received", &c.b.contents(&data), &sent);
}

fn reads_beside_writes(bench: &mut Bench) {
    let options = QpOptions {
        timeout: 0,
        max_rd_atomic: 16,
        ..QpOptions::default()
    };
    let mut c = bench.connect(options);
    let (second, _) = c.pair.connect(options, options);
    let first = c.qa;
    let target = c.b.create_mr(&pattern(256, 1), Rights::ALL);
    let local = c.a.create_mr(&[0; 256], Rights::ALL);
    for round in 0..16 {
        for i in 0..16 {
            // Lengths let the two drift past each other.
            let read = Work::read(&[local.sge(0, 1 + (7 * i + round) % 64)], &target, 0);
            c.a.post_send(first, &read);
            let bytes = vec![1; 1 + (i % 24) as usize];
            c.a.post_send(second, &Work::write(&[], &target, 128).inline(&bytes));
        }
        for _ in 0..32 {
            check("status", c.wait(Side::A).status, status::SUCCESS);
        }
    }
    check("sent again", c.a.stat("retransmissions"), 0);
}

fn read_answer_acknowledges(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mr = s.target;
    let sent = s.post_all(&[Work::send(&[]), Work::read(&[mr.sge(0, 8)], &mr, 0)]);
    check("packets", sent.len(), 2);
    let answer = s.response(Opcode::RcReadResponseOnly, sent[1].psn(), Syndrome::ACK);
    s.send(&answer, &[9; 8]);
    check("completions", s.results(), vec![(0, 0), (1, 0)]);
}
