//! Whose payload was refused: marks, reports, and that they are there before a completion can ask.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::memory::write_faults::WriteFaults;
use ferroce_sim::bench::{Agent, Bench, StreamSink};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Output};

const Q: usize = 4;
/// Cycles from a response to its mark.
const LATENCY: u64 = 4;

/// A placement: queue pair, READ data or not, count of bursts at its end.
#[derive(Clone, Copy, Debug)]
struct Owner {
    qpn: u64,
    response: bool,
    end: u16,
}

/// Whether `faulted` says of a cycle that a report left.
struct Moved {
    output: Output,
    now: bool,
}

impl Agent for Moved {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        self.now = dut.is_set(self.output);
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

struct Faults {
    bench: Bench,
    failed: StreamSink,
    moved: Moved,
    done: u16,
    /// Bursts that have no response.
    open: VecDeque<u16>,
    owners: VecDeque<Owner>,
    spoiled: bool,
    /// Marks by queue pair and side, and the cycle from which they show.
    marks: BTreeMap<(u64, bool), (u16, u64)>,
    reports: VecDeque<u64>,
}

impl Faults {
    fn new() -> Self {
        let bench = Bench::of(WriteFaults::<Q>::default).expect("the block builds");
        let failed = StreamSink::new(bench.dut(), "failed", Pauses::new(0.5, 4)).unwrap();
        let output = bench.dut().output("faulted.moved").unwrap();
        let moved = Moved { output, now: false };
        let mut faults = Self {
            bench,
            failed,
            moved,
            done: 0xfff0,
            open: VecDeque::new(),
            owners: VecDeque::new(),
            spoiled: false,
            marks: BTreeMap::new(),
            reports: VecDeque::new(),
        };
        for name in [
            "owner",
            "starts_recv",
            "starts_send",
            "recv_qpn",
            "send_qpn",
            "look",
        ] {
            faults.set(name, 0);
        }
        faults.set("done", 0);
        faults.set("refused", 0);
        faults.bench.reset(&mut [&mut faults.failed]);
        // counts near their end, so that they wrap: an even one, as the one before was
        faults.set("done", faults.done.into());
        (0..40).for_each(|_| faults.step());
        faults
    }

    fn set(&mut self, name: &str, value: u64) {
        let dut = self.bench.dut_mut();
        let input = dut.input(name).unwrap();
        dut.set(input, value);
    }

    fn get(&self, name: &str) -> u64 {
        let dut = self.bench.dut();
        dut.get(dut.output(name).unwrap())
    }

    fn step(&mut self) {
        let before = self.failed.count();
        let result = self.bench.step(&mut [&mut self.failed, &mut self.moved]);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(self.moved.now, self.failed.count() > before, "what left");
        while let Some((_, item)) = self.failed.pop() {
            assert_eq!(Some(item.get("qpn")), self.reports.pop_front());
            assert_eq!(item.get("response"), 0);
        }
        self.set("owner", 0);
        self.set("starts_recv", 0);
        self.set("starts_send", 0);
    }

    /// A placement ends with its last burst.
    fn owner(&mut self, qpn: u64, response: bool, bursts: u16) {
        let last = self.open.back().copied().unwrap_or(self.done);
        self.open.extend((1..=bursts).map(|n| last.wrapping_add(n)));
        let end = last.wrapping_add(bursts);
        let packed = qpn | u64::from(response) << 16 | u64::from(end) << 20 | 1 << 36;
        self.set("owner", packed);
        self.owners.push_back(Owner { qpn, response, end });
    }

    /// The response to the oldest burst, in the next cycle.
    fn respond(&mut self, refused: bool) {
        self.done = self.open.pop_front().expect("a burst is open");
        self.set("done", self.done.into());
        self.set("refused", refused.into());
        self.spoiled |= refused;
        let oldest = *self.owners.front().expect("it has an owner");
        if oldest.end != self.done {
            return;
        }
        self.owners.pop_front();
        if std::mem::take(&mut self.spoiled) {
            let shows = self.bench.cycle() + LATENCY;
            let key = (oldest.qpn, oldest.response);
            if let std::collections::btree_map::Entry::Vacant(place) = self.marks.entry(key) {
                place.insert((oldest.end, shows));
                if !oldest.response {
                    self.reports.push_back(oldest.qpn);
                }
            }
        }
    }

