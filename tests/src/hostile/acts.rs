//! What an owner of queues does to them: steps that a seed draws, each by itself, so that any of them can be left out.

use fastrand::Rng;
use ferroce_proto::abi::cmd::{GidEntry, opcode as cmd};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::SLOT_BYTES;
use ferroce_sim::testhost::{Host, Mr};

use super::owner::Owner;
use super::tenant::{Tenant, query};
use super::works::{SHORT, USUAL, sound, spoilt};
use super::{stranger, tenant};
use crate::scene::Scene;

/// A step of an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    /// Cycles before it.
    wait: u16,
    what: What,
    /// Seed of the rest of it.
    draw: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A send that makes sense, or nearly.
    Post,
    /// A receive, of the queue pair or the shared queue.
    Receive,
    /// A WQE is written over, or its bytes change at the card's n-th read of it.
    Rewrite,
    /// A producer index that makes no sense.
    Ring,
    /// A consumer record of the completion queue or the event queue moves.
    Record,
    /// The completion queue is armed, often.
    Arm,
    /// The peer answers what was not asked.
    Lie,
    /// The peer asks.
    Request,
    /// The kernel asks for the state of a queue pair.
    Query,
    /// The kernel has a send queue drain.
    Drain,
    /// The kernel has a send queue go on that drained or failed, one that failed first of all.
    Resume,
    /// The kernel changes the path of datagrams that are under way.
    Path,
    /// The kernel writes a GID.
    Gid,
    /// The kernel sets the limit of the shared receive queue.
    Limit,
    /// The owner dies; another gets its numbers.
    Die,
}

const WHAT: [(What, u8); 15] = [
    (What::Post, 22),
    (What::Receive, 8),
    (What::Rewrite, 22),
    (What::Ring, 3),
    (What::Record, 6),
    (What::Arm, 3),
    (What::Lie, 10),
    (What::Request, 14),
    (What::Query, 3),
    (What::Drain, 1),
    (What::Resume, 10),
    (What::Path, 4),
    (What::Gid, 1),
    (What::Limit, 2),
    (What::Die, 3),
];

/// The acts of a seed.
pub(super) fn plan(count: u64, seed: u64) -> Vec<Act> {
    let mut rng = Rng::with_seed(seed);
    let weights: u8 = WHAT.iter().map(|(_, weight)| weight).sum();
    let act = |_| {
        let mut place = rng.u8(..weights);
        let chosen = WHAT.iter().find(|(_, weight)| {
            let here = place < *weight;
            place = place.wrapping_sub(*weight);
            here
        });
        Act {
            wait: rng.u16(..128),
            what: chosen.expect("within the weights").0,
            draw: rng.u64(..),
        }
    };
    (0..count).map(act).collect()
}

