//! Send work requests and their WQEs.

use ferroce_proto::abi::wqe::{
    AtomicOperands, INLINE_FIRST, SEND_SGES_FIRST, SGE_BYTES, SLOT_BYTES, SendWqe, Sge, WindowBind,
    opcode,
};

use super::Mr;

/// A send WQE to be: its head, payload and operands. `num_sge`, `slots` and `length` of the head are
/// filled in by [`slots`](Self::slots).
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Head.
    pub head: SendWqe,
    /// Gather list.
    pub list: Vec<Sge>,
    /// Payload that stands in the WQE, if `head.inline_data`.
    pub inline: Vec<u8>,
    /// Operands of an atomic.
    pub operands: AtomicOperands,
    /// What a window is bound to.
    pub bind: WindowBind,
}

impl Mr {
    /// `len` bytes at `offset` as a gather or scatter entry.
    #[must_use]
    pub const fn sge(&self, offset: u64, len: u32) -> Sge {
        Sge {
            addr: self.addr.wrapping_add(offset),
            length: len,
            lkey: self.key,
        }
    }

    /// The whole buffer as a gather or scatter entry.
    #[must_use]
    pub const fn all(&self) -> Sge {
        self.sge(0, self.len as u32)
    }
}

impl Work {
    /// A signaled operation of a `wqe::opcode` on a gather list.
    #[must_use]
    pub fn new(opcode: u8, list: &[Sge]) -> Self {
        let head = SendWqe {
            opcode,
            signaled: true,
            ..SendWqe::default()
        };
        Self {
            head,
            list: list.to_vec(),
            ..Self::default()
        }
    }

    /// SEND.
    #[must_use]
    pub fn send(list: &[Sge]) -> Self {
        Self::new(opcode::SEND, list)
    }

    /// SEND of a datagram on the path of an address handle, to a queue pair of that Q_Key.
    #[must_use]
    pub fn datagram(list: &[Sge], ah: u32, remote_qpn: u32, qkey: u32) -> Self {
        let mut work = Self::send(list);
        work.head.remote_addr = u64::from(remote_qpn) << 32 | u64::from(ah);
        work.head.rkey = qkey;
        work
    }

    /// RDMA WRITE to byte `offset` of a remote buffer.
    #[must_use]
    pub fn write(list: &[Sge], remote: &Mr, offset: u64) -> Self {
        Self::new(opcode::WRITE, list).to(remote, offset)
    }

    /// RDMA READ from byte `offset` of a remote buffer.
    #[must_use]
    pub fn read(list: &[Sge], remote: &Mr, offset: u64) -> Self {
        Self::new(opcode::READ, list).to(remote, offset)
    }

    /// Fetch and add at byte `offset` of a remote buffer; the original goes to `result`.
    #[must_use]
    pub fn fetch_add(result: Sge, remote: &Mr, offset: u64, add: u64) -> Self {
        let operands = AtomicOperands {
            swap_add: add,
            compare: 0,
        };
        Self {
            operands,
            ..Self::new(opcode::FETCH_ADD, &[result]).to(remote, offset)
        }
    }

    /// Compare and swap at byte `offset` of a remote buffer; the original goes to `result`.
    #[must_use]
    pub fn cmp_swap(result: Sge, remote: &Mr, offset: u64, compare: u64, swap: u64) -> Self {
        let operands = AtomicOperands {
            swap_add: swap,
            compare,
        };
        Self {
            operands,
            ..Self::new(opcode::CMP_SWAP, &[result]).to(remote, offset)
        }
    }

    /// Bind of the memory window at the place of `key`, its key from then on.
    #[must_use]
    pub fn bind(key: u32, bind: WindowBind) -> Self {
        let mut work = Self::new(opcode::BIND_MW, &[]);
        (work.head.imm, work.bind) = (key, bind);
        work
    }

    /// Local invalidate.
    #[must_use]
    pub fn local_inv(key: u32) -> Self {
        let mut work = Self::new(opcode::LOCAL_INV, &[]);
        work.head.imm = key;
        work
    }

    /// The payload stands in the WQE.
    #[must_use]
    pub fn inline(mut self, data: &[u8]) -> Self {
        self.head.inline_data = true;
        self.inline = data.to_vec();
        self
    }

    /// Sets the remote address and key.
    #[must_use]
    pub fn to(mut self, remote: &Mr, offset: u64) -> Self {
        self.head.remote_addr = remote.addr.wrapping_add(offset);
        self.head.rkey = remote.key;
        self
    }

    /// Adds immediate data to a SEND or WRITE.
    #[must_use]
    pub fn imm(mut self, imm: u32) -> Self {
        self.head.opcode = match self.head.opcode {
            opcode::SEND => opcode::SEND_IMM,
            opcode::WRITE => opcode::WRITE_IMM,
            other => panic!("operation {other} has no immediate data"),
        };
        self.head.imm = imm;
        self
    }

    /// No CQE on success.
    #[must_use]
    pub fn unsignaled(mut self) -> Self {
        self.head.signaled = false;
        self
    }

    /// The slots of the WQE.
    #[must_use]
    pub fn slots(&self) -> Vec<[u8; SLOT_BYTES]> {
        let mut body = Vec::new();
        if self.head.inline_data {
            body.extend(&self.inline);
        } else {
            body.extend(self.list.iter().flat_map(Sge::emit));
        }
        if matches!(self.head.opcode, opcode::CMP_SWAP | opcode::FETCH_ADD) {
            body.extend(self.operands.emit());
        }
        if self.head.opcode == opcode::BIND_MW && body.is_empty() {
            body.extend(self.bind.emit());
        }
        debug_assert_eq!(INLINE_FIRST, SEND_SGES_FIRST * SGE_BYTES);
        let slots = 1 + body.len().saturating_sub(INLINE_FIRST).div_ceil(SLOT_BYTES);
        let length = if self.head.inline_data {
            self.inline.len() as u32
        } else {
            self.list.iter().map(|sge| sge.length).sum()
        };
        let num_sge = if self.head.inline_data {
            0
        } else {
            self.list.len() as u8
        };
        let head = SendWqe {
            num_sge,
            slots: slots as u8,
            length,
            ..self.head
        };
        let mut bytes = head.emit().to_vec();
        bytes.extend(body);
        bytes.resize(slots * SLOT_BYTES, 0);
        bytes.as_chunks().0.to_vec()
    }
}
