//! Send WQEs, and what the contract says of them: status, packets, pieces of payload.

use ferroce_proto::abi::cq::{opcode as cqe, status};
use ferroce_proto::abi::qpc::{AvCtx, SqCtx, qp_type};
use ferroce_proto::abi::wqe::{AtomicOperands, MAX_MSG, SendWqe, Sge, UdAddress, opcode};
use ferroce_proto::wire::{Class, Opcode, Operation, Position, Suffix};

/// Log2 of the queue pairs.
pub(crate) const Q: usize = 4;
/// Log2 of the slots of a ring.
pub(crate) const LOG_RING: u8 = 6;
/// Key of a region that may be read, of one that may be written too, and of none.
pub(crate) const READABLE: u32 = 7;
pub(crate) const WRITABLE: u32 = 8;
pub(crate) const NO_REGION: u32 = 0xbad;

/// Requester image of queue pair `qpn`: RC, UC, UD in turn, all MTUs.
pub(crate) fn ctx(qpn: u16) -> SqCtx {
    SqCtx {
        qp_type: [qp_type::RC, qp_type::UC, qp_type::UD][usize::from(qpn % 3)],
        mtu: 1 + (qpn % 5) as u8,
        sq_log: LOG_RING,
        // queue pair 15 may have no READ outstanding
        max_rd_atomic: 15 - qpn as u8,
        pd: 0x77_0000 + u32::from(qpn),
        cqn: 100 + qpn,
        sq_base: base(qpn),
        ..SqCtx::default()
    }
}

pub(crate) fn base(qpn: u16) -> u64 {
    0x1000_0000 + (u64::from(qpn) << 16)
}

/// Handle of datagram queue pair `qpn`.
fn handle(qpn: u16) -> u16 {
    qpn * 7 % 16
}

/// Protection domain of an address handle: that of its queue pair, or in one bit another.
fn domain(ah: u16) -> u32 {
    let is_own = |&qpn: &u16| ctx(qpn).qp_type == qp_type::UD && handle(qpn) == ah;
    let own = (0..1 << Q).find(is_own);
    own.map_or(ctx(2).pd ^ 1 << (8 + ah), |qpn| ctx(qpn).pd)
}

/// Path of queue pair or address handle `number`.
pub(crate) fn path(number: u16, handle: bool) -> AvCtx {
    let kind = number ^ if handle { 2 } else { 0 };
    AvCtx {
        ipv6: kind & 1 == 1,
        vlan_valid: kind & 2 == 2,
        pd: domain(number),
        ..AvCtx::default()
    }
}

/// A send WQE.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) qpn: u16,
    pub(crate) head: SendWqe,
    /// Gather list.
    pub(crate) list: Vec<Sge>,
    pub(crate) operands: Option<AtomicOperands>,
    /// Of UD, in the place of remote address and key.
    pub(crate) address: Option<UdAddress>,
    /// The read of this slot fails.
    pub(crate) unreadable: Option<usize>,
}

pub(crate) fn sge(addr: u64, length: u32) -> Sge {
    Sge {
        addr,
        length,
        lkey: WRITABLE,
    }
}

impl Work {
    /// A WQE that is right but for what its transport does not allow.
    pub(crate) fn new(qpn: u16, op: u8, list: &[Sge]) -> Self {
        let length = list.iter().map(|sge| sge.length).sum();
        let slots = 1 + list.len().saturating_sub(2).div_ceil(4);
        let ud = ctx(qpn).qp_type == qp_type::UD;
        Self {
            qpn,
            head: SendWqe {
                opcode: op,
                signaled: length % 2 == 0,
                solicited: length % 3 == 0,
                fence: length % 5 == 0,
                num_sge: list.len() as u8,
                slots: slots as u8,
                imm: 0x1234_5678 ^ length,
                remote_addr: 0x7000_0000_0000 + u64::from(length),
                rkey: 0x99_0000 + u32::from(qpn),
                length,
                ..SendWqe::default()
            },
            list: list.to_vec(),
            operands: (op >= opcode::CMP_SWAP).then_some(AtomicOperands {
                swap_add: 0x0123_4567_89ab_cdef ^ u64::from(qpn),
                compare: 0xfedc_ba98_7654_3210,
            }),
            address: ud.then_some(UdAddress {
                ah: handle(qpn).into(),
                remote_qpn: 0xab_cdef,
                qkey: 0x8001_0203,
            }),
            unreadable: None,
        }
    }

