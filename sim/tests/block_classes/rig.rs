//! The class queues between a source that keeps to its room and a wire that checks every frame.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::egress::{Narrow, NarrowPort, QUEUES, Wide, WidePort};
use ferroce_sim::bench::{Agent, Bench};
use ferroce_sim::bits;
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::Dut;

use crate::departure::{Departures, is_request, number};
use crate::load::Load;
use crate::peer::Peer;
use crate::ports::Ports;

/// Bytes that a frame counts beside its own.
const AROUND: u64 = 24;
/// Bytes of the largest frame.
pub(crate) const LARGEST: usize = 4224;
/// Cycles from a pause to the first beat that it holds back.
const DEPTH: u64 = 4;

/// A frame on its way.
struct Sent {
    bytes: Vec<u8>,
    /// Cycle of its first beat.
    at: u64,
}

/// Both ends of the block.
pub(crate) struct Ends {
    pub(crate) lanes: usize,
    ports: Ports,
    pub(crate) loads: [Load; QUEUES],
    pub(crate) weights: [u64; QUEUES],
    /// Queues that are paused, without a MAC.
    pub(crate) pause: u64,
    /// The peer of a port.
    pub(crate) peer: Option<Peer>,
    pub(crate) departures: Departures,
    /// Chance that a queue changes between paused and not, a cycle.
    pub(crate) toggle: Chance,
    /// Chance that the wire takes a beat.
    pub(crate) ready: Chance,
    /// Chance that reserved room is given back.
    pub(crate) returns: Chance,
    // source
    current: Option<(usize, VecDeque<Vec<u8>>)>,
    turn: usize,
    room: [usize; QUEUES],
    reserving: Option<(usize, usize)>,
    returning: Option<(usize, usize)>,
    number: u64,
    expected: [VecDeque<Sent>; QUEUES],
    // wire
    pauses: VecDeque<u64>,
    partial: Option<(usize, Vec<u8>)>,
    offered: bool,
    /// Frames and counted bytes that left, by queue.
    pub(crate) frames: [u64; QUEUES],
    pub(crate) counted: [u64; QUEUES],
    /// Cycles in which the wire had nothing.
    pub(crate) idle: u64,
    /// Most cycles from the first beat in to the first beat out, by queue.
    pub(crate) slowest: [u64; QUEUES],
    /// Most bytes that others sent between two frames of a queue.
    pub(crate) waited: [u64; QUEUES],
    waits: [u64; QUEUES],
}

/// The bench and its ends.
pub(crate) struct Rig {
    bench: Bench,
    pub(crate) ends: Ends,
}

impl Rig {
    /// Queues of a data path of `width` bits.
    pub(crate) fn new(width: usize) -> Self {
        let bench = match width {
            512 => Bench::of(Wide::default),
            _ => Bench::of(Narrow::default),
        };
        Self::with(bench.unwrap(), width)
    }

    /// The same with a MAC, whose pauses are obeyed.
    pub(crate) fn port(width: usize) -> Self {
        let bench = match width {
            512 => Bench::of(WidePort::default),
            _ => Bench::of(NarrowPort::default),
        };
        Self::with(bench.unwrap(), width)
    }

    fn with(mut bench: Bench, width: usize) -> Self {
        let mut ends = Ends::new(bench.dut(), width / 8);
        bench.reset(&mut [&mut ends]);
        Self { bench, ends }
    }

    /// `cycles` cycles.
    #[track_caller]
    pub(crate) fn run(&mut self, cycles: u64) {
        if let Err(failure) = self.bench.run(&mut [&mut self.ends], cycles) {
            panic!("{failure}");
        }
    }

    /// No new frames; until all have left, whatever was paused.
    #[track_caller]
    pub(crate) fn drain(&mut self) {
        self.ends.loads = Default::default();
        self.ends.toggle = Chance::NEVER;
        self.ends.departures.toggle = Chance::NEVER;
        self.ends.pause_all(false);
        if let Err(failure) = self.bench.finish(&mut [&mut self.ends], 400_000) {
            panic!("{failure}");
        }
        self.run(DEPTH);
        assert_eq!(self.bench.dut().get(self.ends.ports.waiting), 0);
    }

    /// Forgets what was counted.
    pub(crate) fn count_afresh(&mut self) {
        let ends = &mut self.ends;
        ends.frames = Default::default();
        ends.counted = Default::default();
        ends.slowest = Default::default();
        ends.waited = Default::default();
        ends.waits = Default::default();
        ends.idle = 0;
    }
}

