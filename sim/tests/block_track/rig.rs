//! `track` with its neighbours and the reference.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::requester::track::Track;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

use super::reference::{Issue, Outcome, QueuePair, Response};

/// Log2 of the queue pairs.
const Q: usize = 4;
pub(crate) const QPS: usize = 1 << Q;

/// What a send queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Fails,
    Resets,
    Starts,
}

/// Pulses of the send queues.
pub(crate) struct Control {
    failed: Input,
    reset: Input,
    starts: Input,
    qpn: Input,
    queue: VecDeque<(u16, Change)>,
    gaps: bool,
}

impl Agent for Control {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let next = if self.gaps && rng.bool() {
            None
        } else {
            self.queue.pop_front()
        };
        let change = next.map(|(_, change)| change);
        let is = |which| change == Some(which);
        dut.set(self.failed, is(Change::Fails).into());
        dut.set(
            self.reset,
            (is(Change::Resets) || is(Change::Starts)).into(),
        );
        dut.set(self.starts, is(Change::Starts).into());
        let qpn = next.map_or(rng.u16(..), |(qpn, _)| qpn);
        dut.set(self.qpn, qpn.into());
    }

    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "send queues are to fail".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.failed, 0);
        dut.set(self.reset, 0);
        dut.set(self.starts, 0);
    }
}

/// Records when the block is busy.
struct Watch {
    busy: Output,
    cycles: Vec<u64>,
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if dut.is_set(self.busy) {
            self.cycles.push(cycle);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

pub(crate) struct Rig {
    pub(crate) bench: Bench,
    responses: StreamSource,
    issues: StreamSource,
    control: Control,
    places: StreamSink,
    reads: StreamSink,
    watch: Watch,
    pub(crate) qps: Vec<QueuePair>,
    /// Placements of responses to come, in the order of the packets.
    expected: VecDeque<Item>,
    /// `closed` to come, by queue pair.
    closing: Vec<usize>,
    expected_reads: VecDeque<Item>,
    /// Cycles in which placements came.
    pub(crate) cycles: Vec<u64>,
}

impl Rig {
    pub(crate) fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(Track::<Q>::default).unwrap();
        let dut = bench.dut();
        let mut rig = Self {
            responses: StreamSource::new(dut, "s", idle).unwrap(),
            issues: StreamSource::new(dut, "issue", idle).unwrap(),
            control: Control {
                failed: dut.input("failed").unwrap(),
                reset: dut.input("reset").unwrap(),
                starts: dut.input("starts").unwrap(),
                qpn: dut.input("control_qpn").unwrap(),
                queue: VecDeque::new(),
                gaps: idle != Pauses::NONE,
            },
            places: StreamSink::new(dut, "m", back).unwrap(),
            reads: StreamSink::new(dut, "reads", back).unwrap(),
            watch: Watch {
                busy: dut.output("activity.busy").unwrap(),
                cycles: vec![],
            },
            qps: (0..QPS).map(|_| QueuePair::default()).collect(),
            expected: VecDeque::new(),
            closing: vec![0; QPS],
            expected_reads: VecDeque::new(),
            cycles: vec![],
            bench,
        };
        let dut = rig.bench.dut_mut();
        let we = dut.input("image_we").unwrap();
        dut.set(we, 0);
        rig.with(|bench, agents| {
            bench.reset(agents);
            bench.run(agents, 1 << Q).unwrap();
        });
        let ready = rig.bench.dut().output("ready").unwrap();
        rig.step();
        assert!(rig.bench.dut().is_set(ready), "swept in 2^{Q} cycles");
        for qpn in 0..QPS {
            let rng = rig.bench.rng();
            let ctx = SqCtx {
                mtu: rng.u8(1..=5),
                sq_log: rng.u8(..=15),
                pd: rng.u32(..1 << 24),
                sq_base: rng.u64(..1 << 58) << 6,
                ..SqCtx::default()
            };
            rig.image(qpn, ctx);
        }
        rig
    }

    pub(crate) fn image(&mut self, qpn: usize, ctx: SqCtx) {
        self.qps[qpn].ctx = ctx;
        let dut = self.bench.dut_mut();
        let mut set = |name: &str, value: u64| dut.set(dut.input(name).unwrap(), value);
        set("image_we", 1);
        set("image_qpn", qpn as u64);
        set("image.mtu", ctx.mtu.into());
        set("image.sq_log", ctx.sq_log.into());
        set("image.pd", ctx.pd.into());
        set("image.sq_base", ctx.sq_base);
        self.step();
        let dut = self.bench.dut_mut();
        dut.set(dut.input("image_we").unwrap(), 0);
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        act(
            &mut self.bench,
            &mut [
                &mut self.responses,
                &mut self.issues,
                &mut self.control,
                &mut self.places,
                &mut self.reads,
                &mut self.watch,
            ],
        )
    }

    /// Cycles since the last call in which the block was busy.
    pub(crate) fn busy_cycles(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.watch.cycles)
    }

