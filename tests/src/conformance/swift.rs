//! Swift: windows by round-trip times.

use ferroce_proto::abi::cmd::CmdHead;
use ferroce_proto::abi::qpc::{SqCtx, state};
use ferroce_proto::abi::rates::SWIFT_FIELDS;
use ferroce_proto::abi::regs::{self, REGISTERS, feature};
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Side, Work};

use super::bench::{Bench, Sent};
use super::notification::marked;
use super::rates::{leave_at_once, memory, post, write};
use super::response_rates::{answers_are_slowed, slowed_by_cnps};
use super::script::Script;
use super::{cases, check};

const SWIFT: u32 = feature::RC | feature::RATES | feature::SWIFT;

cases! {
    swift_registers, SWIFT, "abi regs", "A parameter of Swift beyond its range is taken as the nearer end of it, beside others in its register.";
    swift_window_at_first, SWIFT, "abi regs", "A queue pair begins with initial_cwnd packets, up to max_cwnd.";
    swift_window_grows, SWIFT, "SIGCOMM 2020 Swift", "Acknowledgements that come before the target delay let the window grow by ai packets a round trip.";
    swift_window_falls, SWIFT, "SIGCOMM 2020 Swift", "Acknowledgements that come after the target delay take max_mdf off at most, once a round trip.";
    swift_window_falls_by_beta, SWIFT, "SIGCOMM 2020 Swift", "A round trip a little beyond the target delay takes its share of the excess off.";
    swift_after_a_nak, SWIFT, "SIGCOMM 2020 Swift", "A NAK for a PSN sequence error takes max_mdf off.";
    swift_after_timeouts, SWIFT, "SIGCOMM 2020 Swift", "The retx_reset_threshold-th timeout in a row leaves min_cwnd.";
    swift_below_a_packet, SWIFT, "SIGCOMM 2020 Swift", "A window below a packet lets one out in more than one round trip.";
    swift_and_the_window_of_the_host, SWIFT | feature::SEND_WINDOW, "abi qpc", "The smaller one counts of the window of Swift and that of the host.";
    swift_beside_dcqcn, SWIFT, "abi qpc", "What Swift makes of a queue pair is nothing to one that has not chosen it.";
    swift_hears_no_cnps, SWIFT | feature::CNP, "SIGCOMM 2020 Swift", "CNPs do not slow down a queue pair of Swift.";
    swift_after_reset, SWIFT, "IBA 10.3.1", "What Swift made of a queue pair is none of the next one of its number.";
    swift_ends_with_its_choice, SWIFT, "abi qpc", "A queue pair that starts afresh without Swift has no window.";
    swift_is_chosen_by_an_image, SWIFT | feature::CNP | feature::READ, "IBA 10.3.1", "A queue pair that starts afresh without an image has not chosen Swift: a CNP slows down what it answers.";
}

/// Cycles of a round trip, beside those in which nothing is sent.
const TRIP: u64 = 5000;
/// A target delay that every round trip is within, ns.
const FAR: u32 = 1_000_000;
/// And one that none is within.
const NEAR: u32 = 4;

fn options(timeout: u8) -> QpOptions {
    QpOptions {
        swift: true,
        timeout,
        sq_log: 7,
        ot_log: 6,
        ..QpOptions::default()
    }
}

/// Writes parameters, beside those that stay.
fn set(host: &mut ferroce_sim::testhost::Host, values: &[(&str, u32)]) {
    for (name, value) in values {
        let mut fields = SWIFT_FIELDS.iter();
        let field = fields.find(|f| f.name == *name).expect("a parameter");
        let old = host.read32(field.register);
        let bits = field.mask() << field.at;
        host.write32(field.register, old & !bits | value << field.at);
    }
}

/// A card whose queue pair begins after these parameters are written.
fn script(bench: &mut Bench, timeout: u8, values: &[(&str, u32)]) -> Script {
    let mut s = bench.script(options(timeout));
    set(&mut s.host, &[("fs_range", 0)]);
    set(&mut s.host, values);
    s.reopen(|_| {});
    s
}

fn psns(sent: &[Sent]) -> Vec<u32> {
    sent.iter().map(Sent::psn).collect()
}

fn answer(s: &mut Script, psn: u32, syndrome: Syndrome) -> Vec<u32> {
    let response = s.response(Opcode::RcAck, psn, syndrome);
    psns(&s.send(&response, &[]))
}

