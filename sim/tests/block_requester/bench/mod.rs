//! A requester between a host that posts and a peer that answers by the rules of a responder.

mod agents;
mod host;
mod peer;

use std::collections::VecDeque;

use ferroce_hdl::transport::requester::top::Requester;
use ferroce_proto::abi::wqe::Sge;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use agents::{Memory, Regions};
use peer::Packet;
pub(crate) use peer::Peer;

/// Log2 of the queue pairs.
pub(crate) const Q: usize = 4;
/// Log2 of the outstanding pool.
pub(crate) const O: usize = 10;
/// Messages a queue pair may have outstanding.
pub(crate) const RING: u64 = 64;

/// Bytes of path MTU `code`.
pub(crate) fn mtu_bytes(code: u8) -> u32 {
    128 << code
}

/// A queue pair as host and peer see it.
#[derive(Default)]
struct Qp {
    mtu: u8,
    first_psn: u32,
    producer: u16,
    packets: Vec<Packet>,
    starts: Vec<bool>,
    // peer
    expected: usize,
    nak_sent: bool,
    done: Vec<(u64, u64)>,
    /// Last packet of each message posted, by WQE index.
    lasts: Vec<(u16, usize)>,
    /// Packets of the messages that completed.
    completed: usize,
    /// Packets that left, each time they did.
    sent: usize,
    details: Vec<(u64, u64)>,
}

/// The bench.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) peer: Peer,
    doorbell: StreamSource,
    command: StreamSource,
    failure: StreamSource,
    answer: StreamSource,
    desc: StreamSink,
    gather: StreamSink,
    cq: StreamSink,
    read: StreamSink,
    memory: Memory,
    regions: Regions,
    qps: Vec<Qp>,
    pieces: VecDeque<Item>,
    descs: VecDeque<Item>,
    answers: VecDeque<(u64, u64, u32, u8)>,
    /// Descriptors that leave.
    left: VecDeque<Item>,
    failed: Vec<u64>,
    /// Cycles from a piece to the end of its read.
    pub(crate) read_delay: u64,
    /// Pieces being read: cycle, queue pair, packet of the queue.
    unread: VecDeque<(u64, u64, usize)>,
}

