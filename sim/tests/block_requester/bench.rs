//! A requester between a host that posts and a peer that answers by the rules of a responder.

use std::collections::{BTreeMap, VecDeque};

use ferroce_hdl::transport::requester::top::Requester;
use ferroce_proto::abi::qpc::{AvCtx, SqCtx};
use ferroce_proto::abi::wqe::{SendWqe, Sge};
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::{Chance, Pauses};
use ferroce_sim::verilator::Dut;

/// Log2 of the queue pairs.
pub(crate) const Q: usize = 4;
/// Log2 of the outstanding pool.
pub(crate) const O: usize = 10;
/// Messages a queue pair may have outstanding.
pub(crate) const RING: u64 = 64;

/// Values of `SqEventKind`.
const DOORBELL: u64 = 1;
const COMMAND: u64 = 8;
const FAILED: u64 = 9;

/// Bytes of path MTU `code`.
pub(crate) fn mtu_bytes(code: u8) -> u32 {
    128 << code
}

/// Answers the reads of WQEs, all or none of a cycle, `latency` cycles later.
struct Memory {
    latency: u64,
    words: BTreeMap<u64, [u8; 64]>,
    queue: VecDeque<(u64, [u8; 64], bool)>,
    cycle: u64,
}

impl Memory {
    fn read(&mut self, addr: u64, len: u64) {
        for i in 0..len / 64 {
            let bytes = self
                .words
                .get(&(addr + 64 * i))
                .copied()
                .unwrap_or([0xee; 64]);
            self.queue
                .push_back((self.cycle + self.latency, bytes, i + 1 == len / 64));
        }
    }
}

impl Agent for Memory {
    fn drive(&mut self, dut: &mut Dut, _: &mut fastrand::Rng) {
        let valid = dut.input("beat_valid").unwrap();
        dut.set(valid, 0);
        if self
            .queue
            .front()
            .is_some_and(|(due, ..)| *due <= self.cycle)
        {
            let (_, bytes, last) = self.queue.pop_front().unwrap();
            let words: Vec<u32> = bytes
                .chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect();
            dut.set(valid, 1);
            dut.write(dut.input("beat_data").unwrap(), &words);
            dut.set(dut.input("beat_last").unwrap(), last.into());
            dut.set(dut.input("beat_error").unwrap(), 0);
        }
        self.cycle += 1;
    }
    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "reads not answered".into())
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("beat_valid").unwrap(), 0);
    }
}

/// Answers memory region checks: yes, unless the key is [`Regions::BAD_KEY`].
#[derive(Default)]
struct Regions {
    pipe: VecDeque<Option<bool>>,
}

impl Regions {
    const BAD_KEY: u64 = 0xbad;
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, _: &mut fastrand::Rng) {
        let answer = if self.pipe.len() == 4 {
            self.pipe.pop_front().unwrap()
        } else {
            None
        };
        dut.set(dut.input("mr_done").unwrap(), answer.is_some().into());
        dut.set(dut.input("mr_ok").unwrap(), answer.unwrap_or(false).into());
    }
    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let asked = dut.is_set(dut.output("mr_valid").unwrap());
        let field = |name| dut.get(dut.output(name).unwrap());
        let ok = field("mr_request.len") == 0 || field("mr_request.key") != Self::BAD_KEY;
        self.pipe.push_back(asked.then_some(ok));
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        None
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("mr_done").unwrap(), 0);
    }
}

/// What the peer and the wire do.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// Cycles from a packet to its answer.
    pub(crate) delay: u64,
    /// Loss of packets and of answers.
    pub(crate) loss: f64,
    /// A message start finds no receive buffer.
    pub(crate) rnr: f64,
    /// Answers nothing at all.
    pub(crate) silent: bool,
    /// Syndrome of a NAK for the packet with this PSN, once.
    pub(crate) refuse: Option<(u32, u8)>,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            delay: 100,
            loss: 0.0,
            rnr: 0.0,
            silent: false,
            refuse: None,
        }
    }
}

/// A packet as it should leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) opcode: u64,
    pub(crate) plen: u32,
    pub(crate) va: u64,
    pub(crate) dma_len: u32,
    pub(crate) imm: u32,
    pub(crate) solicited: bool,
    pub(crate) pieces: Vec<(u64, u32)>,
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
    details: Vec<(u64, u64)>,
}

