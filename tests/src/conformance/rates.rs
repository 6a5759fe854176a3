//! Rates: registers, and limits of queue pairs.

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::{SqCtx, state};
use ferroce_proto::abi::rates::RP_RANGES;
use ferroce_proto::abi::regs::{self, REGISTERS, feature};
use ferroce_proto::wire::Opcode;
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, Sent};
use super::{cases, check};

pub(super) const RATES: u32 = feature::RC | feature::RATES;

cases! {
    rate_registers, RATES, "abi regs", "A parameter of the reaction point beyond its range is taken as the nearer end of it.";
    rate_limit_is_kept, RATES, "abi qpc", "Messages of a packet leave at the limit of their queue pair: each counts its payload and 64 bytes.";
    rate_limit_of_a_long_message, RATES, "abi qpc", "The packets of a message leave at the limit too, not one behind the other.";
    rate_limit_of_short_messages, RATES, "abi qpc", "Of short messages the headers count.";
    rate_limit_of_long_wqes, RATES | feature::LONG_WQE, "abi qpc", "WQEs of one slot and of several follow each other at the limit.";
    rate_limit_of_middling_messages, RATES, "abi qpc", "Messages of less than a microsecond of their rate leave at the limit too, also where host memory is slow.";
    rate_limit_beside_doorbells, RATES, "abi qpc", "Doorbells and acknowledgements that come while a WQE is read take nothing of the limit.";
    rate_limit_beside_another, RATES, "abi qpc", "What another queue pair does at the same time takes nothing of it either, and gives one that was idle nothing ahead.";
    rate_limit_of_reads, RATES | feature::READ, "abi qpc", "A READ request counts 64 bytes, however much it asks for.";
    rate_limit_of_one, RATES, "abi qpc", "A queue pair that waits for its limit holds up no other.";
    rate_limit_is_lifted, RATES, "abi qpc", "A limit that ends moves the start that is planned: the next packet leaves within 300 us.";
    rate_limit_of_what_is_sent_again, RATES, "IB1 9.7.6.1.3", "A packet that is to be sent again and waits for its limit uses up no retries.";
    rate_limit_ends_with_reset, RATES, "IBA 10.3.1", "The limit of a queue pair is none of the next one of its number.";
    rate_limit_and_error, RATES, "IBA 10.3.1", "What a queue pair with a limit has posted is flushed when it goes into error.";
}

pub(super) const CYCLES_PER_US: u64 = 250;
/// Bytes of a packet beside its payload, as rates count them.
const HEADERS: u64 = 64;

/// Cycles from packet to packet.
pub(super) fn gap(payload: u64, mbps: u64) -> u64 {
    (payload + HEADERS) * 8 * CYCLES_PER_US / mbps
}

pub(super) fn limited(mbps: u32) -> QpOptions {
    QpOptions {
        rate_limit: mbps,
        timeout: 12,
        ..QpOptions::default()
    }
}

/// The command by which a queue pair sends no faster than `mbps` Mb/s, 0 for as fast as it can, and its images.
pub(crate) fn limiting(host: &Host, qpn: u32, peer: &Peer, mbps: u32) -> (CmdHead, [[u8; 64]; 3]) {
    let [sq, ..] = host.images(qpn, peer);
    let sq = SqCtx {
        rate_limit: mbps,
        ..SqCtx::parse(&sq)
    };
    let head = CmdHead {
        qp_sq: true,
        opcode: opcode::MODIFY_QP,
        index: qpn,
        ..CmdHead::default()
    };
    (head, [sq.emit(), [0; 64], [0; 64]])
}

/// The limit of the queue pair of `side` is `mbps` from now on.
pub(super) fn set_limit(c: &mut Conn, side: Side, mbps: u32) {
    let (host, qpn, peer) = match side {
        Side::A => (&mut c.pair.a, c.qa, c.pair.b.peer(c.qb)),
        Side::B => (&mut c.pair.b, c.qb, c.pair.a.peer(c.qa)),
    };
    let (head, images) = limiting(host, qpn, &peer, mbps);
    let answer = host.command(head, &images);
    check("status of the command", answer.status, 0);
}

