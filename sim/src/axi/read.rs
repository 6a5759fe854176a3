//! Read half of the memory.

use std::collections::VecDeque;

use super::memory::{Config, Shared};
use super::{Address, DECERR, FromMaster, IDS, LINE, MAX_BEATS, OKAY, ToMaster, check};
use crate::memory::{FaultKind, Trouble};
use crate::random::{Delay, Pausing};
use crate::rate::Pacer;

/// A read burst between its address and its last beat.
struct Burst {
    id: u8,
    resp: u8,
    trouble: Trouble,
    /// Memory was looked at.
    sampled: bool,
    addr: u64,
    beats: usize,
    sent: usize,
    /// First cycle in which data may be offered.
    ready_at: u64,
    /// Order of addresses.
    number: u64,
    /// Beats as they are sent.
    data: Box<[u8]>,
}

/// Outstanding read bursts.
pub(super) struct Reads {
    bursts: Box<[Burst]>,
    free: Vec<u16>,
    /// Bursts of each ID, oldest first.
    queues: [VecDeque<u16>; IDS],
    /// ID whose burst is half sent, when bursts do not interleave.
    current: Option<usize>,
    begun: u64,
    latency: Delay,
    pacer: Pacer,
    ar: Pausing,
    r: Pausing,
}

impl Reads {
    pub(super) fn new(config: &Config, lanes: usize) -> Self {
        let burst = |_| Burst {
            id: 0,
            resp: OKAY,
            trouble: Trouble::None,
            sampled: false,
            addr: 0,
            beats: 0,
            sent: 0,
            ready_at: 0,
            number: 0,
            data: vec![0; MAX_BEATS * lanes].into(),
        };
        let most = config.max_reads;
        let mut reads = Self {
            bursts: (0..most).map(burst).collect(),
            free: Vec::with_capacity(most),
            queues: std::array::from_fn(|_| VecDeque::with_capacity(most)),
            current: None,
            begun: 0,
            latency: config.read_latency,
            pacer: Pacer::new(config.read_rate),
            ar: Pausing::new(config.ar),
            r: Pausing::new(config.r),
        };
        reads.reset();
        reads
    }

    pub(super) fn reset(&mut self) {
        self.free.clear();
        self.free.extend((0..self.bursts.len() as u16).rev());
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.current = None;
    }

    pub(super) fn idle(&self) -> bool {
        self.free.len() == self.bursts.len()
    }

