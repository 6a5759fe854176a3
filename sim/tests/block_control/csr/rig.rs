//! The registers and what is around them.

use fastrand::Rng;
use ferroce_hdl::control::csr::Csr;
use ferroce_proto::abi::regs::{self, control};
use ferroce_sim::axi::lite::Config;
use ferroce_sim::bench::{Agent, Bench, StreamSink, seed};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

use crate::bus::Bus;
use crate::{get, set};

pub(super) const Q: usize = 4;
pub(super) const C: usize = 3;
/// Values of the variants of the events' kinds.
pub(super) const SQ_DOORBELL: u64 = 1;
const RQ_DOORBELL: u64 = 2;
const SRQ_DOORBELL: u64 = 8;
/// What the build says of itself.
const BUILD: [(u32, &str, u32); 5] = [
    (regs::PARAMS, "params", 0x1234_5678),
    (regs::PARAMS2, "params2", 0x00fa_0200),
    (regs::PARAMS3, "params3", 0x0000_02a7),
    (regs::FEATURES, "features", 0x0000_00c1),
    (regs::BUILD, "build", 0xdead_beef),
];

/// Answers reads of counters: the value is the index and how many reads there were.
pub(super) struct Counters {
    index: Output,
    read: Output,
    value: Input,
    valid: Input,
    pub(super) longest: u64,
    wait: Option<u64>,
    pub(super) reads: u64,
    /// Gives no answers, as in reset.
    pub(super) no_answer: bool,
}

pub(super) fn counter(index: u64, reads: u64) -> u64 {
    (index << 56 | reads).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Counters {
    fn new(dut: &Dut) -> Self {
        Self {
            index: dut.output("stat_index").unwrap(),
            read: dut.output("stat_read").unwrap(),
            value: dut.input("stat_value").unwrap(),
            valid: dut.input("stat_valid").unwrap(),
            longest: 5,
            wait: None,
            reads: 0,
            no_answer: false,
        }
    }
}

impl Agent for Counters {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let answers = self.wait == Some(0);
        dut.set(self.valid, answers.into());
        dut.set(self.value, rng.u64(..));
        if answers {
            let index = dut.get(self.index);
            dut.set(self.value, counter(index, self.reads));
        }
        if let Some(wait @ 1..) = &mut self.wait {
            *wait -= 1;
        }
        if self.wait.is_none() && dut.is_set(self.read) && !self.no_answer {
            self.wait = Some(rng.u64(0..=self.longest));
            self.reads += 1;
        }
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if !dut.is_set(self.read) {
            self.wait = None;
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.wait = None;
        dut.set(self.valid, 0);
    }
}

/// The registers with a host, counters and consumers of doorbells.
pub(super) struct Rig {
    pub(super) bench: Bench,
    pub(super) bus: Bus,
    pub(super) counters: Counters,
    pub(super) sq: StreamSink,
    pub(super) rq: StreamSink,
    pub(super) cq: StreamSink,
    /// Doorbells of shared receive queues that arrived by `rq`: number and index.
    pub(super) shared: Vec<(u64, u64)>,
}

impl Rig {
    pub(super) fn new(host: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(Csr::<Q, C>::default).expect("the registers build");
        let config = Config {
            aw: host,
            w: host,
            b: host,
            ar: host,
            r: host,
            seed: seed(),
        };
        let sink = |name| StreamSink::new(bench.dut(), name, back).unwrap();
        let mut rig = Self {
            bus: Bus::new(bench.dut(), &config),
            counters: Counters::new(bench.dut()),
            sq: sink("sq_doorbell"),
            rq: sink("rq_doorbell"),
            cq: sink("cq_doorbell"),
            shared: vec![],
            bench,
        };
        for name in [
            "link_up",
            "ready",
            "dma_error",
            "ring_error",
            "reset_done",
            "cmd_ci",
            "exception_status",
        ] {
            set(&mut rig.bench, name, 0);
        }
        for (_, name, value) in BUILD {
            set(&mut rig.bench, name, value.into());
        }
        rig.with(|bench, agents| bench.reset(agents));
        rig
    }

    pub(super) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R,
    ) -> R {
        let agents: &mut [&mut dyn Agent] = &mut [
            &mut self.bus,
            &mut self.counters,
            &mut self.sq,
            &mut self.rq,
            &mut self.cq,
        ];
        act(&mut self.bench, agents)
    }

    pub(super) fn run(&mut self, cycles: u64) {
        let run = self.with(|bench, agents| bench.run(agents, cycles));
        run.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Lets everything under way end.
    pub(super) fn finish(&mut self) {
        let run = self.with(|bench, agents| bench.finish(agents, 2_000));
        run.unwrap_or_else(|e| panic!("{e}"));
    }

    pub(super) fn write(&mut self, offset: u32, value: u32) {
        self.bus.master.write(offset, value);
        self.finish();
    }

    pub(super) fn read(&mut self, offset: u32) -> u32 {
        self.bus.master.start_read(offset);
        self.finish();
        self.bus.master.take_read().expect("the read is done")
    }

    pub(super) fn pulse(&mut self, name: &str) {
        set(&mut self.bench, name, 1);
        self.run(1);
        set(&mut self.bench, name, 0);
    }

    pub(super) fn get(&mut self, name: &str) -> u64 {
        get(&mut self.bench, name)
    }

    /// Doorbell events that arrived: queue pair and index, send queue and receive queue.
    pub(super) fn rung(&mut self) -> [Vec<(u64, u64)>; 2] {
        let shared = &mut self.shared;
        let mut take = |sink: &mut StreamSink, kind: u64| {
            let mut events = vec![];
            while let Some((_, item)) = sink.pop() {
                if kind == RQ_DOORBELL && item.get("kind") == SRQ_DOORBELL {
                    shared.push((item.get("srqn"), item.get("index")));
                    continue;
                }
                assert_eq!(item.get("kind"), kind, "{item:?}");
                events.push((item.get("qpn"), item.get("index")));
            }
            events
        };
        [
            take(&mut self.sq, SQ_DOORBELL),
            take(&mut self.rq, RQ_DOORBELL),
        ]
    }

    /// Arm doorbells that arrived: completion queue, any, solicited, index.
    pub(super) fn armed(&mut self) -> Vec<(u64, u64, u64, u64)> {
        let mut arms = vec![];
        while let Some((_, item)) = self.cq.pop() {
            let [cqn, any, solicited, index] =
                ["cqn", "any", "solicited", "index"].map(|name| item.get(name));
            arms.push((cqn, any, solicited, index));
        }
        arms
    }

    pub(super) fn enable(&mut self) {
        self.write(regs::CONTROL, control::ENABLE);
    }
}

/// With neighbours that never pause.
pub(super) fn quiet() -> Rig {
    Rig::new(Pauses::NONE, Pauses::NONE)
}

/// What a register reads after reset.
pub(super) fn after_reset(offset: u32, reset: u32) -> u32 {
    let of_build = BUILD.iter().find(|(at, ..)| *at == offset);
    of_build.map_or(reset, |(.., value)| *value)
}
