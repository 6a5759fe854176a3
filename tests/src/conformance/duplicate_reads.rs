//! READs that are repeated.
//!
//! The engine knows a duplicate by its PSN and does not keep the original (architecture 6). MindShare's retelling of
//! IB1 asks for the original or a part of it; qib (`qib_rc_rcv_error`) looks at where it ends and at the key, soft-RoCE
//! (`duplicate_request`) at addresses and key. All of them drop in silence what they do not answer.

use ferroce_proto::wire::{Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::{Script, build, syndromes};
use super::{READ, cases, check, check_bytes, protection};

cases! {
    duplicate_read_from_memory, READ, "IB1 9.7.5.1.5", "A repeated READ is executed again: it brings what memory holds now.";
    duplicate_read_in_part, READ, "IB1 9.7.5.1.5", "A READ resumed at a PSN in its middle is answered from there on.";
    duplicate_read_elsewhere, READ, "IB1 9.7.5.1.5", "A repeated READ of another address brings what its key gives there, and nothing from outside of the region.";
    duplicate_read_of_another_length, READ, "IB1 9.7.5.1.5", "A repeated READ of another length is answered as it asks, if all of its PSNs were executed; the PSN expected stays.";
    duplicate_read_of_another_key, READ, "IB1 9.7.4.1.5", "A repeated READ with another key is checked as a new one: what that key does not give is not answered, no NAK tells of it, and the queue pair goes on.";
    duplicate_read_of_a_write, READ, "IB1 9.7.5.1.5", "A READ of the PSN of a WRITE brings what its key gives.";
    duplicate_read_past_expected, READ, "IB1 9.7.5.1.5", "A repeated READ that reaches beyond what was executed is not answered.";
    duplicate_read_checks_the_key, READ, "IB1 9.7.5.1.5", "The key of a repeated READ is checked again; no byte is brought without it.";
    duplicate_read_region_gone, READ, "IB1 9.9.3", "A repeated READ whose region goes while it is answered is dropped from there on: no NAK, and the queue pair goes on.";
    duplicate_read_keeps_the_msn, READ, "IB1 9.7.5.1.5", "A repeated READ completes no message: the MSN stays.";
}

/// A READ of `len` bytes at `offset` of the target with this PSN; the answers.
fn ask(s: &mut Script, psn: Psn, offset: u64, len: u32) -> Vec<Sent> {
    let mut request = s.request(Opcode::RcReadRequest);
    request.bth.psn = psn;
    if let Some(reth) = &mut request.ext.reth {
        (reth.va, reth.dma_len) = (reth.va + offset, len);
    }
    s.send(&request, &[])
}

fn data(answers: &[Sent]) -> Vec<u8> {
    answers.iter().flat_map(|p| p.payload.clone()).collect()
}

fn duplicate_read_from_memory(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check_bytes("at first", &data(&ask(&mut s, psn, 0, 3000)), &[0; 3000]);
    s.host.write(s.target.addr, &pattern(4096, 8));
    let again = ask(&mut s, psn, 0, 3000);
    check_bytes("then", &data(&again), &pattern(4096, 8)[..3000]);
    check("PSN", again[0].psn(), psn.value());
    let query = s.host.query(s.qpn);
    check("PSN expected", query.rq_psn, psn.value() + 3);
}

fn duplicate_read_in_part(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write(s.target.addr, &pattern(4096, 8));
    let psn = s.psn;
    check("answers", ask(&mut s, psn, 0, 3000).len(), 3);
    let again = ask(&mut s, psn.next(), 1024, 3000 - 1024);
    check_bytes(
        "from the middle",
        &data(&again),
        &pattern(4096, 8)[1024..3000],
    );
    let psns: Vec<_> = again.iter().map(Sent::psn).collect();
    check("PSNs", psns, vec![psn.value() + 1, psn.value() + 2]);
}

fn duplicate_read_elsewhere(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write(s.target.addr, &pattern(4096, 8));
    let psn = s.psn;
    for (offset, len) in [(0, 8), (4088, 8), (4089, 0)] {
        let at = offset as usize;
        let brought = data(&ask(&mut s, psn, offset, 8));
        check_bytes("brought", &brought, &pattern(4096, 8)[at..at + len]);
    }
    check("answers", ask(&mut s, psn.next(), 0, 8).len(), 1);
}

fn duplicate_read_of_another_length(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.write(s.target.addr, &pattern(4096, 8));
    let psn = s.psn;
    check("answers", ask(&mut s, psn, 0, 3000).len(), 3);
    // the first and the last byte of a packet, and none
    for (first, len, packets) in [
        (0, 3072, 3),
        (0, 2049, 3),
        (0, 2048, 2),
        (0, 1, 1),
        (0, 0, 1),
        (1, 2048, 2),
        (2, 1024, 1),
        (2, 0, 1),
    ] {
        let what = format!("{len} bytes at response {first}");
        let answers = ask(&mut s, psn.add(first), 512, len as u32);
        check_bytes(&what, &data(&answers), &pattern(4096, 8)[512..][..len]);
        let psns: Vec<_> = answers.iter().map(Sent::psn).collect();
        let expected = (0..packets).map(|n| psn.add(first + n).value());
        check(&what, psns, expected.collect());
        let (opcode, end) = (answers[0].opcode(), answers[answers.len() - 1].opcode());
        let opcodes = match packets {
            1 => [Opcode::RcReadResponseOnly; 2],
            _ => [Opcode::RcReadResponseFirst, Opcode::RcReadResponseLast],
        };
        check(&what, [opcode, end], opcodes);
    }
    check("too long", ask(&mut s, psn, 0, 1 << 31 | 1).len(), 0);
    let expected = s.host.query(s.qpn).rq_psn;
    check("PSN expected", expected, psn.value() + 3);
}

fn duplicate_read_of_another_key(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check("answers", ask(&mut s, psn, 0, 8).len(), 1);
    let written = Rights {
        remote_read: false,
        ..Rights::ALL
    };
    let other = s.host.create_mr(&pattern(64, 5), Rights::ALL);
    let unreadable = s.host.create_mr(&[6; 64], written);
    let foreign = s.host.create_mr(&[7; 64], Rights::ALL);
    protection::foreign(&mut s.host, &foreign);
    // a region, where in it, its key, and whether it is brought
    for (what, mr, offset, key, brought) in [
        ("another region", other, 56, other.key, true),
        ("beyond it", other, 57, other.key, false),
        ("its key of before", other, 0, other.key ^ 1, false),
        ("no right to read", unreadable, 0, unreadable.key, false),
        ("another domain", foreign, 0, foreign.key, false),
    ] {
        let mut request = s.request(Opcode::RcReadRequest);
        request.bth.psn = psn;
        if let Some(reth) = &mut request.ext.reth {
            (reth.va, reth.rkey) = (mr.addr + offset, key);
        }
        let answers = s.send(&request, &[]);
        check(what, answers.len(), usize::from(brought));
        if brought {
            check_bytes(what, &data(&answers), &pattern(64, 5)[56..]);
        }
    }
    check("the next", ask(&mut s, psn.next(), 0, 8).len(), 1);
}

fn duplicate_read_of_a_write(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    let answers = s.next(&s.request(Opcode::RcWriteOnly), &[9; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check_bytes(
        "brought",
        &data(&ask(&mut s, psn, 4, 8)),
        &[9, 9, 9, 9, 0, 0, 0, 0],
    );
    check("outside", ask(&mut s, psn, 4089, 8).len(), 0);
    check("the next", ask(&mut s, psn.next(), 0, 8).len(), 1);
}

fn duplicate_read_past_expected(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check("answers", ask(&mut s, psn, 0, 3000).len(), 3);
    check("answers", ask(&mut s, psn, 0, 4096).len(), 0);
    check("answers", ask(&mut s, psn.add(2), 0, 1025).len(), 0);
    check("answers", ask(&mut s, psn.add(3), 0, 8).len(), 1);
}

fn duplicate_read_checks_the_key(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    check("answers", ask(&mut s, psn, 0, 8).len(), 1);
    let target = s.target;
    s.host.deregister(&target);
    let answers = ask(&mut s, psn, 0, 8);
    let brought: usize = answers.iter().map(|p| p.payload.len()).sum();
    check("bytes brought", brought, 0);
}

fn duplicate_read_region_gone(bench: &mut Bench) {
    const LEN: usize = 1 << 18;
    let mut s = bench.script(QpOptions::default());
    let origin = s.host.create_mr(&pattern(LEN, 3), Rights::ALL);
    let mut request = s.request(Opcode::RcReadRequest);
    if let Some(reth) = &mut request.ext.reth {
        (reth.va, reth.rkey, reth.dma_len) = (origin.addr, origin.key, LEN as u32);
    }
    let packets = LEN / MTU;
    check("responses", s.send(&request, &[]).len(), packets);
    s.hand(&build(&request, &[]));
    let mut answers = s.run(1500);
    s.host.deregister(&origin);
    answers.extend(s.quiet());
    assert!(
        (1..packets).contains(&answers.len()),
        "expected some of {packets} responses, got {}",
        answers.len()
    );
    let nak = answers.iter().find(|p| p.opcode() == Opcode::RcAck);
    check("NAK", nak, None);
    s.psn = s.psn.add(packets as u32);
    let answers = s.next(&s.request(Opcode::RcWriteOnly), &[1; 8]);
    check(
        "answer to the next",
        syndromes(&answers),
        vec![Syndrome::ACK],
    );
}

fn duplicate_read_keeps_the_msn(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let psn = s.psn;
    for _ in 0..3 {
        check("MSN", ask(&mut s, psn, 0, 8)[0].aeth().msn, 1);
    }
    check("MSN", ask(&mut s, psn.next(), 0, 8)[0].aeth().msn, 2);
    check("MSN of the first", ask(&mut s, psn, 0, 8)[0].aeth().msn, 2);
}
