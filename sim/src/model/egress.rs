//! Frames that wait for the wire, by class; pauses of the peer by priority (IEEE 802.1Qbb; docs/classes.md).
//!
//! The queues hold all that waits: a paused class holds up no other. Classes that are not strict go in turns; weights are not
//! modelled.
//!
//! A request has left when its frame does: until then no timer counts, no acknowledgement is due, no datagram is complete. A class
//! that the peer holds for longer than PFC_WATCHDOG says is held no more ([`Held`]); the time of its pauses runs on.
//!
//! The pauses of the card itself are those of `asks`.

use std::collections::VecDeque;
use std::mem;

use ferroce_proto::abi::classes::{
    CLASS_WEIGHT_MASK, CLASS_WEIGHT_RESET, CLASSES, PFC_WATCHDOG_MASK, PFC_WATCHDOG_RESET,
    PRIORITIES,
};
use ferroce_proto::abi::regs;
use ferroce_proto::wire::Psn;

use super::asks::Asks;
use super::classes::Tables;
use super::held::Held;
use super::stats::{RX_PRIO0_PAUSE, Stats};
use crate::ethernet::Line;
use crate::ethernet::mac::Mac;
use crate::nic::NS_PER_CYCLE;

/// What a frame is to its class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Cnp,
    Ack,
    /// A READ or atomic response.
    Response,
    Other,
}

/// A request that a frame carries.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) qpn: u32,
    /// The PSN behind it.
    pub(super) after: Psn,
    /// It asks for an answer.
    pub(super) asks: bool,
    /// Cycle in which it was made.
    pub(super) made: u64,
}

/// A frame, and what leaves with it.
pub(super) type Leaving = (Vec<u8>, Option<Departure>);

/// A frame that waits.
#[derive(Clone)]
struct Waiting {
    frame: Vec<u8>,
    /// Answers a READ or an atomic: no acknowledgement passes it.
    responds: bool,
    departure: Option<Departure>,
    /// Frames that came before it.
    number: u64,
}

/// The queues, and the MAC in front of the card.
#[derive(Clone)]
pub(super) struct Egress {
    tables: Tables,
    weights: u32,
    /// Priorities whose pause is obeyed.
    obeys: u8,
    /// For how many milliseconds; 0: for ever.
    watchdog: u32,
    held: [Held; CLASSES],
    /// The cycle in which they are to count next.
    next: u64,
    asks: Asks,
    mac: Mac,
    /// Of these, those that are asked for.
    asked: u8,
    data: [VecDeque<Waiting>; CLASSES],
    control: [VecDeque<Waiting>; CLASSES],
    /// The class that is next in turn.
    turn: usize,
    /// Frames that came.
    came: u64,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            tables: Tables::default(),
            weights: CLASS_WEIGHT_RESET,
            obeys: 0,
            watchdog: PFC_WATCHDOG_RESET,
            held: Default::default(),
            next: 0,
            asks: Asks::default(),
            mac: Mac::new(Line::ethernet(100, 1)),
            asked: 0,
            data: Default::default(),
            control: Default::default(),
            turn: 0,
            came: 0,
        }
    }
}

impl Egress {
    /// As after a reset of the engine: the MAC is not part of it.
    pub(super) fn after_reset(self) -> Self {
        Self {
            mac: self.mac,
            ..Self::default()
        }
    }