/// Memory that A sends from and writes to.
pub(super) fn memory(c: &mut Conn) -> (Mr, Mr) {
    (
        c.a.create_mr(&pattern(1 << 14, 1), Rights::ALL),
        c.b.create_mr(&[0; 1 << 14], Rights::ALL),
    )
}

/// A WRITE of so many bytes.
pub(super) fn write((source, target): &(Mr, Mr), len: u32) -> Work {
    Work::write(&[source.sge(0, len)], target, 0)
}

/// Cycles from the first to the last of the next `count` requests that A sends.
fn span(c: &mut Conn, count: usize) -> u64 {
    span_from(c, Side::A, count)
}

/// Cycles from the first to the last of the next `count` packets from `side` that are no acknowledgement and no CNP.
pub(super) fn span_from(c: &mut Conn, side: Side, count: usize) -> u64 {
    span_beside(c, side, None, count, |_| {})
}

/// The same, of packets to queue pair `to` if it is given, while something else happens every 8 cycles.
fn span_beside(
    c: &mut Conn,
    side: Side,
    to: Option<u32>,
    count: usize,
    mut beside: impl FnMut(&mut Conn),
) -> u64 {
    let packets = |c: &Conn| {
        let sent = c.pair.sent.iter().filter(|(from, _)| *from == side);
        let packets = sent.filter(|(_, frame)| {
            let bth = Sent::parse(frame).headers.bth;
            to.is_none_or(|to| bth.dest_qp == to)
                && !matches!(bth.opcode, Opcode::RcAck | Opcode::Cnp)
        });
        packets.count()
    };
    let before = packets(c);
    let mut first = None;
    let end = c.pair.a.nic.now() + 4_000_000;
    loop {
        let sent = packets(c) - before;
        let now = c.pair.a.nic.now();
        if sent > 0 && first.is_none() {
            first = Some(now);
        }
        if sent >= count {
            return now - first.expect("the first was seen");
        }
        assert!(now < end, "{sent} of {count} packets left");
        beside(c);
        c.pair.run(8);
    }
}

/// `count` requests leave `gap` cycles apart on average.
#[track_caller]
pub(super) fn leaves_at(c: &mut Conn, count: u64, gap: u64) {
    leaves_in_turns(c, count, gap, 0);
}

/// The same, some of them up to `early` cycles before.
#[track_caller]
fn leaves_in_turns(c: &mut Conn, count: u64, gap: u64, early: u64) {
    let cycles = span(c, count as usize);
    check_span(cycles, count, gap, early);
}

/// `count` packets left within `cycles`: `gap` apart on average, some of them up to `early` cycles before.
#[track_caller]
pub(super) fn check_span(cycles: u64, count: u64, gap: u64, early: u64) {
    let expected = (count - 1) * gap;
    // a start is a slot late at most; the first WQE has to be read, in a loaded host for some microseconds
    let range = expected.saturating_sub(600 + expected / 50 + early)..=expected + 2500;
    assert!(
        range.contains(&cycles),
        "{count} packets left within {cycles} cycles, expected {expected}"
    );
}

/// `side` sends 8 packets as if there were no rate.
#[track_caller]
pub(super) fn leave_at_once(c: &mut Conn, side: Side) {
    let cycles = span_from(c, side, 8);
    assert!(cycles < 8000, "8 packets left within {cycles} cycles");
}

/// The limit of `side` is 1 Mb/s, the first of four messages of A has completed: the others follow soon when it is lifted.
#[track_caller]
pub(super) fn leave_when_lifted(c: &mut Conn, side: Side) {
    set_limit(c, side, 0);
    let cycles = span_from(c, side, 3);
    assert!(
        cycles < 300 * CYCLES_PER_US,
        "the last left {cycles} cycles later"
    );
    for index in 1..4 {
        c.succeeds(Side::A, index);
    }
}

