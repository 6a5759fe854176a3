//! Work requests into the slots of their WQEs.

use ferroce_proto::abi::wqe::{
    AtomicOperands, INLINE_FIRST, RECV_SGES_FIRST, RecvWqe, SEND_SGES_FIRST, SGE_BYTES, SLOT_BYTES,
    SendWqe,
};

use crate::Sge;
use crate::wr::{Data, RecvWr, SendFlags, SendOp, SendWr};

const SGES_PER_SLOT: usize = SLOT_BYTES / SGE_BYTES;
/// Byte of the operands in the WQE of an atomic.
const OPERANDS_AT: usize = SendWqe::BYTES + SGE_BYTES;

/// The entries of a list that hold bytes.
#[inline]
pub(super) fn pieces(sges: &[Sge]) -> impl Iterator<Item = &Sge> {
    sges.iter().filter(|sge| sge.length() != 0)
}

/// Slots, at least one, for `units` of which `first` fit the first slot and `others` each other one.
const fn slots(units: usize, first: usize, others: usize) -> usize {
    1 + units.saturating_sub(first).div_ceil(others)
}

/// Slots of a send WQE with a list of `sges` entries.
pub(super) const fn list_slots(sges: usize) -> usize {
    slots(sges, SEND_SGES_FIRST, SGES_PER_SLOT)
}

/// Slots of a send WQE with `bytes` bytes of inline data.
pub(super) const fn inline_slots(bytes: usize) -> usize {
    slots(bytes, INLINE_FIRST, SLOT_BYTES)
}

/// Log2 of the slots of receive WQEs with lists of up to `sges` entries.
pub(crate) const fn recv_stride(sges: usize) -> u8 {
    let slots = slots(sges, RECV_SGES_FIRST, SGES_PER_SLOT);
    slots.next_power_of_two().ilog2() as u8
}

/// Slots of a send request.
#[inline]
pub(super) fn send_slots(wr: &SendWr<'_>) -> usize {
    match wr.data {
        Data::Sges(sges) => list_slots(pieces(sges).count()),
        Data::Inline(bytes) => inline_slots(bytes.len()),
    }
}

/// Hands the slots of a send WQE to `put`, in order, with their place in the WQE.
#[inline]
pub(super) fn send(
    wr: &SendWr<'_>,
    signaled: bool,
    slots: u32,
    mut put: impl FnMut(usize, &[u8; SLOT_BYTES]),
) {
    let remote = wr.op.remote();
    let mut head = SendWqe {
        opcode: wr.op.code(),
        signaled,
        solicited: wr.flags.contains(SendFlags::SOLICITED),
        fence: wr.flags.contains(SendFlags::FENCE),
        slots: slots as u8,
        imm: wr.op.imm(),
        remote_addr: remote.addr,
        rkey: remote.rkey,
        ..SendWqe::default()
    };
    let mut slot = [0; SLOT_BYTES];
    match wr.data {
        Data::Inline(bytes) => {
            head.inline_data = true;
            head.length = bytes.len() as u32;
            slot[..SendWqe::BYTES].copy_from_slice(&head.emit());
            let (first, rest) = bytes.split_at(bytes.len().min(INLINE_FIRST));
            slot[SendWqe::BYTES..][..first.len()].copy_from_slice(first);
            put(0, &slot);
            for (i, chunk) in rest.chunks(SLOT_BYTES).enumerate() {
                slot.fill(0);
                slot[..chunk.len()].copy_from_slice(chunk);
                put(i + 1, &slot);
            }
        }
        Data::Sges(sges) => {
            (head.num_sge, head.length) = sum(sges);
            slot[..SendWqe::BYTES].copy_from_slice(&head.emit());
            if let Some(operands) = operands(&wr.op) {
                slot[OPERANDS_AT..].copy_from_slice(&operands.emit());
            }
            put_list(slot, SendWqe::BYTES, sges, put);
        }
    }
}

fn operands(op: &SendOp) -> Option<AtomicOperands> {
    match *op {
        SendOp::CmpSwap { compare, swap, .. } => Some(AtomicOperands {
            swap_add: swap,
            compare,
        }),
        SendOp::FetchAdd { add, .. } => Some(AtomicOperands {
            swap_add: add,
            compare: 0,
        }),
        _ => None,
    }
}

/// Hands the slots of a receive WQE to `put`, in order, with their place in the WQE.
#[inline]
pub(crate) fn recv(wr: &RecvWr<'_>, put: impl FnMut(usize, &[u8; SLOT_BYTES])) {
    let (num_sge, length) = sum(wr.sges);
    let head = RecvWqe {
        num_sge,
        length,
        ..RecvWqe::default()
    };
    let mut slot = [0; SLOT_BYTES];
    slot[..RecvWqe::BYTES].copy_from_slice(&head.emit());
    put_list(slot, RecvWqe::BYTES, wr.sges, put);
}

/// Entries and bytes of a list, which was checked.
#[inline]
fn sum(sges: &[Sge]) -> (u8, u32) {
    pieces(sges).fold((0, 0), |(entries, bytes), sge| {
        (entries + 1, bytes + sge.length())
    })
}

/// Hands over a first slot with a list from byte `at` on, and further slots as the list needs them.
#[inline]
fn put_list(
    mut slot: [u8; SLOT_BYTES],
    mut at: usize,
    sges: &[Sge],
    mut put: impl FnMut(usize, &[u8; SLOT_BYTES]),
) {
    let mut place = 0;
    for sge in pieces(sges) {
        if at == SLOT_BYTES {
            put(place, &slot);
            slot.fill(0);
            (place, at) = (place + 1, 0);
        }
        slot[at..][..SGE_BYTES].copy_from_slice(&sge.0.emit());
        at += SGE_BYTES;
    }
    put(place, &slot);
}
