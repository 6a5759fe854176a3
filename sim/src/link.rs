//! A point-to-point link: two [`Wire`]s, one each way, that know nothing of each other.
//!
//! A frame is delivered when its last bit has arrived, as a MAC that stores frames would. Hardship is
//! random with a seed, or scripted by the number of the frame, or both.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;

use crate::random::Chance;
use crate::rate::Rate;

/// Bytes that Ethernet spends on a frame beyond what [`Nic`](crate::nic::Nic) passes: preamble 8,
/// FCS 4, gap 12.
pub const OVERHEAD: usize = 24;

/// Shortest frame without FCS; shorter ones are padded with zeros.
pub const MIN_FRAME: usize = 60;

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Config {
    /// Cycles from the last bit in to the last bit out; at least one cycle passes.
    pub latency: u64,
    /// Bytes a cycle with [`OVERHEAD`]; `None` for a wire that takes whatever comes at once.
    pub rate: Option<Rate>,
    /// A frame is lost.
    pub loss: Chance,
    /// A frame is delivered twice.
    pub duplication: Chance,
    /// A frame is held back until later ones have passed.
    pub reordering: Chance,
    /// A frame is held back for 1 to this many later ones.
    pub reorder_depth: u32,
    /// A frame held back goes on after this many cycles even if nothing passes it.
    pub hold_limit: u64,
    /// One random bit of a frame is flipped.
    pub corruption: Chance,
    /// Seed of all of these.
    pub seed: u64,
}

impl Default for Config {
    /// 1 cycle, no limit, no hardship.
    fn default() -> Self {
        Self {
            latency: 1,
            rate: None,
            loss: Chance::NEVER,
            duplication: Chance::NEVER,
            reordering: Chance::NEVER,
            reorder_depth: 3,
            hold_limit: 10_000,
            corruption: Chance::NEVER,
            seed: 1,
        }
    }
}

impl Config {
    /// 100 Gb/s Ethernet over a few metres and nothing else: 50 bytes a cycle, 25 cycles (100 ns).
    #[must_use]
    pub fn ethernet_100g() -> Self {
        Self {
            latency: 25,
            rate: Some(Rate::ethernet(100)),
            ..Self::default()
        }
    }

    /// Everything goes wrong with probability `p`, independently.
    ///
    /// # Panics
    /// If `p` is not within 0 to 1.
    #[must_use]
    pub fn hostile(p: f64, seed: u64) -> Self {
        let chance = Chance::new(p);
        Self {
            latency: 25,
            loss: chance,
            duplication: chance,
            reordering: chance,
            corruption: chance,
            seed,
            ..Self::default()
        }
    }
}

/// What happens to one frame by script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    /// It is lost.
    Drop,
    /// It is delivered twice; together with `HoldBack` the second time late.
    Duplicate,
    /// It is held back until this many later frames have passed it; lost ones do not count.
    HoldBack(u32),
    /// Bit 0 to 7 of a byte is flipped; nothing happens beyond the end of the frame.
    FlipBit {
        /// Byte of the frame.
        byte: usize,
        /// Bit of the byte.
        bit: u8,
    },
}

/// What a wire did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, without [`OVERHEAD`].
    pub bytes: u64,
    /// Frames delivered, duplicates counted.
    pub delivered: u64,
    /// Frames lost.
    pub lost: u64,
    /// Frames doubled.
    pub duplicated: u64,
    /// Frames held back.
    pub reordered: u64,
    /// Frames with a bit flipped.
    pub corrupted: u64,
}

