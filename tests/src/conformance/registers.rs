//! Registers, and the reset through register CONTROL.

use ferroce_proto::abi::classes;
use ferroce_proto::abi::regs::{self, Access, REGISTERS, STATS, STATS_BASE, control};
use ferroce_proto::wire::Mac;
use ferroce_sim::testhost::{Host, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, IP};
use super::{RC, cases, check, check_bytes};

cases! {
    registers_hold_what_is_written, 0, "abi regs", "What is written to a register is read from it, in all the bits that it has.";
    registers_that_are_read_only, 0, "abi regs", "Writes to read-only registers and to where there is none do nothing; what is not there is 0.";
    command_rings_have_a_largest_size, 0, "abi regs", "CMD_LOG_SIZE beyond 8 counts as 8; it is not written while the card is enabled.";
    statistics_and_what_follows, 0, "abi regs", "Every statistic is read; behind the last one there is 0.";
    reset_clears_the_registers, 0, "abi regs", "A reset through CONTROL leaves the registers as after power on, and the statistics 0.";
    reset_takes_everything_back, RC, "abi regs", "After a reset through CONTROL the card is set up afresh.";
    reset_amid_traffic, RC, "abi regs", "A reset through CONTROL ends what is under way; the card is set up afresh.";
}

/// Registers that hold all bits of a mask.
const HELD: [(u32, u32); 8] = [
    (regs::CMD_BASE_LO, !63),
    (regs::CMD_BASE_HI, !0),
    (regs::CPL_BASE_LO, !63),
    (regs::CPL_BASE_HI, !0),
    (regs::CMD_PI, !0),
    (regs::SCRATCH, !0),
    (regs::MIN_TIME_BETWEEN_CNPS, 0xffff),
    (regs::CNP_CONFIG, 0x1_073f),
];

/// Those of the exception queue, which is off.
const EXCEPTION: [(u32, u32); 4] = [
    (regs::EXC_BASE_LO, !0xfff),
    (regs::EXC_BASE_HI, !0),
    (regs::EXC_RX_CI, 0xffff),
    (regs::EXC_TX_PI, 0xffff),
];

/// Those of the traffic classes.
fn of_classes() -> impl Iterator<Item = (u32, u32)> {
    let tables = (0..8).map(|i| (regs::DSCP_PRIO_0 + 4 * i, classes::DSCP_PRIO_MASK));
    let others = [
        (regs::TRUST, 0x703),
        (regs::PRIO_CLASS, classes::PRIO_CLASS_MASK),
        (regs::CLASS_WEIGHT, classes::CLASS_WEIGHT_MASK),
        (regs::PFC_CONFIG, 0xffff),
        (regs::PFC_WATCHDOG, classes::PFC_WATCHDOG_MASK),
        (regs::PFC_XOFF, !0),
        (regs::PFC_XON, !0),
        (regs::PFC_LOSSY, !0),
        (regs::PFC_STORM, classes::PFC_STORM_MASK),
    ];
    tables.chain(others)
}

const VALUES: [u32; 5] = [0xffff_ffff, 0, 0x1234_5678, 0xa5a5_5a5a, 0];

fn host(bench: &mut Bench) -> Host {
    let mac = Mac([0x52, 0x54, 0, 0, 0, 2]);
    Host::new(|memory| bench.card(memory), mac, IP[1])
}

fn registers_hold_what_is_written(bench: &mut Bench) {
    let mut host = host(bench);
    host.write32(regs::CONTROL, 0);
    let features = host.read32(regs::FEATURES);
    let queue = &EXCEPTION[..];
    let queue = match features & regs::feature::EXCEPTION {
        0 => &[],
        _ => queue,
    };
    let mut held = [&HELD, queue].concat();
    if features & regs::feature::CLASSES != 0 {
        held.extend(of_classes());
    }
    for value in VALUES {
        for &(register, mask) in &held {
            host.write32(register, value & mask);
        }
        for &(register, mask) in &held {
            check(
                &format!("register {register:#x}"),
                host.read32(register),
                value & mask,
            );
        }
    }
    host.write32(regs::MIN_TIME_BETWEEN_CNPS, 0x1_0000);
    let longest = host.read32(regs::MIN_TIME_BETWEEN_CNPS);
    check("a time beyond its range", longest, 0xffff);
    if !queue.is_empty() {
        for (written, read) in [
            (0x3f, 0x38),
            (0x27, 0x27),
            (0, 0x07),
            (0x30, 0x30),
            (0x0f, 0x10),
        ] {
            host.write32(regs::EXC_CONFIG, written);
            check("EXC_CONFIG", host.read32(regs::EXC_CONFIG), read);
        }
    }
}