/// Posts `count` WRITEs of `len` bytes to one doorbell.
pub(super) fn post(c: &mut Conn, memory: &(Mr, Mr), count: usize, len: u32) {
    c.post_all(&vec![write(memory, len); count]);
}

fn rate_registers(bench: &mut Bench) {
    let mut host = bench.pair(super::bench::IP).a;
    for &(register, low, high) in RP_RANGES {
        let reset = REGISTERS[register as usize / 4].reset;
        check(
            &format!("{register:#x} at first"),
            host.read32(register),
            reset,
        );
        for (written, read) in [(0, low), (!0, high), (high, high), (7.max(low), 7.max(low))] {
            host.write32(register, written);
            check(&format!("{register:#x}"), host.read32(register), read);
        }
    }
    check(
        "RP_CONFIG",
        host.read32(regs::RP_CONFIG),
        regs::RP_CONFIG_RESET,
    );
    host.write32(regs::RP_CONFIG, !0);
    check("RP_CONFIG", host.read32(regs::RP_CONFIG), 0x1f);
}

fn rate_limit_is_kept(bench: &mut Bench) {
    let mut c = bench.connect(limited(1000));
    let memory = memory(&mut c);
    post(&mut c, &memory, 16, 1000);
    leaves_at(&mut c, 16, gap(1000, 1000));
    c.settle();
    check("statuses", c.statuses(Side::A), vec![status::SUCCESS; 16]);
}

fn rate_limit_of_a_long_message(bench: &mut Bench) {
    let mut c = bench.connect(limited(2000));
    let memory = memory(&mut c);
    post(&mut c, &memory, 1, 16 << 10);
    leaves_at(&mut c, 16, gap(1024, 2000));
    c.succeeds(Side::A, 0);
}

fn rate_limit_of_short_messages(bench: &mut Bench) {
    let mut c = bench.connect(limited(100));
    let memory = memory(&mut c);
    post(&mut c, &memory, 12, 8);
    leaves_at(&mut c, 12, gap(8, 100));
}

fn rate_limit_of_long_wqes(bench: &mut Bench) {
    let mut c = bench.connect(limited(1000));
    let memory = memory(&mut c);
    let list: Vec<_> = (0..9).map(|i| memory.0.sge(64 * i, 64)).collect();
    let long = Work::write(&list, &memory.1, 0);
    let short = write(&memory, 576);
    let works = std::iter::repeat_n([&short, &long, &long], 4).flatten();
    c.post_all(&works.cloned().collect::<Vec<_>>());
    leaves_at(&mut c, 12, gap(576, 1000));
    c.settle();
    check("statuses", c.statuses(Side::A), vec![status::SUCCESS; 12]);
}

/// A WQE of them takes longer to read than it takes to send.
fn rate_limit_of_middling_messages(bench: &mut Bench) {
    let mut c = bench.connect(limited(5000));
    let memory = memory(&mut c);
    post(&mut c, &memory, 48, 512);
    // what the rate sends in 4 us may leave at once, and what follows within as much again
    leaves_in_turns(&mut c, 48, gap(512, 5000), 8 * CYCLES_PER_US);
}

fn rate_limit_beside_doorbells(bench: &mut Bench) {
    const MESSAGES: u64 = 64;
    const PACKETS: u64 = 4;
    let mut c = bench.connect(limited(5000));
    let memory = memory(&mut c);
    let gap = gap(1024, 5000);
    // the next one is there before the one in front of it has left, at another moment of its time each time
    let (mut posted, mut due) = (0, 0);
    let count = (MESSAGES * PACKETS) as usize;
    let cycles = span_beside(&mut c, Side::A, None, count, |c| {
        let now = c.pair.a.nic.now();
        if posted < MESSAGES && now >= due {
            post(c, &memory, 1, 1024 * PACKETS as u32);
            due = now + gap * PACKETS / 2 + posted * 97 % (gap * PACKETS / 3);
            posted += 1;
        }
    });
    check_span(cycles, MESSAGES * PACKETS, gap, 0);
}

