//! Memory protection: every byte a peer reaches is one it may reach.

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{Host, Mr, PD, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, MTU};
use super::script::{Script, TARGET, syndromes};
use super::{ATOMIC, RC, READ, UC, cases, check, check_bytes};

cases! {
    rkey_unknown, RC, "IB1 9.7.4.1.5", "A WRITE with a key that is not registered is a remote access error; no byte is written.";
    rkey_stale_variant, RC, "IB1 10.6", "A key that differs from the registered one in its variant alone is unknown.";
    rkey_alias, RC, "IB1 10.6", "A key whose index is beyond the table is not taken for the one it would fall on.";
    rkey_deregistered, RC, "IB1 10.6", "A key that was deregistered is unknown.";
    rkey_of_another_domain, RC, "IB1 10.2", "A region of another protection domain than the queue pair's is a remote access error.";
    write_right, RC, "IB1 9.7.4.1.5", "A region without remote write is a remote access error.";
    write_before_the_region, RC, "IB1 9.7.4.1.5", "A WRITE that starts a byte before the region is a remote access error.";
    write_past_the_region, RC, "IB1 9.7.4.1.5", "A WRITE that ends a byte behind the region is a remote access error.";
    write_wraps_at_2_64, RC, "IB1 9.7.4.1.5", "A WRITE that wraps round 2^64 is a remote access error.";
    write_checks_all_at_first, RC, "IB1 9.7.4.1.5", "A WRITE whose length leaves the region is refused at its First: no packet of it is written.";
    write_up_to_the_last_address, RC, "IB1 10.6", "A region may end with the last address; a WRITE may reach it.";
    write_to_every_edge, RC, "IB1 9.7.4.1.5", "First and last bytes of a region may be written; the bytes beside it stay.";
    write_region_gone, RC, "IB1 10.6", "A region deregistered between packets of a WRITE is not written any more: remote access error.";
    read_of_another_domain, READ, "IB1 10.2", "A READ of a region of another protection domain is a remote access error.";
    atomic_of_another_domain, ATOMIC, "IB1 10.2", "An atomic on a region of another protection domain is a remote access error.";
    gather_past_the_region, RC, "IB1 10.7", "A gather entry that ends behind its region is a local protection error; nothing is sent.";
    gather_before_the_region, RC, "IB1 10.7", "A gather entry that starts before its region is a local protection error.";
    gather_wraps, RC, "IB1 10.7", "A gather entry that wraps round 2^64 is a local protection error.";
    gather_stale_key, RC, "IB1 10.7", "A gather entry with a stale key is a local protection error.";
    gather_of_another_domain, RC, "IB1 10.2", "A gather entry of another protection domain is a local protection error.";
    gather_region_gone, RC | UC, "IB1 10.6", "A region deregistered while a message of it is sent is not read any more: a local protection error, of UC too.";
    scatter_of_another_domain, RC, "IB1 10.2", "A scatter entry of another protection domain is a remote operational error.";
    local_error_is_not_sent, RC, "IB1 9.9", "A local error sends no packet to the peer.";
}

/// Places a region of the same bytes in another protection domain.
pub(super) fn foreign(host: &mut Host, mr: &Mr) {
    let other = MrCtx {
        base: mr.addr,
        last: mr.addr + mr.len - 1,
        key: mr.key,
        pd: PD + 1,
        valid: true,
        local_write: true,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
        ..MrCtx::default()
    };
    host.expect(opcode::WRITE_MR, mr.key >> 8, &other.emit());
}

const NAK: Syndrome = Syndrome::Nak(NakCode::RemoteAccess);

/// Requests of `opcode` to an address and key made from those of a region must all be refused without effect.
fn refused(bench: &mut Bench, opcode: Opcode, places: &[fn(&mut Host, Mr) -> (u64, u32)]) {
    let mut s = bench.script(QpOptions::default());
    for place in places {
        s.reopen(|_| {});
        let region = s.host.create_mr(&[0x55; 64], Rights::ALL);
        let (va, rkey) = place(&mut s.host, region);
        let answers = request(&mut s, opcode, va, rkey);
        let what = format!("{opcode:?} to {va:#x} with key {rkey:#x}");
        check(&what, syndromes(&answers), vec![NAK]);
        check_bytes(&what, &s.host.contents(&region), &[0x55; 64]);
        check_bytes(&what, &s.contents(), &[0; TARGET]);
        s.in_error(&what);
    }
}

