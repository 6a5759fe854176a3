//! Hostile frames beside a healthy connection.
//!
//! A card takes frames that an attacker made: each opcode, to queue pairs of the attacker and of others, with keys and
//! addresses of all kinds, with headers that were spoilt before their ICRC was made, cut and torn. Whatever they do to
//! the queue pairs of the attacker: the neighbour's connection goes on with every byte right, only memory that a key of
//! the attacker opens is touched, and no rule of a port is broken. No frame ends a queue pair of UC or UD, or takes a region
//! that is registered for good from its owner; the exception queue has frames as they came.

use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::qpc::state::RTS;
use ferroce_proto::wire::{
    AethRepr, AtomicEthRepr, BthRepr, DethRepr, EthRepr, Extensions, Gid, Headers, Ip, Mac, Opcode,
    Psn, RethRepr, Syndrome, UdpRepr,
};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::scoreboard::icrc::Roce;
use ferroce_sim::testhost::{Mr, Pair, Peer, QpOptions, Rights, Side, Work};

use super::exceptions::Exceptions;
use crate::conformance::run::Target;
use crate::quiet;
use crate::shared::Shared;
use crate::world::World;

/// Where the attacker is.
const ATTACKER: Mac = Mac([0x52, 0x54, 0, 0, 0, 0x66]);
const ATTACKER_IP: [u8; 4] = [10, 0, 0, 66];
/// Protection domain of what the attacker may reach.
const DOMAIN: u32 = 0x66;
/// Bytes of a region of the attack, and of one of the neighbour.
const BYTES: usize = 4096;
const NEIGHBOUR: usize = 16384;
/// Frames between two looks, and between two messages of the neighbour.
const LOOK: u64 = 128;
const MESSAGE: u64 = 16;
/// Cycles in which the wire comes to rest.
const PATIENCE: u64 = 100_000;

/// What an attack came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Frames that were sent to the card.
    pub frames: u64,
    /// Messages of the neighbour that completed beside them.
    pub messages: u64,
    /// Times that a queue pair of the attacker had to be opened afresh.
    pub revived: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.messages += other.messages;
        self.revived += other.revived;
    }
}

struct Attack {
    pair: Pair,
    rng: Rng,
    /// The neighbour's queue pairs, and the neighbour's memory at either side.
    neighbour: [u32; 2],
    source: Mr,
    target: Mr,
    data: Vec<u8>,
    /// Queue pairs of the attacker, and the PSN that each expects, about.
    victims: [(u32, u8); 3],
    psns: [u32; 3],
    /// A region that comes and goes, one that nobody may take or touch, and that of all receives.
    open: Mr,
    is_open: bool,
    closed: Mr,
    kept: Mr,
    exceptions: Exceptions,
    report: Report,
}

/// Sends `count` frames of a seed to a card; the other host is a golden model.
///
/// # Errors
/// What broke, in words.
pub fn attack(target: Target, count: u64, seed: u64) -> Result<Report, String> {
    let around = World::of(seed);
    let (card, _) = target.card(around).map_err(|e| e.to_string())?;
    let (model, _) = Target::Model.card(around).map_err(|e| e.to_string())?;
    let run = || {
        let mut cards = Vec::new();
        let pair = Pair::new(|memory: Rc<dyn HostMemory>| {
            let build = if cards.is_empty() {
                &card.build
            } else {
                &model.build
            };
            let card = Shared::new(build(memory, seed));
            cards.push(card.clone());
            Box::new(card)
        });
        let mut attack = Attack::new(pair, seed);
        for number in 0..count {
            attack.frame();
            if number % MESSAGE == 0 {
                attack.message();
            }
            if number % LOOK == LOOK - 1 {
                attack.look();
            }
        }
        attack.message();
        attack.look();
        for card in &cards {
            let failures = card.0.borrow().failures();
            assert!(failures.is_empty(), "{}", failures.join("; "));
        }
        attack.report
    };
    quiet::caught(run).map_err(|what| format!("{around:?} world, seed {seed}: {what}"))
}