impl Act {
    /// Does it.
    pub(super) fn apply(self, owner: &mut Owner, scene: &mut Scene) {
        let mut rng = Rng::with_seed(self.draw);
        let rng = &mut rng;
        owner.wait(scene, self.wait.into());
        // What needs no doorbell goes on while the kernel takes all back.
        let after_end = [What::Rewrite, What::Record, What::Lie, What::Request];
        if !owner.is_alive(scene) && !after_end.contains(&self.what) {
            owner.survive(scene);
        }
        match self.what {
            What::Post => post(owner, scene, rng),
            What::Receive => receive(&mut owner.tenant, &mut scene.pair.a, rng),
            What::Rewrite => rewrite(&mut owner.tenant, scene, rng),
            What::Ring => {
                ring(&mut owner.tenant, rng);
                owner.rings(scene);
            }
            What::Record => record(&mut owner.tenant, &scene.pair.a, rng),
            What::Arm => {
                let index = rng.u32(..);
                let times = [1, 16, 80, 600][rng.usize(..4)];
                (0..times).for_each(|_| Tenant::arm(&mut scene.pair.a, index));
            }
            What::Lie => {
                let place = rng.usize(..3);
                let near = owner.asked[place];
                let victim = &owner.tenant.victims[place];
                let frame = stranger::lie(&scene.pair.a, victim, near, rng);
                scene.pair.a.nic.receive(&frame);
            }
            What::Request => {
                for _ in 0..rng.u8(1..=4) {
                    let frame = stranger::request(&scene.pair.a, &mut owner.tenant, rng);
                    scene.pair.a.nic.receive(&frame);
                }
            }
            What::Query => {
                let qpn = tenant::QPNS[rng.usize(..3)];
                scene.kernels[0].order(query(qpn), &[], crate::scene::kernel::ok);
            }
            What::Drain => {
                let qpn = tenant::QPNS[rng.usize(..3)];
                let head = tenant::send_state(qpn, state::SQD);
                scene.kernels[0].order(head, &[], crate::scene::kernel::ok);
            }
            What::Resume => {
                let victims = &owner.tenant.victims;
                let failed = victims.iter().find(|victim| victim.may_go_on());
                let any = &victims[rng.usize(..3)];
                failed.unwrap_or(any).resume(&mut scene.kernels[0]);
            }
            What::Path => {
                for _ in 0..rng.u8(1..=4) {
                    datagrams(owner, scene, rng);
                    owner.tenant.change_path(&mut scene.kernels[0], rng);
                    owner.wait(scene, rng.u64(..400));
                }
            }
            What::Gid => {
                let gid = GidEntry {
                    gid: rng.u128(..),
                    valid: true,
                    ipv6: true,
                };
                scene.kernels[0].create(cmd::SET_GID, rng.u32(2..8), &gid.emit());
            }
            What::Limit => owner.tenant.arm_srq(&mut scene.kernels[0], rng.u16(..16)),
            What::Die => owner.die(scene, rng),
        }
    }
}

/// A region of a bystander.
fn aim(tenant: &Tenant, scene: &Scene) -> Mr {
    scene.lines[0].memory(0).unwrap_or(tenant.region)
}

/// Place of a WQE in a ring of 2^`log` slots.
fn at(log: u8, base: u64, index: u16) -> u64 {
    base + (u64::from(index) & ((1 << log) - 1)) * SLOT_BYTES as u64
}

fn post(owner: &mut Owner, scene: &mut Scene, rng: &mut Rng) {
    let place = rng.usize(..3);
    let kind = owner.tenant.victims[place].kind;
    // Several at once, now and then, or as many short ones as have room; none that no completion tells of before the first
    // one came.
    let (count, most) = match rng.u8(..8) {
        0 | 1 => (100, SHORT),
        2 | 3 => (6, USUAL),
        _ => (1, USUAL),
    };
    for _ in 0..count {
        let slots = match rng.u8(..8) {
            0 => spoilt(&owner.tenant, &aim(&owner.tenant, scene), kind, rng),
            _ => {
                let mut work = sound(&owner.tenant, kind, most, rng);
                let began = owner.tenant.victims[place].last[0].is_some();
                work.head.signaled = !began || rng.u8(..3) > 0;
                work.slots()
            }
        };
        owner.post(scene, place, &slots);
    }
}

/// A few datagrams, if the owner has a queue pair for them.
fn datagrams(owner: &mut Owner, scene: &mut Scene, rng: &mut Rng) {
    let place = owner
        .tenant
        .victims
        .iter()
        .position(|v| v.kind == qp_type::UD);
    let Some(place) = place else {
        return;
    };
    for _ in 0..rng.u8(..8) {
        let slots = sound(&owner.tenant, qp_type::UD, SHORT, rng).slots();
        owner.post(scene, place, &slots);
    }
}

