//! The owner of queues: what the kernel gives it, and how its life ends.

use std::collections::BTreeMap;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use ferroce_proto::abi::eq::{EqCtx, Eqe, event};
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, SrqCtx, qp_type};
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::{Gid, Mac};
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights};

use super::victim::Victim;
use crate::scene::Scene;

use crate::scene::kernel::{Kernel, ok, plain};
use crate::scene::line::message;
use crate::scene::tapped::Watch;

/// Where its peers are.
pub(super) const STRANGER: Mac = Mac([0x52, 0x54, 0, 0, 0, 0x66]);
pub(super) const STRANGER_IP: [u8; 4] = [10, 0, 0, 66];
/// Numbers of its objects, which the next tenant has too.
pub(super) const QPNS: [u32; 3] = [0x20, 0x21, 0x22];
const CQN: u32 = 0x30;
const EQN: u8 = 3;
const SRQN: u32 = 5;
const PLACE: u32 = 0x300;
const DOMAIN: u32 = 0x660;
/// Bytes of its region.
pub(super) const BYTES: usize = 1 << 17;
/// Log2 of its rings: queues, completion queue. Large ones hold what is flushed for long, and every completion for a while.
const RINGS: [(u8, u8); 2] = [(4, 5), (7, 9)];
/// Log2 of its event queue, which it does not empty: a small one is full after a few events.
const EVENTS: [u8; 2] = [2, 5];
/// Bytes of a WQE of its shared receive queue, and of the entry for its number.
const SRQ_BYTES: usize = SLOT_BYTES + size_of::<u16>();

/// A process that holds the queues for a while.
pub(super) struct Tenant {
    /// In each word of its memory; the peers' queue pairs are numbered by it.
    pub(super) number: u32,
    pub(super) mark: u32,
    pub(super) victims: Vec<Victim>,
    pub(super) region: Mr,
    pub(super) srq: u64,
    pub(super) srq_numbers: u64,
    pub(super) srq_producer: u16,
    /// Log2 of the slots of its queues.
    pub(super) log: u8,
    pub(super) cq: CqCtx,
    pub(super) eq: EqCtx,
    /// Events that came.
    events: usize,
    /// The consumer record of its event queue moved: when its ring is full is not known.
    pub(super) has_moved: bool,
}

/// The queue pair that a tenant's sends go to.
pub(super) const fn peer_qpn(number: u32) -> u32 {
    0x1000 + number
}

