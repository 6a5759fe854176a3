//! The writer with everything at its ports; every EQE and every interrupt is checked as it arrives.

use std::collections::VecDeque;

use ferroce_hdl::queue::eq_write::EqWrite;
use ferroce_proto::abi::eq::{EqCtx, Eqe};
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::{Delay, Pauses};
use ferroce_sim::verilator::{Input, Output};

use super::irq::Irq;
use super::record::{Recorder, Records};

/// Log2 of the event queues of the block under test.
pub(crate) const E: usize = 3;
/// Cycles from a landing to a visit that may not have seen it.
const BLIND: u64 = 8;

/// An event queue as the host sees it.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub(crate) ctx: EqCtx,
    pub(crate) open: bool,
    pub(crate) written: u32,
    pub(crate) consumed: u32,
    /// Events pushed and not seen.
    pub(crate) expected: VecDeque<Eqe>,
    /// Cycles in which EQEs landed, but for those long before the last interrupt.
    landings: VecDeque<u64>,
    /// Cycles in which interrupts were asked for, and taken.
    pub(crate) raised: Vec<u64>,
    taken: Option<u64>,
}

impl Ring {
    pub(crate) fn size(&self) -> u32 {
        1 << self.ctx.log_size
    }

    /// Whether EQEs landed that no interrupt reported.
    fn is_unreported(&self) -> bool {
        let last = self.landings.back();
        last.is_some_and(|last| self.taken.is_none_or(|taken| taken < *last))
    }
}

/// A block of 2^E queues and its surroundings.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) rings: Vec<Ring>,
    records: Records,
    pub(crate) recorder: Recorder,
    pub(crate) events: StreamSource,
    commands: StreamSource,
    write: StreamSink,
    beats: StreamSink,
    done_port: Input,
    busy: Output,
    pub(crate) irq: Irq,
    /// Cycles from the last beat of a burst to its response.
    pub(crate) response: Delay,
    lanes: u64,
    pushed: u16,
    bursts: VecDeque<u64>,
    bytes: Vec<(u64, u8)>,
    ended: VecDeque<Vec<(u64, u8)>>,
    /// Bursts written: queue and cycle of their response.
    flying: VecDeque<(usize, u64)>,
    done: u64,
    /// EQEs in the order of their arrival: queue, object, cycle of the burst.
    pub(crate) seen: Vec<(u8, u16, u64)>,
    /// Consumer records read.
    pub(crate) reads: u64,
    /// Interrupts that were taken: vector, cycle.
    pub(crate) interrupts: Vec<(u16, u64)>,
}

impl Rig {
    /// After reset and sweep; every queue is closed. `idle` are the pauses of the sources, `back` those of the sinks.
    pub(crate) fn new<const W: usize, const K: usize>(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(EqWrite::<W, K, E>::default).expect("the block builds");
        let dut = bench.dut();
        let records = Records::default();
        let beats = ["data", "strb", "last"];
        let mut rig = Self {
            rings: (0..1 << E).map(|_| Ring::default()).collect(),
            recorder: Recorder::new(dut, records.clone()),
            records,
            events: StreamSource::new(dut, "events", idle).expect("a stream in"),
            commands: StreamSource::new(dut, "command", idle).expect("a stream in"),
            write: StreamSink::new(dut, "write", back).expect("a stream out"),
            beats: StreamSink::with_ports(dut, "beats", &beats, ["valid", "ready"], back)
                .expect("a stream out"),
            done_port: dut.input("done").expect("a port"),
            busy: dut.output("activity.busy").expect("a port"),
            irq: Irq::new(dut),
            response: Delay::between(5, 60),
            lanes: K as u64,
            pushed: 0,
            bursts: VecDeque::new(),
            bytes: Vec::new(),
            ended: VecDeque::new(),
            flying: VecDeque::new(),
            done: 0,
            seen: Vec::new(),
            reads: 0,
            interrupts: Vec::new(),
            bench,
        };
        rig.bench.reset(&mut [
            &mut rig.events,
            &mut rig.commands,
            &mut rig.write,
            &mut rig.beats,
            &mut rig.recorder,
        ]);
        (0..20).for_each(|_| rig.step());
        rig
    }

    /// Opens a queue of 2^`log_size` entries, and forgets what was there.
    pub(crate) fn open(&mut self, eqn: u8, log_size: u8, moderation: u16) {
        let base = 0x7f00_0000_0000 + (u64::from(eqn) << 32);
        let rng = self.bench.rng();
        let ctx = EqCtx {
            base: base + 64 * rng.u64(..1 << 20),
            consumer: base + (1 << 31) + 4 * rng.u64(..1 << 20),
            log_size,
            vector: u16::from(eqn) << 8 | rng.u16(..256),
            moderation,
        };
        self.command(eqn, Some(ctx));
    }

