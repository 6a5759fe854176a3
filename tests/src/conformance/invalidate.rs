//! SEND with invalidate.

use ferroce_proto::abi::cmd;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::opcode;
use ferroce_proto::wire::{Headers, NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{Host, Mr, PD, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU};
use super::script::{Script, syndromes};
use super::{INVALIDATE, cases, check, check_bytes};

cases! {
    send_with_invalidate, INVALIDATE, "IB1 9.4.1", "The key in the last packet becomes invalid; the receive CQE names it.";
    invalidated_key_is_refused, INVALIDATE, "IB1 9.4.1", "Access with an invalidated key is a remote access error.";
    invalidated_key_is_refused_locally, INVALIDATE, "IB1 9.4.1", "An invalidated key is no good for local buffers either.";
    invalidate_of_unknown_key, INVALIDATE, "IB1 9.7.4.1.5", "A key that is not valid cannot be invalidated: remote access error.";
    invalidate_of_another_domain, INVALIDATE, "IB1 9.7.4.1.5", "A key of another protection domain cannot be invalidated: remote access error; it stays valid.";
    invalidate_with_a_shared_receive_queue, INVALIDATE | feature::SRQ, "IB1 10.2.9", "The key is looked up in the queue pair's protection domain; that of the shared receive queue is its list's.";
    invalidate_of_a_registered_region, INVALIDATE, "IB1 10.6.5", "A region without the right to it, as every one that is registered for good, cannot be invalidated by a peer: remote access error.";
    invalidate_refused, INVALIDATE, "IB1 9.9.3", "The receive WQE of a SEND with invalidate that is refused completes once, and not with success; those behind it are flushed, and the key stays.";
    invalidate_after_an_rnr_nak, INVALIDATE, "IB1 9.7.5.2.8", "A SEND with invalidate that draws an RNR NAK leaves its key valid; executed, the key goes.";
    invalidate_of_a_duplicate, INVALIDATE, "IB1 9.7.5.1.5", "A repeated SEND with invalidate invalidates nothing: a key that was registered again stays.";
    invalidate_after_the_data, INVALIDATE, "IB1 9.4.1", "The data of the message itself is placed before its key goes.";
}

fn invalidate(key: u32) -> Work {
    let mut work = Work::new(opcode::SEND_INV, &[]);
    work.head.imm = key;
    work
}

fn send_with_invalidate(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let victim = c.b.create_mr(&[0; 64], Rights::ALL);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    let source = c.a.create_mr(&pattern(2500, 1), Rights::NONE);
    let taken = c.recv(&[target.all()]);
    let mut work = invalidate(victim.key);
    work.list = vec![source.all()];
    c.execute(&work);
    let cqe = c.succeeds(Side::B, taken);
    check(
        "receive CQE",
        (cqe.with_inv, cqe.with_imm, cqe.imm, cqe.byte_len),
        (true, false, victim.key, 2500),
    );
    let keys: Vec<_> = c
        .packets(Side::A)
        .iter()
        .map(|p| p.headers.ext.ieth)
        .collect();
    check(
        "IETH of the packets",
        keys,
        vec![None, None, Some(victim.key)],
    );
    check_bytes("data", &c.b.read(target.addr, 2500), &pattern(2500, 1));
}

fn invalidated_key_is_refused(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let victim = c.b.create_mr(&[0; 64], Rights::ALL);
    c.recv(&[]);
    c.execute(&invalidate(victim.key));
    let index = c.post(&Work::write(&[], &victim, 0).inline(&[1; 8]));
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
    check_bytes("the region", &c.b.contents(&victim), &[0; 64]);
}

fn invalidated_key_is_refused_locally(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let victim = c.b.create_mr(&[0; 64], Rights::ALL);
    c.recv(&[]);
    c.execute(&invalidate(victim.key));
    c.wait(Side::B);
    let qb = c.qb;
    let index = c.b.post_send(qb, &Work::send(&[victim.sge(0, 8)]));
    c.ends(Side::B, index, status::LOC_PROT_ERR);
}

/// The syndrome that invalidating `key` draws, whose message has 8 bytes.
fn answer(bench: &mut Bench, key: fn(&mut Host, Mr) -> u32, expected: Syndrome) {
    let mut s = bench.script(QpOptions::default());
    let victim = s.host.create_mr(&[0; 64], Rights::ALL);
    let key = key(&mut s.host, victim);
    s.recv();
    let mut request = s.request(Opcode::RcSendOnlyInv);
    request.ext.ieth = Some(key);
    let answers = s.send(&request, &[3; 8]);
    check("answer", syndromes(&answers), vec![expected]);
}

fn invalidate_of_unknown_key(bench: &mut Bench) {
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    answer(bench, |_, mr| mr.key ^ 1, nak);
    answer(bench, |_, mr| mr.key + 0x1_0000, nak);
    answer(
        bench,
        |host, mr| {
            host.deregister(&mr);
            mr.key
        },
        nak,
    );
}

fn invalidate_of_another_domain(bench: &mut Bench) {
    answer(
        bench,
        |host, mr| {
            let other = MrCtx {
                base: mr.addr,
                last: mr.addr + 63,
                key: mr.key,
                pd: PD + 1,
                valid: true,
                ..MrCtx::default()
            };
            let write = ferroce_proto::abi::cmd::opcode::WRITE_MR;
            host.expect(write, mr.key >> 8, &other.emit());
            mr.key
        },
        Syndrome::Nak(NakCode::RemoteAccess),
    );
}

fn invalidate_with_a_shared_receive_queue(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.pd = PD + 1;
    let srqn = s.host.create_srq(3, 0, 0);
    let buffer = s.host.create_mr(&[0; 64], Rights::ALL);
    s.host.pd = PD;
    let own = s.host.create_mr(&[0; 64], Rights::ALL);
    s.reopen(|contexts| (contexts.rq.srq_valid, contexts.rq.srqn) = (true, srqn));
    let nak = Syndrome::Nak(NakCode::RemoteAccess);
    for (value, key, expected) in [(3, own.key, Syndrome::ACK), (4, buffer.key, nak)] {
        s.host.post_srq(srqn, &[buffer.sge(0, 8)]);
        let mut request = s.request(Opcode::RcSendOnlyInv);
        request.ext.ieth = Some(key);
        let answers = s.next(&request, &[value; 8]);
        check("answer", syndromes(&answers), vec![expected]);
        check_bytes("data", &s.host.contents(&buffer)[..8], &[value; 8]);
    }
}

fn invalidate_of_a_registered_region(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let rights = Rights {
        invalidate: false,
        ..Rights::ALL
    };
    let region = c.b.create_mr(&[0; 64], rights);
    c.recv(&[]);
    let index = c.post(&invalidate(region.key));
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
    c.start_again();
    let index = c.post(&Work::write(&[], &region, 0).inline(&[1; 8]));
    while c.wait(Side::A).wqe_index != index {}
    check_bytes("the region", &c.b.contents(&region)[..8], &[1; 8]);
}

/// Whether its data is placed is open; rxe completes the WQE in error too, and acknowledges the message.
fn invalidate_refused(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let rights = Rights {
        invalidate: false,
        ..Rights::ALL
    };
    let victim = s.host.create_mr(&[0; 64], rights);
    let first = (Opcode::RcSendFirst, pattern(MTU, 1));
    for before in [vec![], vec![first]] {
        s.reopen(|_| {});
        s.recv();
        s.recv();
        let mut last = s.request(Opcode::RcSendOnlyInv);
        for (opcode, data) in before {
            let request = s.request(opcode);
            s.next(&request, &data);
            last = s.request(Opcode::RcSendLastInv);
        }
        last.ext.ieth = Some(victim.key);
        let answers = s.send(&last, &[3; 8]);
        let nak = Syndrome::Nak(NakCode::RemoteAccess);
        check("answer", syndromes(&answers), vec![nak]);
        let results = s.results();
        let indices: Vec<_> = results.iter().map(|(index, _)| *index).collect();
        check("WQEs that complete", indices, vec![0, 1]);
        check(
            "success of the first",
            results[0].1 == status::SUCCESS,
            false,
        );
        check("status of the second", results[1].1, status::WR_FLUSH_ERR);
        s.reopen(|_| {});
        let mut request = s.request(Opcode::RcWriteOnly);
        if let Some(reth) = &mut request.ext.reth {
            (reth.va, reth.rkey) = (victim.addr, victim.key);
        }
        let answers = s.next(&request, &[1; 8]);
        check(
            "a WRITE by the key",
            syndromes(&answers),
            vec![Syndrome::ACK],
        );
    }
}

/// A SEND with invalidate of the target, and the answer that it draws.
fn ask(s: &mut Script, expected: Syndrome) -> Headers {
    let request = s.request(Opcode::RcSendOnlyInv);
    let answers = s.send(&request, &[]);
    check("answer", syndromes(&answers), vec![expected]);
    request
}

/// A WRITE of 8 bytes to the target, and the answer that it draws.
fn write(s: &mut Script, expected: Syndrome) {
    let request = s.request(Opcode::RcWriteOnly);
    let answers = s.next(&request, &[1; 8]);
    check("answer to a WRITE", syndromes(&answers), vec![expected]);
}

fn invalidate_after_an_rnr_nak(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    ask(&mut s, Syndrome::RnrNak { timer: 1 });
    write(&mut s, Syndrome::ACK);
    s.recv();
    ask(&mut s, Syndrome::ACK);
    s.psn = s.psn.next();
    write(&mut s, Syndrome::Nak(NakCode::RemoteAccess));
}

fn invalidate_of_a_duplicate(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.recv();
    s.recv();
    let request = ask(&mut s, Syndrome::ACK);
    s.psn = s.psn.next();
    let target = s.target;
    let again = s.host.region(&target, Rights::ALL);
    s.host
        .expect(cmd::opcode::WRITE_MR, target.key >> 8, &again.emit());
    let answers = s.counts("duplicate_request", 1, |s| s.send(&request, &[]));
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    write(&mut s, Syndrome::ACK);
    check("receive CQEs", s.cqes().len(), 1);
}

fn invalidate_after_the_data(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let region = s.target;
    s.recv();
    let answers = s.send(&s.request(Opcode::RcSendOnlyInv), &[3; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check_bytes("data", &s.contents()[..8], &[3; 8]);
    s.psn = s.psn.next();
    s.host.post_recv(s.qpn, &[region.sge(8, 8)]);
    let answers = s.send(&s.request(Opcode::RcSendOnly), &[4; 8]);
    let nak = Syndrome::Nak(NakCode::RemoteOperational);
    check("answer to the next", syndromes(&answers), vec![nak]);
}
