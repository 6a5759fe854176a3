//! Registers of the exception queue.

use ferroce_proto::abi::exception::{Config, Consumer, Status};
use ferroce_proto::abi::regs::{self, control};

use super::super::set;
use super::rig::{Rig, quiet};

fn word(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

fn config(log_slots: u8, large: bool, on: bool) -> u32 {
    word(
        Config {
            log_slots,
            large,
            on,
        }
        .emit(),
    )
}

fn shown(rig: &mut Rig, field: &str) -> u64 {
    rig.get(&format!("exception.{field}"))
}

#[test]
fn they_hold_what_is_written_and_show_it() {
    let mut rig = quiet();
    rig.write(regs::EXC_BASE_LO, 0x89ab_cdef);
    rig.write(regs::EXC_BASE_HI, 0x0123_4567);
    assert_eq!(rig.read(regs::EXC_BASE_LO), 0x89ab_c000, "4 KiB aligned");
    assert_eq!(rig.read(regs::EXC_BASE_HI), 0x0123_4567);
    assert_eq!(shown(&mut rig, "base"), 0x0123_4567_89ab_c000);
    for (log_slots, held) in [(3, 3), (8, 8), (9, 8), (15, 8), (0, 0)] {
        for large in [false, true] {
            rig.write(regs::EXC_CONFIG, config(log_slots, large, true));
            assert_eq!(rig.read(regs::EXC_CONFIG), config(held, large, true));
            assert_eq!(shown(&mut rig, "log_slots"), u64::from(held));
            assert_eq!(shown(&mut rig, "large"), u64::from(large));
            assert_eq!(shown(&mut rig, "on"), 1);
            // what is under way is finished in its slot
            rig.write(regs::EXC_CONFIG, 0);
            assert_eq!(rig.read(regs::EXC_CONFIG), config(held, large, false));
        }
    }
    rig.write(regs::EXC_TX_PI, 0xffff_1234);
    assert_eq!(rig.read(regs::EXC_TX_PI), 0x1234);
    assert_eq!(shown(&mut rig, "tx_producer"), 0x1234);
    let status = Status {
        tx_consumer: 0x4321,
        busy: true,
    };
    set(
        &mut rig.bench,
        "exception_status",
        word(status.emit()).into(),
    );
    assert_eq!(rig.read(regs::EXC_STATUS), word(status.emit()));
}

/// A queue that is turned on while memory of the former one is in use stays off.
#[test]
fn on_waits_until_nothing_of_before_is_under_way() {
    let mut rig = quiet();
    rig.write(regs::EXC_CONFIG, config(2, false, true));
    for (busy, on) in [(true, false), (false, true)] {
        rig.write(regs::EXC_CONFIG, config(2, false, false));
        let status = Status {
            tx_consumer: 0,
            busy,
        };
        set(
            &mut rig.bench,
            "exception_status",
            word(status.emit()).into(),
        );
        rig.write(regs::EXC_CONFIG, config(3, true, true));
        assert_eq!(shown(&mut rig, "on"), u64::from(on));
        let expected = if on {
            config(3, true, true)
        } else {
            config(2, false, false)
        };
        assert_eq!(rig.read(regs::EXC_CONFIG), expected);
    }
}

#[test]
fn arming_is_a_pulse_with_its_index() {
    let mut rig = quiet();
    let consumer = |index, arm| word(Consumer { index, arm }.emit());
    rig.write(regs::EXC_CONFIG, config(2, false, true));
    for arm in [false, true, true, false] {
        let before = rig.bench.cycle();
        rig.bus.master.write(regs::EXC_RX_CI, consumer(77, arm));
        let mut pulses = 0;
        while rig.bench.cycle() < before + 40 {
            rig.run(1);
            if shown(&mut rig, "arm") != 0 {
                pulses += 1;
                assert_eq!(shown(&mut rig, "rx_consumer"), 77);
            }
        }
        assert_eq!(pulses, u64::from(arm));
        assert_eq!(rig.read(regs::EXC_RX_CI), 77, "the bit does not stay");
        rig.write(regs::EXC_RX_CI, consumer(1, false));
    }
}

#[test]
fn off_and_reset_clear() {
    let mut rig = quiet();
    let fill = |rig: &mut Rig| {
        rig.write(regs::EXC_CONFIG, config(2, true, true));
        rig.write(regs::EXC_BASE_LO, 0x7000);
        rig.write(regs::EXC_RX_CI, 5);
        rig.write(regs::EXC_TX_PI, 6);
    };
    fill(&mut rig);
    rig.write(regs::EXC_CONFIG, config(2, true, false));
    assert_eq!(rig.read(regs::EXC_RX_CI), 0);
    assert_eq!(rig.read(regs::EXC_TX_PI), 0);
    assert_eq!(rig.read(regs::EXC_BASE_LO), 0x7000);
    assert_eq!(shown(&mut rig, "on"), 0);
    fill(&mut rig);
    assert_eq!(rig.read(regs::EXC_RX_CI), 5);
    rig.write(regs::EXC_CONFIG, config(2, true, true));
    assert_eq!(rig.read(regs::EXC_RX_CI), 5, "it was on");
    // what comes while it is off is void when it is turned on
    rig.write(regs::EXC_CONFIG, 0);
    rig.write(regs::EXC_RX_CI, 7);
    rig.write(regs::EXC_TX_PI, 8);
    rig.write(regs::EXC_CONFIG, config(2, true, true));
    assert_eq!(rig.read(regs::EXC_RX_CI), 0);
    assert_eq!(rig.read(regs::EXC_TX_PI), 0);
    fill(&mut rig);
    rig.write(regs::CONTROL, control::ENGINE_RESET);
    rig.run(5);
    set(&mut rig.bench, "reset_done", 1);
    rig.run(5);
    set(&mut rig.bench, "reset_done", 0);
    for register in [
        regs::EXC_CONFIG,
        regs::EXC_BASE_LO,
        regs::EXC_RX_CI,
        regs::EXC_TX_PI,
    ] {
        assert_eq!(rig.read(register), 0, "{register:#x}");
    }
}
