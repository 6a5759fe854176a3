//! Commands by chance, most of them good, the others wrong in one thing or another.

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdHead, GidEntry, PortConfig, opcode};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::eq::EqCtx;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, SrqCtx};

use super::{C, E, M, O, Q, S};

/// Head and images of a command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) head: CmdHead,
    pub(crate) images: [[u8; 64]; 3],
}

impl Command {
    pub(crate) fn new(opcode: u8, index: u32) -> Self {
        Self {
            head: CmdHead {
                opcode,
                index,
                ..CmdHead::default()
            },
            images: [[0; 64]; 3],
        }
    }

    pub(crate) fn with(mut self, image: [u8; 64]) -> Self {
        self.images[0] = image;
        self
    }
}

/// `good`, rarely the other.
fn mostly<T>(rng: &mut Rng, good: T, other: impl FnOnce(&mut Rng) -> T) -> T {
    if rng.u8(..24) == 0 { other(rng) } else { good }
}

/// A number below 2^log, rarely not.
fn below(rng: &mut Rng, log: usize) -> u32 {
    let number = rng.u32(..1 << log);
    mostly(rng, number, |rng| match rng.u8(..3) {
        0 => 1 << log,
        1 => number | 1 << rng.usize(log..32),
        _ => rng.u32(..),
    })
}

fn aligned(rng: &mut Rng, log: u32) -> u64 {
    let address = rng.u64(..) >> log << log;
    mostly(rng, address, |rng| address | rng.u64(..1 << log))
}

pub(crate) fn sq(rng: &mut Rng) -> SqCtx {
    let ot_log = mostly(rng, 4, |rng| rng.u8(..16));
    let ot_base = below(rng, O - 4) << 4 & 0xff_ffff;
    SqCtx {
        qp_type: mostly(rng, 0, |rng| rng.u8(..4)),
        mtu: mostly(rng, 3, |rng| rng.u8(..8)),
        sq_log: rng.u8(..16),
        ot_log,
        retry_cnt: rng.u8(..8),
        rnr_retry: rng.u8(..8),
        timeout: rng.u8(..32),
        max_rd_atomic: mostly(rng, 16, |rng| rng.u8(..32)),
        rsv0: rng.u8(..8),
        pd: rng.u32(..1 << 24),
        cqn: below(rng, C) as u16,
        ot_base: mostly(rng, ot_base, |rng| rng.u32(..1 << (O + 1))),
        sq_base: aligned(rng, 6),
        rate_limit: rng.u32(0..1 << 20),
        swift: rng.bool(),
        rsv1: rng.u16(..1 << 11),
        window: rng.u16(..),
    }
}

pub(crate) fn av(rng: &mut Rng) -> AvCtx {
    let noise: [u8; 64] = std::array::from_fn(|_| rng.u8(..));
    AvCtx {
        sgid_index: below(rng, 4) as u8,
        ..AvCtx::parse(&noise)
    }
}

pub(crate) fn rq(rng: &mut Rng) -> RqCtx {
    let noise: [u8; 64] = std::array::from_fn(|_| rng.u8(..));
    RqCtx {
        rq_base: aligned(rng, 6),
        qp_type: mostly(rng, 0, |rng| rng.u8(..4)),
        mtu: mostly(rng, 5, |rng| rng.u8(..8)),
        max_dest_rd_atomic: mostly(rng, 16, |rng| rng.u8(..32)),
        srq_valid: rng.u8(..4) == 0,
        srqn: below(rng, S) as u16,
        sgid_index: below(rng, 4) as u8,
        cqn: below(rng, C) as u16,
        ..RqCtx::parse(&noise)
    }
}

fn cq(rng: &mut Rng) -> CqCtx {
    CqCtx {
        base: aligned(rng, 6),
        consumer: aligned(rng, 2),
        log_size: mostly(rng, 22, |rng| rng.u8(..32)),
        eqn: below(rng, E) as u8,
    }
}

fn eq(rng: &mut Rng) -> EqCtx {
    EqCtx {
        base: aligned(rng, 6),
        consumer: aligned(rng, 2),
        log_size: mostly(rng, 16, |rng| rng.u8(..32)),
        vector: rng.u16(..1 << 11),
        moderation: rng.u16(..),
    }
}

fn srq(rng: &mut Rng) -> SrqCtx {
    let noise: [u8; 64] = std::array::from_fn(|_| rng.u8(..));
    SrqCtx {
        base: aligned(rng, 6),
        numbers: aligned(rng, 6),
        eqn: below(rng, E) as u8,
        ..SrqCtx::parse(&noise)
    }
}

fn mr(rng: &mut Rng, index: u32) -> MrCtx {
    let noise: [u8; 64] = std::array::from_fn(|_| rng.u8(..));
    let base = rng.u64(..);
    let own = (rng.u32(..) << (8 + M)) | ((index % (1 << M)) << 8) | rng.u32(..256);
    MrCtx {
        base,
        last: match rng.u8(..12) {
            0 => base,
            1 => base.wrapping_sub(1),
            2 => rng.u64(..),
            _ => base.saturating_add(rng.u64(..1 << 40)),
        },
        key: mostly(rng, own, |rng| own ^ 1 << rng.u32(..32)),
        valid: rng.u8(..4) > 0,
        ..MrCtx::parse(&noise)
    }
}

/// A command.
pub(crate) fn command(rng: &mut Rng) -> Command {
    let opcode = match rng.u8(..20) {
        n @ 0..15 => n,
        15 => rng.u8(..),
        _ => opcode::MODIFY_QP,
    };
    let index = match opcode {
        opcode::MODIFY_QP | opcode::QUERY_QP => below(rng, Q),
        opcode::CREATE_CQ | opcode::DESTROY_CQ | opcode::RESIZE_CQ => below(rng, C),
        opcode::CREATE_EQ | opcode::DESTROY_EQ => below(rng, E),
        opcode::WRITE_AH => below(rng, Q),
        opcode::CREATE_SRQ | opcode::DESTROY_SRQ | opcode::ARM_SRQ => below(rng, S),
        opcode::WRITE_MR => below(rng, M),
        opcode::SET_GID => below(rng, 4),
        _ => rng.u32(..),
    };
    let noise: [u8; 64] = std::array::from_fn(|_| rng.u8(..));
    let state = |rng: &mut Rng| {
        let state = rng.u8(..7);
        mostly(rng, state, |rng| rng.u8(..))
    };
    let first = match opcode {
        opcode::MODIFY_QP => sq(rng).emit(),
        opcode::CREATE_CQ | opcode::RESIZE_CQ => cq(rng).emit(),
        opcode::CREATE_EQ => eq(rng).emit(),
        opcode::WRITE_AH => av(rng).emit(),
        opcode::CREATE_SRQ | opcode::ARM_SRQ => srq(rng).emit(),
        opcode::WRITE_MR => mr(rng, index).emit(),
        opcode::SET_GID => GidEntry::parse(&noise).emit(),
        opcode::SET_PORT => PortConfig::parse(&noise).emit(),
        _ => noise,
    };
    Command {
        head: CmdHead {
            opcode,
            index,
            sq_state: state(rng),
            rq_state: state(rng),
            // nothing was completed
            cq_taken: mostly(rng, 0, |rng| rng.u32(..1 << 24)),
            ..CmdHead::parse(&noise)
        },
        images: [first, av(rng).emit(), rq(rng).emit()],
    }
}
