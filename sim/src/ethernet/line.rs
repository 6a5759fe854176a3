//! Rate and delay of a wire.

use super::{NS, SECOND, Time};
use crate::link::{MIN_FRAME, OVERHEAD};

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Megabits a second.
    pub mbps: u32,
    /// From the last bit in to the last bit out.
    pub delay: Time,
    /// Bytes that a frame takes beyond its own: preamble, FCS and gap.
    pub overhead: u32,
}

impl Line {
    /// Ethernet of `gbps` over so many nanoseconds.
    ///
    /// # Panics
    /// If either is 0: a frame takes time.
    #[must_use]
    pub const fn ethernet(gbps: u32, delay_ns: u64) -> Self {
        assert!(gbps > 0 && delay_ns > 0, "a wire has a rate and a delay");
        Self {
            mbps: gbps * 1000,
            delay: delay_ns * NS,
            overhead: OVERHEAD as u32,
        }
    }

    /// How long a frame of `len` bytes without FCS stands on the wire.
    #[must_use]
    pub fn frame(&self, len: usize) -> Time {
        self.frame_at(len, u64::from(self.mbps) * 1_000_000)
    }

    /// How long it would at another rate, in bits a second: what a sender that is paced waits between frames.
    #[must_use]
    pub fn frame_at(&self, len: usize, bps: u64) -> Time {
        let bytes = len.max(MIN_FRAME) as u64 + u64::from(self.overhead);
        (bytes * 8 * SECOND).div_ceil(bps)
    }

    /// Bytes that pass in a time, overhead included.
    #[must_use]
    pub fn bytes_in(&self, time: Time) -> u64 {
        (u128::from(time) * u128::from(self.mbps) / 8_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_takes_80_ps_at_100_gbps() {
        let line = Line::ethernet(100, 500);
        assert_eq!(line.frame(1000), 1024 * 80);
        assert_eq!(line.frame(20), 84 * 80, "short frames are padded");
        assert_eq!(line.frame_at(1000, 1_000_000_000), 1024 * 8000);
        assert_eq!(line.bytes_in(1024 * 80), 1024);
    }
}
