//! Fetch and validation of work queue entries.

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::abi::mr::Right;
use ferroce_proto::abi::qpc::{RqCtx, SqCtx, SrqCtx, qp_type};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe::{
    AtomicOperands, INLINE_FIRST, MAX_MSG, MAX_SGE, RECV_SGES_FIRST, RecvWqe, SEND_SGES_FIRST,
    SGE_BYTES, SLOT_BYTES, SendWqe, Sge, UdAddress, WindowBind, opcode,
};
use ferroce_proto::wire::{Mtu, Operation, Suffix, psn};

use super::Env;
use super::access::{Dma, Regions};

/// Most slots of a send WQE.
const MAX_SLOTS: u16 = 5;
/// Bytes an atomic works on.
pub(super) const ATOMIC_BYTES: u32 = 8;

/// A send WQE that may run.
#[derive(Clone, Debug)]
pub(super) struct SendRequest {
    /// Its head as the host wrote it.
    pub(super) head: SendWqe,
    /// What its packets do.
    pub(super) operation: Operation,
    /// What its last packet adds.
    pub(super) suffix: Suffix,
    /// Where its payload is.
    pub(super) payload: Payload,
    /// Operands of an atomic.
    pub(super) operands: AtomicOperands,
    /// Where a datagram goes.
    pub(super) address: UdAddress,
    /// What a window is bound to.
    pub(super) bind: WindowBind,
}

/// Where the payload of a message comes from, or the data of a response goes to.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    Inline(Vec<u8>),
    List(Vec<Sge>),
}

/// A send WQE that cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadWqe {
    /// CQE status.
    pub(super) status: u8,
    /// CQE opcode.
    pub(super) opcode: u8,
}

/// A receive WQE.
#[derive(Clone, Debug)]
pub(super) struct RecvRequest {
    /// Ordinal of the WQE, modulo 2^16; of a shared receive queue its number.
    pub(super) index: u16,
    /// Scatter list.
    pub(super) list: Vec<Sge>,
    /// Bytes of the list.
    pub(super) length: u64,
    /// Protection domain of the list.
    pub(super) pd: u32,
}

impl RecvRequest {
    /// One whose list is not looked at.
    pub(super) fn unread(index: u16) -> Self {
        Self {
            index,
            list: Vec::new(),
            length: 0,
            pd: 0,
        }
    }
}

/// Where receive WQEs are.
#[derive(Clone)]
pub(super) struct RecvRing {
    base: u64,
    log_size: u8,
    stride: u8,
    pd: u32,
}

impl From<&RqCtx> for RecvRing {
    fn from(ctx: &RqCtx) -> Self {
        Self {
            base: ctx.rq_base,
            log_size: ctx.rq_log,
            stride: ctx.rq_stride,
            pd: ctx.pd,
        }
    }
}

impl From<&SrqCtx> for RecvRing {
    fn from(ctx: &SrqCtx) -> Self {
        Self {
            base: ctx.base,
            log_size: ctx.log_size,
            stride: ctx.stride,
            pd: ctx.pd,
        }
    }
}

/// CQE opcode of the operation of a send WQE.
pub(super) const fn cqe_opcode(head: &SendWqe) -> u8 {
    match head.opcode {
        opcode::BIND_MW => cqe_opcode::BIND_MW,
        opcode::LOCAL_INV => cqe_opcode::LOCAL_INV,
        opcode::WRITE | opcode::WRITE_IMM => cqe_opcode::WRITE,
        opcode::READ => cqe_opcode::READ,
        opcode::CMP_SWAP => cqe_opcode::CMP_SWAP,
        opcode::FETCH_ADD => cqe_opcode::FETCH_ADD,
        _ => cqe_opcode::SEND,
    }
}

impl SendRequest {
    /// Takes no PSN: it changes a key of this card.
    pub(super) fn is_local(&self) -> bool {
        is_local(self.head.opcode)
    }

    /// READ or atomic: completes by the response that carries its data, not by an ACK.
    pub(super) fn is_answered(&self) -> bool {
        matches!(
            self.operation,
            Operation::ReadRequest | Operation::CmpSwap | Operation::FetchAdd
        )
    }
}

const fn is_local(opcode: u8) -> bool {
    matches!(opcode, opcode::BIND_MW | opcode::LOCAL_INV)
}