impl Ends {
    fn new(dut: &Dut, lanes: usize) -> Self {
        Self {
            lanes,
            ports: Ports::of(dut),
            loads: Default::default(),
            weights: [1; QUEUES],
            pause: 0,
            peer: Peer::of(dut, lanes),
            departures: Departures::new(),
            toggle: Chance::NEVER,
            ready: Chance::new(1.0),
            returns: Chance::NEVER,
            current: None,
            turn: 0,
            room: [0; QUEUES],
            reserving: None,
            returning: None,
            number: 0,
            expected: Default::default(),
            pauses: VecDeque::new(),
            partial: None,
            offered: false,
            frames: [0; QUEUES],
            counted: [0; QUEUES],
            idle: 0,
            slowest: [0; QUEUES],
            waited: [0; QUEUES],
            waits: [0; QUEUES],
        }
    }

    /// The peer sends a pause of `priority`; 0 quanta: go on.
    pub(crate) fn paused(&mut self, priority: usize, quanta: u16) {
        if let Some(peer) = &mut self.peer {
            peer.pause(priority, quanta);
        }
    }

    /// Everything is paused, or nothing.
    pub(crate) fn pause_all(&mut self, on: bool) {
        self.pause = if on { (1 << QUEUES) - 1 } else { 0 };
        let quanta = if on { u16::MAX } else { 0 };
        (0..8).for_each(|priority| self.paused(priority, quanta));
    }

    fn watch(&mut self, dut: &Dut, queue: Option<usize>) -> Result<(), String> {
        self.peer
            .as_mut()
            .map_or(Ok(()), |peer| peer.observe(dut, queue))
    }

    fn largest(&self) -> usize {
        LARGEST / self.lanes
    }

    /// The next frame, of the next queue in turn that has room for it.
    fn begin(&mut self, rng: &mut Rng) {
        for step in 1..=QUEUES {
            let queue = (self.turn + step) % QUEUES;
            let Load {
                shortest,
                longest,
                chance,
            } = self.loads[queue];
            if shortest == 0 || !Chance::new(chance).hit(rng) {
                continue;
            }
            let len = rng.usize(shortest..=longest);
            let beats = len.div_ceil(self.lanes);
            if self.room[queue] < beats {
                continue;
            }
            self.room[queue] -= beats;
            self.turn = queue;
            let mut bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
            bytes[0] = queue as u8;
            bytes[1..9].copy_from_slice(&self.number.to_be_bytes());
            self.number += 1;
            let beats = bytes.chunks(self.lanes).map(<[u8]>::to_vec).collect();
            self.expected[queue].push_back(Sent {
                bytes,
                at: u64::MAX,
            });
            self.current = Some((queue, beats));
            return;
        }
    }

    /// The first beat of a frame of `queue` is offered; says which rule that breaks.
    fn starts(&mut self, queue: usize, cycle: u64) -> Result<(), String> {
        let sent = self.expected[queue].front();
        let sent = sent.ok_or(format!("queue {queue}: a frame that was not sent"))?;
        self.slowest[queue] = self.slowest[queue].max(cycle - sent.at);
        self.waited[queue] = self.waited[queue].max(self.waits[queue]);
        self.waits[queue] = 0;
        let seen = self.pauses[0];
        // with a wire that waits, what stands in the registers may be older; the port has a cycle more
        let is_port = self.peer.is_some();
        if !is_port && self.ready == Chance::new(1.0) && seen >> queue & 1 == 1 {
            return Err(format!("queue {queue}: a frame begins while it is paused"));
        }
        Ok(())
    }
}

