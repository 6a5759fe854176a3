//! Receive checks against the reference.

mod directed;

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::responder::rx_check::RxCheck;
use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::wire::{Opcode, Operation};
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use crate::drive::{ImagePort, Q, difference, meta, requests, uneven};
use crate::reference::{Packet, check, mtu, reason};

type Fields = Vec<(&'static str, u64)>;

struct Rig {
    bench: Bench,
    packets: StreamSource,
    requests: StreamSink,
    responses: StreamSink,
    order: StreamSink,
    images: ImagePort,
    contexts: Vec<RqCtx>,
    expected: VecDeque<Fields>,
    expected_responses: VecDeque<Fields>,
    expected_order: VecDeque<u64>,
    reasons: [u32; 7],
    /// Bytes of a beat.
    bytes: u32,
    /// Responses with beats are wanted.
    data: bool,
    arrived: Vec<u64>,
    /// Queue pairs that do not exist.
    gone: Vec<u32>,
}

impl Rig {
    fn new<const K: usize, const D: usize>(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(RxCheck::<Q, K, D>::default).expect("the block builds");
        let sink = |name| StreamSink::new(bench.dut(), name, back).expect("a stream out");
        let mut rig = Self {
            packets: StreamSource::new(bench.dut(), "s", idle).expect("a stream in"),
            requests: sink("m"),
            responses: sink("responses"),
            order: sink("order"),
            images: ImagePort::new(bench.dut()),
            contexts: Vec::new(),
            expected: VecDeque::new(),
            expected_responses: VecDeque::new(),
            expected_order: VecDeque::new(),
            reasons: [0; 7],
            bytes: K as u32,
            data: D == 1,
            arrived: Vec::new(),
            gone: Vec::new(),
            bench,
        };
        rig.images.end(rig.bench.dut_mut());
        rig.set("known_we", 0);
        rig.bench.reset(&mut [
            &mut rig.packets,
            &mut rig.requests,
            &mut rig.responses,
            &mut rig.order,
        ]);
        (0..1 << Q).for_each(|_| rig.step());
        for qpn in 0..1 << Q {
            let ctx = context(rig.bench.rng(), qpn);
            rig.images.start(rig.bench.dut_mut(), qpn, &ctx);
            rig.step();
            rig.contexts.push(ctx);
            rig.exists(qpn, true);
        }
        rig.images.end(rig.bench.dut_mut());
        rig
    }

    fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("an input");
        self.bench.dut_mut().set(input, value);
    }

    /// A queue pair begins or ends to exist.
    fn exists(&mut self, qpn: u32, known: bool) {
        self.set("known_qpn", qpn.into());
        self.set("known", known.into());
        self.set("known_we", 1);
        self.step();
        self.set("known_we", 0);
        self.gone.retain(|gone| *gone != qpn);
        if !known {
            self.gone.push(qpn);
        }
    }

    fn push(&mut self, packet: &Packet) {
        let ctx = &self.contexts[packet.qpn as usize % self.contexts.len()];
        let mut found = check(ctx, packet, Q as u32);
        if self.gone.contains(&packet.qpn) {
            found = reason::NO_QP;
        }
        self.reasons[usize::from(found)] += 1;
        let response = Opcode::from_code(packet.opcode).filter(|o| o.is_response());
        match response {
            Some(opcode) if found == reason::NO_REQUEST && (self.data || packet.beats == 0) => {
                let is = |operation| u64::from(opcode.operation() == operation);
                let syndrome = if opcode.has_aeth() {
                    packet.ext >> 56
                } else {
                    0
                };
                self.expected_responses.push_back(vec![
                    ("qpn", packet.qpn.into()),
                    ("psn", packet.psn.into()),
                    ("syndrome", syndrome),
                    ("read", is(Operation::ReadResponse)),
                    ("atomic", is(Operation::AtomicAck)),
                    ("last", opcode.is_end().into()),
                    ("plen", packet.plen.into()),
                    ("lane", packet.lane.into()),
                    ("beats", packet.beats.into()),
                ]);
                if packet.beats > 0 {
                    self.expected_order.push_back(1);
                }
            }
            _ => {
                for fields in requests(ctx, packet, found, self.bytes) {
                    let beats = fields.iter().find(|field| field.0 == "beats");
                    if beats.is_some_and(|field| field.1 > 0) {
                        self.expected_order.push_back(0);
                    }
                    self.expected.push_back(fields);
                }
            }
        }
        let item = meta(self.packets.item(), packet);
        self.packets.push(item);
    }

    fn step(&mut self) {
        let mut agents: [&mut dyn ferroce_sim::bench::Agent; 4] = [
            &mut self.packets,
            &mut self.requests,
            &mut self.responses,
            &mut self.order,
        ];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((cycle, item)) = self.requests.pop() {
            let fields = self.expected.pop_front().expect("one a packet");
            if let Some(problem) = difference(&item, &fields) {
                panic!("{}", self.bench.failure(problem));
            }
            self.arrived.push(cycle);
        }
        while let Some((_, item)) = self.responses.pop() {
            let fields = self.expected_responses.pop_front().expect("one a response");
            assert_eq!(difference(&item, &fields), None);
        }
        while let Some((_, item)) = self.order.pop() {
            let expected = self.expected_order.pop_front();
            assert_eq!(Some(item.get("payload")), expected, "whose beats are next");
        }
    }

    fn left(&self) -> [usize; 3] {
        [
            self.expected.len(),
            self.expected_responses.len(),
            self.expected_order.len(),
        ]
    }

    fn finish(&mut self) {
        for _ in 0..600_000 {
            if self.left() == [0; 3] {
                break;
            }
            self.step();
        }
        (0..40).for_each(|_| self.step());
        assert_eq!(
            self.left(),
            [0; 3],
            "requests, responses, order bits that did not arrive"
        );
    }

    /// The sink `responses` never takes anything, or always.
    fn hear_responses(&mut self, hear: bool) {
        let pauses = if hear {
            Pauses::NONE
        } else {
            Pauses::new(1.0, 1)
        };
        self.responses = StreamSink::new(self.bench.dut(), "responses", pauses).expect("as before");
    }
}

