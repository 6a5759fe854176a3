//! The reaction point, which CNPs slow down.

use ferroce_proto::abi::regs::{self, feature};
use ferroce_sim::testhost::{Mr, QpOptions, Side};

use super::bench::{Bench, Conn};
use super::notification::marked;
use super::rates::{
    CYCLES_PER_US, RATES, gap, leave_at_once, leaves_at, limited, memory, post, write,
};
use super::{cases, check};

/// With a notification point on the other side.
const DCQCN: u32 = RATES | feature::CNP;

cases! {
    rate_after_a_cnp, DCQCN, "mlx5 DCQCN", "With a first CNP the rate is halved.";
    rate_set_by_a_cnp, DCQCN, "mlx5 DCQCN", "With rate_to_set_on_first_cnp the first CNP sets that rate.";
    rate_of_others_after_a_cnp, DCQCN, "A17.9.3", "A CNP slows down its own queue pair only.";
    rate_rises_again, DCQCN, "mlx5 DCQCN", "Without further CNPs the rate rises to that of the line.";
    rate_after_reset, DCQCN, "IBA 10.3.1", "What a CNP made of a queue pair is none of the next one of its number.";
    rate_without_reaction, DCQCN, "abi regs", "With RP_CONFIG.enable = 0 a CNP is counted and slows nothing down.";
    rate_with_a_small_alpha, DCQCN, "SIGCOMM 2015 DCQCN", "Each tick takes the same share of alpha, however small it is.";
    rate_with_a_whole_alpha, DCQCN, "isekai DCQCN", "With RP_CONFIG.alpha_whole a tick rounds alpha down to 1/1024: a small one is soon gone.";
}

/// A connection whose first packet draws the only CNP, and the memory of its messages.
fn congested(bench: &mut Bench, registers: &[(u32, u32)]) -> (Conn, (Mr, Mr)) {
    let mut c = marked(bench.connect(limited(0)), Side::A);
    for &(register, value) in registers {
        c.pair.a.write32(register, value);
    }
    let memory = memory(&mut c);
    c.execute(&write(&memory, 1000));
    c.settle();
    // past the end of the monitor period
    c.pair.run(8 * CYCLES_PER_US);
    check("CNPs of the peer", c.pair.a.stat("rp_cnp_handled"), 1);
    c.pair.sent.clear();
    (c, memory)
}

/// Microseconds that no case waits.
const LONG: u32 = 100_000;

fn rate_after_a_cnp(bench: &mut Bench) {
    let registers = [(regs::LINE_RATE, 2000), (regs::RPG_TIME_RESET, LONG)];
    let (mut c, memory) = congested(bench, &registers);
    post(&mut c, &memory, 12, 1000);
    // alpha is 1023/1024 at the CNP and 1008/1024 at the end of the monitor period
    leaves_at(&mut c, 12, gap(1000, 2000 - 2000 * 1008 / 2048));
}

fn rate_set_by_a_cnp(bench: &mut Bench) {
    let registers = [
        (regs::RATE_TO_SET_ON_FIRST_CNP, 500),
        (regs::RPG_TIME_RESET, LONG),
    ];
    let (mut c, memory) = congested(bench, &registers);
    post(&mut c, &memory, 8, 1000);
    leaves_at(&mut c, 8, gap(1000, 500));
}

fn rate_of_others_after_a_cnp(bench: &mut Bench) {
    let registers = [
        (regs::RATE_TO_SET_ON_FIRST_CNP, 1),
        (regs::RPG_TIME_RESET, LONG),
    ];
    let (mut c, memory) = congested(bench, &registers);
    c.mend();
    let [qa, qb] = [&mut c.pair.a, &mut c.pair.b].map(|h| h.create_qp(QpOptions::default()));
    c.pair.join(qa, qb);
    c.qa = qa;
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

fn rate_rises_again(bench: &mut Bench) {
    let registers = [
        (regs::RATE_TO_SET_ON_FIRST_CNP, 100),
        (regs::RPG_TIME_RESET, 10),
        (regs::RPG_AI_RATE, 50_000),
    ];
    let (mut c, memory) = congested(bench, &registers);
    // 6 increases of the target, and each halves what is left to it
    c.pair.run(400 * CYCLES_PER_US);
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

fn rate_after_reset(bench: &mut Bench) {
    let registers = [
        (regs::RATE_TO_SET_ON_FIRST_CNP, 1),
        (regs::RPG_TIME_RESET, LONG),
    ];
    let (mut c, memory) = congested(bench, &registers);
    c.mend();
    c.start_again();
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

fn rate_without_reaction(bench: &mut Bench) {
    let registers = [
        (regs::RP_CONFIG, regs::RP_CONFIG_RESET & !1),
        (regs::RATE_TO_SET_ON_FIRST_CNP, 1),
    ];
    let (mut c, memory) = congested(bench, &registers);
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}

/// Behind a first CNP whose decrease comes 199 ticks after alpha was 100/1024.
fn late_decrease(bench: &mut Bench, config: u32) -> (Conn, (Mr, Mr)) {
    let registers = [
        (regs::RP_CONFIG, regs::RP_CONFIG_RESET | config),
        (regs::LINE_RATE, 2000),
        (regs::RPG_TIME_RESET, LONG),
        (regs::INITIAL_ALPHA_VALUE, 100),
        (regs::DCE_TCP_G, 1023),
        (regs::RATE_REDUCE_MONITOR_PERIOD, 200),
        (regs::RPG_GD, 8),
    ];
    let (mut c, memory) = congested(bench, &registers);
    c.pair.run(250 * CYCLES_PER_US);
    (c, memory)
}

fn rate_with_a_small_alpha(bench: &mut Bench) {
    let (mut c, memory) = late_decrease(bench, 0);
    post(&mut c, &memory, 12, 1000);
    // alpha is 100/1024 * (1023/1024)^199, that is 82.3/1024
    leaves_at(&mut c, 12, gap(1000, 2000 - 2000 * 823 / 2560));
}

fn rate_with_a_whole_alpha(bench: &mut Bench) {
    let (mut c, memory) = late_decrease(bench, 1 << 4);
    post(&mut c, &memory, 8, 1000);
    leave_at_once(&mut c, Side::A);
}