/// The send WQE at producer index `index`, and its slots as the host says, within what it posted and the card takes.
pub(super) fn slots(env: &mut Env, ctx: &SqCtx, index: u16, posted: u16) -> (SendWqe, u16) {
    let head = SendWqe::parse(&env.dma.read_array(slot_address(ctx, index)));
    let most = if env.has(feature::LONG_WQE) {
        MAX_SLOTS
    } else {
        1
    };
    (head, u16::from(head.slots).clamp(1, most.min(posted)))
}

/// Reads and validates the send WQE at producer index `index`; `posted` slots are there, at least 1.
/// Also answers the slots it takes.
pub(super) fn fetch_send(
    env: &mut Env,
    ctx: &SqCtx,
    index: u16,
    posted: u16,
) -> (u16, Result<SendRequest, BadWqe>) {
    let (head, slots) = slots(env, ctx, index, posted);
    let bad = |status| BadWqe {
        status,
        opcode: cqe_opcode(&head),
    };
    if u16::from(head.slots) != slots {
        return (slots, Err(bad(status::LOC_QP_OP_ERR)));
    }
    let mut bytes = Vec::new();
    for i in 0..slots {
        let slot = slot_address(ctx, index.wrapping_add(i));
        bytes.extend(env.dma.read_array::<SLOT_BYTES>(slot));
    }
    (slots, validate(env, ctx, head, &bytes).map_err(bad))
}

fn slot_address(ctx: &SqCtx, index: u16) -> u64 {
    let slot = u64::from(index) & ((1 << ctx.sq_log) - 1);
    ctx.sq_base.wrapping_add(slot * SLOT_BYTES as u64)
}

fn validate(env: &Env, ctx: &SqCtx, head: SendWqe, bytes: &[u8]) -> Result<SendRequest, u8> {
    let (operation, suffix) = match head.opcode {
        opcode::SEND | opcode::BIND_MW | opcode::LOCAL_INV => (Operation::Send, Suffix::None),
        opcode::SEND_IMM => (Operation::Send, Suffix::Imm),
        opcode::SEND_INV => (Operation::Send, Suffix::Inv),
        opcode::WRITE => (Operation::Write, Suffix::None),
        opcode::WRITE_IMM => (Operation::Write, Suffix::Imm),
        opcode::READ => (Operation::ReadRequest, Suffix::None),
        opcode::CMP_SWAP => (Operation::CmpSwap, Suffix::None),
        opcode::FETCH_ADD => (Operation::FetchAdd, Suffix::None),
        _ => return Err(status::LOC_QP_OP_ERR),
    };
    let atomic = matches!(operation, Operation::CmpSwap | Operation::FetchAdd);
    let answered = atomic || operation == Operation::ReadRequest;
    if !serves(env, operation, suffix) {
        return Err(status::LOC_QP_OP_ERR);
    }
    if is_local(head.opcode)
        && (!env.has(feature::MEM_WINDOW)
            || ctx.qp_type == qp_type::UD
            || (head.length, head.num_sge, head.inline_data) != (0, 0, false))
    {
        return Err(status::LOC_QP_OP_ERR);
    }
    if ctx.qp_type != qp_type::RC && (answered || suffix == Suffix::Inv)
        || answered && (ctx.max_rd_atomic == 0 || head.inline_data)
    {
        return Err(status::LOC_QP_OP_ERR);
    }
    if head.length > MAX_MSG {
        return Err(status::LOC_LEN_ERR);
    }
    let mtu = Mtu::from_code(ctx.mtu).ok_or(status::LOC_QP_OP_ERR)?;
    let address = UdAddress::parse(bytes[8..].first_chunk().expect("a slot has 64 bytes"));
    if ctx.qp_type == qp_type::UD {
        let handle = env.ahs.get(address.ah as usize);
        if operation != Operation::Send || handle.is_none_or(|handle| handle.pd != ctx.pd) {
            return Err(status::LOC_QP_OP_ERR);
        }
        if head.length > mtu.bytes() as u32 {
            return Err(status::LOC_LEN_ERR);
        }
    }
    if operation == Operation::ReadRequest && mtu.packets(head.length) >= psn::HALF {
        return Err(status::LOC_LEN_ERR);
    }
    let body = &bytes[SendWqe::BYTES..];
    let payload = if head.inline_data {
        let data = body
            .get(..head.length as usize)
            .ok_or(status::LOC_QP_OP_ERR)?;
        Payload::Inline(data.to_vec())
    } else {
        let room = if atomic {
            1
        } else {
            SEND_SGES_FIRST + (body.len() - INLINE_FIRST) / SGE_BYTES
        };
        Payload::List(gather_list(body, head.num_sge, room, head.length)?)
    };
    if atomic && head.length != ATOMIC_BYTES {
        return Err(status::LOC_LEN_ERR);
    }
    let operands = *body[SGE_BYTES..]
        .first_chunk()
        .expect("a slot has 64 bytes");
    let operands = AtomicOperands::parse(&operands);
    let bind = WindowBind::parse(body.first_chunk().expect("a slot has 64 bytes"));
    Ok(SendRequest {
        head,
        operation,
        suffix,
        payload,
        operands,
        address,
        bind,
    })
}

