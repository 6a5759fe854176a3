//! Host memory behind `m_axi` that answers later, see [`RemoteMemory`].
//!
//! A burst is one access. Read data of one ID come in order; of the IDs whose answer is there, one after the other is
//! served, a burst at a time. A write burst is sent when all its data is here, and answered when memory has answered.
//! What memory refuses is answered DECERR.

use std::collections::VecDeque;
use std::rc::Rc;

use super::check::{self, Hold, Violations};
use super::memory::Stats;
use super::{Address, DECERR, FromMaster, IDS, OKAY, Slave, ToMaster, WriteData};
use crate::memory::Fault;
use crate::remote::{RemoteMemory, Ticket};

/// Bursts outstanding, each way.
const MAX_BURSTS: usize = 64;

/// A read burst between its address and its last beat.
struct Read {
    ticket: Ticket,
    /// Lanes below the address in the first beat.
    skip: usize,
    beats: usize,
    sent: usize,
    /// What was read, from the first lane of the first beat on, and xRESP.
    answer: Option<(Vec<u8>, u8)>,
}

/// A write burst between its address and its last beat.
struct Filling {
    id: usize,
    /// Address of the first lane of the first beat.
    base: u64,
    beats: usize,
    data: Vec<u8>,
    strobes: Vec<u64>,
}

/// A write burst that memory has not answered.
struct Sent {
    tickets: Vec<Ticket>,
    resp: u8,
}

/// An AXI4 slave in front of a [`RemoteMemory`].
pub struct RemotePort {
    memory: Rc<dyn RemoteMemory>,
    lanes: usize,
    /// Of each ID, oldest first.
    reads: [VecDeque<Read>; IDS],
    /// ID whose burst is on its way, or was last.
    reading: usize,
    filling: VecDeque<Filling>,
    /// Of each ID, oldest first.
    writes: [VecDeque<Sent>; IDS],
    stats: Stats,
    log: Violations,
    aw: Hold<Address>,
    w: Hold<WriteData>,
    ar: Hold<Address>,
}

impl RemotePort {
    /// A port of `lanes` bytes a beat in front of `memory`.
    #[must_use]
    pub fn new(memory: Rc<dyn RemoteMemory>, lanes: usize) -> Self {
        Self {
            memory,
            lanes,
            reads: Default::default(),
            reading: 0,
            filling: VecDeque::new(),
            writes: Default::default(),
            stats: Stats::default(),
            log: Violations::default(),
            aw: Hold::new("m_axi AW"),
            w: Hold::new("m_axi W"),
            ar: Hold::new("m_axi AR"),
        }
    }

    fn outstanding_reads(&self) -> usize {
        self.reads.iter().map(VecDeque::len).sum()
    }

    fn outstanding_writes(&self) -> usize {
        self.filling.len() + self.writes.iter().map(VecDeque::len).sum::<usize>()
    }

    fn skip(&self, address: &Address) -> usize {
        (address.addr & (self.lanes as u64 - 1)) as usize
    }

    fn step_reads(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster) {
        if from.ar.valid && to.arready {
            check::address(now, "m_axi AR", &from.ar, self.lanes, &mut self.log);
            let (skip, beats) = (self.skip(&from.ar), from.ar.beats());
            let bytes = beats * self.lanes - skip;
            let ticket = self.memory.start_read(from.ar.addr, bytes);
            self.reads[usize::from(from.ar.id) % IDS].push_back(Read {
                ticket,
                skip,
                beats,
                sent: 0,
                answer: None,
            });
            self.stats.read_bursts += 1;
            self.stats.peak_reads = self.stats.peak_reads.max(self.outstanding_reads());
        }
        if to.r.valid {
            if from.rready {
                self.stats.read_beats += 1;
                to.r.valid = false;
            } else {
                self.stats.r_waits += 1;
            }
        }
        if !to.r.valid {
            self.offer(to);
        }
        to.arready = self.outstanding_reads() < MAX_BURSTS;
    }

    /// Offers the next beat of the burst on its way, or the first of the next one that is answered.
    fn offer(&mut self, to: &mut ToMaster) {
        let Some(id) = self.next_read() else { return };
        self.reading = id;
        let lanes = self.lanes;
        let Some(burst) = self.reads[id].front_mut() else {
            return;
        };
        let Some((data, resp)) = &burst.answer else {
            return;
        };
        let at = burst.sent * lanes;
        to.r.data[..lanes].copy_from_slice(&data[at..at + lanes]);
        (to.r.valid, to.r.id, to.r.resp) = (true, id as u8, *resp);
        burst.sent += 1;
        to.r.last = burst.sent == burst.beats;
        if to.r.last {
            self.reads[id].pop_front();
        }
    }

