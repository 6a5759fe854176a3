//! Priority flow control frames (IEEE 802.1Qbb) and how long they hold a class.

use ferroce_proto::wire::Mac;

use super::{CLASSES, Frame, Line, Time};
use crate::link::MIN_FRAME;

/// Where they go; no bridge passes them on.
pub const DESTINATION: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 1]);

/// EtherType of MAC control.
pub const ETHERTYPE: u16 = 0x8808;

/// Opcode of priority flow control.
pub const OPCODE: u16 = 0x0101;

/// Bits of a quantum, the unit of time in a frame.
pub const QUANTUM_BITS: u64 = 512;

/// What a frame says: how long, for the classes it speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Quanta by class; 0: go on.
    pub quanta: [Option<u16>; CLASSES],
}

impl Pause {
    /// One of a single class.
    #[must_use]
    pub fn of(class: usize, quanta: u16) -> Self {
        let mut pause = Self::default();
        pause.quanta[class] = Some(quanta);
        pause
    }

    /// The frame from a port with this address, padded.
    #[must_use]
    pub fn emit(&self, from: Mac) -> Frame {
        let mut frame = Vec::with_capacity(MIN_FRAME);
        frame.extend(DESTINATION.0);
        frame.extend(from.0);
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.extend(OPCODE.to_be_bytes());
        let enable = (0..CLASSES).filter(|&class| self.quanta[class].is_some());
        let enable: u16 = enable.map(|class| 1 << class).sum();
        frame.extend(enable.to_be_bytes());
        frame.extend(
            self.quanta
                .iter()
                .flat_map(|quanta| quanta.unwrap_or(0).to_be_bytes()),
        );
        frame.resize(MIN_FRAME, 0);
        frame
    }

    /// Reads a frame; `None` if it is another.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = frame.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        if !frame.starts_with(&DESTINATION.0)
            || word(12)? != ETHERTYPE
            || word(14)? != OPCODE
            || frame.len() < 34
        {
            return None;
        }
        let enable = word(16)?;
        let mut pause = Self::default();
        for (class, quanta) in pause.quanta.iter_mut().enumerate() {
            if enable >> class & 1 == 1 {
                *quanta = Some(word(18 + 2 * class)?);
            }
        }
        Some(pause)
    }
}

/// Until when each class of a port is held by its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    until: [Time; CLASSES],
}

impl Held {
    /// A frame came.
    pub fn take(&mut self, now: Time, pause: &Pause, line: &Line) {
        for (until, quanta) in self.until.iter_mut().zip(pause.quanta) {
            if let Some(quanta) = quanta {
                *until = now + quanta_time(quanta, line);
            }
        }
    }

    /// Whether a frame of the class may start.
    #[must_use]
    pub fn is_open(&self, class: usize, now: Time) -> bool {
        self.until[class] <= now
    }

    /// When one may start.
    #[must_use]
    pub fn opens(&self, class: usize) -> Time {
        self.until[class]
    }
}

/// Quanta as a time.
#[must_use]
pub fn quanta_time(quanta: u16, line: &Line) -> Time {
    u64::from(quanta) * QUANTUM_BITS * 1_000_000 / u64::from(line.mbps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_802_1qbb() {
        let mut pause = Pause::of(3, 0xffff);
        pause.quanta[6] = Some(0);
        let frame = pause.emit(Mac([2, 0, 0, 0, 0, 9]));
        let expected = [
            &[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 1, 1][..],
            &[
                0, 0x48, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ]
        .concat();
        assert_eq!(frame[..34], expected);
        assert_eq!(frame.len(), 60);
        assert_eq!(Pause::parse(&frame), Some(pause));
        assert_eq!(Pause::parse(&frame[..33]), None);
    }

    #[test]
    fn a_quantum_is_512_bits() {
        let line = Line::ethernet(100, 1);
        let mut held = Held::default();
        held.take(1000, &Pause::of(3, 2), &line);
        assert_eq!(held.opens(3), 1000 + 2 * 5120);
        assert!(!held.is_open(3, 11_239) && held.is_open(3, 11_240) && held.is_open(2, 0));
        held.take(2000, &Pause::of(3, 0), &line);
        assert!(held.is_open(3, 2000));
    }
}
