//! The owner of queues: what the kernel gives it, and how its life ends.

use std::collections::BTreeMap;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use ferroce_proto::abi::eq::{EqCtx, Eqe};
use ferroce_proto::abi::qpc::{RqCtx, SqCtx, SrqCtx, qp_type};
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_proto::wire::{Gid, Mac};
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights};

use crate::scene::Scene;
use crate::scene::kernel::{ok, plain};
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
pub(super) const BYTES: usize = 16384;
/// Log2 of its rings.
pub(super) const LOG: u8 = 4;
const CQ_LOG: u8 = 5;

/// A queue pair of the owner.
pub(super) struct Victim {
    pub(super) qpn: u32,
    pub(super) kind: u8,
    pub(super) sq: u64,
    pub(super) rq: u64,
    pub(super) producer: u16,
    pub(super) rq_producer: u16,
    /// Each doorbell went forward, within the ring.
    pub(super) sane: bool,
    /// PSN that a peer sends next.
    pub(super) psn: u32,
    /// Index of the last completion of either queue.
    pub(super) last: [Option<u16>; 2],
}

/// A process that holds the queues for a while.
pub(super) struct Tenant {
    /// In each word of its memory; the peers' queue pairs are numbered by it.
    pub(super) number: u32,
    pub(super) mark: u32,
    pub(super) victims: Vec<Victim>,
    pub(super) region: Mr,
    pub(super) srq: u64,
    pub(super) srq_producer: u16,
    pub(super) cq: CqCtx,
    pub(super) eq: EqCtx,
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
        let eq = EqCtx {
            base: host.alloc(Eqe::BYTES << CQ_LOG),
            consumer: host.alloc_record(),
            log_size: CQ_LOG,
            vector: 7,
            moderation: 0,
        };
        let cq = CqCtx {
            base: host.alloc(Cqe::BYTES << CQ_LOG),
            consumer: host.alloc_record(),
            log_size: CQ_LOG,
            eqn: EQN,
        };
        let srq = SrqCtx {
            base: host.alloc(SLOT_BYTES << LOG),
            log_size: LOG,
            eqn: EQN,
            limit: 3,
            pd: DOMAIN,
            ..SrqCtx::default()
        };
        scene.watches[0].follow(cq.base, CQ_LOG);
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
            [qp_type::RC, qp_type::UC][rng.usize(..2)],
            [qp_type::RC, qp_type::UD][rng.usize(..2)],
        ];
        let victims = QPNS.into_iter().zip(kinds).map(|(qpn, kind)| {
            let options = QpOptions {
                send_cq: CQN as u16,
                recv_cq: CQN as u16,
                sq_log: LOG,
                rq_log: LOG,
                timeout: 1,
                retry_cnt: rng.u8(0..=3),
                rnr_retry: rng.u8(0..=3),
                psn: rng.u32(..1 << 24),
                srq: (qpn == QPNS[1]).then_some(SRQN as u16),
                ..crate::scene::options(kind, ferroce_proto::wire::Mtu::Mtu256)
            };
            host.create_qp_as(qpn, options);
            let psn = rng.u32(..1 << 24);
            let peer = Peer {
                mac: STRANGER,
                gid: Gid::from(std::net::IpAddr::from(STRANGER_IP)),
                qpn: peer_qpn(number),
                psn,
            };
            if kind == qp_type::UD {
                kernel.create(opcode::WRITE_AH, qpn, &peer.path().emit());
            }
            kernel.open(host, qpn, &peer);
            let [sq, _, rq] = host.images(qpn, &peer);
            Victim {
                qpn,
                kind,
                sq: SqCtx::parse(&sq).sq_base,
                rq: RqCtx::parse(&rq).rq_base,
                producer: 0,
                rq_producer: 0,
                sane: true,
                psn,
                last: [None, None],
            }
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
            srq_producer: 0,
            cq,
            eq,
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
            kernel.reset(victim.qpn, || {});
        }
        if !early {
            kernel.deregister(self.region);
        }
        let rings = [
            (opcode::DESTROY_SRQ, SRQN, self.srq, SLOT_BYTES << LOG),
            (opcode::DESTROY_CQ, CQN, self.cq.base, Cqe::BYTES << CQ_LOG),
            (
                opcode::DESTROY_EQ,
                EQN.into(),
                self.eq.base,
                Eqe::BYTES << CQ_LOG,
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
            ring(self.srq, SLOT_BYTES << LOG),
            ring(self.cq.base, Cqe::BYTES << CQ_LOG),
            ring(self.cq.consumer, 4),
            ring(self.eq.base, Eqe::BYTES << CQ_LOG),
            ring(self.eq.consumer, 4),
        ];
        for victim in &self.victims {
            places.push(ring(victim.sq, SLOT_BYTES << LOG));
            places.push(ring(victim.rq, SLOT_BYTES << LOG));
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
        while let Some(cqe) = watch.take(self.cq.base) {
            count += 1;
            let number = self.number;
            let victim = self.victims.iter_mut().find(|victim| victim.qpn == cqe.qpn);
            let victim = victim.unwrap_or_else(|| panic!("tenant {number}: {cqe:?} of another"));
            let shared = cqe.recv && cqe.qpn == QPNS[1];
            if shared || !victim.sane {
                continue;
            }
            let producer = if cqe.recv {
                victim.rq_producer
            } else {
                victim.producer
            };
            let before = victim.last[usize::from(cqe.recv)].map_or(0, |last| last.wrapping_add(1));
            // Posted are those from the one behind the last that completed to the producer index.
            let posted = producer.wrapping_sub(before);
            assert!(
                cqe.wqe_index.wrapping_sub(before) < posted,
                "tenant {number}: {cqe:?}: a WQE that was not posted, or completed before; {before} to {producer} are posted"
            );
            victim.last[usize::from(cqe.recv)] = Some(cqe.wqe_index);
        }
        count
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

/// A QUERY of a queue pair.
pub(super) fn query(qpn: u32) -> CmdHead {
    plain(opcode::QUERY_QP, qpn)
}
