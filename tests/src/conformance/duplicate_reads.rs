//! READs that are repeated.

use ferroce_proto::wire::{Opcode, Psn, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, pattern};

use super::bench::{Bench, MTU, Sent};
use super::script::{Script, build, syndromes};
use super::{READ, cases, check, check_bytes};

cases! {
    duplicate_read_from_memory, READ, "IB1 9.7.5.1.5", "A repeated READ is executed again: it brings what memory holds now.";
    duplicate_read_in_part, READ, "IB1 9.7.5.1.5", "A READ resumed at a PSN in its middle is answered from there on.";
    duplicate_read_elsewhere, READ, "IB1 9.7.5.1.5", "A repeated READ of another address brings what its key gives there, and nothing from outside of the region.";
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