impl Attack {
    fn new(mut pair: Pair, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (qa, qb) = pair.connect(QpOptions::default(), QpOptions::default());
        let data: Vec<u8> = (0..NEIGHBOUR).map(|_| rng.u8(..)).collect();
        let source = pair.a.create_mr(&data, Rights::ALL);
        let target = pair.a.create_mr(&vec![0; NEIGHBOUR], Rights::ALL);
        pair.a.pd = DOMAIN;
        let open = pair.a.create_mr(&[0; BYTES], Rights::ALL);
        let closed = pair.a.create_mr(&[0x5a; BYTES], Rights::NONE);
        let for_good = Rights {
            invalidate: false,
            ..Rights::ALL
        };
        let kept = pair.a.create_mr(&[0; BYTES], for_good);
        let exceptions = Exceptions::open(&mut pair.a, rng.bool());
        let kinds = [qp_type::RC, qp_type::UC, qp_type::UD];
        pair.a.create_cq(12);
        let victims = kinds.map(|kind| {
            let options = QpOptions {
                qp_type: kind,
                recv_cq: 1,
                send_cq: 1,
                rq_log: 6,
                timeout: 0,
                ..QpOptions::default()
            };
            (pair.a.create_qp(options), kind)
        });
        let mut attack = Self {
            pair,
            rng,
            neighbour: [qa, qb],
            source,
            target,
            data,
            victims,
            psns: [0; 3],
            open,
            is_open: true,
            closed,
            kept,
            exceptions,
            report: Report::default(),
        };
        for victim in 0..3 {
            attack.revive(victim);
        }
        attack
    }

    /// Opens a queue pair of the attacker afresh.
    fn revive(&mut self, victim: usize) {
        let psn = self.rng.u32(..1 << 24);
        let peer = Peer {
            mac: ATTACKER,
            gid: Gid::from(std::net::IpAddr::from(ATTACKER_IP)),
            qpn: 0x666,
            psn,
        };
        let (qpn, _) = self.victims[victim];
        let pd = std::mem::replace(&mut self.pair.a.pd, DOMAIN);
        self.pair.a.connect(qpn, &peer);
        self.pair.a.pd = pd;
        self.psns[victim] = psn;
        for _ in 0..32 {
            let at = u64::from(self.rng.u32(..2048));
            let len = [16, 200, 1100, 2048][self.rng.usize(..4)];
            self.pair.a.post_recv(qpn, &[self.kept.sge(at, len)]);
        }
    }

    /// A SEND or a WRITE of this side's bytes to the other one, or a READ of them by it.
    fn message(&mut self) {
        let len = self.rng.usize(1..=4000);
        let at = self.rng.usize(..=NEIGHBOUR - len);
        let [qa, qb] = self.neighbour;
        let there = self.pair.b.create_mr(&vec![0; len], Rights::ALL);
        let here = self.source.sge(at as u64, len as u32);
        match self.rng.u8(..3) {
            0 => {
                self.pair.b.post_recv(qb, &[there.all()]);
                self.pair.a.post_send(qa, &Work::send(&[here]));
                self.done(Side::A);
                self.done(Side::B);
            }
            1 => {
                self.pair.a.post_send(qa, &Work::write(&[here], &there, 0));
                self.done(Side::A);
                self.pair.run(200);
            }
            _ => {
                let work = Work::read(&[there.all()], &self.source, at as u64);
                self.pair.b.post_send(qb, &work);
                self.done(Side::B);
            }
        }
        let found = self.pair.b.contents(&there);
        assert!(
            found == self.data[at..at + len],
            "bytes of the neighbour are wrong"
        );
        self.pair.b.deregister(&there);
        self.pair.b.number_regions(1);
        self.report.messages += 1;
    }

    fn done(&mut self, side: Side) {
        let end = self.pair.a.nic.now() + PATIENCE;
        loop {
            if let Some(cqe) = self.pair.host(side).poll(0) {
                return assert_eq!(cqe.status, status::SUCCESS, "{cqe:?} of the neighbour");
            }
            assert!(
                self.pair.a.nic.now() < end,
                "the neighbour's message does not end"
            );
            self.pair.run(8);
        }
    }

    /// The region that comes and goes does so.
    fn change(&mut self) {
        let host = &mut self.pair.a;
        let pd = std::mem::replace(&mut host.pd, DOMAIN);
        if self.is_open {
            host.deregister(&self.open);
        } else {
            self.open = host.register(self.open.addr, self.open.len, Rights::ALL);
        }
        host.pd = pd;
        self.is_open = !self.is_open;
    }