impl Rig {
    pub(crate) fn new(latency: u64, pauses: Pauses) -> Self {
        let mut bench = Bench::of(Requester::<512, Q, O>::default).unwrap();
        let dut = bench.dut();
        let source = |name| StreamSource::new(dut, name, Pauses::NONE).unwrap();
        let sink = |name, pauses| StreamSink::new(dut, name, pauses).unwrap();
        let mut rig = Self {
            doorbell: source("doorbell"),
            command: source("command"),
            failure: source("failure"),
            answer: source("answer"),
            desc: sink("desc", pauses),
            gather: sink("gather", pauses),
            cq: sink("cq", pauses),
            read: sink("read", pauses),
            memory: Memory::new(latency),
            regions: Regions::default(),
            qps: (0..1 << Q).map(|_| Qp::default()).collect(),
            pieces: VecDeque::new(),
            descs: VecDeque::new(),
            answers: VecDeque::new(),
            left: VecDeque::new(),
            failed: Vec::new(),
            read_delay: 0,
            unread: VecDeque::new(),
            peer: Peer::default(),
            bench: {
                bench.dut_mut().settle();
                bench
            },
        };
        for name in [
            "sq_we",
            "av_we",
            "cnp.valid",
            "congestion.enable",
            "left_valid",
            "closed",
            "crowded",
            "piece_read",
            "change_done",
        ] {
            let input = rig.bench.dut().input(name).unwrap();
            rig.bench.dut_mut().set(input, 0);
        }
        // the responders are not here
        let down = rig.bench.dut().input("down_ready").unwrap();
        rig.bench.dut_mut().set(down, 1);
        let mut agents: [&mut dyn Agent; 10] = [
            &mut rig.doorbell,
            &mut rig.command,
            &mut rig.failure,
            &mut rig.answer,
            &mut rig.desc,
            &mut rig.gather,
            &mut rig.cq,
            &mut rig.read,
            &mut rig.memory,
            &mut rig.regions,
        ];
        rig.bench.reset(&mut agents);
        while !rig
            .bench
            .dut()
            .is_set(rig.bench.dut().output("ready").unwrap())
        {
            rig.step();
        }
        rig
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Completions of `qpn` so far: WQE index and status.
    pub(crate) fn done(&self, qpn: u64) -> &[(u64, u64)] {
        &self.qps[qpn as usize].done
    }

    /// Packets of `qpn` that left so far; one sent again counts again.
    pub(crate) fn sent(&self, qpn: u64) -> usize {
        self.qps[qpn as usize].sent
    }

    /// Runs until `count` packets of `qpn` left.
    pub(crate) fn run_until_sent(&mut self, qpn: u64, count: usize) {
        let end = self.bench.cycle() + 10_000;
        while self.sent(qpn) < count {
            assert!(self.bench.cycle() < end, "{} packets left", self.sent(qpn));
            self.step();
        }
    }

    /// From here on no key is good.
    pub(crate) fn deregister(&mut self) {
        self.regions.gone = true;
    }

    /// CQE opcode and vendor error of the completions.
    pub(crate) fn details(&self, qpn: u64) -> &[(u64, u64)] {
        &self.qps[qpn as usize].details
    }

    /// Queue pairs reported as failed so far.
    pub(crate) fn failed(&self) -> &[u64] {
        &self.failed
    }

    pub(crate) fn step(&mut self) {
        let now = self.bench.cycle();
        let read = self.unread.front().is_some_and(|piece| piece.0 <= now);
        if read {
            self.unread.pop_front();
        }
        let dut = self.bench.dut_mut();
        dut.set(dut.input("piece_read").unwrap(), read.into());
        let left = self.left.pop_front();
        dut.set(dut.input("left_valid").unwrap(), left.is_some().into());
        for field in [
            "qpn",
            "round",
            "incarnation",
            "next_psn",
            "notify",
            "ack_req",
        ] {
            let input = dut.input(&format!("left.{field}")).unwrap();
            dut.set(input, left.as_ref().map_or(0, |desc| desc.get(field)));
        }
        let mut agents: [&mut dyn Agent; 10] = [
            &mut self.doorbell,
            &mut self.command,
            &mut self.failure,
            &mut self.answer,
            &mut self.desc,
            &mut self.gather,
            &mut self.cq,
            &mut self.read,
            &mut self.memory,
            &mut self.regions,
        ];
        if let Err(failure) = self.bench.step(&mut agents) {
            panic!("{failure}");
        }
        let dut = self.bench.dut();
        if dut.is_set(dut.output("failed_valid").unwrap()) {
            self.failed.push(dut.get(dut.output("failed_qpn").unwrap()));
        }
        if dut.is_set(dut.output("close_valid").unwrap()) {
            let qpn = dut.get(dut.output("close_qpn").unwrap());
            self.answer
                .push(self.answer.item().with("qpn", qpn).with("closed", 1));
        }
        while let Some((_, item)) = self.read.pop() {
            self.memory.read(item.get("addr"), item.get("len"));
        }
        while let Some((_, item)) = self.cq.pop() {
            // a marker is no completion
            if item.get("marker") == 1 {
                continue;
            }
            let qp = &mut self.qps[item.get("qpn") as usize];
            assert_eq!(item.get("cqn"), 5);
            qp.done.push((item.get("wqe_index"), item.get("status")));
            let index = item.get("wqe_index") as u16;
            if let Some((_, last)) = qp.lasts.iter().rfind(|message| message.0 == index) {
                qp.completed = qp.completed.max(last + 1);
            }
            let late = self
                .unread
                .iter()
                .find(|piece| piece.1 == item.get("qpn") && piece.2 < qp.completed);
            assert_eq!(late, None, "completed before it was read: {item:?}");
            qp.details
                .push((item.get("opcode"), item.get("vendor_err")));
        }
        while let Some((_, item)) = self.gather.pop() {
            self.pieces.push_back(item);
        }
        while let Some((_, item)) = self.desc.pop() {
            self.descs.push_back(item);
        }
        while let Some(packet) = self.take_packet() {
            self.arrive(packet);
        }
        let now = self.bench.cycle();
        while self.answers.front().is_some_and(|a| a.0 <= now) {
            let (_, qpn, psn, syndrome) = self.answers.pop_front().unwrap();
            let item = self
                .answer
                .item()
                .with("qpn", qpn)
                .with("psn", psn.into())
                .with("syndrome", syndrome.into());
            self.answer.push(item);
        }
    }

    /// Runs until all packets of all queue pairs are accepted, `limit` cycles at most, and then for the answers.
    pub(crate) fn finish(&mut self, limit: u64) {
        let end = self.bench.cycle() + limit;
        let missing = |q: &&Qp| q.expected < q.packets.len();
        while self.qps.iter().any(|q| missing(&q)) {
            if self.bench.cycle() >= end {
                let left: Vec<_> = (0..)
                    .zip(&self.qps)
                    .filter(|(_, q)| missing(q))
                    .map(|(n, q)| (n, q.expected, q.packets.len()))
                    .collect();
                panic!(
                    "{}",
                    self.bench.failure(format!(
                        "peers (queue pair, accepted, due) still wait: {left:?}; failed: {:?}",
                        self.failed
                    ))
                );
            }
            self.step();
        }
        let open = |q: &Qp| {
            q.done
                .last()
                .is_none_or(|d| d.0 as u16 != q.producer.wrapping_sub(1))
                && q.producer != 0
        };
        while self.qps.iter().any(open) {
            assert!(
                self.bench.cycle() < end,
                "{}",
                self.bench.failure("completions missing")
            );
            self.step();
        }
        self.run(200);
    }
}

/// A region entry of the bench's memory with the key that passes, or the one that fails.
pub(crate) fn sge(addr: u64, length: u32, good: bool) -> Sge {
    Sge {
        addr,
        length,
        lkey: if good { 7 } else { Regions::BAD_KEY as u32 },
    }
}
