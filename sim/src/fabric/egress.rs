//! The queues of a port: eight classes, strict or by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).

use std::collections::VecDeque;

use super::pause::Held;
use super::{CLASSES, Frame, NEVER, Time};

/// Bytes that a class may send in a round.
const QUANTUM: u64 = 4096;

/// A frame in a queue.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The frame.
    pub frame: Frame,
    /// Port by which it came in.
    pub from: usize,
    /// Class that it counts for in the buffer: that by which it came in.
    pub class: usize,
    /// Bytes it counts for.
    pub charged: u64,
}

/// Queues of one port.
#[derive(Clone, Debug)]
pub struct Egress {
    queues: [VecDeque<Queued>; CLASSES],
    bytes: [u64; CLASSES],
    deficit: [u64; CLASSES],
    /// Class whose turn it is.
    turn: usize,
    /// Bit a class that goes before the others, the highest first.
    strict: u8,
    /// Which classes the peer holds.
    pub held: Held,
    /// Frames of the port's own MAC, before all others and never held.
    pub control: VecDeque<Frame>,
    /// When the frame on the wire ends.
    pub free_at: Time,
}

impl Egress {
    /// Empty queues.
    #[must_use]
    pub fn new(strict: u8) -> Self {
        Self {
            queues: Default::default(),
            bytes: [0; CLASSES],
            deficit: [0; CLASSES],
            turn: 0,
            strict,
            held: Held::default(),
            control: VecDeque::new(),
            free_at: 0,
        }
    }

    /// Bytes of a class that wait.
    #[must_use]
    pub fn bytes(&self, class: usize) -> u64 {
        self.bytes[class]
    }

    /// Bytes of all classes that wait.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Frames of all classes that wait.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.queues.iter().map(|queue| queue.len() as u64).sum()
    }

    /// A frame waits from now on.
    pub fn push(&mut self, class: usize, queued: Queued) {
        self.bytes[class] += queued.frame.len() as u64;
        self.queues[class].push_back(queued);
    }

    /// Takes the frame whose turn it is, of a class that may send.
    pub fn pop(&mut self, now: Time) -> Option<(usize, Queued)> {
        let ready =
            |class: &usize| !self.queues[*class].is_empty() && self.held.is_open(*class, now);
        let strict = |class: &usize| self.strict >> class & 1 == 1;
        if let Some(class) = (0..CLASSES).rev().filter(strict).find(ready) {
            return Some((class, self.take(class)));
        }
        (0..CLASSES).find(ready)?;
        loop {
            let class = self.turn;
            if !self.queues[class].is_empty() && self.held.is_open(class, now) {
                let len = self.queues[class][0].frame.len() as u64;
                if self.deficit[class] >= len {
                    self.deficit[class] -= len;
                    return Some((class, self.take(class)));
                }
            } else if self.queues[class].is_empty() {
                self.deficit[class] = 0;
            }
            self.turn = (self.turn + 1) % CLASSES;
            let next = self.turn;
            if !self.queues[next].is_empty() && self.held.is_open(next, now) {
                self.deficit[next] += QUANTUM;
            }
        }
    }

    /// When a frame may start if nothing comes before.
    #[must_use]
    pub fn next(&self) -> Time {
        if !self.control.is_empty() {
            return self.free_at;
        }
        let waiting = (0..CLASSES).filter(|&class| !self.queues[class].is_empty());
        let opens = waiting.map(|class| self.held.opens(class)).min();
        opens.map_or(NEVER, |opens| opens.max(self.free_at))
    }

    fn take(&mut self, class: usize) -> Queued {
        let queued = self.queues[class].pop_front().expect("it is ready");
        self.bytes[class] -= queued.frame.len() as u64;
        queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Line;
    use crate::fabric::pause::Pause;

    fn push(egress: &mut Egress, class: usize, len: usize) {
        let queued = Queued {
            frame: vec![0; len],
            from: 0,
            class,
            charged: len as u64,
        };
        egress.push(class, queued);
    }

    #[test]
    fn strict_classes_first_the_others_by_bytes() {
        let mut egress = Egress::new(1 << 6);
        for _ in 0..400 {
            push(&mut egress, 1, 300);
            push(&mut egress, 3, 1000);
        }
        push(&mut egress, 6, 74);
        assert_eq!(egress.pop(0).unwrap().0, 6);
        let mut bytes = [0; CLASSES];
        for _ in 0..400 {
            let (class, queued) = egress.pop(0).unwrap();
            bytes[class] += queued.frame.len();
        }
        assert!(bytes[1].abs_diff(bytes[3]) <= 8192, "{bytes:?}");
    }

    #[test]
    fn a_held_class_stops_and_stops_no_other() {
        let mut egress = Egress::new(0);
        (0..3).for_each(|_| push(&mut egress, 3, 1000));
        push(&mut egress, 4, 1000);
        let line = Line::ethernet(100, 1);
        egress.held.take(0, &Pause::of(3, 10), &line);
        assert_eq!(egress.pop(0).unwrap().0, 4);
        assert!(egress.pop(0).is_none());
        assert_eq!(egress.next(), 51_200);
        assert_eq!(egress.pop(51_200).unwrap().0, 3);
    }
}
