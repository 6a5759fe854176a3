//! RC atomics.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::wire::{NakCode, Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work};

use super::bench::{Bench, Sent};
use super::script::{Script, syndromes};
use super::{ATOMIC, READ, cases, check};

cases! {
    fetch_add, ATOMIC, "IB1 9.4.5", "Fetch and add adds modulo 2^64 and brings the original value.";
    cmp_swap_equal, ATOMIC, "IB1 9.4.5", "Compare and swap stores the swap value where the original equals the compare value.";
    cmp_swap_unequal, ATOMIC, "IB1 9.4.5", "Compare and swap stores nothing where it does not; it brings the original in any case.";
    atomic_response, ATOMIC, "IB1 9.7.5.1", "The response is an ATOMIC Acknowledge with the PSN of the request, the MSN and the original value.";
    atomic_misaligned, ATOMIC, "IB1 9.7.4.1", "An address that is not a multiple of 8 is an invalid request.";
    atomic_right, ATOMIC, "IB1 9.7.4.1.5", "A region without the right is a remote access error; nothing is changed.";
    atomic_not_permitted, ATOMIC, "IB1 9.7.4.1", "A queue pair that does not permit atomics answers invalid request.";
    atomic_bounds, ATOMIC, "IB1 9.7.4.1.5", "All 8 bytes must be in the region.";
    atomic_of_other_lengths, ATOMIC, "IB1 10.7", "An atomic WQE whose buffer is not 8 bytes is a local length error.";
    duplicate_atomic, ATOMIC, "IB1 9.7.5.1.5", "A repeated atomic is answered with its saved result and not executed again.";
    duplicate_atomic_unknown, ATOMIC, "IB1 9.7.5.1.5", "A repeated atomic whose result is not kept is dropped.";
    duplicate_atomic_of_a_region_gone, ATOMIC, "IB1 9.7.5.1.5", "The saved result is the answer also when the region is not registered any more.";
    duplicate_atomics_all_kept, ATOMIC, "IB1 9.7.5.1.5", "The results of all atomics that may be under way are kept.";
    atomics_between_others, ATOMIC | READ, "IB1 9.5", "READs, WRITEs and atomics of two queue pairs are all answered in their order, none but once.";
    atomics_of_two_queue_pairs, ATOMIC, "IB1 9.4.5", "Atomics of different queue pairs on one place are atomic to each other.";
    completion_behind_an_atomic, ATOMIC, "IB1 9.5", "The CQE of a SEND, or of a WRITE with immediate, comes behind the atomics before it.";
    atomic_answer_lost, ATOMIC, "IB1 9.7.6.1.3", "An atomic whose answer is lost is sent again and executed once.";
    atomics_over_max_dest_rd_atomic, ATOMIC, "IB1 9.7.4.1", "A queue pair with max_dest_rd_atomic 0 refuses atomics as invalid.";
}

/// Executes an atomic on a place that holds `before`: what it brings and what stands there then.
fn execute(
    bench: &mut Bench,
    before: u64,
    add: Option<u64>,
    compare: u64,
    swap: u64,
) -> (u64, u64) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0xee; 32], Rights::ALL);
    let result = c.a.create_mr(&[0; 16], Rights::ALL);
    c.b.write(target.addr + 8, &before.to_le_bytes());
    let (work, code) = match add {
        Some(add) => {
            let work = Work::fetch_add(result.sge(8, 8), &target, 8, add);
            (work, opcode::FETCH_ADD)
        }
        None => {
            let work = Work::cmp_swap(result.sge(8, 8), &target, 8, compare, swap);
            (work, opcode::CMP_SWAP)
        }
    };
    let cqe = c.execute(&work);
    check("CQE", (cqe.opcode, cqe.byte_len), (code, 8));
    let at = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    check("before it", c.b.read(target.addr, 8), vec![0xee; 8]);
    check("behind it", c.b.read(target.addr + 16, 16), vec![0xee; 16]);
    check("before the result", c.a.read(result.addr, 8), vec![0; 8]);
    let brought = at(c.a.read(result.addr + 8, 8));
    (brought, at(c.b.read(target.addr + 8, 8)))
}

fn fetch_add(bench: &mut Bench) {
    check("add 3", execute(bench, 40, Some(3), 0, 0), (40, 43));
    check(
        "wrap",
        execute(bench, u64::MAX, Some(3), 0, 0),
        (u64::MAX, 2),
    );
    let big = 0x0123_4567_89ab_cdef;
    check("add 0", execute(bench, big, Some(0), 0, 0), (big, big));
}

fn cmp_swap_equal(bench: &mut Bench) {
    let (old, new) = (0x8000_0000_0000_0001, 0x1122_3344_5566_7788);
    check("swapped", execute(bench, old, None, old, new), (old, new));
}