fn context(rng: &mut Rng, qpn: u32) -> RqCtx {
    RqCtx {
        remote_gid: rng.u128(..),
        rq_base: rng.u64(..),
        qp_type: [0, 0, 3, 0, 1, 0, 3, 2][qpn as usize % 8],
        mtu: rng.u8(1..=5),
        rq_log: rng.u8(0..16),
        rq_stride: rng.u8(0..4),
        min_rnr_timer: rng.u8(0..32),
        remote_write: rng.u8(..5) != 0,
        remote_read: rng.u8(..5) != 0,
        remote_atomic: rng.u8(..5) != 0,
        max_dest_rd_atomic: rng.u8(0..=16),
        qkey: rng.u32(..),
        pkey: [0xffff, 0x7fff, rng.u16(..)][rng.usize(..3)],
        sgid_index: rng.u8(..),
        check_vlan: rng.bool(),
        vlan: rng.u16(..1 << 12),
        pd: rng.u32(..1 << 24),
        cqn: rng.u16(..),
        srq_valid: rng.bool(),
        srqn: rng.u16(..),
        ..RqCtx::default()
    }
}

/// A packet that is right in most of its parts.
fn packet(rng: &mut Rng, contexts: &[RqCtx]) -> Packet {
    let qpn = rng.u32(..contexts.len() as u32);
    let ctx = &contexts[qpn as usize];
    let full = mtu(ctx);
    let plen = [0, 1, full, full, full - 1, full + 1, rng.u32(..=full)][rng.usize(..7)].min(4096);
    let near = [plen, plen, full, full + 1, 2 * full, 2 * full + 1];
    let far = [0, 1 << 31, (1 << 31) + 1, rng.u32(..), plen.wrapping_sub(1)];
    let code = match ctx.qp_type {
        3 => [4, 4, 4, 5, 5, rng.u8(..32)][rng.usize(..6)],
        1 => [rng.u8(..12), rng.u8(..32)][rng.usize(..2)],
        _ => rng.u8(..32),
    };
    let mut packet = Packet {
        opcode: code | ctx.qp_type << 5,
        solicited: rng.bool(),
        ack_req: rng.bool(),
        pkey: ctx.pkey | 0x8000,
        qpn,
        psn: rng.u32(..1 << 24),
        src_gid: ctx.remote_gid,
        gid_index: ctx.sgid_index,
        vid: ctx.vlan,
        ext: if ctx.qp_type == 3 {
            u64::from(ctx.qkey) << 32 | u64::from(rng.u32(..))
        } else {
            rng.u64(..) & !rng.u64(..8)
        },
        rkey: rng.u32(..),
        dma_len: if rng.u8(..3) == 0 {
            far[rng.usize(..5)]
        } else {
            near[rng.usize(..6)]
        },
        operands: rng.u128(..1 << 96),
        imm: rng.u32(..),
        plen,
        lane: rng.u32(..64),
        beats: rng.u32(..2) * rng.u32(..1024),
    };
    match rng.u8(..16) {
        0 => packet.opcode = [0x81, 0x80, 0x20, 0x64, 0xa0][rng.usize(..5)],
        1 => packet.pkey ^= 1 << rng.u8(..16),
        2 => packet.src_gid ^= 1 << rng.u8(..128),
        3 => packet.gid_index ^= 1 << rng.u8(..8),
        7 => packet.vid ^= 1 << rng.u8(..12),
        4 => packet.qpn |= 1 << rng.u8(Q as u8..24),
        5 => packet.opcode = Opcode::RcAck.code(),
        6 => packet.ext ^= 1 << rng.u8(32..64),
        _ => {}
    }
    packet
}

fn random<const K: usize, const D: usize>(idle: Pauses, back: Pauses) -> Rig {
    let mut rig = Rig::new::<K, D>(idle, back);
    let mut rng = rig.bench.rng().clone();
    for _ in 0..20_000 {
        let packet = packet(&mut rng, &rig.contexts);
        rig.push(&packet);
        rig.step();
    }
    rig.finish();
    for (reason, count) in rig.reasons.iter().enumerate() {
        assert!(*count > 50, "reason {reason} came {count} times");
    }
    rig
}

#[test]
fn random_packets_at_full_rate() {
    let rig = random::<64, 1>(Pauses::NONE, Pauses::NONE);
    assert_eq!(rig.packets.sent(), 20_000);
    let cycles = rig.packets.last_sent().expect("all sent") - rig.arrived[0];
    let datagrams = rig.arrived.len() as u64;
    assert!(
        cycles < 20_000 + datagrams,
        "a packet a cycle, a datagram in two"
    );
}

#[test]
fn random_packets_with_pauses() {
    random::<64, 1>(uneven(), uneven());
    random::<64, 1>(Pauses::NONE, Pauses::new(0.5, 20));
    random::<8, 1>(uneven(), uneven());
}

#[test]
fn a_requester_without_reads_hears_acks_alone() {
    random::<8, 0>(uneven(), uneven());
}