    /// Closes a queue; its record is gone.
    pub(crate) fn close(&mut self, eqn: u8) {
        self.command(eqn, None);
    }

    /// A command, and steps until it is carried out. Events that are not written by then are forgotten.
    #[track_caller]
    fn command(&mut self, eqn: u8, image: Option<EqCtx>) {
        self.quiesce();
        let ctx = image.unwrap_or_default();
        if image.is_some() {
            self.records.borrow_mut().insert(ctx.consumer, 0);
        }
        let item = self.commands.item();
        self.commands.push(
            item.with("eqn", eqn.into())
                .with("open", image.is_some().into())
                .with("image.base", ctx.base)
                .with("image.consumer", ctx.consumer)
                .with("image.log_size", ctx.log_size.into())
                .with("image.vector", ctx.vector.into())
                .with("image.moderation", ctx.moderation.into()),
        );
        let before = self.commands.sent();
        while self.commands.sent() == before {
            self.step();
        }
        // what was written before is still the old queue's
        self.quiesce();
        let ring = &mut self.rings[usize::from(eqn)];
        // nothing is read any more of what the queue was
        if ring.open {
            self.records.borrow_mut().remove(&ring.ctx.consumer);
        }
        *ring = Ring {
            ctx,
            open: image.is_some(),
            ..Ring::default()
        };
    }

    /// Runs until all events are taken and nothing is under way but what waits for the host.
    #[track_caller]
    pub(crate) fn quiesce(&mut self) {
        let mut quiet = 0;
        for _ in 0..50_000 {
            let busy = self.bench.dut().is_set(self.busy) || self.events_waiting() > 0;
            quiet = if busy || !self.flying.is_empty() {
                0
            } else {
                quiet + 1
            };
            if quiet == 20 {
                return;
            }
            self.step();
        }
        panic!("the block stays busy");
    }

    /// Events not taken.
    pub(crate) fn events_waiting(&self) -> u64 {
        u64::from(self.pushed) - self.events.sent()
    }

    /// Queues an event; its number.
    pub(crate) fn push(&mut self, eqn: u8) -> u16 {
        let object = self.pushed;
        self.pushed = self.pushed.checked_add(1).expect("numbers are unique");
        let rng = self.bench.rng();
        let eqe = Eqe {
            event: rng.u8(..),
            detail: rng.u8(..),
            object: object.into(),
            ..Eqe::default()
        };
        self.events.push(
            self.events
                .item()
                .with("eqn", eqn.into())
                .with("event", eqe.event.into())
                .with("detail", eqe.detail.into())
                .with("object", object.into()),
        );
        let ring = &mut self.rings[usize::from(eqn)];
        if ring.open {
            ring.expected.push_back(eqe);
        }
        object
    }

    /// The host takes `n` entries and says so.
    pub(crate) fn consume(&mut self, eqn: u8, n: u32) {
        let ring = &mut self.rings[usize::from(eqn)];
        assert!(ring.written - ring.consumed >= n, "what is there is taken");
        ring.consumed += n;
        let record = (ring.ctx.consumer, ring.consumed);
        self.records.borrow_mut().insert(record.0, record.1);
    }

    /// The host takes all that is there.
    pub(crate) fn consume_all(&mut self) {
        for eqn in 0..1 << E {
            let ring = &self.rings[usize::from(eqn)];
            if ring.open {
                self.consume(eqn, ring.written - ring.consumed);
            }
        }
    }

    #[track_caller]
    pub(crate) fn step(&mut self) {
        let cycle = self.bench.cycle();
        while let Some(&(eqn, due)) = self.flying.front()
            && due <= cycle
        {
            self.flying.pop_front();
            self.done += 1;
            self.rings[eqn].landings.push_back(cycle);
        }
        let done = self.done & 0xffff;
        self.bench.dut_mut().set(self.done_port, done);
        let result = self.bench.step(&mut [
            &mut self.events,
            &mut self.commands,
            &mut self.write,
            &mut self.beats,
            &mut self.recorder,
            &mut self.irq,
        ]);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        while let Some(look) = self.recorder.looks.pop_front() {
            let ring = self.rings.iter().find(|r| r.ctx.consumer == look.addr);
            let taken = ring.map_or(u32::MAX, |ring| ring.consumed);
            assert!(look.asked < cycle && look.value.is_none_or(|value| value <= taken));
            self.reads += 1;
        }
        if let Err(problem) = self.compare(cycle) {
            panic!("{}", self.bench.failure(problem));
        }
    }