fn cmp_swap_unequal(bench: &mut Bench) {
    let old = 0x8000_0000_0000_0001;
    check("high byte", execute(bench, old, None, 1, 99), (old, old));
    check(
        "low byte",
        execute(bench, old, None, old + 1, 99),
        (old, old),
    );
}

/// An atomic of this PSN at `offset` of the target; the answers.
fn ask(s: &mut Script, psn: Psn, offset: u64) -> Vec<Sent> {
    let mut request = s.request(Opcode::RcFetchAdd);
    request.bth.psn = psn;
    if let Some(atomic) = &mut request.ext.atomic {
        atomic.va += offset;
    }
    s.send(&request, &[])
}

fn place(s: &Script, offset: u64) -> u64 {
    let bytes = s.host.read(s.target.addr + offset, 8);
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

fn original(packet: &Sent) -> Option<u64> {
    packet.headers.ext.atomic_ack.map(|ack| ack.original)
}

fn atomic_response(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write(s.target.addr + 16, &[1, 2, 3, 4, 5, 6, 7, 8]);
    for i in 0..2 {
        let psn = s.psn.add(i);
        let answers = ask(&mut s, psn, 16);
        check("answers", answers.len(), 1);
        let (answer, aeth) = (&answers[0], answers[0].aeth());
        check(
            "opcode, PSN, syndrome, MSN, original",
            (
                answer.opcode(),
                answer.psn(),
                aeth.syndrome,
                aeth.msn,
                original(answer),
            ),
            (
                Opcode::RcAtomicAck,
                psn.value(),
                Syndrome::ACK,
                i + 1,
                Some(0x0807_0605_0403_0201 + u64::from(i)),
            ),
        );
    }
}

/// An atomic that is refused and changes nothing.
fn refused(s: &mut Script, offset: u64, nak: NakCode) {
    let before = s.contents();
    let psn = s.psn;
    let answers = ask(s, psn, offset);
    check("answer", syndromes(&answers), vec![Syndrome::Nak(nak)]);
    check("PSN of the NAK", answers[0].psn(), psn.value());
    super::check_bytes("the target", &s.contents(), &before);
    s.in_error("after the NAK");
}

fn atomic_misaligned(bench: &mut Bench) {
    for offset in [1, 4, 7] {
        let mut s = bench.script(QpOptions::default());
        refused(&mut s, offset, NakCode::InvalidRequest);
    }
}

fn atomic_right(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let rights = Rights {
        remote_atomic: false,
        ..Rights::ALL
    };
    s.target = s.host.create_mr(&[0; 64], rights);
    refused(&mut s, 0, NakCode::RemoteAccess);
}

fn atomic_not_permitted(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.remote_atomic = false);
    refused(&mut s, 0, NakCode::InvalidRequest);
}

fn atomic_bounds(bench: &mut Bench) {
    for (offset, len) in [(8u64.wrapping_neg(), 64), (64, 64), (56, 63)] {
        let mut s = bench.script(QpOptions::default());
        let addr = s.host.alloc(64);
        s.target = s.host.register(addr, len, Rights::ALL);
        let answers = ask_at(&mut s, addr.wrapping_add(offset));
        let nak = Syndrome::Nak(NakCode::RemoteAccess);
        check("answer", syndromes(&answers), vec![nak]);
        check("memory", s.host.read(addr, 64), vec![0; 64]);
    }
}

fn ask_at(s: &mut Script, va: u64) -> Vec<Sent> {
    let mut request = s.request(Opcode::RcFetchAdd);
    if let Some(atomic) = &mut request.ext.atomic {
        atomic.va = va;
    }
    s.send(&request, &[])
}

fn atomic_of_other_lengths(bench: &mut Bench) {
    for len in [0, 4, 16] {
        let mut c = bench.connect(QpOptions::default());
        let mr = c.a.create_mr(&[0; 64], Rights::ALL);
        let index = c.post(&Work::fetch_add(mr.sge(0, len), &mr, 0, 1));
        c.ends(Side::A, index, status::LOC_LEN_ERR);
        check("packets sent", c.packets(Side::A).len(), 0);
    }
}

fn duplicate_atomic(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check("first", original(&ask(&mut s, psn, 0)[0]), Some(0));
    check("second", original(&ask(&mut s, psn.next(), 0)[0]), Some(1));
    for (again, expected) in [(psn, 0), (psn.next(), 1), (psn, 0)] {
        let answers = ask(&mut s, again, 0);
        check("answers", answers.len(), 1);
        check("saved result", original(&answers[0]), Some(expected));
        check("PSN", answers[0].psn(), again.value());
    }
    check("the place", place(&s, 0), 2);
}

