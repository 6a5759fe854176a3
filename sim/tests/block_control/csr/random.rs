//! Random accesses against the registers in plain Rust.

use std::collections::BTreeMap;

use ferroce_proto::abi::classes;
use ferroce_proto::abi::rates::{RP_RANGES, SWIFT_FIELDS};
use ferroce_proto::abi::regs::{self, Access, REGISTERS, STATS, STATS_BASE, control};

use super::rig::{Q, Rig, after_reset, counter};
use super::{sq, uneven};

/// What the registers are to hold.
#[derive(Default)]
struct Reference {
    words: BTreeMap<u32, u32>,
    enabled: bool,
    high: u32,
    rung: [Vec<(u64, u64)>; 2],
}

impl Reference {
    fn write(&mut self, offset: u32, value: u32) {
        let held = match offset {
            regs::CONTROL => {
                self.enabled = value & control::ENABLE != 0;
                return;
            }
            regs::CMD_LOG_SIZE if self.enabled => return,
            regs::CMD_LOG_SIZE => value.min(8),
            regs::EXC_BASE_LO => value & !0xfff,
            regs::EXC_RX_CI | regs::EXC_TX_PI => value & 0xffff,
            regs::MIN_TIME_BETWEEN_CNPS => value.min(0xffff),
            regs::CNP_CONFIG => value & 0x1_073f,
            regs::RP_CONFIG => value & 0x1f,
            regs::TRUST => value & 0x703,
            regs::DSCP_PRIO_0..=regs::DSCP_PRIO_7 => value & classes::DSCP_PRIO_MASK,
            regs::PRIO_CLASS => value & classes::PRIO_CLASS_MASK,
            regs::CLASS_WEIGHT => value & classes::CLASS_WEIGHT_MASK,
            regs::PFC_CONFIG => value & 0xffff,
            regs::PFC_WATCHDOG => value & classes::PFC_WATCHDOG_MASK,
            regs::PFC_STORM => value & classes::PFC_STORM_MASK,
            regs::EXC_CONFIG => {
                if value & 0x20 == 0 {
                    self.words.insert(regs::EXC_RX_CI, 0);
                    self.words.insert(regs::EXC_TX_PI, 0);
                    self.read(offset) & 0x1f
                } else {
                    value & 0x30 | (value & 0xf).min(8)
                }
            }
            regs::SWIFT_TARGET..=regs::SWIFT_STEP => {
                let fields = SWIFT_FIELDS.iter().filter(|f| f.register == offset);
                fields.fold(0, |held, field| held | field.value(value) << field.at)
            }
            _ => match RP_RANGES.iter().find(|(register, ..)| *register == offset) {
                Some(&(_, low, high)) => value.clamp(low, high),
                None => value,
            },
        };
        if let Some(register) = REGISTERS.iter().find(|r| r.offset == offset) {
            if register.access == Access::ReadWrite {
                self.words.insert(offset, held);
            }
        } else if (sq(0)..sq(1 << Q)).contains(&offset) && self.enabled {
            let (side, qpn) = (offset / 4 % 2, (offset - sq(0)) / 8);
            self.rung[side as usize].push((qpn.into(), u64::from(value & 0xffff)));
        }
    }

    fn read(&self, offset: u32) -> u32 {
        let Some(register) = REGISTERS.iter().find(|r| r.offset == offset) else {
            return 0;
        };
        match offset {
            regs::CONTROL => self.enabled.into(),
            _ => *self
                .words
                .get(&offset)
                .unwrap_or(&after_reset(offset, register.reset)),
        }
    }
}

#[test]
fn random_accesses_with_pauses_everywhere() {
    let mut rig = Rig::new(uneven(), uneven());
    rig.counters.longest = 40;
    let mut reference = Reference::default();
    for _ in 0..1500 {
        let rng = rig.bench.rng();
        let offset = match rng.u8(..8) {
            0..4 => 4 * rng.u32(..REGISTERS.len() as u32),
            4 => STATS_BASE + 4 * rng.u32(..2 * STATS.len() as u32 + 4),
            5 => rng.u32(..regs::BAR0_BYTES as u32) & !3,
            _ => sq(0) + 4 * rng.u32(..2 << Q) + 8 * rng.u32(..3),
        };
        let value = match offset {
            // the reset has its own cases
            regs::CONTROL => rng.u32(..) & !control::ENGINE_RESET,
            regs::CMD_LOG_SIZE if rng.bool() => rng.u32(..16),
            _ => rng.u32(..),
        };
        if rng.u8(..3) > 0 {
            rig.bus.master.write(offset, value);
            reference.write(offset, value);
            continue;
        }
        let found = rig.read(offset);
        let counters = STATS_BASE..STATS_BASE + 8 * STATS.len() as u32;
        if !counters.contains(&offset) {
            assert_eq!(found, reference.read(offset), "{offset:#x}");
        } else if offset % 8 == 0 {
            let index = (offset - STATS_BASE) / 8;
            let value = counter(index.into(), rig.counters.reads);
            reference.high = (value >> 32) as u32;
            assert_eq!(found, value as u32, "counter {index}");
        } else {
            assert_eq!(found, reference.high, "latched");
        }
    }
    rig.finish();
    rig.run(50);
    assert_eq!(rig.rung(), reference.rung);
}
