//! A packet, and what it says without the state of its queue pair.

use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::wire::bth::pkey_matches;
use ferroce_proto::wire::{Class, Mtu, Opcode, Operation, Position};

/// A received packet, as `RxMeta` tells of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) opcode: u8,
    pub(crate) solicited: bool,
    pub(crate) ack_req: bool,
    pub(crate) pkey: u16,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) src_gid: u128,
    pub(crate) gid_index: u8,
    pub(crate) vid: u16,
    pub(crate) ext: u64,
    pub(crate) rkey: u32,
    pub(crate) dma_len: u32,
    /// Bytes 16..28 behind the BTH: with `dma_len` the operands of an atomic.
    pub(crate) operands: u128,
    pub(crate) imm: u32,
    pub(crate) plen: u32,
    pub(crate) lane: u32,
    pub(crate) beats: u32,
}

impl Packet {
    /// Its transport is UD: a GRH stands before its payload.
    pub(crate) fn is_datagram(&self) -> bool {
        self.opcode >> 5 == Class::Ud as u8
    }

    /// The GRH of a datagram as a packet, in beats of `bytes`.
    pub(crate) fn grh(&self, bytes: u32) -> Self {
        Self {
            plen: 40,
            lane: 0,
            beats: 40u32.div_ceil(bytes),
            ..self.clone()
        }
    }

    /// Swap value or the value to add, and the value to compare with.
    pub(crate) fn atomic_operands(&self) -> [u64; 2] {
        let both = u128::from(self.dma_len) << 96 | self.operands;
        [(both >> 64) as u64, both as u64]
    }
}

/// `reason` of `RqRequest`.
pub(crate) mod reason {
    pub(crate) const GOOD: u8 = 0;
    pub(crate) const NO_QP: u8 = 1;
    pub(crate) const TRANSPORT: u8 = 2;
    pub(crate) const PKEY: u8 = 3;
    pub(crate) const ADDRESS: u8 = 4;
    pub(crate) const NO_REQUEST: u8 = 5;
    pub(crate) const QKEY: u8 = 6;
}

/// What the static checks find, for a card of 2^`log_qps` queue pairs.
pub(crate) fn check(ctx: &RqCtx, packet: &Packet, log_qps: u32) -> u8 {
    let opcode = Opcode::from_code(packet.opcode);
    if opcode == Some(Opcode::Cnp) {
        reason::NO_REQUEST
    } else if packet.qpn == 0 || packet.qpn >> log_qps != 0 {
        reason::NO_QP
    } else if packet.opcode >> 5 != ctx.qp_type || ctx.qp_type == 2 {
        reason::TRANSPORT
    } else if !pkey_matches(packet.pkey, ctx.pkey) {
        reason::PKEY
    } else if packet.is_datagram() {
        // from anywhere, to any address of the port
        if (packet.ext >> 32) as u32 == ctx.qkey {
            reason::GOOD
        } else {
            reason::QKEY
        }
    } else if packet.src_gid != ctx.remote_gid
        || packet.gid_index != ctx.sgid_index
        || (ctx.check_vlan && packet.vid != ctx.vlan)
    {
        reason::ADDRESS
    } else if opcode.is_some_and(Opcode::is_response) {
        reason::NO_REQUEST
    } else {
        reason::GOOD
    }
}

pub(crate) fn mtu(ctx: &RqCtx) -> u32 {
    Mtu::from_code(ctx.mtu).expect("an MTU").bytes() as u32
}

/// The opcode of a request.
pub(crate) fn executed(packet: &Packet) -> Option<Opcode> {
    Opcode::from_code(packet.opcode).filter(|o| o.is_request())
}

pub(crate) fn is_atomic(opcode: Opcode) -> bool {
    matches!(opcode.operation(), Operation::CmpSwap | Operation::FetchAdd)
}

/// What a request wants of a memory region: bytes and right.
pub(crate) fn wants(packet: &Packet) -> Option<(u32, u64)> {
    match executed(packet)? {
        o if is_atomic(o) => Some((8, 4)),
        o if o.operation() == Operation::ReadRequest => Some((packet.dma_len, 3)),
        o if o.has_reth() => Some((packet.dma_len, 2)),
        _ => None,
    }
}

/// What the queue pair permits its peer.
pub(crate) fn permitted(ctx: &RqCtx, opcode: Opcode) -> bool {
    match opcode.operation() {
        Operation::Send => true,
        Operation::Write => ctx.remote_write,
        Operation::ReadRequest => ctx.remote_read,
        _ => ctx.remote_atomic,
    }
}

/// What the length of the packet alone says.
pub(crate) fn length_fits(ctx: &RqCtx, packet: &Packet, position: Position) -> bool {
    match position {
        Position::First | Position::Middle => packet.plen == mtu(ctx),
        Position::Last => packet.plen >= 1 && packet.plen <= mtu(ctx),
        Position::Only => packet.plen <= mtu(ctx),
    }
}