    /// Writes a register; false if it is another's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        match offset {
            regs::CLASS_WEIGHT => self.weights = value & CLASS_WEIGHT_MASK,
            regs::PFC_CONFIG => {
                self.obeys = value as u8;
                self.asks.sends = (value >> 8) as u8;
            }
            regs::PFC_WATCHDOG => self.watchdog = value & PFC_WATCHDOG_MASK,
            regs::TRUST..=regs::PRIO_CLASS => self.tables.write(offset, value),
            _ => return self.asks.write(offset, value),
        }
        true
    }

    /// Reads a register, if it is one of these.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        match offset {
            regs::CLASS_WEIGHT => Some(self.weights),
            regs::PFC_CONFIG => Some(u32::from_le_bytes([self.obeys, self.asks.sends, 0, 0])),
            regs::PFC_WATCHDOG => Some(self.watchdog),
            regs::TRUST..=regs::PRIO_CLASS => Some(self.tables.read(offset)),
            _ => self.asks.read(offset),
        }
    }

    /// The MAC takes the pauses of the peer.
    pub(super) fn takes(&mut self, frame: &[u8]) -> bool {
        self.mac.take(frame)
    }

    /// A pause runs or is asked for, or frames wait.
    pub(super) fn is_busy(&self) -> bool {
        let queues = self.data.iter().chain(&self.control);
        self.asks.is_busy()
            || self.mac.requests() != 0
            || queues.into_iter().any(|queue| !queue.is_empty())
    }

    /// One cycle of the pauses that the card asks for; the frame that the MAC sends for them.
    pub(super) fn ask(&mut self, stats: &mut Stats) -> Option<Vec<u8>> {
        let level = self.asks.step(&self.tables, stats);
        // a reset may end it too soon
        let frame = self.mac.send(level, NS_PER_CYCLE * 1000);
        frame.unwrap_or_default()
    }

    /// A packet passes the receive buffer.
    pub(super) fn passes(&mut self, frame: &[u8]) {
        self.asks.passes(self.class(frame));
    }

    /// One cycle, with a frame of a class under way: it is not acknowledged. In those that are left out nothing is asked for, and
    /// nothing waits.
    pub(super) fn step(&mut self, under_way: Option<u8>, now: u64, stats: &mut Stats) {
        let requests = self.mac.requests();
        let due = requests & self.obeys;
        let idle = now - mem::replace(&mut self.next, now + 1);
        let of = |class: usize| -> u8 {
            let mine =
                (0..PRIORITIES).filter(|&p| usize::from(self.tables.class(p as u8)) == class);
            mine.map(|p| 1 << p).sum()
        };
        let mut expired = 0;
        for (class, held) in self.held.iter_mut().enumerate() {
            let waits = !(self.data[class].is_empty() && self.control[class].is_empty());
            let sends = under_way.map(usize::from) == Some(class);
            held.pass(idle, self.watchdog, false, true);
            held.pass(1, self.watchdog, due & of(class) != 0, sends || !waits);
            if held.expired() {
                expired |= of(class);
            }
        }
        if requests | self.asked == 0 {
            return;
        }
        let asks = due & !expired;
        for priority in (0..PRIORITIES).filter(|p| asks & !self.asked & 1 << p != 0) {
            stats.count(RX_PRIO0_PAUSE.nth(priority));
        }
        self.asked = asks;
        let stands = |p: &usize| Some(self.tables.class(*p as u8)) != under_way;
        let acknowledged: u8 = (0..PRIORITIES).filter(stands).map(|p| 1 << p).sum();
        // what is not obeyed passes all the same
        let runs = asks & acknowledged | due & expired | requests & !self.obeys;
        self.mac.pass(NS_PER_CYCLE * 1000, runs);
    }

    /// Class of a frame.
    pub(super) fn class(&self, frame: &[u8]) -> u8 {
        self.tables.class_of_frame(frame)
    }

    /// A frame comes to its queue. An acknowledgement goes with the CNPs, but not before responses (IB1 9.7.5.1.4).
    pub(super) fn push(&mut self, frame: Vec<u8>, kind: Kind, departure: Option<Departure>) {
        let class = usize::from(self.class(&frame));
        let follows = self.data[class].iter().any(|waiting| waiting.responds);
        let queue = match kind {
            Kind::Cnp => &mut self.control[class],
            Kind::Ack if !follows => &mut self.control[class],
            _ => &mut self.data[class],
        };
        queue.push_back(Waiting {
            frame,
            responds: matches!(kind, Kind::Response),
            departure,
            number: self.came,
        });
        self.came += 1;
    }

    /// The next frame of a class that is not paused.
    pub(super) fn next(&mut self) -> Option<Leaving> {
        let paused = (0..PRIORITIES as u8).filter(|p| self.asked >> p & 1 == 1);
        let shut: Vec<_> = paused.map(|p| usize::from(self.tables.class(p))).collect();
        let open = |class: &usize| !shut.contains(class);
        let strict = |class: usize| self.weights >> (8 * class) & 0xff == 0;
        let high = || (0..CLASSES).rev().filter(open);
        let full = |queues: &[VecDeque<Waiting>; CLASSES], class: usize| !queues[class].is_empty();
        let queue = if let Some(class) = high().find(|&c| full(&self.control, c)) {
            &mut self.control[class]
        } else if let Some(class) = high().find(|&c| strict(c) && full(&self.data, c)) {
            &mut self.data[class]
        } else {
            let mut turns = (0..CLASSES).map(|i| (self.turn + i) % CLASSES);
            let class = turns.find(|c| open(c) && full(&self.data, *c))?;
            self.turn = class + 1;
            &mut self.data[class]
        };
        let waiting = queue.pop_front()?;
        Some((waiting.frame, waiting.departure))
    }

    /// Frames that came up to now.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// One of the first `count` frames waits.
    pub(super) fn holds(&self, count: u64) -> bool {
        let queues = self.data.iter().chain(&self.control);
        let mut oldest = queues.filter_map(VecDeque::front);
        oldest.any(|waiting| waiting.number < count)
    }

    /// The send queue starts afresh: what of it waits leaves, and says nothing.
    pub(super) fn start_afresh(&mut self, qpn: u32) {
        for waiting in self.data.iter_mut().flatten() {
            waiting.departure.take_if(|departure| departure.qpn == qpn);
        }
    }
}