fn request(s: &mut Script, opcode: Opcode, va: u64, rkey: u32) -> Vec<super::bench::Sent> {
    let mut request = s.request(opcode);
    if let Some(reth) = &mut request.ext.reth {
        (reth.va, reth.rkey) = (va, rkey);
    }
    if let Some(atomic) = &mut request.ext.atomic {
        (atomic.va, atomic.rkey) = (va, rkey);
    }
    let payload: &[u8] = if opcode.has_payload() { &[1; 8] } else { &[] };
    s.counts("access_errors", 1, |s| s.send(&request, payload))
}

fn rkey_unknown(bench: &mut Bench) {
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[|_, mr| (mr.addr, 0x3_0000), |_, mr| (mr.addr, 0)],
    );
}

fn rkey_stale_variant(bench: &mut Bench) {
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[
            |_, mr| (mr.addr, mr.key ^ 1),
            |_, mr| (mr.addr, mr.key ^ 0x80),
        ],
    );
}

fn rkey_alias(bench: &mut Bench) {
    // The table has 2^10 entries; index bits start at bit 8 of the key.
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[
            |_, mr| (mr.addr, mr.key + (1 << 18)),
            |_, mr| (mr.addr, mr.key | 1 << 31),
        ],
    );
}

fn rkey_deregistered(bench: &mut Bench) {
    let gone = |host: &mut Host, mr: Mr| {
        host.deregister(&mr);
        (mr.addr, mr.key)
    };
    refused(bench, Opcode::RcWriteOnly, &[gone]);
}

fn of_another_domain(host: &mut Host, mr: Mr) -> (u64, u32) {
    foreign(host, &mr);
    (mr.addr, mr.key)
}

fn rkey_of_another_domain(bench: &mut Bench) {
    refused(bench, Opcode::RcWriteOnly, &[of_another_domain]);
}

fn read_of_another_domain(bench: &mut Bench) {
    refused(bench, Opcode::RcReadRequest, &[of_another_domain]);
}

fn atomic_of_another_domain(bench: &mut Bench) {
    refused(bench, Opcode::RcFetchAdd, &[of_another_domain]);
}

fn write_right(bench: &mut Bench) {
    let readable = |host: &mut Host, _| {
        let rights = Rights {
            remote_write: false,
            ..Rights::ALL
        };
        let mr = host.create_mr(&[0x55; 64], rights);
        (mr.addr, mr.key)
    };
    refused(bench, Opcode::RcWriteOnly, &[readable]);
}

fn write_before_the_region(bench: &mut Bench) {
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[
            |_, mr| (mr.addr - 1, mr.key),
            |_, mr| (mr.addr - 8, mr.key),
            |_, mr| (0, mr.key),
        ],
    );
}

fn write_past_the_region(bench: &mut Bench) {
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[
            |_, mr| (mr.addr + 57, mr.key),
            |_, mr| (mr.addr + 64, mr.key),
        ],
    );
}

fn write_wraps_at_2_64(bench: &mut Bench) {
    refused(
        bench,
        Opcode::RcWriteOnly,
        &[|_, mr| (u64::MAX - 3, mr.key), |_, mr| (u64::MAX, mr.key)],
    );
}

fn write_checks_all_at_first(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut request = s.write(Opcode::RcWriteFirst, 3000);
    if let Some(reth) = &mut request.ext.reth {
        reth.va += 4096 - 2999;
    }
    let answers = s.send(&request, &[1; MTU]);
    check("answer", syndromes(&answers), vec![NAK]);
    check_bytes("the target", &s.contents(), &[0; TARGET]);
}

fn write_up_to_the_last_address(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let top = u64::MAX - 4095;
    c.b.memory
        .map(top, vec![0; 4096])
        .expect("nothing is there");
    let region = c.b.register(top, 4096, Rights::ALL);
    let local = c.a.create_mr(&pattern(4096, 1), Rights::ALL);
    c.execute(&Work::write(&[local.all()], &region, 0));
    check_bytes("the region", &c.b.contents(&region), &pattern(4096, 1));
    let index = c.post(&Work::write(&[local.all()], &region, 1));
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
}

fn write_to_every_edge(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let addr = c.b.alloc(4096);
    c.b.write(addr, &[0xee; 4096]);
    let region = c.b.register(addr + 101, 2003, Rights::ALL);
    for (offset, len) in [(0, 1), (2002, 1), (0, 2003), (1, 2002)] {
        let data = pattern(len, offset as u8);
        let source = c.a.create_mr(&data, Rights::NONE);
        c.execute(&Work::write(&[source.all()], &region, offset));
        // the acknowledgement may be back before host memory has taken the data
        c.settle();
        let got = c.b.read(region.addr + offset, len);
        check_bytes(&format!("{len} bytes at {offset}"), &got, &data);
    }
    check_bytes("before it", &c.b.read(addr, 101), &[0xee; 101]);
    check_bytes("behind it", &c.b.read(addr + 2104, 1992), &[0xee; 1992]);
}

