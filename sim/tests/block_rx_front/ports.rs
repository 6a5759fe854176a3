//! What drives and watches the ports of the receive front.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::{Dut, Input, Output, Signal};

/// The counters of frames, in the names of the contract.
pub(crate) const COUNTERS: [&str; 8] = [
    "rx_frames",
    "rx_roce_packets",
    "rx_bad_frames",
    "rx_icrc_errors",
    "rx_malformed",
    "rx_not_roce",
    "rx_overflow",
    "rx_wrong_address",
];

/// Drives frames, with idle cycles; what no `tkeep` bit covers is random. Refuses to be held up.
#[derive(Debug)]
pub(crate) struct Source {
    data: Input,
    keep: Input,
    last: Input,
    user: Input,
    valid: Input,
    ready: Output,
    lanes: usize,
    idle: Chance,
    /// Frames to send, and whether they are marked bad.
    pub(crate) queue: VecDeque<(Vec<u8>, bool)>,
    at: usize,
    sending: bool,
    /// Cycle of the last beat of each frame sent.
    pub(crate) ends: Vec<u64>,
    /// Bytes sent.
    pub(crate) bytes: u64,
}

impl Source {
    pub(crate) fn new(dut: &Dut, lanes: usize, idle: Chance) -> Self {
        let input = |name: &str| dut.input(&format!("s_axis_rx_{name}")).expect("a port");
        Self {
            data: input("tdata"),
            keep: input("tkeep"),
            last: input("tlast"),
            user: input("tuser"),
            valid: input("tvalid"),
            ready: dut.output("s_axis_rx_tready").expect("a port"),
            lanes,
            idle,
            queue: VecDeque::new(),
            at: 0,
            sending: false,
            ends: Vec::new(),
            bytes: 0,
        }
    }
}

impl Agent for Source {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let mut beat: Vec<u8> = (0..self.lanes).map(|_| rng.u8(..)).collect();
        let (mut keep, mut last, mut user) = (rng.u64(..), rng.bool(), rng.bool());
        self.sending = !self.queue.is_empty() && !self.idle.hit(rng);
        if self.sending {
            let (frame, bad) = &self.queue[0];
            let bytes = &frame[self.at..(self.at + self.lanes).min(frame.len())];
            beat[..bytes.len()].copy_from_slice(bytes);
            keep = !0 >> (64 - bytes.len());
            last = self.at + bytes.len() == frame.len();
            user = if last { *bad } else { user };
        }
        let words: Vec<u32> = beat
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().expect("whole words")))
            .collect();
        dut.write(self.data, &words);
        dut.set(self.keep, keep & (!0 >> (64 - self.lanes)));
        dut.set(self.last, u64::from(last));
        dut.set(self.user, u64::from(user));
        dut.set(self.valid, u64::from(self.sending));
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if !self.sending {
            return Ok(());
        }
        if !dut.is_set(self.ready) {
            return Err("the input is held up".into());
        }
        let len = self.queue[0].0.len();
        let bytes = self.lanes.min(len - self.at);
        self.at += bytes;
        self.bytes += bytes as u64;
        if self.at == len {
            self.queue.pop_front();
            self.at = 0;
            self.ends.push(cycle);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let left = self.queue.len();
        (left > 0).then(|| format!("{left} frames are to be sent"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.valid, 0);
    }
}

/// Takes the payload beats, with pauses, and sums the events for the counters.
#[derive(Debug)]
pub(crate) struct Monitor {
    data: Output,
    last: Output,
    valid: Output,
    ready: Input,
    pause: Chance,
    /// Neither beats nor packets are taken.
    pub(crate) stalled: bool,
    taking: bool,
    held: Option<(Vec<u32>, bool)>,
    /// Beats taken, and whether they are marked last.
    pub(crate) beats: VecDeque<(Vec<u8>, bool)>,
    counters: Vec<(&'static str, Output)>,
    bytes: Output,
    exception: Output,
    /// Events counted.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl Monitor {
    pub(crate) fn new(dut: &Dut, pause: Chance) -> Self {
        let output = |name: &str| dut.output(name).unwrap_or_else(|e| panic!("{e}"));
        Self {
            data: output("beats_data"),
            last: output("beats_last"),
            valid: output("beats_valid"),
            ready: dut.input("beats_ready").expect("a port"),
            pause,
            stalled: false,
            taking: false,
            held: None,
            beats: VecDeque::new(),
            counters: COUNTERS
                .iter()
                .map(|name| (*name, output(&format!("stats.{name}"))))
                .collect(),
            bytes: output("rx_bytes"),
            exception: output("raw.not_roce"),
            counts: BTreeMap::new(),
        }
    }

    /// Events of one counter.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

impl Agent for Monitor {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.taking = !self.stalled && !self.pause.hit(rng);
        dut.set(self.ready, u64::from(self.taking));
    }

    fn observe(&mut self, dut: &Dut, _cycle: u64) -> Result<(), String> {
        for (name, output) in &self.counters {
            *self.counts.entry(name).or_default() += dut.get(*output);
        }
        *self.counts.entry("rx_bytes").or_default() += dut.get(self.bytes);
        *self.counts.entry("exception").or_default() += dut.get(self.exception);
        let mut seen = None;
        if dut.is_set(self.valid) {
            let mut words = vec![0; Signal::from(self.data).words()];
            dut.read(self.data, &mut words);
            seen = Some((words, dut.is_set(self.last)));
        }
        if self.held.is_some() && self.held != seen {
            return Err("`beats` changed a beat before it was taken".into());
        }
        self.held = seen.take_if(|_| !self.taking);
        if let Some((words, last)) = seen {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.beats.push_back((bytes, last));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.held = None;
        dut.set(self.ready, 0);
    }
}