impl Agent for Ends {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        for (input, weight) in self.ports.weights.iter().zip(self.weights) {
            dut.set(*input, weight);
        }
        for queue in 0..QUEUES {
            if !self.toggle.hit(rng) {
            } else if self.peer.is_none() {
                self.pause ^= 1 << queue;
            } else {
                let quanta = rng.u16(..400);
                self.paused(queue, quanta * u16::from(rng.bool()));
            }
        }
        if let Some(pause) = self.ports.pause {
            dut.set(pause, self.pause);
        }
        if let Some(peer) = &self.peer {
            self.pause = peer.drive(dut, &self.weights);
        }
        dut.set(self.ports.ready, u64::from(self.ready.hit(rng)));
        dut.set(self.ports.user, 0);
        let space = |space: Option<(usize, usize)>| {
            space.map_or(0, |(queue, beats)| (queue | beats << 4 | 1 << 18) as u64)
        };
        dut.set(self.ports.reserve, space(self.reserving));
        self.returning = None;
        if self.returns.hit(rng) {
            let queue = rng.usize(..QUEUES);
            let beats = self.room[queue].min(self.largest());
            self.room[queue] -= beats;
            self.returning = Some((queue, beats));
        }
        dut.set(self.ports.give_back, space(self.returning));
        if self.current.is_none() {
            self.begin(rng);
        }
        self.departures.drive(dut, &self.ports, rng);
        dut.set(self.ports.valid, u64::from(self.current.is_some()));
        if let Some((queue, beats)) = &self.current {
            let mut words = vec![0; self.lanes / 4];
            for (lane, byte) in beats[0].iter().enumerate() {
                words[lane / 4] |= u32::from(*byte) << (lane % 4 * 8);
            }
            dut.write(self.ports.data, &words);
            dut.set(self.ports.keep, bits::mask(beats[0].len()));
            dut.set(self.ports.last, u64::from(beats.len() == 1));
            dut.set(self.ports.queue, *queue as u64);
            let sent = self.expected[*queue].back().expect("it is sent");
            let request = beats.len() == 1 && is_request(*queue, &sent.bytes);
            dut.set(self.ports.request, request.into());
            dut.set(self.ports.departure, number(&sent.bytes) & 0xff_ffff);
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let comes = self.current.as_ref().map(|(queue, _)| *queue);
        self.departures.observe(dut, &self.ports, comes)?;
        // the source
        if let Some((queue, beats)) = &mut self.current {
            let sent = self.expected[*queue].back_mut().expect("it is sent");
            sent.at = sent.at.min(cycle);
            beats.pop_front();
            if beats.is_empty() {
                self.current = None;
            }
        }
        if let Some((queue, beats)) = self.reserving.take() {
            self.room[queue] += beats;
        } else {
            // what is reserved shows in `open` in the next cycle
            let open = dut.get(self.ports.open);
            let largest = self.largest();
            let free = (64 / self.lanes + 4) as u64;
            self.reserving = (0..QUEUES)
                .filter(|&queue| open >> queue & 1 == 1 && self.loads[queue].shortest != 0)
                .filter(|&queue| dut.get(self.ports.room[queue]) >= largest as u64 + free)
                .min_by_key(|&queue| self.room[queue])
                .map(|queue| (queue, largest));
        }
        // the wire
        self.pauses.push_back(self.pause);
        if self.pauses.len() as u64 > DEPTH + 1 {
            self.pauses.pop_front();
        }
        let valid = dut.is_set(self.ports.m_valid);
        if !valid {
            self.idle += 1;
            self.watch(dut, None)?;
            if self.partial.is_some() {
                return Err("a pause within a frame".into());
            }
            if self.offered {
                return Err("an offer is withdrawn".into());
            }
            return Ok(());
        }
        let mut words = vec![0; self.lanes / 4];
        dut.read(self.ports.m_data, &mut words);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let count = dut.get(self.ports.m_keep).count_ones() as usize;
        if dut.get(self.ports.m_keep) != bits::mask(count) {
            let keep = dut.get(self.ports.m_keep);
            return Err(format!("tkeep has a gap: {keep:x}, {words:x?}"));
        }
        let bytes: Vec<u8> = bytes.take(count).collect();
        let on_wire = self
            .partial
            .as_ref()
            .map_or(usize::from(bytes[0]), |partial| partial.0);
        self.watch(dut, Some(on_wire))?;
        if self.partial.is_none() && !self.offered {
            let queue = usize::from(bytes[0]);
            self.starts(queue.min(QUEUES - 1), cycle)?;
        }
        self.offered = true;
        if !dut.is_set(self.ports.ready) {
            return Ok(());
        }
        self.offered = false;
        self.departures.beat_left(on_wire);
        let (queue, mut frame) = self
            .partial
            .take()
            .unwrap_or((usize::from(bytes[0]), vec![]));
        frame.extend(bytes);
        if !dut.is_set(self.ports.m_last) {
            self.partial = Some((queue, frame));
            return Ok(());
        }
        let sent = self.expected[queue].pop_front();
        if sent.is_none_or(|sent| sent.bytes != frame) {
            return Err(format!("queue {queue}: another frame than was sent"));
        }
        if is_request(queue, &frame) {
            self.departures.expect(number(&frame) & 0xff_ffff);
        }
        let counts = frame.len() as u64 + AROUND;
        self.frames[queue] += 1;
        self.counted[queue] += counts;
        for other in (0..QUEUES).filter(|&other| other != queue) {
            self.waits[other] += counts;
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let left: usize = self.expected.iter().map(VecDeque::len).sum();
        (left > 0).then(|| format!("{left} frames"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        for input in [self.ports.valid, self.ports.reserve, self.ports.give_back] {
            dut.set(input, 0);
        }
    }
}
