//! Write half of the memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::memory::{Config, Shared};
use super::{Address, DECERR, FromMaster, IDS, MAX_BEATS, OKAY, ToMaster, WriteData, check};
use crate::memory::{FaultKind, Trouble};
use crate::random::{Delay, Pausing};
use crate::rate::Pacer;

/// W beats taken before their address.
const MAX_EARLY: usize = 16;

/// A write burst between its address and its response.
struct Burst {
    id: u8,
    resp: u8,
    trouble: Trouble,
    /// Address of the first lane of the first beat.
    base: u64,
    /// Lanes below the address in the first beat.
    skip: usize,
    beats: usize,
    taken: usize,
    /// First cycle in which the response may be offered; `u64::MAX` until all data is here.
    response_at: u64,
    visible_at: u64,
    /// Order of addresses.
    number: u64,
    strobes: Box<[u64]>,
    data: Box<[u8]>,
}

/// Outstanding write bursts.
pub(super) struct Writes {
    bursts: Box<[Burst]>,
    free: Vec<u16>,
    /// Bursts whose data is not complete, oldest first.
    filling: VecDeque<u16>,
    /// Beats without an address yet.
    early: VecDeque<WriteData>,
    /// Complete bursts that memory does not show yet: (cycle, order, burst).
    hidden: BinaryHeap<Reverse<(u64, u64, u16)>>,
    /// Bursts that were answered before memory shows them, in order.
    posted: VecDeque<Burst>,
    /// Bursts of each ID without response, oldest first.
    queues: [VecDeque<u16>; IDS],
    begun: u64,
    latency: Delay,
    pacer: Pacer,
    aw: Pausing,
    w: Pausing,
    b: Pausing,
}

impl Writes {
    pub(super) fn new(config: &Config, lanes: usize) -> Self {
        let burst = |_| Burst {
            id: 0,
            resp: OKAY,
            trouble: Trouble::None,
            base: 0,
            skip: 0,
            beats: 0,
            taken: 0,
            response_at: 0,
            visible_at: 0,
            number: 0,
            strobes: vec![0; MAX_BEATS].into(),
            data: vec![0; MAX_BEATS * lanes].into(),
        };
        let most = config.max_writes;
        let mut writes = Self {
            bursts: (0..most).map(burst).collect(),
            free: Vec::with_capacity(most),
            filling: VecDeque::with_capacity(most),
            early: VecDeque::with_capacity(MAX_EARLY),
            hidden: BinaryHeap::with_capacity(most),
            posted: VecDeque::new(),
            queues: std::array::from_fn(|_| VecDeque::with_capacity(most)),
            begun: 0,
            latency: config.write_latency,
            pacer: Pacer::new(config.write_rate),
            aw: Pausing::new(config.aw),
            w: Pausing::new(config.w),
            b: Pausing::new(config.b),
        };
        writes.reset();
        writes
    }

    pub(super) fn reset(&mut self) {
        self.free.clear();
        self.free.extend((0..self.bursts.len() as u16).rev());
        self.filling.clear();
        self.early.clear();
        self.hidden.clear();
        self.posted.clear();
        self.queues.iter_mut().for_each(VecDeque::clear);
    }

    pub(super) fn idle(&self) -> bool {
        self.free.len() == self.bursts.len() && self.early.is_empty() && self.posted.is_empty()
    }