    pub(super) fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster, s: &mut Shared) {
        self.pacer.tick();
        if from.ar.valid && to.arready {
            self.accept(now, &from.ar, s);
        }
        if to.r.valid {
            if from.rready {
                s.stats.read_beats += 1;
                to.r.valid = false;
            } else {
                s.stats.r_waits += 1;
            }
        }
        to.arready = !self.ar.now(&mut s.rng) && !self.free.is_empty();
        let paused = self.r.now(&mut s.rng);
        if !to.r.valid
            && !paused
            && self.pacer.ready()
            && let Some(id) = self.choose(now + 1, s)
        {
            self.offer(now, id, to, s);
            self.pacer.take();
        }
    }

    fn accept(&mut self, now: u64, ar: &Address, s: &mut Shared) {
        check::address(now, "m_axi AR", ar, s.lanes, &mut s.log);
        let index = self.free.pop().expect("ARREADY only with a free slot");
        let burst = &mut self.bursts[usize::from(index)];
        burst.id = ar.id % IDS as u8;
        burst.addr = ar.addr;
        burst.beats = ar.beats();
        burst.sent = 0;
        burst.ready_at = now + 1 + s.latency(self.latency);
        burst.trouble = s.memory.trouble(ar.addr, FaultKind::Read);
        if let Trouble::Late(cycles) = burst.trouble {
            burst.ready_at += cycles;
        }
        burst.number = self.begun;
        burst.sampled = false;
        if s.reorder && s.rng.bool() {
            burst.sample(now, s);
        }
        self.begun += 1;
        self.queues[usize::from(burst.id)].push_back(index);
        s.stats.read_bursts += 1;
        let outstanding = self.bursts.len() - self.free.len();
        s.stats.peak_reads = s.stats.peak_reads.max(outstanding);
    }

    fn head(&self, id: usize) -> Option<&Burst> {
        let index = *self.queues[id].front()?;
        Some(&self.bursts[usize::from(index)])
    }

    /// ID whose next beat is offered in cycle `then`.
    fn choose(&self, then: u64, s: &mut Shared) -> Option<usize> {
        if self.idle() {
            return None;
        }
        let heads = (0..IDS).filter_map(|id| Some((id, self.head(id)?)));
        let is_ready = |burst: &Burst| {
            burst.ready_at <= then && (burst.sent > 0 || burst.ready_at < s.held_from)
        };
        if !s.reorder {
            let (id, burst) = heads.min_by_key(|(_, burst)| burst.number)?;
            return is_ready(burst).then_some(id);
        }
        // One burst is finished most of the time, as memory controllers do; else any ID may go on.
        if let Some(id) = self.current
            && s.rng.u8(..) >= 32
        {
            return Some(id);
        }
        let mut ready = [0; IDS];
        let mut count = 0;
        for (id, burst) in heads {
            if is_ready(burst) {
                ready[count] = id;
                count += 1;
            }
        }
        (count > 0).then(|| ready[s.rng.usize(..count)])
    }

    fn offer(&mut self, now: u64, id: usize, to: &mut ToMaster, s: &mut Shared) {
        let index = *self.queues[id]
            .front()
            .expect("chosen because it has a burst");
        let burst = &mut self.bursts[usize::from(index)];
        let at = burst.sent * s.lanes;
        let line = (burst.addr & (s.lanes as u64 - 1).wrapping_neg()) + at as u64;
        if !burst.sampled || s.tear && line.is_multiple_of(LINE) {
            burst.sample(now, s);
        }
        to.r.data[..s.lanes].copy_from_slice(&burst.data[at..at + s.lanes]);
        to.r.valid = true;
        to.r.id = burst.id;
        to.r.resp = burst.resp;
        if let Trouble::Refused {
            beat,
            response,
            ones,
        } = burst.trouble
            && usize::from(beat) % burst.beats == burst.sent
        {
            to.r.resp = response;
            if ones {
                to.r.data[..s.lanes].fill(0xff);
            }
        }
        burst.sent += 1;
        to.r.last = burst.sent == burst.beats;
        self.current = (!to.r.last).then_some(id);
        if to.r.last {
            self.queues[id].pop_front();
            self.free.push(index);
        }
    }
}

impl Burst {
    /// Reads memory from the address to the end of the last beat, in cycle `now`.
    fn sample(&mut self, now: u64, s: &mut Shared) {
        self.sampled = true;
        self.resp = OKAY;
        let skip = (self.addr & (s.lanes as u64 - 1)) as usize;
        let bytes = self.beats * s.lanes;
        s.watch(now, "m_axi AR", self.id, self.addr, bytes - skip);
        let data = &mut self.data[..bytes];
        if skip > 0 {
            noise(&mut data[..skip], s);
        }
        if s.memory.mapped(self.addr, bytes - skip) == bytes - skip {
            let whole = s.memory.read(self.addr, &mut data[skip..]);
            debug_assert!(whole.is_ok());
            return;
        }
        let mut start = skip;
        for beat in 1..=self.beats {
            let end = beat * s.lanes;
            let addr = self.addr.wrapping_add((start - skip) as u64);
            if !sample_beat(addr, &mut data[start..end], s) {
                self.resp = DECERR;
                s.stats.faults += 1;
                return;
            }
            start = end;
        }
    }
}

/// Reads what is mapped of a beat; `false`, and a fault, if nothing is.
fn sample_beat(addr: u64, data: &mut [u8], s: &mut Shared) -> bool {
    noise(data, s);
    let (mut at, mut any) = (0, false);
    while at < data.len() {
        let here = addr.wrapping_add(at as u64);
        let bytes = s.memory.mapped(here, data.len() - at);
        let piece = &mut data[at..at + bytes];
        any |= bytes > 0 && s.memory.read(here, piece).is_ok();
        at += bytes.max(1);
    }
    any || s.memory.read(addr, data).is_ok()
}

fn noise(data: &mut [u8], s: &mut Shared) {
    s.rng.fill(data);
}