    fn compare(&mut self, cycle: u64) -> Result<(), String> {
        while let Some((_, item)) = self.write.pop() {
            let beats = item.get("len") + 1;
            if beats != (16 / self.lanes).max(1) {
                return Err(format!("a burst of {beats} beats"));
            }
            self.bursts.push_back(item.get("addr"));
        }
        while let Some((_, item)) = self.beats.pop() {
            let strb = item.get("strb");
            let at = self.bytes.len() as u64 / self.lanes * self.lanes;
            let words = item.words("data");
            for lane in (0..self.lanes).filter(|lane| strb >> lane & 1 == 1) {
                let byte = words[lane as usize / 4].to_le_bytes()[lane as usize % 4];
                self.bytes.push((at + lane, byte));
            }
            if item.get("last") == 1 {
                self.ended.push_back(std::mem::take(&mut self.bytes));
            }
        }
        while !self.bursts.is_empty() && !self.ended.is_empty() {
            let addr = self.bursts.pop_front().expect("looked at");
            let bytes = self.ended.pop_front().expect("looked at");
            self.written(addr, cycle, &bytes)?;
        }
        self.interrupt(cycle)
    }

    fn written(&mut self, addr: u64, cycle: u64, bytes: &[(u64, u8)]) -> Result<(), String> {
        let first = addr % self.lanes;
        let places = bytes.iter().map(|(place, _)| *place);
        if !places.eq(first..first + 16) {
            return Err(format!("bytes of the burst at {addr:#x}: {bytes:?}"));
        }
        let bytes: Vec<u8> = bytes.iter().map(|(_, byte)| *byte).collect();
        let eqe = Eqe::parse(bytes.first_chunk().expect("16 bytes"));
        let eqn = (addr >> 32 & 0xff) as usize;
        let ring = &mut self.rings[eqn];
        let slot = ring.written & (ring.size() - 1);
        let expected = ring.expected.pop_front().map(|next| Eqe {
            owner: ring.written >> ring.ctx.log_size & 1 == 0,
            ..next
        });
        let at = ring.ctx.base + u64::from(slot) * Eqe::BYTES as u64;
        if !ring.open || Some(eqe) != expected || at != addr {
            return Err(format!(
                "{eqe:?} at {addr:#x}, expected {expected:?} at {at:#x}"
            ));
        }
        ring.written += 1;
        if ring.written - ring.consumed > ring.size() {
            return Err(format!("queue {eqn} wrote over an entry"));
        }
        self.seen.push((eqn as u8, eqe.object as u16, cycle));
        let after = self.flying.back().map_or(0, |(_, due)| *due);
        let due = cycle + self.response.draw(self.bench.rng());
        self.flying.push_back((eqn, due.max(after)));
        Ok(())
    }

    fn interrupt(&mut self, cycle: u64) -> Result<(), String> {
        if let Some(vector) = self.irq.raised {
            let moderation = |ring: &Ring| u64::from(ring.ctx.moderation) * 256;
            let ring = self.rings.iter_mut().find(|r| r.ctx.vector == vector);
            let ring = ring.filter(|ring| ring.open);
            let Some(ring) = ring else {
                return Err(format!("interrupt {vector:#x} is of no queue"));
            };
            let before = ring.raised.last().copied();
            let from = before.map_or(0, |before| before.saturating_sub(BLIND));
            if !ring.landings.iter().any(|landed| *landed >= from) {
                return Err(format!(
                    "interrupt {vector:#x} of nothing new: {:?}, {:?}",
                    ring.landings, ring.raised
                ));
            }
            if before.is_some_and(|before| cycle - before < moderation(ring)) {
                return Err(format!(
                    "interrupt {vector:#x} too early: {:?}",
                    ring.raised
                ));
            }
            ring.raised.push(cycle);
        }
        if let Some(vector) = self.irq.taken {
            self.interrupts.push((vector, cycle));
            if let Some(ring) = self.rings.iter_mut().find(|r| r.ctx.vector == vector) {
                ring.taken = Some(cycle);
                // the latest landing stays: a lost interrupt shows by it
                while ring.landings.len() > 1 && ring.landings[0] + 2 * BLIND < cycle {
                    ring.landings.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Runs until every event is in its ring and reported; the host takes all that is reported.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        for _ in 0..400_000 {
            let waits = self
                .rings
                .iter()
                .any(|r| !r.expected.is_empty() || r.is_unreported());
            if !waits && self.events_waiting() == 0 && self.flying.is_empty() {
                self.quiesce();
                return;
            }
            self.consume_all();
            self.step();
        }
        let left: Vec<_> = self
            .rings
            .iter()
            .map(|r| (r.written, r.expected.len(), r.is_unreported()))
            .collect();
        panic!("stuck: {left:?}");
    }
}
