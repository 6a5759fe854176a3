//! Cards and links, stepped together.
//!
//! Everything happens in a fixed order within a cycle, so a run depends on its seeds alone: frames that
//! have arrived are handed to the cards, the cards step, and what they have sent goes onto the wires.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::link::{Config, Wire};
use crate::nic::{NS_PER_CYCLE, Nic};

/// A card of a [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// Which way a frame passes a port, as the card sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// To the card.
    Receive,
    /// From the card.
    Transmit,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Receive => "rx",
            Self::Transmit => "tx",
        })
    }
}

/// A frame at the port of a card.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Cycle of the world.
    pub cycle: u64,
    /// Card.
    pub node: NodeId,
    /// Its name.
    pub name: &'a str,
    /// Which way.
    pub direction: Direction,
    /// From the destination MAC address to the last byte before the FCS.
    pub frame: &'a [u8],
}

impl Event<'_> {
    /// Time of the world in ns.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.cycle * NS_PER_CYCLE
    }
}

/// Sees every frame at every port.
pub trait Observer {
    /// A frame has passed.
    fn frame(&mut self, event: &Event<'_>);
}

/// What was waited for did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not done after {cycles} cycles, at cycle {now}; allow more, or trace the run to see what hangs"
)]
pub struct Timeout {
    /// Cycles allowed.
    pub cycles: u64,
    /// Cycle of the world.
    pub now: u64,
}

struct Node {
    name: String,
    nic: Box<dyn Nic>,
    /// Index of the wire to send on, and of the one to receive from.
    wires: Option<(usize, usize)>,
}

/// Cards and links.
#[derive(Default)]
pub struct World {
    nodes: Vec<Node>,
    /// Two a link: from its first end, and back.
    wires: Vec<Wire>,
    observers: Vec<Rc<RefCell<dyn Observer>>>,
    now: u64,
}

impl World {
    /// An empty world at cycle 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a card under a name.
    pub fn add(&mut self, name: impl Into<String>, nic: impl Nic + 'static) -> NodeId {
        self.nodes.push(Node {
            name: name.into(),
            nic: Box::new(nic),
            wires: None,
        });
        NodeId(self.nodes.len() - 1)
    }

    /// Links two cards: `there` configures the wire from `a` to `b`, `back` the other.
    ///
    /// # Panics
    /// If one of them has a link already; a card has one port.
    pub fn connect(&mut self, a: NodeId, b: NodeId, there: Config, back: Config) {
        let first = self.wires.len();
        for (node, wires) in [(a, (first, first + 1)), (b, (first + 1, first))] {
            let node = &mut self.nodes[node.0];
            assert!(node.wires.is_none(), "`{}` has a link already", node.name);
            node.wires = Some(wires);
        }
        self.wires.extend([Wire::new(there), Wire::new(back)]);
    }

    /// Shows every frame from now on to `observer`, after those added before it.
    pub fn observe(&mut self, observer: Rc<RefCell<dyn Observer>>) {
        self.observers.push(observer);
    }