/// The bench.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) peer: Peer,
    doorbell: StreamSource,
    command: StreamSource,
    failure: StreamSource,
    ack: StreamSource,
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
    failed: Vec<u64>,
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
            ack: source("ack"),
            desc: sink("desc", pauses),
            gather: sink("gather", pauses),
            cq: sink("cq", pauses),
            read: sink("read", pauses),
            memory: Memory {
                latency,
                words: BTreeMap::new(),
                queue: VecDeque::new(),
                cycle: 0,
            },
            regions: Regions::default(),
            qps: (0..1 << Q).map(|_| Qp::default()).collect(),
            pieces: VecDeque::new(),
            descs: VecDeque::new(),
            answers: VecDeque::new(),
            failed: Vec::new(),
            peer: Peer::default(),
            bench: {
                bench.dut_mut().settle();
                bench
            },
        };
        for name in ["sq_we", "av_we"] {
            let input = rig.bench.dut().input(name).unwrap();
            rig.bench.dut_mut().set(input, 0);
        }
        let mut agents: [&mut dyn Agent; 10] = [
            &mut rig.doorbell,
            &mut rig.command,
            &mut rig.failure,
            &mut rig.ack,
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

    /// Brings queue pair `qpn` to RTS.
    pub(crate) fn open(&mut self, qpn: u64, ctx: SqCtx, psn: u32) {
        let ctx = SqCtx {
            sq_log: 8,
            ot_log: RING.ilog2() as u8,
            ot_base: (qpn * RING) as u32,
            sq_base: 0x1000_0000 + (qpn << 16),
            cqn: 5,
            ..ctx
        };
        let words = |bytes: &[u8], n: usize| -> Vec<u32> {
            bytes
                .chunks(4)
                .take(n)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect()
        };
        for (port, we, bytes) in [
            ("sq_image", "sq_we", ctx.emit()),
            ("av_image", "av_we", AvCtx::default().emit()),
        ] {
            let dut = self.bench.dut_mut();
            let image = dut.input(port).unwrap();
            let mut words = words(&bytes, image.width().div_ceil(32));
            if !image.width().is_multiple_of(32) {
                *words.last_mut().unwrap() &= (1 << (image.width() % 32)) - 1;
            }
            dut.write(image, &words);
            dut.set(dut.input("image_qpn").unwrap(), qpn);
            dut.set(dut.input(we).unwrap(), 1);
            self.step();
            let dut = self.bench.dut_mut();
            dut.set(dut.input(we).unwrap(), 0);
        }
        self.modify(qpn, 3, Some(psn));
        self.qps[qpn as usize] = Qp {
            mtu: ctx.mtu,
            first_psn: psn,
            ..Qp::default()
        };
        self.run(20);
    }

    /// Sets the state of the send queue, `reset` to start afresh with this PSN.
    pub(crate) fn modify(&mut self, qpn: u64, state: u8, reset: Option<u32>) {
        self.command.push(
            self.command
                .item()
                .with("kind", COMMAND)
                .with("qpn", qpn)
                .with("psn", reset.unwrap_or(0).into())
                .with("set", 1)
                .with("reset", reset.is_some().into())
                .with("state", state.into()),
        );
    }

    /// The queue pair failed elsewhere; its oldest message with `status`, if that is not 0.
    pub(crate) fn fail(&mut self, qpn: u64, status: u8) {
        self.failure.push(
            self.failure
                .item()
                .with("kind", FAILED)
                .with("qpn", qpn)
                .with("status", status.into()),
        );
    }

    /// Writes a WQE that becomes no packet into the ring; answers its address.
    pub(crate) fn post_bad(&mut self, qpn: u64, wqe: SendWqe, sges: [Sge; 2]) -> u64 {
        let qp = &mut self.qps[qpn as usize];
        let mut slot = [0; 64];
        slot[..32].copy_from_slice(&wqe.emit());
        slot[32..48].copy_from_slice(&sges[0].emit());
        slot[48..].copy_from_slice(&sges[1].emit());
        let addr = 0x1000_0000 + (qpn << 16) + u64::from(qp.producer % 256) * 64;
        self.memory.words.insert(addr, slot);
        qp.producer = qp.producer.wrapping_add(1);
        addr
    }

    /// Writes a WQE into the ring and notes the packets it should become.
    pub(crate) fn post(&mut self, qpn: u64, wqe: SendWqe, sges: [Sge; 2]) {
        let addr = self.post_bad(qpn, wqe, sges);
        let qp = &mut self.qps[qpn as usize];
        let mtu = mtu_bytes(qp.mtu);
        let (write, imm) = (wqe.opcode >= 3, wqe.opcode == 1 || wqe.opcode == 4);
        let count = wqe.length.div_ceil(mtu).max(1);
        let sges = match (wqe.inline_data, wqe.num_sge) {
            (true, _) => vec![(addr + 32, wqe.length)],
            (_, n) => sges[..n.min(2).into()]
                .iter()
                .map(|s| (s.addr, s.length))
                .collect(),
        };
        for i in 0..count {
            let (first, last) = (i == 0, i + 1 == count);
            let position = [[1, 2], [0, 4]][usize::from(first)][usize::from(last)];
            let (from, to) = (i * mtu, ((i + 1) * mtu).min(wqe.length));
            let mut at = 0;
            let mut pieces = Vec::new();
            for &(addr, len) in &sges {
                let (lo, hi) = (from.max(at), to.min(at + len));
                if lo < hi {
                    pieces.push((addr + u64::from(lo - at), hi - lo));
                }
                at += len;
            }
            qp.starts.push(first);
            qp.packets.push(Packet {
                opcode: position + if write { 6 } else { 0 } + u64::from(last && imm),
                plen: to - from,
                va: wqe.remote_addr,
                dma_len: wqe.length,
                imm: wqe.imm,
                solicited: last && wqe.solicited && (!write || imm),
                pieces,
            });
        }
    }

    /// Rings the doorbell of `qpn`.
    pub(crate) fn ring(&mut self, qpn: u64) {
        let index = self.qps[qpn as usize].producer;
        self.doorbell.push(
            self.doorbell
                .item()
                .with("kind", DOORBELL)
                .with("qpn", qpn)
                .with("index", index.into()),
        );
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

    /// CQE opcode and vendor error of the completions.
    pub(crate) fn details(&self, qpn: u64) -> &[(u64, u64)] {
        &self.qps[qpn as usize].details
    }

    /// Queue pairs reported as failed so far.
    pub(crate) fn failed(&self) -> &[u64] {
        &self.failed
    }

    pub(crate) fn step(&mut self) {
        let mut agents: [&mut dyn Agent; 10] = [
            &mut self.doorbell,
            &mut self.command,
            &mut self.failure,
            &mut self.ack,
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
        while let Some((_, item)) = self.read.pop() {
            self.memory.read(item.get("addr"), item.get("len"));
        }
        while let Some((_, item)) = self.cq.pop() {
            let qp = &mut self.qps[item.get("qpn") as usize];
            assert_eq!(item.get("cqn"), 5);
            qp.done.push((item.get("wqe_index"), item.get("status")));
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
                .ack
                .item()
                .with("qpn", qpn)
                .with("psn", psn.into())
                .with("syndrome", syndrome.into());
            self.ack.push(item);
        }
    }

    /// A descriptor with all of its pieces.
    fn take_packet(&mut self) -> Option<(u64, u32, bool, Packet)> {
        let desc = self.descs.front()?;
        let mut count = 0;
        if desc.get("plen") > 0 {
            count = 1 + self.pieces.iter().position(|p| p.get("last") == 1)?;
        }
        let desc = self.descs.pop_front().unwrap();
        let pieces: Vec<_> = self.pieces.drain(..count).collect();
        if let Some(first) = pieces.first() {
            assert!(first.get("first") == 1 && pieces.iter().skip(1).all(|p| p.get("first") == 0));
            let ext = match desc.get("opcode") {
                3 | 5 => 4,
                6 | 10 => 16,
                11 => 20,
                9 => 4,
                _ => 0,
            };
            assert_eq!(
                first.get("lane"),
                (54 + ext) % 64,
                "opcode {:#x}",
                desc.get("opcode")
            );
        }
        let packet = Packet {
            opcode: desc.get("opcode"),
            plen: desc.get("plen") as u32,
            va: desc.get("va"),
            dma_len: desc.get("dma_len") as u32,
            imm: desc.get("imm") as u32,
            solicited: desc.get("solicited") == 1,
            pieces: pieces
                .iter()
                .map(|p| (p.get("addr"), p.get("len") as u32))
                .collect(),
        };
        Some((
            desc.get("qpn"),
            desc.get("psn") as u32,
            desc.get("ack_req") == 1,
            packet,
        ))
    }

    /// The peer's responder.
    fn arrive(&mut self, (qpn, psn, ack_req, packet): (u64, u32, bool, Packet)) {
        let peer = self.peer;
        let rng = self.bench.rng();
        let lost = peer.silent || Chance::new(peer.loss).hit(rng);
        let answer_lost = Chance::new(peer.loss).hit(rng);
        let rnr = Chance::new(peer.rnr).hit(rng);
        let qp = &mut self.qps[qpn as usize];
        let at = psn.wrapping_sub(qp.first_psn) & 0xff_ffff;
        assert_eq!(
            Some(&packet),
            qp.packets.get(at as usize),
            "qp {qpn} psn {psn:#x}, packet {at} of the queue"
        );
        if lost {
            return;
        }
        let expected = qp.first_psn.wrapping_add(qp.expected as u32) & 0xff_ffff;
        let answer = if at as usize > qp.expected {
            if std::mem::replace(&mut qp.nak_sent, true) {
                return;
            }
            (expected, 0x60)
        } else if (at as usize) < qp.expected {
            if !ack_req {
                return;
            }
            (expected.wrapping_sub(1) & 0xff_ffff, 0x1f)
        } else if rnr && qp.starts[at as usize] {
            qp.nak_sent = true;
            (expected, 0x21)
        } else if let Some((_, syndrome)) = peer.refuse.filter(|(p, _)| *p == psn) {
            (psn, syndrome)
        } else {
            qp.expected += 1;
            qp.nak_sent = false;
            if !ack_req {
                return;
            }
            (psn, 0x1f)
        };
        if !answer_lost {
            self.answers
                .push_back((self.bench.cycle() + peer.delay, qpn, answer.0, answer.1));
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
                        "peers (queue pair, accepted, due) still wait: {left:?}"
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
