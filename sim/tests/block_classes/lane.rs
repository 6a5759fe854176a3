//! A lane of the transmit path: parts that ask for room, begin, drop and send.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::egress::CLASSES;
use ferroce_sim::random::Chance;

/// Cycles from a question's answer to the grant, and from that to the payload.
pub(crate) const GRANT: u64 = 12;
pub(crate) const LATENCY: u64 = 250;

/// A part of a message.
pub(crate) struct Part {
    pub(crate) class: usize,
    /// What it reserves.
    pub(crate) bound: u64,
    /// Beats of its frames.
    pub(crate) frames: VecDeque<u64>,
    /// Cycle of its next step.
    pub(crate) due: u64,
    pub(crate) number: u64,
}

impl Part {
    /// Of `most` beats at most, which are fewer than it reserves.
    pub(crate) fn new(class: usize, most: u64, rng: &mut Rng) -> Self {
        let bound = rng.u64(4..=most);
        let mut frames = VecDeque::new();
        let mut left = bound - rng.u64(..=bound / 8);
        while left > 0 {
            let beats = rng.u64(1..=left.min(67));
            frames.push_back(beats);
            left -= beats;
        }
        Self {
            class,
            bound,
            frames,
            due: 0,
            number: 0,
        }
    }

    pub(crate) fn space(part: Option<&Self>) -> u64 {
        part.map_or(0, |part| part.class as u64 | part.bound << 4 | 1 << 18)
    }
}

/// A lane of the transmit path, which wants all that it may have.
#[derive(Default)]
pub(crate) struct Lane {
    /// Classes it asks for, in turns.
    pub(crate) classes: Vec<usize>,
    /// Largest part.
    pub(crate) most: u64,
    pub(crate) turn: usize,
    pub(crate) ask: Option<Part>,
    pub(crate) asked: u64,
    /// Taken: waits for its grant.
    pub(crate) taken: VecDeque<Part>,
    pub(crate) undo: VecDeque<Part>,
    pub(crate) start: Option<Part>,
    /// Begun: waits for its payload.
    pub(crate) parts: VecDeque<Part>,
    pub(crate) pass: Option<(usize, u64, u64)>,
    /// Cycles of the frame under way.
    pub(crate) quiet: u64,
    // counts
    pub(crate) beats: [u64; CLASSES],
    pub(crate) refused: [u64; CLASSES],
    pub(crate) longest: u64,
}

impl Lane {
    pub(crate) fn drive(&mut self, now: u64, drops: Chance, rng: &mut Rng) {
        if self.ask.is_none() && !self.classes.is_empty() {
            self.turn = (self.turn + 1) % self.classes.len();
            self.ask = Some(Part::new(self.classes[self.turn], self.most, rng));
            self.asked = now;
        }
        // grants, in order
        if self.taken.front().is_some_and(|part| part.due <= now) {
            let part = self.taken.pop_front().expect("it is there");
            if drops.hit(rng) {
                self.undo.push_back(part);
            } else {
                self.start = Some(part);
            }
        }
        // a beat a cycle; a frame passes with its first
        if self.quiet > 0 {
            self.quiet -= 1;
            return;
        }
        while let Some(part) = self.parts.front_mut().filter(|part| part.due <= now) {
            match part.frames.pop_front() {
                None => drop(self.parts.pop_front()),
                // recalled
                Some(_) if drops.hit(rng) => {}
                Some(beats) => {
                    self.pass = Some((part.class, part.number, beats));
                    self.quiet = beats - 1;
                    return;
                }
            }
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.start.is_some() || self.pass.is_some() || !self.parts.is_empty()
    }
}
