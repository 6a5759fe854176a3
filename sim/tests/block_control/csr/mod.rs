//! `csr`: registers, doorbells, reset, and what AXI4-Lite asks of a slave.

mod exception;
mod random;
mod rig;

use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::regs::{self, Access, REGISTERS, STATS, STATS_BASE, control, status};
use ferroce_sim::bench::StreamSink;
use ferroce_sim::random::Pauses;

use super::{set, uneven};
use rig::{C, Q, Rig, SQ_DOORBELL, after_reset, counter, quiet};

fn sq(qpn: u32) -> u32 {
    doorbell::sq(qpn) as u32
}

fn rq(qpn: u32) -> u32 {
    doorbell::rq(qpn) as u32
}

#[test]
fn registers_have_their_reset_values() {
    let mut rig = quiet();
    for register in REGISTERS {
        let expected = after_reset(register.offset, register.reset);
        assert_eq!(rig.read(register.offset), expected, "{}", register.name);
    }
    let outputs = [
        "enable",
        "reset",
        "cmd_base",
        "cpl_base",
        "cmd_log_size",
        "cmd_pi",
        "sq_doorbell_valid",
        "rq_doorbell_valid",
        "stat_read",
    ];
    for name in outputs {
        assert_eq!(rig.get(name), 0, "{name}");
    }
}

#[test]
fn what_does_not_exist_reads_0_and_takes_writes() {
    let mut rig = quiet();
    rig.enable();
    let nowhere = [
        regs::REGISTERS.len() as u32 * 4,
        0xffc,
        STATS_BASE + 8 * STATS.len() as u32,
        STATS_BASE + 0x3fc,
        STATS_BASE + 0x400,
        0xf_fffc,
        sq(3),
        doorbell::cq(1) as u32,
        doorbell::srq(1) as u32,
        regs::BAR0_BYTES as u32 - 4,
    ];
    for offset in nowhere {
        if offset < doorbell::QP_BASE as u32 {
            rig.write(offset, 0xffff_ffff);
        }
        assert_eq!(rig.read(offset), 0, "{offset:#x}");
    }
    for register in REGISTERS {
        if register.access == Access::ReadOnly {
            rig.write(register.offset, !0);
        }
        if register.offset != regs::CONTROL {
            let expected = after_reset(register.offset, register.reset);
            assert_eq!(rig.read(register.offset), expected, "{}", register.name);
        }
    }
    assert_eq!(rig.rung(), [vec![], vec![]]);
    assert_eq!(rig.counters.reads, 0, "no counter was looked up");
}

#[test]
fn registers_hold_what_is_written_and_show_it_to_the_engine() {
    let mut rig = quiet();
    rig.write(regs::CMD_BASE_LO, 0x89ab_cdc0);
    rig.write(regs::CMD_BASE_HI, 0x0123_4567);
    rig.write(regs::CPL_BASE_LO, 0x7654_3240);
    rig.write(regs::CPL_BASE_HI, 0xfedc_ba98);
    rig.write(regs::CMD_PI, 0xabcd_1234);
    rig.write(regs::SCRATCH, 0x5555_aaaa);
    set(&mut rig.bench, "cmd_ci", 0x4321);
    for (offset, value) in [
        (regs::CMD_BASE_LO, 0x89ab_cdc0),
        (regs::CMD_BASE_HI, 0x0123_4567),
        (regs::CPL_BASE_LO, 0x7654_3240),
        (regs::CPL_BASE_HI, 0xfedc_ba98),
        (regs::CMD_PI, 0xabcd_1234),
        (regs::SCRATCH, 0x5555_aaaa),
        (regs::CMD_CI, 0x4321),
        // the two low bits of an address do not count
        (regs::SCRATCH + 3, 0x5555_aaaa),
    ] {
        assert_eq!(rig.read(offset), value, "{offset:#x}");
    }
    assert_eq!(rig.get("cmd_base"), 0x0123_4567_89ab_cdc0);
    assert_eq!(rig.get("cpl_base"), 0xfedc_ba98_7654_3240);
    assert_eq!(rig.get("cmd_pi"), 0x1234);
}

#[test]
fn ring_size_is_at_most_8_and_fixed_while_enabled() {
    let mut rig = quiet();
    for (written, held) in [(3, 3), (8, 8), (9, 8), (0x10, 8), (0x8000_0001, 8), (0, 0)] {
        rig.write(regs::CMD_LOG_SIZE, written);
        assert_eq!(rig.read(regs::CMD_LOG_SIZE), held);
        assert_eq!(rig.get("cmd_log_size"), u64::from(held));
    }
    rig.write(regs::CMD_LOG_SIZE, 4);
    rig.enable();
    rig.write(regs::CMD_LOG_SIZE, 2);
    assert_eq!(rig.read(regs::CMD_LOG_SIZE), 4);
    rig.write(regs::CONTROL, 0);
    assert_eq!(rig.get("enable"), 0);
    rig.write(regs::CMD_LOG_SIZE, 2);
    assert_eq!(rig.read(regs::CMD_LOG_SIZE), 2);
}

