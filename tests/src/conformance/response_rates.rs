//! Rates of responses: answers to READs keep to the rate of their queue pair, as its requests do.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::regs::{self, feature};
use ferroce_sim::testhost::{Mr, QpOptions, Side, Work};

use super::bench::{Bench, Conn};
use super::notification::marked;
use super::rates::{
    CYCLES_PER_US, RATES, check_span, gap, leave_at_once, leave_when_lifted, limited, memory,
    set_limit, span_from,
};
use super::{cases, check};

const READS: u32 = RATES | feature::READ;

cases! {
    response_rate_is_kept, READS, "abi qpc", "The responses to a long READ leave at the limit of their queue pair: each counts its payload and 64 bytes.";
    response_rate_of_short_reads, READS, "abi qpc", "READs of a packet are answered at the limit.";
    response_rate_of_atomics, READS | feature::ATOMIC, "abi qpc", "The response to an atomic counts 64 bytes.";
    response_rate_of_acks, READS, "abi qpc", "An ACK does not wait for the rate of the responses before it.";
    response_rate_of_one, READS, "abi qpc", "A queue pair whose responses wait for their limit holds up no other.";
    response_rate_is_lifted, READS, "abi qpc", "A limit that ends counts for the responses that wait.";
    response_rate_ends_with_reset, READS, "IBA 10.3.1", "The limit of a queue pair is none of the next one of its number.";
    response_rate_after_a_cnp, READS | feature::CNP, "mlx5 DCQCN", "A CNP slows the responses of its queue pair down.";
}

/// READs of `len` bytes, behind one doorbell.
fn read(c: &mut Conn, (own, far): &(Mr, Mr), count: usize, len: u32) {
    c.post_all(&vec![Work::read(&[own.sge(0, len)], far, 0); count]);
}

/// B sends `count` responses of `payload` bytes at `mbps`.
#[track_caller]
fn answers_at(c: &mut Conn, count: u64, payload: u64, mbps: u64) {
    let cycles = span_from(c, Side::B, count as usize);
    check_span(cycles, count, gap(payload, mbps), 0);
}

/// A connection of which B's queue pair has a limit, and its memory.
fn slow(bench: &mut Bench, mbps: u32) -> (Conn, (Mr, Mr)) {
    let mut c = bench.connect(limited(0));
    let memory = memory(&mut c);
    set_limit(&mut c, Side::B, mbps);
    (c, memory)
}

fn response_rate_is_kept(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 2000);
    read(&mut c, &memory, 1, 16 << 10);
    answers_at(&mut c, 16, 1024, 2000);
    c.succeeds(Side::A, 0);
}

fn response_rate_of_short_reads(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 1000);
    read(&mut c, &memory, 12, 1000);
    answers_at(&mut c, 12, 1000, 1000);
    c.settle();
    check("statuses", c.statuses(Side::A), vec![status::SUCCESS; 12]);
}

fn response_rate_of_atomics(bench: &mut Bench) {
    let (mut c, (own, far)) = slow(bench, 100);
    c.post_all(&vec![Work::fetch_add(own.sge(0, 8), &far, 0, 1); 12]);
    answers_at(&mut c, 12, 0, 100);
    c.settle();
    check("statuses", c.statuses(Side::A), vec![status::SUCCESS; 12]);
}

fn response_rate_of_acks(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 1);
    read(&mut c, &memory, 1, 1000);
    c.succeeds(Side::A, 0);
    // the next response is due 8 ms later
    let start = c.pair.a.nic.now();
    c.execute(&Work::write(&[memory.0.sge(0, 1000)], &memory.1, 0));
    let cycles = c.pair.a.nic.now() - start;
    assert!(cycles < 40_000, "the ACK came {cycles} cycles later");
}

fn response_rate_of_one(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 1);
    read(&mut c, &memory, 2, 1000);
    c.succeeds(Side::A, 0);
    let [qa, qb] = [&mut c.pair.a, &mut c.pair.b].map(|h| h.create_qp(QpOptions::default()));
    c.pair.join(qa, qb);
    let slow = std::mem::replace(&mut c.qa, qa);
    for _ in 0..8 {
        c.execute(&Work::read(&[memory.0.sge(0, 1000)], &memory.1, 0));
    }
    c.qa = slow;
    check("completions of the slow one", c.statuses(Side::A), vec![]);
}

fn response_rate_is_lifted(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 1);
    read(&mut c, &memory, 4, 1000);
    c.succeeds(Side::A, 0);
    leave_when_lifted(&mut c, Side::B);
}

fn response_rate_ends_with_reset(bench: &mut Bench) {
    let (mut c, memory) = slow(bench, 1);
    read(&mut c, &memory, 2, 1000);
    c.succeeds(Side::A, 0);
    c.start_again();
    read(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::B);
    // nor is what is owed, with the same limit
    c.settle();
    set_limit(&mut c, Side::B, 1);
    read(&mut c, &memory, 1, 1000);
    c.settle();
    c.start_again();
    set_limit(&mut c, Side::B, 1);
    let start = c.pair.a.nic.now();
    c.execute(&Work::read(&[memory.0.sge(0, 1000)], &memory.1, 0));
    let cycles = c.pair.a.nic.now() - start;
    assert!(
        cycles < 40_000,
        "the first answer came {cycles} cycles later"
    );
}

fn response_rate_after_a_cnp(bench: &mut Bench) {
    let mut c = slowed_by_cnps(bench, limited(0));
    answers_are_slowed(&mut c);
}

/// A connection whose B gets CNPs for what it sends, and then sends at 500 Mb/s.
pub(super) fn slowed_by_cnps(bench: &mut Bench, options: QpOptions) -> Conn {
    let mut c = marked(bench.connect(options), Side::B);
    c.pair.b.write32(regs::RATE_TO_SET_ON_FIRST_CNP, 500);
    c.pair.b.write32(regs::RPG_TIME_RESET, 100_000);
    c
}

/// READs of A are answered at that rate, once the first answer had its CNP.
#[track_caller]
pub(super) fn answers_are_slowed(c: &mut Conn) {
    let memory = memory(c);
    // tables of the reaction point are made in 117 us from reset on; a CNP waits for them
    c.pair.run(120 * CYCLES_PER_US);
    c.execute(&Work::read(&[memory.0.sge(0, 1000)], &memory.1, 0));
    c.settle();
    check("CNPs of the peer", c.pair.b.stat("rp_cnp_handled"), 1);
    read(c, &memory, 8, 1000);
    answers_at(c, 8, 1000, 500);
}
