//! Two hosts with their cards in which much goes on at once: connections, commands, register reads, and what disturbs them.

mod armed;
mod end;
pub(crate) mod kernel;
mod lent;
pub(crate) mod line;
mod messages;
mod receives;
pub(crate) mod shape;
pub(crate) mod tapped;

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::Packet;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::link::{Config, Wire};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::random::Chance;
use ferroce_sim::testhost::{EXPERIMENTAL, Host, Pair, Side};

use crate::conformance::event_queue::Eq;
use crate::conformance::notification::mark;
use crate::differential::Card;
use crate::shared::Shared;

use kernel::Kernel;
use line::{Line, State};
use shape::{Shape, Tally};
use tapped::{Tapped, Watch};

/// Cycles of a step.
pub(crate) const STEP: u64 = 4;
/// The event queue of the connections, and the log2 of its entries.
pub(crate) const EQN: u8 = 1;
const EQ_LOG: u8 = 6;
/// Cycles in which nothing may happen once all is at rest.
const QUIET: u64 = 2_500;

/// Two hosts, what goes on between them, and what watches it.
pub(crate) struct Scene {
    pub(crate) pair: Pair,
    cards: Vec<Shared>,
    pub(crate) watches: Vec<Rc<Watch>>,
    pub(crate) kernels: [Kernel; 2],
    events: [Eq; 2],
    pub(crate) lines: Vec<Line>,
    /// One way each: for reliable connections, and for the rest.
    wires: [[Wire; 2]; 2],
    pub(crate) now: u64,
    /// Frames that A sent to others than B, to be taken.
    pub(crate) strays: Vec<Vec<u8>>,
    /// No frame between the two may hold bytes of these owners.
    pub(crate) foreign: Vec<u32>,
    /// Frames of each host that left, of type [`EXPERIMENTAL`].
    pub(crate) host_frames: [u64; 2],
    /// Of a packet, to be marked for congestion.
    pub(crate) marks: Chance,
    /// Classes of which requests of A's RC lines are lost, a bit each.
    pub(crate) loses: u8,
    /// Such requests.
    pub(crate) lost: u64,
    draws: Rng,
    frames: u64,
    /// Of each card, when the frames came that it has not taken.
    arrivals: [VecDeque<u64>; 2],
}

impl Scene {
    /// Two cards; `direct` says of each that it asks for bytes of memory alone, as a model does. `wire` has the hardship of
    /// reliable connections, of which others meet loss and corruption.
    pub(crate) fn new(
        cards: [&Card; 2],
        direct: [bool; 2],
        seed: u64,
        wire: &Config,
        bound: u64,
    ) -> Self {
        let (mut built, mut watches) = (Vec::new(), Vec::new());
        let mut pair = Pair::new(|inner: Rc<dyn HostMemory>| {
            let side = built.len();
            let watch = Rc::new(Watch::default());
            watches.push(Rc::clone(&watch));
            let direct = direct[side];
            let memory = Tapped {
                inner,
                watch,
                direct,
            };
            let card = (cards[side].build)(Rc::new(memory), seed ^ side as u64);
            let card = Shared::new(card);
            built.push(card.clone());
            Box::new(card)
        });
        watches[0].attach(Rc::clone(&pair.a.memory));
        watches[1].attach(Rc::clone(&pair.b.memory));
        let plain = Config {
            duplication: Config::default().duplication,
            reordering: Config::default().reordering,
            ..wire.clone()
        };
        let way = |salt: u64| {
            [(wire, 0), (&plain, 1)].map(|(config, of)| {
                let seed = seed.wrapping_mul(4).wrapping_add(salt + of);
                Wire::new(Config {
                    seed,
                    ..config.clone()
                })
            })
        };
        let events = [&mut pair.a, &mut pair.b].map(event_queue);
        let mut scene = Self {
            pair,
            cards: built,
            watches,
            kernels: [Kernel::new(bound), Kernel::new(bound)],
            events,
            lines: Vec::new(),
            wires: [way(0), way(2)],
            now: 0,
            strays: Vec::new(),
            foreign: Vec::new(),
            host_frames: [0; 2],
            marks: Chance::NEVER,
            loses: 0,
            lost: 0,
            draws: Rng::with_seed(seed),
            frames: 0,
            arrivals: Default::default(),
        };
        scene.pair.wire = Box::new(|_, _| Vec::new());
        scene
    }