    fn next_read(&mut self) -> Option<usize> {
        let begun = self.reads[self.reading].front();
        if begun.is_some_and(|burst| burst.sent > 0) {
            return Some(self.reading);
        }
        let turns = (1..=IDS).map(|turn| (self.reading + turn) % IDS);
        for id in turns {
            let Some(burst) = self.reads[id].front_mut() else {
                continue;
            };
            if burst.answer.is_none()
                && let Some(answer) = self.memory.take(burst.ticket)
            {
                let (skip, bytes) = (burst.skip, burst.beats * self.lanes);
                let resp = if answer.is_ok() { OKAY } else { DECERR };
                self.stats.faults += u64::from(answer.is_err());
                let mut data = vec![0; bytes];
                if let Ok(read) = answer {
                    data[skip..].copy_from_slice(&read);
                }
                burst.answer = Some((data, resp));
            }
            if burst.answer.is_some() {
                return Some(id);
            }
        }
        None
    }

    fn step_writes(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster) {
        if from.aw.valid && to.awready {
            check::address(now, "m_axi AW", &from.aw, self.lanes, &mut self.log);
            let skip = self.skip(&from.aw) as u64;
            self.filling.push_back(Filling {
                id: usize::from(from.aw.id) % IDS,
                base: from.aw.addr - skip,
                beats: from.aw.beats(),
                data: Vec::new(),
                strobes: Vec::new(),
            });
            self.stats.write_bursts += 1;
            self.stats.peak_writes = self.stats.peak_writes.max(self.outstanding_writes());
        }
        if from.w.valid && to.wready {
            self.take_data(now, &from.w);
        }
        if to.b.valid {
            if from.bready {
                to.b.valid = false;
            } else {
                self.stats.b_waits += 1;
            }
        }
        if !to.b.valid {
            self.respond(to);
        }
        to.awready = self.outstanding_writes() < MAX_BURSTS;
        // Data waits for its address, as AXI lets a slave have it.
        to.wready = !self.filling.is_empty();
    }

    fn take_data(&mut self, now: u64, w: &WriteData) {
        self.stats.write_beats += 1;
        let Some(burst) = self.filling.front_mut() else {
            return;
        };
        burst.data.extend_from_slice(&w.data[..self.lanes]);
        burst.strobes.push(w.strb);
        let is_last = burst.strobes.len() == burst.beats;
        if w.last != is_last {
            let (beat, beats) = (burst.strobes.len(), burst.beats);
            let what = format!("WLAST is {} at beat {beat} of {beats}", u8::from(w.last));
            self.log.add(now, "m_axi W", what);
        }
        if is_last && let Some(burst) = self.filling.pop_front() {
            self.send(&burst);
        }
    }

    /// Starts an access for every run of strobed bytes.
    fn send(&mut self, burst: &Filling) {
        let strobed =
            |byte: usize| burst.strobes[byte / self.lanes] >> (byte % self.lanes) & 1 == 1;
        let (mut tickets, mut start) = (Vec::new(), None);
        for byte in 0..=burst.data.len() {
            let on = byte < burst.data.len() && strobed(byte);
            match start {
                None if on => start = Some(byte),
                Some(from) if !on => {
                    let data = &burst.data[from..byte];
                    let addr = burst.base.wrapping_add(from as u64);
                    tickets.push(self.memory.start_write(addr, data));
                    self.stats.written_bytes += data.len() as u64;
                    start = None;
                }
                _ => {}
            }
        }
        let resp = OKAY;
        self.writes[burst.id].push_back(Sent { tickets, resp });
    }

    fn respond(&mut self, to: &mut ToMaster) {
        for (id, queue) in self.writes.iter_mut().enumerate() {
            let Some(burst) = queue.front_mut() else {
                continue;
            };
            let memory = &self.memory;
            let (resp, stats) = (&mut burst.resp, &mut self.stats);
            burst.tickets.retain(|&ticket| match memory.take(ticket) {
                None => true,
                Some(answer) => {
                    if answer.is_err() {
                        *resp = DECERR;
                        stats.faults += 1;
                    }
                    false
                }
            });
            if burst.tickets.is_empty() {
                (to.b.valid, to.b.id, to.b.resp) = (true, id as u8, burst.resp);
                queue.pop_front();
                return;
            }
        }
    }
}

impl Slave for RemotePort {
    fn step(&mut self, now: u64, from: &FromMaster, to: &mut ToMaster) {
        let log = &mut self.log;
        self.aw.check(now, from.aw.valid, to.awready, &from.aw, log);
        self.w.check(now, from.w.valid, to.wready, &from.w, log);
        self.ar.check(now, from.ar.valid, to.arready, &from.ar, log);
        self.step_writes(now, from, to);
        self.step_reads(now, from, to);
    }

    fn reset(&mut self) {
        for read in self.reads.iter_mut().flat_map(|queue| queue.drain(..)) {
            if read.answer.is_none() {
                self.memory.discard(read.ticket);
            }
        }
        let writes = self.writes.iter_mut().flat_map(|queue| queue.drain(..));
        for ticket in writes.flat_map(|write| write.tickets) {
            self.memory.discard(ticket);
        }
        self.filling.clear();
        self.aw.reset();
        self.w.reset();
        self.ar.reset();
    }

    fn idle(&self) -> bool {
        self.outstanding_reads() == 0 && self.outstanding_writes() == 0
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn violations(&self) -> &Violations {
        &self.log
    }

    /// A refused access is no fault of the run here: the host may name what it likes.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }
}
