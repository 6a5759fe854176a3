//! Receive checks against the reference.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::responder::rx_check::RxCheck;
use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::wire::Opcode;
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::drive::{ImagePort, Q, difference, meta, request, uneven};
use super::reference::{Packet, check, mtu, reason};

type Fields = Vec<(&'static str, u64)>;

struct Rig {
    bench: Bench,
    packets: StreamSource,
    requests: StreamSink,
    acks: StreamSink,
    images: ImagePort,
    contexts: Vec<RqCtx>,
    expected: VecDeque<Fields>,
    expected_acks: VecDeque<Fields>,
    reasons: [u32; 6],
    arrived: Vec<u64>,
}

impl Rig {
    fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(RxCheck::<Q>::default).expect("the block builds");
        let sink = |name| StreamSink::new(bench.dut(), name, back).expect("a stream out");
        let mut rig = Self {
            packets: StreamSource::new(bench.dut(), "s", idle).expect("a stream in"),
            requests: sink("m"),
            acks: sink("acks"),
            images: ImagePort::new(bench.dut()),
            contexts: Vec::new(),
            expected: VecDeque::new(),
            expected_acks: VecDeque::new(),
            reasons: [0; 6],
            arrived: Vec::new(),
            bench,
        };
        rig.images.end(rig.bench.dut_mut());
        rig.bench
            .reset(&mut [&mut rig.packets, &mut rig.requests, &mut rig.acks]);
        for qpn in 0..1 << Q {
            let ctx = context(rig.bench.rng());
            rig.images.start(rig.bench.dut_mut(), qpn, &ctx);
            rig.step();
            rig.contexts.push(ctx);
        }
        rig.images.end(rig.bench.dut_mut());
        rig
    }

    fn push(&mut self, packet: &Packet) {
        let ctx = &self.contexts[packet.qpn as usize % self.contexts.len()];
        let found = check(ctx, packet, Q as u32);
        self.reasons[usize::from(found)] += 1;
        let ack = found == reason::NO_REQUEST && packet.opcode == Opcode::RcAck.code();
        if ack {
            self.expected_acks.push_back(vec![
                ("qpn", packet.qpn.into()),
                ("psn", packet.psn.into()),
                ("syndrome", packet.ext >> 56),
                ("msn", packet.ext >> 32 & 0xff_ffff),
            ]);
        }
        if !ack || packet.beats != 0 {
            self.expected.push_back(request(ctx, packet, found));
        }
        let item = meta(self.packets.item(), packet);
        self.packets.push(item);
    }

    fn step(&mut self) {
        let mut agents: [&mut dyn ferroce_sim::bench::Agent; 3] =
            [&mut self.packets, &mut self.requests, &mut self.acks];
        let result = self.bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((cycle, item)) = self.requests.pop() {
            let fields = self.expected.pop_front().expect("one a packet");
            if let Some(problem) = difference(&item, &fields) {
                panic!("{}", self.bench.failure(problem));
            }
            self.arrived.push(cycle);
        }
        while let Some((_, item)) = self.acks.pop() {
            let fields = self.expected_acks.pop_front().expect("one an ACK");
            assert_eq!(difference(&item, &fields), None);
        }
    }

    fn finish(&mut self) {
        for _ in 0..600_000 {
            if self.expected.is_empty() && self.expected_acks.is_empty() {
                break;
            }
            self.step();
        }
        (0..40).for_each(|_| self.step());
        let left = (self.expected.len(), self.expected_acks.len());
        assert_eq!(left, (0, 0), "packets, ACKs that did not arrive");
    }
}

fn context(rng: &mut Rng) -> RqCtx {
    RqCtx {
        remote_gid: rng.u128(..),
        rq_base: rng.u64(..),
        qp_type: [0, 0, 0, 0, 0, 1, 3][rng.usize(..7)],
        mtu: rng.u8(1..=5),
        rq_log: rng.u8(0..16),
        rq_stride: rng.u8(0..4),
        min_rnr_timer: rng.u8(0..32),
        remote_write: rng.u8(..5) != 0,
        pkey: [0xffff, 0x7fff, rng.u16(..)][rng.usize(..3)],
        sgid_index: rng.u8(..),
        pd: rng.u32(..1 << 24),
        cqn: rng.u16(..),
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
    let code = rng.u8(..32);
    let mut packet = Packet {
        opcode: code | ctx.qp_type << 5,
        solicited: rng.bool(),
        ack_req: rng.bool(),
        pkey: ctx.pkey | 0x8000,
        qpn,
        psn: rng.u32(..1 << 24),
        src_gid: ctx.remote_gid,
        gid_index: ctx.sgid_index,
        ext: rng.u64(..),
        rkey: rng.u32(..),
        dma_len: if rng.u8(..3) == 0 {
            far[rng.usize(..5)]
        } else {
            near[rng.usize(..6)]
        },
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
        4 => packet.qpn |= 1 << rng.u8(Q as u8..24),
        5 => packet.opcode = Opcode::RcAck.code(),
        _ => {}
    }
    packet
}

fn random(idle: Pauses, back: Pauses) -> Rig {
    let mut rig = Rig::new(idle, back);
    let mut rng = rig.bench.rng().clone();
    for _ in 0..20_000 {
        let packet = packet(&mut rng, &rig.contexts);
        rig.push(&packet);
        rig.step();
    }
    rig.finish();
    for (reason, count) in rig.reasons.iter().enumerate() {
        assert!(*count > 100, "reason {reason} came {count} times");
    }
    rig
}

#[test]
fn random_packets_at_full_rate() {
    let rig = random(Pauses::NONE, Pauses::NONE);
    assert_eq!(rig.packets.sent(), 20_000);
    let cycles = rig.packets.last_sent().expect("all sent") - rig.arrived[0];
    assert!(cycles < 20_000, "a packet a cycle");
}

#[test]
fn random_packets_with_pauses() {
    random(uneven(), uneven());
    random(Pauses::NONE, Pauses::new(0.5, 20));
}

#[test]
fn a_packet_takes_four_cycles() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let mut rng = rig.bench.rng().clone();
    let mut packet = packet(&mut rng, &rig.contexts);
    packet.qpn = 0;
    rig.push(&packet);
    rig.finish();
    let sent = rig.packets.last_sent().expect("it was sent");
    assert_eq!(rig.arrived, [sent + 4]);
    assert_eq!(rig.reasons[usize::from(reason::NO_QP)], 1, "queue pair 0");
}

#[test]
fn thirty_two_acks_wait_for_the_requester() {
    let mut rig = Rig::new(Pauses::NONE, Pauses::NONE);
    let mut rng = rig.bench.rng().clone();
    let qpn = (1..1 << Q).find(|&qpn| rig.contexts[qpn].qp_type == 0);
    let qpn = qpn.expect("most are RC");
    let ctx = rig.contexts[qpn];
    rig.acks = StreamSink::new(rig.bench.dut(), "acks", Pauses::new(1.0, 1)).expect("as before");
    for _ in 0..60 {
        let ack = Packet {
            opcode: Opcode::RcAck.code(),
            pkey: ctx.pkey | 0x8000,
            qpn: qpn as u32,
            src_gid: ctx.remote_gid,
            gid_index: ctx.sgid_index,
            beats: 0,
            ..packet(&mut rng, &rig.contexts)
        };
        rig.push(&ack);
    }
    (0..100).for_each(|_| rig.step());
    assert!(
        (32..40).contains(&rig.packets.sent()),
        "{}",
        rig.packets.sent()
    );
    rig.acks = StreamSink::new(rig.bench.dut(), "acks", Pauses::NONE).expect("as before");
    rig.finish();
}
