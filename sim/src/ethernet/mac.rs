//! What a MAC does with the pauses of its peer, as CMAC does (AMD PG203): it takes the frames, and holds a request of each priority
//! while its time runs. The time counts only while the priority is acknowledged (`ctl_rx_check_ack`), so no pause is shorter than was
//! asked for. To stop is left to the sender.

use super::pause::{Pause, quanta_time};
use super::{CLASSES, Line, Time};

/// The receive side of a MAC, as far as pauses go.
#[derive(Clone, Debug)]
pub struct Mac {
    line: Line,
    left: [Time; CLASSES],
}

impl Mac {
    /// One at the rate of `line`.
    #[must_use]
    pub fn new(line: Line) -> Self {
        Self {
            line,
            left: [0; CLASSES],
        }
    }

    /// A frame comes from the wire; whether it is a pause, which goes no further.
    pub fn take(&mut self, frame: &[u8]) -> bool {
        let Some(pause) = Pause::parse(frame) else {
            return false;
        };
        for (left, quanta) in self.left.iter_mut().zip(pause.quanta) {
            if let Some(quanta) = quanta {
                *left = quanta_time(quanta, &self.line);
            }
        }
        true
    }

    /// The priorities that are paused, a bit each.
    #[must_use]
    pub fn requests(&self) -> u8 {
        let paused = (0..CLASSES).filter(|&priority| self.left[priority] > 0);
        paused.map(|priority| 1 << priority).sum()
    }

    /// `time` passes, with these priorities acknowledged.
    pub fn pass(&mut self, time: Time, acknowledged: u8) {
        for (priority, left) in self.left.iter_mut().enumerate() {
            if acknowledged >> priority & 1 == 1 {
                *left = left.saturating_sub(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroce_proto::wire;

    fn pause(priority: usize, quanta: u16) -> Vec<u8> {
        Pause::of(priority, quanta).emit(wire::Mac([2, 0, 0, 0, 0, 9]))
    }

    #[test]
    fn a_pause_lasts_from_its_acknowledgement_on() {
        let mut mac = Mac::new(Line::ethernet(100, 1));
        assert!(mac.take(&pause(3, 2)));
        assert!(mac.take(&pause(6, 0xffff)));
        mac.pass(1_000_000, 0);
        assert_eq!(mac.requests(), 0x48);
        // 2 * 512 bits at 100 Gb/s
        mac.pass(10_239, 0x08);
        assert_eq!(mac.requests(), 0x48);
        mac.pass(1, 0x08);
        assert_eq!(mac.requests(), 0x40);
        assert!(mac.take(&pause(6, 0)));
        assert_eq!(mac.requests(), 0);
        assert!(!mac.take(&[0; 60]));
    }
}
