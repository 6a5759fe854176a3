//! WQEs in the memory of the test host.

use ferroce_proto::abi::wqe::{
    MAX_SGE, RECV_SGES_FIRST, RecvWqe, SEND_SGES_FIRST, SGE_BYTES, SLOT_BYTES, SendWqe, Sge,
};

/// A WQE as it stands in host memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Wqe {
    /// A send WQE; else a receive WQE.
    pub(super) send: bool,
    pub(super) list: Vec<Sge>,
    /// Entries that the head tells; may differ from those there are.
    pub(super) num_sge: u8,
    pub(super) slots: usize,
    /// Slot that cannot be read.
    pub(super) unreadable: Option<usize>,
}

impl Wqe {
    /// A WQE of as few slots as the hardware allows (1, 2, 4 or 8).
    pub(super) fn new(list: Vec<Sge>) -> Self {
        let slots = 1 + list.len().saturating_sub(RECV_SGES_FIRST).div_ceil(4);
        Self {
            num_sge: list.len() as u8,
            list,
            slots: slots.next_power_of_two(),
            ..Self::default()
        }
    }

    /// A send WQE of 1 to 5 slots.
    pub(super) fn send(list: Vec<Sge>) -> Self {
        Self {
            send: true,
            num_sge: list.len() as u8,
            slots: 1 + list.len().saturating_sub(SEND_SGES_FIRST).div_ceil(4),
            list,
            ..Self::default()
        }
    }

    /// Bytes of its head.
    pub(super) fn head(&self) -> usize {
        if self.send {
            SendWqe::BYTES
        } else {
            RecvWqe::BYTES
        }
    }

    /// Its bytes; what is behind the list is noise.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let length = self
            .list
            .iter()
            .map(|sge| sge.length)
            .fold(0, u32::wrapping_add);
        let mut bytes = if self.send {
            let head = SendWqe {
                num_sge: self.num_sge,
                slots: self.slots as u8,
                length,
                opcode: 0xb7,
                ..SendWqe::default()
            };
            head.emit().to_vec()
        } else {
            let head = RecvWqe {
                num_sge: self.num_sge,
                length,
                ..RecvWqe::default()
            };
            head.emit().to_vec()
        };
        bytes.extend(self.list.iter().flat_map(Sge::emit));
        bytes.resize(self.slots * SLOT_BYTES, 0xb7);
        bytes
    }

    /// Entries that stand in the slots, and whether each is unusable; the first if there are too many.
    pub(super) fn entries(&self) -> Vec<(Sge, bool)> {
        let bytes = self.bytes();
        let there = (self.slots * SLOT_BYTES - self.head()) / SGE_BYTES;
        let count = usize::from(self.num_sge).clamp(1, there);
        let entry = |i: usize| {
            let at = self.head() + SGE_BYTES * i;
            let mut sge = Sge::parse(bytes[at..at + SGE_BYTES].try_into().unwrap());
            if self.num_sge == 0 {
                sge.length = 0;
            }
            let count = usize::from(self.num_sge);
            let long = i == 0 && count > MAX_SGE.min(4 * self.slots - 1);
            let cut = i + 1 == there && count > there;
            (sge, long || cut || self.unreadable == Some(at / SLOT_BYTES))
        };
        (0..count).map(entry).collect()
    }
}