#[test]
fn status_shows_link_ready_and_a_failed_access_for_good() {
    let mut rig = quiet();
    assert_eq!(rig.read(regs::STATUS), 0);
    set(&mut rig.bench, "link_up", 1);
    assert_eq!(rig.read(regs::STATUS), status::LINK_UP);
    set(&mut rig.bench, "ready", 1);
    assert_eq!(rig.read(regs::STATUS), status::LINK_UP | status::READY);
    rig.pulse("dma_error");
    rig.run(10);
    let failed = status::LINK_UP | status::READY | status::DMA_ERROR;
    assert_eq!(rig.read(regs::STATUS), failed);
    rig.pulse("ring_error");
    rig.run(10);
    let all = failed | status::RING_ERROR;
    assert_eq!(rig.read(regs::STATUS), all);
    set(&mut rig.bench, "link_up", 0);
    assert_eq!(rig.read(regs::STATUS), all & !status::LINK_UP);
}

#[test]
fn reset_of_the_engine_clears_all_and_lasts_until_it_is_done() {
    let mut rig = quiet();
    set(&mut rig.bench, "ready", 1);
    rig.pulse("dma_error");
    for register in REGISTERS {
        if register.access == Access::ReadWrite && register.offset != regs::CONTROL {
            rig.write(register.offset, 0x0101_0107);
        }
    }
    rig.enable();
    rig.write(regs::CONTROL, control::ENABLE | control::ENGINE_RESET);
    assert_eq!((rig.get("reset"), rig.get("enable")), (1, 0));
    // an access of the old life fails
    rig.pulse("dma_error");
    for register in REGISTERS {
        let expected = match register.offset {
            regs::CONTROL => control::ENGINE_RESET,
            offset => after_reset(offset, register.reset),
        };
        assert_eq!(rig.read(register.offset), expected, "{}", register.name);
    }
    // doorbells are ignored, also when enabled already; counters read 0 and hold up nothing
    rig.enable();
    rig.write(sq(3), 7);
    assert_eq!(rig.get("enable"), 0);
    rig.counters.no_answer = true;
    assert_eq!(rig.read(STATS_BASE), 0);
    assert_eq!(rig.read(STATS_BASE + 4), 0);
    assert_eq!(
        rig.read(regs::CONTROL),
        control::ENGINE_RESET | control::ENABLE
    );
    assert_eq!(rig.read(regs::STATUS), 0);
    rig.run(100);
    assert_eq!(rig.get("reset"), 1);
    rig.pulse("reset_done");
    assert_eq!((rig.get("reset"), rig.get("enable")), (0, 1));
    assert_eq!(rig.read(regs::STATUS), status::READY);
    assert_eq!(rig.rung(), [vec![], vec![]]);
}

#[test]
fn reset_frees_a_read_that_waits_for_a_counter() {
    let mut rig = quiet();
    rig.counters.no_answer = true;
    rig.bus.master.start_read(STATS_BASE + 16);
    rig.run(50);
    assert_eq!(rig.get("stat_read"), 1);
    assert!(rig.bus.master.take_read().is_none());
    rig.bus.master.write(regs::CONTROL, control::ENGINE_RESET);
    rig.finish();
    assert_eq!(rig.bus.master.take_read(), Some(0));
    assert_eq!(rig.get("stat_read"), 0);
}

#[test]
fn doorbells_of_the_build_count_while_enabled() {
    let mut rig = quiet();
    rig.write(sq(1), 1);
    rig.enable();
    for qpn in 0..1 << Q {
        rig.write(sq(qpn), 0xffff_0100 + qpn);
        rig.write(rq(qpn), 0x0001_0200 + qpn);
    }
    rig.write(sq(1 << Q), 2);
    rig.write(rq(1 << Q), 3);
    rig.write(doorbell::CQ_BASE as u32 - 8, 4);
    for cqn in 0..1 << C {
        rig.write(
            doorbell::cq(cqn) as u32,
            doorbell::ARM_ANY | 0x12_3450 | cqn,
        );
    }
    rig.write(doorbell::cq(1) as u32, doorbell::ARM_SOLICITED | 0xff_ffff);
    rig.write(doorbell::cq(1 << C) as u32, doorbell::ARM_ANY);
    rig.write(doorbell::srq(2) as u32, 5);
    rig.write(doorbell::srq(0xffff) as u32, 0x1_8001);
    rig.write(doorbell::srq(0x1_0000) as u32, 5);
    rig.write(regs::BAR0_BYTES as u32 - 8, 6);
    rig.write(regs::CONTROL, 0);
    rig.write(rq(1), 7);
    rig.write(doorbell::cq(2) as u32, doorbell::ARM_ANY);
    let mut arms: Vec<_> = (0..1 << C).map(|n| (n, 1, 0, 0x12_3450 | n)).collect();
    arms.push((1, 0, 1, 0xff_ffff));
    assert_eq!(rig.armed(), arms);
    let events = |base| (0..1 << Q).map(|qpn| (qpn, base + qpn)).collect::<Vec<_>>();
    assert_eq!(rig.rung(), [events(0x100), events(0x200)]);
    assert_eq!(rig.shared, [(2, 5), (0xffff, 0x8001)]);
}