    pub(super) fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster, s: &mut Shared) {
        self.show(now, s);
        self.flush(now, now, s);
        if from.aw.valid && to.awready {
            self.accept(now, &from.aw, s);
        }
        if from.w.valid && to.wready {
            self.pacer.take();
            s.stats.write_beats += 1;
            if self.filling.is_empty() {
                self.early.push_back(from.w);
            } else {
                self.take(now, &from.w, s);
            }
        }
        if to.b.valid {
            if from.bready {
                to.b.valid = false;
            } else {
                s.stats.b_waits += 1;
            }
        }
        self.pacer.tick();
        to.awready = !self.aw.now(&mut s.rng) && !self.free.is_empty();
        let room = !self.filling.is_empty() || self.early.len() < MAX_EARLY;
        to.wready = !self.w.now(&mut s.rng) && room && self.pacer.ready();
        let paused = self.b.now(&mut s.rng);
        if !to.b.valid && !paused {
            self.respond(now + 1, to, s);
        }
    }

    /// Memory shows what is due.
    fn show(&mut self, now: u64, s: &mut Shared) {
        while let Some(&Reverse((when, _, index))) = self.hidden.peek() {
            if when > now {
                break;
            }
            self.hidden.pop();
            self.bursts[usize::from(index)].commit(now, s);
        }
    }

    fn accept(&mut self, now: u64, aw: &Address, s: &mut Shared) {
        check::address(now, "m_axi AW", aw, s.lanes, &mut s.log);
        let index = self.free.pop().expect("AWREADY only with a free slot");
        let burst = &mut self.bursts[usize::from(index)];
        burst.id = aw.id % IDS as u8;
        burst.resp = OKAY;
        burst.trouble = s.memory.trouble(aw.addr, FaultKind::Write);
        burst.skip = (aw.addr & (s.lanes as u64 - 1)) as usize;
        burst.base = aw.addr - burst.skip as u64;
        burst.beats = aw.beats();
        burst.taken = 0;
        burst.response_at = u64::MAX;
        burst.number = self.begun;
        self.begun += 1;
        self.queues[usize::from(burst.id)].push_back(index);
        self.filling.push_back(index);
        s.stats.write_bursts += 1;
        let outstanding = self.bursts.len() - self.free.len();
        s.stats.peak_writes = s.stats.peak_writes.max(outstanding);
        while !self.filling.is_empty() {
            let Some(beat) = self.early.pop_front() else {
                break;
            };
            self.take(now, &beat, s);
        }
    }

    /// Puts a beat into the oldest burst that lacks data.
    fn take(&mut self, now: u64, w: &WriteData, s: &mut Shared) {
        let index = *self.filling.front().expect("called with a burst to fill");
        let burst = &mut self.bursts[usize::from(index)];
        let at = burst.taken * s.lanes;
        burst.data[at..at + s.lanes].copy_from_slice(&w.data[..s.lanes]);
        burst.strobes[burst.taken] = w.strb;
        let outside = if burst.taken == 0 {
            (1 << burst.skip) - 1
        } else {
            0
        };
        if w.strb & (outside | !full(s.lanes)) != 0 {
            let what = format!(
                "WSTRB {:#x} of beat {} has lanes outside of the burst at {:#x}",
                w.strb,
                burst.taken,
                burst.base + burst.skip as u64
            );
            s.log.add(now, "m_axi W", what);
        }
        burst.taken += 1;
        let last = burst.taken == burst.beats;
        if w.last != last {
            let what = format!(
                "WLAST is {} at beat {} of {} of the burst at {:#x}",
                u8::from(w.last),
                burst.taken,
                burst.beats,
                burst.base + burst.skip as u64
            );
            s.log.add(now, "m_axi W", what);
        }
        if last {
            self.filling.pop_front();
            self.complete(now, index, s);
        }
    }

    /// All data is here: draws when memory shows it and when the response may go.
    fn complete(&mut self, now: u64, index: u16, s: &mut Shared) {
        let burst = &self.bursts[usize::from(index)];
        let mut response_at = now + 1 + s.latency(self.latency);
        if let Trouble::Late(cycles) = burst.trouble {
            response_at += cycles;
        }
        if s.early_b {
            return self.post(now, response_at, index, s.lanes);
        }
        let mut visible_at = if s.reorder {
            s.rng.u64(now..response_at)
        } else {
            now
        };
        for Reverse((_, _, other)) in &self.hidden {
            let other = &self.bursts[usize::from(*other)];
            if other.id == burst.id && other.overlaps(burst, s.lanes) {
                visible_at = visible_at.max(other.visible_at);
            }
        }
        response_at = response_at.max(visible_at + 1);
        let burst = &mut self.bursts[usize::from(index)];
        burst.response_at = response_at;
        burst.visible_at = visible_at;
        if visible_at <= now {
            burst.commit(now, s);
        } else {
            self.hidden.push(Reverse((visible_at, burst.number, index)));
        }
    }

    /// All data is here, and a bridge answers: memory shows it later, in the order of the data.
    fn post(&mut self, now: u64, visible_at: u64, index: u16, lanes: usize) {
        let newest = self.posted_until();
        let burst = &mut self.bursts[usize::from(index)];
        burst.response_at = now + 1;
        // The place of the burst is free again before memory shows it; a bridge that has answered refuses nothing.
        self.posted.push_back(Burst {
            visible_at: visible_at.max(newest),
            trouble: match burst.trouble {
                Trouble::Refused { .. } => Trouble::Vanishes,
                other => other,
            },
            strobes: burst.strobes[..burst.beats].into(),
            data: burst.data[..burst.beats * lanes].into(),
            ..*burst
        });
    }

    /// When memory shows the newest of what a bridge answered early.
    pub(super) fn posted_until(&self) -> u64 {
        self.posted.back().map_or(0, |posted| posted.visible_at)
    }

    /// Memory shows what a bridge answered early, up to what is due at `now`.
    pub(super) fn flush(&mut self, now: u64, due: u64, s: &mut Shared) {
        while self.posted.front().is_some_and(|b| b.visible_at <= due) {
            let mut burst = self.posted.pop_front().expect("there is one");
            burst.commit(now, s);
        }
    }

    fn respond(&mut self, then: u64, to: &mut ToMaster, s: &mut Shared) {
        if self.free.len() == self.bursts.len() {
            return;
        }
        let mut ready = [0; IDS];
        let mut count = 0;
        let mut oldest = u64::MAX;
        for id in 0..IDS {
            let Some(&index) = self.queues[id].front() else {
                continue;
            };
            let burst = &self.bursts[usize::from(index)];
            if s.reorder {
                if burst.response_at <= then {
                    ready[count] = id;
                    count += 1;
                }
            } else if burst.number < oldest {
                oldest = burst.number;
                ready[0] = id;
                count = usize::from(burst.response_at <= then);
            }
        }
        if count == 0 {
            return;
        }
        let id = ready[if count == 1 { 0 } else { s.rng.usize(..count) }];
        let index = self.queues[id]
            .pop_front()
            .expect("chosen because it has a burst");
        to.b.valid = true;
        to.b.id = id as u8;
        to.b.resp = self.bursts[usize::from(index)].resp;
        self.free.push(index);
    }
}

