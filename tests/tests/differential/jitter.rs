//! The golden model at another pace: what an implementation is free in, so that scenarios whose outcome depends on it are
//! found without one.

use std::collections::VecDeque;

use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;

/// Stands still now and then, takes frames late and hands them out late, all in order.
pub(crate) struct Jitter {
    model: Model,
    rng: fastrand::Rng,
    now: u64,
    /// Cycles it stands still yet.
    pause: u64,
    /// Frames on their way in and out with their time.
    arriving: VecDeque<(u64, Vec<u8>)>,
    leaving: VecDeque<(u64, Vec<u8>)>,
}

impl Jitter {
    pub(crate) fn new(model: Model, seed: u64) -> Self {
        Self {
            model,
            rng: fastrand::Rng::with_seed(seed),
            now: 0,
            pause: 0,
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
        }
    }

    /// When a frame that comes now is through, behind those before it.
    fn due(rng: &mut fastrand::Rng, now: u64, queue: &VecDeque<(u64, Vec<u8>)>) -> u64 {
        let after = queue.back().map_or(0, |(due, _)| *due);
        after.max(now + rng.u64(1..120))
    }
}

impl Nic for Jitter {
    fn write32(&mut self, offset: u64, value: u32) {
        self.model.write32(offset, value);
    }

    fn start_read32(&mut self, offset: u64) {
        self.model.start_read32(offset);
    }

    fn take_read32(&mut self) -> Option<u32> {
        self.model.take_read32()
    }

    fn step(&mut self) {
        self.now += 1;
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        if self.rng.u8(..64) == 0 {
            self.pause = self.rng.u64(1..150);
        }
        while self
            .arriving
            .front()
            .is_some_and(|(due, _)| *due <= self.now)
            && let Some((_, frame)) = self.arriving.pop_front()
        {
            self.model.receive(&frame);
        }
        self.model.step();
        while let Some(frame) = self.model.transmit() {
            let due = Self::due(&mut self.rng, self.now, &self.leaving);
            self.leaving.push_back((due, frame));
        }
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn receive(&mut self, frame: &[u8]) {
        let due = Self::due(&mut self.rng, self.now, &self.arriving);
        self.arriving.push_back((due, frame.to_vec()));
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        let (due, _) = self.leaving.front()?;
        if *due > self.now {
            return None;
        }
        self.leaving.pop_front().map(|(_, frame)| frame)
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.model.interrupt()
    }

    fn failures(&self) -> Vec<String> {
        self.model.failures()
    }

    fn reset(&mut self) {
        self.model.reset();
        (self.now, self.pause) = (0, 0);
        self.arriving.clear();
        self.leaving.clear();
    }

    fn ports_are_idle(&self) -> bool {
        self.arriving.is_empty() && self.leaving.is_empty()
    }

    fn idle_until(&self) -> Option<u64> {
        if !self.ports_are_idle() {
            return None;
        }
        let rest = self.model.idle_until()?.saturating_sub(self.model.now());
        Some(self.now.saturating_add(rest))
    }

    fn run_until(&mut self, cycle: u64) {
        while self.now < cycle {
            match self.idle_until() {
                Some(until) if until > self.now => {
                    let skipped = until.min(cycle) - self.now;
                    self.model.run_until(self.model.now() + skipped);
                    self.now += skipped;
                }
                _ => self.step(),
            }
        }
    }
}
