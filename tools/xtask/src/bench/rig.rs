//! Two engines, their hosts without a driver, and the wire between them.

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

/// Cycles of one way over the wire: 100 ns.
const WIRE_LATENCY: u64 = 25;
/// Log2 of the CQEs of the completion queue of a host.
const CQ_LOG: u8 = 14;

/// What surrounds the engines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Data path in bits.
    pub(super) width: u32,
    /// Cycles until host memory answers a read; it takes half of them for a write.
    pub(super) latency: u32,
    /// Share of the frames of the first host that are lost: requests, so that every NAK arrives.
    pub(super) loss: f64,
    /// Seed of memory and wire.
    pub(super) seed: u64,
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
            seed,
            ..axi::Config::default()
        }
    }
}

/// Both hosts and the wires from each to the other.
pub(super) struct Rig {
    pub(super) hosts: [Host; 2],
    wires: [Wire; 2],
    /// What happened at the pins of each card.
    pub(super) marks: [Rc<RefCell<Marks>>; 2],
    /// Frames of a host stay here instead of going onto its wire.
    pub(super) kept: [Option<Vec<Vec<u8>>>; 2],
    /// Requests of the first host to this queue pair are lost with this chance.
    pub(super) lossy: Option<(u32, Chance)>,
    rng: Rng,
    /// Cycles since the start.
    pub(super) now: u64,
}

impl Rig {
    /// Two cards, each with completion queue 0.
    pub(super) fn new(setup: &Setup) -> Result<Self> {
        let model = build::model(setup.width as usize, &verilator::Options::default())?;
        let marks: [Rc<RefCell<Marks>>; 2] = Default::default();
        let host = |side: usize| -> Result<Host> {
            let seed = setup.seed.wrapping_add(side as u64);
            let options = rtl::Options {
                memory: setup.memory(seed),
                seed,
                ..rtl::Options::default()
            };
            let memory = Rc::new(Ranges::new());
            let reached: Rc<dyn HostMemory> = memory.clone();
            let engine = build::engine(&model, reached, &options)?;
            let marks = Rc::clone(&marks[side]);
            let nic = Probe { engine, marks };
            let number = side as u8 + 1;
            let mut host = Host::with_memory(
                |_| Box::new(nic),
                memory,
                Mac([2, 0, 0, 0, 0, number]),
                Ipv4Addr::new(10, 0, 0, number).into(),
            );
            host.create_cq(CQ_LOG);
            Ok(host)
        };
        let wire = |seed: u64, loss: f64| {
            Wire::new(Config {
                latency: WIRE_LATENCY,
                loss: Chance::new(loss),
                seed,
                ..Config::default()
            })
        };
        Ok(Self {
            hosts: [host(0)?, host(1)?],
            wires: [wire(setup.seed, setup.loss), wire(setup.seed, 0.0)],
            marks,
            kept: [None, None],
            lossy: None,
            rng: Rng::with_seed(setup.seed),
            now: 0,
        })
    }

    /// One cycle.
    pub(super) fn step(&mut self) {
        for side in 0..2 {
            while let Some(frame) = self.wires[1 - side].take(self.now) {
                self.hosts[side].nic.receive(&frame);
            }
        }
        self.hosts.iter_mut().for_each(|host| host.nic.step());
        self.now += 1;
        for side in 0..2 {
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
        for (host, name) in self.hosts.iter().zip(["first", "second"]) {
            let failures = host.nic.failures();
            ensure!(
                failures.is_empty(),
                "the {name} card: {}",
                failures.join("; ")
            );
        }
        Ok(())
    }
}