    /// A connection more, closed.
    pub(crate) fn add(&mut self, qpn: [u32; 2], shape: Shape, seed: u64) {
        let number = self.lines.len() as u32;
        let hosts = [&mut self.pair.a, &mut self.pair.b];
        self.lines.push(Line::new(hosts, qpn, number, shape, seed));
    }

    pub(crate) fn open(&mut self, line: usize) {
        let hosts = [&mut self.pair.a, &mut self.pair.b];
        self.lines[line].open(hosts, &mut self.kernels);
    }

    /// Time goes on by [`STEP`] cycles.
    pub(crate) fn step(&mut self) {
        self.pair.run(STEP);
        self.now += STEP;
        for (side, frame) in std::mem::take(&mut self.pair.sent) {
            self.frames += 1;
            let of_host = frame[12..14] == EXPERIMENTAL;
            self.host_frames[side as usize] += u64::from(of_host);
            if of_host || Pause::parse(&frame).is_some() {
                self.wires[side as usize][0].send(self.now, frame);
                continue;
            }
            let to = match side {
                Side::A => self.pair.b.mac,
                Side::B => self.pair.a.mac,
            };
            if frame[..6] != to.0 {
                self.strays.push(frame);
                continue;
            }
            for mark in &self.foreign {
                assert!(
                    !holds(&frame, *mark),
                    "bytes {mark:#x} of another in a frame"
                );
            }
            let packet = Packet::parse(&frame).expect("a card sends good packets");
            if let Some(deth) = packet.headers.ext.deth {
                let is_own = |line: &Line| line.ends[side as usize].qpn == deth.src_qp;
                assert!(
                    self.lines.iter().any(is_own),
                    "a datagram of {:#x} by the address handle of another",
                    deth.src_qp
                );
            }
            let opcode = packet.headers.bth.opcode;
            let kind = usize::from(opcode.class() as u8 != qp_type::RC);
            let class = packet.headers.ip.traffic_class() >> 6;
            if side == Side::A && kind == 0 && self.loses >> class & 1 == 1 && opcode.is_request() {
                let to = packet.headers.bth.dest_qp;
                if self.lines.iter().any(|line| line.ends[1].qpn == to) {
                    self.lost += 1;
                    continue;
                }
            }
            let frame = match self.marks.hit(&mut self.draws) {
                true => mark(&frame),
                false => frame,
            };
            self.wires[side as usize][kind].send(self.now, frame);
        }
        for (side, way) in self.wires.iter_mut().enumerate() {
            let to = [&mut self.pair.b, &mut self.pair.a].into_iter().nth(side);
            let to: &mut Host = to.expect("there are two");
            let arrivals = &mut self.arrivals[1 - side];
            for wire in way {
                while let Some(frame) = wire.take(self.now) {
                    to.nic.receive(&frame);
                    arrivals.push_back(self.now);
                }
            }
            arrivals.drain(..arrivals.len() - to.nic.arriving().min(arrivals.len()));
        }
        let hosts = [&mut self.pair.a, &mut self.pair.b];
        for (kernel, host) in self.kernels.iter_mut().zip(hosts) {
            kernel.step(host, self.now);
        }
        for side in [Side::A, Side::B] {
            let (events, host) = (&mut self.events[side as usize], self.pair.host(side));
            // A host looks when it is woken.
            let vectors = std::iter::from_fn(|| host.nic.interrupt());
            if !vectors.fold(false, |woken, vector| woken | (vector == u16::from(EQN))) {
                continue;
            }
            for event in events.all(host) {
                for line in &mut self.lines {
                    line.reported(side, event);
                }
                events.give_back(host);
            }
        }
        for line in &mut self.lines {
            let hosts = [&mut self.pair.a, &mut self.pair.b];
            line.step(hosts, &mut self.kernels, self.now);
        }
    }

    /// Both cards have taken all frames that came before `cycle`.
    pub(crate) fn have_taken(&self, cycle: u64) -> bool {
        let oldest = self.arrivals.iter().filter_map(VecDeque::front).min();
        self.now > cycle && oldest.is_none_or(|oldest| *oldest >= cycle)
    }

    /// Goes on until `done`, `cycles` at most.
    ///
    /// # Panics
    /// If it is not done then.
    pub(crate) fn until(&mut self, cycles: u64, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = self.now + cycles;
        while !done(self) {
            assert!(self.now < end, "{what}: not in {cycles} cycles");
            self.step();
        }
    }