#[test]
fn a_doorbell_that_is_not_taken_holds_up_the_bus_and_loses_nothing() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, u32::MAX));
    rig.enable();
    for i in 0..20 {
        rig.bus.master.write(sq(i % 16), i);
        rig.bus.master.write(rq(i % 16), 100 + i);
    }
    rig.bus.master.write(regs::SCRATCH, 1);
    rig.run(200);
    let item = rig.sq.item();
    let first = item.with("kind", SQ_DOORBELL);
    assert_eq!(rig.sq.count(), 0, "{first:?} waits");
    assert_eq!(rig.get("sq_doorbell_valid"), 1);
    assert_eq!(rig.get("rq_doorbell_valid"), 0);
    assert!(!rig.bus.master.idle());
    // the host does not get past them
    rig.sq = StreamSink::new(rig.bench.dut(), "sq_doorbell", uneven()).unwrap();
    rig.rq = StreamSink::new(rig.bench.dut(), "rq_doorbell", uneven()).unwrap();
    rig.finish();
    rig.run(50);
    let events = |base: u64| (0..20).map(|i| (i % 16, base + i)).collect::<Vec<_>>();
    assert_eq!(rig.rung(), [events(0), events(100)]);
    assert_eq!(rig.read(regs::SCRATCH), 1);
}

#[test]
fn reset_forgets_doorbells_that_were_not_taken() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::new(1.0, u32::MAX));
    rig.enable();
    rig.write(sq(1), 1);
    assert_eq!(rig.get("sq_doorbell_valid"), 1);
    set(&mut rig.bench, "sq_doorbell_ready", 0);
    // No sink: an event is withdrawn, which only a consumer in reset may see.
    rig.bus.master.write(regs::CONTROL, control::ENGINE_RESET);
    for _ in 0..20 {
        rig.bench.step(&mut [&mut rig.bus]).unwrap();
    }
    assert_eq!((rig.get("reset"), rig.get("sq_doorbell_valid")), (1, 0));
}

#[test]
fn writes_of_less_than_a_word_do_nothing_and_fail() {
    let mut rig = quiet();
    rig.enable();
    for (offset, strb) in [(regs::SCRATCH, 0x7), (regs::CONTROL, 0x0), (sq(2), 0xe)] {
        for (name, value) in [
            ("awaddr", u64::from(offset)),
            ("awvalid", 1),
            ("wdata", 0xffff_ffff),
            ("wstrb", strb),
            ("wvalid", 1),
            ("bready", 0),
        ] {
            set(&mut rig.bench, &format!("s_axil_{name}"), value);
        }
        rig.bench.step(&mut []).unwrap();
        set(&mut rig.bench, "s_axil_awvalid", 0);
        set(&mut rig.bench, "s_axil_wvalid", 0);
        rig.bench.run(&mut [], 3).unwrap();
        assert_eq!((rig.get("s_axil_bvalid"), rig.get("s_axil_bresp")), (1, 2));
        set(&mut rig.bench, "s_axil_bready", 1);
        rig.bench.step(&mut []).unwrap();
        assert_eq!(rig.get("s_axil_bvalid"), 0);
    }
    assert_eq!(rig.read(regs::SCRATCH), 0);
    assert_eq!(rig.read(regs::CONTROL), control::ENABLE);
    assert_eq!(rig.rung(), [vec![], vec![]]);
}

#[test]
fn low_half_of_a_counter_latches_the_high_half() {
    let mut rig = quiet();
    for index in [0, 1, STATS.len() as u32 - 1] {
        let at = STATS_BASE + 8 * index;
        let low = rig.read(at);
        let reads = rig.counters.reads;
        let value = counter(index.into(), reads);
        assert_eq!(low, value as u32);
        assert_eq!(rig.read(at + 4), (value >> 32) as u32);
        assert_eq!(rig.counters.reads, reads, "the high half was kept");
    }
}

#[test]
fn a_write_every_second_cycle() {
    let mut rig = quiet();
    rig.enable();
    let start = rig.bench.cycle();
    for i in 0..500 {
        rig.bus.master.write(sq(i % 16), i);
    }
    rig.finish();
    let cycles = rig.bench.cycle() - start;
    assert!(cycles <= 1_010, "{cycles} cycles for 500 doorbells");
    assert_eq!(rig.rung()[0].len(), 500);
}

#[test]
fn the_pin_resets_everything() {
    let mut rig = Rig::new(uneven(), Pauses::new(1.0, u32::MAX));
    rig.enable();
    rig.write(regs::CMD_PI, 5);
    rig.write(sq(1), 1);
    rig.bus.master.write(sq(2), 1);
    rig.run(30);
    rig.with(|bench, agents| bench.reset(agents));
    assert_eq!(rig.get("sq_doorbell_valid"), 0);
    for register in REGISTERS {
        let expected = after_reset(register.offset, register.reset);
        assert_eq!(rig.read(register.offset), expected, "{}", register.name);
    }
}
