//! The buffer of a switch: the share of each port and class, and which of them have to pause.
//!
//! A frame counts for the port and class that it came in by until it begins to leave. What a lossless class may not have of the shared
//! part goes into the headroom of its port: enough for what is on its way when the pause begins.

use super::CLASSES;

/// How large the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that all ports share.
    pub shared: u64,
    /// Lossless classes; `None`: every class drops what finds no room.
    pub pfc: Option<Pfc>,
    /// A queue of a class that drops may have 1/2^this of what is free; 0 is all of it.
    pub lossy_shift: u32,
}

/// Thresholds of priority flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Bit a class.
    pub classes: u8,
    /// What a port may have of a class before its peer is paused.
    pub xoff: Xoff,
    /// It goes on when the port has this much less.
    pub xon_gap: u64,
    /// Bytes of headroom of each port and class.
    pub headroom: u64,
    /// Quanta of a pause; it is repeated after half of them.
    pub quanta: u16,
}

/// A threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xoff {
    /// 1/2^n of what is free of the shared part.
    Shift(u32),
    /// So many bytes.
    Fixed(u64),
}

/// What a port has of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    shared: u64,
    headroom: u64,
    paused: bool,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    config: Config,
    used: u64,
    ports: Vec<[Share; CLASSES]>,
}

impl Buffer {
    /// An empty one.
    #[must_use]
    pub fn new(config: Config, ports: usize) -> Self {
        Self {
            config,
            used: 0,
            ports: vec![Default::default(); ports],
        }
    }

    /// Thresholds of a class, if it is lossless.
    #[must_use]
    pub fn lossless(&self, class: usize) -> Option<Pfc> {
        self.config.pfc.filter(|pfc| pfc.classes >> class & 1 == 1)
    }

    /// Takes in a frame for a queue of `queued` bytes if there is room.
    pub fn admit(&mut self, port: usize, class: usize, len: u64, queued: u64) -> bool {
        let free = self.config.shared - self.used;
        let Some(pfc) = self.lossless(class) else {
            let fits = queued + len <= free >> self.config.lossy_shift && len <= free;
            if fits {
                self.ports[port][class].shared += len;
                self.used += len;
            }
            return fits;
        };
        let limit = self.xoff(&pfc);
        let share = &mut self.ports[port][class];
        if share.shared + len <= limit && len <= free {
            share.shared += len;
            self.used += len;
            return true;
        }
        let fits = share.headroom + len <= pfc.headroom;
        if fits {
            share.headroom += len;
        }
        fits
    }

    /// A frame that came in by `port` begins to leave.
    pub fn release(&mut self, port: usize, class: usize, len: u64) {
        let share = &mut self.ports[port][class];
        let headroom = share.headroom.min(len);
        share.headroom -= headroom;
        share.shared -= len - headroom;
        self.used -= len - headroom;
    }

    /// Whether the peer of a port has to stop (`true`) or may go on (`false`) from now on; `None` if that is as before.
    pub fn turn(&mut self, port: usize, class: usize) -> Option<bool> {
        let pfc = self.lossless(class)?;
        let limit = self.xoff(&pfc);
        let share = &mut self.ports[port][class];
        let paused = if share.paused {
            share.headroom > 0 || share.shared > 0 && share.shared + pfc.xon_gap > limit
        } else {
            share.headroom > 0 || share.shared >= limit
        };
        (paused != share.paused).then(|| {
            share.paused = paused;
            paused
        })
    }

    /// Whether the peer of a port has been stopped.
    #[must_use]
    pub fn is_paused(&self, port: usize, class: usize) -> bool {
        self.ports[port][class].paused
    }

    /// Bytes in use, headroom included.
    #[must_use]
    pub fn used(&self) -> u64 {
        let headroom = self.ports.iter().flatten().map(|share| share.headroom);
        self.used + headroom.sum::<u64>()
    }

    fn xoff(&self, pfc: &Pfc) -> u64 {
        match pfc.xoff {
            Xoff::Shift(shift) => (self.config.shared - self.used) >> shift,
            Xoff::Fixed(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(xoff: Xoff) -> Config {
        Config {
            shared: 100_000,
            pfc: Some(Pfc {
                classes: 1 << 3,
                xoff,
                xon_gap: 3_000,
                headroom: 5_000,
                quanta: 0xffff,
            }),
            lossy_shift: 1,
        }
    }

    #[test]
    fn pause_begins_at_xoff_and_ends_below_xon() {
        let mut buffer = Buffer::new(config(Xoff::Fixed(10_000)), 2);
        for _ in 0..9 {
            assert!(buffer.admit(0, 3, 1000, 0));
            assert_eq!(buffer.turn(0, 3), None);
        }
        assert!(buffer.admit(0, 3, 1000, 0));
        assert_eq!(buffer.turn(0, 3), Some(true));
        assert_eq!(buffer.turn(1, 3), None, "the other port has none of it");
        for _ in 0..5 {
            assert!(buffer.admit(0, 3, 1000, 0), "headroom");
            assert_eq!(buffer.turn(0, 3), None);
        }
        assert!(!buffer.admit(0, 3, 1000, 0), "headroom is full");
        for _ in 0..7 {
            buffer.release(0, 3, 1000);
            assert_eq!(buffer.turn(0, 3), None, "{buffer:?}");
        }
        buffer.release(0, 3, 1000);
        assert_eq!(buffer.turn(0, 3), Some(false), "7000 are 3000 below");
        assert_eq!(buffer.used(), 7000);
    }

    #[test]
    fn a_share_of_what_is_free_falls_as_others_take() {
        let mut buffer = Buffer::new(config(Xoff::Shift(3)), 2);
        while buffer.turn(0, 3).is_none() {
            assert!(buffer.admit(0, 3, 100, 0));
        }
        // x >= (100000 - x) / 8 first at 11200
        assert_eq!(buffer.used(), 11_200);
    }

    #[test]
    fn a_class_that_drops_has_its_share_and_no_pause() {
        let mut buffer = Buffer::new(config(Xoff::Shift(3)), 1);
        let mut queued = 0;
        while buffer.admit(0, 0, 1000, queued) {
            queued += 1000;
        }
        assert_eq!(queued, 33_000, "a half of what is free");
        assert_eq!(buffer.turn(0, 0), None);
    }
}