fn duplicate_atomic_unknown(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    ask(&mut s, psn, 0);
    check("answers", ask(&mut s, psn.sub(1), 0).len(), 0);
    check("answers", ask(&mut s, psn.sub(1000), 0).len(), 0);
    check("the place", place(&s, 0), 1);
    check("answers", ask(&mut s, psn.next(), 0).len(), 1);
}

fn duplicate_atomic_of_a_region_gone(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check("first", original(&ask(&mut s, psn, 0)[0]), Some(0));
    let target = s.target;
    s.host.deregister(&target);
    let answers = ask(&mut s, psn, 0);
    check("saved result", original(&answers[0]), Some(0));
}

fn duplicate_atomics_all_kept(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        max_rd_atomic: 16,
        ..QpOptions::default()
    });
    let psn = s.psn;
    for i in 0..20 {
        ask(&mut s, psn.add(i), 0);
    }
    for i in 4..20 {
        let answers = ask(&mut s, psn.add(i), 0);
        check("answers", answers.len(), 1);
        check("saved result", original(&answers[0]), Some(i.into()));
    }
    check("the place", place(&s, 0), 20);
}

fn atomics_between_others(bench: &mut Bench) {
    // Nothing is sent again: an answer that is forgotten is missing.
    let options = QpOptions {
        timeout: 0,
        max_rd_atomic: 16,
        ..QpOptions::default()
    };
    let mut c = bench.connect(options);
    let (second, _) = c.pair.connect(options, options);
    let qpns = [c.qa, second];
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    let result = c.a.create_mr(&[0; 4096], Rights::ALL);
    for shift in 0..4 {
        for i in 0..16 {
            for qpn in qpns {
                let work = match (shift + i) % 4 {
                    0 | 2 => Work::fetch_add(result.sge(8 * i, 8), &target, 0, 1),
                    1 => Work::read(&[result.sge(1024, 8 << i.min(8))], &target, 0),
                    _ => Work::write(&[], &target, 2048).inline(&[1; 8]),
                };
                c.a.post_send(qpn, &work);
            }
        }
        for _ in 0..32 {
            check("status", c.wait(Side::A).status, status::SUCCESS);
        }
    }
    let sum = c.b.contents(&target)[0];
    check("the place", sum, 4 * 2 * 8);
}

fn atomics_of_two_queue_pairs(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (second, _) = c.pair.connect(QpOptions::default(), QpOptions::default());
    let first = c.qa;
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let result = c.a.create_mr(&[0; 256], Rights::ALL);
    for i in 0..16 {
        for (n, qpn) in [first, second].into_iter().enumerate() {
            let place = result.sge(128 * n as u64 + 8 * i, 8);
            c.a.post_send(qpn, &Work::fetch_add(place, &target, 0, 1));
        }
    }
    for _ in 0..32 {
        check("status", c.wait(Side::A).status, status::SUCCESS);
    }
    let mut originals: Vec<_> = c.a.contents(&result).chunks(8).map(|b| b[0]).collect();
    check("the place", c.b.contents(&target)[0], 32);
    originals.sort_unstable();
    check("originals", originals, (0..32).collect());
}

fn completion_behind_an_atomic(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut sum = 0;
    for round in 0..32 {
        s.recv();
        for _ in 0..=round % 4 {
            let add = s.request(Opcode::RcFetchAdd);
            s.hand_next(&add, &[]);
            sum += 1;
        }
        let mut end = s.request(Opcode::RcSendOnly);
        if round % 8 >= 4 {
            end = s.write(Opcode::RcWriteOnlyImm, 0);
        }
        s.hand_next(&end, &[]);
        check("status", s.next_cqe().map(|cqe| cqe.status), Some(0));
        check("the place", place(&s, 0), sum);
        s.run(97 * round);
    }
}

fn atomic_answer_lost(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        timeout: 2,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let result = c.a.create_mr(&[0xff; 32], Rights::ALL);
    c.lose(Side::B, &[0, 2]);
    let works: Vec<_> = (0..4)
        .map(|i| Work::fetch_add(result.sge(8 * i, 8), &target, 0, 1))
        .collect();
    c.post_all(&works);
    for i in 0..4 {
        c.succeeds(Side::A, i);
    }
    check("the place", c.b.contents(&target)[0], 4);
    let originals: Vec<_> = c.a.contents(&result).chunks(8).map(|b| b[0]).collect();
    check("originals", originals, vec![0, 1, 2, 3]);
}

fn atomics_over_max_dest_rd_atomic(bench: &mut Bench) {
    let mut s = bench.script(QpOptions {
        max_rd_atomic: 0,
        ..QpOptions::default()
    });
    refused(&mut s, 0, NakCode::InvalidRequest);
}