    pub(crate) fn issue(&mut self, qpn: usize, issue: Issue) {
        let fields = [
            ("qpn", qpn as u64),
            ("psn", issue.psn.into()),
            ("packets", issue.packets.into()),
            ("atomic", issue.atomic.into()),
            ("length", issue.length.into()),
            ("index", issue.index.into()),
            ("slots", issue.slots.into()),
        ];
        self.issues.push(filled(self.issues.item(), &fields));
        self.qps[qpn].issue(issue);
    }

    /// The send queue fails, is reset, or starts afresh.
    pub(crate) fn control(&mut self, qpn: usize, change: Change) {
        self.control.queue.push_back((qpn as u16, change));
        self.qps[qpn].close(change != Change::Starts);
        if change == Change::Fails {
            self.closing[qpn] += 1;
        }
    }

    pub(crate) fn respond(&mut self, qpn: usize, r: Response) -> Outcome {
        let fields = [
            ("qpn", qpn as u64),
            ("psn", r.psn.into()),
            ("syndrome", r.syndrome.into()),
            ("read", r.read.into()),
            ("atomic", r.atomic.into()),
            ("last", r.last.into()),
            ("plen", r.plen.into()),
            ("lane", r.lane.into()),
            ("beats", r.beats.into()),
        ];
        self.responses.push(filled(self.responses.item(), &fields));
        let outcome = self.qps[qpn].respond(&r);
        if outcome.answer || r.beats > 0 {
            let kind = if outcome.read.is_some() { 3 } else { 0 };
            let fields = [
                ("qpn", qpn as u64),
                ("kind", kind),
                ("pd", self.qps[qpn].ctx.pd.into()),
                ("offset", outcome.data.unwrap_or(0).into()),
                ("plen", r.plen.into()),
                ("lane", r.lane.into()),
                ("beats", r.beats.into()),
                ("needs.wqe", outcome.read.is_some().into()),
                ("needs.beats", (r.beats > 0).into()),
                ("psn", r.psn.into()),
                ("syndrome", r.syndrome.into()),
                ("msn", outcome.implied.unwrap_or(0).into()),
                ("status", outcome.status.into()),
                ("answer", outcome.answer.into()),
                ("implied", outcome.implied.is_some().into()),
                ("data", outcome.is_data.into()),
            ];
            self.expected.push_back(filled(self.places.item(), &fields));
        }
        if let Some(read) = outcome.read {
            let fields = [
                ("addr", read.addr),
                ("slots", read.slots),
                ("head", read.head),
                ("wraps", (read.head < read.slots).into()),
                ("base", read.base),
                ("list", 1),
            ];
            self.expected_reads
                .push_back(filled(self.reads.item(), &fields));
        }
        outcome
    }

    /// A cycle; what comes out is compared. In a closed queue pair only the beats count.
    pub(crate) fn step(&mut self) {
        self.with(|bench, agents| bench.step(agents))
            .unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((cycle, item)) = self.places.pop() {
            self.cycles.push(cycle);
            let qpn = item.get("qpn") as usize;
            if item.get("closed") == 1 {
                assert!(self.closing[qpn] > 0, "{item:?} was not asked for");
                self.closing[qpn] -= 1;
                let seen = ["kind", "beats", "answer", "data", "implied", "status"];
                assert_eq!(seen.map(|f| item.get(f)), [0, 0, 1, 0, 0, 0]);
                continue;
            }
            let expected = self
                .expected
                .pop_front()
                .unwrap_or_else(|| panic!("{}", self.bench.failure(format!("{item:?}"))));
            if expected.get("answer") == 0 {
                let seen = ["qpn", "kind", "beats", "answer"];
                assert_eq!(
                    seen.map(|f| item.get(f)),
                    seen.map(|f| expected.get(f)),
                    "{item:?}"
                );
                continue;
            }
            assert!(
                item == expected,
                "{}",
                self.bench
                    .failure(format!("\n got {item:?}\nwant {expected:?}"))
            );
        }
        while let Some((_, item)) = self.reads.pop() {
            assert_eq!(Some(item), self.expected_reads.pop_front(), "WQE");
        }
    }

    /// Runs until all is done and the pipeline is empty.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200_000 {
            let waits = self.responses.pending().is_some()
                || self.issues.pending().is_some()
                || self.control.pending().is_some()
                || !self.expected.is_empty()
                || !self.expected_reads.is_empty()
                || self.closing.iter().any(|&n| n > 0);
            if !waits {
                break;
            }
            self.step();
        }
        (0..15).for_each(|_| self.step());
        assert!(self.expected.is_empty(), "{:?} missing", self.expected[0]);
        assert!(self.expected_reads.is_empty());
        assert_eq!(self.closing, vec![0; QPS]);
    }
}

fn filled(item: Item, fields: &[(&str, u64)]) -> Item {
    fields
        .iter()
        .fold(item, |item, &(field, value)| item.with(field, value))
}
