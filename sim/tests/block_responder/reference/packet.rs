//! A packet, and what it says without the state of its queue pair.

use ferroce_proto::abi::qpc::RqCtx;
use ferroce_proto::wire::bth::pkey_matches;
use ferroce_proto::wire::{Class, Mtu, Opcode, Operation, Position, Suffix};

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
    pub(crate) ext: u64,
    pub(crate) rkey: u32,
    pub(crate) dma_len: u32,
    pub(crate) imm: u32,
    pub(crate) plen: u32,
    pub(crate) lane: u32,
    pub(crate) beats: u32,
}

/// `reason` of `RqRequest`.
pub(crate) mod reason {
    pub(crate) const GOOD: u8 = 0;
    pub(crate) const NO_QP: u8 = 1;
    pub(crate) const TRANSPORT: u8 = 2;
    pub(crate) const PKEY: u8 = 3;
    pub(crate) const ADDRESS: u8 = 4;
    pub(crate) const NO_REQUEST: u8 = 5;
}

/// What the static checks find, for a card of 2^`log_qps` queue pairs.
pub(crate) fn check(ctx: &RqCtx, packet: &Packet, log_qps: u32) -> u8 {
    let opcode = Opcode::from_code(packet.opcode);
    if opcode == Some(Opcode::Cnp) {
        reason::NO_REQUEST
    } else if packet.qpn == 0 || packet.qpn >> log_qps != 0 {
        reason::NO_QP
    } else if packet.opcode >> 5 != Class::Rc as u8 || ctx.qp_type != Class::Rc as u8 {
        reason::TRANSPORT
    } else if !pkey_matches(packet.pkey, ctx.pkey) {
        reason::PKEY
    } else if packet.src_gid != ctx.remote_gid || packet.gid_index != ctx.sgid_index {
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

/// The opcode when the engine executes it: SEND and WRITE, without invalidate.
pub(crate) fn executed(packet: &Packet) -> Option<Opcode> {
    let places = |o: &Opcode| matches!(o.operation(), Operation::Send | Operation::Write);
    Opcode::from_code(packet.opcode)
        .filter(places)
        .filter(|o| o.suffix() != Suffix::Inv)
}

/// What the length of the packet alone says.
pub(crate) fn length_fits(ctx: &RqCtx, packet: &Packet, position: Position) -> bool {
    match position {
        Position::First | Position::Middle => packet.plen == mtu(ctx),
        Position::Last => packet.plen >= 1 && packet.plen <= mtu(ctx),
        Position::Only => packet.plen <= mtu(ctx),
    }
}