fn registers_that_are_read_only(bench: &mut Bench) {
    let mut host = host(bench);
    for register in REGISTERS.iter().filter(|r| r.access == Access::ReadOnly) {
        let before = host.read32(register.offset);
        for value in [!before, before ^ 0x5555_5555] {
            host.write32(register.offset, value);
            check(register.name, host.read32(register.offset), before);
        }
    }
    let end = REGISTERS.iter().map(|r| r.offset + 4).max();
    for offset in [end.expect("there are some"), 0x200, 0xffc, 0x8_0000] {
        host.write32(offset, 0xffff_ffff);
        check(&format!("at {offset:#x}"), host.read32(offset), 0);
    }
}

fn command_rings_have_a_largest_size(bench: &mut Bench) {
    let mut host = host(bench);
    let before = host.read32(regs::CMD_LOG_SIZE);
    host.write32(regs::CMD_LOG_SIZE, before + 1);
    let read = host.read32(regs::CMD_LOG_SIZE);
    check("CMD_LOG_SIZE of an enabled card", read, before);
    host.write32(regs::CONTROL, 0);
    for (written, read) in [(0, 0), (7, 7), (8, 8), (9, 8), (0x8000_0000, 8), (3, 3)] {
        host.write32(regs::CMD_LOG_SIZE, written);
        check("CMD_LOG_SIZE", host.read32(regs::CMD_LOG_SIZE), read);
    }
}

fn statistics_and_what_follows(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    for name in STATS {
        let value = c.a.stat(name);
        let expected = match *name {
            "tx_frames" | "tx_roce_packets" | "rx_frames" | "rx_roce_packets" | "rx_acks"
            | "rp_rtt_samples" => 1,
            // Commands, bytes and times are not what this is about.
            "commands" | "rx_bytes" | "tx_bytes" | "rp_rtt_cycles" => value,
            _ => 0,
        };
        check(name, value, expected);
    }
    let past = STATS_BASE + 8 * STATS.len() as u32;
    for offset in [past, past + 4, STATS_BASE + 0x3f8] {
        check(&format!("at {offset:#x}"), c.a.read32(offset), 0);
    }
}

fn reset_clears_the_registers(bench: &mut Bench) {
    let mut host = host(bench);
    host.write32(regs::CONTROL, 0);
    for (register, mask) in HELD.into_iter().chain(of_classes()) {
        host.write32(register, mask);
    }
    host.write32(regs::CONTROL, control::ENGINE_RESET);
    host.wait_ready();
    for register in REGISTERS.iter().filter(|r| r.access == Access::ReadWrite) {
        let value = host.read32(register.offset);
        check(register.name, value, register.reset);
    }
    for name in STATS {
        check(name, host.stat(name), 0);
    }
    host.restart();
}

/// A WRITE and a SEND of a fresh connection.
fn works(c: &mut super::bench::Conn) {
    let data = pattern(3000, 7);
    let source = c.a.create_mr(&data, Rights::NONE);
    let target = c.b.create_mr(&[0; 6000], Rights::ALL);
    c.execute(&Work::write(&[source.all()], &target, 3000));
    let taken = c.recv(&[target.sge(0, 3000)]);
    c.execute(&Work::send(&[source.all()]));
    c.succeeds(Side::B, taken);
    let expected = [data.clone(), data].concat();
    check_bytes("the target", &c.b.contents(&target), &expected);
}

/// Both hosts begin afresh.
fn again(c: &mut super::bench::Conn) {
    c.a.restart();
    c.b.restart();
    // What was on its way is gone before there is a queue pair of the same number.
    c.run(4000);
    c.a.create_cq(6);
    c.b.create_cq(6);
    let options = QpOptions::default();
    (c.qa, c.qb) = c.pair.connect(options, options);
}

fn reset_takes_everything_back(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for _ in 0..2 {
        works(&mut c);
        check("completions", c.a.stat("tx_frames") > 0, true);
        again(&mut c);
        check("frames", c.a.stat("tx_frames"), 0);
    }
    works(&mut c);
}

fn reset_amid_traffic(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for cycles in [100, 333, 1000] {
        let source = c.a.create_mr(&pattern(20_000, 7), Rights::NONE);
        let target = c.b.create_mr(&[0; 20_000], Rights::ALL);
        c.post(&Work::write(&[source.all()], &target, 0));
        c.run(cycles);
        again(&mut c);
        works(&mut c);
    }
}