/// A packet that is acknowledged after a round trip.
fn round_trip(s: &mut Script) {
    let psn = s.post(&Work::send(&[]))[0].psn();
    s.run(TRIP);
    answer(s, psn, Syndrome::ACK);
}

/// Packets that leave without an acknowledgement: as many as the window has, of up to 7.
fn window(s: &mut Script) -> usize {
    s.post_all(&vec![Work::send(&[]); 60]).len()
}

fn swift_registers(bench: &mut Bench) {
    let mut host = bench.pair(super::bench::IP).a;
    for register in (regs::SWIFT_TARGET..=regs::SWIFT_STEP).step_by(4) {
        let reset = REGISTERS[register as usize / 4].reset;
        let name = format!("{register:#x}");
        check(&format!("{name} at first"), host.read32(register), reset);
        let fields = SWIFT_FIELDS.iter().filter(|f| f.register == register);
        let (low, high) = fields.fold((0, 0), |(low, high), f| {
            (low | f.least << f.at, high | f.greatest << f.at)
        });
        for (written, read) in [(0, low), (!0, high), (high, high), (reset, reset)] {
            host.write32(register, written);
            check(&name, host.read32(register), read);
        }
    }
}

fn swift_window_at_first(bench: &mut Bench) {
    for (initial, most, expected) in [(1, 256, 1), (3, 256, 3), (7, 256, 7), (16, 6, 6)] {
        let values = [("initial_cwnd", initial), ("max_cwnd", most)];
        let mut s = script(bench, 0, &values);
        check("packets", window(&mut s), expected);
    }
}

fn swift_window_grows(bench: &mut Bench) {
    let values = [("base_target", FAR), ("initial_cwnd", 1), ("ai", 2 * 256)];
    let mut s = script(bench, 0, &values);
    // by 2, 0.67, 0.55 and 0.47 packets
    for _ in 0..4 {
        round_trip(&mut s);
    }
    check("packets", window(&mut s), 4);
}

fn swift_window_falls(bench: &mut Bench) {
    let values = [("base_target", NEAR), ("beta", 1024)];
    let mut s = script(bench, 0, &values);
    round_trip(&mut s);
    round_trip(&mut s);
    check("packets", window(&mut s), 4);
}

fn swift_window_falls_by_beta(bench: &mut Bench) {
    let values = [
        ("base_target", NEAR),
        ("initial_cwnd", 6),
        ("beta", 256),
        ("max_mdf", 1024),
    ];
    let mut s = script(bench, 0, &values);
    // nearly all of the round trip is excess: 255/1024
    round_trip(&mut s);
    check("packets", window(&mut s), 4);
}

fn swift_after_a_nak(bench: &mut Bench) {
    let values = [("base_target", FAR), ("max_mdf", 768)];
    let mut s = script(bench, 0, &values);
    let psn = s.post(&Work::send(&[]))[0].psn();
    let again = answer(&mut s, psn, Syndrome::Nak(NakCode::PsnSequence));
    check("sent again", again, vec![psn]);
    // with ai = 1 this one adds 1/4 packet
    answer(&mut s, psn, Syndrome::ACK);
    check("packets", window(&mut s), 4);
}

fn swift_after_timeouts(bench: &mut Bench) {
    let values = [
        ("base_target", FAR),
        ("initial_cwnd", 6),
        ("max_mdf", 0),
        ("min_cwnd", 1024),
        ("retx_reset_threshold", 2),
    ];
    for timeouts in 1..3 {
        let mut s = script(bench, 6, &values);
        let psn = s.post(&Work::send(&[]))[0].psn();
        for _ in 0..timeouts {
            s.until_sent(5 << 16).expect("it is sent again");
        }
        answer(&mut s, psn, Syndrome::ACK);
        check("timeouts", s.host.stat("local_ack_timeout_err"), timeouts);
        check("packets", window(&mut s), [6, 2][timeouts as usize - 1]);
    }
}