impl Tenant {
    /// Has the kernel make everything, under the numbers that were another's.
    pub(super) fn open(number: u32, scene: &mut Scene, rng: &mut Rng) -> Self {
        let host = &mut scene.pair.a;
        let kernel = &mut scene.kernels[0];
        let mark = 0x0e0e_0000 | number & 0xffff;
        let (log, cq_log) = RINGS[rng.usize(..RINGS.len())];
        let eq_log = EVENTS[rng.usize(..EVENTS.len())];
        let eq = EqCtx {
            base: host.alloc(Eqe::BYTES << eq_log),
            consumer: host.alloc_record(),
            log_size: eq_log,
            vector: 7,
            moderation: 0,
        };
        let cq = CqCtx {
            base: host.alloc(Cqe::BYTES << cq_log),
            consumer: host.alloc_record(),
            log_size: cq_log,
            eqn: EQN,
        };
        let base = host.alloc(SRQ_BYTES << log);
        let srq = SrqCtx {
            base,
            numbers: base + (SLOT_BYTES << log) as u64,
            log_size: log,
            eqn: EQN,
            limit: 3,
            pd: DOMAIN,
            ..SrqCtx::default()
        };
        scene.watches[0].follow(cq.base, cq_log, Cqe::BYTES);
        scene.watches[0].follow(eq.base, eq_log, Eqe::BYTES);
        kernel.create(opcode::CREATE_EQ, EQN.into(), &eq.emit());
        kernel.create(opcode::CREATE_CQ, CQN, &cq.emit());
        kernel.create(opcode::CREATE_SRQ, SRQN, &srq.emit());
        let addr = host.alloc(BYTES);
        host.write(addr, &message(mark, number, BYTES));
        let region = Mr {
            addr,
            len: BYTES as u64,
            key: PLACE << 8 | (number & 0xff),
        };
        let pd = std::mem::replace(&mut host.pd, DOMAIN);
        kernel.register(host, &region, Rights::ALL);
        let kinds = [
            qp_type::RC,
            [qp_type::RC, qp_type::UC, qp_type::UC][rng.usize(..3)],
            [qp_type::RC, qp_type::UD, qp_type::UD][rng.usize(..3)],
        ];
        let victims = QPNS.into_iter().zip(kinds).map(|(qpn, kind)| {
            let options = QpOptions {
                send_cq: CQN as u16,
                recv_cq: CQN as u16,
                sq_log: log,
                rq_log: log,
                timeout: 1,
                retry_cnt: rng.u8(0..=3),
                rnr_retry: rng.u8(0..=3),
                psn: rng.u32(..1 << 24),
                srq: (qpn == QPNS[1]).then_some(SRQN as u16),
                // A turn of a packet or two, of what the rate allows, or of 32 kB.
                window: [0, 4, 4, 8][rng.usize(..4)],
                rate_limit: [0, 0, 0, 10_000][rng.usize(..4)],
                ..crate::scene::shape::options(kind, ferroce_proto::wire::Mtu::Mtu256)
            };
            host.create_qp_as(qpn, options);
            let psn = rng.u32(..1 << 24);
            let peer = peer(number, psn);
            if kind == qp_type::UD {
                kernel.create(opcode::WRITE_AH, qpn, &host.handle(&peer).emit());
            }
            kernel.open(host, qpn, &peer);
            let [sq, _, rq] = host.images(qpn, &peer);
            let rings = [SqCtx::parse(&sq).sq_base, RqCtx::parse(&rq).rq_base];
            Victim::new(qpn, kind, rings, psn)
        });
        let victims = victims.collect();
        host.pd = pd;
        // The producer index of a shared receive queue is the host's.
        host.nic.write32(ferroce_proto::abi::doorbell::srq(SRQN), 0);
        Self {
            number,
            mark,
            victims,
            region,
            srq: srq.base,
            srq_numbers: srq.numbers,
            srq_producer: 0,
            log,
            cq,
            eq,
            events: 0,
            has_moved: false,
        }
    }

    /// The kernel takes everything back; `gently` by way of ERR, `early` the region first.
    pub(super) fn die(&self, scene: &mut Scene, gently: bool, early: bool) {
        let kernel = &mut scene.kernels[0];
        if early {
            kernel.deregister(self.region);
        }
        for victim in &self.victims {
            if gently {
                kernel.fail(victim.qpn);
            }
            let ended = Rc::clone(&victim.ended);
            kernel.reset(victim.qpn, move || ended.set(true));
        }
        if !early {
            kernel.deregister(self.region);
        }
        let rings = [
            (opcode::DESTROY_SRQ, SRQN, self.srq, SRQ_BYTES << self.log),
            (
                opcode::DESTROY_CQ,
                CQN,
                self.cq.base,
                Cqe::BYTES << self.cq.log_size,
            ),
            (
                opcode::DESTROY_EQ,
                EQN.into(),
                self.eq.base,
                Eqe::BYTES << self.eq.log_size,
            ),
        ];
        let records = [None, Some(self.cq.consumer), Some(self.eq.consumer)];
        for ((opcode, index, base, bytes), record) in rings.into_iter().zip(records) {
            kernel.order(plain(opcode, index), &[], move |host, answer| {
                ok(host, answer);
                host.take_back(base, bytes as u64);
                if let Some(record) = record {
                    host.take_back(record, 4);
                }
            });
        }
    }

    /// Where the bus may fail that only it would notice: its memory.
    pub(super) fn places(&self) -> Vec<std::ops::Range<u64>> {
        let ring = |base: u64, bytes: usize| base..base + bytes as u64;
        let mut places = vec![
            ring(self.region.addr, BYTES),
            ring(self.srq, SRQ_BYTES << self.log),
            ring(self.cq.base, Cqe::BYTES << self.cq.log_size),
            ring(self.cq.consumer, 4),
            ring(self.eq.base, Eqe::BYTES << self.eq.log_size),
            ring(self.eq.consumer, 4),
        ];
        for victim in &self.victims {
            places.push(ring(victim.sq, SLOT_BYTES << self.log));
            places.push(ring(victim.rq, SLOT_BYTES << self.log));
        }
        places
    }

