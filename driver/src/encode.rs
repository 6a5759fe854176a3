//! Work requests into the slots of their WQEs.

use ferroce_proto::abi::wqe::{
    AtomicOperands, INLINE_FIRST, RECV_SGES_FIRST, RecvWqe, SEND_SGES_FIRST, SGE_BYTES, SLOT_BYTES,
    SendWqe,
};

use crate::dma::Slot;
use crate::wr::{Binding, Data, RecvWr, SendFlags, SendOp, SendWr};
use crate::{DeviceInfo, Sge};

const SGES_PER_SLOT: usize = SLOT_BYTES / SGE_BYTES;
/// Byte of the operands in the WQE of an atomic.
const OPERANDS_AT: usize = SendWqe::BYTES + SGE_BYTES;

/// The entries of a list that hold bytes.
#[inline]
pub(crate) fn pieces(sges: &[Sge]) -> impl Iterator<Item = &Sge> {
    sges.iter().filter(|sge| sge.length() != 0)
}

/// Slots, at least one, for `units` of which `first` fit the first slot and `others` each other one.
const fn slots(units: usize, first: usize, others: usize) -> usize {
    1 + units.saturating_sub(first).div_ceil(others)
}

/// Slots of a send WQE with a list of `sges` entries.
pub(crate) const fn list_slots(sges: usize) -> usize {
    slots(sges, SEND_SGES_FIRST, SGES_PER_SLOT)
}

/// Slots of a send WQE with `bytes` bytes of inline data.
pub(crate) const fn inline_slots(bytes: usize) -> usize {
    slots(bytes, INLINE_FIRST, SLOT_BYTES)
}

/// Slots of a send WQE with the longer of a list of `sges` entries and `inline` bytes.
pub(crate) fn send_slots(sges: u32, inline: u32) -> u32 {
    list_slots(sges as usize).max(inline_slots(inline as usize)) as u32
}

/// Log2 of the slots of receive WQEs with lists of up to `sges` entries.
pub(crate) const fn recv_stride(sges: usize) -> u8 {
    let slots = slots(sges, RECV_SGES_FIRST, SGES_PER_SLOT);
    slots.next_power_of_two().ilog2() as u8
}

/// What a list or inline data come to.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Entries of the list that hold bytes.
    pub(crate) entries: usize,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl Extent {
    #[inline]
    pub(crate) fn of_list(sges: &[Sge]) -> Self {
        let (mut entries, mut bytes) = (0, 0);
        for sge in pieces(sges) {
            entries += 1;
            bytes += u64::from(sge.length());
        }
        Self { entries, bytes }
    }

    #[inline]
    pub(crate) fn of(data: Data<'_>) -> Self {
        match data {
            Data::Sges(sges) => Self::of_list(sges),
            Data::Inline(bytes) => Self {
                entries: 0,
                bytes: bytes.len() as u64,
            },
        }
    }

    /// Slots of a send WQE with it.
    #[inline]
    pub(crate) fn slots(self, data: Data<'_>) -> u32 {
        let slots = match data {
            Data::Sges(_) => list_slots(self.entries),
            Data::Inline(bytes) => inline_slots(bytes.len()),
        };
        slots as u32
    }
}

/// Writes a send WQE of so many `slots` into those that `slot` gives by their place in the WQE.
#[inline]
pub(crate) fn send<'a>(
    wr: &SendWr<'_>,
    signaled: bool,
    extent: Extent,
    slots: u32,
    slot: impl Fn(usize) -> Slot<'a>,
) {
    let (opcode, remote, imm) = wr.op.fields();
    let head = SendWqe {
        opcode,
        signaled,
        solicited: wr.flags.contains(SendFlags::SOLICITED),
        fence: wr.flags.contains(SendFlags::FENCE),
        inline_data: matches!(wr.data, Data::Inline(_)),
        num_sge: extent.entries as u8,
        slots: slots as u8,
        imm,
        remote_addr: remote.addr,
        rkey: remote.rkey,
        length: extent.bytes as u32,
        ..SendWqe::default()
    };
    let first = slot(0);
    first.write(0, &head.emit());
    match wr.data {
        Data::Inline(bytes) => {
            let (start, rest) = bytes.split_at(bytes.len().min(INLINE_FIRST));
            first.write(SendWqe::BYTES, start);
            for (i, chunk) in rest.chunks(SLOT_BYTES).enumerate() {
                slot(i + 1).write(0, chunk);
            }
        }
        Data::Sges(sges) => {
            write_list(&first, SendWqe::BYTES, sges, &slot);
            if let Some(operands) = operands(&wr.op) {
                first.write(OPERANDS_AT, &operands.emit());
            }
            if let SendOp::BindMw(Binding(bind, _)) = wr.op {
                first.write(SendWqe::BYTES, &bind.emit());
            }
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

/// Writes a receive WQE into the slots that `slot` gives by their place in the WQE.
#[inline]
pub(crate) fn recv<'a>(wr: &RecvWr<'_>, extent: Extent, slot: impl Fn(usize) -> Slot<'a>) {
    let head = RecvWqe {
        num_sge: extent.entries as u8,
        length: extent.bytes as u32,
        ..RecvWqe::default()
    };
    let first = slot(0);
    first.write(0, &head.emit());
    write_list(&first, RecvWqe::BYTES, wr.sges, &slot);
}

/// Writes a list from byte `at` of the first slot on, and further slots as it needs them.
#[inline]
fn write_list<'a>(first: &Slot<'a>, at: usize, sges: &[Sge], slot: &impl Fn(usize) -> Slot<'a>) {
    let (mut place, mut at, mut next) = (0, at, None);
    for sge in pieces(sges) {
        if at == SLOT_BYTES {
            (place, at) = (place + 1, 0);
            next = Some(slot(place));
        }
        let to = next.as_ref().unwrap_or(first);
        to.write(at, &sge.0.emit());
        at += SGE_BYTES;
    }
}

impl DeviceInfo {
    /// Send requests that a queue pair may be built for, with lists of `sges` entries and `inline` bytes of inline data.
    #[must_use]
    pub fn max_send_wr(&self, sges: u32, inline: u32) -> u32 {
        self.max_qp_wr / send_slots(sges, inline)
    }
}