    /// The host of a side has its queue pairs of a class send no faster than `mbps` Mb/s; 0 is as fast as they can.
    pub(crate) fn limit(&mut self, side: Side, class: usize, mbps: u32) {
        let hosts = [&self.pair.a, &self.pair.b];
        let (near, far) = (side as usize, 1 - side as usize);
        for line in self.lines.iter().filter(|line| line.class() == class) {
            let peer = hosts[far].peer(line.ends[far].qpn);
            self.kernels[near].limit(hosts[near], line.ends[near].qpn, &peer, mbps);
        }
    }

    /// All connections that are closed are opened.
    pub(crate) fn open_all(&mut self) {
        for line in 0..self.lines.len() {
            if self.lines[line].state == State::Closed {
                self.open(line);
            }
        }
        let bound = self.kernels[0].bound * 8 * self.lines.len() as u64;
        self.until(bound, "connections open", |scene| {
            scene.lines.iter().all(|line| line.state == State::Open)
        });
    }

    /// A card is reset, by its pin or by register CONTROL, whatever is under way but for commands.
    pub(crate) fn reset(&mut self, side: Side, by_pin: bool) {
        let (place, bound) = (side as usize, self.kernels[0].bound);
        self.kernels[place].probing = false;
        self.until(bound, "registers answer", |scene| {
            scene.kernels[place].at_rest()
        });
        self.kernels[place].probing = true;
        match by_pin {
            true => self.pair.host(side).nic.reset(),
            false => self.pair.host(side).stop(),
        }
    }

    /// The card is brought up, and all connections end.
    pub(crate) fn recover(&mut self, side: Side) {
        self.pair.host(side).start_again();
        self.events[side as usize] = event_queue(self.pair.host(side));
        let there = [side == Side::B, side == Side::A];
        for line in &mut self.lines {
            line.was_reset(side, self.pair.host(side));
            if line.state != State::Closed {
                line.die(&mut self.kernels, there);
            }
        }
        let bound = self.kernels[0].bound * 8 * self.lines.len() as u64;
        self.until(bound, "connections end", |scene| {
            scene.lines.iter().all(|line| line.state == State::Closed)
        });
    }

    /// The receive doorbells of a side, as they are.
    pub(crate) fn ring_receives(&mut self, side: Side) {
        for line in &self.lines {
            line.ring_receives(side, self.pair.host(side));
        }
    }

    /// All connections come to rest, and then nothing happens.
    pub(crate) fn rest(&mut self, cycles: u64) {
        self.lines.iter_mut().for_each(Line::drain);
        self.until(cycles, "connections rest", |scene| {
            scene.lines.iter().all(Line::at_rest)
        });
        for kernel in &mut self.kernels {
            kernel.probing = false;
        }
        self.until(cycles, "commands end", |scene| {
            scene.kernels.iter().all(Kernel::at_rest)
        });
        // Acknowledgements are still on their way.
        let mut since = self.now;
        let end = self.now + cycles;
        let mut before = self.noise();
        while self.now < since + QUIET {
            assert!(
                self.now < end,
                "something goes on: not quiet in {cycles} cycles"
            );
            self.step();
            // frames that a card takes and drops make no noise
            let idle = |card: &Shared| card.0.borrow().ports_are_idle();
            if self.noise() != before || !self.cards.iter().all(idle) {
                (before, since) = (self.noise(), self.now);
            }
        }
        self.lines.iter().for_each(Line::check_events);
        for kernel in &mut self.kernels {
            kernel.probing = true;
        }
    }

    /// Accesses to memory and frames so far.
    fn noise(&self) -> (u64, u64) {
        let accesses = self.watches.iter().map(|watch| watch.accesses.get()).sum();
        (accesses, self.frames)
    }

    /// No rule of a port was broken, no memory was reached that is not there or was taken back, and nothing was written
    /// between the places of a region.
    pub(crate) fn check(&self) {
        for card in &self.cards {
            let failures = card.0.borrow().failures();
            assert!(failures.is_empty(), "{}", failures.join("; "));
        }
        for line in &self.lines {
            line.check_guards([&self.pair.a, &self.pair.b]);
        }
    }

    /// What the connections came to.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for line in &self.lines {
            sum += line.tally;
        }
        sum
    }
}

/// The event queue of a host's connections.
fn event_queue(host: &mut Host) -> Eq {
    Eq::new(host, EQN, EQ_LOG, u16::from(EQN))
}

/// Whether bytes are those of an owner: two words in a row have its mark.
pub(crate) fn holds(bytes: &[u8], mark: u32) -> bool {
    let mark = mark.to_le_bytes();
    let has = |two: &[u8]| two[..4] == mark && two[8..] == mark;
    bytes.windows(12).any(has)
}