    /// Nothing that no key opens was touched; queue pairs that failed are opened again.
    fn look(&mut self) {
        assert!(
            self.pair.a.contents(&self.closed) == [0x5a; BYTES],
            "the closed region changed"
        );
        assert!(
            self.pair.a.contents(&self.source) == self.data,
            "the neighbour's source changed"
        );
        assert!(
            self.pair.a.contents(&self.target) == [0; NEIGHBOUR],
            "the neighbour's target changed"
        );
        self.pair.sent.clear();
        while let Some(cqe) = self.pair.a.poll(1) {
            assert_ne!(cqe.status, status::LOC_PROT_ERR, "{cqe:?}");
        }
        self.exceptions.look(&mut self.pair.a);
        if !self.is_open {
            self.change();
        }
        for victim in 0..3 {
            let (qpn, kind) = self.victims[victim];
            let state = self.pair.a.query(qpn);
            let states = (state.rq_state, state.sq_state);
            let lives = states == (RTS, RTS);
            assert!(
                kind == qp_type::RC || lives,
                "{states:?} of a queue pair of type {kind}"
            );
            if lives && self.rng.u8(..4) > 0 {
                self.psns[victim] = state.rq_psn;
            } else {
                self.report.revived += 1;
                self.revive(victim);
            }
        }
    }

    /// A frame of another protocol, of any length.
    fn exception(&mut self) {
        let lens = [60, 1984, 1985, 16_320, 16_321, 65_535, 65_536, 65_537];
        let len = match self.rng.u8(..2) {
            0 => lens[self.rng.usize(..lens.len())],
            _ => self.rng.usize(60..2000),
        };
        let mut frame = vec![self.rng.u8(..); len];
        frame[..6].copy_from_slice(&self.pair.a.mac.0);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        self.hand(&frame);
    }

    /// A message of two or three packets, as a peer sends it; its region may go meanwhile.
    fn long_message(&mut self) {
        use Opcode::{
            RcSendFirst, RcSendLastImm, RcSendMiddle, RcWriteFirst, RcWriteLastImm, RcWriteMiddle,
            UcSendFirst, UcSendLastImm, UcSendMiddle, UcWriteFirst, UcWriteLastImm, UcWriteMiddle,
        };
        let kinds = [
            (0, [RcWriteFirst, RcWriteMiddle, RcWriteLastImm]),
            (0, [RcSendFirst, RcSendMiddle, RcSendLastImm]),
            (1, [UcWriteFirst, UcWriteMiddle, UcWriteLastImm]),
            (1, [UcSendFirst, UcSendMiddle, UcSendLastImm]),
        ];
        let (victim, [first, middle, last]) = kinds[self.rng.usize(..kinds.len())];
        let all = [first, middle, last];
        let opcodes = if self.rng.bool() {
            &all[..]
        } else {
            &[first, last]
        };
        let rest = self.rng.usize(1..=1024);
        let dma_len = (opcodes.len() as u32 - 1) * 1024 + rest as u32;
        let (va, rkey) = (self.open.addr, self.open.key);
        for opcode in opcodes {
            let psn = self.psns[victim];
            self.psns[victim] = psn.wrapping_add(1);
            let from = Gid::from(std::net::IpAddr::from(ATTACKER_IP));
            let headers = Headers {
                eth: EthRepr {
                    dst: self.pair.a.mac,
                    src: ATTACKER,
                    vlan: None,
                },
                ip: Ip::between(from, self.pair.a.gid, 0, 0, 64).expect("both are IPv4"),
                udp: UdpRepr { src_port: 0xc123 },
                bth: BthRepr::new(*opcode, self.victims[victim].0, Psn::new(psn)),
                ext: Extensions {
                    reth: opcode.has_reth().then_some(RethRepr { va, rkey, dma_len }),
                    imm: opcode.has_imm().then_some(psn),
                    ..Extensions::default()
                },
            };
            let len = if opcode.is_end() { rest } else { 1024 };
            let mut frame = vec![0; headers.frame_len(len)];
            headers
                .build(&vec![0x42; len], &mut frame)
                .expect("extension headers follow the opcode");
            self.hand(&frame);
            if self.rng.u8(..4) == 0 {
                self.change();
            }
        }
    }