impl Burst {
    fn overlaps(&self, other: &Self, lanes: usize) -> bool {
        let bytes = |burst: &Self| (burst.beats * lanes) as u64;
        self.base < other.base.saturating_add(bytes(other))
            && other.base < self.base.saturating_add(bytes(self))
    }

    /// Writes every run of strobed bytes to memory, in cycle `now`.
    fn commit(&mut self, now: u64, s: &mut Shared) {
        match self.trouble {
            Trouble::Refused { response, .. } => return self.resp = response,
            Trouble::Vanishes => return,
            Trouble::None | Trouble::Late(_) => {}
        }
        let full = full(s.lanes);
        let end = self.beats * s.lanes;
        // A run may go on over beats; so do the bytes of `data`.
        let (mut start, mut failed, mut gone) = (None, false, None);
        let mut write = |from: usize, to: usize| {
            s.stats.written_bytes += (to - from) as u64;
            let addr = self.base.wrapping_add(from as u64);
            gone = gone.or(s
                .memory
                .is_gone(addr, to - from)
                .then_some((addr, to - from)));
            failed |= s.memory.write(addr, &self.data[from..to]).is_err();
        };
        for (beat, &strobes) in self.strobes[..self.beats].iter().enumerate() {
            let at = beat * s.lanes;
            if strobes == full {
                start.get_or_insert(at);
                continue;
            }
            for lane in 0..s.lanes {
                if strobes >> lane & 1 == 1 {
                    start.get_or_insert(at + lane);
                } else if let Some(from) = start.take() {
                    write(from, at + lane);
                }
            }
        }
        if let Some(from) = start {
            write(from, end);
        }
        if let Some((addr, len)) = gone {
            s.watch(now, "m_axi AW", self.id, addr, len);
        }
        if failed {
            self.resp = DECERR;
            s.stats.faults += 1;
        }
    }
}

/// All strobes of a beat.
fn full(lanes: usize) -> u64 {
    u64::MAX >> (64 - lanes)
}
