//! Two hosts with their cards on a wire, set up as a scenario says.

use std::cell::RefCell;
use std::rc::Rc;

use ferroce_proto::abi::cmd::{CmdHead, GidEntry, opcode, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, state};
use ferroce_proto::abi::regs::Params;
use ferroce_sim::link::Config;
use ferroce_sim::random::Chance;
use ferroce_sim::scoreboard::Scoreboard;
use ferroce_sim::testhost::{Host, QpOptions, Side};
use ferroce_sim::world::{NodeId, World};

use super::Card;
use super::numbers::Numbers;
use super::scenario::{Connection, Piece, Scenario, region};
use super::tap::Tap;
use crate::shared::Shared;

/// Both sides, in the order of arrays.
pub(super) const SIDES: [Side; 2] = [Side::A, Side::B];

/// The other side.
pub(super) const fn other(side: Side) -> Side {
    match side {
        Side::A => Side::B,
        Side::B => Side::A,
    }
}

/// Bytes around a region that must not change.
const GUARD: u64 = 80;

/// Cycles a frame that is held back waits at most for others to pass.
const HOLD_LIMIT: u64 = 1500;

/// A region as registered, and the memory around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// First byte of the region.
    pub(super) addr: u64,
    /// Bytes of the region.
    pub(super) len: u32,
    /// lkey and rkey.
    pub(super) key: u32,
    /// First byte of the memory.
    start: u64,
    /// Bytes of the memory.
    bytes: usize,
}

/// A connection as set up; arrays by side.
pub(super) struct Link {
    pub(super) qpn: [u32; 2],
    pub(super) regions: [[Place; region::COUNT]; 2],
}

/// Two hosts with their cards on a wire.
pub(super) struct Bench {
    pub(super) hosts: [Host; 2],
    pub(super) nodes: [NodeId; 2],
    pub(super) world: World,
    pub(super) links: Vec<Link>,
    pub(super) tap: Rc<RefCell<Tap>>,
    pub(super) scoreboard: Rc<RefCell<Scoreboard>>,
    pub(super) numbers: Numbers,
}

impl Bench {
    /// Sets everything up; connections are in RTS.
    pub(super) fn new(scenario: &Scenario, params: &Params, cards: [&Card; 2]) -> Self {
        let numbers = Numbers::draw(scenario, params);
        let mut world = World::new();
        let mut nodes = Vec::new();
        let hosts = SIDES.map(|side| {
            let card = cards[side as usize];
            let last = side as u8 + 1;
            let mut shared = None;
            let host = Host::new(
                |memory| {
                    let nic = (card.build)(memory, scenario.seed ^ u64::from(last));
                    let nic = Shared::new(nic);
                    shared = Some(nic.clone());
                    Box::new(nic)
                },
                numbers.mac[side as usize],
                numbers.ip[side as usize],
            );
            let nic = shared.expect("the host builds its card");
            nodes.push(world.add(format!("{side:?}"), nic));
            host
        });
        let nodes = [nodes[0], nodes[1]];
        let wire = |side: u64| Config {
            latency: scenario.wire.latency,
            loss: chance(scenario.wire.loss),
            duplication: chance(scenario.wire.duplication),
            reordering: chance(scenario.wire.reordering),
            corruption: chance(scenario.wire.corruption),
            hold_limit: HOLD_LIMIT,
            seed: scenario.seed.wrapping_mul(2).wrapping_add(side),
            ..Config::default()
        };
        world.connect(nodes[0], nodes[1], wire(0), wire(1));
        let tap = Rc::new(RefCell::new(Tap::default()));
        let scoreboard = Rc::new(RefCell::new(Scoreboard::new()));
        world.observe(tap.clone());
        world.observe(scoreboard.clone());
        let mut bench = Self {
            hosts,
            nodes,
            world,
            links: Vec::new(),
            tap,
            scoreboard,
            numbers,
        };
        for host in &mut bench.hosts {
            host.nic.hurry(true);
        }
        bench.set_up(scenario);
        for host in &mut bench.hosts {
            host.nic.hurry(false);
        }
        bench
    }

    fn set_up(&mut self, scenario: &Scenario) {
        let count = scenario.connections.len();
        for side in SIDES {
            let host = &mut self.hosts[side as usize];
            for cq in 0..scenario.cqs {
                let cqn = self.numbers.cqn[side as usize][usize::from(cq)];
                host.create_cq_as(cqn, cq_log(scenario, side, cq));
            }
            let gid = GidEntry {
                gid: host.gid.to_le_bits(),
                valid: true,
                ipv6: scenario.ipv6,
            };
            host.expect(opcode::SET_GID, 0, &GidEntry::default().emit());
            let index = self.numbers.gid[side as usize];
            host.expect(opcode::SET_GID, index.into(), &gid.emit());
        }
        let qpns = SIDES.map(|side| {
            let mut qpns = vec![0; count];
            let order: Vec<_> = match side {
                Side::A => (0..count).collect(),
                Side::B => (0..count).rev().collect(),
            };
            for connection in order {
                let numbers = &self.numbers;
                let options = options(&scenario.connections[connection], side, numbers);
                let qpn = numbers.qpn[side as usize][connection];
                qpns[connection] = self.hosts[side as usize].create_qp_as(qpn, options);
            }
            qpns
        });
        let mut rng = fastrand::Rng::with_seed(scenario.seed);
        for (connection, c) in scenario.connections.iter().enumerate() {
            let qpn = [qpns[0][connection], qpns[1][connection]];
            let regions = SIDES.map(|side| {
                std::array::from_fn(|kind| self.region(side, (connection, c), kind, &mut rng))
            });
            self.links.push(Link { qpn, regions });
            self.connect(connection, c, c.psn);
        }
    }

