//! The MAC at a port, and the registers.

use ferroce_hdl::egress::{CLASSES, QUEUES};
use ferroce_proto::wire;
use ferroce_sim::bits;
use ferroce_sim::ethernet::mac::Mac;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::fabric::Line;
use ferroce_sim::verilator::{Dut, Input, Output, Signal};

/// Picoseconds of a cycle.
const CYCLE: u64 = 4000;
/// Cycles of a millisecond.
pub(crate) const MILLISECOND: u64 = 250_000;

/// The peer, by its pauses.
pub(crate) struct Peer {
    setup: Input,
    request: Input,
    acknowledge: Output,
    halts: Input,
    hold: Input,
    stands: Output,
    mac: Mac,
    /// Priorities whose pause is obeyed.
    pub(crate) obeys: u8,
    /// For how many milliseconds; 0: for ever.
    pub(crate) watchdog: u64,
    /// Of each class: cycles in which it was paused, less 128 for each in which it sent.
    held: [u64; CLASSES],
    /// No queue is to start a frame.
    pub(crate) stall: bool,
    /// None is under way, as the port says.
    pub(crate) stalled: bool,
    /// Class of each priority.
    pub(crate) prio_class: [u8; 8],
    /// Priorities of which nothing is sent, as the port says.
    pub(crate) acknowledged: u8,
}

impl Peer {
    /// The peer of a port; the queues by themselves have none.
    pub(crate) fn of(dut: &Dut, lanes: usize) -> Option<Self> {
        Some(Self {
            setup: dut.input("setup").ok()?,
            request: dut.input("pause_req").ok()?,
            acknowledge: dut.output("pause_ack").ok()?,
            halts: dut.input("stall").ok()?,
            hold: dut.input("hold").ok()?,
            watchdog: 0,
            held: [0; CLASSES],
            stands: dut.output("stalled").ok()?,
            stall: false,
            stalled: false,
            mac: Mac::new(Line::ethernet(if lanes == 64 { 100 } else { 10 }, 1)),
            obeys: 0xff,
            prio_class: [0, 0, 1, 1, 2, 2, 3, 3],
            acknowledged: 0,
        })
    }

    /// It sends a pause of `priority`; 0 quanta: go on.
    pub(crate) fn pause(&mut self, priority: usize, quanta: u16) {
        let frame = Pause::of(priority, quanta).emit(wire::Mac([2, 0, 0, 0, 0, 9]));
        assert!(self.mac.take(&frame));
    }

    /// The queues of the class of a priority.
    fn queues_of(&self, priority: usize) -> u64 {
        let class = self.prio_class[priority];
        1 << class | 1 << (usize::from(class) + CLASSES)
    }

    /// The classes of these priorities.
    fn classes_of(&self, priorities: u8) -> [bool; CLASSES] {
        let of = |class| (0..8).any(|p| priorities >> p & 1 == 1 && self.prio_class[p] == class);
        [0, 1, 2, 3].map(of)
    }

    /// Its class is paused for longer than it is at least.
    fn may_send(&self, priority: usize) -> bool {
        let held = self.held[usize::from(self.prio_class[priority])];
        self.watchdog > 0 && held > self.watchdog * MILLISECOND
    }

    /// Drives the port; which queues are to be shut.
    pub(crate) fn drive(&self, dut: &mut Dut, weights: &[u64]) -> u64 {
        let mut words = vec![0; Signal::from(self.setup).words()];
        bits::insert(&mut words, 332, 14, self.watchdog);
        dut.set(self.hold, 0);
        for (priority, class) in self.prio_class.into_iter().enumerate() {
            bits::insert(&mut words, 260 + 4 * priority, 4, u64::from(class));
        }
        for (class, weight) in weights[..CLASSES].iter().enumerate() {
            bits::insert(&mut words, 292 + 8 * class, 8, *weight);
        }
        bits::insert(&mut words, 324, 8, u64::from(self.obeys));
        dut.write(self.setup, &words);
        dut.set(self.halts, self.stall.into());
        let requests = self.mac.requests();
        dut.set(self.request, u64::from(requests));
        if self.stall {
            return (1 << QUEUES) - 1;
        }
        (0..8)
            .filter(|&priority| requests & self.obeys & 1 << priority != 0)
            .filter(|&priority| !self.may_send(priority))
            .fold(0, |all, priority| all | self.queues_of(priority))
    }

    /// What the port acknowledges is asked for, and nothing of it is on the wire, which has a beat of `queue`.
    pub(crate) fn observe(&mut self, dut: &Dut, queue: Option<usize>) -> Result<(), String> {
        self.acknowledged = dut.get(self.acknowledge) as u8;
        self.stalled = dut.is_set(self.stands);
        if self.stalled && queue.is_some() {
            return Err("stalled, and sends".into());
        }
        let requests = self.mac.requests();
        let asked = self.classes_of(requests & self.obeys);
        for (class, held) in self.held.iter_mut().enumerate() {
            if asked[class] {
                // what is over the limit is not counted
                *held = (*held + 1).min((self.watchdog + 1) * MILLISECOND);
            } else if queue.is_some_and(|queue| queue % CLASSES == class) {
                *held = held.saturating_sub(128);
            }
        }
        if self.acknowledged & !requests != 0 {
            let acknowledged = self.acknowledged;
            return Err(format!(
                "{acknowledged:02x} acknowledged, {requests:02x} asked for"
            ));
        }
        let sends = |priority: &usize| {
            (self.acknowledged & self.obeys) >> priority & 1 == 1
                && !self.may_send(*priority)
                && queue.is_some_and(|queue| self.queues_of(*priority) >> queue & 1 == 1)
        };
        if let Some(priority) = (0..8).find(sends) {
            return Err(format!("priority {priority} is acknowledged, and sends"));
        }
        self.mac.pass(CYCLE, self.acknowledged);
        Ok(())
    }
}
