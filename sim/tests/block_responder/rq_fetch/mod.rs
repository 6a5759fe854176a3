//! WQE fetch against reads that answer late, and the numbers of WQEs of shared receive queues.

mod numbers;

use std::collections::{HashMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::queue::rq_fetch::RqFetch;
use ferroce_proto::abi::cq::NO_NUMBER;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::{Chance, Pauses};
use ferroce_sim::verilator::{Dut, Input, Output};

use super::drive::{Q, uneven};

fn mixed(index: u64) -> u32 {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Word `index` of memory, 32 bits: every 16th or so is all ones, as a number that cannot be read is.
fn word(index: u64) -> u32 {
    let word = mixed(index);
    if word.is_multiple_of(16) {
        return u32::MAX;
    }
    word
}

/// What is read as the number at an address, if it can be read.
fn number_at(addr: u64) -> Option<u16> {
    let number = (word(addr / 4) >> (8 * (addr & 2))) as u16;
    (!mixed(!addr).is_multiple_of(32)).then_some(number)
}

/// `dma_read` as its client sees it: requests answered in order, each a fixed time after it came.
struct Reader {
    addr: Output,
    len: Output,
    valid: Output,
    ready: Input,
    ready_now: bool,
    data: Input,
    last: Input,
    error: Input,
    beat_valid: Input,
    lanes: u64,
    delay: u64,
    pause: Chance,
    failure: Chance,
    /// Cycle from which a beat may come, address, last of its request, of a number.
    beats: VecDeque<(u64, u64, bool, bool)>,
    /// Slots asked for and whether a beat of them failed, in order.
    failed: VecDeque<(u64, bool)>,
    cycle: u64,
    most_waiting: usize,
    /// Address and bytes of every read.
    reads: Vec<(u64, u64)>,
}

impl Reader {
    fn new(dut: &Dut, delay: u64, pause: f64) -> Self {
        let output = |name: &str| dut.output(name).expect("a port");
        let input = |name: &str| dut.input(name).expect("a port");
        Self {
            addr: output("read_payload.addr"),
            len: output("read_payload.len"),
            valid: output("read_valid"),
            ready: input("read_ready"),
            ready_now: false,
            lanes: input("beats_data").width() as u64 / 8,
            data: input("beats_data"),
            last: input("beats_last"),
            error: input("beats_error"),
            beat_valid: input("beats_valid"),
            delay,
            pause: Chance::new(pause),
            failure: Chance::new(0.05),
            beats: VecDeque::new(),
            failed: VecDeque::new(),
            cycle: 0,
            most_waiting: 0,
            reads: vec![],
        }
    }
}

impl Agent for Reader {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = !self.pause.hit(rng);
        dut.set(self.ready, self.ready_now.into());
        let due = self.beats.front().is_some_and(|beat| beat.0 <= self.cycle);
        let beat = due && !self.pause.hit(rng);
        dut.set(self.beat_valid, beat.into());
        if !beat {
            dut.set(self.last, rng.bool().into());
            dut.set(self.error, rng.bool().into());
            return;
        }
        let (_, addr, last, is_number) = self.beats.pop_front().expect("it is due");
        let error = if is_number {
            number_at(addr).is_none()
        } else {
            self.failure.hit(rng)
        };
        let first = addr / self.lanes * (self.lanes / 4);
        let words: Vec<u32> = (0..self.lanes / 4).map(|i| word(first + i)).collect();
        dut.write(self.data, &words);
        dut.set(self.last, last.into());
        dut.set(self.error, error.into());
        match self.failed.back_mut() {
            _ if is_number => {}
            Some(slot) if slot.0 == addr / 64 && addr % 64 != 0 => slot.1 |= error,
            _ => self.failed.push_back((addr / 64, error)),
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.cycle = cycle + 1;
        if dut.is_set(self.valid) && self.ready_now {
            let (addr, len) = (dut.get(self.addr), dut.get(self.len));
            self.reads.push((addr, len));
            let beats = len.div_ceil(self.lanes);
            self.beats.extend((0..beats).map(|i| {
                let at = addr + i * self.lanes;
                (cycle + self.delay, at, i + 1 == beats, len == 2)
            }));
            self.most_waiting = self.most_waiting.max(self.beats.len());
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (!self.beats.is_empty()).then(|| format!("{} beats are due", self.beats.len()))
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.ready, 0);
        dut.set(self.beat_valid, 0);
    }
}

struct Run {
    bench: Bench,
    reads: StreamSource,
    slots: StreamSink,
    numbers: StreamSink,
    reader: Reader,
    /// Slots asked for: their number, whether it is the last one, how many there are, and whether it counts as failed.
    expected: VecDeque<(u64, bool, u64, bool)>,
    expected_numbers: VecDeque<u64>,
    /// The numbers that queue pairs took last.
    held: HashMap<u64, Option<u16>>,
}

/// A WQE of a shared receive queue.
#[derive(Clone, Copy)]
struct Shared {
    qpn: u64,
    /// Address of the number, if it is taken.
    takes: Option<u64>,
    base: u64,
    log: u64,
    stride: u64,
    list: bool,
    numbered: bool,
}

impl Run {
    fn new<const W: usize>(idle: Pauses, back: Pauses, delay: u64, pause: f64) -> Self {
        let bench = Bench::of(RqFetch::<W, Q>::default).expect("the block builds");
        let mut run = Self {
            reads: StreamSource::new(bench.dut(), "s", idle).expect("a stream in"),
            slots: StreamSink::new(bench.dut(), "m", back).expect("a stream out"),
            numbers: StreamSink::new(bench.dut(), "numbers", back).expect("a stream out"),
            reader: Reader::new(bench.dut(), delay, pause),
            expected: VecDeque::new(),
            expected_numbers: VecDeque::new(),
            held: HashMap::new(),
            bench,
        };
        let mut agents: [&mut dyn Agent; 4] = [
            &mut run.reads,
            &mut run.slots,
            &mut run.numbers,
            &mut run.reader,
        ];
        run.bench.reset(&mut agents);
        run
    }

    /// A WQE in one piece.
    fn push(&mut self, addr: u64, slots: u64) {
        self.push_wrapped(addr, slots, slots, addr);
    }

    /// A WQE whose slots from `head` on stand at `base`.
    fn push_wrapped(&mut self, addr: u64, slots: u64, head: u64, base: u64) {
        let item = self.reads.item().with("addr", addr).with("slots", slots);
        let item = item.with("head", head).with("base", base).with("list", 1);
        let item = item.with("wraps", (head < slots).into());
        self.reads.push(item.with("shared", 0).with("numbered", 0));
        let at = |i| {
            if i < head {
                addr / 64 + i
            } else {
                base / 64 + i - head
            }
        };
        self.expected
            .extend((0..slots).map(|i| (at(i), i + 1 == slots, slots, false)));
    }

    fn push_shared(&mut self, wqe: Shared) {
        let slots = 1 << wqe.stride;
        let item = self.reads.item().with("base", wqe.base).with("shared", 1);
        let item = item.with("slots", slots).with("head", slots);
        let item = item.with("wraps", 0);
        let item = item.with("qpn", wqe.qpn).with("log", wqe.log);
        let item = item.with("takes", wqe.takes.is_some().into());
        let item = item.with("addr", wqe.takes.unwrap_or(wqe.base));
        let item = item.with("list", wqe.list.into());
        self.reads.push(item.with("numbered", wqe.numbered.into()));
        let mask = (1 << wqe.log) - 1;
        if let Some(addr) = wqe.takes {
            let number = number_at(addr).map(|number| number & mask);
            self.held.insert(wqe.qpn, number);
        }
        // a flush reads nothing, and knows no shape
        let mask = if wqe.list { mask } else { u16::MAX };
        let number = self.held[&wqe.qpn].map_or(NO_NUMBER, |number| number & mask);
        if wqe.numbered {
            self.expected_numbers.push_back(number.into());
        }
        if wqe.list {
            let lost = number == NO_NUMBER;
            let place = if lost { 0 } else { u64::from(number) };
            let first = (wqe.base >> 6) + (place << wqe.stride);
            let slot = |i| (first + i, i + 1 == slots, slots, lost);
            self.expected.extend((0..slots).map(slot));
        }
    }

    fn step(&mut self) {
        let mut agents: [&mut dyn Agent; 4] = [
            &mut self.reads,
            &mut self.slots,
            &mut self.numbers,
            &mut self.reader,
        ];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((_, item)) = self.slots.pop() {
            let (slot, last, slots, lost) = self.expected.pop_front().expect("it was asked for");
            let (read, failed) = self.reader.failed.pop_front().expect("it was read");
            assert_eq!(slot, read, "slots come in order");
            assert_eq!(item.get("last"), u64::from(last));
            assert_eq!(item.get("slots"), slots);
            assert_eq!(item.get("error"), u64::from(failed | lost));
            if !failed {
                let words: Vec<u32> = (0..16).map(|i| word(slot * 16 + i)).collect();
                assert_eq!(item.words("slot"), words, "slot at {:#x}", slot * 64);
            }
        }
        while let Some((_, item)) = self.numbers.pop() {
            assert_eq!(Some(item.get("payload")), self.expected_numbers.pop_front());
        }
    }

    fn finish(&mut self) {
        for _ in 0..600_000 {
            if self.expected.is_empty() && self.expected_numbers.is_empty() {
                break;
            }
            self.step();
        }
        let missing = (self.expected.len(), self.expected_numbers.len());
        assert_eq!(missing, (0, 0), "slots and numbers missing");
    }
}

fn random<const W: usize>(idle: Pauses, back: Pauses, delay: u64, pause: f64) {
    let mut run = Run::new::<W>(idle, back, delay, pause);
    let mut rng = run.bench.rng().clone();
    for _ in 0..1000 {
        let slots = rng.u64(1..=8);
        let head = if rng.bool() {
            slots
        } else {
            rng.u64(1..=slots)
        };
        run.push_wrapped(
            rng.u64(..1 << 57) << 6,
            slots,
            head,
            rng.u64(..1 << 57) << 6,
        );
    }
    run.finish();
}

#[test]
fn random_wqes() {
    random::<512>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    random::<512>(uneven(), uneven(), 50, 0.2);
    random::<64>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    random::<64>(uneven(), uneven(), 50, 0.2);
    random::<512>(Pauses::NONE, Pauses::new(0.8, 60), 5, 0.0);
}

/// 256 slots hide a latency of 256 cycles at a slot a cycle.
#[test]
fn many_slots_are_in_flight() {
    let mut run = Run::new::<512>(Pauses::NONE, Pauses::NONE, 240, 0.0);
    for i in 0..1000 {
        run.push(i * 64, 1);
    }
    let start = run.bench.cycle();
    run.finish();
    let cycles = run.bench.cycle() - start;
    assert!(cycles < 1257, "a slot a cycle, not {cycles} for 1000");
    assert!(run.reader.most_waiting >= 239);
}

/// The ring wraps behind the first slot, before the last one, and not at all.
#[test]
fn a_wqe_that_wraps_is_two_reads() {
    let mut run = Run::new::<512>(Pauses::NONE, Pauses::NONE, 20, 0.0);
    run.push_wrapped(0xfc0, 5, 1, 0x4000);
    run.push_wrapped(0xf00, 5, 4, 0x4000);
    run.push_wrapped(0x2000, 3, 3, 0x4000);
    run.finish();
    assert_eq!(
        run.reader.reads,
        [
            (0xfc0, 64),
            (0x4000, 256),
            (0xf00, 256),
            (0x4000, 64),
            (0x2000, 192)
        ]
    );
}

#[test]
fn slots_that_are_not_taken_hold_up_reads() {
    let mut run = Run::new::<512>(Pauses::NONE, Pauses::new(1.0, 1), 1, 0.0);
    for i in 0..50 {
        run.push(i * 512, 8);
    }
    (0..300).for_each(|_| run.step());
    assert_eq!(run.reads.sent(), 32, "32 WQEs of 8 slots");
    run.slots = StreamSink::new(run.bench.dut(), "m", Pauses::NONE).expect("as before");
    run.finish();
}
