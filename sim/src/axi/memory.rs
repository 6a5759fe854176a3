//! Host memory behind `m_axi`: an AXI4 memory that takes every liberty AXI allows.
//!
//! * Read data of one ID come in order; those of different IDs overtake each other and may interleave
//!   by beat. A read sees memory either when its address is taken or when its first beat is offered.
//! * Writes become visible one by one at a random time between their last beat and their response. Of
//!   one ID only overlapping ones keep their order, as AXI4 A6.3 has it for memory; responses of one
//!   ID come in order.
//! * With [`Config::tie`], data that came behind a register write wait until that has its response: a completion does
//!   not pass a posted write of PCIe, and a bridge keeps to that.
//! * W may run ahead of AW by a few beats.
//! * An access outside of what the host mapped answers DECERR and is a fault of the
//!   [`HostMemory`]; one to what the host took back is a fault, too, and works. Bytes of a read beat next to mapped ones are noise instead, since AXI cannot ask for
//!   less than the rest of a beat.
//!
//! Nothing is allocated or hashed in a steady state; the cost of a cycle does not depend on how many
//! bursts are outstanding.

use std::rc::Rc;

use fastrand::Rng;

use super::check::{Hold, Violations};
use super::read::Reads;
use super::write::Writes;
use super::{Address, FromMaster, MAX_LANES, Slave, ToMaster, WriteData};
use crate::memory::{Fault, HostMemory};
use crate::random::{Delay, Pauses};
use crate::rate::Rate;

/// How the memory behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Cycles from the transfer of an address to the earliest first beat of its data, beyond the one
    /// that registers take.
    pub read_latency: Delay,
    /// Cycles from the transfer of the last beat to the earliest response, beyond the one that
    /// registers take.
    pub write_latency: Delay,
    /// Read beats in a cycle, at most one.
    pub read_rate: Rate,
    /// Write beats in a cycle, at most one.
    pub write_rate: Rate,
    /// Pauses of AWREADY.
    pub aw: Pauses,
    /// Pauses of WREADY.
    pub w: Pauses,
    /// Pauses between responses.
    pub b: Pauses,
    /// Pauses of ARREADY.
    pub ar: Pauses,
    /// Pauses between read beats.
    pub r: Pauses,
    /// Transactions of different IDs overtake each other, and their data interleave. Otherwise all
    /// answers come in the order of the addresses.
    pub reorder: bool,
    /// Read data do not pass the host's writes to registers.
    pub tie: bool,
    /// Writes are answered when the bridge has them, and visible later, all in order; reads see those before them.
    pub early_b: bool,
    /// A burst is read line by line of 64 bytes, each at its time.
    pub tear: bool,
    /// Read bursts outstanding, at most 65535.
    pub max_reads: usize,
    /// Write bursts outstanding, at most 65535.
    pub max_writes: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl Config {
    /// A bridge: B before a write is visible, lines that tear, and 32 reads in all.
    #[must_use]
    pub fn bridge(self) -> Self {
        Self {
            early_b: true,
            tear: true,
            max_reads: 32,
            ..self
        }
    }
}

impl Default for Config {
    /// The fastest memory: no latency, a beat a cycle, in order.
    fn default() -> Self {
        Self {
            read_latency: Delay::fixed(0),
            write_latency: Delay::fixed(0),
            read_rate: Rate::ONE,
            write_rate: Rate::ONE,
            aw: Pauses::NONE,
            w: Pauses::NONE,
            b: Pauses::NONE,
            ar: Pauses::NONE,
            r: Pauses::NONE,
            reorder: false,
            tie: true,
            early_b: false,
            tear: false,
            max_reads: 256,
            max_writes: 256,
            seed: 1,
        }
    }
}

impl Config {
    /// A loaded host: 1 us (250 cycles) to read, half of it to write, reordering.
    #[must_use]
    pub fn host(seed: u64) -> Self {
        Self {
            read_latency: Delay::between(230, 270),
            write_latency: Delay::between(100, 150),
            reorder: true,
            seed,
            ..Self::default()
        }
    }

    /// Everything AXI allows, all at once: pauses on every channel, latency from none to long, few
    /// outstanding bursts.
    #[must_use]
    pub fn hostile(seed: u64) -> Self {
        let pauses = Pauses::new(0.2, 8);
        Self {
            read_latency: Delay::between(0, 120),
            write_latency: Delay::between(0, 120),
            aw: pauses,
            w: pauses,
            b: pauses,
            ar: pauses,
            r: pauses,
            reorder: true,
            max_reads: 8,
            max_writes: 8,
            seed,
            ..Self::default()
        }
    }
}

/// What passed, and how well the engine took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Read bursts begun.
    pub read_bursts: u64,
    /// Read beats transferred.
    pub read_beats: u64,
    /// Write bursts begun.
    pub write_bursts: u64,
    /// Write beats transferred.
    pub write_beats: u64,
    /// Bytes written, by strobes.
    pub written_bytes: u64,
    /// Cycles in which read data waited for RREADY.
    pub r_waits: u64,
    /// Cycles in which a response waited for BREADY.
    pub b_waits: u64,
    /// Most read bursts outstanding at once.
    pub peak_reads: usize,
    /// Most write bursts outstanding at once.
    pub peak_writes: usize,
    /// Bursts that reached memory which is not mapped.
    pub faults: u64,
}

