//! `key_work`: changes of keys one at a time, and nothing is done before what a key let through is over.

use ferroce_hdl::transport::requester::key_work::KeyWork;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

const Q: usize = 4;

struct Setup {
    bench: Bench,
    s: StreamSource,
    m: StreamSink,
    /// Cycles until the table answers.
    answer: Option<u32>,
    /// Keys that the table was asked for.
    asked: Vec<u64>,
}

impl Setup {
    fn new() -> Self {
        Self::of::<Q>()
    }

    fn of<const N: usize>() -> Self {
        let bench = Bench::of(KeyWork::<N>::default).unwrap();
        let dut = bench.dut();
        let mut setup = Self {
            s: StreamSource::new(dut, "s", Pauses::NONE).unwrap(),
            m: StreamSink::new(dut, "m", Pauses::NONE).unwrap(),
            answer: None,
            asked: Vec::new(),
            bench,
        };
        for name in [
            "change_done",
            "change_ok",
            "placed.busy",
            "placed.moved",
            "placed.level",
            "payload_issued",
            "payload_done",
            "accesses.reads_begun",
            "accesses.reads_over",
            "accesses.atomics_begun",
            "accesses.atomics_over",
        ] {
            setup.set(name, 0);
        }
        let Setup { bench, s, m, .. } = &mut setup;
        bench.reset(&mut [s, m]);
        setup
    }

    fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).unwrap();
        self.bench.dut_mut().set(input, value);
    }

    fn get(&self, name: &str) -> u64 {
        let dut = self.bench.dut();
        dut.get(dut.output(name).unwrap())
    }

    fn post(&mut self, qpn: u64) {
        let item = self.s.item().with("done.qpn", qpn);
        self.s.push(item.with("change.key", 0x100 + qpn));
    }

    /// Keys that end with 3 are refused.
    fn step(&mut self) {
        let due = self.answer == Some(0);
        self.answer = self.answer.filter(|_| !due).map(|left| left - 1);
        self.set("change_done", due.into());
        let refused = self.asked.last().is_some_and(|key| key % 4 == 3);
        self.set("change_ok", u64::from(!refused));
        self.bench.dut_mut().settle();
        if self.get("change_valid") == 1 {
            assert!(self.answer.is_none(), "one at a time");
            self.answer = Some(6);
            self.asked.push(self.get("change_request.key"));
        }
        let Setup { bench, s, m, .. } = self;
        let mut agents: [&mut dyn Agent; 2] = [s, m];
        bench.step(&mut agents).unwrap_or_else(|e| panic!("{e}"));
    }

    fn run(&mut self, cycles: usize) {
        (0..cycles).for_each(|_| self.step());
    }

    /// Queue pairs that are done, and whether they were refused.
    fn done(&mut self) -> Vec<(u64, u64)> {
        let items = std::iter::from_fn(|| self.m.pop());
        items
            .map(|(_, item)| (item.get("qpn"), item.get("refused")))
            .collect()
    }

    fn stays(&mut self) {
        self.run(300);
        assert_eq!(self.done(), [], "too early");
        assert_eq!(self.get("activity") & 1, 1, "it is under way");
    }
}

#[test]
fn requests_are_done_in_order() {
    let mut setup = Setup::new();
    (0..1 << Q).for_each(|qpn| setup.post(qpn));
    setup.run(400);
    let expected: Vec<_> = (0..16).map(|qpn| (qpn, u64::from(qpn % 4 == 3))).collect();
    assert_eq!(setup.done(), expected);
    assert_eq!(setup.asked, (0x100..0x110).collect::<Vec<_>>());
    assert_eq!(setup.get("activity"), 0);
    setup.post(5);
    setup.run(60);
    assert_eq!(setup.done(), [(5, 0)], "nothing to wait for");
}

#[test]
fn what_was_let_through_is_waited_for() {
    let mut setup = Setup::new();
    // two placements that were checked: others come behind them
    setup.set("placed.busy", 1);
    setup.set("placed.level", 2);
    setup.post(1);
    setup.stays();
    setup.set("placed.level", 5);
    for _ in 0..2 {
        assert_eq!(setup.done(), []);
        setup.set("placed.moved", 1);
        setup.set("payload_issued", 0xffff);
        setup.step();
        setup.set("placed.moved", 0);
        setup.stays();
    }
    // their writes, and not those behind them
    setup.set("payload_issued", 3);
    setup.set("payload_done", 0xfffe);
    setup.stays();
    setup.set("payload_done", 0xffff);
    setup.run(60);
    assert_eq!(setup.done(), [(1, 0)]);
}

/// A placement that was checked before the key changed is counted some cycles later.
#[test]
fn what_was_checked_just_before_is_waited_for() {
    for cycles in [0, 4, 8, 12] {
        let mut setup = Setup::new();
        setup.post(1);
        while setup.asked.is_empty() || setup.answer.is_some() {
            setup.step();
        }
        setup.run(cycles);
        setup.set("placed.busy", 1);
        setup.set("placed.level", 1);
        setup.stays();
        setup.set("placed.moved", 1);
        setup.step();
        setup.set("placed", 0);
        setup.run(60);
        assert_eq!(setup.done(), [(1, 0)], "{cycles} cycles later");
    }
}

#[test]
fn reads_and_atomics_of_peers_are_waited_for() {
    for kind in ["reads", "atomics"] {
        let mut setup = Setup::new();
        setup.set(&format!("accesses.{kind}_begun"), 2);
        setup.post(1);
        setup.run(100);
        setup.post(2);
        setup.set(&format!("accesses.{kind}_begun"), 4);
        setup.set(&format!("accesses.{kind}_over"), 1);
        setup.stays();
        setup.set(&format!("accesses.{kind}_over"), 2);
        setup.run(100);
        assert_eq!(setup.done(), [(1, 0)], "{kind}");
        setup.set(&format!("accesses.{kind}_over"), 4);
        setup.run(60);
        assert_eq!(setup.done(), [(2, 0)], "{kind}");
    }
}

#[test]
fn many_that_wait_all_count() {
    let mut setup = Setup::of::<11>();
    setup.set("placed.busy", 1);
    setup.set("placed.level", 1);
    let mut posted = 0;
    for count in [500, 1024, 2047] {
        (posted..count).for_each(|qpn| setup.post(qpn));
        posted = count;
        setup.run(20_000);
        assert_eq!(setup.asked.len() as u64, count);
        assert_eq!(setup.get("activity.level"), count);
    }
}