/// A frame held back.
#[derive(Debug)]
struct Held {
    frame: Vec<u8>,
    /// Later frames still to pass.
    frames_after: u32,
    /// Cycle of delivery if too few pass it.
    until: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Wire {
    config: Config,
    rng: Rng,
    script: BTreeMap<u64, Vec<Impairment>>,
    stats: Stats,
    /// When the wire is free again, in cycles times the units of the rate.
    free_at: u128,
    /// Frames on their way with the cycle of delivery, soonest first.
    flying: VecDeque<(u64, Vec<u8>)>,
    held: Vec<Held>,
}

impl Wire {
    /// An empty wire.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            rng: Rng::with_seed(config.seed),
            config,
            script: BTreeMap::new(),
            stats: Stats::default(),
            free_at: 0,
            flying: VecDeque::new(),
            held: Vec::new(),
        }
    }

    /// Adds an impairment of frame number `frame`, counted from 0 since the start. Scripted frames are
    /// spared random hardship.
    pub fn script(&mut self, frame: u64, impairment: Impairment) {
        self.script.entry(frame).or_default().push(impairment);
    }

    /// Changes hardship, latency and rate for frames sent from now on; the seed is left as it was.
    pub fn reconfigure(&mut self, config: Config) {
        let units = |c: &Config| u128::from(c.rate.map_or(1, Rate::units));
        self.free_at = self.free_at.div_ceil(units(&self.config)) * units(&config);
        self.config = config;
    }

    /// Whether a frame sent now starts within this cycle: what a sender waits for.
    #[must_use]
    pub fn ready(&self, now: u64) -> bool {
        match self.config.rate {
            Some(rate) => self.free_at < u128::from(now + 1) * u128::from(rate.units()),
            None => true,
        }
    }

    /// Sends a frame in cycle `now`, behind those sent before.
    pub fn send(&mut self, now: u64, mut frame: Vec<u8>) {
        let number = self.stats.frames;
        self.stats.frames += 1;
        self.stats.bytes += frame.len() as u64;
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
        let left = self.serialise(now, frame.len());
        let outcome = self.outcome(number, &mut frame);
        let at = left + self.config.latency.max(1);
        if outcome.lost {
            self.stats.lost += 1;
            return;
        }
        if outcome.twice {
            self.stats.duplicated += 1;
            self.fly(at, frame.clone());
        }
        if outcome.frames_after > 0 {
            self.stats.reordered += 1;
            let until = at + self.config.hold_limit;
            self.held.push(Held {
                frame,
                frames_after: outcome.frames_after,
                until,
            });
        } else {
            self.fly(at, frame);
            self.release(at);
        }
    }

    /// The next frame that has arrived by cycle `now`.
    pub fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        if !self.held.is_empty() {
            self.expire(now);
        }
        if self.flying.front()?.0 > now {
            return None;
        }
        self.stats.delivered += 1;
        self.flying.pop_front().map(|(_, frame)| frame)
    }

    /// First cycle in which something will arrive; `None` if nothing is on the wire.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        let flying = self.flying.front().map(|(at, _)| *at);
        flying
            .into_iter()
            .chain(self.held.iter().map(|held| held.until))
            .min()
    }

    /// Counters since the start.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Cycle in which the last bit of a frame has left.
    fn serialise(&mut self, now: u64, bytes: usize) -> u64 {
        let Some(rate) = self.config.rate else {
            return now;
        };
        let units = u128::from(rate.units());
        let start = self.free_at.max(u128::from(now) * units);
        self.free_at = start + (bytes + OVERHEAD) as u128 * u128::from(rate.cycles());
        self.free_at.div_ceil(units) as u64
    }

    fn outcome(&mut self, number: u64, frame: &mut [u8]) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(script) = self.script.remove(&number) {
            for impairment in script {
                match impairment {
                    Impairment::Drop => outcome.lost = true,
                    Impairment::Duplicate => outcome.twice = true,
                    Impairment::HoldBack(frames) => outcome.frames_after = frames,
                    Impairment::FlipBit { byte, bit } => self.flip(frame, byte, bit),
                }
            }
            return outcome;
        }
        let (c, rng) = (&self.config, &mut self.rng);
        outcome.lost = c.loss.hit(rng);
        outcome.twice = c.duplication.hit(rng);
        if c.reordering.hit(rng) {
            outcome.frames_after = rng.u32(1..=c.reorder_depth.max(1));
        }
        if c.corruption.hit(rng) {
            let (byte, bit) = (rng.usize(..frame.len()), rng.u8(..8));
            self.flip(frame, byte, bit);
        }
        outcome
    }

    fn flip(&mut self, frame: &mut [u8], byte: usize, bit: u8) {
        if let Some(byte) = frame.get_mut(byte) {
            *byte ^= 1 << (bit % 8);
            self.stats.corrupted += 1;
        }
    }

    fn fly(&mut self, at: u64, frame: Vec<u8>) {
        let place = self.flying.partition_point(|(other, _)| *other <= at);
        self.flying.insert(place, (at, frame));
    }

    /// A frame that arrives at `at` has passed those held back.
    fn release(&mut self, at: u64) {
        self.held
            .iter_mut()
            .for_each(|held| held.frames_after = held.frames_after.saturating_sub(1));
        while let Some(place) = self.held.iter().position(|held| held.frames_after == 0) {
            let held = self.held.remove(place);
            self.fly(at, held.frame);
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some(place) = self.held.iter().position(|held| held.until <= now) {
            let held = self.held.remove(place);
            self.fly(held.until, held.frame);
        }
    }
}

/// What happens to a frame.
#[derive(Debug, Default)]
struct Outcome {
    lost: bool,
    twice: bool,
    /// Held back until this many have passed.
    frames_after: u32,
}