    /// Allocates, fills and registers a region.
    fn region(
        &mut self,
        side: Side,
        (connection, c): (usize, &Connection),
        kind: usize,
        rng: &mut fastrand::Rng,
    ) -> Place {
        let index = self.numbers.region[side as usize][connection] + kind as u32;
        let pd = self.numbers.paths[connection].pd;
        let host = &mut self.hosts[side as usize];
        let bytes = usize::from(c.misaligned) + c.region_len as usize + 2 * GUARD as usize;
        let start = host.alloc(bytes);
        // Words that atomics compare hold what they may guess.
        let any = kind != region::ATOMIC;
        let contents: Vec<u8> = (0..bytes)
            .map(|_| if any { rng.u8(..) } else { 0 })
            .collect();
        host.write(start, &contents);
        let addr = start + GUARD + u64::from(c.misaligned);
        let key = index << 8 | u32::from(rng.u8(..));
        let is = |kinds: &[usize]| kinds.contains(&kind);
        let may_write = is(&[region::TARGET, region::FOREIGN]);
        let ctx = MrCtx {
            base: addr,
            last: addr + u64::from(c.region_len) - 1,
            key,
            pd: pd + u32::from(kind == region::FOREIGN),
            valid: true,
            local_write: may_write || kind == region::RESULT,
            remote_write: may_write,
            remote_read: is(&[region::SOURCE, region::FOREIGN]),
            remote_atomic: is(&[region::ATOMIC, region::FOREIGN]),
            ..MrCtx::default()
        };
        host.expect(opcode::WRITE_MR, index, &ctx.emit());
        Place {
            addr,
            len: c.region_len,
            key,
            start,
            bytes,
        }
    }

    /// Takes both queue pairs of a connection to RTS.
    pub(super) fn connect(&mut self, connection: usize, c: &Connection, psn: [u32; 2]) {
        let qpn = self.links[connection].qpn;
        for side in SIDES {
            let (own, far) = (side as usize, other(side) as usize);
            if side == Side::B && !c.reachable {
                continue;
            }
            let mut peer = self.hosts[far].peer(qpn[far]);
            peer.psn = psn[far];
            let host = &mut self.hosts[own];
            host.reset_qp(qpn[own]);
            let [sq, av, rq] = host.images(qpn[own], &peer);
            let path = self.numbers.paths[connection];
            let sq = SqCtx {
                ot_base: self.numbers.pool[own][connection],
                pd: path.pd,
                ..SqCtx::parse(&sq)
            };
            let av = path.of(AvCtx::parse(&av), self.numbers.gid[own]);
            let rq = RqCtx {
                remote_write: c.remote_write,
                pd: path.pd,
                pkey: path.pkey,
                sgid_index: self.numbers.gid[own],
                ..RqCtx::parse(&rq)
            };
            let head = CmdHead {
                opcode: opcode::MODIFY_QP,
                index: qpn[own],
                qp_sq: true,
                qp_av: true,
                qp_rq: true,
                qp_sq_state: true,
                sq_reset: true,
                sq_state: state::RTS,
                sq_psn: psn[own],
                qp_rq_state: true,
                rq_reset: true,
                rq_state: state::RTS,
                rq_psn: psn[far],
                ..CmdHead::default()
            };
            let completion = host.command(head, &[sq.emit(), av.emit(), rq.emit()]);
            assert_eq!(completion.status, status::OK, "connection {connection}");
        }
    }

    /// Waits until all register writes so far have taken effect.
    pub(super) fn barrier(&mut self, side: Side) {
        self.hosts[side as usize].read32(ferroce_proto::abi::regs::SCRATCH);
    }

    /// What a region and the memory around it hold.
    pub(super) fn contents(&self, side: Side, place: &Place) -> Vec<u8> {
        self.hosts[side as usize].read(place.start, place.bytes)
    }

    /// Where a piece is.
    pub(super) fn place(&self, connection: usize, side: Side, piece: &Piece) -> Place {
        self.links[connection].regions[side as usize][piece.region]
    }
}

fn chance(per_mille: u16) -> Chance {
    match per_mille {
        0 => Chance::NEVER,
        n => Chance::new(f64::from(n) / 1000.0),
    }
}

fn options(c: &Connection, side: Side, numbers: &Numbers) -> QpOptions {
    let side = side as usize;
    let cqn = |cq: u8| numbers.cqn[side][usize::from(cq)];
    QpOptions {
        qp_type: c.qp_type,
        max_rd_atomic: c.rd_atomic,
        window: c.window,
        rate_limit: c.rate,
        swift: c.swift,
        mtu: c.mtu,
        send_cq: cqn(c.send_cq[side]),
        recv_cq: cqn(c.recv_cq[side]),
        sq_log: c.sq_log[side],
        rq_log: c.rq_log[side],
        rq_stride: c.rq_stride,
        ot_log: c.ot_log[side],
        timeout: c.timeout[side],
        retry_cnt: c.retry_cnt,
        rnr_retry: c.rnr_retry,
        min_rnr_timer: c.rnr_timer,
        psn: c.psn[side],
        vlan: c.vlan,
        ..QpOptions::default()
    }
}

/// Log2 of a ring that takes a CQE for every WQE there may be: it wraps round and never overflows.
fn cq_log(scenario: &Scenario, side: Side, cq: u8) -> u8 {
    let side = side as usize;
    let entries: u32 = scenario
        .connections
        .iter()
        .map(|c| {
            let send = if c.send_cq[side] == cq {
                1 << c.sq_log[side]
            } else {
                0
            };
            let recv = if c.recv_cq[side] == cq {
                1 << c.rq_log[side]
            } else {
                0
            };
            send + recv
        })
        .sum();
    entries.max(2).next_power_of_two().ilog2() as u8
}
