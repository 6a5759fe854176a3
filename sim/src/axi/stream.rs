//! The network's side of `s_axis_rx` and `m_axis_tx`: whole frames in and out, beat by beat.

use std::collections::VecDeque;

use fastrand::Rng;

use super::MAX_LANES;
use super::check::{Hold, Violations};
use crate::random::{Pauses, Pausing};

/// Longest frame in bytes that may leave the engine: a path MTU of 4096 with all headers is well below.
pub const MAX_FRAME: usize = 16384;

/// A beat of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// TVALID.
    pub valid: bool,
    /// TLAST.
    pub last: bool,
    /// TUSER, with TLAST: the frame is bad.
    pub user: bool,
    /// TKEEP: bit i for byte i.
    pub keep: u64,
    /// TDATA, byte lanes in order.
    pub data: [u8; MAX_LANES],
}

impl Default for Beat {
    fn default() -> Self {
        Self {
            valid: false,
            last: false,
            user: false,
            keep: 0,
            data: [0; MAX_LANES],
        }
    }
}

/// Drives frames into `s_axis_rx`.
#[derive(Debug)]
pub struct Source {
    lanes: usize,
    frames: VecDeque<(Vec<u8>, bool)>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    /// Bytes of the first frame already at the port.
    sent: usize,
    pausing: Pausing,
    rng: Rng,
    /// TREADY was set once since reset.
    open: bool,
    log: Violations,
}

impl Source {
    /// A source of `lanes` bytes a beat that pauses between beats as `pauses` say.
    #[must_use]
    pub fn new(lanes: usize, pauses: Pauses, seed: u64) -> Self {
        Self {
            lanes,
            frames: VecDeque::new(),
            spare: Vec::new(),
            sent: 0,
            pausing: Pausing::new(pauses),
            rng: Rng::with_seed(seed),
            open: false,
            log: Violations::default(),
        }
    }

    /// Queues a frame; `bad` sets TUSER on its last beat. An empty frame is no frame.
    pub fn push(&mut self, frame: &[u8], bad: bool) {
        if frame.is_empty() {
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.frames.push_back((buffer, bad));
    }

    /// Frames that have not passed whole.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.frames.len()
    }

    /// No frame waits.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.frames.is_empty()
    }

    /// Rules the engine broke.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.log
    }

    /// Forgets all frames.
    pub fn reset(&mut self) {
        self.frames.clear();
        self.sent = 0;
        self.open = false;
    }

    /// One cycle `now`: `beat` and `ready` stood at the port; `beat` becomes what is driven next.
    pub fn step(&mut self, now: u64, beat: &mut Beat, ready: bool) {
        if self.open && !ready {
            self.log.add(
                now,
                "s_axis_rx",
                "TREADY fell; a port of a network cannot wait",
            );
        }
        self.open = ready;
        if beat.valid && !ready {
            return;
        }
        let paused = self.pausing.now(&mut self.rng);
        let Some((frame, bad)) = self.frames.front().filter(|_| !paused) else {
            beat.valid = false;
            return;
        };
        let bytes = (frame.len() - self.sent).min(self.lanes);
        beat.data[..bytes].copy_from_slice(&frame[self.sent..self.sent + bytes]);
        beat.data[bytes..].fill(0);
        self.sent += bytes;
        beat.valid = true;
        beat.last = self.sent == frame.len();
        beat.keep = u64::MAX >> (64 - bytes);
        beat.user = beat.last && *bad;
        if beat.last {
            self.sent = 0;
            self.spare
                .extend(self.frames.pop_front().map(|(buffer, _)| buffer));
        }
    }
}

/// A wire that stands for a while, as one does that the other end pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Frames that pass before.
    pub after: u64,
    /// Cycles in which no frame begins to pass.
    pub cycles: u64,
}

/// Collects frames from `m_axis_tx`.
#[derive(Debug)]
pub struct Sink {
    lanes: usize,
    frames: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    /// A frame has begun and not ended.
    inside: bool,
    /// TREADY falls between frames while this many wait.
    room: usize,
    pausing: Pausing,
    stand: Stand,
    rng: Rng,
    hold: Hold<Beat>,
    log: Violations,
}

impl Sink {
    /// A sink of `lanes` bytes a beat that pauses as `pauses` say and takes no further frame while
    /// `room` of them wait.
    ///
    /// # Panics
    /// If `room` is 0.
    #[must_use]
    pub fn new(lanes: usize, pauses: Pauses, room: usize, seed: u64) -> Self {
        assert!(room > 0, "a sink without room takes no frame");
        Self {
            lanes,
            frames: VecDeque::new(),
            current: Vec::new(),
            inside: false,
            room,
            pausing: Pausing::new(pauses),
            stand: Stand::default(),
            rng: Rng::with_seed(seed),
            hold: Hold::new("m_axis_tx"),
            log: Violations::default(),
        }
    }

    /// The wire behind it stands once.
    #[must_use]
    pub fn standing(self, stand: Stand) -> Self {
        Self { stand, ..self }
    }

    /// The oldest frame that is complete.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// No frame is under way or waits, as far as the wire shows.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.frames.is_empty() && !self.inside && !self.stands()
    }

    fn stands(&self) -> bool {
        self.stand.after == 0 && self.stand.cycles > 0
    }

    /// Rules the engine broke.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.log
    }

    /// Forgets all frames.
    pub fn reset(&mut self) {
        self.frames.clear();
        self.current.clear();
        self.inside = false;
        self.hold.reset();
    }

    /// One cycle `now`: `beat` and `ready` stood at the port; `ready` becomes what is driven next.
    pub fn step(&mut self, now: u64, beat: &Beat, ready: &mut bool) {
        self.hold
            .check(now, beat.valid, *ready, beat, &mut self.log);
        if beat.valid && *ready {
            self.take(now, beat);
        } else if self.inside && *ready {
            self.log.add(
                now,
                "m_axis_tx",
                "a pause inside a frame; a MAC would underrun",
            );
        }
        let stands = self.stands();
        if stands && !self.inside {
            self.stand.cycles -= 1;
        }
        let full = !self.inside && (stands || self.frames.len() >= self.room);
        *ready = !self.pausing.now(&mut self.rng) && !full;
    }

    fn take(&mut self, now: u64, beat: &Beat) {
        let all = u64::MAX >> (64 - self.lanes);
        let bytes = beat.keep.trailing_ones() as usize;
        let contiguous =
            bytes <= self.lanes && beat.keep == all & (u64::MAX >> (64 - bytes.max(1)));
        if !contiguous || bytes == 0 || (!beat.last && beat.keep != all) {
            let what = format!(
                "TKEEP {:#x} with TLAST {}; lanes from 0 up without gap, all of them before the last beat",
                beat.keep,
                u8::from(beat.last)
            );
            self.log.add(now, "m_axis_tx", what);
        }
        self.current
            .extend_from_slice(&beat.data[..bytes.min(self.lanes)]);
        self.inside = !beat.last;
        if self.current.len() > MAX_FRAME {
            self.log.add(
                now,
                "m_axis_tx",
                format!("a frame of more than {MAX_FRAME} bytes"),
            );
            self.current.clear();
        }
        if beat.last {
            self.stand.after = self.stand.after.saturating_sub(1);
            if beat.user {
                self.log
                    .add(now, "m_axis_tx", "TUSER marks a frame of the engine as bad");
            }
            let next = Vec::with_capacity(self.current.capacity());
            self.frames
                .push_back(std::mem::replace(&mut self.current, next));
        }
    }
}
