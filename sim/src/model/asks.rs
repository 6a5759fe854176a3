//! Pauses that the card asks its peer for, by what a class holds of the receive buffer (docs/classes.md).
//!
//! A packet is executed in the cycle in which it comes: at the end of a cycle the buffer is empty, and no class is ever refused. So a
//! class asks while PFC_XOFF is 0 in one of its halves, and until PFC_XON is 0 in none.

use ferroce_proto::abi::classes::{
    CLASSES, PFC_LOSSY_RESET, PFC_STORM_MASK, PFC_STORM_RESET, PFC_XOFF_RESET, PFC_XON_RESET,
    PRIORITIES,
};
use ferroce_proto::abi::regs;

use super::classes::Tables;
use super::stats::{
    Stats, TX_PAUSE_STORM_ERROR_EVENTS, TX_PAUSE_STORM_WARNING_EVENTS, TX_PRIO0_PAUSE,
};
use crate::nic::NS_PER_CYCLE;

/// Cycles of a millisecond.
const MILLISECOND: u64 = 1_000_000 / NS_PER_CYCLE;
/// Cycles for which a bit of the level stays.
const STAYS: u64 = 16;

/// A class.
#[derive(Clone, Copy, Default)]
struct Class {
    asks: bool,
    /// Cycles for which it asks without a packet that passes.
    age: u64,
    warned: bool,
    /// For too long, until it asks no more.
    stopped: bool,
}

/// What is asked for.
#[derive(Clone)]
pub(super) struct Asks {
    /// Priorities of which pauses are sent.
    pub(super) sends: u8,
    xoff: u32,
    xon: u32,
    lossy: u32,
    /// Milliseconds; 0: for ever.
    storm: u32,
    classes: [Class; CLASSES],
    level: u8,
    /// Cycles for which each bit of it still stays.
    stays: [u64; PRIORITIES],
}

impl Default for Asks {
    fn default() -> Self {
        Self {
            sends: 0,
            xoff: PFC_XOFF_RESET,
            xon: PFC_XON_RESET,
            lossy: PFC_LOSSY_RESET,
            storm: PFC_STORM_RESET,
            classes: Default::default(),
            level: 0,
            stays: [0; PRIORITIES],
        }
    }
}

impl Asks {
    /// Writes a register; false if it is another's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        match offset {
            regs::PFC_XOFF => self.xoff = value,
            regs::PFC_XON => self.xon = value,
            regs::PFC_LOSSY => self.lossy = value,
            regs::PFC_STORM => self.storm = value & PFC_STORM_MASK,
            _ => return false,
        }
        true
    }

    /// Reads a register, if it is one of these.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        match offset {
            regs::PFC_XOFF => Some(self.xoff),
            regs::PFC_XON => Some(self.xon),
            regs::PFC_LOSSY => Some(self.lossy),
            regs::PFC_STORM => Some(self.storm),
            _ => None,
        }
    }

    /// Pauses may begin or end.
    pub(super) fn is_busy(&self) -> bool {
        self.sends != 0 || self.level != 0
    }

    /// A packet of a class came, and was executed.
    pub(super) fn passes(&mut self, class: u8) {
        let class = &mut self.classes[usize::from(class)];
        (class.age, class.warned) = (0, false);
    }

    /// One cycle; the priorities that the peer is to pause.
    pub(super) fn step(&mut self, tables: &Tables, stats: &mut Stats) -> u8 {
        for stays in &mut self.stays {
            *stays = stays.saturating_sub(1);
        }
        if !self.is_busy() {
            self.classes = Default::default();
            return 0;
        }
        let halves = |register: u32| [register & 0xffff, register >> 16];
        // of a buffer that holds 0 units and 0 packets
        let is_over = halves(self.xoff).contains(&0);
        let is_under = !halves(self.xon).contains(&0);
        let sends = (0..PRIORITIES as u8).filter(|p| self.sends >> p & 1 == 1);
        let lossless: Vec<_> = sends.clone().map(|p| tables.class(p)).collect();
        for (number, class) in (0..).zip(&mut self.classes) {
            class.asks = lossless.contains(&number) && (is_over || class.asks && !is_under);
            if !class.asks {
                *class = Class::default();
                continue;
            }
            class.age += 1;
            let lasts = |ms: u32| ms > 0 && class.age > u64::from(ms) * MILLISECOND;
            // 27 of 32 parts
            if lasts(self.storm - self.storm / 8 - self.storm / 32) && !class.warned {
                class.warned = true;
                stats.count(TX_PAUSE_STORM_WARNING_EVENTS);
            }
            if lasts(self.storm) && !class.stopped {
                class.stopped = true;
                stats.count(TX_PAUSE_STORM_ERROR_EVENTS);
            }
        }
        let asks = |p: &u8| {
            let class = self.classes[usize::from(tables.class(*p))];
            class.asks && !class.stopped
        };
        let wanted: u8 = sends.filter(asks).map(|p| 1 << p).sum();
        for (priority, stays) in self.stays.iter_mut().enumerate() {
            if *stays == 0 && (wanted ^ self.level) >> priority & 1 == 1 {
                self.level ^= 1 << priority;
                *stays = STAYS;
                if wanted >> priority & 1 == 1 {
                    stats.count(TX_PRIO0_PAUSE.nth(priority));
                }
            }
        }
        self.level
    }
}