    /// What `look` tells of a queue pair, a cycle later.
    fn marks_of(&mut self, qpn: u64) -> [Option<u16>; 2] {
        self.set("look", qpn);
        self.step();
        let side = |name: &str| {
            (self.get(&format!("marks.{name}.failed")) == 1)
                .then(|| self.get(&format!("marks.{name}.end")) as u16)
        };
        [side("recv"), side("send")]
    }

    fn check_marks(&mut self) {
        (0..10).for_each(|_| self.step());
        // those that a command waits for
        let waiting = self.reports.len() as u64;
        assert_eq!(self.get("faulted.level"), waiting);
        assert_eq!(self.get("faulted.busy"), u64::from(waiting > 0));
        for qpn in 0..1 << Q {
            let found = self.marks_of(qpn);
            let expected = [false, true].map(|r| self.marks.get(&(qpn, r)).map(|m| m.0));
            assert_eq!(found, expected, "queue pair {qpn}");
        }
    }
}

#[test]
fn each_refusal_is_that_of_its_owner() {
    let mut rng = Rng::with_seed(ferroce_sim::bench::seed());
    for chance in [0.01, 0.3, 1.0] {
        let mut faults = Faults::new();
        for round in 0..20 {
            for _ in 0..300 {
                if faults.get("room") == 1 && rng.f64() < 0.4 {
                    faults.owner(rng.u64(..1 << Q), rng.bool(), 1 + rng.u16(..3));
                }
                if !faults.open.is_empty() && rng.f64() < 0.9 {
                    // an owner is there before its last response
                    faults.step();
                    let refused = rng.f64() < chance && round % 2 == 0;
                    faults.respond(refused);
                }
                faults.step();
            }
            while !faults.open.is_empty() {
                faults.respond(false);
                faults.step();
            }
            faults.check_marks();
            // some start afresh
            for _ in 0..4 {
                let (qpn, send) = (rng.u64(..1 << Q), rng.bool());
                faults.set(if send { "send_qpn" } else { "recv_qpn" }, qpn);
                faults.set(if send { "starts_send" } else { "starts_recv" }, 1);
                faults.marks.remove(&(qpn, send));
                (0..3).for_each(|_| faults.step());
            }
            faults.check_marks();
        }
        (0..400).for_each(|_| faults.step());
        assert!(faults.reports.is_empty());
    }
}

/// 384 owners without a response: no more may come, and all of them are answered for, a response in every cycle.
#[test]
fn many_owners_wait() {
    let mut faults = Faults::new();
    let mut count = 0;
    while faults.get("room") == 1 {
        faults.owner(count % 16, false, 1);
        faults.step();
        count += 1;
    }
    assert!((384..390).contains(&count), "{count}");
    for n in 0..count {
        faults.respond(n == 200);
        faults.step();
    }
    faults.check_marks();
    assert_eq!(faults.get("room"), 1);
    assert!(faults.marks.contains_key(&(200 % 16, false)) && faults.marks.len() == 1);
}

/// A mark stays true when the count of bursts comes round.
#[test]
fn a_mark_grows_old() {
    let mut faults = Faults::new();
    faults.owner(5, true, 1);
    faults.step();
    faults.respond(true);
    let old = |faults: &mut Faults| {
        faults.marks_of(5);
        ["recv", "send"].map(|side| faults.get(&format!("marks.{side}.old")))
    };
    for bursts in 0..0x1_2000_u32 {
        faults.step();
        faults.owner(6, false, 1);
        faults.step();
        faults.respond(false);
        if bursts % 0x800 == 0 && !(0x2000..0x2020).contains(&bursts) {
            let expected = [0, u64::from(bursts >= 0x2000)];
            assert_eq!(old(&mut faults), expected, "{bursts} bursts later");
        }
    }
    faults.check_marks();
    faults.set("send_qpn", 5);
    faults.set("starts_send", 1);
    (0..4).for_each(|_| faults.step());
    assert_eq!(old(&mut faults), [0, 0]);
}

/// A mark shows in time: `judged` a cycle behind `done`, the mark 4 behind the response.
#[test]
fn a_mark_is_there_in_time() {
    let mut faults = Faults::new();
    faults.owner(5, false, 1);
    faults.step();
    let before = faults.get("judged");
    faults.set("look", 5);
    faults.respond(true);
    let start = faults.bench.cycle();
    while faults.get("marks.recv.failed") == 0 {
        faults.step();
        if faults.bench.cycle() == start + 1 {
            assert_ne!(faults.get("judged"), before, "judged");
        }
    }
    assert!(faults.bench.cycle() - start <= LATENCY);
}