/// The card serves requests of this kind, as requester and as responder.
pub(super) fn serves(env: &Env, operation: Operation, suffix: Suffix) -> bool {
    match operation {
        Operation::Send if suffix == Suffix::Inv => env.has(feature::INVALIDATE),
        Operation::ReadRequest => env.has(feature::READ),
        Operation::CmpSwap | Operation::FetchAdd => env.has(feature::ATOMIC),
        _ => true,
    }
}

/// A gather or scatter list of `count` entries, of which the WQE has room for `room`.
fn list(bytes: &[u8], count: u8, room: usize) -> Result<Vec<Sge>, u8> {
    let count = usize::from(count);
    if count > room.min(MAX_SGE) {
        return Err(status::LOC_QP_OP_ERR);
    }
    let entries = bytes.chunks_exact(SGE_BYTES).take(count);
    let parse = |bytes: &[u8]| Sge::parse(bytes.first_chunk().expect("an entry has 16 bytes"));
    Ok(entries.map(parse).collect())
}

/// Bytes of a gather or scatter list.
fn bytes_of(list: &[Sge]) -> u64 {
    list.iter().map(|sge| u64::from(sge.length)).sum()
}

/// A gather list, which adds up to the `length` that the WQE declares.
fn gather_list(bytes: &[u8], count: u8, room: usize, length: u32) -> Result<Vec<Sge>, u8> {
    let list = list(bytes, count, room)?;
    if bytes_of(&list) == u64::from(length) {
        Ok(list)
    } else {
        Err(status::LOC_QP_OP_ERR)
    }
}

/// Reads and validates the receive WQE of ordinal `index`. What counts is the list, not the length beside it.
///
/// # Errors
/// The CQE status.
pub(super) fn fetch_recv(dma: &mut Dma, ring: &RecvRing, index: u16) -> Result<RecvRequest, u8> {
    let bytes_per_wqe = SLOT_BYTES << ring.stride;
    let entry = u64::from(index) & ((1 << ring.log_size) - 1);
    let mut bytes = vec![0; bytes_per_wqe];
    dma.read(
        ring.base.wrapping_add(entry * bytes_per_wqe as u64),
        &mut bytes,
    );
    let head = RecvWqe::parse(bytes.first_chunk().expect("a slot has 64 bytes"));
    let room = RECV_SGES_FIRST + (bytes_per_wqe - SLOT_BYTES) / SGE_BYTES;
    let list = list(&bytes[RecvWqe::BYTES..], head.num_sge, room)?;
    Ok(RecvRequest {
        index,
        length: bytes_of(&list),
        list,
        pd: ring.pd,
    })
}

/// Checks the list of a message before its first packet. (What a READ or atomic brings is checked once more when it is there.)
pub(super) fn permitted(
    regions: &Regions,
    pd: u32,
    qpn: u32,
    request: SendRequest,
) -> Result<SendRequest, BadWqe> {
    let denied = |sge: &Sge| {
        let right = if request.is_answered() {
            Right::LocalWrite
        } else {
            Right::LocalRead
        };
        let check = regions.check(sge.lkey, pd, qpn, sge.addr, sge.length, right);
        check.is_err()
    };
    match &request.payload {
        Payload::List(list) if list.iter().any(denied) => Err(BadWqe {
            status: status::LOC_PROT_ERR,
            opcode: cqe_opcode(&request.head),
        }),
        _ => Ok(request),
    }
}

/// Binds a window or invalidates a key, if that is what the WQE of a queue pair (domain, number) asks for.
pub(super) fn execute(
    regions: &mut Regions,
    own: (u32, u32),
    request: &SendRequest,
) -> Result<(), BadWqe> {
    let key = request.head.imm;
    let changed = match request.head.opcode {
        opcode::BIND_MW => regions.bind(key, &request.bind, own),
        opcode::LOCAL_INV => regions.invalidate(key, own.0, own.1),
        _ => Ok(()),
    };
    changed.map_err(|_| BadWqe {
        status: status::MW_BIND_ERR,
        opcode: cqe_opcode(&request.head),
    })
}
