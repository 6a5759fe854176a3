//! The turns of a simulated card.
//!
//! With a synchronised peer the card's time is the simulation's: a cycle is made when every message that arrives until then
//! has been taken, so that a run is the same each time. Otherwise time passes as for a served card
//! (`vfio_user`).

mod traffic;

use std::collections::VecDeque;
use std::io::Write;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use ferroce_proto::abi::{pci, regs};

use super::intro::Protocol;
use super::link::Link;
use super::meet::{Door, meet};
use super::pcie::{Bus, Request, ToHost};
use super::{CYCLE_PS, Config, SimbricksError};
use crate::nic::NS_PER_CYCLE;
use crate::pcapng;
use crate::remote::Ticket;
use crate::vfio_user::pace::{Pace, TURN, Watch, cycles_since};
use crate::vfio_user::place::Place;
use crate::vfio_user::registers::Registers;
use crate::vfio_user::{Card, Stop};
use crate::world::Direction;

/// Type of a message: a frame.
const FRAME: u8 = 0x40;
/// Bytes of the shortest frame, an Ethernet header, and of what a MAC pads it to.
const HEADER: usize = 14;
const MIN_FRAME: usize = 60;

/// Turns without progress after which the thread sleeps between two.
const PATIENCE: u32 = 200;
/// That sleep. Nothing wakes a thread that waits for shared memory.
const NAP: Duration = Duration::from_micros(20);

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A signal came.
    Stopped,
    /// The host ended.
    Host,
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Why it ended.
    pub ended: Ended,
    /// Cycles of the simulation.
    pub cycles: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames sent while there was no network.
    pub unplugged: u64,
    /// Frames received.
    pub received: u64,
    /// Messages that were no frames.
    pub bad: u64,
    /// What the card did that it may not.
    pub failures: Vec<String>,
}

type Capture = (pcapng::Writer<Box<dyn Write>>, u32);

/// A card with its sockets, to which no peer has connected yet.
pub struct Simulated<C> {
    card: C,
    bus: Rc<Bus>,
    doors: Vec<Door>,
    config: Config,
    capture: Option<Capture>,
}

impl<C: Card> Simulated<C> {
    /// A card that reaches memory through `bus`.
    ///
    /// # Errors
    /// A socket cannot be had.
    pub fn new(config: Config, card: C, bus: Rc<Bus>) -> Result<Self, SimbricksError> {
        let mut doors = vec![Door::open(&config.pci, Protocol::Pcie)?];
        if let Some(path) = &config.eth {
            doors.push(Door::open(path, Protocol::Ethernet)?);
        }
        Ok(Self {
            card,
            bus,
            doors,
            config,
            capture: None,
        })
    }

    /// Captures what passes the port.
    ///
    /// # Errors
    /// [`SimbricksError::Capture`].
    pub fn capture(&mut self, name: &str, out: impl Write + 'static) -> Result<(), SimbricksError> {
        let out: Box<dyn Write> = Box::new(out);
        let mut writer = pcapng::Writer::new(out).map_err(SimbricksError::Capture)?;
        let interface = writer.interface(name).map_err(SimbricksError::Capture)?;
        self.capture = Some((writer, interface));
        Ok(())
    }

    /// Waits for the peers and takes part in their simulation, until the host ends or `stop` is set.
    ///
    /// # Errors
    /// [`SimbricksError`].
    pub fn run(self, stop: &Stop) -> Result<Report, SimbricksError> {
        let (sync, latency) = (self.config.sync, self.config.latency_ps);
        let mut report = Report {
            ended: Ended::Stopped,
            cycles: 0,
            sent: 0,
            unplugged: 0,
            received: 0,
            bad: 0,
            failures: Vec::new(),
        };
        let Some(met) = meet(self.doors, sync, latency, stop)? else {
            return Ok(report);
        };
        let (links, _places): (Vec<Link>, Vec<Place>) = met.into_iter().unzip();
        let mut links = links.into_iter();
        let Some(pci) = links.next() else {
            return Ok(report);
        };
        let mut run = Run {
            card: self.card,
            bus: self.bus,
            pci,
            eth: links.next(),
            registers: Registers::default(),
            frames: VecDeque::new(),
            raised: VecDeque::new(),
            watch: Watch::default(),
            capture: self.capture,
            now: 0,
            cycle: 0,
            report: &mut report,
        };
        let ended = run.turns(stop);
        run.pci.terminate(run.now);
        if let Some(eth) = &mut run.eth {
            eth.terminate(run.now);
        }
        let (cycles, failures) = (run.cycle, run.card.failures());
        if let Some((writer, _)) = run.capture.take() {
            writer.into_inner().map_err(SimbricksError::Capture)?;
        }
        (report.cycles, report.failures) = (cycles, failures);
        report.ended = ended?;
        Ok(report)
    }
}

