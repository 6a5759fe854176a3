//! Departures of requests, and what stands in the queues since `note`.

use fastrand::Rng;
use ferroce_hdl::egress::QUEUES;
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::Dut;

use crate::ports::Ports;

/// Cycles behind the end of `note` in which beats that came meanwhile may not count yet.
const LATE: u64 = 6;

/// Beats that came, and left; what is expected of both.
pub(crate) struct Departures {
    /// That of the cycle before.
    expected: Option<u64>,
    /// Beats that came, those that left, those that came before `note`, by queue.
    came: [u64; QUEUES],
    left: [u64; QUEUES],
    noted: [u64; QUEUES],
    note: bool,
    noted_before: bool,
    since: u64,
    stood: bool,
    /// Chance that `note` changes, a cycle.
    pub(crate) toggle: Chance,
    /// Requests that left.
    pub(crate) count: u64,
    /// Cycles in which all that was noted has left, and other beats stand there.
    pub(crate) passed: u64,
}

impl Departures {
    pub(crate) fn new() -> Self {
        Self {
            expected: None,
            came: [0; QUEUES],
            left: [0; QUEUES],
            noted: [0; QUEUES],
            note: false,
            noted_before: false,
            since: 0,
            stood: false,
            toggle: Chance::NEVER,
            count: 0,
            passed: 0,
        }
    }

    /// Drives `note`.
    pub(crate) fn drive(&mut self, dut: &mut Dut, ports: &Ports, rng: &mut Rng) {
        self.noted_before = self.note;
        if self.toggle.hit(rng) {
            self.note = !self.note;
            self.noted = self.came;
            self.since = 0;
        }
        dut.set(ports.note, self.note.into());
    }

    /// What the block says of the cycles before; `queue`: a beat of it comes in this one.
    pub(crate) fn observe(
        &mut self,
        dut: &Dut,
        ports: &Ports,
        queue: Option<usize>,
    ) -> Result<(), String> {
        let departed = dut.is_set(ports.departed);
        let departed = departed.then(|| dut.get(ports.departed_psn));
        let expected = self.expected.take();
        if departed != expected {
            return Err(format!("{departed:?} has departed, not {expected:?}"));
        }
        let stands = dut.is_set(ports.stands);
        let is_known = self.note || self.since > LATE;
        if stands != self.stood && is_known {
            return Err(format!("stands: {stands}, with note: {}", self.note));
        }
        let limit = if self.noted_before {
            &self.noted
        } else {
            &self.came
        };
        self.stood = limit.iter().zip(&self.left).any(|(all, left)| left < all);
        self.passed += u64::from(!self.stood && self.came != self.left);
        self.since += 1;
        if let Some(queue) = queue {
            self.came[queue] += 1;
        }
        Ok(())
    }

    /// The wire takes a beat of a queue.
    pub(crate) fn beat_left(&mut self, queue: usize) {
        self.left[queue] += 1;
    }

    /// It is the last one of a request.
    pub(crate) fn expect(&mut self, psn: u64) {
        self.expected = Some(psn);
        self.count += 1;
    }
}

/// A frame that says so, of a data queue, as short as a request may be.
pub(crate) fn is_request(queue: usize, frame: &[u8]) -> bool {
    queue < QUEUES / 2 && frame.len() >= 58 && frame[9] & 1 == 1
}

/// The number of a frame.
pub(crate) fn number(frame: &[u8]) -> u64 {
    u64::from_be_bytes(*frame[1..].first_chunk().expect("frames are longer"))
}
