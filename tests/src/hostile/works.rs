//! Work requests of an owner, sound and spoilt.

use fastrand::Rng;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::{MAX_MSG, SLOT_BYTES, SendWqe, Sge, opcode};
use ferroce_sim::testhost::{Mr, Work};

use super::tenant::{self, Tenant};

/// Bytes of a piece of a message, at most.
pub(super) const SHORT: u32 = 80;
pub(super) const USUAL: u32 = 1200;

/// A WQE of the owner's own memory to its own peer, in pieces of up to `most` bytes.
pub(super) fn sound(tenant: &Tenant, kind: u8, most: u32, rng: &mut Rng) -> Work {
    let region = tenant.region;
    let most = match (kind, rng.u8(..12)) {
        (qp_type::UD, _) => SHORT,
        // more than a turn of a queue pair
        (_, 0) if most > SHORT => 40_000,
        _ => most,
    };
    let list: Vec<Sge> = (0..rng.usize(1..=3))
        .map(|_| region.sge(rng.u64(..8192), rng.u32(0..=most)))
        .collect();
    let far = Mr {
        key: rng.u32(..),
        ..region
    };
    match (kind, rng.u8(..8)) {
        (qp_type::UD, _) => {
            let peer = tenant::peer_qpn(tenant.number);
            Work::datagram(&list, tenant::QPNS[2], peer, 0x11)
        }
        (qp_type::RC, 0) => Work::read(&list, &far, rng.u64(..4096)),
        (qp_type::RC, 1) => Work::fetch_add(region.sge(8 * rng.u64(..64), 8), &far, 0, 1),
        (_, 2) => Work::send(&[]).inline(&vec![0x21; rng.usize(..288)]),
        (_, 3..=5) => Work::write(&list, &far, rng.u64(..4096)),
        _ => Work::send(&list),
    }
}

/// Its slots, with one thing or several wrong.
pub(super) fn spoilt(
    owner: &Tenant,
    bystander: &Mr,
    kind: u8,
    rng: &mut Rng,
) -> Vec<[u8; SLOT_BYTES]> {
    let mut slots = sound(owner, kind, USUAL, rng).slots();
    let slot = &mut slots[0];
    let mut head = SendWqe::parse(slot.first_chunk().expect("64 bytes"));
    let mut sge = Sge::parse(slot[32..48].first_chunk().expect("16 bytes"));
    for _ in 0..rng.u8(1..=2) {
        match rng.u8(..12) {
            0 => {
                let lengths = [0, 1 << 31, u32::MAX, MAX_MSG, head.length.wrapping_add(1)];
                head.length = lengths[rng.usize(..lengths.len())];
            }
            1 => head.num_sge = [0, 255, 16, 17, head.num_sge.wrapping_add(1)][rng.usize(..5)],
            2 => {
                let places = [bystander.addr, 0, u64::MAX - 7, owner.cq.base, rng.u64(..)];
                sge.addr = places[rng.usize(..places.len())];
            }
            3 => {
                sge.lkey = [
                    bystander.key,
                    sge.lkey ^ 1,
                    sge.lkey.wrapping_sub(1),
                    rng.u32(..),
                ][rng.usize(..4)]
            }
            4 => (sge.addr, sge.lkey) = (bystander.addr, bystander.key),
            5 => head.opcode = rng.u8(..),
            6 => head.slots = rng.u8(..),
            7 => (head.fence, head.inline_data) = (rng.bool(), rng.bool()),
            8 => {
                // of UD an address handle: those of the bystanders are among the first
                let number = rng.u64(..300);
                let handle = if number < 100 { number % 4 } else { number };
                head.remote_addr = head.remote_addr & !0xffff_ffff | handle;
            }
            9 => {
                head.opcode = [opcode::BIND_MW, opcode::LOCAL_INV][rng.usize(..2)];
                head.imm = [bystander.key, sge.lkey, rng.u32(..)][rng.usize(..3)];
                (head.length, head.num_sge) = (0, 0);
            }
            10 => {
                sge.length = [0, 1, sge.length.wrapping_add(64), 1 << 31, u32::MAX][rng.usize(..5)]
            }
            _ => {
                let byte = [0, 0xff][rng.usize(..2)];
                return vec![[byte; SLOT_BYTES]; 2];
            }
        }
    }
    slot[..SendWqe::BYTES].copy_from_slice(&head.emit());
    if rng.u8(..8) > 0 && !head.inline_data {
        slot[32..48].copy_from_slice(&sge.emit());
    }
    slots
}
