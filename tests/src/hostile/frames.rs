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
use ferroce_proto::wire::{Gid, Mac};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::testhost::{Mr, Pair, Peer, QpOptions, Rights, Side, Work};

mod forged;

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
    /// A region that comes and goes, one that no peer may take or touch, and that of all receives.
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
            let runs = states == (RTS, RTS);
            assert!(
                kind == qp_type::RC || runs,
                "{states:?} of a queue pair of type {kind}"
            );
            if runs && self.rng.u8(..4) > 0 {
                self.psns[victim] = state.rq_psn;
            } else {
                self.report.revived += 1;
                self.revive(victim);
            }
        }
    }
}
