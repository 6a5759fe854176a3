//! Engines, their hosts without a driver, and the wire between them; of more than two a switch that forwards at once and
//! drops nothing.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use anyhow::{Result, ensure};
use fastrand::Rng;
use ferroce_proto::wire::{Mac, Packet};
use ferroce_sim::axi;
use ferroce_sim::link::{Config, Wire};
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::random::{Chance, Delay};
use ferroce_sim::rtl::{self, build};
use ferroce_sim::testhost::Host;
use ferroce_sim::verilator;

use super::probe::{Marks, Probe};
use crate::emit::Build;

/// Log2 of the CQEs of the completion queue of a host.
const CQ_LOG: u8 = 14;

/// What surrounds the engines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// The engine.
    pub(super) build: Build,
    /// Cycles until host memory answers a read; it takes half of them for a write.
    pub(super) latency: u32,
    /// Reads of host memory under way at most, and writes.
    pub(super) bursts: usize,
    /// Data of reads wait for the response of register writes that came before them, as behind a bridge.
    pub(super) tie: bool,
    /// Cycles of one way over the wire.
    pub(super) wire: u64,
    /// Share of the frames of the first host that are lost: requests, so that every NAK arrives.
    pub(super) loss: f64,
    /// Seed of memory and wire.
    pub(super) seed: u64,
    /// The engines can write traces.
    pub(super) traced: bool,
}

impl Setup {
    /// Host memory: reads within 8 % of the latency, writes within 20 % of half of it, in any order
    /// that AXI permits; at 250 cycles that is [`axi::Config::host`].
    fn memory(&self, seed: u64) -> axi::Config {
        let part = |hundredths: u32| self.latency * hundredths / 100;
        axi::Config {
            read_latency: Delay::between(part(92), part(108)),
            write_latency: Delay::between(part(40), part(60)),
            reorder: self.latency > 0,
            tie: self.tie,
            max_reads: self.bursts,
            max_writes: self.bursts,
            seed,
            ..axi::Config::default()
        }
    }
}

/// The hosts and the wires on which each sends.
pub(super) struct Rig {
    pub(super) hosts: Vec<Host>,
    wires: Vec<Wire>,
    /// What happened at the pins of each card.
    pub(super) marks: Vec<Rc<RefCell<Marks>>>,
    /// Frames of a host stay here instead of going onto its wire.
    pub(super) kept: Vec<Option<Vec<Vec<u8>>>>,
    /// Requests of the first host to this queue pair are lost with this chance.
    pub(super) lossy: Option<(u32, Chance)>,
    rng: Rng,
    /// Cycles since the start.
    pub(super) now: u64,
}

impl Rig {
    /// So many cards, each with completion queue 0.
    pub(super) fn new(setup: &Setup, hosts: usize) -> Result<Self> {
        let model = setup.build.model(&verilator::Options {
            trace: setup.traced,
            ..verilator::Options::default()
        })?;
        let marks: Vec<Rc<RefCell<Marks>>> = (0..hosts).map(|_| Rc::default()).collect();
        let host = |index: usize| -> Result<Host> {
            let seed = setup.seed.wrapping_add(index as u64);
            let options = rtl::Options {
                memory: setup.memory(seed),
                seed,
                ..rtl::Options::default()
            };
            let memory = Rc::new(Ranges::new());
            let reached: Rc<dyn HostMemory> = memory.clone();
            let engine = build::engine(&model, reached, &options)?;
            let marks = Rc::clone(&marks[index]);
            let nic = Probe { engine, marks };
            let number = index as u8 + 1;
            let mut host = Host::with_memory(
                |_| Box::new(nic),
                memory,
                Mac([2, 0, 0, 0, 0, number]),
                Ipv4Addr::new(10, 0, 0, number).into(),
            );
            host.create_cq(CQ_LOG);
            Ok(host)
        };
        let wire = |index: usize| {
            Wire::new(Config {
                latency: setup.wire,
                loss: Chance::new(if index == 0 { setup.loss } else { 0.0 }),
                seed: setup.seed,
                ..Config::default()
            })
        };
        Ok(Self {
            wires: (0..hosts).map(wire).collect(),
            kept: vec![None; hosts],
            hosts: (0..hosts).map(host).collect::<Result<_>>()?,
            marks,
            lossy: None,
            rng: Rng::with_seed(setup.seed),
            now: 0,
        })
    }

    /// One cycle.
    pub(super) fn step(&mut self) {
        for wire in &mut self.wires {
            while let Some(frame) = wire.take(self.now) {
                // The last byte of the destination's MAC address is the number of its host.
                if let Some(host) = self.hosts.get_mut(usize::from(frame[5]).wrapping_sub(1)) {
                    host.nic.receive(&frame);
                }
            }
        }
        self.hosts.iter_mut().for_each(|host| host.nic.step());
        self.now += 1;
        for side in 0..self.hosts.len() {
            while self.wires[side].ready(self.now) {
                let Some(frame) = self.hosts[side].nic.transmit() else {
                    break;
                };
                if side == 0 && self.loses(&frame) {
                    continue;
                }
                match &mut self.kept[side] {
                    Some(kept) => kept.push(frame),
                    None => self.wires[side].send(self.now, frame),
                }
            }
        }
    }

    /// Whether a frame of the first host is one of those that are lost by queue pair.
    fn loses(&mut self, frame: &[u8]) -> bool {
        let Some((qpn, chance)) = self.lossy else {
            return false;
        };
        let packet = Packet::parse(frame);
        packet.is_ok_and(|packet| packet.headers.bth.dest_qp == qpn) && chance.hit(&mut self.rng)
    }

    /// Steps until `done`; fails after `cycles`.
    pub(super) fn until(
        &mut self,
        cycles: u64,
        what: &str,
        mut done: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let start = self.now;
        while !done(self)? {
            ensure!(
                self.now - start < cycles,
                "{what} is not done after {cycles} cycles"
            );
            self.step();
        }
        Ok(())
    }

    /// Every rule of the ports was kept, and DMA stayed where it may.
    pub(super) fn check(&self) -> Result<()> {
        for (number, host) in (1..).zip(&self.hosts) {
            let failures = host.nic.failures();
            ensure!(
                failures.is_empty(),
                "card {number}: {}",
                failures.join("; ")
            );
        }
        Ok(())
    }
}