    /// With `length` bytes of inline data.
    pub(crate) fn inline(qpn: u16, op: u8, length: u32) -> Self {
        let mut work = Self::new(qpn, op, &[]);
        work.head.inline_data = true;
        work.head.length = length;
        work.head.slots = 1 + length.saturating_sub(32).div_ceil(64) as u8;
        work
    }

    /// With another gather list, whatever the head says.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Slots that it has in a ring; at least one.
    pub(crate) fn slots(&self) -> usize {
        usize::from(self.head.slots).clamp(1, 5)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.emit().to_vec();
        if let Some(address) = self.address {
            bytes[8..20].copy_from_slice(&address.emit());
        }
        self.list.iter().for_each(|sge| bytes.extend(sge.emit()));
        bytes.resize(bytes.len().max(64 * self.slots()), 0xee);
        if let Some(operands) = self.operands {
            bytes[48..64].copy_from_slice(&operands.emit());
        }
        bytes
    }

    fn mtu(&self) -> u32 {
        128 << ctx(self.qpn).mtu
    }

    pub(crate) fn is_answered(&self) -> bool {
        matches!(
            self.head.opcode,
            opcode::READ | opcode::CMP_SWAP | opcode::FETCH_ADD
        )
    }

    /// Sends nothing.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.head.opcode, opcode::BIND_MW | opcode::LOCAL_INV)
    }

    pub(crate) fn packets(&self) -> u32 {
        if self.is_local() {
            return 0;
        }
        self.head.length.div_ceil(self.mtu()).max(1)
    }

    pub(crate) fn cqe_opcode(&self) -> u8 {
        match self.head.opcode {
            // of what cannot be read nothing is known
            _ if self.unreadable == Some(0) => cqe::SEND,
            opcode::WRITE | opcode::WRITE_IMM => cqe::WRITE,
            opcode::READ => cqe::READ,
            opcode::CMP_SWAP => cqe::CMP_SWAP,
            opcode::FETCH_ADD => cqe::FETCH_ADD,
            opcode::BIND_MW => cqe::BIND_MW,
            opcode::LOCAL_INV => cqe::LOCAL_INV,
            _ => cqe::SEND,
        }
    }

    /// The status it is refused with, 0 if it may run; `posted` slots are there.
    pub(crate) fn status(&self, posted: usize) -> u8 {
        let (head, ctx) = (&self.head, ctx(self.qpn));
        let slots = usize::from(head.slots);
        let atomic = matches!(head.opcode, opcode::CMP_SWAP | opcode::FETCH_ADD);
        let empty = (head.length, head.num_sge, head.inline_data) == (0, 0, false);
        let served = match ctx.qp_type {
            qp_type::RC | qp_type::UC if self.is_local() => empty,
            qp_type::RC => {
                head.opcode <= opcode::FETCH_ADD
                    && !(self.is_answered() && (ctx.max_rd_atomic == 0 || head.inline_data))
            }
            qp_type::UC => matches!(
                head.opcode,
                opcode::SEND | opcode::SEND_IMM | opcode::WRITE | opcode::WRITE_IMM
            ),
            _ => {
                matches!(head.opcode, opcode::SEND | opcode::SEND_IMM)
                    && self.address.is_some_and(|address| {
                        address.ah < 1 << Q && domain(address.ah as u16) == ctx.pd
                    })
            }
        };
        if self.unreadable.is_some() || !(1..=5).contains(&slots) || slots > posted || !served {
            return status::LOC_QP_OP_ERR;
        }
        let too_long = head.length > MAX_MSG
            || (ctx.qp_type == qp_type::UD && head.length > self.mtu())
            || (head.opcode == opcode::READ && self.packets() >= 1 << 23);
        if too_long {
            return status::LOC_LEN_ERR;
        }
        let inline_room = 32 + 64 * (slots as u32 - 1);
        let room = if atomic { 1 } else { (4 * slots - 2).min(16) };
        let listed = self.list.iter().take(head.num_sge.into());
        let sum: u64 = listed.clone().map(|sge| u64::from(sge.length)).sum();
        let senseless = if head.inline_data {
            head.length > inline_room
        } else {
            usize::from(head.num_sge) > room || sum != u64::from(head.length)
        };
        if senseless {
            return status::LOC_QP_OP_ERR;
        }
        if atomic && head.length != 8 {
            return status::LOC_LEN_ERR;
        }
        let denied = |sge: &Sge| {
            sge.length > 0
                && (sge.lkey == NO_REGION || (self.is_answered() && sge.lkey != WRITABLE))
        };
        if !head.inline_data && listed.clone().any(denied) {
            return status::LOC_PROT_ERR;
        }
        0
    }

    /// Opcode of packet `number`.
    pub(crate) fn opcode_of(&self, number: u32) -> Opcode {
        let class = match ctx(self.qpn).qp_type {
            qp_type::RC => Class::Rc,
            qp_type::UC => Class::Uc,
            _ => Class::Ud,
        };
        let position = match (number == 0, number + 1 == self.packets()) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, false) => Position::Middle,
            (false, true) => Position::Last,
        };
        let (operation, suffix) = match self.head.opcode {
            opcode::SEND => (Operation::Send, Suffix::None),
            opcode::SEND_IMM => (Operation::Send, Suffix::Imm),
            opcode::SEND_INV => (Operation::Send, Suffix::Inv),
            opcode::WRITE => (Operation::Write, Suffix::None),
            opcode::WRITE_IMM => (Operation::Write, Suffix::Imm),
            opcode::READ => return Opcode::RcReadRequest,
            opcode::CMP_SWAP => return Opcode::RcCmpSwap,
            _ => return Opcode::RcFetchAdd,
        };
        let ends = matches!(position, Position::Only | Position::Last);
        let suffix = if ends { suffix } else { Suffix::None };
        Opcode::compose(class, operation, position, suffix).expect("of this transport")
    }

    fn path(&self) -> AvCtx {
        match self.address {
            Some(address) => path(address.ah as u16, true),
            None => path(self.qpn, false),
        }
    }

    /// Kind of its path: 1 IPv6, 2 a tag.
    pub(crate) fn path_kind(&self) -> u8 {
        u8::from(self.path().ipv6) | u8::from(self.path().vlan_valid) << 1
    }

    /// Bytes before the payload of a packet with this opcode.
    pub(crate) fn header_len(&self, opcode: Opcode) -> usize {
        let path = self.path();
        14 + 4 * usize::from(path.vlan_valid)
            + if path.ipv6 { 40 } else { 20 }
            + 8
            + opcode.header_len()
    }

    /// The pieces of the bytes `from..to` of the message; `index` is the producer index of its first slot.
    pub(crate) fn pieces(&self, index: u16, from: u32, to: u32) -> Vec<(u64, u32)> {
        let entries: Vec<(u64, u32)> = if self.head.inline_data {
            let ring = 64 << LOG_RING;
            let start = u64::from(index % (1 << LOG_RING)) * 64 + 32;
            let head = (ring - start).min(self.head.length.into()) as u32;
            let base = base(self.qpn);
            vec![(base + start, head), (base, self.head.length - head)]
        } else {
            self.list.iter().map(|sge| (sge.addr, sge.length)).collect()
        };
        let mut at = 0;
        let mut pieces = vec![];
        for (addr, len) in entries {
            let (low, high) = (from.max(at), to.min(at + len));
            if low < high {
                pieces.push((addr + u64::from(low - at), high - low));
            }
            at += len;
        }
        pieces
    }
}