    /// The cards, in the order they were added.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// Name of a card.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.0].name
    }

    /// A card.
    pub fn nic(&mut self, node: NodeId) -> &mut dyn Nic {
        &mut *self.nodes[node.0].nic
    }

    /// The wire on which a card sends.
    ///
    /// # Panics
    /// If the card has no link.
    pub fn wire(&mut self, from: NodeId) -> &mut Wire {
        let node = &self.nodes[from.0];
        let (wire, _) = node
            .wires
            .unwrap_or_else(|| panic!("`{}` has no link; connect it first", node.name));
        &mut self.wires[wire]
    }

    /// Cycles since the start.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Hands a frame to a card, as if it had arrived now.
    pub fn inject(&mut self, node: NodeId, frame: &[u8]) {
        self.nodes[node.0].nic.receive(frame);
        self.show(node.0, Direction::Receive, frame);
    }

    /// Takes the next frame of a card that has no link.
    ///
    /// # Panics
    /// If it has one, which takes them.
    pub fn take(&mut self, node: NodeId) -> Option<Vec<u8>> {
        let n = &mut self.nodes[node.0];
        assert!(
            n.wires.is_none(),
            "the frames of `{}` go to its link; observe it",
            n.name
        );
        let frame = n.nic.transmit()?;
        self.show(node.0, Direction::Transmit, &frame);
        Some(frame)
    }

    /// One cycle.
    pub fn step(&mut self) {
        for index in 0..self.nodes.len() {
            if let Some((_, from)) = self.nodes[index].wires {
                while let Some(frame) = self.wires[from].take(self.now) {
                    self.nodes[index].nic.receive(&frame);
                    self.show(index, Direction::Receive, &frame);
                }
            }
        }
        self.nodes.iter_mut().for_each(|node| node.nic.step());
        self.now += 1;
        self.transmit();
    }

    /// `cycles` cycles.
    pub fn run(&mut self, cycles: u64) {
        let end = self.now + cycles;
        while self.now < end {
            self.advance(end);
        }
    }

    /// Runs until `done`, which is asked before each cycle that is stepped, and returns the cycles it
    /// took.
    ///
    /// # Errors
    /// [`Timeout`] if that is not within `cycles`.
    pub fn run_until(
        &mut self,
        cycles: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<u64, Timeout> {
        let start = self.now;
        while !done(self) {
            if self.now - start >= cycles {
                return Err(Timeout {
                    cycles,
                    now: self.now,
                });
            }
            self.advance(start + cycles);
        }
        Ok(self.now - start)
    }

    /// Writes a register of a card; does not take time.
    pub fn write32(&mut self, node: NodeId, offset: u64, value: u32) {
        self.nic(node).write32(offset, value);
    }

    /// Reads a register of a card; takes the time that takes.
    ///
    /// # Errors
    /// [`Timeout`] if the card does not answer within `cycles`.
    pub fn read32(&mut self, node: NodeId, offset: u64, cycles: u64) -> Result<u32, Timeout> {
        self.nic(node).start_read32(offset);
        let mut value = None;
        self.run_until(cycles, |world| {
            value = world.nic(node).take_read32();
            value.is_some()
        })?;
        Ok(value.expect("the wait ends with a value"))
    }

    /// What makes the run a failed one, with the card it belongs to; see [`Nic::failures`].
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let of = |node: &Node| {
            let name = node.name.clone();
            node.nic
                .failures()
                .into_iter()
                .map(move |what| format!("{name}: {what}"))
        };
        self.nodes.iter().flat_map(of).collect()
    }

    /// Goes on by a cycle, or by all those up to `end` in which nothing happens.
    fn advance(&mut self, end: u64) {
        match self.quiet_until() {
            Some(quiet) if quiet.min(end) > self.now => {
                let skipped = quiet.min(end) - self.now;
                for node in &mut self.nodes {
                    let target = node.nic.now() + skipped;
                    node.nic.run_until(target);
                }
                self.now += skipped;
                self.transmit();
            }
            _ => self.step(),
        }
    }

    /// No frame is on a wire, and nothing is under way at a port of a card.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let wires = self.wires.iter();
        let mut flying = wires.filter_map(Wire::next_arrival);
        flying.next().is_none() && self.nodes.iter().all(|node| node.nic.ports_are_idle())
    }

    /// First cycle in which a card or a wire may do something; `None` if a card cannot tell, or may have
    /// a frame waiting for a busy wire.
    fn quiet_until(&self) -> Option<u64> {
        if !self.wires.iter().all(|wire| wire.ready(self.now)) {
            return None;
        }
        let mut quiet = u64::MAX;
        for node in &self.nodes {
            let rest = node.nic.idle_until()?.saturating_sub(node.nic.now());
            quiet = quiet.min(self.now.saturating_add(rest));
        }
        let arrivals = self.wires.iter().filter_map(Wire::next_arrival);
        Some(arrivals.fold(quiet, u64::min))
    }

    /// What the cards have sent goes onto the wires, as far as those have room.
    fn transmit(&mut self) {
        for index in 0..self.nodes.len() {
            let Some((to, _)) = self.nodes[index].wires else {
                continue;
            };
            while self.wires[to].ready(self.now) {
                let Some(frame) = self.nodes[index].nic.transmit() else {
                    break;
                };
                self.show(index, Direction::Transmit, &frame);
                self.wires[to].send(self.now, frame);
            }
        }
    }

    fn show(&self, index: usize, direction: Direction, frame: &[u8]) {
        for observer in &self.observers {
            observer.borrow_mut().frame(&Event {
                cycle: self.now,
                node: NodeId(index),
                name: &self.nodes[index].name,
                direction,
                frame,
            });
        }
    }
}