    /// Its arm doorbell.
    pub(super) fn arm(host: &mut Host, value: u32) {
        host.nic
            .write32(ferroce_proto::abi::doorbell::cq(CQN), value);
    }

    /// The doorbell of its shared receive queue.
    pub(super) fn ring_srq(&self, host: &mut Host) {
        let doorbell = ferroce_proto::abi::doorbell::srq(SRQN);
        host.nic.write32(doorbell, self.srq_producer.into());
    }

    /// Completions that came since: each of a queue pair of its own, each WQE at most once, and none that was not posted.
    pub(super) fn completions(&mut self, watch: &Rc<Watch>) -> u64 {
        let mut count = 0;
        self.victims.iter_mut().for_each(Victim::look);
        while let Some(cqe) = watch.take(self.cq.base) {
            count += 1;
            let number = self.number;
            let victim = self.victims.iter_mut().find(|victim| victim.qpn == cqe.qpn);
            let victim = victim.unwrap_or_else(|| panic!("tenant {number}: {cqe:?} of another"));
            let shared = cqe.recv && cqe.qpn == QPNS[1];
            if !shared && victim.sane {
                victim.completed(number, &cqe);
            }
        }
        self.events(watch);
        count
    }

    /// Events that came since: while its consumer record stands no more than the ring has room for, and none of a queue pair
    /// whose end was answered. One that found its ring full comes later.
    fn events(&mut self, watch: &Rc<Watch>) {
        while let Some(eqe) = watch.event(self.eq.base) {
            self.events += 1;
            if self.has_moved {
                continue;
            }
            let fits = self.events <= 1 << self.eq.log_size;
            assert!(fits, "tenant {}: {eqe:?} in a full ring", self.number);
            let is_of = |victim: &&Victim| victim.qpn == eqe.object;
            let of_another = [event::COMPLETION, event::CQ_ERROR, event::SRQ_LIMIT];
            if let Some(victim) = self.victims.iter().find(is_of)
                && !of_another.contains(&eqe.event)
            {
                let number = self.number;
                assert!(!victim.closed, "tenant {number}: {eqe:?} behind its end");
            }
        }
        for victim in &mut self.victims {
            victim.closed = victim.ended.get();
        }
    }

    /// The kernel changes the path of its datagrams.
    pub(super) fn change_path(&self, kernel: &mut Kernel, rng: &mut Rng) {
        let peer = peer(self.number, 0);
        let path = AvCtx {
            vlan_valid: rng.bool(),
            vlan: rng.u16(1..4095),
            pd: DOMAIN,
            ..peer.path()
        };
        kernel.create(opcode::WRITE_AH, QPNS[2], &path.emit());
    }

    /// The kernel sets the limit of its shared receive queue.
    pub(super) fn arm_srq(&self, kernel: &mut Kernel, limit: u16) {
        let limit = SrqCtx {
            limit,
            ..SrqCtx::default()
        };
        kernel.create(opcode::ARM_SRQ, SRQN, &limit.emit());
    }

    /// Posted send slots of each queue pair that no completion has spoken of.
    pub(super) fn open_sends(&self) -> BTreeMap<u32, u16> {
        let open = self.victims.iter().map(|victim| {
            let done = victim.last[0].map_or(0, |last| last.wrapping_add(1));
            (victim.qpn, victim.producer.wrapping_sub(done))
        });
        open.collect()
    }
}

/// The peer of a tenant.
fn peer(number: u32, psn: u32) -> Peer {
    Peer {
        mac: STRANGER,
        gid: Gid::from(std::net::IpAddr::from(STRANGER_IP)),
        qpn: peer_qpn(number),
        psn,
    }
}

/// A change of the state of a send queue.
pub(super) fn send_state(qpn: u32, sq_state: u8) -> CmdHead {
    CmdHead {
        qp_sq_state: true,
        sq_state,
        ..plain(opcode::MODIFY_QP, qpn)
    }
}

/// A QUERY of a queue pair.
pub(super) fn query(qpn: u32) -> CmdHead {
    plain(opcode::QUERY_QP, qpn)
}