fn rate_limit_beside_another(bench: &mut Bench) {
    let mut c = bench.connect(limited(5000));
    let memory = memory(&mut c);
    let (other, _) = c.pair.connect(QpOptions::default(), QpOptions::default());
    let to = Some(c.qb);
    let small = write(&memory, 64);
    let busy = move |c: &mut Conn| {
        if c.pair.a.nic.now() % 128 < 8 {
            c.pair.a.post_send(other, &small);
        }
        while c.pair.a.poll(0).is_some() {}
    };
    for _ in 0..2 {
        // idle for long
        for _ in 0..2500 {
            busy(&mut c);
            c.pair.run(8);
        }
        post(&mut c, &memory, 16, 4096);
        let cycles = span_beside(&mut c, Side::A, to, 64, &busy);
        check_span(cycles, 64, gap(1024, 5000), 0);
    }
}

fn rate_limit_of_reads(bench: &mut Bench) {
    let mut c = bench.connect(limited(50));
    // the peer answers at once
    set_limit(&mut c, Side::B, 0);
    let (own, far) = memory(&mut c);
    c.post_all(&vec![Work::read(&[own.sge(0, 4096)], &far, 0); 8]);
    leaves_at(&mut c, 8, gap(0, 50));
}

fn rate_limit_of_one(bench: &mut Bench) {
    let mut c = bench.connect(limited(1));
    let memory = memory(&mut c);
    post(&mut c, &memory, 4, 1000);
    span(&mut c, 1);
    // the second of these is due in 8 ms
    let [qa, qb] = [&mut c.pair.a, &mut c.pair.b].map(|h| h.create_qp(QpOptions::default()));
    c.pair.join(qa, qb);
    let limited = std::mem::replace(&mut c.qa, qa);
    c.succeeds(Side::A, 0);
    for _ in 0..8 {
        c.execute(&write(&memory, 1000));
    }
    c.qa = limited;
    check(
        "completions of the one with a limit",
        c.statuses(Side::A),
        vec![],
    );
}

fn rate_limit_is_lifted(bench: &mut Bench) {
    let mut c = bench.connect(limited(1));
    let memory = memory(&mut c);
    post(&mut c, &memory, 4, 1000);
    c.succeeds(Side::A, 0);
    leave_when_lifted(&mut c, Side::A);
}

fn rate_limit_of_what_is_sent_again(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        timeout: 1,
        retry_cnt: 2,
        ..QpOptions::default()
    });
    let memory = memory(&mut c);
    c.lose(Side::A, &[0, 1, 2, 3]);
    post(&mut c, &memory, 4, 1000);
    span(&mut c, 4);
    // 26 timeouts from packet to packet
    set_limit(&mut c, Side::A, 40);
    for index in 0..4 {
        c.succeeds(Side::A, index);
    }
    check("timeouts", c.pair.a.stat("local_ack_timeout_err"), 1);
}

fn rate_limit_ends_with_reset(bench: &mut Bench) {
    let mut c = bench.connect(limited(200));
    let memory = memory(&mut c);
    post(&mut c, &memory, 4, 1000);
    c.succeeds(Side::A, 0);
    c.reconnect(Side::B, |_| {});
    c.reconnect(Side::A, |contexts| contexts.sq.rate_limit = 0);
    let index = c.post(&write(&memory, 1000));
    c.succeeds(Side::A, index);
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

fn rate_limit_and_error(bench: &mut Bench) {
    let mut c = bench.connect(limited(200));
    let memory = memory(&mut c);
    post(&mut c, &memory, 40, 1000);
    c.succeeds(Side::A, 0);
    let qa = c.qa;
    c.pair.a.modify_state(qa, state::ERR);
    for index in 1..40 {
        c.ends(Side::A, index, status::WR_FLUSH_ERR);
    }
}