    fn hand(&mut self, frame: &[u8]) {
        self.exceptions.sent(frame);
        self.pair.a.nic.receive(frame);
        self.report.frames += 1;
        let wait = [4, 20, 60][self.rng.usize(..3)];
        self.pair.run(wait);
    }

    fn frame(&mut self) {
        match self.rng.u8(..128) {
            0 => return self.exception(),
            1 | 2 => self.change(),
            3..=5 => return self.long_message(),
            _ => {}
        }
        let rng = &mut self.rng;
        let victim = rng.usize(..3);
        let (qpn, kind) = self.victims[victim];
        let opcode = loop {
            let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
            if opcode.class() as u8 == kind || rng.u8(..8) == 0 {
                break opcode;
            }
        };
        let dest_qp = match rng.u8(..10) {
            0 => self.neighbour[0],
            1 => rng.u32(..1 << 24),
            _ => qpn,
        };
        let psn = self.psns[victim].wrapping_add(if rng.u8(..4) == 0 { rng.u32(..8) } else { 0 });
        self.psns[victim] = psn.wrapping_add(1);
        let regions = [
            self.open,
            self.open,
            self.kept,
            self.closed,
            self.source,
            self.target,
        ];
        let region = regions[rng.usize(..regions.len())];
        let rkey = if rng.u8(..8) == 0 {
            rng.u32(..)
        } else {
            region.key
        };
        let va = match rng.u8(..8) {
            0 => rng.u64(..),
            1 => region.addr.wrapping_sub(rng.u64(..16)),
            2 => region.addr + region.len - rng.u64(..16),
            _ => region.addr + rng.u64(..2048),
        };
        let len = if opcode.has_payload() {
            [0, 1, 256, 1024, 1025, rng.usize(..1100)][rng.usize(..6)]
        } else {
            0
        };
        let dma_len = if rng.u8(..4) == 0 {
            rng.u32(..)
        } else {
            len as u32
        };
        let headers = Headers {
            eth: EthRepr {
                dst: self.pair.a.mac,
                src: ATTACKER,
                vlan: (rng.u8(..8) == 0).then(|| rng.u16(..)),
            },
            ip: Ip::between(
                Gid::from(std::net::IpAddr::from(ATTACKER_IP)),
                self.pair.a.gid,
                rng.u8(..),
                0,
                64,
            )
            .expect("both are IPv4"),
            udp: UdpRepr {
                src_port: rng.u16(..),
            },
            bth: BthRepr {
                solicited: rng.bool(),
                ack_req: rng.bool(),
                ..BthRepr::new(opcode, dest_qp, Psn::new(psn))
            },
            ext: Extensions {
                deth: opcode.has_deth().then(|| DethRepr {
                    qkey: if rng.bool() {
                        QpOptions::default().qkey
                    } else {
                        rng.u32(..)
                    },
                    src_qp: rng.u32(..1 << 24),
                }),
                reth: opcode.has_reth().then_some(RethRepr { va, rkey, dma_len }),
                atomic: opcode.has_atomic_eth().then(|| AtomicEthRepr {
                    va: va & !7,
                    rkey,
                    swap_add: rng.u64(..),
                    compare: 0,
                }),
                aeth: opcode.has_aeth().then(|| AethRepr {
                    syndrome: Syndrome::from_bits(rng.u8(..)),
                    msn: rng.u32(..1 << 24),
                }),
                atomic_ack: opcode.has_atomic_ack().then(|| {
                    ferroce_proto::wire::AtomicAckEthRepr {
                        original: rng.u64(..),
                    }
                }),
                imm: opcode.has_imm().then(|| rng.u32(..)),
                ieth: opcode.has_ieth().then_some(rkey),
            },
        };
        let payload: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        let mut frame = vec![0; headers.frame_len(len)];
        headers
            .build(&payload, &mut frame)
            .expect("extension headers follow the opcode");
        if rng.u8(..3) == 0 {
            // Any bit behind the addresses, and an ICRC that goes with it.
            for _ in 0..rng.usize(1..4) {
                let end = (frame.len() - 4).min(80);
                let bit = rng.usize(8 * 12..8 * end);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            if let Some(roce) = Roce::locate(&frame) {
                roce.seal(&mut frame);
            }
        }
        if rng.u8(..16) == 0 {
            frame.truncate(rng.usize(14..=frame.len()));
        }
        self.hand(&frame);
    }
}