fn write_region_gone(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let request = s.write(Opcode::RcWriteFirst, 2000);
    let answers = s.next(&request, &[1; MTU]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    let target = s.target;
    s.host.deregister(&target);
    // From here on any access to it is a fault.
    s.host.memory.unmap(target.addr);
    let request = s.write(Opcode::RcWriteLast, 2000);
    let answers = s.send(&request, &[1; 976]);
    check("answer", syndromes(&answers), vec![NAK]);
}

/// A SEND of a list made from a region of 64 bytes must be a local protection error.
fn gather(bench: &mut Bench, list: fn(&mut Host, Mr) -> Vec<Sge>) {
    let mut c = bench.connect(QpOptions::default());
    let region = c.a.create_mr(&[1; 64], Rights::ALL);
    let list = list(&mut c.pair.a, region);
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    let bad = c.post(&Work::send(&list).unsignaled());
    let next = c.post(&Work::send(&[]).unsignaled());
    c.ends(Side::A, bad, status::LOC_PROT_ERR);
    c.ends(Side::A, next, status::WR_FLUSH_ERR);
    c.settle();
    check("packets", c.packets(Side::A).len(), 1);
}

fn gather_past_the_region(bench: &mut Bench) {
    gather(bench, |_, mr| vec![mr.sge(0, 65)]);
    gather(bench, |_, mr| vec![mr.sge(0, 8), mr.sge(64, 1)]);
}

fn gather_before_the_region(bench: &mut Bench) {
    gather(bench, |_, mr| vec![mr.sge(0, 8), mr.sge(u64::MAX, 2)]);
}

fn gather_wraps(bench: &mut Bench) {
    gather(bench, |_, mr| {
        vec![Sge {
            addr: u64::MAX - 3,
            ..mr.sge(0, 8)
        }]
    });
}

fn gather_stale_key(bench: &mut Bench) {
    gather(bench, |_, mr| {
        vec![Sge {
            lkey: mr.key ^ 1,
            ..mr.all()
        }]
    });
}

fn gather_of_another_domain(bench: &mut Bench) {
    gather(bench, |host, mr| {
        foreign(host, &mr);
        vec![mr.all()]
    });
}

/// Longer than what is granted at once: the WQE is read and checked again in between.
fn gather_region_gone(bench: &mut Bench) {
    for (qp_type, ends_as) in [(qp_type::RC, state::ERR), (qp_type::UC, state::SQE)] {
        let mut s = bench.script(QpOptions {
            qp_type,
            timeout: 0,
            ..QpOptions::default()
        });
        let source = s.host.create_mr(&vec![1; 1024 * MTU], Rights::NONE);
        let work = Work::write(&[source.all()], &s.target, 0);
        s.host.post_send(s.qpn, &work);
        let (_, mut sent) = s.until_sent(20_000).expect("the first packets");
        s.host.deregister(&source);
        s.host.memory.unmap(source.addr);
        sent.extend(s.quiet());
        check("not all is sent", sent.len() < 1024, true);
        if qp_type == qp_type::RC {
            let last = sent[sent.len() - 1].psn();
            let ack = s.response(Opcode::RcAck, last, Syndrome::ACK);
            check("sent behind it", s.send(&ack, &[]).len(), 0);
        }
        check("completions", s.results(), vec![(0, status::LOC_PROT_ERR)]);
        check("state", s.host.query(s.qpn).sq_state, ends_as);
    }
}

fn scatter_of_another_domain(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let target = s.target;
    foreign(&mut s.host, &target);
    s.recv();
    let answers = s.send(&s.request(Opcode::RcSendOnly), &[1; 8]);
    let nak = Syndrome::Nak(NakCode::RemoteOperational);
    check("answer", syndromes(&answers), vec![nak]);
    check_bytes("the target", &s.contents(), &[0; TARGET]);
    check("completions", s.results(), vec![(0, status::LOC_PROT_ERR)]);
}

fn local_error_is_not_sent(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let region = c.a.create_mr(&[1; 64], Rights::ALL);
    let index = c.post(&Work::send(&[region.sge(0, 65)]));
    c.ends(Side::A, index, status::LOC_PROT_ERR);
    c.settle();
    check("packets", c.sent.len(), 0);
    check("state of the peer", c.query(Side::B).rq_state, state::RTS);
}