fn swift_below_a_packet(bench: &mut Bench) {
    let values = [
        ("base_target", NEAR),
        ("initial_cwnd", 1),
        ("min_cwnd", 512),
    ];
    let mut s = script(bench, 0, &values);
    let source = s
        .host
        .create_mr(&[7; 1024], ferroce_sim::testhost::Rights::ALL);
    let work = Work::write(&[source.sge(0, 1024)], &s.target, 0);
    round_trip(&mut s);
    s.ring_all(&vec![work; 3]);
    let mut left = Vec::new();
    for _ in 0..3 {
        let (_, sent) = s.until_sent(20 * TRIP).expect("a packet leaves");
        check("packets at once", sent.len(), 1);
        left.push(s.host.nic.now());
        s.run(TRIP);
        let ack = s.response(Opcode::RcAck, sent[0].psn(), Syndrome::ACK);
        s.hand(&super::script::build(&ack, &[]));
    }
    // half of a packet a round trip, headers too
    let cycles = left[2] - left[0];
    let range = 4 * TRIP..8 * TRIP;
    check(
        &format!("{cycles} cycles, expected {range:?}"),
        range.contains(&cycles),
        true,
    );
}

fn swift_and_the_window_of_the_host(bench: &mut Bench) {
    for (host, initial) in [(3, 8), (8, 3), (3, 3)] {
        let mut s = script(bench, 0, &[("initial_cwnd", initial)]);
        s.reopen(|contexts| contexts.sq.window = host);
        check("packets", window(&mut s), 3);
    }
}

fn swift_beside_dcqcn(bench: &mut Bench) {
    let mut c = bench.connect(options(14));
    let values = [
        ("base_target", NEAR),
        ("fs_range", 0),
        ("initial_cwnd", 1),
        ("min_cwnd", 1),
    ];
    set(&mut c.pair.a, &values);
    c.start_again();
    let memory = memory(&mut c);
    // down to a byte a round trip
    for _ in 0..12 {
        c.execute(&write(&memory, 8));
    }
    post(&mut c, &memory, 8, 1000);
    let plain = QpOptions::default();
    let [qa, qb] = [&mut c.pair.a, &mut c.pair.b].map(|h| h.create_qp(plain));
    c.pair.join(qa, qb);
    let slow = std::mem::replace(&mut c.qa, qa);
    c.pair.sent.clear();
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
    let done = c.drain(Side::A);
    let of_slow = done.iter().filter(|cqe| cqe.qpn == slow).count();
    check("the slow one is slow", of_slow < 4, true);
}

fn swift_hears_no_cnps(bench: &mut Bench) {
    let mut c = marked(bench.connect(options(14)), Side::A);
    c.pair.a.write32(regs::RATE_TO_SET_ON_FIRST_CNP, 1);
    set(&mut c.pair.a, &[("base_target", FAR)]);
    let memory = memory(&mut c);
    c.execute(&write(&memory, 1000));
    c.settle();
    check("CNPs of the peer", c.pair.a.stat("rp_cnp_handled"), 1);
    c.pair.sent.clear();
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

fn swift_after_reset(bench: &mut Bench) {
    let values = [("base_target", NEAR), ("initial_cwnd", 7)];
    let mut s = script(bench, 0, &values);
    for _ in 0..3 {
        round_trip(&mut s);
    }
    s.reopen(|_| {});
    check("packets", window(&mut s), 7);
}

fn swift_ends_with_its_choice(bench: &mut Bench) {
    let mut s = script(bench, 0, &[("initial_cwnd", 2)]);
    check("packets", window(&mut s), 2);
    s.reopen(|contexts| contexts.sq.swift = false);
    check("packets", window(&mut s), 60);
    s.reopen(|contexts| contexts.sq.swift = true);
    check("packets", window(&mut s), 2);
}

/// As a passive side that gets its requester's image with RTR, and never goes to RTS.
fn swift_is_chosen_by_an_image(bench: &mut Bench) {
    let mut c = slowed_by_cnps(bench, options(14));
    c.reconnect(Side::A, |_| {});
    let (peer, qpn, host) = (c.pair.a.peer(c.qa), c.qb, &mut c.pair.b);
    host.reset_qp(qpn);
    let opening = host.opening(qpn, &peer);
    let mut images = host.images(qpn, &peer);
    let sq = SqCtx::parse(&images[0]);
    images[0] = SqCtx { swift: false, ..sq }.emit();
    let init = CmdHead {
        qp_sq: false,
        qp_av: false,
        qp_rq: false,
        sq_state: state::INIT,
        rq_state: state::INIT,
        ..opening
    };
    let rtr = CmdHead {
        qp_sq_state: false,
        sq_reset: false,
        rq_state: state::RTR,
        ..opening
    };
    check("to INIT", host.command(init, &[]).status, 0);
    check("to RTR", host.command(rtr, &images).status, 0);
    answers_are_slowed(&mut c);
}
