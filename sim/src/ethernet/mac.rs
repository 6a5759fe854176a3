//! What a MAC does with pauses by priority, as CMAC does (AMD PG203).
//!
//! * Those of the peer: it takes the frames, and holds a request of each priority while its time runs. The time counts only while the
//!   priority is acknowledged (`ctl_rx_check_ack`), so no pause is shorter than was asked for. To stop is left to the sender.
//! * Those of the card: a level a priority (`ctl_tx_pause_req`) becomes a frame when it rises, one at each half of its time while it
//!   stays, and one of 0 quanta when it falls. The level is to stay as it is for 16 cycles at least.

use ferroce_proto::wire;

use super::pause::{Pause, quanta_time};
use super::{CLASSES, Frame, Line, NEVER, Time};

/// Quanta of a pause that the MAC sends (`ctl_tx_pause_quanta`).
pub const QUANTA: u16 = 0xffff;
/// Quanta after which it sends another one (`ctl_tx_pause_refresh_timer`).
pub const REFRESH: u16 = 0x7fff;
/// Address that it sends from: the core has one that is fixed when it is made.
pub const SOURCE: wire::Mac = wire::Mac([0; 6]);
/// Cycles for which a level stays at least.
const STAYS: u64 = 16;

/// A MAC, as far as pauses go.
#[derive(Clone, Debug)]
pub struct Mac {
    line: Line,
    left: [Time; CLASSES],
    /// The level of the card.
    sends: u8,
    /// For how long each bit of it has stayed.
    stayed: [Time; CLASSES],
    /// When its next frame is due.
    again: [Time; CLASSES],
}

impl Mac {
    /// One at the rate of `line`.
    #[must_use]
    pub fn new(line: Line) -> Self {
        Self {
            line,
            left: [0; CLASSES],
            sends: 0,
            stayed: [NEVER / 2; CLASSES],
            again: [0; CLASSES],
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

    /// A cycle of `time` with this level of the card; the frame that leaves for it.
    ///
    /// # Errors
    /// A bit of the level that did not stay.
    pub fn send(&mut self, level: u8, time: Time) -> Result<Option<Frame>, String> {
        if level == 0 && self.sends == 0 {
            self.stayed = self.stayed.map(|stayed| stayed + time);
            return Ok(None);
        }
        let mut pause = Pause::default();
        for priority in 0..CLASSES {
            let is = level >> priority & 1 == 1;
            let changes = (level ^ self.sends) >> priority & 1 == 1;
            self.again[priority] = self.again[priority].saturating_sub(time);
            if changes && self.stayed[priority] < STAYS * time {
                let cycles = self.stayed[priority] / time;
                self.sends = level;
                return Err(format!("priority {priority} changes after {cycles} cycles"));
            }
            self.stayed[priority] = if changes { 0 } else { self.stayed[priority] } + time;
            if is && (changes || self.again[priority] == 0) {
                self.again[priority] = quanta_time(REFRESH, &self.line);
                pause.quanta[priority] = Some(QUANTA);
            } else if changes {
                pause.quanta[priority] = Some(0);
            }
        }
        self.sends = level;
        let some = pause.quanta.iter().any(Option::is_some);
        Ok(some.then(|| pause.emit(SOURCE)))
    }

    /// The card was reset: it asks for nothing.
    pub fn forget(&mut self) {
        *self = Self {
            left: self.left,
            ..Self::new(self.line)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn frames_of_a_level() {
        let mut mac = Mac::new(Line::ethernet(100, 1));
        let mut sent = |level, time| {
            let frame = mac.send(level, time).expect("it stays");
            frame.map(|frame| Pause::parse(&frame).expect("a pause").quanta)
        };
        let quanta = |low: [Option<u16>; 2]| {
            let mut all = [None; CLASSES];
            all[..2].copy_from_slice(&low);
            Some(all)
        };
        assert_eq!(sent(0, 100), None);
        assert_eq!(sent(1, 100), quanta([Some(QUANTA), None]));
        // half of it is 32767 * 5120 ps
        assert_eq!(sent(1, 167_767_039), None);
        assert_eq!(sent(3, 1), quanta([Some(QUANTA), Some(QUANTA)]));
        assert_eq!(sent(3, 1), None);
        assert_eq!(sent(2, 1), quanta([Some(0), None]));
    }

    #[test]
    fn a_level_stays() {
        let mut mac = Mac::new(Line::ethernet(100, 1));
        assert!(mac.send(4, 10).is_ok());
        for _ in 0..14 {
            assert!(mac.send(4, 10).is_ok());
        }
        assert!(mac.clone().send(0, 10).is_err());
        assert!(mac.send(4, 10).is_ok());
        assert!(mac.send(0, 10).is_ok());
    }
}