/// What both halves of the memory share.
pub(super) struct Shared {
    pub(super) memory: Rc<dyn HostMemory>,
    /// Bytes of a beat.
    pub(super) lanes: usize,
    pub(super) reorder: bool,
    /// Data that came in this cycle or later are held back.
    pub(super) held_from: u64,
    tie: bool,
    pub(super) early_b: bool,
    pub(super) tear: bool,
    /// Answers have no latency.
    pub(super) hurry: bool,
    pub(super) rng: Rng,
    pub(super) stats: Stats,
    pub(super) log: Violations,
}

/// An AXI4 memory.
pub struct Memory {
    shared: Shared,
    reads: Reads,
    writes: Writes,
    aw: Hold<Address>,
    w: Hold<WriteData>,
    ar: Hold<Address>,
}

impl Memory {
    /// A memory of `lanes` bytes a beat in front of `memory`.
    ///
    /// # Panics
    /// If `lanes` is not a power of two up to [`MAX_LANES`], or `config` allows no outstanding bursts
    /// or more than 65535.
    #[must_use]
    pub fn new(memory: Rc<dyn HostMemory>, lanes: usize, config: &Config) -> Self {
        assert!(
            lanes.is_power_of_two() && lanes <= MAX_LANES,
            "a data path of {lanes} bytes; a power of two up to {MAX_LANES} is expected"
        );
        for most in [config.max_reads, config.max_writes] {
            assert!(
                (1..=usize::from(u16::MAX)).contains(&most),
                "{most} bursts outstanding; 1 to 65535 are expected"
            );
        }
        Self {
            shared: Shared {
                memory,
                lanes,
                reorder: config.reorder,
                held_from: u64::MAX,
                tie: config.tie,
                early_b: config.early_b,
                tear: config.tear,
                hurry: false,
                rng: Rng::with_seed(config.seed),
                stats: Stats::default(),
                log: Violations::default(),
            },
            reads: Reads::new(config, lanes),
            writes: Writes::new(config, lanes),
            aw: Hold::new("m_axi AW"),
            w: Hold::new("m_axi W"),
            ar: Hold::new("m_axi AR"),
        }
    }

    /// One cycle `now`: `from` and `to` stood at the port; `to` becomes what the memory drives next.
    pub fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster) {
        let log = &mut self.shared.log;
        self.aw.check(now, from.aw.valid, to.awready, &from.aw, log);
        self.w.check(now, from.w.valid, to.wready, &from.w, log);
        self.ar.check(now, from.ar.valid, to.arready, &from.ar, log);
        self.writes.step(now, from, to, &mut self.shared);
        if from.ar.valid && to.arready {
            self.writes.flush(now, u64::MAX, &mut self.shared);
        }
        self.reads.step(now, from, to, &mut self.shared);
    }

    /// Forgets everything under way, as a reset of both sides does.
    pub fn reset(&mut self) {
        self.reads.reset();
        self.writes.reset();
        self.aw.reset();
        self.w.reset();
        self.ar.reset();
    }

    /// Nothing is outstanding.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.reads.idle() && self.writes.idle()
    }

    /// Counters since the start.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Rules the engine broke.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.shared.log
    }
}

impl Shared {
    /// Reports accesses to memory that the host took back.
    pub(super) fn watch(&mut self, now: u64, channel: &'static str, id: u8, addr: u64, len: usize) {
        if self.memory.is_gone(addr, len) {
            let what = format!("ID {id} reaches {addr:#x}, {len} bytes, which the host took back");
            self.log.add(now, channel, what);
        }
    }

    /// Cycles that an answer takes.
    pub(super) fn latency(&mut self, usual: Delay) -> u64 {
        if self.hurry {
            return 0;
        }
        usual.draw(&mut self.rng)
    }
}

impl Slave for Memory {
    fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster) {
        Self::step(self, now, from, to);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn write_waits(&mut self, since: Option<u64>) {
        if self.shared.tie {
            self.shared.held_from = since.unwrap_or(u64::MAX);
        }
    }

    fn register_was_read(&mut self, now: u64) {
        self.writes.flush(now, u64::MAX, &mut self.shared);
    }

    fn posted_until(&self) -> u64 {
        self.writes.posted_until()
    }

    fn hurry(&mut self, on: bool) {
        self.shared.hurry = on;
    }

    fn idle(&self) -> bool {
        Self::idle(self)
    }

    fn stats(&self) -> &Stats {
        Self::stats(self)
    }

    fn violations(&self) -> &Violations {
        Self::violations(self)
    }

    fn faults(&self) -> Vec<Fault> {
        self.shared.memory.faults()
    }
}