fn receive(tenant: &mut Tenant, host: &mut Host, rng: &mut Rng) {
    let (region, log, place) = (tenant.region, tenant.log, rng.usize(..3));
    let (shared, numbers) = (place == 1, tenant.srq_numbers);
    let (base, producer) = match shared {
        true => (tenant.srq, &mut tenant.srq_producer),
        false => {
            let victim = &mut tenant.victims[place];
            (victim.rq, &mut victim.rq_producer)
        }
    };
    for _ in 0..rng.u8(1..=4) {
        let sge = region.sge(rng.u64(..8192), 512 + 64);
        let mut bytes = [0; SLOT_BYTES];
        bytes[0] = if rng.u8(..8) == 0 { rng.u8(..) } else { 1 };
        bytes[4..8].copy_from_slice(&sge.length.to_le_bytes());
        bytes[16..32].copy_from_slice(&sge.emit());
        if rng.u8(..16) == 0 {
            bytes[rng.usize(16..32)] ^= 1 << rng.u8(..8);
        }
        host.write(at(log, base, *producer), &bytes);
        if shared {
            // some are there twice, some are none
            let number = match rng.u8(..8) {
                0 => rng.u16(..),
                1 => producer.wrapping_sub(1),
                _ => *producer,
            };
            let entry = u64::from(*producer) & ((1 << log) - 1);
            host.write(numbers + 2 * entry, &number.to_le_bytes());
        }
        *producer = producer.wrapping_add(1);
    }
    let value = u32::from(*producer);
    match shared {
        true => tenant.ring_srq(host),
        false => host
            .nic
            .write32(doorbell::rq(tenant.victims[place].qpn), value),
    }
}

fn rewrite(tenant: &mut Tenant, scene: &Scene, rng: &mut Rng) {
    let place = rng.usize(..3);
    let kind = tenant.victims[place].kind;
    // One that is sound, and says less than was sent of it; or anything.
    let shrinks = rng.bool();
    let slots = match shrinks {
        true => sound(tenant, kind, SHORT, rng).slots(),
        false => spoilt(tenant, &aim(tenant, scene), kind, rng),
    };
    let victim = &mut tenant.victims[place];
    // What was the rest of a WQE may be the head of one now.
    victim.wants_more |= victim.last[0].is_none();
    let near = victim.producer.wrapping_sub(4).wrapping_add(rng.u16(..12));
    let index = victim.long.filter(|_| shrinks).unwrap_or(near);
    let aimed = rng.u8(..3) > 0;
    for (slot, bytes) in slots.iter().enumerate() {
        let at = at(tenant.log, victim.sq, index.wrapping_add(slot as u16));
        match aimed {
            true => scene.watches[0].ambush(at, rng.u32(1..=3), bytes.to_vec()),
            false => scene.pair.a.write(at, bytes),
        }
    }
}

fn ring(tenant: &mut Tenant, rng: &mut Rng) {
    let by = [
        0,
        rng.u16(1..=20),
        rng.u16(..),
        0u16.wrapping_sub(rng.u16(1..=64)),
    ];
    let by = by[rng.usize(..by.len())];
    let victim = &mut tenant.victims[rng.usize(..3)];
    if by != 0 {
        victim.sane = false;
    }
    match rng.u8(..3) {
        0 => victim.rq_producer = victim.rq_producer.wrapping_add(by),
        1 => victim.producer = victim.producer.wrapping_add(by),
        _ => tenant.srq_producer = tenant.srq_producer.wrapping_add(by),
    }
}

/// A consumer record of a completion queue or the event queue moves.
pub(super) fn record(tenant: &mut Tenant, host: &Host, rng: &mut Rng) {
    let record = [tenant.cq.consumer, tenant.cq.consumer, tenant.eq.consumer][rng.usize(..3)];
    tenant.has_moved |= record == tenant.eq.consumer;
    let bytes = host.read(record, 4);
    let count = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
    let near = count.wrapping_add(rng.u32(..8));
    let values = [
        near,
        near,
        near,
        count.wrapping_sub(1),
        count.wrapping_add(1 << 23),
        rng.u32(..),
    ];
    host.write(record, &values[rng.usize(..values.len())].to_le_bytes());
}