/// A card among its peers.
struct Run<'a, C> {
    card: C,
    bus: Rc<Bus>,
    pci: Link,
    eth: Option<Link>,
    /// Each read with the number that the host gave it.
    registers: Registers<u64>,
    /// Frames that arrived and that the card has not received.
    frames: VecDeque<Vec<u8>>,
    /// Vectors that the card raised, with the last access it made before.
    raised: VecDeque<(u16, Ticket)>,
    watch: Watch,
    capture: Option<Capture>,
    /// Picoseconds of the simulation.
    now: u64,
    /// Cycles of it that the card has seen.
    cycle: u64,
    report: &'a mut Report,
}

impl<C: Card> Run<'_, C> {
    fn turns(&mut self, stop: &Stop) -> Result<Ended, SimbricksError> {
        let mut in_vain: u32 = 0;
        while !stop.is_set() {
            let is_sync = self.pci.is_sync() || self.eth.as_ref().is_some_and(Link::is_sync);
            let has_moved = if is_sync {
                self.turn_of_simulation()?
            } else {
                self.turn_of_its_own()?
            };
            if self.pci.is_over() {
                return Ok(Ended::Host);
            }
            in_vain = if has_moved {
                0
            } else {
                in_vain.saturating_add(1)
            };
            if in_vain > PATIENCE {
                self.pci.check();
                self.eth.iter_mut().for_each(Link::check);
                if is_sync {
                    thread::sleep(NAP);
                }
            } else if in_vain > 0 && is_sync {
                thread::yield_now();
            }
        }
        Ok(Ended::Stopped)
    }

    /// A point of the simulation's time, if everything that arrives until then is here; false while something is not.
    fn turn_of_simulation(&mut self) -> Result<bool, SimbricksError> {
        self.pci.keep_time(self.now);
        if let Some(eth) = &mut self.eth {
            eth.keep_time(self.now);
        }
        self.receive()?;
        let horizon = self.over_links(Link::horizon);
        if !self.flush() || horizon <= self.now {
            return Ok(false);
        }
        // Cycles before this one were skipped because the card had nothing to do in them.
        let skipped = (self.now / CYCLE_PS).saturating_sub(self.cycle + 1);
        self.card.run_until(self.card.now() + skipped);
        self.cycle += skipped;
        if self.now / CYCLE_PS > self.cycle {
            self.step()?;
        }
        let next = self.cycle.saturating_add(self.idle_cycles().max(1));
        let work = next.saturating_mul(CYCLE_PS);
        let sync_at = self.over_links(Link::sync_at);
        self.now = horizon.min(sync_at).min(work);
        Ok(true)
    }

    /// Cycles in which the card does nothing unless something comes.
    fn idle_cycles(&self) -> u64 {
        let idle = self.card.idle_until().filter(|_| self.is_quiet());
        idle.map_or(0, |until| until.saturating_sub(self.card.now()))
    }

    /// The earliest time of the links.
    fn over_links(&self, time: impl Fn(&Link) -> u64) -> u64 {
        let eth = self.eth.as_ref().map_or(u64::MAX, &time);
        time(&self.pci).min(eth)
    }

    /// Some cycles, as fast as they go or as a clock does; false if nothing came.
    fn turn_of_its_own(&mut self) -> Result<bool, SimbricksError> {
        let has_received = self.receive()?;
        if has_received {
            self.watch.moved();
        }
        if self.card.is_waiting() {
            self.step()?;
            if self.card.is_waiting() && !has_received {
                thread::sleep(NAP);
            }
        } else {
            let is_quiet = self.is_quiet() && self.card.ports_are_idle();
            let idle = self.card.idle_until().filter(|_| is_quiet);
            match self.watch.pace(self.card.now(), idle, is_quiet) {
                Pace::Step => (0..TURN).try_for_each(|_| self.step())?,
                Pace::Nap(nap) => {
                    thread::sleep(nap);
                    (0..TURN).try_for_each(|_| self.step())?;
                }
                Pace::Wait(until, most) => {
                    let start = Instant::now();
                    thread::sleep(most.min(NAP));
                    let (before, passed) = (self.card.now(), cycles_since(start));
                    self.card.run_until((before + passed).min(until));
                    self.cycle += self.card.now() - before;
                    self.step()?;
                }
            }
        }
        self.flush();
        Ok(has_received)
    }

    /// No message waits for the card, and none of it for the host.
    fn is_quiet(&self) -> bool {
        self.frames.is_empty() && self.raised.is_empty() && self.registers.is_idle()
    }

    fn flush(&mut self) -> bool {
        let flushed = self.pci.flush();
        self.eth.as_mut().is_none_or(Link::flush) && flushed
    }
}
